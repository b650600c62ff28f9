//! Arguments of launches, and launches.

use std::ffi::c_void;
use std::time::Duration;

use super::acl_base::{TIMEOUT, aclrtLaunchKernelCfg, number};
use super::error::CallError;
use super::objects::{Args, Function};
use super::process::process;
use super::stream;
use host_stub::LaunchOptions;

/// Each argument starts at a multiple of this.
const ALIGN: usize = 8;
/// Arguments that have been launched and are kept: programs may launch them again, and nothing says when they are done.
const LAUNCHED_MAX: usize = 1024;

/// Handle of new arguments for a function.
///
/// # Errors
/// Unknown function.
pub fn init_args(function: u64) -> Result<u64, CallError> {
    let mut process = process();
    let &Function { index, binary, .. } = process.functions.get(function)?;
    let args = Args { index, binary, function, bytes: Vec::new(), appended: 0, is_final: false };
    Ok(process.args.insert(args))
}

/// Appends an argument and gives a number for it.
///
/// # Errors
/// Unknown arguments, finalised ones, or an argument of 0 bytes.
pub fn append(handle: u64, bytes: &[u8]) -> Result<u64, CallError> {
    let mut process = process();
    let args = process.args.get_mut(handle)?;
    if bytes.is_empty() {
        return Err(CallError::OutOfRange { what: "paramSize", value: 0, must: "must be at least 1" });
    }
    if args.is_final {
        return Err(CallError::Invalid("the arguments have been finalised".to_owned()));
    }
    args.bytes.resize(args.bytes.len().next_multiple_of(ALIGN), 0);
    args.bytes.extend_from_slice(bytes);
    args.appended += 1;
    Ok(args.appended)
}

/// Ends arguments.
///
/// # Errors
/// Unknown arguments.
pub fn finalize(handle: u64) -> Result<(), CallError> {
    process().args.get_mut(handle)?.is_final = true;
    Ok(())
}

/// Limit that a configuration gives a launch; `None`: the device's.
///
/// # Errors
/// An attribute that is not supported.
///
/// # Safety
/// `config` is null, or a configuration can be read there.
pub unsafe fn timeout(config: *const aclrtLaunchKernelCfg) -> Result<Option<Duration>, CallError> {
    let mut timeout = None;
    if config.is_null() {
        return Ok(timeout);
    }
    // SAFETY: not null, so the caller owes a configuration.
    let config = unsafe { config.read_unaligned() };
    if config.numAttrs != 0 && config.attrs.is_null() {
        return Err(CallError::Null("cfg->attrs"));
    }
    for index in 0..config.numAttrs {
        // SAFETY: the caller owes `numAttrs` attributes from there on.
        let attribute = unsafe { config.attrs.add(index).read_unaligned() };
        match number(attribute.id) {
            TIMEOUT => {
                // SAFETY: any bits are a `u16`; the whole union was read.
                let seconds = unsafe { attribute.value.timeout };
                timeout = (seconds != 0).then(|| Duration::from_secs(seconds.into()));
            }
            other => return Err(CallError::NotSupported(format!("launch attribute {other}: only 7 (timeout) is"))),
        }
    }
    Ok(timeout)
}

/// # Errors
/// Not null.
pub fn check_reserve(reserve: *const c_void) -> Result<(), CallError> {
    if reserve.is_null() { Ok(()) } else { Err(CallError::Invalid("reserve must be null".to_owned())) }
}

/// # Errors
/// There are any.
pub fn check_place_holders(is_given: bool, count: usize) -> Result<(), CallError> {
    if is_given || count != 0 {
        return Err(CallError::NotSupported("place holders among the arguments of a launch".to_owned()));
    }
    Ok(())
}

/// Launches a function with finalised arguments.
///
/// # Errors
/// A handle of nothing, arguments of another function, or what [`launch_bytes`] answers.
pub fn launch(
    function: u64,
    num_blocks: u32,
    stream: u64,
    timeout: Option<Duration>,
    handle: u64,
) -> Result<(), CallError> {
    let bytes = {
        let process = process();
        process.functions.get(function)?;
        let args = process.args.get(handle)?;
        if args.function != function {
            return Err(CallError::Invalid("the arguments were made for another function".to_owned()));
        }
        if !args.is_final {
            return Err(CallError::Invalid("the arguments have not been finalised".to_owned()));
        }
        args.bytes.clone()
    };
    launch_bytes(function, num_blocks, stream, timeout, &bytes)?;
    let mut process = process();
    if !process.launched.contains(&handle) {
        process.launched.push_back(handle);
    }
    if process.launched.len() > LAUNCHED_MAX
        && let Some(oldest) = process.launched.pop_front()
    {
        // Its binary may have been unloaded since, and the arguments with it.
        let _ = process.args.remove(oldest);
    }
    Ok(())
}

/// Launches a function with a copy of `bytes` as its arguments.
///
/// # Errors
/// A handle of nothing, more than one block, a stream of another device, a device that has failed.
pub fn launch_bytes(
    function: u64,
    num_blocks: u32,
    stream: u64,
    timeout: Option<Duration>,
    bytes: &[u8],
) -> Result<(), CallError> {
    let function = process().functions.get(function)?.clone();
    match num_blocks {
        1 => {}
        0 => return Err(CallError::OutOfRange { what: "numBlocks", value: 0, must: "must be at least 1" }),
        _ => return Err(CallError::NotSupported(format!("{num_blocks} blocks of a kernel: only 1 is"))),
    }
    let entry = stream::get(stream)?;
    if entry.index != function.index {
        let (index, other) = (function.index, entry.index);
        return Err(CallError::Invalid(format!("a kernel of device {index} on a stream of device {other}")));
    }
    entry.stream.launch_bytes_with(&function.kernel, bytes, LaunchOptions { timeout, ..LaunchOptions::default() })?;
    Ok(())
}
