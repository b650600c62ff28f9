//! What a [`Channel`](crate::Channel) does, by the entry points of the library that the program is loaded with. They look handles up
//! themselves, with every call.

use crate::abi::{self, HcommBatchTransferDesc, result};
use crate::channel::submit::Ends;
use crate::channel::work::{Transfer, TransferKind, Transfers};
use crate::error::Error;
use crate::spec::DeviceAddr;

/// Most transfers of a batch: there is no memory for more.
const BATCH_MAX: usize = 64;

/// A device address as the pointer that the interface takes.
fn pointer<T>(addr: DeviceAddr) -> *mut T {
    core::ptr::with_exposed_provenance_mut(addr.0 as usize)
}

pub(crate) fn transfer(Ends { thread, channel }: Ends, transfer: Transfer) -> Result<(), Error> {
    let (t, c) = (thread.0, channel.0);
    result(match transfer {
        Transfer::Copy { kind: TransferKind::Write, dst, src, len, notify: None } => {
            abi::HcommWriteOnThread(t, c, pointer(dst), pointer(src), len)
        }
        Transfer::Copy { kind: TransferKind::Write, dst, src, len, notify: Some(notify) } => {
            abi::HcommWriteWithNotifyOnThread(t, c, pointer(dst), pointer(src), len, notify)
        }
        Transfer::Copy { kind: TransferKind::Read, dst, src, len, .. } => {
            abi::HcommReadOnThread(t, c, pointer(dst), pointer(src), len)
        }
        Transfer::Reduce { kind: TransferKind::Write, dst, src, count, data_type, op, notify: None } => {
            abi::HcommWriteReduceOnThread(t, c, pointer(dst), pointer(src), count, data_type.0, op.0)
        }
        Transfer::Reduce { kind: TransferKind::Write, dst, src, count, data_type, op, notify: Some(notify) } => {
            abi::HcommWriteReduceWithNotifyOnThread(t, c, pointer(dst), pointer(src), count, data_type.0, op.0, notify)
        }
        Transfer::Reduce { kind: TransferKind::Read, dst, src, count, data_type, op, .. } => {
            abi::HcommReadReduceOnThread(t, c, pointer(dst), pointer(src), count, data_type.0, op.0)
        }
        Transfer::Record { notify } => abi::HcommChannelNotifyRecordOnThread(t, c, notify),
    })
}

pub(crate) fn wait(Ends { thread, channel }: Ends, index: u32, timeout_s: Option<u32>) -> Result<(), Error> {
    result(match timeout_s {
        Some(timeout_s) => abi::HcommChannelNotifyWaitOnThread(thread.0, channel.0, index, timeout_s),
        None => abi::HcommChannelNotifyWaitOnThreadWithDefaultTimeout(thread.0, channel.0, index),
    })
}

pub(crate) fn fence(Ends { thread, channel }: Ends) -> Result<(), Error> {
    result(abi::HcommChannelFenceOnThread(thread.0, channel.0))
}

/// # Errors
/// Also [`Error::TooLarge`] for more than [`BATCH_MAX`] transfers.
pub(crate) fn batch(Ends { thread, channel }: Ends, transfers: &dyn Transfers) -> Result<(), Error> {
    let count = transfers.count() as usize;
    if count > BATCH_MAX {
        return Err(Error::TooLarge { len: count as u64, limit: BATCH_MAX as u64 });
    }
    let mut descs = [HcommBatchTransferDesc { kind: 0, reserved: 0, words: [0; 7] }; BATCH_MAX];
    for (index, desc) in (0..).zip(&mut descs[..count]) {
        *desc = described(transfers.get(index)?);
    }
    // SAFETY: the descriptions are this function's, and `count` of them are filled in.
    result(unsafe { abi::HcommBatchTransferOnThread(thread.0, channel.0, descs.as_ptr(), count as u32) })
}

/// As the interface describes a transfer of a batch.
fn described(transfer: Transfer) -> HcommBatchTransferDesc {
    let (kind, words) = match transfer {
        Transfer::Copy { kind: TransferKind::Write, dst, src, len, notify: None } => (0, [len, dst.0, src.0, 0, 0]),
        Transfer::Copy { kind: TransferKind::Write, dst, src, len, notify: Some(notify) } => {
            (2, [len, dst.0, src.0, notify.into(), 0])
        }
        Transfer::Copy { kind: TransferKind::Read, dst, src, len, .. } => (4, [len, dst.0, src.0, 0, 0]),
        Transfer::Reduce { kind, dst, src, count, data_type, op, notify } => {
            let kind = match (kind, notify) {
                (TransferKind::Write, None) => 1,
                (TransferKind::Write, Some(_)) => 3,
                (TransferKind::Read, _) => 5,
            };
            let word = u64::from(op.0 as u32) | u64::from(data_type.0 as u32) << 32;
            (kind, [count, dst.0, src.0, word, notify.unwrap_or(0).into()])
        }
        Transfer::Record { notify } => (6, [notify.into(), 0, 0, 0, 0]),
    };
    let [a, b, c, d, e] = words;
    HcommBatchTransferDesc { kind, reserved: 0, words: [a, b, c, d, e, 0, 0] }
}
