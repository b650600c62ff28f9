//! Register block of a submission queue in memory, for platforms that have one. Layout: [`spec::queue`](crate::spec::queue).

use core::mem::offset_of;

use volatile_register::{RO, RW};

use crate::spec::queue::{DOORBELL_OFFSET, Doorbell, HEAD_OFFSET, QueueStatus, SQ_REGS_STRIDE, STATUS_OFFSET};

/// The block. Reads have no effect.
#[repr(C, align(64))]
pub struct SqRegs {
    /// Written by us alone. A store rings the doorbell.
    doorbell: RW<u64>,
    /// Next entry that the device fetches.
    head: RO<u32>,
    reserved: u32,
    /// What the host lets the queue do.
    status: RO<u64>,
}
const _: () = assert!(size_of::<SqRegs>() as u64 == SQ_REGS_STRIDE);
const _: () = assert!(offset_of!(SqRegs, doorbell) == DOORBELL_OFFSET);
const _: () = assert!(offset_of!(SqRegs, head) == HEAD_OFFSET);
const _: () = assert!(offset_of!(SqRegs, status) == STATUS_OFFSET);

impl SqRegs {
    /// The block at `addr`.
    ///
    /// # Safety
    /// `addr` is the 64-byte aligned address of a register block that stays mapped for `'a`, and only one core at a time
    /// rings it.
    #[inline]
    pub unsafe fn at<'a>(addr: u64) -> &'a Self {
        // SAFETY: the caller owes a mapped, aligned block; all fields are volatile cells, so the reference claims nothing
        // about their values.
        unsafe { &*core::ptr::with_exposed_provenance(addr as usize) }
    }

    /// Entry that the device fetches next, as it says.
    #[inline]
    pub fn head(&self) -> u32 {
        self.head.read()
    }

    /// What the host lets the queue do.
    #[inline]
    pub fn status(&self) -> QueueStatus {
        QueueStatus(self.status.read())
    }

    /// Rings the doorbell: publishes `tail` and counts the store, in one 64-bit store.
    #[inline]
    pub fn ring(&self, tail: u32) {
        let count = Doorbell::from_bits(self.doorbell.read()).count().wrapping_add(1);
        // SAFETY: the word has one writer, the caller of `ring` (contract of `at`); the host only reads it.
        unsafe { self.doorbell.write(Doorbell::new().with_tail(tail).with_count(count).into_bits()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_stores_tail_low_and_counts_high() {
        #[repr(align(64))]
        struct Block([u64; 8]);
        let mut block = Block([0x0000_0001_0000_0009, 7, 0x0301, 0, 0, 0, 0, 0]);
        // SAFETY: the block is aligned, lives to the end of the test and is rung from here alone.
        let regs = unsafe { SqRegs::at((&raw mut block).expose_provenance() as u64) };
        regs.ring(3);
        let (head, status) = (regs.head(), regs.status());
        assert_eq!((head, status), (7, QueueStatus::ENABLED.with_epoch(3)));
        assert_eq!(block.0[0], 0x0000_0002_0000_0003);
    }

    #[test]
    fn count_wraps() {
        #[repr(align(64))]
        struct Block([u64; 8]);
        let mut block = Block([0xffff_ffff_0000_0000, 0, 0, 0, 0, 0, 0, 0]);
        // SAFETY: the block is aligned, lives to the end of the test and is rung from here alone.
        unsafe { SqRegs::at((&raw mut block).expose_provenance() as u64) }.ring(1);
        assert_eq!(block.0[0], 1);
    }
}
