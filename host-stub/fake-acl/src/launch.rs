//! Descriptions and launches.
#![allow(non_snake_case, reason = "names of the runtime's functions")]

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::slice;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host_stub::LaunchOptions;

use crate::codes;
use crate::loader::read_description;
use crate::world::{AnyStream, Object, code, code_of, current, lock, log};

type Ptr = *mut c_void;

/// The option of a load, and its value for a library that is on the device.
const CPU_KERNEL_MODE: u32 = 3;
const ON_DEVICE: i32 = 0;
/// The attribute of a launch with its limit in seconds.
const TIMEOUT: u32 = 7;
/// The AI CPU's limit of a kernel without that attribute, in seconds.
const DEFAULT_TIMEOUT_S: u64 = 1091;

/// Kind or id, and the first word of a union of 16 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    kind: u32,
    value: i32,
    rest: [u32; 3],
}

/// A list of options or attributes.
#[repr(C)]
struct Entries {
    first: *const Entry,
    count: usize,
}

/// # Errors
/// No list, or an empty one.
///
/// # Safety
/// `list` is null or a list.
unsafe fn entries(list: *const Entries) -> Result<Vec<Entry>, i32> {
    if list.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: not null, so the caller owes a list.
    let Entries { first, count } = unsafe { list.read_unaligned() };
    if first.is_null() && count != 0 {
        return Err(codes::INVALID_PARAM);
    }
    // SAFETY: the list has so many entries.
    Ok((0..count).map(|index| unsafe { first.add(index).read_unaligned() }).collect())
}

/// # Safety
/// As in the header of the runtime.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtBinaryLoadFromFile(path: *const c_char, options: *const c_void, binary: *mut Ptr) -> i32 {
    if path.is_null() || binary.is_null() {
        return codes::INVALID_PARAM;
    }
    // SAFETY: passed on.
    let Ok(options) = (unsafe { entries(options.cast()) }) else { return codes::INVALID_PARAM };
    if options.iter().any(|option| (option.kind, option.value) != (CPU_KERNEL_MODE, ON_DEVICE)) {
        return codes::API_NOT_SUPPORT;
    }
    // SAFETY: not null, so the caller owes a text.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
    code(current().and_then(|open| {
        if !path.is_absolute() {
            return Err(codes::INVALID_FILE);
        }
        let text = std::fs::read(path).map_err(|_| codes::INVALID_FILE)?;
        let kernels = read_description(&text)?;
        // SAFETY: not null, so the caller owes room.
        unsafe { binary.write(open.add(Object::Binary(Arc::new(kernels)))) };
        Ok(())
    }))
}

/// # Safety
/// As in the header of the runtime.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtBinaryGetFunction(binary: Ptr, name: *const c_char, function: *mut Ptr) -> i32 {
    if name.is_null() || function.is_null() {
        return codes::INVALID_PARAM;
    }
    // SAFETY: not null, so the caller owes a text.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    code(current().and_then(|open| {
        let Object::Binary(kernels) = open.get(binary)? else { return Err(codes::INVALID_HANDLE) };
        let found = kernels.get(&*name).ok_or(codes::KERNEL_NOT_FOUND)?;
        // SAFETY: not null, so the caller owes room.
        unsafe { function.write(open.add(Object::Function(Arc::new(found.clone())))) };
        Ok(())
    }))
}

/// # Safety
/// `args` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtKernelArgsInit(function: Ptr, args: *mut Ptr) -> i32 {
    if args.is_null() {
        return codes::INVALID_PARAM;
    }
    code(current().and_then(|open| {
        let Object::Function(_) = open.get(function)? else { return Err(codes::INVALID_HANDLE) };
        // SAFETY: not null, so the caller owes room.
        unsafe { args.write(open.add(Object::Args(Arc::new(Mutex::new((Vec::new(), false)))))) };
        Ok(())
    }))
}

/// # Safety
/// `bytes` has `len` bytes; `param` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtKernelArgsAppend(args: Ptr, bytes: *const c_void, len: usize, param: *mut Ptr) -> i32 {
    if bytes.is_null() || len == 0 || param.is_null() {
        return codes::INVALID_PARAM;
    }
    code(current().and_then(|open| {
        let Object::Args(list) = open.get(args)? else { return Err(codes::INVALID_HANDLE) };
        let mut list = lock(&list);
        if list.1 {
            return Err(codes::INVALID_PARAM);
        }
        // SAFETY: the caller owes so many bytes.
        list.0.extend_from_slice(unsafe { slice::from_raw_parts(bytes.cast(), len) });
        // SAFETY: not null, so the caller owes room.
        unsafe { param.write(args) };
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtKernelArgsFinalize(args: Ptr) -> i32 {
    code(current().and_then(|open| {
        let Object::Args(list) = open.get(args)? else { return Err(codes::INVALID_HANDLE) };
        lock(&list).1 = true;
        Ok(())
    }))
}

/// # Safety
/// As in the header of the runtime.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtLaunchKernelWithConfig(
    function: Ptr,
    blocks: u32,
    stream: Ptr,
    config: *const c_void,
    args: Ptr,
    reserved: Ptr,
) -> i32 {
    // SAFETY: passed on.
    let Ok(attributes) = (unsafe { entries(config.cast()) }) else { return codes::INVALID_PARAM };
    if blocks != 1 || !reserved.is_null() || attributes.iter().any(|attribute| attribute.kind != TIMEOUT) {
        return codes::INVALID_PARAM;
    }
    // Of 16 bits; 0: without limit.
    let seconds = attributes.last().map_or(DEFAULT_TIMEOUT_S, |attribute| u64::from(attribute.value as u16));
    let timeout = if seconds == 0 { Duration::MAX } else { Duration::from_secs(seconds) };
    code(current().and_then(|open| {
        let Object::Function(function) = open.get(function)? else { return Err(codes::INVALID_HANDLE) };
        let stream = open.stream(stream)?;
        let AnyStream::Host(host, refused) = &*stream else { return Err(codes::INVALID_PARAM) };
        let Object::Args(list) = open.get(args)? else { return Err(codes::INVALID_HANDLE) };
        let (bytes, is_complete) = std::mem::take(&mut *lock(&list));
        if !is_complete {
            return Err(codes::INVALID_PARAM);
        }
        // Of one launch.
        open.remove(args)?;
        match open.loader.kernel(&open.device, &function) {
            Ok(kernel) => {
                let options =
                    LaunchOptions { timeout: Some(timeout), expects_refusals: true, ..LaunchOptions::default() };
                host.launch_bytes_with(&kernel, &bytes, options).map(drop).map_err(|error| code_of(&error))
            }
            // The host learns of it when it synchronises.
            Err(code) => {
                log(format_args!("{} of {}: the loader's code {code}", function.symbol, function.library));
                lock(refused).get_or_insert(codes::AICPU_EXCEPTION);
                Ok(())
            }
        }
    }))
}
