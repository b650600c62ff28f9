//! C entry points. Exported with feature `c-abi`, callable from Rust without it.

mod channel;

use core::ffi::{CStr, c_char, c_void};

pub use channel::*;

use crate::error::Error;
use crate::ops::{self, aclrt_notify, batch, comm, copy, notify, reduce, timeout};
use crate::port::Platform;
use crate::port::hooks::Hooks;
use crate::spec::code::HCCL_SUCCESS;
use crate::spec::comm::COMM_NAME_LEN;
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::thread::ThreadHandle;
use crate::sq::Fast;
use crate::thread::Thread;

/// C functions that queue a task on a thread. The fast path is inlined into each; what is left is out of line and takes plain
/// arguments, so that the fast path needs no stack for them.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($thread:ident, $($arg:ident: $type:ty),*) => $operation:expr;)*) => {$(
        $(#[$doc])*
        #[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
        #[allow(non_snake_case)]
        pub extern "C" fn $name($thread: u64, $($arg: $type),*) -> i32 {
            #[cold]
            #[inline(never)]
            fn finish($thread: u64, $($arg: $type),*, fast: Fast) -> i32 {
                answer(stringify!($name), ops::finish(ThreadHandle($thread), $operation, fast))
            }
            match ops::fast(ThreadHandle($thread), $operation) {
                Fast::Queued => HCCL_SUCCESS,
                // By itself: a constant costs the path before it nothing.
                Fast::NotTaken => finish($thread, $($arg),*, Fast::NotTaken),
                fast => finish($thread, $($arg),*, fast),
            }
        }
    )*};
}

calls! {
    /// Queues a copy of `len` bytes of device memory from `src` to `dst` on the queue of `thread` and returns; the copy itself
    /// runs later. Source: interface document, `HcommLocalCopyOnThread`.
    ///
    /// The pointers are device addresses and never dereferenced here.
    ///
    /// # Errors
    /// 0, or in this order: 2 `dst` or `src` null (also for `len` 0), 2 `thread` 0, 6 a handle that names no live AICPU_TS
    /// thread, 1 an address + `len` past 2^64, 22 suspended, 9 queue full for too long, 16 doorbell refused; 7 outside a kernel.
    HcommLocalCopyOnThread(thread, dst: *mut c_void, src: *const c_void, len: u64)
        => copy::Copy { dst: dst.into(), src: src.into(), len };

    /// Queues `dst[i] = op(dst[i], src[i])` for `count` elements of `data_type` on the queue of `thread`. Source: device-side
    /// interface, `HcommLocalReduceOnThread`.
    ///
    /// `data_type` is a `HcommDataType`, `reduce_op` a `HcommReduceOp`. Addresses are multiples of the element size.
    ///
    /// # Errors
    /// 0, or in this order: 2 `dst`, `src` or `thread` null, 6 as [`HcommLocalCopyOnThread`], 5 type or operator that the engine
    /// does not compute, 1 `count` times size or an address + length past 2^64, or an address between elements; 22, 9, 16.
    HcommLocalReduceOnThread(
        thread,
        dst: *mut c_void,
        src: *const c_void,
        count: u64,
        data_type: i32,
        reduce_op: i32
    ) => reduce::Reduce {
        dst: dst.into(),
        src: src.into(),
        count,
        data_type: DataType(data_type),
        op: ReduceOp(reduce_op),
    };

    /// Queues a task on `thread` that sets notify `dst_notify_idx` of `dst_thread`. Source: device-side interface,
    /// `HcommThreadNotifyRecordOnThread`.
    ///
    /// # Errors
    /// 0, or in this order: 2 a thread 0, 6 a handle that names no live thread (`thread`: of engine AICPU_TS), 2 an index that
    /// `dst_thread` does not have; 22, 9, 16.
    HcommThreadNotifyRecordOnThread(thread, dst_thread: u64, dst_notify_idx: u32)
        => notify::Record { to: ThreadHandle(dst_thread), index: dst_notify_idx };

    /// Queues a task on `thread` that waits for its notify `notify_idx` for up to `timeout` seconds (0 = without limit). Source:
    /// device-side interface, `HcommThreadNotifyWaitOnThread`.
    ///
    /// # Errors
    /// 0, or in this order: 2 `thread` 0, 6 as [`HcommLocalCopyOnThread`], 2 an index that the thread does not have; 22, 9, 16.
    HcommThreadNotifyWaitOnThread(thread, notify_idx: u32, timeout: u32)
        => notify::Wait { index: notify_idx, timeout_s: timeout };
}

