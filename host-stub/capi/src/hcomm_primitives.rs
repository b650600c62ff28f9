//! Functions `Hcomm*` of a host process. `include/hcomm/hcomm_primitives.h` is generated from this file.
//!
//! A process has each of these names once, and both sides call it: a native kernel, for which the device crate does the
//! work, and the host, which has its own rules. The calling thread decides: a kernel's thread has a current core.

use std::ffi::{CStr, c_char, c_int, c_void};

use hcomm_aicpu::abi;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};

use super::call::{self, hccl};
use super::comm;
use super::error::CallError;
use super::hcomm_log::hcomm_log_line;
use super::hcomm_res_defs::{ChannelHandle, ThreadHandle};
use super::objects::ThreadEntry;
use super::process::process;
use super::support;
use host_stub::backend::native::in_kernel;
use host_stub::product::Product;

/// Limit of the host's waits that have none of their own: 50 s longer than that of kernels, so that a wait that reaches
/// its limit is reported by the kernel first.
const HOST_WAIT_TIMEOUT_S: u32 = 1836 + 50;

type HcommDataType = c_int;
type HcommReduceOp = c_int;

/// Calls the device crate in a kernel, and `host` elsewhere.
fn dispatch(function: &'static str, kernel: impl FnOnce() -> i32, host: impl FnOnce() -> Result<(), CallError>) -> i32 {
    if in_kernel() { kernel() } else { hccl(function, host) }
}

/// The thread of a call that moves data, and the product of its device, after the checks that a kernel's call makes too.
fn host_thread(
    thread: u64,
    dst: *const c_void,
    src: *const c_void,
) -> Result<(ThreadEntry, &'static Product), CallError> {
    // An unsupported product has no threads, so it is the error for every handle.
    support::supported()?;
    call::not_null([(std::ptr::without_provenance(thread as usize), "thread"), (dst, "dst"), (src, "src")])?;
    let entry = comm::thread(thread)?;
    let process = process();
    let open = process.devices.get(&entry.index).ok_or(CallError::NoDevice)?;
    Ok((entry, open.device.options().product))
}

/// A copy by the host: an operation on the stream of its thread.
fn host_copy(thread: u64, dst: *mut c_void, src: *const c_void, len: u64) -> Result<(), CallError> {
    let (entry, product) = host_thread(thread, dst, src)?;
    support::host_copy(product, entry.engine)?;
    Ok(entry.stream()?.copy(dst.into(), src.into(), len)?)
}

/// A reduce by the host, as [`host_copy`].
fn host_reduce(
    thread: u64,
    dst: *mut c_void,
    src: *const c_void,
    count: u64,
    data_type: HcommDataType,
    reduce_op: HcommReduceOp,
) -> Result<(), CallError> {
    let (entry, product) = host_thread(thread, dst, src)?;
    support::host_copy(product, entry.engine)?;
    Ok(entry.stream()?.reduce(dst.into(), src.into(), count, DataType(data_type), ReduceOp(reduce_op))?)
}

fn in_kernels_only() -> Result<(), CallError> {
    Err(CallError::NotSupported("called by the host: only kernels can call it".to_owned()))
}

/// Queues a copy of `len` bytes of device memory from `src` to `dst` on a thread, and returns; the copy runs later.
///
/// 0, or 2 for a null argument (also when `len` is 0), 6 for a thread that is not live, 1 for an address past 2^64, 5 where
/// the product does not support it: on Atlas 350 it is called in kernels, on AICPU_TS threads; 7, 9, 16, 22 as the queue is.
#[unsafe(no_mangle)]
pub extern "C" fn HcommLocalCopyOnThread(thread: ThreadHandle, dst: *mut c_void, src: *const c_void, len: u64) -> i32 {
    let kernel = || abi::HcommLocalCopyOnThread(thread, dst, src, len);
    dispatch("HcommLocalCopyOnThread", kernel, || host_copy(thread, dst, src, len))
}

