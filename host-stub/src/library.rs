//! Kernel libraries of the Linux CPU: read before the runner loads them, and named for it in shared memory.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hcomm_aicpu::spec::runner::{FileId, KERNELS_PHYS, KERNELS_SIZE, KernelName};
use hcomm_mapping::SharedMemory;
use object::elf::{EM_AARCH64, ET_DYN};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSymbol};

use crate::file;
use crate::loader::machine;
use crate::needs::{self, Missing};

/// Largest library, in bytes: that of the vendor's loader.
const FILE_MAX: u64 = 200 << 20;
/// Longest path of a library, in bytes.
const PATH_MAX: usize = 4096;

/// A library for the Linux CPU, read and checked.
#[derive(Clone, Debug)]
pub struct Library {
    path: PathBuf,
    file: FileId,
    functions: BTreeSet<String>,
    data: Arc<[u8]>,
}

impl Library {
    /// Reads the library at `path`.
    ///
    /// # Errors
    /// It can't be read, or is not a shared library for AArch64; as a message.
    pub fn read(path: &Path) -> Result<Self, String> {
        // A file in memory has no other name than that of its number.
        let path = if path.starts_with("/proc") { Ok(path.to_owned()) } else { path.canonicalize() };
        let path = path.map_err(|error| error.to_string())?;
        if path.as_os_str().len() > PATH_MAX {
            return Err(format!("its path has {} bytes: at most {PATH_MAX} are supported", path.as_os_str().len()));
        }
        let data = file::read(&path, FILE_MAX).map_err(|error| error.to_string())?;
        let found = path.metadata().map_err(|error| error.to_string())?;
        let file = FileId {
            dev: found.dev(),
            ino: found.ino(),
            size: found.size(),
            mtime_s: found.mtime(),
            mtime_ns: found.mtime_nsec(),
        };
        check_machine(&data)?;
        let elf =
            ElfFile64::<LittleEndian>::parse(&*data).map_err(|error| format!("it is a damaged ELF file: {error}"))?;
        let defined = elf.dynamic_symbols().filter(|symbol| symbol.is_definition());
        let functions = defined.filter_map(|symbol| symbol.name().ok().map(ToOwned::to_owned)).collect();
        Ok(Self { path, file, functions, data: data.into() })
    }

    /// Checks that the runner can load it: that what it needs when it is loaded is there. Functions that are not there, but are only called,
    /// are told with a warning. `given`: libraries that are loaded before it; `root`: folder that AArch64 libraries are below.
    ///
    /// # Errors
    /// Something is missing; as a message.
    pub(crate) fn check_needs(&self, given: &[PathBuf], root: &Path) -> Result<(), String> {
        let Missing { at_load, functions, libraries, binds_now } = needs::missing(&self.path, &self.data, given, root)?;
        if !libraries.is_empty() {
            return Err(format!(
                "it is linked with {}, which is in none of its folders and not below {}",
                libraries.join(", "),
                root.display()
            ));
        }
        if !at_load.is_empty() {
            let why = match binds_now {
                true => "it was linked with -z now, so that functions must be there when it is loaded",
                false => "data must be there when it is loaded",
            };
            return Err(format!("nothing defines {}: {why}", at_load.join(", ")));
        }
        if !functions.is_empty() {
            // A standard error that is closed or full is no reason to stop.
            let _ = writeln!(
                std::io::stderr(),
                "hcomm-sim: warning: library {}: nothing defines {}: a call ends the kernel",
                self.path.display(),
                functions.join(", ")
            );
        }
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it defines a function of this name.
    pub fn has(&self, function: &str) -> bool {
        self.functions.contains(function)
    }

    /// Functions that it defines.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(String::as_str)
    }
}

/// # Errors
/// Not a shared library for AArch64.
fn check_machine(data: &[u8]) -> Result<(), String> {
    let half = |at: usize| Some(u16::from_le_bytes(data.get(at..at + 2)?.try_into().ok()?));
    let (Some(kind), Some(found), true) = (half(16), half(18), data.starts_with(b"\x7fELF\x02\x01")) else {
        return Err("it is not a 64-bit little-endian ELF file".to_owned());
    };
    if found != EM_AARCH64.0 {
        return Err(format!(
            "made for {}, and the linux cpu runs AArch64: compile it for AArch64, or use --cpu native (HCOMM_SIM_CPU=native)",
            machine(found)
        ));
    }
    if kind != ET_DYN.0 {
        return Err("it is an ELF file, but not a shared library: link it with -shared".to_owned());
    }
    Ok(())
}

/// Kernels of one device that the runner has a name of.
pub struct Kernels {
    memory: Arc<SharedMemory>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By path: what the file was when a kernel of it was first named since the runner started.
    files: BTreeMap<PathBuf, FileId>,
    /// Path, file and function: place of the name.
    places: BTreeMap<(PathBuf, FileId, String), u64>,
    /// Bytes of the area that are in use.
    used: u64,
}

impl Kernels {
    /// No kernels, of the device in `memory`.
    pub fn new(memory: &Arc<SharedMemory>) -> Self {
        Self { memory: Arc::clone(memory), known: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the runner has not loaded another file from the library's path.
    ///
    /// # Errors
    /// It has, or may have; as a message.
    pub fn check(&self, library: &Library) -> Result<(), String> {
        match self.lock().files.get(&library.path) {
            Some(file) if *file != library.file => {
                Err("it has changed since the device has loaded it: reset the device and set it again, which loads the new one".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Place of the name of a function.
    ///
    /// # Errors
    /// As [`check`](Self::check); no room.
    pub fn place(&self, library: &Library, function: &str) -> Result<u64, String> {
        self.check(library)?;
        let mut known = self.lock();
        let key = (library.path.clone(), library.file, function.to_owned());
        if let Some(place) = known.places.get(&key) {
            return Ok(*place);
        }
        let path = library.path.as_os_str().as_bytes();
        let len =
            (size_of::<KernelName>() + path.len() + function.len()).next_multiple_of(align_of::<KernelName>()) as u64;
        if len > KERNELS_SIZE - known.used {
            return Err(format!("there is no room for the name of one more kernel: all have {KERNELS_SIZE} bytes"));
        }
        let place = KERNELS_PHYS + known.used;
        let FileId { dev, ino, size, mtime_s, mtime_ns } = library.file;
        let words =
            [dev, ino, size, mtime_s as u64, mtime_ns as u64, path.len() as u64 | (function.len() as u64) << 32];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(size_of::<KernelName>(), 0);
        bytes.extend(path);
        bytes.extend(function.as_bytes());
        self.memory.write_low(place, &bytes);
        known.used += len;
        known.files.insert(library.path.clone(), library.file);
        known.places.insert(key, place);
        Ok(place)
    }

    /// A new runner has started, which has loaded nothing.
    pub fn forget_loaded(&self) {
        self.lock().files.clear();
    }

    /// Path of the library whose kernel's name is at `place`.
    pub fn library_at(&self, place: u64) -> Option<PathBuf> {
        let known = self.lock();
        known.places.iter().find(|(_, known)| **known == place).map(|((path, ..), _)| path.clone())
    }
}

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(KernelName, path_len) == 40 && offset_of!(KernelName, name_len) == 44);
};
