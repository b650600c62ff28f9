//! Functions `aclrt*`. `include/acl/acl_rt.h` is generated from this file. Convert, call, map the error; nothing else.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::acl_base::{
    aclError, aclrtArgsHandle, aclrtBinHandle, aclrtBinaryLoadOptions, aclrtEvent, aclrtFuncHandle,
    aclrtLaunchKernelCfg, aclrtMallocConfig, aclrtNotify, aclrtParamHandle, aclrtPlaceHolderInfo, aclrtStream,
};
use super::call::{Out, acl, bytes_arg, not_null, text_arg};
use super::process::current_device;
use super::{
    binary, binary_data, comm, device, event, fill, init, last_error, launch, memory, memory_async, notify, recent,
    stream, support,
};

type aclrtEventRecordedStatus = c_int;
type aclrtLastErrLevel = c_int;
type aclrtMemAttr = c_int;
type aclrtMemMallocPolicy = c_int;
type aclrtMemcpyKind = c_int;

/// A handle as C has it.
fn pointer(handle: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(handle as usize)
}

// SAFETY of all functions below: the caller of a C function must pass pointers as its description says. Each function
// passes them on to `Out`, `text_arg` and `bytes_arg`, which refuse null.

/// Begins the use of the runtime, once in a process. `configPath` names a JSON file whose settings are for hardware and are not
/// used; it may be null. A program that does not call it works as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclInit(config_path: *const c_char) -> aclError {
    acl("aclInit", || {
        // SAFETY: see above.
        let path = if config_path.is_null() { None } else { Some(unsafe { text_arg(config_path, "configPath") }?) };
        init::init(path.map(|path| Path::new(OsStr::from_bytes(path))))
    })
}

/// Ends the use of the runtime: closes every device that a thread has set and not reset, with everything on it.
#[unsafe(no_mangle)]
pub extern "C" fn aclFinalize() -> aclError {
    acl("aclFinalize", init::finalize)
}

/// The last error that a function acl* has answered to the calling thread, and forgets it; 0 if there was none. `flag` is
/// ACL_RT_THREAD_LEVEL.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtGetLastError(flag: aclrtLastErrLevel) -> aclError {
    last_error::take(flag)
}

/// As aclrtGetLastError, without forgetting it.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtPeekAtLastError(flag: aclrtLastErrLevel) -> aclError {
    last_error::peek(flag)
}

/// Number that the driver knows device `logicDevId` by: the same one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetPhyDevIdByLogicDevId(logic_dev_id: i32, phy_dev_id: *mut i32) -> aclError {
    acl("aclrtGetPhyDevIdByLogicDevId", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(phy_dev_id, "phyDevId") }?;
        out.set(device::check_index(logic_dev_id)?);
        Ok(())
    })
}

/// Sets device `deviceId` (from 0) as the calling thread's device, and opens it if it is not open. All threads of the
/// process that set the same number share the device.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtSetDevice(device_id: i32) -> aclError {
    acl("aclrtSetDevice", || device::set(device_id))
}

/// The calling thread no longer uses device `deviceId`. When the last thread that has set it resets it, it is closed, with
/// all its memory, streams, communicators and binaries.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtResetDevice(device_id: i32) -> aclError {
    acl("aclrtResetDevice", || device::reset(device_id))
}

/// Number of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetDeviceCount(count: *mut u32) -> aclError {
    acl("aclrtGetDeviceCount", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(count, "count") }?;
        out.set(device::count()?);
        Ok(())
    })
}

/// Name of the SoC, such as "Ascend950".
#[unsafe(no_mangle)]
pub extern "C" fn aclrtGetSocName() -> *const c_char {
    let name: &'static CStr = support::soc_name();
    name.as_ptr()
}

/// Messages of the failed calls of this thread since its last call of this function, one on each line, oldest first;
/// null if there are none. Valid until the thread calls this function again.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtGetRecentErrMsg() -> *const c_char {
    recent::take()
}

/// Makes a stream on the calling thread's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateStream(stream: *mut aclrtStream) -> aclError {
    acl("aclrtCreateStream", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(stream, "stream") }?;
        out.set(pointer(stream::create()?));
        Ok(())
    })
}

