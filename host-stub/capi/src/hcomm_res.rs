//! Resources without a communicator. `include/hcomm/hcomm_res.h` is generated from this file.

use std::ffi::c_int;

use super::call::{hccl, not_null};
use super::hcomm_res_defs::ThreadHandle;
use super::thread_pool;

type HcommResult = i32;
type CommEngine = c_int;

// SAFETY of all functions below: as in `acl_rt`.

/// Acquires `threadNum` threads (at most 1000) on the calling thread's device: all of them, or none. `notifyNumPerThread` has
/// the number of notifies of each, at most 64.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcommThreadAlloc(
    engine: CommEngine,
    thread_num: u32,
    notify_num_per_thread: *const u32,
    threads: *mut ThreadHandle,
) -> HcommResult {
    hccl("HcommThreadAlloc", || {
        not_null([(notify_num_per_thread.cast(), "notifyNumPerThread"), (threads.cast_const().cast(), "threads")])?;
        thread_pool::check_count(thread_num)?;
        // SAFETY: not null, and the caller owes `threadNum` numbers.
        let count = |index| unsafe { notify_num_per_thread.add(index).read_unaligned() };
        let counts: Vec<u32> = (0..thread_num as usize).map(count).collect();
        for (index, thread) in thread_pool::acquire(engine, &counts)?.iter().enumerate() {
            // SAFETY: not null, and the caller owes room for `threadNum` handles.
            unsafe { threads.add(index).write_unaligned(thread.0) };
        }
        Ok(())
    })
}

/// Frees `threadNum` threads of HcommThreadAlloc: all of them, or none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcommThreadFree(threads: *const ThreadHandle, thread_num: u32) -> HcommResult {
    hccl("HcommThreadFree", || {
        not_null([(threads.cast(), "threads")])?;
        thread_pool::check_count(thread_num)?;
        // SAFETY: not null, and the caller owes `threadNum` handles.
        let handle = |index| unsafe { threads.add(index).read_unaligned() };
        let handles: Vec<ThreadHandle> = (0..thread_num as usize).map(handle).collect();
        thread_pool::release(&handles)
    })
}
