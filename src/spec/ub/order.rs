//! How entries are ordered, and how an operation is cut into slices.

use core::num::NonZeroU32;

use crate::spec::DeviceAddr;

/// Most bytes that one entry moves: 256 MiB. A channel may allow less.
pub const MAX_SLICE: NonZeroU32 = NonZeroU32::new(256 << 20).unwrap();

/// Place of an entry among those of its channel. Open: two bits, of which 3 means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u8);

impl Place {
    /// Held against nothing.
    pub const NONE: Self = Self(0);
    /// Held only against later strong entries.
    pub const RELAXED: Self = Self(1);
    /// Passes no relaxed entry before it.
    pub const STRONG: Self = Self(2);
}

/// The order bits of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its place.
    pub place: Place,
    /// Its completion comes in order.
    pub completion: bool,
    /// It waits for the answers of all earlier reads.
    pub fence: bool,
    /// It reports its completion, which ends the doorbell descriptor.
    pub cqe: bool,
}

impl Order {
    /// The last entry of a doorbell: strong, fenced, and its completion is reported.
    pub const LAST: Self = Self { place: Place::STRONG, completion: true, fence: true, cqe: true };
}

/// Where an operation stands, which decides the order bits of its slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// By itself, with a doorbell of its own.
    Alone,
    /// By itself, the first after a fence.
    AfterFence,
    /// In a batch, not its last operation.
    InBatch,
    /// Last operation of a batch.
    EndOfBatch,
}

impl Sequence {
    /// Order bits of a slice that is the first, the last, both or none of its operation.
    #[inline]
    pub const fn order(self, is_first: bool, is_last: bool) -> Order {
        match self {
            Self::InBatch => Order { place: Place::RELAXED, completion: false, fence: true, cqe: false },
            Self::AfterFence | Self::EndOfBatch => Order { cqe: is_last, ..Order::LAST },
            Self::Alone if is_last => Order::LAST,
            Self::Alone => Order { place: Place::RELAXED, completion: is_first, fence: is_first, cqe: false },
        }
    }

    /// Order bits of a notify record. Index 1 announces data: in the middle of a batch it is strong and completes all the
    /// same, so that the doorbell has two completions.
    #[inline]
    pub const fn record_order(self, notify_index: u32) -> Order {
        match self {
            Self::InBatch if notify_index != 1 => self.order(true, true),
            _ => Order::LAST,
        }
    }
}

/// One entry's part of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// First byte at the peer.
    pub remote: DeviceAddr,
    /// First byte here.
    pub local: DeviceAddr,
    /// Bytes, at least 1.
    pub len: u32,
    /// Its order bits.
    pub order: Order,
    /// It is the last one of its operation.
    pub is_last: bool,
}

/// The slices of one operation, in order. There is none for a length of 0.
#[derive(Clone, Debug)]
pub struct Slices {
    remote: DeviceAddr,
    local: DeviceAddr,
    len: u64,
    done: u64,
    max: NonZeroU32,
    sequence: Sequence,
}

impl Slices {
    /// `len` bytes cut after each `max`. The caller has checked that neither range goes past 2^64.
    pub const fn new(remote: DeviceAddr, local: DeviceAddr, len: u64, max: NonZeroU32, sequence: Sequence) -> Self {
        Self { remote, local, len, done: 0, max, sequence }
    }
}

impl Iterator for Slices {
    type Item = Slice;

    fn next(&mut self) -> Option<Slice> {
        let left = self.len - self.done;
        if left == 0 {
            return None;
        }
        let len = left.min(self.max.get().into());
        let is_last = len == left;
        let at = |addr: DeviceAddr| DeviceAddr(addr.0.wrapping_add(self.done));
        let order = self.sequence.order(self.done == 0, is_last);
        let slice = Slice { remote: at(self.remote), local: at(self.local), len: len as u32, order, is_last };
        self.done += len;
        Some(slice)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn bits(order: Order) -> [u8; 4] {
        [order.place.0, order.completion.into(), order.fence.into(), order.cqe.into()]
    }

    fn slices(len: u64, max: u32, sequence: Sequence) -> Vec<Slice> {
        Slices::new(DeviceAddr(0x1000), DeviceAddr(0x9000), len, NonZeroU32::new(max).unwrap(), sequence).collect()
    }

    #[test]
    fn order_bits_of_every_place() {
        let rows = [
            (Sequence::Alone, [[1, 1, 1, 0], [1, 0, 0, 0], [2, 1, 1, 1]]),
            (Sequence::AfterFence, [[2, 1, 1, 0], [2, 1, 1, 0], [2, 1, 1, 1]]),
            (Sequence::InBatch, [[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0]]),
            (Sequence::EndOfBatch, [[2, 1, 1, 0], [2, 1, 1, 0], [2, 1, 1, 1]]),
        ];
        for (sequence, expected) in rows {
            let orders: Vec<_> = slices(12, 4, sequence).iter().map(|slice| bits(slice.order)).collect();
            assert_eq!(orders, expected, "{sequence:?}");
            let [only] = slices(4, 4, sequence)[..] else { panic!("one slice") };
            assert_eq!(bits(only.order), expected[2], "{sequence:?}");
        }
    }

    #[test]
    fn record_is_strong_unless_it_stands_in_a_batch_with_another_index_than_1() {
        for sequence in [Sequence::Alone, Sequence::AfterFence, Sequence::InBatch, Sequence::EndOfBatch] {
            for index in [0, 1, 2, 63] {
                let is_relaxed = sequence == Sequence::InBatch && index != 1;
                let expected = if is_relaxed { [1, 0, 1, 0] } else { [2, 1, 1, 1] };
                assert_eq!(bits(sequence.record_order(index)), expected, "{sequence:?}, index {index}");
            }
        }
    }

    #[test]
    fn slices_cover_every_byte_once_in_order() {
        for (len, max, expected) in [
            (0, 4096, &[][..]),
            (1, 4096, &[1]),
            (4096, 4096, &[4096]),
            (10_000, 4096, &[4096, 4096, 1808]),
            ((4 << 30) + 16, MAX_SLICE.get(), &[vec![MAX_SLICE.get(); 16], vec![16]].concat()),
        ] {
            let mut offset = 0;
            let slices = slices(len, max, Sequence::Alone);
            for slice in &slices {
                assert_eq!((slice.remote.0, slice.local.0), (0x1000 + offset, 0x9000 + offset));
                offset += u64::from(slice.len);
                assert_eq!(slice.is_last, offset == len);
            }
            assert_eq!(slices.iter().map(|slice| slice.len).collect::<Vec<_>>(), expected);
        }
    }
}
