//! Kernel binaries: an operator description, and the library or image that it names.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hcomm_kernel::KernelFn;
use serde_json::{Map, Value};

use super::acl_base::{CPU_KERNEL_MODE, LAZY_LOAD, MAGIC, aclrtBinaryLoadOptions, number};
use super::binary_error::BinaryError;
use super::error::CallError;
use super::find_library::{self, Found, Mode};
use super::library;
use super::objects::{Binary, Function, Operator};
use super::process::{current_device, process};
use host_stub::Cpu;
use host_stub::Kernel;
use host_stub::file;
use host_stub::library as aarch64;
use host_stub::loader::{Image, LoadError};

/// Largest description, in bytes.
const DESCRIPTION_MAX: u64 = 16 << 20;
/// Longest name of a kernel.
const KERNEL_NAME_MAX: usize = 200;
/// Longest name of a library.
const LIBRARY_NAME_MAX: usize = 100;
/// `opKernelLib` of kernels that the AI CPU runs.
const AICPU_LIBS: [&str; 2] = ["AICPUKernel", "CUSTAICPUKernel"];
/// Other values of `opKernelLib` that the runtime has.
const OTHER_LIBS: [&str; 3] = ["KFCKernel", "CUSTKFCKernel", "TFKernel"];

/// Mode that the options of a load select.
///
/// # Errors
/// An option that is not known or not supported.
///
/// # Safety
/// `options` is null, or options can be read there.
pub unsafe fn mode(options: *const aclrtBinaryLoadOptions) -> Result<Mode, CallError> {
    let mut mode = Mode::OnDevice;
    if options.is_null() {
        return Ok(mode);
    }
    // SAFETY: not null, so the caller owes options.
    let options = unsafe { options.read_unaligned() };
    if options.numOpt != 0 && options.options.is_null() {
        return Err(CallError::Null("options->options"));
    }
    for index in 0..options.numOpt {
        // SAFETY: the caller owes `numOpt` options from there on.
        let option = unsafe { options.options.add(index).read_unaligned() };
        // SAFETY: any bits are an `i32`; the whole union was read.
        let value = unsafe { option.value.cpuKernelMode };
        mode = match (number(option.r#type), value) {
            (CPU_KERNEL_MODE, 0) => Mode::OnDevice,
            (CPU_KERNEL_MODE, 1) => Mode::Beside,
            (CPU_KERNEL_MODE, 2) => Mode::InData,
            (CPU_KERNEL_MODE, value) => {
                let must = "must be 0, 1 or 2";
                return Err(CallError::OutOfRange { what: "cpuKernelMode", value: value.into(), must });
            }
            // The time of loading a kernel makes no difference here.
            (LAZY_LOAD, _) => mode,
            (MAGIC, _) => {
                return Err(CallError::NotSupported("option magic: only ai cpu kernels are loaded".to_owned()));
            }
            (other, _) => {
                return Err(CallError::OutOfRange { what: "option", value: other.into(), must: "not an option" });
            }
        };
    }
    Ok(mode)
}

/// Loads a description for the calling thread's device, and gives its handle.
///
/// # Errors
/// No device; [`BinaryError`].
pub fn load(path: &Path, mode: Mode) -> Result<u64, CallError> {
    if mode == Mode::InData {
        let must = "must be 0 or 1 for a file";
        return Err(CallError::OutOfRange { what: "cpuKernelMode", value: 2, must });
    }
    let (index, device) = current_device()?;
    let text =
        file::read(path, DESCRIPTION_MAX).map_err(|source| BinaryError::Read { path: path.to_owned(), source })?;
    let json: Value =
        serde_json::from_slice(&text).map_err(|source| BinaryError::NotJson { path: path.to_owned(), source })?;
    let cpu = device.options().cpu;
    let (operators, libraries, read) = Default::default();
    let mut binary = Binary { index, device, path: path.to_owned(), operators, libraries, read, data: None };
    // By `kernelSo`.
    let mut known = HashMap::new();
    for (name, value) in object(path, "the file", &json)? {
        let (library, function) = operator(path, name, value)?;
        let found = match (cpu, mode, known.get(library)) {
            // Kernels of the image are on the device; they have no library of their own.
            (Cpu::Qemu, Mode::OnDevice, _) => PathBuf::from(library),
            (.., Some(found)) => PathBuf::clone(found),
            _ => {
                let Found { path: found, shown } = find_library::find(path, mode, cpu, library)?;
                match cpu {
                    Cpu::Native => binary.open_library(&found, &shown)?,
                    Cpu::Linux => binary.read_library(&found, &shown)?,
                    Cpu::Qemu => binary.check_image(&found)?,
                }
                known.insert(library, found.clone());
                found
            }
        };
        binary.operators.insert(name.clone(), Operator { library: found, function: function.to_owned() });
    }
    if binary.operators.is_empty() {
        let (path, place) = (path.to_owned(), "the file".to_owned());
        return Err(BinaryError::MissingKey { path, place, key: "<kernel name>" }.into());
    }
    let mut process = process();
    // A device that was reset meanwhile accepts no binary.
    if !process.devices.contains_key(&index) {
        return Err(CallError::NoDevice);
    }
    Ok(process.binaries.insert(Arc::new(binary)))
}

fn object<'a>(path: &Path, place: &str, value: &'a Value) -> Result<&'a Map<String, Value>, BinaryError> {
    value.as_object().ok_or_else(|| bad_value(path, place, value, "must be an object"))
}