/// Queues `dst[i] = dst[i] op src[i]` for `count` elements on a thread, and returns; the reduction runs later. Addresses are
/// multiples of the size of an element.
///
/// As HcommLocalCopyOnThread, and 5 for a type or operator that the engine does not compute, 1 for an address between elements
/// or more bytes than 64 bits can count.
#[unsafe(no_mangle)]
pub extern "C" fn HcommLocalReduceOnThread(
    thread: ThreadHandle,
    dst: *mut c_void,
    src: *const c_void,
    count: u64,
    data_type: HcommDataType,
    reduce_op: HcommReduceOp,
) -> i32 {
    let kernel = || abi::HcommLocalReduceOnThread(thread, dst, src, count, data_type, reduce_op);
    dispatch("HcommLocalReduceOnThread", kernel, || host_reduce(thread, dst, src, count, data_type, reduce_op))
}

/// Queues a task on `thread` that sets notify `dstNotifyIdx` of `dstThread`. In a kernel `thread` is one of AICPU_TS; on the
/// host it is one of CPU_TS, and the task is an operation of its stream.
///
/// 0, or 2 for a null thread, 6 for a thread that is not live or is of the other side, 2 for an index that `dstThread` does
/// not have.
#[unsafe(no_mangle)]
pub extern "C" fn HcommThreadNotifyRecordOnThread(
    thread: ThreadHandle,
    dst_thread: ThreadHandle,
    dst_notify_idx: u32,
) -> i32 {
    let kernel = || abi::HcommThreadNotifyRecordOnThread(thread, dst_thread, dst_notify_idx);
    dispatch("HcommThreadNotifyRecordOnThread", kernel, || comm::notify_record(thread, dst_thread, dst_notify_idx))
}

/// Queues a task on `thread` that waits for its notify `notifyIdx` for up to `timeOut` seconds; 0 means no limit. Which
/// threads, and the answers: as HcommThreadNotifyRecordOnThread.
#[unsafe(no_mangle)]
pub extern "C" fn HcommThreadNotifyWaitOnThread(thread: ThreadHandle, notify_idx: u32, time_out: u32) -> i32 {
    let kernel = || abi::HcommThreadNotifyWaitOnThread(thread, notify_idx, time_out);
    dispatch("HcommThreadNotifyWaitOnThread", kernel, || comm::notify_wait(thread, notify_idx, time_out))
}

/// HcommThreadNotifyWaitOnThread with the limit of HcommSetNotifyWaitTimeOut, 1836 s if it was not called; 1886 s on the host.
#[unsafe(no_mangle)]
pub extern "C" fn HcommThreadNotifyWaitOnThreadWithDefaultTimeout(thread: ThreadHandle, notify_idx: u32) -> i32 {
    let kernel = || abi::HcommThreadNotifyWaitOnThreadWithDefaultTimeout(thread, notify_idx);
    let host = || comm::notify_wait(thread, notify_idx, HOST_WAIT_TIMEOUT_S);
    dispatch("HcommThreadNotifyWaitOnThreadWithDefaultTimeout", kernel, host)
}

/// Queues a task on `thread` that sets the notify with an id as aclrtGetNotifyId gives it. Not on Atlas 350: 5.
#[unsafe(no_mangle)]
pub extern "C" fn HcommAclrtNotifyRecordOnThread(thread: ThreadHandle, dst_notify_id: u64) -> i32 {
    let kernel = || abi::HcommAclrtNotifyRecordOnThread(thread, dst_notify_id);
    dispatch("HcommAclrtNotifyRecordOnThread", kernel, || comm::aclrt_notify_record(thread, dst_notify_id))
}

/// Queues a task on `thread` that waits for the notify with an id as aclrtGetNotifyId gives it, for up to `timeOut` seconds;
/// 0 means no limit. Not on Atlas 350: 5.
#[unsafe(no_mangle)]
pub extern "C" fn HcommAclrtNotifyWaitOnThread(thread: ThreadHandle, notify_id: u64, time_out: u32) -> i32 {
    let kernel = || abi::HcommAclrtNotifyWaitOnThread(thread, notify_id, time_out);
    dispatch("HcommAclrtNotifyWaitOnThread", kernel, || comm::aclrt_notify_wait(thread, notify_id, time_out))
}

/// Sets the limit in seconds of waits that have none of their own, until the kernel ends; 0 means no limit.
#[unsafe(no_mangle)]
pub extern "C" fn HcommSetNotifyWaitTimeOut(time_out: f32) -> i32 {
    dispatch("HcommSetNotifyWaitTimeOut", || abi::HcommSetNotifyWaitTimeOut(time_out), in_kernels_only)
}

