//! Copies of large ranges: holes of the source stay holes, and bytes are stored past the caches.
//!
//! The rows "256 MiB copy" of `make bench` pay for this code (docs/performance.md).

use rustix::fs::SeekFrom;

use super::pages::{self, PAGE_LEN};
use super::shared_memory::SharedMemory;
use hcomm_sim::memory::OutsideHbm;

/// Bytes that are looked at for holes at a time.
const LOOK_LEN: u64 = 2 << 20;
/// Bytes of a cache line.
pub const LINE_LEN: usize = 64;

impl SharedMemory {
    /// Copies data and holes of the source. The ranges are inside HBM and do not overlap.
    pub(super) fn copy_extents(&self, dst: u64, src: u64, len: u64) -> Result<(), OutsideHbm> {
        let mut done = 0;
        while done < len {
            let at = self.offset(src) + done;
            let hole = match rustix::fs::seek(self.file(), SeekFrom::Data(at)) {
                Ok(data) => (data - at).min(len - done),
                Err(rustix::io::Errno::NXIO) => len - done,
                // No holes on this file system: all of it counts as data.
                Err(_) => 0,
            };
            if hole != 0 {
                self.punch(dst + done, hole)?;
                done += hole;
                continue;
            }
            let extent = self.data_len(src + done, (len - done).min(LOOK_LEN))?;
            self.copy_apart(dst + done, src + done, extent)?;
            done += extent;
        }
        Ok(())
    }

    /// How many of the `len` bytes at `addr`, whose page is data, are data without doubt.
    ///
    /// A page without a place in memory may be a hole, or swapped out. `SEEK_HOLE` would tell, but it goes through all pages
    /// up to the next hole, one by one: for 256 MiB that takes a quarter of the time of the copy.
    fn data_len(&self, addr: u64, len: u64) -> Result<u64, OutsideHbm> {
        let start = addr - addr % PAGE_LEN;
        let pages = (addr + len - start).div_ceil(PAGE_LEN);
        self.hbm_ptr(start, pages * PAGE_LEN)?;
        // At most LOOK_LEN bytes are at most one page more than the whole pages of LOOK_LEN, if they start inside a page.
        let mut resident = [0; (LOOK_LEN / PAGE_LEN) as usize + 1];
        let resident = &mut resident[..pages as usize];
        if !pages::look(start, resident) {
            return Ok(len);
        }
        let gap = resident[1..].iter().position(|page| page & 1 == 0);
        Ok(gap.map_or(len, |gap| start + (gap as u64 + 1) * PAGE_LEN - addr))
    }

    /// Copies large ranges that do not overlap.
    fn copy_apart(&self, dst: u64, src: u64, len: u64) -> Result<(), OutsideHbm> {
        let (to, from) = (self.hbm_ptr(dst, len)?, self.hbm_ptr(src, len)?);
        // SAFETY: `hbm_ptr` checked that both ranges are mapped; `Memory::copy`, that they do not overlap. No reference is made to
        // them: another processor may write them.
        unsafe { copy_past_caches(to, from, len as usize) };
        Ok(())
    }
}

/// Asks for the cache line at `ptr`: nothing happens if there is none.
pub fn prefetch(ptr: *const u8) {
    // SAFETY: a hint, which is no access as far as the language goes, and never faults.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(ptr.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = ptr;
}

/// Copies by stores that do not read the lines that they fill, four pages at a time while the next four are fetched. The C
/// library does so only with ranges that are as long as all the caches of the machine.
///
/// # Safety
/// Both ranges are mapped, and do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_past_caches(to: *mut u8, from: *const u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    const PAGE: usize = PAGE_LEN as usize;
    const VECTOR: usize = size_of::<__m128i>();

    // The stores need aligned addresses, and fill whole lines.
    let mut done = to.align_offset(LINE_LEN).min(len);
    // SAFETY: inside both ranges.
    unsafe { std::ptr::copy_nonoverlapping(from, to, done) };
    while len - done >= 4 * PAGE {
        for at in (0..PAGE).step_by(LINE_LEN) {
            for line in [at, PAGE + at, 2 * PAGE + at, 3 * PAGE + at] {
                prefetch(from.wrapping_add(done + 4 * PAGE + line));
                // SAFETY: four pages from `done` on are inside both ranges, and so is each line of them. `to` plus `done` is
                // a multiple of LINE_LEN.
                unsafe {
                    let (to, from) = (to.add(done + line), from.add(done + line));
                    let words: [__m128i; LINE_LEN / VECTOR] =
                        std::array::from_fn(|index| _mm_loadu_si128(from.add(index * VECTOR).cast()));
                    for (index, word) in words.into_iter().enumerate() {
                        _mm_stream_si128(to.add(index * VECTOR).cast(), word);
                    }
                }
            }
        }
        done += 4 * PAGE;
    }
    // SAFETY: what is left of both ranges.
    unsafe { std::ptr::copy_nonoverlapping(from.add(done), to.add(done), len - done) };
    // SAFETY: every x86-64 processor has it. The stores above are ordered by nothing else: a thread that is told of the copy must
    // see them.
    unsafe { _mm_sfence() };
}