/// As aclrtCreateStream, with a priority from 0 (highest) to 7 and flags ACL_STREAM_*. Priority and the flags FAST_LAUNCH,
/// FAST_SYNC and HUGE make no difference here; the other flags are refused with 200001.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateStreamWithConfig(stream: *mut aclrtStream, priority: u32, flag: u32) -> aclError {
    acl("aclrtCreateStreamWithConfig", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(stream, "stream") }?;
        out.set(pointer(stream::create_with(priority, flag)?));
        Ok(())
    })
}

/// Number of a stream, as messages name it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamGetId(stream: aclrtStream, stream_id: *mut i32) -> aclError {
    acl("aclrtStreamGetId", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(stream_id, "streamId") }?;
        out.set(stream::get(stream.addr() as u64)?.stream.id() as i32);
        Ok(())
    })
}

/// Destroys a stream. Synchronise it first: operations that are left continue, but their errors are not reported.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtDestroyStream(stream: aclrtStream) -> aclError {
    acl("aclrtDestroyStream", || stream::destroy(stream.addr() as u64))
}

/// Waits until everything on the stream is done, and returns the first error on it.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtSynchronizeStream(stream: aclrtStream) -> aclError {
    acl("aclrtSynchronizeStream", || stream::synchronize(stream.addr() as u64))
}

/// As aclrtSynchronizeStream, for at most `timeout` milliseconds; -1 means no limit.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtSynchronizeStreamWithTimeout(stream: aclrtStream, timeout: i32) -> aclError {
    acl("aclrtSynchronizeStreamWithTimeout", || stream::synchronize_for(stream.addr() as u64, timeout))
}

/// Waits for everything on the calling thread's device: all streams, and the host's tasks on threads without a stream
/// of the program. Returns the first error.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtSynchronizeDevice() -> aclError {
    acl("aclrtSynchronizeDevice", || comm::synchronize_device(current_device()?.0))
}

/// Makes a notify on the calling thread's device, not set. `flag` is ACL_NOTIFY_DEFAULT or ACL_NOTIFY_DEVICE_USE_ONLY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateNotify(notify: *mut aclrtNotify, flag: u64) -> aclError {
    acl("aclrtCreateNotify", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(notify, "notify") }?;
        out.set(pointer(notify::create(flag)?));
        Ok(())
    })
}

/// Destroys a notify. Synchronise the streams that use it first: a later operation that uses it fails.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtDestroyNotify(notify: aclrtNotify) -> aclError {
    acl("aclrtDestroyNotify", || notify::destroy(notify.addr() as u64))
}

/// Sets a notify once everything on the stream is done. Does not wait.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtRecordNotify(notify: aclrtNotify, stream: aclrtStream) -> aclError {
    acl("aclrtRecordNotify", || notify::record(notify.addr() as u64, stream.addr() as u64))
}

/// Makes later operations of the stream wait until a notify is set, for at most `timeout` seconds (0 means no limit), and
/// clears it. Does not wait itself.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtWaitAndResetNotify(notify: aclrtNotify, stream: aclrtStream, timeout: u32) -> aclError {
    let wait = || notify::wait_and_reset(notify.addr() as u64, stream.addr() as u64, timeout);
    acl("aclrtWaitAndResetNotify", wait)
}

/// Writes the id of a notify, which kernels use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetNotifyId(notify: aclrtNotify, notify_id: *mut u32) -> aclError {
    acl("aclrtGetNotifyId", || {
        not_null([(notify, "notify"), (notify_id.cast(), "notifyId")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(notify_id, "notifyId") }?;
        out.set(notify::id(notify.addr() as u64)?);
        Ok(())
    })
}

/// Makes an event on the calling thread's device, for waits and times.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateEvent(event: *mut aclrtEvent) -> aclError {
    acl("aclrtCreateEvent", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(event, "event") }?;
        out.set(pointer(event::create(event::DEFAULT_FLAG)?));
        Ok(())
    })
}

/// As aclrtCreateEvent. `flag` is a sum of ACL_EVENT_SYNC, ACL_EVENT_CAPTURE_STREAM_PROGRESS and ACL_EVENT_TIME_LINE; here
/// each event can do all of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateEventWithFlag(event: *mut aclrtEvent, flag: u32) -> aclError {
    acl("aclrtCreateEventWithFlag", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(event, "event") }?;
        out.set(pointer(event::create(flag)?));
        Ok(())
    })
}

/// Destroys an event. Streams that wait for a record of it go on when the record is reached.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtDestroyEvent(event: aclrtEvent) -> aclError {
    acl("aclrtDestroyEvent", || event::destroy(event.addr() as u64))
}