/// Sets how long in seconds a call waits for room in a full queue, until the kernel ends; 0 means no limit.
#[unsafe(no_mangle)]
pub extern "C" fn HcommThreadResAcquireTimeOut(time_out: f32) -> i32 {
    dispatch("HcommThreadResAcquireTimeOut", || abi::HcommThreadResAcquireTimeOut(time_out), in_kernels_only)
}

/// Starts a batch: what the kernel queues is handed to the device by HcommBatchModeEnd, with one doorbell a queue, or earlier
/// where a queue is full. In a batch it changes nothing. Tags are not looked at.
///
/// 0.
#[unsafe(no_mangle)]
pub extern "C" fn HcommBatchModeStart(batch_tag: *const c_char) -> i32 {
    dispatch("HcommBatchModeStart", || abi::HcommBatchModeStart(batch_tag), in_kernels_only)
}

/// Ends the batch, however often it was started. Without a batch it does nothing. A batch that a kernel leaves open fails its
/// launch, and what was not handed over by then does not run.
///
/// 0, or the first code of a queue whose tasks were dropped: 16 for a refused doorbell, 22 for a suspension, 6 for a thread
/// that was freed meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn HcommBatchModeEnd(batch_tag: *const c_char) -> i32 {
    dispatch("HcommBatchModeEnd", || abi::HcommBatchModeEnd(batch_tag), in_kernels_only)
}

/// Locks the communicator called `commId`, until HcommReleaseComm or the end of the kernel.
///
/// # Safety
/// `commId` is null, or bytes can be read there up to a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcommAcquireComm(comm_id: *const c_char) -> i32 {
    // SAFETY: passed on.
    dispatch("HcommAcquireComm", || unsafe { abi::HcommAcquireComm(comm_id) }, in_kernels_only)
}

/// Unlocks the communicator called `commId`.
///
/// # Safety
/// As for HcommAcquireComm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcommReleaseComm(comm_id: *const c_char) -> i32 {
    // SAFETY: passed on.
    dispatch("HcommReleaseComm", || unsafe { abi::HcommReleaseComm(comm_id) }, in_kernels_only)
}

/// Waits until the device has taken every task that is queued on a thread.
#[unsafe(no_mangle)]
pub extern "C" fn HcommThreadSynchronize(thread: ThreadHandle) -> i32 {
    dispatch("HcommThreadSynchronize", || abi::HcommThreadSynchronize(thread), in_kernels_only)
}

/// HcommThreadSynchronize for at most `timeout` seconds; 0 looks once.
#[unsafe(no_mangle)]
pub extern "C" fn HcommThreadJoin(thread: ThreadHandle, timeout: u32) -> i32 {
    dispatch("HcommThreadJoin", || abi::HcommThreadJoin(thread, timeout), in_kernels_only)
}

/// Queues a write of `len` bytes from `src` to `dst` at the peer of a channel on a thread, and returns. Length 0 queues nothing.
/// For kernels.
///
/// 0, or in this order: 2 for a null address, 2 for channel 0, 6 for a channel that is not live, 2 for thread 0, 6 for a thread
/// that is not live or of another communicator, 1 for an address past 2^64, 4 for bytes at the peer that are not its buffer's, 9,
/// 16, 22 as the queue is. The host: 5.
#[unsafe(no_mangle)]
pub extern "C" fn HcommWriteOnThread(
    thread: ThreadHandle,
    channel: ChannelHandle,
    dst: *mut c_void,
    src: *const c_void,
    len: u64,
) -> i32 {
    dispatch("HcommWriteOnThread", || abi::HcommWriteOnThread(thread, channel, dst, src, len), in_kernels_only)
}

/// Queues a read of `len` bytes from `src` at the peer of a channel to `dst`; otherwise as HcommWriteOnThread.
#[unsafe(no_mangle)]
pub extern "C" fn HcommReadOnThread(
    thread: ThreadHandle,
    channel: ChannelHandle,
    dst: *mut c_void,
    src: *const c_void,
    len: u64,
) -> i32 {
    dispatch("HcommReadOnThread", || abi::HcommReadOnThread(thread, channel, dst, src, len), in_kernels_only)
}

