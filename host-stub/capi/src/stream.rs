//! Streams: handles, the default one, waiting.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use hcomm_aicpu::spec::thread::ThreadHandle;

use super::acl_base::{
    ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY, ACL_STREAM_FAST_LAUNCH, ACL_STREAM_FAST_SYNC, ACL_STREAM_HUGE,
    ACL_STREAM_PERSISTENT,
};
use super::error::CallError;
use super::objects::{StreamEntry, ThreadEntry};
use super::process::{current_device, process};
use host_stub::Stream;

/// `aclrtSynchronizeStreamWithTimeout`: no limit.
const NO_LIMIT: i32 = -1;
/// Lowest priority of a stream. It makes no difference here.
const PRIORITY_MAX: u32 = 7;
/// Flags of a stream that make no difference here.
const HINTS: u32 = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_HUGE;
/// Flags of streams that the host does not drive.
const DEVICE_FLAGS: u32 = ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;

/// Handle of a new stream on the calling thread's device.
///
/// # Errors
/// No device.
pub fn create() -> Result<u64, CallError> {
    let (index, device) = current_device()?;
    let stream = Arc::new(Stream::new(&device));
    Ok(process().streams.insert(StreamEntry { index, stream }))
}

/// Handle of a new stream on the calling thread's device, with a priority and flags.
///
/// # Errors
/// Another priority than 0 to 7, flags that there are not, or that are not simulated; no device.
pub fn create_with(priority: u32, flag: u32) -> Result<u64, CallError> {
    if priority > PRIORITY_MAX {
        let must = "must be from 0 (highest) to 7";
        return Err(CallError::OutOfRange { what: "priority", value: priority.into(), must });
    }
    if flag & !(HINTS | DEVICE_FLAGS) != 0 {
        return Err(CallError::OutOfRange { what: "flag", value: flag.into(), must: "must be a sum of ACL_STREAM_*" });
    }
    if flag & DEVICE_FLAGS != 0 {
        return Err(CallError::NotSupported(format!(
            "flag {flag:#x}: streams that the host does not drive are not simulated; kernels have the queues of HcclThreadAcquire"
        )));
    }
    create()
}

/// The stream of a handle; null means the default stream of the calling thread's device.
///
/// # Errors
/// Unknown stream; null without a device.
pub fn get(handle: u64) -> Result<StreamEntry, CallError> {
    if handle != 0 {
        return process().streams.get(handle).cloned();
    }
    let (index, device) = current_device()?;
    let made = StreamEntry { index, stream: Arc::new(Stream::new(&device)) };
    let mut process = process();
    let open = process.devices.get(&index).ok_or(CallError::NoDevice)?;
    if let Some(handle) = open.default_stream {
        return process.streams.get(handle).cloned();
    }
    let handle = process.streams.insert(made.clone());
    process.devices.get_mut(&index).ok_or(CallError::NoDevice)?.default_stream = Some(handle);
    Ok(made)
}

/// Destroys a stream. Operations that are left continue; threads that belong to it are freed.
///
/// # Errors
/// Unknown stream; null, since the default stream exists as long as its device. What the checks have found on the stream and no
/// call has returned; the stream is destroyed all the same.
pub fn destroy(handle: u64) -> Result<(), CallError> {
    let entry = process().streams.remove(handle)?;
    release_threads(handle);
    Ok(entry.stream.check_findings()?)
}

/// Frees the threads of a stream.
fn release_threads(stream: u64) {
    let mut process = process();
    let is_tied = |(_, entry): &(&u64, &ThreadEntry)| entry.stream == Some(stream);
    let tied: Vec<u64> = process.threads.iter().filter(is_tied).map(|(thread, _)| *thread).collect();
    let mut released = Vec::new();
    for thread in tied {
        let known = process.threads.remove(&thread);
        let comm = known.and_then(|known| process.comms.get(known.comm).cloned().ok());
        released.extend(comm.map(|comm| (comm, ThreadHandle(thread))));
    }
    drop(process);
    for (entry, thread) in released {
        entry.comm.release_threads(&[thread]);
    }
}

/// Waits for a stream.
///
/// # Errors
/// Unknown stream, or what went wrong on it.
pub fn synchronize(handle: u64) -> Result<(), CallError> {
    Ok(get(handle)?.stream.synchronize()?)
}

/// Waits for a stream for at most `timeout_ms` milliseconds; -1 = no limit.
///
/// # Errors
/// As [`synchronize`]; not done in time; another negative number.
pub fn synchronize_for(handle: u64, timeout_ms: i32) -> Result<(), CallError> {
    let entry = get(handle)?;
    match u64::try_from(timeout_ms) {
        Ok(ms) => Ok(entry.stream.synchronize_for(Duration::from_millis(ms))?),
        Err(_) if timeout_ms == NO_LIMIT => Ok(entry.stream.synchronize()?),
        Err(_) => Err(CallError::OutOfRange {
            what: "timeout",
            value: timeout_ms.into(),
            must: "must be -1 (no limit) or a number of milliseconds",
        }),
    }
}