/// Records an event after the operations of the stream. Does not wait. Later waits and queries are for the last record.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtRecordEvent(event: aclrtEvent, stream: aclrtStream) -> aclError {
    acl("aclrtRecordEvent", || event::record(event.addr() as u64, stream.addr() as u64))
}

/// Makes later operations of the stream wait for the last record of an event so far. Does not wait itself. An event that was
/// never recorded is not waited for.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtStreamWaitEvent(stream: aclrtStream, event: aclrtEvent) -> aclError {
    acl("aclrtStreamWaitEvent", || event::wait_on(stream.addr() as u64, event.addr() as u64))
}

/// Writes whether the last record of an event was reached; of an event that was never recorded it was not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtQueryEventStatus(event: aclrtEvent, status: *mut aclrtEventRecordedStatus) -> aclError {
    acl("aclrtQueryEventStatus", || {
        not_null([(event, "event"), (status.cast(), "status")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(status, "status") }?;
        out.set(event::status(event.addr() as u64)?);
        Ok(())
    })
}

/// Waits until the last record of an event is reached, and returns the first error of its stream. An event that was never
/// recorded is not waited for.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtSynchronizeEvent(event: aclrtEvent) -> aclError {
    acl("aclrtSynchronizeEvent", || event::synchronize(event.addr() as u64))
}

/// Writes the milliseconds between the last records of two events, which were both reached: time of this machine, not of a card.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtEventElapsedTime(
    ms: *mut f32,
    start_event: aclrtEvent,
    end_event: aclrtEvent,
) -> aclError {
    acl("aclrtEventElapsedTime", || {
        not_null([(ms.cast(), "ms"), (start_event, "startEvent"), (end_event, "endEvent")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(ms, "ms") }?;
        out.set(event::elapsed_ms(start_event.addr() as u64, end_event.addr() as u64)?);
        Ok(())
    })
}

/// Allocates `size` bytes of device memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMalloc(dev_ptr: *mut *mut c_void, size: usize, policy: aclrtMemMallocPolicy) -> aclError {
    acl("aclrtMalloc", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(dev_ptr, "devPtr") }?;
        out.set(memory::allocate(size, policy)?);
        Ok(())
    })
}

/// As aclrtMalloc, with attributes; `cfg` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMallocWithCfg(
    dev_ptr: *mut *mut c_void,
    size: usize,
    policy: aclrtMemMallocPolicy,
    cfg: *mut aclrtMallocConfig,
) -> aclError {
    acl("aclrtMallocWithCfg", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(dev_ptr, "devPtr") }?;
        // SAFETY: see above.
        unsafe { memory::check_config(cfg) }?;
        out.set(memory::allocate(size, policy)?);
        Ok(())
    })
}

/// Frees device memory.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtFree(dev_ptr: *mut c_void) -> aclError {
    acl("aclrtFree", || memory::free(dev_ptr))
}

/// Sets `count` bytes of device or host memory to the low byte of `value`, and waits for no stream. Device memory is checked: the
/// range must lie inside one allocation. `maxCount` is what the memory has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemset(dev_ptr: *mut c_void, max_count: usize, value: i32, count: usize) -> aclError {
    // SAFETY: see above.
    acl("aclrtMemset", || unsafe { fill::fill(dev_ptr, max_count, value, count) })
}

/// As aclrtMemset, by the stream: the memory is filled when the stream comes to it. Host memory must stay valid until then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemsetAsync(
    dev_ptr: *mut c_void,
    max_count: usize,
    value: i32,
    count: usize,
    stream: aclrtStream,
) -> aclError {
    let stream = stream.addr() as u64;
    // SAFETY: see above.
    acl("aclrtMemsetAsync", || unsafe { memory_async::set(dev_ptr, max_count, value, count, stream) })
}

/// Bytes of memory of kind `attr` that the calling thread's device has, and how many of them are free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetMemInfo(attr: aclrtMemAttr, free: *mut usize, total: *mut usize) -> aclError {
    acl("aclrtGetMemInfo", || {
        // SAFETY: see above.
        let (out_free, out_total) = unsafe { (Out::new(free, "free")?, Out::new(total, "total")?) };
        let (free, total) = fill::info(attr)?;
        out_free.set(free);
        out_total.set(total);
        Ok(())
    })
}

