//! Reader of the records of calls that a core writes, see [`spec::record`](hcomm_aicpu::spec::record).

use std::mem::offset_of;
use std::sync::atomic::Ordering;

use hcomm_aicpu::spec::map::RECORD_PHYS;
use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::spec::record::{CallRecord, EntryPoint, RECORD_FRAMES, RECORD_STRIDE, RECORDS, RecordRing};

use super::memory::Memory;

/// Physical address of the ring of `core`.
pub fn ring_phys(core: usize) -> u64 {
    RECORD_PHYS + core as u64 * RECORD_STRIDE
}

/// The one reader of a core's ring. The core waits while its ring is full.
#[derive(Clone, Copy, Debug)]
pub struct RecordReader {
    phys: u64,
    /// Records that were taken.
    tail: u64,
}

impl RecordReader {
    /// Reader of a ring that is all zero.
    pub fn new(core: usize) -> Self {
        Self { phys: ring_phys(core), tail: 0 }
    }

    /// Reader that goes on where the last reader of the same core's ring has ended.
    pub fn resume<M: Memory>(memory: &M, core: usize) -> Self {
        let phys = ring_phys(core);
        let tail = memory.word64(phys + offset_of!(RecordRing, tail) as u64).load(Ordering::Relaxed);
        Self { phys, tail }
    }

    /// Takes the oldest record, if there is one.
    pub fn next<M: Memory>(&mut self, memory: &M) -> Option<CallRecord> {
        let word = |offset: usize| memory.word64(self.phys + offset as u64);
        // Acquire pairs with the release store of the core: the record is there.
        let head = word(offset_of!(RecordRing, head)).load(Ordering::Acquire);
        match head.wrapping_sub(self.tail) {
            0 => return None,
            // The program on the core is not trusted to count.
            new if new > RECORDS as u64 => {
                log::warn!("record ring of a core: {new} new records, {RECORDS} fit; they are skipped");
                self.take_up_to(memory, head);
                return None;
            }
            _ => {}
        }
        let slot = offset_of!(RecordRing, slots) + (self.tail % RECORDS as u64) as usize * size_of::<CallRecord>();
        let load = |offset: usize| word(slot + offset).load(Ordering::Relaxed);
        let halves = |offset: usize| {
            let word = load(offset);
            (word as u32, (word >> 32) as u32)
        };
        const { assert!(offset_of!(CallRecord, sq_id) == offset_of!(CallRecord, entry) + 4) };
        const { assert!(offset_of!(CallRecord, count) == offset_of!(CallRecord, first) + 4) };
        let (entry, sq_id) = halves(offset_of!(CallRecord, entry));
        let (first, count) = halves(offset_of!(CallRecord, first));
        let mut frames = [0; RECORD_FRAMES];
        for (index, frame) in frames.iter_mut().enumerate() {
            *frame = load(offset_of!(CallRecord, frames) + index * 8);
        }
        let record = CallRecord {
            seq: load(offset_of!(CallRecord, seq)),
            status: QueueStatus(load(offset_of!(CallRecord, status))),
            entry: EntryPoint(entry),
            sq_id,
            first,
            count,
            reserved: 0,
            frames,
        };
        self.take_up_to(memory, self.tail + 1);
        Some(record)
    }