/// Queues `dst[i] = dst[i] op src[i]` for `count` elements, `dst` at the peer of a channel.
///
/// As HcommWriteOnThread; before the addresses 1 for a type or operator that is not computed.
#[unsafe(no_mangle)]
pub extern "C" fn HcommWriteReduceOnThread(
    thread: ThreadHandle,
    channel: ChannelHandle,
    dst: *mut c_void,
    src: *const c_void,
    count: u64,
    data_type: HcommDataType,
    reduce_op: HcommReduceOp,
) -> i32 {
    let kernel = || abi::HcommWriteReduceOnThread(thread, channel, dst, src, count, data_type, reduce_op);
    dispatch("HcommWriteReduceOnThread", kernel, in_kernels_only)
}

/// Queues `dst[i] = dst[i] op src[i]` for `count` elements, `src` at the peer of a channel.
///
/// As HcommWriteReduceOnThread.
#[unsafe(no_mangle)]
pub extern "C" fn HcommReadReduceOnThread(
    thread: ThreadHandle,
    channel: ChannelHandle,
    dst: *mut c_void,
    src: *const c_void,
    count: u64,
    data_type: HcommDataType,
    reduce_op: HcommReduceOp,
) -> i32 {
    let kernel = || abi::HcommReadReduceOnThread(thread, channel, dst, src, count, data_type, reduce_op);
    dispatch("HcommReadReduceOnThread", kernel, in_kernels_only)
}

/// HcommWriteOnThread, after which notify `remoteNotifyIdx` of the peer is set, also for length 0. On A2 and A3: 5.
///
/// As HcommWriteOnThread; before the addresses 2 for an index that the peer does not have.
#[unsafe(no_mangle)]
pub extern "C" fn HcommWriteWithNotifyOnThread(
    thread: ThreadHandle,
    channel: ChannelHandle,
    dst: *mut c_void,
    src: *const c_void,
    len: u64,
    remote_notify_idx: u32,
) -> i32 {
    let kernel = || abi::HcommWriteWithNotifyOnThread(thread, channel, dst, src, len, remote_notify_idx);
    dispatch("HcommWriteWithNotifyOnThread", kernel, in_kernels_only)
}

/// HcommWriteReduceOnThread, after which notify `remoteNotifyIdx` of the peer is set. On A2 and A3: 5.
///
/// As HcommWriteReduceOnThread and HcommWriteWithNotifyOnThread.
#[unsafe(no_mangle)]
pub extern "C" fn HcommWriteReduceWithNotifyOnThread(
    thread: ThreadHandle,
    channel: ChannelHandle,
    dst: *mut c_void,
    src: *const c_void,
    count: u64,
    data_type: HcommDataType,
    reduce_op: HcommReduceOp,
    remote_notify_idx: u32,
) -> i32 {
    let kernel = || {
        let (op, index) = (reduce_op, remote_notify_idx);
        abi::HcommWriteReduceWithNotifyOnThread(thread, channel, dst, src, count, data_type, op, index)
    };
    dispatch("HcommWriteReduceWithNotifyOnThread", kernel, in_kernels_only)
}

/// Queues a task on `thread` that sets notify `remoteNotifyIdx` of the peer of a channel.
///
/// As HcommWriteOnThread; 2 for an index that the peer does not have.
#[unsafe(no_mangle)]
pub extern "C" fn HcommChannelNotifyRecordOnThread(
    thread: ThreadHandle,
    channel: ChannelHandle,
    remote_notify_idx: u32,
) -> i32 {
    let kernel = || abi::HcommChannelNotifyRecordOnThread(thread, channel, remote_notify_idx);
    dispatch("HcommChannelNotifyRecordOnThread", kernel, in_kernels_only)
}

/// Queues a task on `thread` that waits for notify `localNotifyIdx` of this end of a channel for up to `timeOut` seconds; 0
/// means no limit.
///
/// As HcommWriteOnThread; 2 for an index that this end does not have.
#[unsafe(no_mangle)]
pub extern "C" fn HcommChannelNotifyWaitOnThread(
    thread: ThreadHandle,
    channel: ChannelHandle,
    local_notify_idx: u32,
    time_out: u32,
) -> i32 {
    let kernel = || abi::HcommChannelNotifyWaitOnThread(thread, channel, local_notify_idx, time_out);
    dispatch("HcommChannelNotifyWaitOnThread", kernel, in_kernels_only)
}

