//! Where the entries of a submission queue are, and how they follow each other.

use crate::error::QueueField;
use crate::port::QueueId;
use crate::spec::queue::MIN_DEPTH;
use crate::spec::{DeviceAddr, SQE_SIZE};
use crate::stop::Stop;

/// A ring as the descriptor of its thread gives it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Ring {
    pub(crate) base: DeviceAddr,
    pub(crate) queue: QueueId,
    pub(crate) depth: u32,
    /// Low 16 bits of the stream's number: as much as a descriptor holds.
    pub(crate) stream_id: u16,
}

impl Ring {
    /// Of a queue without a thread.
    pub(crate) const NONE: Self = Self { base: DeviceAddr(0), depth: 0, queue: QueueId::NONE, stream_id: 0 };

    /// # Errors
    /// [`Error::BadQueue`](crate::Error::BadQueue): a depth below [`MIN_DEPTH`], a base that is null or not aligned to an entry, or a ring that runs past
    /// the end of the address space.
    pub(crate) fn new(base: DeviceAddr, depth: u32, queue: QueueId, stream_id: u32) -> Result<Self, Stop> {
        let (sq_id, entry) = (queue.sq_id(), SQE_SIZE as u64);
        if depth < MIN_DEPTH {
            return Err(Stop::bad_field(sq_id, QueueField::Depth, depth.into()));
        }
        if base.is_null() || !base.0.is_multiple_of(entry) || base.0.checked_add(u64::from(depth) * entry).is_none() {
            return Err(Stop::bad_field(sq_id, QueueField::RingAddress, base.0));
        }
        Ok(Self { base, depth, queue, stream_id: stream_id as u16 })
    }

    /// Entries from `from` up to `to`, both below the depth.
    pub(crate) fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { self.depth - from + to }
    }

    /// The entry after `index`.
    pub(crate) fn after(&self, index: u32) -> u32 {
        if index + 1 == self.depth { 0 } else { index + 1 }
    }

    /// Where entry `index` of a ring from `base` on is.
    #[inline(always)]
    pub(crate) fn slot(base: DeviceAddr, index: u32) -> DeviceAddr {
        DeviceAddr(base.0 + u64::from(index) * SQE_SIZE as u64)
    }
}