/// Allocates `size` bytes of host memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMallocHost(host_ptr: *mut *mut c_void, size: usize) -> aclError {
    acl("aclrtMallocHost", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(host_ptr, "hostPtr") }?;
        out.set(memory::allocate_host(size)?);
        Ok(())
    })
}

/// Frees host memory that aclrtMallocHost has given.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtFreeHost(host_ptr: *mut c_void) -> aclError {
    acl("aclrtFreeHost", || memory::free_host(host_ptr))
}

/// Copies `count` bytes between any two of host and devices, and waits for no stream. Device memory is checked: a range
/// must lie inside one allocation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpy(
    dst: *mut c_void,
    dest_max: usize,
    src: *const c_void,
    count: usize,
    kind: aclrtMemcpyKind,
) -> aclError {
    // SAFETY: see above.
    acl("aclrtMemcpy", || unsafe { memory::copy(dst, dest_max, src, count, kind) })
}

/// As aclrtMemcpy, by the stream: the bytes are read and written when the stream comes to it. Host memory must stay valid and
/// unchanged until then. Between two devices: 200001.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpyAsync(
    dst: *mut c_void,
    dest_max: usize,
    src: *const c_void,
    count: usize,
    kind: aclrtMemcpyKind,
    stream: aclrtStream,
) -> aclError {
    let stream = stream.addr() as u64;
    // SAFETY: see above.
    acl("aclrtMemcpyAsync", || unsafe { memory_async::copy(dst, dest_max, src, count, kind, stream) })
}

/// Loads the kernels that the operator description `binPath` (JSON) names, for the calling thread's device. `options` may
/// be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtBinaryLoadFromFile(
    bin_path: *const c_char,
    options: *mut aclrtBinaryLoadOptions,
    bin_handle: *mut aclrtBinHandle,
) -> aclError {
    acl("aclrtBinaryLoadFromFile", || {
        // SAFETY: see above.
        let (path, out) = unsafe { (text_arg(bin_path, "binPath")?, Out::new(bin_handle, "binHandle")?) };
        // SAFETY: see above.
        let mode = unsafe { binary::mode(options) }?;
        out.set(pointer(binary::load(Path::new(OsStr::from_bytes(path)), mode)?));
        Ok(())
    })
}

/// Loads a library of kernels from `length` bytes at `data`, for the calling thread's device. `options` names
/// ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE with the value 2. aclrtRegisterCpuFunc gives its kernels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtBinaryLoadFromData(
    data: *const c_void,
    length: usize,
    options: *const aclrtBinaryLoadOptions,
    bin_handle: *mut aclrtBinHandle,
) -> aclError {
    acl("aclrtBinaryLoadFromData", || {
        not_null([(data, "data"), (bin_handle.cast(), "binHandle")])?;
        // SAFETY: see above.
        let (bytes, out) = unsafe { (bytes_arg(data, length as u64, "data")?, Out::new(bin_handle, "binHandle")?) };
        // SAFETY: see above.
        binary_data::check_mode(unsafe { binary::mode(options) }?)?;
        out.set(pointer(binary_data::load(bytes)?));
        Ok(())
    })
}

/// The kernel of a binary of aclrtBinaryLoadFromData whose entry point is the function `funcName`. aclrtBinaryGetFunction finds
/// it as `kernelName` afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtRegisterCpuFunc(
    handle: aclrtBinHandle,
    func_name: *const c_char,
    kernel_name: *const c_char,
    func_handle: *mut aclrtFuncHandle,
) -> aclError {
    acl("aclrtRegisterCpuFunc", || {
        not_null([
            (handle, "handle"),
            (func_name.cast(), "funcName"),
            (kernel_name.cast(), "kernelName"),
            (func_handle.cast(), "funcHandle"),
        ])?;
        // SAFETY: see above.
        let (function, name) = unsafe { (text_arg(func_name, "funcName")?, text_arg(kernel_name, "kernelName")?) };
        // SAFETY: see above.
        let out = unsafe { Out::new(func_handle, "funcHandle") }?;
        out.set(pointer(binary_data::register(handle.addr() as u64, function, name)?));
        Ok(())
    })
}

