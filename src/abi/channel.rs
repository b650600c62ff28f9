//! C entry points of channels.

use core::ffi::c_void;

use super::answer;
use crate::channel::submit::Ends;
use crate::channel::work::{Transfer, TransferKind, Transfers};
use crate::error::Error;
use crate::ops::channel::{self, Move, Record};
use crate::spec::DeviceAddr;
use crate::spec::channel::ChannelHandle;
pub use crate::spec::channel::HcommBatchTransferDesc;
use crate::spec::code::HCCL_SUCCESS;
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::record::EntryPoint;
use crate::spec::thread::ThreadHandle;
use crate::sq::Fast;

#[inline(always)]
fn ends(thread: u64, channel: u64) -> Ends {
    Ends { thread: ThreadHandle(thread), channel: ChannelHandle(channel) }
}

/// C functions with a fast path, which is inlined into each; what is left is out of line.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($thread:ident, $channel:ident, $($arg:ident: $type:ty),*) => $call:ty: $make:expr;)*) => {$(
        $(#[$doc])*
        #[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
        #[allow(non_snake_case)]
        pub extern "C" fn $name($thread: u64, $channel: u64, $($arg: $type),*) -> i32 {
            #[cold]
            #[inline(never)]
            fn finish($thread: u64, $channel: u64, $($arg: $type),*, fast: Fast) -> i32 {
                let call: $call = $make;
                answer(stringify!($name), channel::finish(ends($thread, $channel), call, fast))
            }
            let call: $call = $make;
            match channel::fast(ends($thread, $channel), call) {
                Fast::Queued => HCCL_SUCCESS,
                // By itself: a constant costs the path before it nothing.
                Fast::NotTaken => finish($thread, $channel, $($arg),*, Fast::NotTaken),
                fast => finish($thread, $channel, $($arg),*, fast),
            }
        }
    )*};
}

calls! {
    /// Queues a write of `len` bytes from `src` to `dst` at the peer of `channel` on `thread`. Source: device-side interface,
    /// `HcommWriteOnThread`.
    ///
    /// `len` 0 queues nothing.
    ///
    /// # Errors
    /// 0, or in this order: 2 `dst` or `src` null (also for `len` 0), 2 `channel` 0, 6 a handle that names no live channel of this
    /// device, 2 `thread` 0, 6 a handle that names no live AICPU_TS thread, 6 thread and channel of different communicators, 1 an
    /// address + `len` past 2^64, 4 bytes at the peer that it has not exchanged, 22 suspended, 9 queue or work ring full for too
    /// long, 16 doorbell refused; 7 outside a kernel.
    HcommWriteOnThread(thread, channel, dst: *mut c_void, src: *const c_void, len: u64)
        => Move<false>: Move { dst: dst.into(), src: src.into(), len };

    /// Queues a read of `len` bytes from `src` at the peer of `channel` to `dst` on `thread`. Source: device-side interface,
    /// `HcommReadOnThread`.
    ///
    /// # Errors
    /// As [`HcommWriteOnThread`].
    HcommReadOnThread(thread, channel, dst: *mut c_void, src: *const c_void, len: u64)
        => Move<true>: Move { dst: dst.into(), src: src.into(), len };

    /// Queues a task on `thread` that sets notify `remote_notify_idx` of the peer of `channel`. Source: device-side interface,
    /// `HcommChannelNotifyRecordOnThread`.
    ///
    /// # Errors
    /// As [`HcommWriteOnThread`]; 2 an index that the peer does not have.
    HcommChannelNotifyRecordOnThread(thread, channel, remote_notify_idx: u32)
        => Record: Record { index: remote_notify_idx };
}