/// HcommChannelNotifyWaitOnThread with the limit of HcommSetNotifyWaitTimeOut, 1836 s if it was not called.
#[unsafe(no_mangle)]
pub extern "C" fn HcommChannelNotifyWaitOnThreadWithDefaultTimeout(
    thread: ThreadHandle,
    channel: ChannelHandle,
    local_notify_idx: u32,
) -> i32 {
    let kernel = || abi::HcommChannelNotifyWaitOnThreadWithDefaultTimeout(thread, channel, local_notify_idx);
    dispatch("HcommChannelNotifyWaitOnThreadWithDefaultTimeout", kernel, in_kernels_only)
}

/// Orders the next transfer of a channel behind all transfers before it. Queues nothing.
///
/// 0, or 2 for channel or thread 0, 6 for one that is not live. The host: 5.
#[unsafe(no_mangle)]
pub extern "C" fn HcommChannelFenceOnThread(thread: ThreadHandle, channel: ChannelHandle) -> i32 {
    let kernel = || abi::HcommChannelFenceOnThread(thread, channel);
    dispatch("HcommChannelFenceOnThread", kernel, in_kernels_only)
}

/// One transfer of HcommBatchTransferOnThread. What the words hold depends on the kind: length or count, destination, source;
/// then operator (low half) and type (high half) of a reduce; then the notify index, in the low half of the next word. A record
/// has its index in the low half of the first word.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HcommBatchTransferDesc {
    /// 0 write, 1 write reduce, 2 write with notify, 3 write reduce with notify, 4 read, 5 read reduce, 6 notify record.
    pub kind: i32,
    /// Not looked at.
    pub reserved: u32,
    /// See above.
    pub words: [u64; 7],
}
const _: () = assert!(size_of::<HcommBatchTransferDesc>() == size_of::<abi::HcommBatchTransferDesc>());
const _: () = assert!(align_of::<HcommBatchTransferDesc>() == align_of::<abi::HcommBatchTransferDesc>());

/// Queues `transferDescNum` transfers on a channel with one doorbell. They are submitted in order but run in any: only the last
/// one waits for the others. On A2 and A3: 5.
///
/// 0, or 2 for null, then as HcommWriteOnThread; 1 for no transfers, 5 for an unknown kind; then that of the first transfer that
/// is wrong. Nothing is queued then.
///
/// # Safety
/// `transferDescs` is null, or `transferDescNum` of them can be read there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcommBatchTransferOnThread(
    thread: ThreadHandle,
    channel: ChannelHandle,
    transfer_descs: *const HcommBatchTransferDesc,
    transfer_desc_num: u32,
) -> i32 {
    // SAFETY: passed on; the two types have the same fields.
    let kernel =
        || unsafe { abi::HcommBatchTransferOnThread(thread, channel, transfer_descs.cast(), transfer_desc_num) };
    dispatch("HcommBatchTransferOnThread", kernel, in_kernels_only)
}

/// The names that a native kernel may leave undefined, and what they must be bound to.
pub fn exports() -> [(&'static CStr, *const c_void); 27] {
    macro_rules! table {
        ($($name:ident),*) => {
            [$((
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                },
                $name as *const c_void,
            )),*]
        };
    }
    table![
        HcommLocalCopyOnThread,
        HcommLocalReduceOnThread,
        HcommThreadNotifyRecordOnThread,
        HcommThreadNotifyWaitOnThread,
        HcommThreadNotifyWaitOnThreadWithDefaultTimeout,
        HcommAclrtNotifyRecordOnThread,
        HcommAclrtNotifyWaitOnThread,
        HcommSetNotifyWaitTimeOut,
        HcommThreadResAcquireTimeOut,
        HcommBatchModeStart,
        HcommBatchModeEnd,
        HcommAcquireComm,
        HcommReleaseComm,
        HcommThreadSynchronize,
        HcommThreadJoin,
        HcommWriteOnThread,
        HcommReadOnThread,
        HcommWriteReduceOnThread,
        HcommReadReduceOnThread,
        HcommWriteWithNotifyOnThread,
        HcommWriteReduceWithNotifyOnThread,
        HcommChannelNotifyRecordOnThread,
        HcommChannelNotifyWaitOnThread,
        HcommChannelNotifyWaitOnThreadWithDefaultTimeout,
        HcommChannelFenceOnThread,
        HcommBatchTransferOnThread,
        hcomm_log_line
    ]
}
