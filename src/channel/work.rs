//! The transfers and records of one call, cut into entries.

use super::state::{Bound, Entry, Work};
use crate::error::Error;
use crate::spec::DeviceAddr;
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::ub::{Order, Sequence, UbReduce};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// From this device to the peer.
    Write,
    /// From the peer to this device.
    Read,
}

/// One transfer of a batch ([`Channel::batch`](crate::Channel::batch)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Moves `len` bytes.
    Copy {
        /// Which way.
        kind: TransferKind,
        /// First byte written: of the peer for a write.
        dst: DeviceAddr,
        /// First byte read: of the peer for a read.
        src: DeviceAddr,
        /// Bytes.
        len: u64,
        /// Notify of the peer that is set after that, of a write alone.
        notify: Option<u32>,
    },
    /// `dst[i] = op(dst[i], src[i])` for `count` elements.
    Reduce {
        /// Which way.
        kind: TransferKind,
        /// First byte written: of the peer for a write.
        dst: DeviceAddr,
        /// First byte read: of the peer for a read.
        src: DeviceAddr,
        /// Elements.
        count: u64,
        /// Their type.
        data_type: DataType,
        /// Operator.
        op: ReduceOp,
        /// Notify of the peer that is set after that, of a write alone.
        notify: Option<u32>,
    },
    /// Sets a notify of the peer.
    Record {
        /// Its index.
        notify: u32,
    },
}

/// What one of them asks for, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// `len` bytes; of 0 nothing is moved, but a notify is set.
    Move {
        kind: TransferKind,
        remote: DeviceAddr,
        local: DeviceAddr,
        len: u64,
        reduce: Option<UbReduce>,
        notify: Option<u32>,
    },
    /// A record.
    Record { notify: u32 },
}

impl Transfer {
    /// # Errors
    /// [`Error::NullDst`], [`Error::NullSrc`].
    pub(crate) fn check_nulls(&self) -> Result<(), Error> {
        match *self {
            Self::Copy { dst, .. } | Self::Reduce { dst, .. } if dst.is_null() => Err(Error::NullDst),
            Self::Copy { src, .. } | Self::Reduce { src, .. } if src.is_null() => Err(Error::NullSrc),
            _ => Ok(()),
        }
    }

    /// Checks it for a channel, nulls apart.
    ///
    /// # Errors
    /// In this order: [`Error::ChannelReduce`], [`Error::CountTooLarge`], [`Error::BadPeerNotify`],
    /// [`Error::AddressOverflow`], [`Error::RemoteRange`].
    #[inline]
    pub(crate) fn item(&self, bound: &Bound) -> Result<Item, Error> {
        let (kind, dst, src, len, reduce, notify) = match *self {
            Self::Record { notify } => {
                bound.check_peer_notify(notify)?;
                return Ok(Item::Record { notify });
            }
            Self::Copy { kind, dst, src, len, notify } => (kind, dst, src, len, None, notify),
            Self::Reduce { kind, dst, src, count, data_type, op, notify } => {
                let reduce = UbReduce::new(op, data_type).ok_or(Error::ChannelReduce { op, data_type })?;
                let size = 1 << reduce.size_log2();
                let len = count.checked_mul(size).ok_or(Error::CountTooLarge { count, size })?;
                (kind, dst, src, len, Some(reduce), notify)
            }
        };
        if let Some(index) = notify {
            bound.check_peer_notify(index)?;
        }
        for addr in [dst, src] {
            if len.checked_sub(1).is_some_and(|last| addr.0.checked_add(last).is_none()) {
                return Err(Error::AddressOverflow { addr, len });
            }
        }
        let (remote, local) = match kind {
            TransferKind::Write => (dst, src),
            TransferKind::Read => (src, dst),
        };
        bound.check_remote(remote, len)?;
        Ok(Item::Move { kind, remote, local, len, reduce, notify })
    }
}

/// The transfers of one call. Each was checked once before it is asked for here.
pub(crate) trait Transfers {
    /// How many.
    fn count(&self) -> u32;
    /// One of them.
    ///
    /// # Errors
    /// One that the interface does not define.
    fn get(&self, index: u32) -> Result<Transfer, Error>;
}

impl Transfers for [Transfer] {
    fn count(&self) -> u32 {
        self.len() as u32
    }

    fn get(&self, index: u32) -> Result<Transfer, Error> {
        self.get(index as usize).copied().ok_or(Error::NoTransfers)
    }
}