    fn take_up_to<M: Memory>(&mut self, memory: &M, tail: u64) {
        self.tail = tail;
        // Release pairs with the acquire of the core: it writes over a record only after we have read it.
        memory.word64(self.phys + offset_of!(RecordRing, tail) as u64).store(tail, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64};

    use super::*;
    use crate::memory::OutsideHbm;
    use crate::reduce::Reduce;

    /// The ring of core 1 and nothing else.
    struct OneRing(Vec<AtomicU64>);

    impl Memory for OneRing {
        fn load_sqe(&self, _addr: u64) -> Result<[u8; 64], OutsideHbm> {
            unreachable!("no hbm")
        }
        fn copy(&self, _dst: u64, _src: u64, _len: u64) -> Result<(), OutsideHbm> {
            unreachable!("no hbm")
        }
        fn reduce(&self, _dst: u64, _src: u64, _len: u64, _reduce: Reduce) -> Result<(), OutsideHbm> {
            unreachable!("no hbm")
        }
        fn contains(&self, _addr: u64) -> bool {
            unreachable!("no hbm")
        }
        fn copy_from(&self, _dst: u64, _from: &Self, _src: u64, _len: u64) -> Result<(), OutsideHbm> {
            unreachable!("no hbm")
        }
        fn reduce_from(&self, _: u64, _: &Self, _: u64, _: u64, _: Reduce) -> Result<(), OutsideHbm> {
            unreachable!("no hbm")
        }
        fn write_value(&self, _addr: u64, _value: u32) -> Result<(), OutsideHbm> {
            unreachable!("no hbm")
        }
        fn read_hbm(&self, _addr: u64, _out: &mut [u8]) -> Result<(), OutsideHbm> {
            unreachable!("records are not in hbm")
        }

        fn write_hbm(&self, _addr: u64, _bytes: &[u8]) -> Result<(), OutsideHbm> {
            unreachable!("no hbm")
        }
        fn publish_hbm_word(&self, _addr: u64, _value: u64) -> Result<(), OutsideHbm> {
            unreachable!("no hbm")
        }
        fn word64(&self, phys: u64) -> &AtomicU64 {
            &self.0[(phys - ring_phys(1)) as usize / 8]
        }
        fn word32(&self, _phys: u64) -> &AtomicU32 {
            unreachable!("words of 64 bits")
        }
    }

    impl OneRing {
        fn new() -> Self {
            Self((0..RECORD_STRIDE / 8).map(|_| AtomicU64::new(0)).collect())
        }

        fn store(&self, offset: usize, value: u64) {
            self.0[offset / 8].store(value, Ordering::Relaxed);
        }

        fn set_head(&self, head: u64) {
            self.store(offset_of!(RecordRing, head), head);
        }

        fn tail(&self) -> u64 {
            self.0[offset_of!(RecordRing, tail) / 8].load(Ordering::Relaxed)
        }

        /// Writes record `number`, counted from 0.
        fn put(&self, number: u64) {
            let slot = offset_of!(RecordRing, slots) + (number % RECORDS as u64) as usize * size_of::<CallRecord>();
            self.store(slot + offset_of!(CallRecord, seq), number + 1);
            self.store(slot + offset_of!(CallRecord, entry), 7 << 32 | 3);
            self.store(slot + offset_of!(CallRecord, first), (2 << 32) | (number % 5));
            self.store(slot + offset_of!(CallRecord, frames), 0x4020_0000 + number);
            self.set_head(number + 1);
        }
    }

    #[test]
    fn records_are_taken_once_and_in_order_around_the_end_of_the_ring() {
        let memory = OneRing::new();
        let mut reader = RecordReader::new(1);
        assert!(reader.next(&memory).is_none());
        for number in 0..2 * RECORDS as u64 + 3 {
            memory.put(number);
            let record = reader.next(&memory).unwrap();
            let found =
                (record.seq, record.entry, record.sq_id, record.first, record.count, record.frames[..2].to_vec());
            let frames = vec![0x4020_0000 + number, 0];
            assert_eq!(found, (number + 1, EntryPoint(3), 7, (number % 5) as u32, 2, frames));
            assert_eq!(memory.tail(), number + 1, "the core may use the place again");
            assert!(reader.next(&memory).is_none());
        }
        memory.put(memory.tail());
        assert_eq!(RecordReader::resume(&memory, 1).next(&memory).map(|record| record.seq), Some(memory.tail()));
    }

    #[test]
    fn head_that_can_not_be_is_skipped() {
        let memory = OneRing::new();
        let mut reader = RecordReader::new(1);
        memory.set_head(RECORDS as u64 + 1);
        assert!(reader.next(&memory).is_none());
        assert_eq!(memory.tail(), RECORDS as u64 + 1);
        memory.put(RECORDS as u64 + 1);
        assert!(reader.next(&memory).is_some());
    }
}
