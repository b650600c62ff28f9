//! Channel: the safe interface of its operations.

use super::submit::Ends;
use super::work::{Transfer, TransferKind};
#[cfg(not(feature = "extern-abi"))]
use crate::context::on_core;
use crate::error::Error;
use crate::ops::channel::{self, ChannelCall, Move, Record};
use crate::spec::DeviceAddr;
use crate::spec::channel::ChannelHandle;
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::record::EntryPoint;
use crate::sq::Fast;
use crate::thread::Thread;

/// A live channel of the device that runs the caller.
///
/// Says that the handle was good when it was looked up. Should the host free the channel afterwards, calls answer
/// [`Error::BadChannel`].
///
/// Each operation is queued on a thread, and is done when the thread's later tasks run. A destination or source *at the peer*
/// is an address of the peer's device, inside of the memory that it has exchanged.
///
/// # Errors
/// Every operation answers, in this order: null addresses; [`Error::NoCore`]; [`Error::BadChannel`]; [`Error::BadHandle`] if
/// the thread has been freed; [`Error::OtherComm`]; [`Error::ChannelOperation`] for what the protocol of the channel does not
/// have; [`Error::ChannelReduce`]; [`Error::BadPeerNotify`], [`Error::BadLocalNotify`]; [`Error::AddressOverflow`];
/// [`Error::RemoteRange`]; [`Error::Suspended`]; [`Error::QueueFull`], [`Error::WorkRingFull`]; [`Error::DoorbellRefused`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel(ChannelHandle);

/// A call: its fast path out of line, so that it is in a program once.
macro_rules! outlined {
    ($name:ident: $call:ty) => {
        #[inline(never)]
        fn $name(ends: Ends, call: $call) -> Result<(), Error> {
            match channel::fast(ends, call) {
                Fast::Queued => Ok(()),
                Fast::Refused { sq_id } => Err(Error::DoorbellRefused { sq_id }),
                Fast::NotTaken => channel::transfer(ends, call.transfer(), <$call>::ENTRY),
            }
        }
    };
}
outlined!(write: Move<false>);
outlined!(read: Move<true>);
outlined!(record: Record);

impl Channel {
    /// Looks `handle` up in the channel table. Nothing outside the table is read, whatever the number.
    ///
    /// # Errors
    /// [`Error::NullChannel`], [`Error::NoCore`] outside a kernel, [`Error::BadChannel`] for a malformed, foreign or stale
    /// handle.
    pub fn from_handle(handle: ChannelHandle) -> Result<Self, Error> {
        if handle.0 == 0 {
            return Err(Error::NullChannel);
        }
        #[cfg(not(feature = "extern-abi"))]
        on_core(|core, _| core.device().channels().descriptor(handle).map(drop))?;
        Ok(Self(handle))
    }

    /// The handle that the channel was looked up by.
    pub fn handle(&self) -> ChannelHandle {
        self.0
    }

    fn ends(&self, thread: &Thread) -> Ends {
        Ends { thread: thread.handle(), channel: self.0 }
    }

    /// Queues a write of `len` bytes from `src` to `dst` at the peer. `len` 0 queues nothing.
    ///
    /// # Errors
    /// As for all [operations](Self).
    #[inline]
    pub fn write(&self, thread: &Thread, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
        write(self.ends(thread), Move { dst, src, len })
    }

    /// Queues a read of `len` bytes from `src` at the peer to `dst`. `len` 0 queues nothing.
    ///
    /// # Errors
    /// As for all [operations](Self).
    #[inline]
    pub fn read(&self, thread: &Thread, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
        read(self.ends(thread), Move { dst, src, len })
    }

    /// Queues `dst[i] = op(dst[i], src[i])` for `count` elements, `dst` at the peer.
    ///
    /// # Errors
    /// As for all [operations](Self).
    pub fn write_reduce(
        &self,
        thread: &Thread,
        dst: DeviceAddr,
        src: DeviceAddr,
        count: u64,
        data_type: DataType,
        op: ReduceOp,
    ) -> Result<(), Error> {
        let kind = TransferKind::Write;
        let transfer = Transfer::Reduce { kind, dst, src, count, data_type, op, notify: None };
        channel::transfer(self.ends(thread), transfer, EntryPoint::WRITE_REDUCE)
    }

