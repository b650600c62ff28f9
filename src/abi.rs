//! C entry points. Exported with feature `c-abi`, callable from Rust without it.

use core::ffi::{CStr, c_char, c_void};

use crate::error::Error;
use crate::notify::Action;
use crate::port::refuse;
use crate::reduce::Elements;
use crate::short::Short;
use crate::spec::DeviceAddr;
use crate::spec::code::HCCL_SUCCESS;
use crate::spec::comm::COMM_NAME_LEN;
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::thread::ThreadHandle;
use crate::thread::Thread;
use crate::{aclrt_notify, batch, comm, copy, notify, reduce, timeout};

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
    let (thread, dst, src) = (ThreadHandle(thread), dst.into(), src.into());
    #[cold]
    #[inline(never)]
    fn finish(thread: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64, short: Short) -> i32 {
        answer("HcommLocalCopyOnThread", short.or_else(thread, || copy::long(thread, dst, src, len)))
    }
    or_finish(copy::short(thread, dst, src, len), |short| finish(thread, dst, src, len, short))
}

/// Queues `dst[i] = op(dst[i], src[i])` for `count` elements of `data_type` on the queue of `thread`. Source: device-side
/// interface, `HcommLocalReduceOnThread`.
///
/// `data_type` is a `HcommDataType`, `reduce_op` a `HcommReduceOp`. Addresses are multiples of the element size.
///
/// # Errors
/// 0, or in this order: 2 `dst`, `src` or `thread` null, 6 as [`HcommLocalCopyOnThread`], 5 type or operator that the engine
/// does not compute, 1 `count` times size or an address + length past 2^64, or an address between elements; 22, 9, 16.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommLocalReduceOnThread(
    thread: u64,
    dst: *mut c_void,
    src: *const c_void,
    count: u64,
    data_type: i32,
    reduce_op: i32,
) -> i32 {
    let (thread, dst, src) = (ThreadHandle(thread), dst.into(), src.into());
    #[cold]
    #[inline(never)]
    fn finish(
        thread: ThreadHandle,
        dst: DeviceAddr,
        src: DeviceAddr,
        count: u64,
        data_type: DataType,
        op: ReduceOp,
        short: Short,
    ) -> i32 {
        let elements = Elements { count, data_type, op };
        answer("HcommLocalReduceOnThread", short.or_else(thread, || reduce::long(thread, dst, src, elements)))
    }
    let (data_type, op) = (DataType(data_type), ReduceOp(reduce_op));
    let short = reduce::short(thread, dst, src, Elements { count, data_type, op });
    or_finish(short, |short| finish(thread, dst, src, count, data_type, op, short))
}

/// Queues a task on `thread` that sets notify `dst_notify_idx` of `dst_thread`. Source: device-side interface,
/// `HcommThreadNotifyRecordOnThread`.
///
/// # Errors
/// 0, or in this order: 2 a thread 0, 6 a handle that names no live thread (`thread`: of engine AICPU_TS), 2 an index that
/// `dst_thread` does not have; 22, 9, 16.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommThreadNotifyRecordOnThread(thread: u64, dst_thread: u64, dst_notify_idx: u32) -> i32 {
    let (thread, to) = (ThreadHandle(thread), ThreadHandle(dst_thread));
    #[cold]
    #[inline(never)]
    fn finish(thread: ThreadHandle, to: ThreadHandle, index: u32, short: Short) -> i32 {
        let action = Action::Record { to, index };
        answer("HcommThreadNotifyRecordOnThread", short.or_else(thread, || notify::long(thread, action)))
    }
    let short = notify::short(thread, Action::Record { to, index: dst_notify_idx });
    or_finish(short, |short| finish(thread, to, dst_notify_idx, short))
}

/// Queues a task on `thread` that waits for its notify `notify_idx` for up to `timeout` seconds (0 = for ever). Source:
/// device-side interface, `HcommThreadNotifyWaitOnThread`.
///
/// # Errors
/// 0, or in this order: 2 `thread` 0, 6 as [`HcommLocalCopyOnThread`], 2 an index that the thread does not have; 22, 9, 16.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommThreadNotifyWaitOnThread(thread: u64, notify_idx: u32, timeout: u32) -> i32 {
    let thread = ThreadHandle(thread);
    #[cold]
    #[inline(never)]
    fn finish(thread: ThreadHandle, index: u32, timeout_s: u32, short: Short) -> i32 {
        let action = Action::Wait { index, timeout_s };
        answer("HcommThreadNotifyWaitOnThread", short.or_else(thread, || notify::long(thread, action)))
    }
    let short = notify::short(thread, Action::Wait { index: notify_idx, timeout_s: timeout });
    or_finish(short, |short| finish(thread, notify_idx, timeout, short))
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
/// hold; 22, 9, 16. An id of nobody shows when the task runs.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommAclrtNotifyRecordOnThread(thread: u64, dst_notify_id: u64) -> i32 {
    let result = aclrt_notify::by_id(ThreadHandle(thread), dst_notify_id, aclrt_notify::Action::Record);
    answer("HcommAclrtNotifyRecordOnThread", result)
}

/// Queues a task on `thread` that waits for the notify with the id `notify_id` for up to `timeout` seconds (0 = for ever).
/// Source: device-side interface, `HcommAclrtNotifyWaitOnThread`.
///
/// # Errors
/// As [`HcommAclrtNotifyRecordOnThread`].
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommAclrtNotifyWaitOnThread(thread: u64, notify_id: u64, timeout: u32) -> i32 {
    let action = aclrt_notify::Action::Wait { timeout_s: timeout };
    answer("HcommAclrtNotifyWaitOnThread", aclrt_notify::by_id(ThreadHandle(thread), notify_id, action))
}

/// Sets the limit in seconds of waits without one of their own, until the kernel ends; 0 = for ever, a fraction counts as a
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
/// 0, or of the first queue that went wrong: 16 doorbell refused, 22 suspended or reset, 6 thread freed. Its tasks are dropped.
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
    // SAFETY: passed on.
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
    // SAFETY: passed on.
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

/// Answers for the short way, and what `finish` does where that has not done all. `finish` is out of line and takes plain
/// arguments: the short way needs no stack for them.
#[inline(always)]
fn or_finish(short: Short, finish: impl Fn(Short) -> i32) -> i32 {
    match short {
        Short::Queued => HCCL_SUCCESS,
        // By itself: a constant costs the way before it nothing.
        Short::NotTaken => finish(Short::NotTaken),
        short => finish(short),
    }
}

#[inline]
fn answer(function: &'static str, result: Result<(), Error>) -> i32 {
    // By reference: an error is moved by a call of `memcpy`.
    match &result {
        Ok(()) => HCCL_SUCCESS,
        Err(error) => refuse(function, error),
    }
}
