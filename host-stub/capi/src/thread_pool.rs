//! Threads without a communicator of the program: they belong to one of this library, one for each device.
#![forbid(unsafe_code)]

use hcomm_aicpu::spec::thread::ThreadHandle;

use super::comm;
use super::error::CallError;
use super::process::{current_device, process};

/// Most threads of one call.
const THREADS_MAX: u32 = 1000;
/// Most notifies of a thread.
const NOTIFIES_MAX: u32 = 64;

/// # Errors
/// A number of threads that one call can't take.
pub fn check_count(count: u32) -> Result<(), CallError> {
    match count {
        1..=THREADS_MAX => Ok(()),
        _ => Err(CallError::OutOfRange { what: "threadNum", value: count.into(), must: "must be from 1 to 1000" }),
    }
}

/// Acquires a thread with each of these numbers of notifies on the calling thread's device: all of them, or none.
///
/// # Errors
/// No device, an engine without threads, more than 64 notifies, no more threads or notifies.
pub fn acquire(engine: i32, notifies: &[u32]) -> Result<Vec<ThreadHandle>, CallError> {
    if let Some(&value) = notifies.iter().find(|count| **count > NOTIFIES_MAX) {
        let must = "must be at most 64 for each thread";
        return Err(CallError::OutOfRange { what: "notifyNumPerThread", value: value.into(), must });
    }
    let (index, _) = current_device()?;
    let pool = pool(index)?;
    let mut threads = Vec::new();
    for count in notifies {
        match comm::acquire(pool, engine, 1, *count) {
            Ok(thread) => threads.extend(thread),
            Err(error) => {
                comm::release(&threads)?;
                return Err(error);
            }
        }
    }
    Ok(threads)
}

/// Releases threads: all of them, or none.
///
/// # Errors
/// A handle that [`acquire`] has not given, or that has been released.
pub fn release(threads: &[u64]) -> Result<(), CallError> {
    for handle in threads {
        let known = comm::thread(*handle)?;
        let pool = process().devices.get(&known.index).and_then(|open| open.thread_pool);
        if pool != Some(known.comm) {
            let text =
                format!("thread {handle:#x} belongs to a communicator, which frees it: it is not of HcommThreadAlloc");
            return Err(CallError::Invalid(text));
        }
    }
    let handles: Vec<_> = threads.iter().map(|handle| ThreadHandle(*handle)).collect();
    comm::release(&handles)
}

/// The communicator of this library on a device.
fn pool(index: i32) -> Result<u64, CallError> {
    let known = process().devices.get(&index).ok_or(CallError::NoDevice)?.thread_pool;
    if let Some(pool) = known {
        return Ok(pool);
    }
    let made = comm::for_threads(index)?;
    let mut process = process();
    let open = process.devices.get_mut(&index).ok_or(CallError::NoDevice)?;
    let pool = *open.thread_pool.get_or_insert(made);
    drop(process);
    if pool != made {
        // Another thread was faster.
        comm::destroy(made)?;
    }
    Ok(pool)
}