/// Queues `dst[i] = op(dst[i], src[i])` for `count` elements of `data_type`, `dst` at the peer of `channel`. Source: device-side
/// interface, `HcommWriteReduceOnThread`.
///
/// # Errors
/// As [`HcommWriteOnThread`]; before the addresses 1 for a type or operator that the engine does not compute, and for `count`
/// times size past 2^64.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommWriteReduceOnThread(
    thread: u64,
    channel: u64,
    dst: *mut c_void,
    src: *const c_void,
    count: u64,
    data_type: i32,
    reduce_op: i32,
) -> i32 {
    let (data_type, op) = (DataType(data_type), ReduceOp(reduce_op));
    let (dst, src, kind) = (dst.into(), src.into(), TransferKind::Write);
    let transfer = Transfer::Reduce { kind, dst, src, count, data_type, op, notify: None };
    answer("HcommWriteReduceOnThread", channel::transfer(ends(thread, channel), transfer, EntryPoint::WRITE_REDUCE))
}

/// Queues `dst[i] = op(dst[i], src[i])` for `count` elements of `data_type`, `src` at the peer of `channel`. Source: device-side
/// interface, `HcommReadReduceOnThread`.
///
/// # Errors
/// As [`HcommWriteReduceOnThread`].
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommReadReduceOnThread(
    thread: u64,
    channel: u64,
    dst: *mut c_void,
    src: *const c_void,
    count: u64,
    data_type: i32,
    reduce_op: i32,
) -> i32 {
    let (data_type, op) = (DataType(data_type), ReduceOp(reduce_op));
    let (dst, src, kind) = (dst.into(), src.into(), TransferKind::Read);
    let transfer = Transfer::Reduce { kind, dst, src, count, data_type, op, notify: None };
    answer("HcommReadReduceOnThread", channel::transfer(ends(thread, channel), transfer, EntryPoint::READ_REDUCE))
}

/// [`HcommWriteOnThread`], after which notify `remote_notify_idx` of the peer is set, also for `len` 0. Source: device-side
/// interface, `HcommWriteWithNotifyOnThread`.
///
/// # Errors
/// As [`HcommWriteOnThread`]; before the addresses 2 for an index that the peer does not have; 5 on an Ascend910B and
/// Ascend910_93.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommWriteWithNotifyOnThread(
    thread: u64,
    channel: u64,
    dst: *mut c_void,
    src: *const c_void,
    len: u64,
    remote_notify_idx: u32,
) -> i32 {
    let (dst, src, kind, notify) = (dst.into(), src.into(), TransferKind::Write, Some(remote_notify_idx));
    let transfer = Transfer::Copy { kind, dst, src, len, notify };
    let result = channel::transfer(ends(thread, channel), transfer, EntryPoint::WRITE_WITH_NOTIFY);
    answer("HcommWriteWithNotifyOnThread", result)
}

/// [`HcommWriteReduceOnThread`], after which notify `remote_notify_idx` of the peer is set, also for `count` 0. Source:
/// device-side interface, `HcommWriteReduceWithNotifyOnThread`.
///
/// # Errors
/// As [`HcommWriteReduceOnThread`] and [`HcommWriteWithNotifyOnThread`].
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case, clippy::too_many_arguments)]
pub extern "C" fn HcommWriteReduceWithNotifyOnThread(
    thread: u64,
    channel: u64,
    dst: *mut c_void,
    src: *const c_void,
    count: u64,
    data_type: i32,
    reduce_op: i32,
    remote_notify_idx: u32,
) -> i32 {
    let (data_type, op, notify) = (DataType(data_type), ReduceOp(reduce_op), Some(remote_notify_idx));
    let (dst, src, kind) = (dst.into(), src.into(), TransferKind::Write);
    let transfer = Transfer::Reduce { kind, dst, src, count, data_type, op, notify };
    let result = channel::transfer(ends(thread, channel), transfer, EntryPoint::WRITE_REDUCE_WITH_NOTIFY);
    answer("HcommWriteReduceWithNotifyOnThread", result)
}

/// Queues a task on `thread` that waits for notify `local_notify_idx` of this end of `channel` for up to `timeout` seconds (0 =
/// without limit). Source: device-side interface, `HcommChannelNotifyWaitOnThread`.
///
/// # Errors
/// As [`HcommWriteOnThread`]; 2 an index that this end does not have.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommChannelNotifyWaitOnThread(
    thread: u64,
    channel: u64,
    local_notify_idx: u32,
    timeout: u32,
) -> i32 {
    let result = channel::wait(ends(thread, channel), local_notify_idx, Some(timeout));
    answer("HcommChannelNotifyWaitOnThread", result)
}