fn bad_value(path: &Path, place: &str, value: &Value, must: &'static str) -> BinaryError {
    BinaryError::BadValue { path: path.to_owned(), place: place.to_owned(), value: value.to_string(), must }
}

/// `kernelSo` and `functionName` of one entry.
fn operator<'a>(path: &Path, name: &str, value: &'a Value) -> Result<(&'a str, &'a str), BinaryError> {
    if name.is_empty() || name.len() > KERNEL_NAME_MAX {
        return Err(bad_value(path, "the name of an operator", &name.into(), "must have 1 to 200 bytes"));
    }
    let missing = |place: &str, key| BinaryError::MissingKey { path: path.to_owned(), place: place.to_owned(), key };
    let entry = object(path, name, value)?;
    let place = format!("{name}.opInfo");
    let info = object(path, &place, entry.get("opInfo").ok_or_else(|| missing(name, "opInfo"))?)?;
    let text = |key: &'static str| {
        let value = info.get(key).ok_or_else(|| missing(&place, key))?;
        let text = value.as_str().filter(|text| !text.is_empty() && !text.contains('\0'));
        text.ok_or_else(|| bad_value(path, &format!("{place}.{key}"), value, "must be a text"))
    };
    let (kind, library, function) = (text("opKernelLib")?, text("kernelSo")?, text("functionName")?);
    if !AICPU_LIBS.contains(&kind) {
        let known = OTHER_LIBS.contains(&kind);
        let must = if known { "only ai cpu kernels are supported" } else { "must be AICPUKernel or CUSTAICPUKernel" };
        return Err(bad_value(path, &format!("{place}.opKernelLib"), &kind.into(), must));
    }
    if library.contains('/') || library.len() > LIBRARY_NAME_MAX {
        let must = "must be the name of a file, at most 100 bytes";
        return Err(bad_value(path, &format!("{place}.kernelSo"), &library.into(), must));
    }
    Ok((library, function))
}

impl Binary {
    /// Loads a library into this process; `shown`: where it is, for messages.
    pub fn open_library(&mut self, path: &Path, shown: &Path) -> Result<(), BinaryError> {
        // The dynamic linker would wait for the other end of a FIFO.
        file::check_regular(path).map_err(|error| load_error(shown, &error))?;
        let library = library::load(path).map_err(|reason| load_error(shown, &reason))?;
        self.libraries.insert(path.to_owned(), library);
        Ok(())
    }

    /// Reads a library that the runner is to load; `shown`: where it is, for messages.
    pub fn read_library(&mut self, path: &Path, shown: &Path) -> Result<(), CallError> {
        let library = aarch64::Library::read(path).map_err(|reason| load_error(shown, &reason))?;
        self.device.check_library(&library)?;
        self.read.insert(path.to_owned(), library);
        Ok(())
    }

