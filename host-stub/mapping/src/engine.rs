//! What engines do with the memory of a device: copy and reduce.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::FallocateFlags;

use super::large_copy::{LINE_LEN, prefetch};
use super::shared_memory::{HOLE_AWARE_LEN, SharedMemory};
use hcomm_sim::memory::{Memory, OutsideHbm};
use hcomm_sim::reduce::{BLOCK_LEN, Block, Reduce};

impl SharedMemory {
    fn copy_bytes(&self, dst: u64, src: u64, len: u64) -> Result<(), OutsideHbm> {
        let (to, from) = (self.hbm_ptr(dst, len)?, self.hbm_ptr(src, len)?);
        // SAFETY: `hbm_ptr` checked that both ranges are mapped; `copy` allows overlap. Another thread may write them at the same
        // time: wrong bytes, as on the device, but no reference is ever made to them.
        unsafe { std::ptr::copy(from, to, len as usize) };
        Ok(())
    }
}

impl Memory for SharedMemory {
    fn load_sqe(&self, addr: u64) -> Result<[u8; 64], OutsideHbm> {
        let ptr = self.hbm_ptr(addr, 64)?;
        if !addr.is_multiple_of(8) {
            return Err(OutsideHbm { addr, len: 64 });
        }
        let mut sqe = [0; 64];
        for (index, word) in sqe.chunks_exact_mut(8).enumerate() {
            // SAFETY: `hbm_ptr` checked that the 64 bytes are mapped, and the address is a multiple of 8.
            let value = unsafe { ptr.cast::<u64>().add(index).read_volatile() };
            word.copy_from_slice(&value.to_le_bytes());
        }
        Ok(sqe)
    }

    fn copy(&self, dst: u64, src: u64, len: u64) -> Result<(), OutsideHbm> {
        self.hbm_ptr(dst, len)?;
        self.hbm_ptr(src, len)?;
        if dst == src {
            return Ok(());
        }
        if len >= HOLE_AWARE_LEN && dst.abs_diff(src) >= len {
            return self.copy_extents(dst, src, len);
        }
        self.copy_bytes(dst, src, len)
    }

    fn reduce(&self, dst: u64, src: u64, len: u64, reduce: Reduce) -> Result<(), OutsideHbm> {
        self.reduce_from(dst, self, src, len, reduce)
    }

    fn contains(&self, addr: u64) -> bool {
        self.hbm().contains(&addr)
    }

    fn copy_from(&self, dst: u64, from: &Self, src: u64, len: u64) -> Result<(), OutsideHbm> {
        let (to, from) = (self.hbm_ptr(dst, len)?, from.hbm_ptr(src, len)?);
        // SAFETY: `hbm_ptr` checked that both ranges are mapped, each in its own device; `copy` allows overlap. Another thread may
        // write them at the same time: wrong bytes, as on the device, but no reference is ever made to them.
        unsafe { std::ptr::copy(from, to, len as usize) };
        Ok(())
    }

    fn reduce_from(&self, dst: u64, other: &Self, src: u64, len: u64, reduce: Reduce) -> Result<(), OutsideHbm> {
        let (to, from) = (self.hbm_ptr(dst, len)?, other.hbm_ptr(src, len)?);
        // Both operands go through blocks of our own: no reference is ever made to memory that others write.
        let (mut left, mut right) = (Block([0; BLOCK_LEN]), Block([0; BLOCK_LEN]));
        for done in (0..len).step_by(BLOCK_LEN) {
            let part = (len - done).min(BLOCK_LEN as u64) as usize;
            let next = done + BLOCK_LEN as u64;
            if next < len {
                // Else nothing would be on its way from memory while a block is computed.
                for line in (next..next + BLOCK_LEN as u64).step_by(LINE_LEN) {
                    prefetch(to.wrapping_add(line as usize));
                    prefetch(from.wrapping_add(line as usize));
                }
            }
            self.read(dst + done, &mut left.0[..part])?;
            other.read(src + done, &mut right.0[..part])?;
            reduce.apply(&mut left, &right, part);
            self.write(dst + done, &left.0[..part])?;
        }
        Ok(())
    }

    fn write_value(&self, addr: u64, value: u32) -> Result<(), OutsideHbm> {
        self.write(addr, &value.to_le_bytes())
    }

    fn read_hbm(&self, addr: u64, out: &mut [u8]) -> Result<(), OutsideHbm> {
        self.read(addr, out)
    }

    fn first_data(&self, addr: u64, len: u64) -> Option<Range<u64>> {
        SharedMemory::first_data(self, addr, len)
    }

    fn write_hbm(&self, addr: u64, bytes: &[u8]) -> Result<(), OutsideHbm> {
        self.write(addr, bytes)
    }

    fn publish_hbm_word(&self, addr: u64, value: u64) -> Result<(), OutsideHbm> {
        // Also ordered with later stores: a tag is cleared before its queue is freed.
        self.hbm_word64(addr)?.store(value, Ordering::SeqCst);
        Ok(())
    }

    fn discard(&self, addr: u64, len: u64) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if self.hbm_ptr(addr, len).is_ok() {
            // Memory that can't be given back stays as it is.
            let _ = rustix::fs::fallocate(self.file(), flags, self.offset(addr), len);
        }
    }

    fn word64(&self, phys: u64) -> &AtomicU64 {
        let ptr = self.low_ptr(phys, 8, 8);
        // SAFETY: mapped and aligned (`low_ptr`), and alive as long as `self`; atomics may be shared.
        unsafe { AtomicU64::from_ptr(ptr.cast()) }
    }

    fn word32(&self, phys: u64) -> &AtomicU32 {
        let ptr = self.low_ptr(phys, 4, 4);
        // SAFETY: mapped and aligned (`low_ptr`), and alive as long as `self`; atomics may be shared.
        unsafe { AtomicU32::from_ptr(ptr.cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_reduce_is_exact_at_any_alignment() {
        let memory = SharedMemory::new(16 << 20).unwrap();
        let (src, dst) = (memory.hbm_base() + 4096 + 3, memory.hbm_base() + (8 << 20) + 1);
        let sum = Reduce::from_opcode(0x21).unwrap();
        let words = |from: u32, len: usize| -> Vec<u8> { (from..).take(len / 4).flat_map(u32::to_le_bytes).collect() };
        for len in [4, BLOCK_LEN - 4, BLOCK_LEN, BLOCK_LEN + 4, 100_000] {
            memory.write(src, &words(7, len)).unwrap();
            memory.write(dst, &words(1000, len + 64)).unwrap();
            memory.reduce(dst, src, len as u64, sum).unwrap();
            let mut out = vec![0; len + 64];
            memory.read(dst, &mut out).unwrap();
            let sums = (0..len as u32 / 4).flat_map(|index| (1007 + 2 * index).to_le_bytes());
            let expected: Vec<u8> = sums.chain(words(1000 + len as u32 / 4, 64)).collect();
            assert!(out == expected, "{len}");
            // With itself: each element twice.
            memory.reduce(dst, dst, len as u64, sum).unwrap();
            memory.read(dst, &mut out).unwrap();
            let sums = (0..len as u32 / 4).flat_map(|index| (2014 + 4 * index).to_le_bytes());
            let expected: Vec<u8> = sums.chain(words(1000 + len as u32 / 4, 64)).collect();
            assert!(out == expected, "{len} with itself");
        }
    }
}
