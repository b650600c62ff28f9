//! Kernel libraries that a program has in memory.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};

use super::error::CallError;
use super::find_library::Mode;
use super::memory_file;
use super::objects::{Binary, BinaryData, Function, Operator};
use super::process::{current_device, process};
use host_stub::Cpu;

/// # Errors
/// The mode is not that of a binary in memory.
pub fn check_mode(mode: Mode) -> Result<(), CallError> {
    match mode {
        Mode::InData => Ok(()),
        Mode::OnDevice | Mode::Beside => {
            Err(CallError::Invalid("options: must name option CPU_KERNEL_MODE with value 2 for data".to_owned()))
        }
    }
}

/// Loads a library for the calling thread's device, and gives its handle. On the image in QEMU the kernels are those of the
/// image, as for every other binary.
///
/// # Errors
/// No device, no bytes, or they are no library that can be loaded.
pub fn load(bytes: &[u8]) -> Result<u64, CallError> {
    if bytes.is_empty() {
        return Err(CallError::OutOfRange { what: "length", value: 0, must: "must be at least 1" });
    }
    let (index, device) = current_device()?;
    let path = memory_file::path_of(bytes, "hcomm-kernels")
        .map_err(|error| CallError::Unavailable(format!("no file for {} bytes: {error}", bytes.len())))?;
    let cpu = device.options().cpu;
    let data = Some(BinaryData { functions: Mutex::default() });
    let (operators, libraries, read) = Default::default();
    let mut binary = Binary { index, device, path: path.clone(), operators, libraries, read, data };
    match cpu {
        Cpu::Native => binary.open_library(&path, &path)?,
        Cpu::Linux => binary.read_library(&path, &path)?,
        Cpu::Qemu => {}
    }
    let mut process = process();
    // A device that was reset meanwhile accepts no binary.
    if !process.devices.contains_key(&index) {
        return Err(CallError::NoDevice);
    }
    Ok(process.binaries.insert(Arc::new(binary)))
}

/// Handle of the kernel whose entry point is `function`, which is called `name` from now on.
///
/// # Errors
/// Unknown binary, one of a file, a function that it does not have.
pub fn register(binary: u64, function: &[u8], name: &[u8]) -> Result<u64, CallError> {
    let found = Arc::clone(process().binaries.get(binary)?);
    let Some(data) = &found.data else {
        let text = "the binary was loaded from a file: aclrtBinaryGetFunction gives its kernels".to_owned();
        return Err(CallError::Invalid(text));
    };
    let operator = Operator { library: found.path.clone(), function: String::from_utf8_lossy(function).into_owned() };
    let kernel = found.kernel_of(&operator)?;
    let mut process = process();
    // It may have been unloaded meanwhile.
    process.binaries.get(binary)?;
    let handle = process.functions.insert(Function { index: found.index, binary, kernel });
    drop(process);
    data.functions.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), handle);
    Ok(handle)
}