/// [`HcommThreadNotifyWaitOnThread`] with the limit that [`HcommSetNotifyWaitTimeOut`] has set.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommThreadNotifyWaitOnThreadWithDefaultTimeout(thread: u64, notify_idx: u32) -> i32 {
    let result = Thread::from_handle(ThreadHandle(thread)).and_then(|thread| thread.notify_wait_default(notify_idx));
    answer("HcommThreadNotifyWaitOnThreadWithDefaultTimeout", result)
}

/// Queues a task on `thread` that sets the notify with the id `dst_notify_id`, as `aclrtGetNotifyId` gives it. Source:
/// device-side interface, `HcommAclrtNotifyRecordOnThread`.
///
/// # Errors
/// 0, or in this order: 2 `thread` 0, 6 as [`HcommLocalCopyOnThread`], 5 on an Ascend950, 1 an id that the descriptor can't
/// hold; 22, 9, 16. An id that is not allocated shows when the task runs.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommAclrtNotifyRecordOnThread(thread: u64, dst_notify_id: u64) -> i32 {
    let result = ops::slow(ThreadHandle(thread), aclrt_notify::Record { id: dst_notify_id });
    answer("HcommAclrtNotifyRecordOnThread", result)
}

/// Queues a task on `thread` that waits for the notify with the id `notify_id` for up to `timeout` seconds (0 = without limit).
/// Source: device-side interface, `HcommAclrtNotifyWaitOnThread`.
///
/// # Errors
/// As [`HcommAclrtNotifyRecordOnThread`].
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommAclrtNotifyWaitOnThread(thread: u64, notify_id: u64, timeout: u32) -> i32 {
    let wait = aclrt_notify::Wait { id: notify_id, timeout_s: timeout };
    answer("HcommAclrtNotifyWaitOnThread", ops::slow(ThreadHandle(thread), wait))
}

/// Sets the limit in seconds of waits without one of their own, until the kernel ends; 0 = without limit, a fraction counts as a
/// whole second. Source: device-side interface, `HcommSetNotifyWaitTimeOut`.
///
/// # Errors
/// 0, or 1 for a number that is negative, not a number, or 2^32 and more.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommSetNotifyWaitTimeOut(time_out: f32) -> i32 {
    answer("HcommSetNotifyWaitTimeOut", timeout::set_notify_wait(time_out))
}

/// Sets how long in seconds a call waits for room in a full queue, until the kernel ends; as [`HcommSetNotifyWaitTimeOut`].
/// Source: device-side interface, `HcommThreadResAcquireTimeOut`.
///
/// # Errors
/// As [`HcommSetNotifyWaitTimeOut`].
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommThreadResAcquireTimeOut(time_out: f32) -> i32 {
    answer("HcommThreadResAcquireTimeOut", timeout::set_sq_full(time_out))
}

/// Starts a batch: calls stage their tasks until [`HcommBatchModeEnd`]. Within a batch it changes nothing. Source:
/// device-side interface, `HcommBatchModeStart`.
///
/// `batch_tag` is not looked at: batches are not cached under their tag.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommBatchModeStart(batch_tag: *const c_char) -> i32 {
    let _ = batch_tag;
    answer("HcommBatchModeStart", batch::start())
}