/// Entries that are left of a call, in order.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'t> {
    transfers: &'t dyn Transfers,
    bound: &'t Bound,
    is_batch: bool,
    /// The last one that posts an entry; entries are left while `at` is not above it.
    last: u32,
    /// Whether any does.
    posts: bool,
    /// The one that is next, and its bytes that were done.
    at: u32,
    done: u64,
    /// The call has consumed a fence.
    pub(crate) is_fenced: bool,
    has_started: bool,
}

impl<'t> Cursor<'t> {
    /// Checks all transfers.
    ///
    /// # Errors
    /// Of the first that is wrong.
    pub(crate) fn new(transfers: &'t dyn Transfers, bound: &'t Bound, is_batch: bool) -> Result<Self, Error> {
        let mut cursor = Self {
            transfers,
            bound,
            is_batch,
            last: 0,
            posts: false,
            at: 0,
            done: 0,
            is_fenced: false,
            has_started: false,
        };
        for index in 0..transfers.count() {
            let item = transfers.get(index)?.item(bound)?;
            if !matches!(item, Item::Move { len: 0, notify: None, .. }) {
                (cursor.last, cursor.posts) = (index, true);
            }
        }
        Ok(cursor)
    }

    /// Whether no entry is left.
    pub(crate) fn is_done(&self) -> bool {
        !self.posts || self.at > self.last
    }

    /// Whether the call has anything that consumes a fence: everything but a single record.
    pub(crate) fn consumes_fence(&self) -> bool {
        let is_record = |index| matches!(self.item(index), Some(Item::Record { .. } | Item::Move { len: 0, .. }));
        self.posts && (self.is_batch || !is_record(0))
    }

    fn item(&self, index: u32) -> Option<Item> {
        self.transfers.get(index).ok()?.item(self.bound).ok()
    }

    /// Whether an entry was taken.
    pub(crate) fn has_started(&self) -> bool {
        self.has_started
    }

    /// Blocks of the entries that are left.
    pub(crate) fn blocks(&self) -> u64 {
        if self.is_done() {
            return 0;
        }
        let (mut blocks, mut done) = (0_u64, self.done);
        for index in self.at..=self.last {
            blocks += match self.item(index) {
                None | Some(Item::Move { len: 0, notify: None, .. }) => 0,
                Some(Item::Record { .. } | Item::Move { len: 0, .. }) => 1,
                Some(Item::Move { len, notify, .. }) => {
                    (len - done).div_ceil(self.bound.max_slice.get().into()) + u64::from(notify.is_some())
                }
            };
            done = 0;
        }
        blocks
    }

    /// The next entry.
    pub(crate) fn next(&mut self) -> Option<Entry> {
        while !self.is_done() {
            let (at, item) = (self.at, self.item(self.at));
            let is_last_item = at == self.last;
            let sequence = match (self.is_batch, self.is_fenced) {
                (true, _) if is_last_item => Sequence::EndOfBatch,
                (true, _) => Sequence::InBatch,
                (false, true) => Sequence::AfterFence,
                (false, false) => Sequence::Alone,
            };
            let (work, mut order) = match item {
                Some(Item::Record { notify } | Item::Move { len: 0, notify: Some(notify), .. }) => {
                    self.at += 1;
                    (Work::Record { notify }, sequence.record_order(notify))
                }
                Some(Item::Move { kind, remote, local, len, reduce, notify }) if len != 0 => {
                    let slice = (len - self.done).min(self.bound.max_slice.get().into());
                    let is_end = self.done + slice == len;
                    let order = sequence.order(self.done == 0, is_end);
                    let at = |addr: DeviceAddr| DeviceAddr(addr.0.wrapping_add(self.done));
                    let (remote, local, len) = (at(remote), at(local), slice as u32);
                    let work = match kind {
                        TransferKind::Write => {
                            Work::Write { remote, local, len, reduce, notify: notify.filter(|_| is_end) }
                        }
                        TransferKind::Read => Work::Read { remote, local, len, reduce },
                    };
                    (self.at, self.done) = if is_end { (self.at + 1, 0) } else { (self.at, self.done + slice) };
                    (work, order)
                }
                _ => {
                    self.at += 1;
                    continue;
                }
            };
            if self.is_batch && self.is_fenced && !self.has_started {
                // The first of a batch holds for all of it: the others wait behind it.
                order = Order { cqe: order.cqe, ..Order::LAST };
            }
            self.has_started = true;
            return Some(Entry { work, order });
        }
        None
    }
}