    /// The image in QEMU was chosen when the device was opened: another one can't be added to it.
    fn check_image(&self, path: &Path) -> Result<(), CallError> {
        let image = Image::open(Some(path)).map_err(|error| load_error(path, &error))?;
        let running = self.device.image().ok_or_else(|| load_error(path, &"the device runs no image"))?;
        if image.elf == running.elf {
            return Ok(());
        }
        let reason = format!("the device runs image {}: name this one in HCOMM_IMAGE", running.path.display());
        Err(load_error(path, &reason).into())
    }

    /// The kernel of operator `name`.
    fn kernel(&self, name: &str) -> Result<Kernel, CallError> {
        let Some(operator) = self.operators.get(name) else {
            let known = self.operators.keys().cloned().collect();
            return Err(BinaryError::NoOperator { path: self.path.clone(), name: name.to_owned(), known }.into());
        };
        self.kernel_of(operator)
    }

    /// The kernel whose library and function are known.
    pub fn kernel_of(&self, operator: &Operator) -> Result<Kernel, CallError> {
        if let Some(library) = self.read.get(&operator.library) {
            if !library.has(&operator.function) {
                return Err(self.no_function(operator).into());
            }
            return Ok(self.device.library_kernel(library, &operator.function)?);
        }
        let Some(library) = self.libraries.get(&operator.library) else {
            return match self.device.load_kernel(&operator.function) {
                Err(host_stub::Error::Load(LoadError::NoSuchKernel { .. })) => Err(self.no_function(operator).into()),
                result => Ok(result?),
            };
        };
        let symbol = CString::new(operator.function.as_str()).map_err(|_| self.no_function(operator))?;
        // SAFETY: only the address is taken; what it is called as is said below.
        let found = unsafe { library.get::<*const c_void>(symbol.as_c_str()) };
        let address = found.ok().and_then(|symbol| std::ptr::NonNull::new(symbol.into_raw()));
        let address = address.ok_or_else(|| self.no_function(operator))?;
        // SAFETY: the description says that the symbol is an entry point, `unsigned int f(void *)`. The library stays
        // mapped for good (see `Drop`).
        let entry = unsafe { std::mem::transmute::<*mut c_void, KernelFn>(address.as_ptr()) };
        Ok(Kernel::native(&operator.function, entry))
    }

    fn no_function(&self, operator: &Operator) -> BinaryError {
        let path = match self.device.image() {
            Some(image) => image.path.clone(),
            None => operator.library.clone(),
        };
        BinaryError::NoFunction { path, name: operator.function.clone() }
    }
}

fn load_error(path: &Path, reason: &impl ToString) -> BinaryError {
    BinaryError::Load { path: path.to_owned(), reason: reason.to_string() }
}

/// Handle of the kernel that a binary lists under `name`.
///
/// # Errors
/// Unknown binary; [`BinaryError`].
pub fn function(binary: u64, name: &[u8]) -> Result<u64, CallError> {
    let found = Arc::clone(process().binaries.get(binary)?);
    if let Some(handle) = found.registered(name) {
        return Ok(handle);
    }
    // JSON is UTF-8: a name that is not UTF-8 must not match, not even with replacement characters.
    let kernel = found.kernel(&String::from_utf8_lossy(name))?;
    let mut process = process();
    // It may have been unloaded meanwhile.
    process.binaries.get(binary)?;
    let same = |function: &Function| function.binary == binary && function.kernel.name() == kernel.name();
    if let Some(handle) = process.functions.find(same) {
        return Ok(handle);
    }
    Ok(process.functions.insert(Function { index: found.index, binary, kernel }))
}

/// Frees a binary, its functions and their arguments.
///
/// # Errors
/// Unknown binary.
pub fn unload(binary: u64) -> Result<(), CallError> {
    let mut process = process();
    let removed = process.binaries.remove(binary)?;
    process.functions.extract(|function| function.binary == binary);
    process.args.extract(|args| args.binary == binary);
    drop(process);
    drop(removed);
    Ok(())
}
