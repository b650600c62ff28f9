//! C entry points. Exported with feature `c-abi`, callable from Rust without it.

use core::ffi::c_void;

use crate::copy::check_addresses;
use crate::error::Error;
use crate::fmt::warn;
use crate::spec::DeviceAddr;
use crate::spec::code::HCCL_SUCCESS;
use crate::spec::thread::ThreadHandle;
use crate::thread::Thread;

/// Queues a copy of `len` bytes of device memory from `src` to `dst` on the queue of `thread` and returns; the copy itself
/// runs later. Source: interface document, `HcommLocalCopyOnThread`.
///
/// The pointers are device addresses and never dereferenced here.
///
/// # Errors
/// 0, or in this order: 2 `dst` or `src` null (also for `len` 0), 2 `thread` 0, 6 a handle that names no live AICPU_TS
/// thread, 1 an address + `len` past 2^64, 22 suspended, 9 queue full for too long, 16 doorbell refused; 7 outside a kernel.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommLocalCopyOnThread(thread: u64, dst: *mut c_void, src: *const c_void, len: u64) -> i32 {
    let (dst, src) = (DeviceAddr::from(dst), DeviceAddr::from(src));
    let result = check_addresses(dst, src)
        .and_then(|()| Thread::from_handle(ThreadHandle(thread)))
        .and_then(|thread| thread.local_copy(dst, src, len));
    answer("HcommLocalCopyOnThread", result)
}

#[inline]
fn answer(function: &'static str, result: Result<(), Error>) -> i32 {
    match result {
        Ok(()) => HCCL_SUCCESS,
        Err(error) => refuse(function, &error),
    }
}

#[cold]
#[inline(never)]
fn refuse(function: &'static str, error: &Error) -> i32 {
    warn!("{}: {}", function, error);
    error.code()
}