/// Ends the batch and rings each queue that it used; without a batch, nothing. Source: device-side interface,
/// `HcommBatchModeEnd`.
///
/// # Errors
/// 0, or of the first queue that failed: 16 doorbell refused, 22 suspended or reset, 6 thread freed. Its tasks are dropped.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommBatchModeEnd(batch_tag: *const c_char) -> i32 {
    let _ = batch_tag;
    answer("HcommBatchModeEnd", batch::end())
}

/// Locks the communicator called `comm_id` until [`HcommReleaseComm`] or the end of the kernel. Source: device-side
/// interface, `HcommAcquireComm`.
///
/// # Errors
/// 0, or in this order: 2 `comm_id` null or the name of no communicator, 20 locked, also by the caller; 7 outside a kernel.
///
/// # Safety
/// `comm_id` is null, or bytes can be read there up to a zero byte.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub unsafe extern "C" fn HcommAcquireComm(comm_id: *const c_char) -> i32 {
    // SAFETY: the caller owes the same of `comm_id`.
    answer("HcommAcquireComm", unsafe { name(comm_id) }.and_then(comm::acquire))
}

/// Unlocks the communicator called `comm_id`. Source: device-side interface, `HcommReleaseComm`.
///
/// # Errors
/// 0, or in this order: 2 `comm_id` null or the name of no communicator, 6 not locked by this kernel; 7 outside a kernel.
///
/// # Safety
/// As for [`HcommAcquireComm`].
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub unsafe extern "C" fn HcommReleaseComm(comm_id: *const c_char) -> i32 {
    // SAFETY: the caller owes the same of `comm_id`.
    answer("HcommReleaseComm", unsafe { name(comm_id) }.and_then(comm::release))
}

/// # Safety
/// As for [`HcommAcquireComm`].
unsafe fn name<'n>(comm_id: *const c_char) -> Result<&'n CStr, Error> {
    if comm_id.is_null() {
        return Err(Error::UnknownComm);
    }
    let bytes = comm_id.cast::<u8>();
    // By hand: `strlen` is not there on bare metal.
    // SAFETY: not null, so the caller owes bytes up to a zero byte, and none behind it is read.
    let len = (0..COMM_NAME_LEN).find(|index| unsafe { bytes.add(*index).read() } == 0).ok_or(Error::UnknownComm)?;
    // SAFETY: `len` bytes and a zero byte have just been read.
    let name = unsafe { core::slice::from_raw_parts(bytes, len + 1) };
    CStr::from_bytes_with_nul(name).map_err(|_| Error::UnknownComm)
}

/// Waits until the device has taken every task queued on `thread`, for as long as a call may wait for room. Source:
/// device-side interface, `HcommThreadSynchronize`.
///
/// # Errors
/// 0, or 2 `thread` 0, 6, 22, 9 after that time, 16.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommThreadSynchronize(thread: u64) -> i32 {
    let result = Thread::from_handle(ThreadHandle(thread)).and_then(|thread| thread.synchronize());
    answer("HcommThreadSynchronize", result)
}

/// [`HcommThreadSynchronize`] for at most `timeout` seconds; 0 looks once. Source: device-side interface,
/// `HcommThreadJoin`.
///
/// # Errors
/// As [`HcommThreadSynchronize`].
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommThreadJoin(thread: u64, timeout: u32) -> i32 {
    let result =
        Thread::from_handle(ThreadHandle(thread)).and_then(|thread| thread.join(u64::from(timeout) * 1_000_000));
    answer("HcommThreadJoin", result)
}

/// Tells the platform that `who` refuses a call and why, and gives the code.
#[cold]
#[inline(never)]
pub fn refuse(who: &'static str, error: &Error) -> i32 {
    let code = error.code();
    Hooks.refused(who, error);
    code
}

#[inline]
fn answer(function: &'static str, result: Result<(), Error>) -> i32 {
    // By reference: an error is moved by a call of `memcpy`.
    match &result {
        Ok(()) => HCCL_SUCCESS,
        Err(error) => refuse(function, error),
    }
}