/// # Safety
/// Both ranges are mapped, and do not overlap.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_past_caches(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use hcomm_sim::memory::Memory;

    /// Bytes that the file really takes.
    fn allocated(memory: &SharedMemory) -> u64 {
        rustix::fs::fstat(memory.file()).unwrap().st_blocks as u64 * 512
    }

    #[test]
    fn untouched_gigabytes_cost_nothing_when_copied() {
        let memory = SharedMemory::new(16 << 30).unwrap();
        let (src, dst) = (memory.hbm_base() + 4096, memory.hbm_base() + (8 << 30));
        memory.write(dst + 12345, b"goes away").unwrap();
        let before = allocated(&memory);
        memory.copy(dst, src, 4 << 30).unwrap();
        assert!(allocated(&memory) <= before, "{} > {before}", allocated(&memory));
        let mut out = [1; 9];
        memory.read(dst + 12345, &mut out).unwrap();
        assert_eq!(out, [0; 9]);
    }

    #[test]
    fn copy_of_data_between_holes_keeps_the_bytes_around() {
        let memory = SharedMemory::new(64 << 20).unwrap();
        let (src, dst) = (memory.hbm_base() + 8192 + 5, memory.hbm_base() + (32 << 20) + 77);
        let len = 5 << 20;
        memory.write(src + 100, b"near the start").unwrap();
        memory.write(src + (3 << 20) + 1, &[7; 10_000]).unwrap();
        memory.write(dst - 32, &[0xee; 32]).unwrap();
        memory.write(dst + len, &[0xee; 32]).unwrap();
        memory.write(dst + 1000, &[0x55; 3 << 20]).unwrap();
        let mut expected = vec![0; len as usize];
        memory.read(src, &mut expected).unwrap();

        memory.copy(dst, src, len).unwrap();

        let mut out = vec![1; len as usize + 64];
        memory.read(dst - 32, &mut out).unwrap();
        assert!(out[32..][..len as usize] == expected[..]);
        assert_eq!((&out[..32], &out[len as usize + 32..]), (&[0xee; 32][..], &[0xee; 32][..]));
    }

    #[test]
    fn copy_takes_no_more_memory_than_its_source() {
        let memory = SharedMemory::new(64 << 20).unwrap();
        let (src, dst) = (memory.hbm_base() + 4096, memory.hbm_base() + (32 << 20));
        // Single pages and pairs, further apart and closer than what is looked at together.
        for page in [0_u16, 1, 3, 100, 101, 511, 512, 513, 1024, 4000, 5119] {
            memory.write(src + u64::from(page) * PAGE_LEN, &[(page % 251) as u8 + 1; 4096]).unwrap();
        }
        let before = allocated(&memory);

        memory.copy(dst, src, 20 << 20).unwrap();

        assert_eq!(allocated(&memory), before + 11 * PAGE_LEN);
        let mut out = [vec![0; 20 << 20], vec![1; 20 << 20]];
        memory.read(src, &mut out[0]).unwrap();
        memory.read(dst, &mut out[1]).unwrap();
        assert!(out[0] == out[1]);
    }

    #[test]
    fn large_copy_is_exact_at_any_alignment() {
        let memory = SharedMemory::new(16 << 20).unwrap();
        let (src, dst) = (memory.hbm_base() + 4096, memory.hbm_base() + (8 << 20));
        let bytes: Vec<u8> = (0..3_u32 << 20).map(|index| (index.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        memory.write(src, &bytes).unwrap();
        for (to, from, len) in
            [(0, 0, 1 << 20), (1, 0, 2 << 20), (63, 17, (2 << 20) + 1), (4095, 4094, (1 << 20) + 16383)]
        {
            memory.write(dst, &vec![0xee; 3 << 20]).unwrap();
            memory.copy(dst + to as u64, src + from as u64, len as u64).unwrap();
            let mut out = vec![0; 3 << 20];
            memory.read(dst, &mut out).unwrap();
            let mut expected = vec![0xee; 3 << 20];
            expected[to..to + len].copy_from_slice(&bytes[from..from + len]);
            assert!(out == expected, "{len} bytes from {from} to {to}");
        }
    }
}