/// The kernel that the description lists under `kernelName`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtBinaryGetFunction(
    bin_handle: aclrtBinHandle,
    kernel_name: *const c_char,
    func_handle: *mut aclrtFuncHandle,
) -> aclError {
    acl("aclrtBinaryGetFunction", || {
        not_null([(bin_handle, "binHandle"), (kernel_name.cast(), "kernelName"), (func_handle.cast(), "funcHandle")])?;
        // SAFETY: see above.
        let (name, out) = unsafe { (text_arg(kernel_name, "kernelName")?, Out::new(func_handle, "funcHandle")?) };
        out.set(pointer(binary::function(bin_handle.addr() as u64, name)?));
        Ok(())
    })
}

/// Frees a binary and its functions. Kernels that have been launched still run.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtBinaryUnLoad(bin_handle: aclrtBinHandle) -> aclError {
    acl("aclrtBinaryUnLoad", || {
        not_null([(bin_handle, "binHandle")])?;
        binary::unload(bin_handle.addr() as u64)
    })
}

/// Creates the arguments of a launch, for this function. They are freed 1024 launches after their own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtKernelArgsInit(
    func_handle: aclrtFuncHandle,
    args_handle: *mut aclrtArgsHandle,
) -> aclError {
    acl("aclrtKernelArgsInit", || {
        not_null([(func_handle, "funcHandle"), (args_handle.cast(), "argsHandle")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(args_handle, "argsHandle") }?;
        out.set(pointer(launch::init_args(func_handle.addr() as u64)?));
        Ok(())
    })
}

/// Appends a copy of `paramSize` bytes at the next multiple of 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtKernelArgsAppend(
    args_handle: aclrtArgsHandle,
    param: *mut c_void,
    param_size: usize,
    param_handle: *mut aclrtParamHandle,
) -> aclError {
    acl("aclrtKernelArgsAppend", || {
        not_null([(args_handle, "argsHandle"), (param, "param"), (param_handle.cast(), "paramHandle")])?;
        // SAFETY: see above.
        let (out, bytes) =
            unsafe { (Out::new(param_handle, "paramHandle")?, bytes_arg(param, param_size as u64, "param")?) };
        out.set(pointer(launch::append(args_handle.addr() as u64, bytes)?));
        Ok(())
    })
}

/// Completes the arguments: nothing more can be appended, and they can be launched.
#[unsafe(no_mangle)]
pub extern "C" fn aclrtKernelArgsFinalize(args_handle: aclrtArgsHandle) -> aclError {
    acl("aclrtKernelArgsFinalize", || {
        not_null([(args_handle, "argsHandle")])?;
        launch::finalize(args_handle.addr() as u64)
    })
}

/// Launches a kernel on a stream. `numBlocks` is 1, `reserve` null; `cfg` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtLaunchKernelWithConfig(
    func_handle: aclrtFuncHandle,
    num_blocks: u32,
    stream: aclrtStream,
    cfg: *mut aclrtLaunchKernelCfg,
    args_handle: aclrtArgsHandle,
    reserve: *mut c_void,
) -> aclError {
    acl("aclrtLaunchKernelWithConfig", || {
        not_null([(func_handle, "funcHandle"), (args_handle, "argsHandle")])?;
        // SAFETY: see above.
        let timeout = unsafe { launch::timeout(cfg) }?;
        launch::check_reserve(reserve)?;
        let (function, stream) = (func_handle.addr() as u64, stream.addr() as u64);
        launch::launch(function, num_blocks, stream, timeout, args_handle.addr() as u64)
    })
}

/// Launches a kernel on a stream with a copy of `argsSize` bytes as its arguments. `placeHolderArray` is null and
/// `placeHolderNum` 0; `cfg` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtLaunchKernelWithHostArgs(
    func_handle: aclrtFuncHandle,
    num_blocks: u32,
    stream: aclrtStream,
    cfg: *mut aclrtLaunchKernelCfg,
    host_args: *mut c_void,
    args_size: usize,
    place_holder_array: *mut aclrtPlaceHolderInfo,
    place_holder_num: usize,
) -> aclError {
    acl("aclrtLaunchKernelWithHostArgs", || {
        not_null([(func_handle, "funcHandle")])?;
        launch::check_place_holders(!place_holder_array.is_null(), place_holder_num)?;
        // SAFETY: see above.
        let (timeout, bytes) = unsafe { (launch::timeout(cfg)?, bytes_arg(host_args, args_size as u64, "hostArgs")?) };
        let (function, stream) = (func_handle.addr() as u64, stream.addr() as u64);
        launch::launch_bytes(function, num_blocks, stream, timeout, bytes)
    })
}
