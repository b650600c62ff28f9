//! Kernels' libraries, loaded as the loader of a card does: dlopen with RTLD_LAZY and RTLD_GLOBAL, once, never unloaded; dlsym once
//! for a function.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hcomm_aicpu::spec::runner::{FileId, KERNELS_PHYS, KERNELS_SIZE, KernelName};

use crate::{memory, modules};

/// Entry of a kernel. Called as a function that does not unwind: an exception that leaves it finds no handler, and the C++ library
/// ends the process where it was thrown.
pub type KernelFn = unsafe extern "C" fn(args: *mut c_void) -> u32;

static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

#[derive(Default)]
struct Loaded {
    /// By path: the file, and its handle.
    libraries: HashMap<Vec<u8>, (FileId, usize)>,
    /// By the address of the kernel's name.
    kernels: HashMap<u64, KernelFn>,
}

/// The kernel whose name the host has written at `entry`.
///
/// # Errors
/// It can't be loaded; as a message.
pub fn kernel(entry: u64) -> Result<KernelFn, String> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = loaded.get_or_insert_default();
    if let Some(kernel) = loaded.kernels.get(&entry) {
        return Ok(*kernel);
    }
    let (file, path, name) = read(entry)?;
    let handle = match loaded.libraries.get(&path) {
        Some((known, handle)) if *known == file => *handle,
        Some(_) => return Err(changed(&path, "it was loaded")),
        None => {
            let handle = open(file, &path)?;
            loaded.libraries.insert(path.clone(), (file, handle));
            modules::update();
            handle
        }
    };
    let symbol = CString::new(name.clone()).map_err(|error| error.to_string())?;
    // SAFETY: a handle of dlopen, and a text that ends with a zero byte.
    let found = unsafe { libc::dlsym(handle as *mut c_void, symbol.as_ptr()) };
    if found.is_null() {
        let (path, name) =
            (OsStr::from_bytes(&path).display().to_string(), String::from_utf8_lossy(&name).into_owned());
        return Err(format!("library {path} has no function {name}"));
    }
    // SAFETY: the user's description says that the symbol is a kernel, and no library is ever unloaded.
    let kernel = unsafe { std::mem::transmute::<*mut c_void, KernelFn>(found) };
    loaded.kernels.insert(entry, kernel);
    Ok(kernel)
}

fn changed(path: &[u8], since: &str) -> String {
    let path = OsStr::from_bytes(path).display();
    format!("library {path} has changed since {since}: reset the device and set it again, which loads the new one")
}

/// What the host has written at `entry`: the file, its path and the function.
fn read(entry: u64) -> Result<(FileId, Vec<u8>, Vec<u8>), String> {
    let end = KERNELS_PHYS + KERNELS_SIZE;
    if !(KERNELS_PHYS..end - size_of::<KernelName>() as u64).contains(&entry) {
        return Err(format!("no name of a kernel lies at {entry:#x}"));
    }
    // SAFETY: inside the area (checked), aligned (`low` checks it); the host does not change it after the launch that names it.
    let head = unsafe { memory::low::<KernelName>(entry).read_volatile() };
    let text = entry + size_of::<KernelName>() as u64;
    let (path, name) = (head.path_len as usize, head.name_len as usize);
    if (path + name) as u64 > end - text {
        return Err(format!("the name of a kernel at {entry:#x} has {path} + {name} bytes, more than its area"));
    }
    let mut bytes = vec![0; path + name];
    // SAFETY: inside the area (checked), and `bytes` has as much room.
    unsafe { memory::low::<u8>(text).copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
    let name = bytes.split_off(path);
    Ok((head.file, bytes, name))
}

fn open(file: FileId, path: &[u8]) -> Result<usize, String> {
    let os = OsStr::from_bytes(path);
    let found = std::fs::metadata(Path::new(os)).map_err(|error| format!("library {}: {error}", os.display()))?;
    let found = FileId {
        dev: found.dev(),
        ino: found.ino(),
        size: found.size(),
        mtime_s: found.mtime(),
        mtime_ns: found.mtime_nsec(),
    };
    if found != file {
        return Err(changed(path, "the host has read it"));
    }
    let text = CString::new(path).map_err(|error| error.to_string())?;
    // SAFETY: constructors of the library run, which is what the program that names it wants.
    let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        // SAFETY: a text of the C library, valid until the next call of this thread; null if there is none.
        let text = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text)) };
        return Err(text.map_or("dlopen gives no reason".into(), CStr::to_string_lossy).into_owned());
    }
    Ok(handle as usize)
}
