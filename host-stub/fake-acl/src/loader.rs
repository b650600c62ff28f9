//! The loader of a card: descriptions on the host; packages and libraries on the AI CPU.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use hcomm_kernel::KernelFn;
use host_stub::library::Library;
use host_stub::{Cpu, Device, Kernel};
use serde_json::{Map, Value};

use crate::codes;
use crate::world::{Config, lock, log};

/// Longest name of a library, and of a kernel.
const LIBRARY_NAME_MAX: usize = 100;
const KERNEL_NAME_MAX: usize = 200;

/// A kernel of a description.
#[derive(Clone, Debug)]
pub struct Function {
    pub library: String,
    pub symbol: String,
}

/// Kernels of a description, by name. An entry without `opInfo` is skipped.
///
/// # Errors
/// No JSON object of objects of strings; a value that this loader does not take to the AI CPU.
pub fn read_description(text: &[u8]) -> Result<BTreeMap<String, Function>, i32> {
    let json: Map<String, Value> = serde_json::from_slice(text).map_err(|_| codes::PARSE_FILE)?;
    let mut kernels = BTreeMap::new();
    for (name, entry) in json {
        let Some(info) = entry.get("opInfo") else {
            log(format_args!("kernel {name} has no opInfo: skipped"));
            continue;
        };
        let info = info.as_object().ok_or(codes::PARSE_FILE)?;
        if info.values().any(|value| !value.is_string()) {
            return Err(codes::PARSE_FILE);
        }
        let text = |key| info.get(key).and_then(Value::as_str);
        let (Some("AICPUKernel"), Some(library), Some(symbol), None) =
            (text("opKernelLib"), text("kernelSo"), text("functionName"), text("userDefined"))
        else {
            return Err(codes::PARSE_FILE);
        };
        if library.len() > LIBRARY_NAME_MAX || name.len() > KERNEL_NAME_MAX || library.contains('/') {
            return Err(codes::PARSE_FILE);
        }
        kernels.insert(name, Function { library: library.to_owned(), symbol: symbol.to_owned() });
    }
    Ok(kernels)
}

/// The AI CPU's side.
pub struct Loader {
    cpu: Cpu,
    /// Where the libraries are.
    folder: PathBuf,
    /// A folder that was made here, with what was unpacked.
    unpacked: Option<PathBuf>,
    /// Of AArch64 code, by path: a library is read once.
    read: Mutex<BTreeMap<PathBuf, Library>>,
}

/// Libraries of this machine that are open, by path: opened once, never closed.
static OPEN: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

impl Loader {
    /// AArch64 libraries come from the packages in the folder. Libraries for this machine have no package: tests alone run them.
    pub fn new(config: &Config) -> Result<Self, String> {
        let read = Mutex::default();
        if config.cpu == Cpu::Native {
            return Ok(Self { cpu: config.cpu, folder: config.folder.join("host"), unpacked: None, read });
        }
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("hcomm-fake-card-{}-{number}", std::process::id()));
        let failed = |error: std::io::Error| format!("packages of {}: {error}", config.folder.display());
        for entry in fs::read_dir(&config.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.to_string_lossy().ends_with(".tar.gz") {
                let file = File::open(&path).map_err(failed)?;
                tar::Archive::new(flate2::read::GzDecoder::new(file)).unpack(&root).map_err(failed)?;
            }
        }
        Ok(Self { cpu: config.cpu, folder: root.join("aicpu_kernels_device"), unpacked: Some(root), read })
    }

    /// The kernel that a description names. A library is looked for when it is launched, as on a card.
    ///
    /// # Errors
    /// The code of the AI CPU's loader.
    pub fn kernel(&self, device: &Device, function: &Function) -> Result<Kernel, i32> {
        let Function { library, symbol } = function;
        let path = self.folder.join(library).canonicalize().map_err(|_| codes::LIBRARY_NOT_OPENED)?;
        if self.cpu == Cpu::Native {
            let address = native(&path, symbol)?;
            // SAFETY: the functions that a description names have this type.
            let function = unsafe { std::mem::transmute::<*mut c_void, KernelFn>(address) };
            return Ok(Kernel::native(symbol, function));
        }
        self.aarch64(device, &path, symbol)
    }

    /// A function of an AArch64 library.
    ///
    /// # Errors
    /// As [`kernel`](Self::kernel).
    pub fn aarch64(&self, device: &Device, path: &Path, symbol: &str) -> Result<Kernel, i32> {
        let mut read = lock(&self.read);
        if !read.contains_key(path) {
            let library = Library::read(path).map_err(|why| {
                log(format_args!("{}: {why}", path.display()));
                codes::LIBRARY_NOT_OPENED
            })?;
            read.insert(path.to_owned(), library);
        }
        let library = &read[path];
        if !library.has(symbol) {
            return Err(codes::FUNCTION_MISSING);
        }
        device.library_kernel(library, symbol).map_err(|_| codes::LIBRARY_NOT_OPENED)
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        if let Some(folder) = &self.unpacked {
            // What can't be removed is left to the cleaning of temporary files.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// A function of a library of this machine.
///
/// # Errors
/// As [`Loader::kernel`].
pub fn native(path: &Path, symbol: &str) -> Result<*mut c_void, i32> {
    let mut open = lock(&OPEN);
    let handle = match open.get(path) {
        Some(handle) => *handle,
        None => {
            let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| codes::LIBRARY_NOT_OPENED)?;
            // SAFETY: the library has no constructors that need anything.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
            if handle.is_null() {
                return Err(codes::LIBRARY_NOT_OPENED);
            }
            open.insert(path.to_owned(), handle.expose_provenance());
            handle.expose_provenance()
        }
    };
    let name = CString::new(symbol).map_err(|_| codes::FUNCTION_MISSING)?;
    // SAFETY: a handle of dlopen that is never closed, and a text that ends with a zero byte.
    let found = unsafe { libc::dlsym(std::ptr::with_exposed_provenance_mut(handle), name.as_ptr()) };
    if found.is_null() { Err(codes::FUNCTION_MISSING) } else { Ok(found) }
}