    /// Queues `dst[i] = op(dst[i], src[i])` for `count` elements, `src` at the peer.
    ///
    /// # Errors
    /// As for all [operations](Self).
    pub fn read_reduce(
        &self,
        thread: &Thread,
        dst: DeviceAddr,
        src: DeviceAddr,
        count: u64,
        data_type: DataType,
        op: ReduceOp,
    ) -> Result<(), Error> {
        let kind = TransferKind::Read;
        let transfer = Transfer::Reduce { kind, dst, src, count, data_type, op, notify: None };
        channel::transfer(self.ends(thread), transfer, EntryPoint::READ_REDUCE)
    }

    /// [`write`](Self::write), after which notify `notify` of the peer is set, also for `len` 0.
    ///
    /// # Errors
    /// As for all [operations](Self).
    pub fn write_with_notify(
        &self,
        thread: &Thread,
        dst: DeviceAddr,
        src: DeviceAddr,
        len: u64,
        notify: u32,
    ) -> Result<(), Error> {
        let transfer = Transfer::Copy { kind: TransferKind::Write, dst, src, len, notify: Some(notify) };
        channel::transfer(self.ends(thread), transfer, EntryPoint::WRITE_WITH_NOTIFY)
    }

    /// A reduce into the peer's memory, after which notify `notify` of the peer is set: a [`Transfer::Reduce`] that writes.
    ///
    /// # Errors
    /// As for all [operations](Self); [`Error::BadTransferKind`] for anything else than that.
    pub fn write_reduce_with_notify(&self, thread: &Thread, transfer: Transfer) -> Result<(), Error> {
        match transfer {
            Transfer::Reduce { kind: TransferKind::Write, notify: Some(_), .. } => {
                channel::transfer(self.ends(thread), transfer, EntryPoint::WRITE_REDUCE_WITH_NOTIFY)
            }
            _ => Err(Error::BadTransferKind { index: 0, kind: -1 }),
        }
    }

    /// Queues a task that sets notify `index` of the peer.
    ///
    /// # Errors
    /// As for all [operations](Self).
    #[inline]
    pub fn notify_record(&self, thread: &Thread, index: u32) -> Result<(), Error> {
        record(self.ends(thread), Record { index })
    }

    /// Queues a task that waits for notify `index` of this end for up to `timeout_s` seconds (0 = without limit) and clears
    /// it. The caller does not wait.
    ///
    /// # Errors
    /// As for all [operations](Self).
    pub fn notify_wait(&self, thread: &Thread, index: u32, timeout_s: u32) -> Result<(), Error> {
        channel::wait(self.ends(thread), index, Some(timeout_s))
    }

    /// [`notify_wait`](Self::notify_wait) with the limit that is set for the core, see [`timeout`](crate::timeout).
    ///
    /// # Errors
    /// As for all [operations](Self).
    pub fn notify_wait_default(&self, thread: &Thread, index: u32) -> Result<(), Error> {
        channel::wait(self.ends(thread), index, None)
    }

    /// Orders the next transfer or batch of the channel behind all transfers before it. Queues nothing.
    ///
    /// # Errors
    /// As for all [operations](Self).
    pub fn fence(&self, thread: &Thread) -> Result<(), Error> {
        channel::fence(self.ends(thread))
    }

    /// Queues transfers with one doorbell. They are submitted in order, but run in any: only the last one waits for the
    /// others. All are checked before the first is queued.
    ///
    /// # Errors
    /// As for all [operations](Self); [`Error::NoTransfers`].
    pub fn batch(&self, thread: &Thread, transfers: &[Transfer]) -> Result<(), Error> {
        channel::batch(self.ends(thread), &Slice(transfers))
    }
}

/// Transfers of a slice.
struct Slice<'t>(&'t [Transfer]);

impl super::work::Transfers for Slice<'_> {
    fn count(&self) -> u32 {
        super::work::Transfers::count(self.0)
    }

    fn get(&self, index: u32) -> Result<Transfer, Error> {
        super::work::Transfers::get(self.0, index)
    }
}
