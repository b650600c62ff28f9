//! Streams: handles, the default one, waiting.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use hcomm_aicpu::spec::thread::ThreadHandle;

use super::error::CallError;
use super::objects::{StreamEntry, ThreadEntry};
use super::process::{current_device, process};
use host_stub::Stream;

/// `aclrtSynchronizeStreamWithTimeout`: no limit.
const FOREVER: i32 = -1;

/// Handle of a new stream on the calling thread's device.
///
/// # Errors
/// No device.
pub fn create() -> Result<u64, CallError> {
    let (index, device) = current_device()?;
    let stream = Arc::new(Stream::new(&device));
    Ok(process().streams.insert(StreamEntry { index, stream }))
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
/// Unknown stream; null, since the default stream exists as long as its device.
pub fn destroy(handle: u64) -> Result<(), CallError> {
    let entry = process().streams.remove(handle)?;
    release_threads(handle);
    drop(entry);
    Ok(())
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
        Err(_) if timeout_ms == FOREVER => Ok(entry.stream.synchronize()?),
        Err(_) => Err(CallError::OutOfRange {
            what: "timeout",
            value: timeout_ms.into(),
            must: "must be -1 (no limit) or a number of milliseconds",
        }),
    }
}