/// [`HcommChannelNotifyWaitOnThread`] with the limit that [`HcommSetNotifyWaitTimeOut`](super::HcommSetNotifyWaitTimeOut) has
/// set.
///
/// # Errors
/// As [`HcommChannelNotifyWaitOnThread`].
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommChannelNotifyWaitOnThreadWithDefaultTimeout(
    thread: u64,
    channel: u64,
    local_notify_idx: u32,
) -> i32 {
    let result = channel::wait(ends(thread, channel), local_notify_idx, None);
    answer("HcommChannelNotifyWaitOnThreadWithDefaultTimeout", result)
}

/// Orders the next transfer or batch of `channel` behind all transfers before it. Queues nothing. Source: device-side interface,
/// `HcommChannelFenceOnThread`.
///
/// # Errors
/// 0, or in this order: 2 `channel` 0, 6, 2 `thread` 0, 6 as [`HcommWriteOnThread`].
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn HcommChannelFenceOnThread(thread: u64, channel: u64) -> i32 {
    answer("HcommChannelFenceOnThread", channel::fence(ends(thread, channel)))
}

impl HcommBatchTransferDesc {
    fn transfer(&self, index: u32) -> Result<Transfer, Error> {
        let [len, dst, src, word, last, ..] = self.words;
        let (dst, src) = (DeviceAddr(dst), DeviceAddr(src));
        let (op, data_type) = (ReduceOp(word as i32), DataType((word >> 32) as i32));
        let copy = |kind, notify| Transfer::Copy { kind, dst, src, len, notify };
        let reduce = |kind, notify| Transfer::Reduce { kind, dst, src, count: len, data_type, op, notify };
        Ok(match self.kind {
            0 => copy(TransferKind::Write, None),
            1 => reduce(TransferKind::Write, None),
            2 => copy(TransferKind::Write, Some(word as u32)),
            3 => reduce(TransferKind::Write, Some(last as u32)),
            4 => copy(TransferKind::Read, None),
            5 => reduce(TransferKind::Read, None),
            6 => Transfer::Record { notify: len as u32 },
            kind => return Err(Error::BadTransferKind { index, kind }),
        })
    }
}

struct Descs<'d>(&'d [HcommBatchTransferDesc]);

impl Transfers for Descs<'_> {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }

    fn get(&self, index: u32) -> Result<Transfer, Error> {
        self.0.get(index as usize).ok_or(Error::NoTransfers)?.transfer(index)
    }
}

/// Queues `transfer_desc_num` transfers on `channel` with one doorbell. They are submitted in order but run in any: only the
/// last waits for the others. Source: device-side interface, `HcommBatchTransferOnThread`.
///
/// # Errors
/// 0, or in this order: 2 `transfer_descs` null, 2 `channel` 0, 6, 2 `thread` 0, 6 as [`HcommWriteOnThread`], 5 on an Ascend910B
/// and Ascend910_93, 1 no transfers; of the first transfer that is wrong: 5 its kind, 2 an address null; then of the first that is
/// wrong: as the functions of its kind. Nothing is queued then.
///
/// # Safety
/// `transfer_descs` is null, or `transfer_desc_num` of them can be read there.
#[cfg_attr(feature = "c-abi", unsafe(no_mangle))]
#[allow(non_snake_case)]
pub unsafe extern "C" fn HcommBatchTransferOnThread(
    thread: u64,
    channel: u64,
    transfer_descs: *const HcommBatchTransferDesc,
    transfer_desc_num: u32,
) -> i32 {
    let result = if transfer_descs.is_null() {
        Err(Error::NullTransfers)
    } else {
        // SAFETY: not null, so the caller owes that many.
        let descs = unsafe { core::slice::from_raw_parts(transfer_descs, transfer_desc_num as usize) };
        channel::batch(ends(thread, channel), &Descs(descs))
    };
    answer("HcommBatchTransferOnThread", result)
}
