//! Memory of a simulated device: one sparse shared file, of which HBM is mapped at its device virtual address.
//!
//! All unsafe code of the host that touches device memory is here. Every other file names memory by device address.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64};

use hcomm_aicpu::spec::map::{HBM_BASE, HBM_HOLE, HBM_MAX, HBM_STRIDE, LOW_SIZE, RAM_PHYS};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, SeekFrom};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use hcomm_sim::memory::{Memory, OutsideHbm};
use hcomm_sim::reduce::{BLOCK_LEN, Block, Reduce};

/// From this length on a copy looks for holes of its source, in bytes. Below, the system calls cost more than the bytes.
const HOLE_AWARE_LEN: u64 = 1 << 20;
/// Bytes that are looked at for holes at a time.
const LOOK_LEN: u64 = 2 << 20;
/// Bytes that have a place in memory, or none.
const PAGE_LEN: u64 = 4096;
/// Numbers of open files below this one are those of the standard files.
const FIRST_FILE: i32 = 3;
/// Bytes of a cache line.
const LINE_LEN: usize = 64;
/// Device slots of a process: the HBM of the last one still ends below 2^47.
pub const SLOTS: usize = 64;

/// Slots in use. Address space is what a process has only one of, so this is the one table it shares.
static SLOTS_IN_USE: Mutex<[bool; SLOTS]> = Mutex::new([false; SLOTS]);

/// Why there is no memory for a device.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// Size out of range.
    #[error("hbm size of {0} bytes: must be whole MiB, at most {HBM_MAX} bytes")]
    BadSize(u64),
    /// Every slot of the process is in use.
    #[error("{SLOTS} devices are open in this process, no more fit into its address space")]
    NoSlot,
    /// Something else is mapped where HBM has to be.
    #[error("hbm of device slot {slot} has to be at {addr:#x}, but that address range is taken")]
    AddressTaken {
        /// Device slot.
        slot: usize,
        /// First byte of its HBM.
        addr: u64,
    },
    /// The limit of file sizes is too small: device memory is a file without a name.
    #[error("{len} bytes of device memory: files of this process may have {limit} bytes (RLIMIT_FSIZE, `ulimit -f`)")]
    FileLimit {
        /// Bytes of the file.
        len: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A system call failed.
    #[error("{call} of {len} bytes of device memory failed: {source}")]
    Os {
        /// The call.
        call: &'static str,
        /// Bytes asked for.
        len: u64,
        /// Its error.
        source: io::Error,
    },
}

/// A device slot of the process, given back on drop.
#[derive(Debug)]
struct Slot(usize);

impl Slot {
    fn take() -> Result<Self, MemoryError> {
        let mut slots = SLOTS_IN_USE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let free = slots.iter().position(|used| !used).ok_or(MemoryError::NoSlot)?;
        slots[free] = true;
        Ok(Self(free))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        SLOTS_IN_USE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())[self.0] = false;
    }
}

/// One mapped range, unmapped on drop.
#[derive(Debug)]
struct Mapping {
    ptr: NonNull<u8>,
    len: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `ptr` and `len` are what mmap returned, and every user of the range borrows or shares its owner.
        // An unmap that fails leaves the range mapped, which does no harm.
        let _ = unsafe { rustix::mm::munmap(self.ptr.as_ptr().cast(), self.len) };
    }
}

/// Shared memory of one device.
#[derive(Debug)]
pub struct SharedMemory {
    // Declared in the order of the drop: the address range is free before the slot is.
    low: Mapping,
    _hbm: Mapping,
    file: File,
    hbm_size: u64,
    slot: Slot,
}

// SAFETY: the mappings are plain shared memory that belongs to no thread; all accesses go through raw copies and atomics.
unsafe impl Send for SharedMemory {}
// SAFETY: as above: no method hands out a plain reference into the mappings.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Memory with `hbm_size` bytes of HBM, in the lowest free device slot of the process.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn new(hbm_size: u64) -> Result<Self, MemoryError> {
        if !(1 << 20..=HBM_MAX).contains(&hbm_size) || !hbm_size.is_multiple_of(1 << 20) {
            return Err(MemoryError::BadSize(hbm_size));
        }
        let len = LOW_SIZE + hbm_size;
        let os = |call| move |errno: rustix::io::Errno| MemoryError::Os { call, len, source: errno.into() };
        if let Some(limit) = getrlimit(Resource::Fsize).current.filter(|&limit| len > limit) {
            // The call would end the process by a signal.
            return Err(MemoryError::FileLimit { len, limit });
        }
        let slot = Slot::take()?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("hcomm-device", flags).map_err(os("memfd_create"))?;
        // A program that has closed its standard files opens others under their numbers.
        let fd = match fd.as_raw_fd() {
            0..FIRST_FILE => rustix::io::fcntl_dupfd_cloexec(&fd, FIRST_FILE).map_err(os("dup"))?,
            _ => fd,
        };
        rustix::fs::ftruncate(&fd, len).map_err(os("ftruncate"))?;
        // An access of a mapping whose file has become shorter would end the process by a signal.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&fd, seals).map_err(os("sealing"))?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let low =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), LOW_SIZE as usize, protection, MapFlags::SHARED, &fd, 0) }
                .map_err(os("mmap"))?;
        let low = mapping(low, LOW_SIZE as usize);
        let addr = HBM_BASE + slot.0 as u64 * HBM_STRIDE + HBM_HOLE;
        // SAFETY: FIXED_NOREPLACE: the call fails rather than replace what is mapped there.
        let hbm = unsafe {
            rustix::mm::mmap(
                addr as usize as *mut _,
                (hbm_size - HBM_HOLE) as usize,
                protection,
                MapFlags::SHARED | MapFlags::FIXED_NOREPLACE,
                &fd,
                LOW_SIZE + HBM_HOLE,
            )
        };
        let hbm = match hbm {
            Ok(ptr) => mapping(ptr, (hbm_size - HBM_HOLE) as usize),
            Err(rustix::io::Errno::EXIST) => {
                return Err(MemoryError::AddressTaken { slot: slot.0, addr: addr - HBM_HOLE });
            }
            Err(errno) => return Err(os("mmap")(errno)),
        };
        if hbm.ptr.as_ptr() as usize as u64 != addr {
            // Kernels before 4.17 take the address for a hint.
            return Err(MemoryError::AddressTaken { slot: slot.0, addr: addr - HBM_HOLE });
        }
        Ok(Self { low, _hbm: hbm, file: File::from(fd), hbm_size, slot })
    }

    /// Device slot in the process.
    pub fn slot(&self) -> usize {
        self.slot.0
    }

    /// First address of HBM; its first page is never mapped.
    pub fn hbm_base(&self) -> u64 {
        HBM_BASE + self.slot.0 as u64 * HBM_STRIDE
    }

    /// Addresses where HBM is mapped: all of it but the first page.
    pub fn hbm(&self) -> std::ops::Range<u64> {
        self.hbm_base() + HBM_HOLE..self.hbm_base() + self.hbm_size
    }

    /// Bytes of HBM.
    pub fn hbm_size(&self) -> u64 {
        self.hbm_size
    }

    /// The file: offset 0 is the start of the low part, HBM follows it.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Reads HBM.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    pub fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), OutsideHbm> {
        let src = self.hbm_ptr(addr, out.len() as u64)?;
        // A read through the mapping would allocate the pages of a hole, a read of the file does not.
        if out.len() as u64 >= HOLE_AWARE_LEN && self.file.read_exact_at(out, self.offset(addr)).is_ok() {
            return Ok(());
        }
        // SAFETY: `hbm_ptr` checked that the source is mapped; `out` is a Rust slice, so it isn't device memory.
        unsafe { std::ptr::copy_nonoverlapping(src, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Writes HBM.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    pub fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), OutsideHbm> {
        let dst = self.hbm_ptr(addr, bytes.len() as u64)?;
        // SAFETY: `hbm_ptr` checked that the destination is mapped; `bytes` is a Rust slice, so it isn't device memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), dst, bytes.len()) };
        Ok(())
    }

    /// The aligned 64-bit word at `addr` of HBM.
    ///
    /// # Errors
    /// [`OutsideHbm`], also for an unaligned address.
    pub fn hbm_word64(&self, addr: u64) -> Result<&AtomicU64, OutsideHbm> {
        if !addr.is_multiple_of(8) {
            return Err(OutsideHbm { addr, len: 8 });
        }
        let ptr = self.hbm_ptr(addr, 8)?;
        // SAFETY: mapped (checked), aligned (checked), and alive as long as `self`; atomics may be shared with anybody.
        Ok(unsafe { AtomicU64::from_ptr(ptr.cast()) })
    }

    /// Gives the whole pages inside the range back and zeroes the rest of it.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    pub fn punch(&self, addr: u64, len: u64) -> Result<(), OutsideHbm> {
        let ptr = self.hbm_ptr(addr, len)?;
        if len == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if rustix::fs::fallocate(&self.file, flags, self.offset(addr), len).is_err() {
            // SAFETY: `hbm_ptr` checked that the range is mapped.
            unsafe { std::ptr::write_bytes(ptr, 0, len as usize) };
        }
        Ok(())
    }

    /// Reads the low part at `phys`.
    ///
    /// # Panics
    /// If the range is not inside the low part.
    pub fn read_low(&self, phys: u64, out: &mut [u8]) {
        let src = self.low_ptr(phys, out.len(), 1);
        // SAFETY: `low_ptr` checked that the source is mapped; `out` is a Rust slice, so it isn't device memory.
        unsafe { std::ptr::copy_nonoverlapping(src, out.as_mut_ptr(), out.len()) };
    }

    /// Writes the low part at `phys`.
    ///
    /// # Panics
    /// If the range is not inside the low part.
    pub fn write_low(&self, phys: u64, bytes: &[u8]) {
        let dst = self.low_ptr(phys, bytes.len(), 1);
        // SAFETY: `low_ptr` checked that the destination is mapped; `bytes` is a Rust slice, so it isn't device memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), dst, bytes.len()) };
    }

    /// Zeroes `len` bytes of the low part at `phys`.
    ///
    /// # Panics
    /// If the range is not inside the low part.
    pub fn zero_low(&self, phys: u64, len: usize) {
        let dst = self.low_ptr(phys, len, 1);
        // SAFETY: `low_ptr` checked that the destination is mapped.
        unsafe { std::ptr::write_bytes(dst, 0, len) };
    }

    fn offset(&self, addr: u64) -> u64 {
        LOW_SIZE + (addr - self.hbm_base())
    }

    /// Pointer to `len` mapped bytes of HBM.
    fn hbm_ptr(&self, addr: u64, len: u64) -> Result<*mut u8, OutsideHbm> {
        let start = self.hbm_base() + HBM_HOLE;
        let end = self.hbm_base() + self.hbm_size;
        match addr.checked_add(len) {
            Some(last) if addr >= start && last <= end => Ok(addr as usize as *mut u8),
            _ => Err(OutsideHbm { addr, len }),
        }
    }

    /// Pointer to `len` mapped bytes of the low part.
    fn low_ptr(&self, phys: u64, len: usize, align: u64) -> *mut u8 {
        let offset = phys.wrapping_sub(RAM_PHYS);
        let inside = offset <= LOW_SIZE && len as u64 <= LOW_SIZE - offset && phys.is_multiple_of(align);
        assert!(inside, "{len} bytes at {phys:#x} are not in the low part");
        // SAFETY: just checked that the offset is inside the mapping.
        unsafe { self.low.ptr.as_ptr().add(offset as usize) }
    }

    /// Copies data and holes of the source. The ranges are inside HBM and do not overlap.
    fn copy_extents(&self, dst: u64, src: u64, len: u64) -> Result<(), OutsideHbm> {
        let mut done = 0;
        while done < len {
            let at = self.offset(src) + done;
            let hole = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
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
        let ptr = self.hbm_ptr(start, pages * PAGE_LEN)?;
        let mut resident = [0; (LOOK_LEN / PAGE_LEN) as usize + 1];
        // SAFETY: the call reads nothing of the pages, and writes a byte for each of them: at most LOOK_LEN bytes are at most
        // one page more than the whole pages of LOOK_LEN, if they start inside a page.
        let result = unsafe { mincore(ptr.cast(), (pages * PAGE_LEN) as usize, resident.as_mut_ptr()) };
        if result != 0 {
            return Ok(len);
        }
        // Bits above the lowest are not defined.
        let gap = resident[1..pages as usize].iter().position(|page| page & 1 == 0);
        Ok(gap.map_or(len, |gap| start + (gap as u64 + 1) * PAGE_LEN - addr))
    }

    /// Copies large ranges that do not overlap.
    fn copy_apart(&self, dst: u64, src: u64, len: u64) -> Result<(), OutsideHbm> {
        let (to, from) = (self.hbm_ptr(dst, len)?, self.hbm_ptr(src, len)?);
        // SAFETY: `hbm_ptr` checked that both ranges are mapped; the caller, that they do not overlap. As for `copy_bytes`,
        // no reference is made to them.
        unsafe { copy_past_caches(to, from, len as usize) };
        Ok(())
    }

    fn copy_bytes(&self, dst: u64, src: u64, len: u64) -> Result<(), OutsideHbm> {
        let (to, from) = (self.hbm_ptr(dst, len)?, self.hbm_ptr(src, len)?);
        // SAFETY: `hbm_ptr` checked that both ranges are mapped; `copy` allows overlap. Whoever writes them at the same
        // time is another processor to this one: wrong bytes, as on the device, but no reference is ever made to them.
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
        let (to, from) = (self.hbm_ptr(dst, len)?, self.hbm_ptr(src, len)?);
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
            self.read(src + done, &mut right.0[..part])?;
            reduce.apply(&mut left, &right, part);
            self.write(dst + done, &left.0[..part])?;
        }
        Ok(())
    }

    fn write_value(&self, addr: u64, value: u32) -> Result<(), OutsideHbm> {
        self.write(addr, &value.to_le_bytes())
    }

    fn discard(&self, addr: u64, len: u64) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if self.hbm_ptr(addr, len).is_ok() {
            // Memory that can't be given back stays as it is.
            let _ = rustix::fs::fallocate(&self.file, flags, self.offset(addr), len);
        }
    }

    fn word64(&self, phys: u64) -> &AtomicU64 {
        let ptr = self.low_ptr(phys, 8, 8);
        // SAFETY: mapped and aligned (`low_ptr`), and alive as long as `self`; atomics may be shared with anybody.
        unsafe { AtomicU64::from_ptr(ptr.cast()) }
    }

    fn word32(&self, phys: u64) -> &AtomicU32 {
        let ptr = self.low_ptr(phys, 4, 4);
        // SAFETY: mapped and aligned (`low_ptr`), and alive as long as `self`; atomics may be shared with anybody.
        unsafe { AtomicU32::from_ptr(ptr.cast()) }
    }
}

/// Asks for the cache line at `ptr`: nothing happens if there is none.
fn prefetch(ptr: *const u8) {
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
    // SAFETY: every x86-64 processor has it. The stores above are ordered by nothing else: whoever is told of the copy must
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

unsafe extern "C" {
    /// Which pages of a range are in memory (POSIX systems; not in rustix).
    fn mincore(addr: *mut core::ffi::c_void, len: usize, resident: *mut u8) -> core::ffi::c_int;
}

/// Whether the HBM of a device could be at `addr`.
pub fn is_device_address(addr: u64) -> bool {
    (HBM_BASE..HBM_BASE + SLOTS as u64 * HBM_STRIDE).contains(&addr)
}

/// Whether anything of the process is mapped at `addr`.
pub fn is_mapped(addr: u64) -> bool {
    let mut resident = [0; 1];
    let page = std::ptr::without_provenance_mut((addr - addr % PAGE_LEN) as usize);
    // SAFETY: the call touches nothing of the page, and writes one byte for it. It fails if nothing is mapped there.
    unsafe { mincore(page, 1, resident.as_mut_ptr()) == 0 }
}

fn mapping(ptr: *mut core::ffi::c_void, len: usize) -> Mapping {
    Mapping { ptr: NonNull::new(ptr.cast()).expect("mmap gives no null pointer"), len }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that the file really takes.
    fn allocated(memory: &SharedMemory) -> u64 {
        rustix::fs::fstat(memory.file()).unwrap().st_blocks as u64 * 512
    }

    #[test]
    fn devices_have_different_addresses_and_give_them_back() {
        let first = SharedMemory::new(1 << 20).unwrap();
        let second = SharedMemory::new(1 << 20).unwrap();
        assert_ne!(first.hbm_base(), second.hbm_base());
        assert_eq!(first.hbm_base() % HBM_STRIDE, HBM_BASE % HBM_STRIDE);
    }

    /// Case 151.
    #[test]
    fn file_can_be_neither_shortened_nor_lengthened() {
        let memory = SharedMemory::new(1 << 20).unwrap();
        for len in [0, LOW_SIZE, LOW_SIZE + (2 << 20)] {
            assert_eq!(rustix::fs::ftruncate(memory.file(), len), Err(rustix::io::Errno::PERM));
        }
        assert_eq!(memory.write(memory.hbm_base() + (1 << 20) - 1, &[1]), Ok(()));
        assert_eq!(memory.punch(memory.hbm_base() + 8192, 4096), Ok(()));
    }

    #[test]
    fn first_page_and_ends_are_outside() {
        let memory = SharedMemory::new(1 << 20).unwrap();
        let base = memory.hbm_base();
        for (addr, len) in [(base, 1), (base + 4095, 2), (base + (1 << 20) - 1, 2), (u64::MAX, 2), (0, 1)] {
            assert_eq!(memory.write(addr, &vec![1; len]), Err(OutsideHbm { addr, len: len as u64 }));
        }
        assert_eq!(memory.write(base + (1 << 20) - 1, &[1]), Ok(()));
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

    #[test]
    fn punch_gives_memory_back() {
        let memory = SharedMemory::new(64 << 20).unwrap();
        let addr = memory.hbm_base() + 8192;
        memory.write(addr, &vec![1; 8 << 20]).unwrap();
        assert!(allocated(&memory) >= 8 << 20);
        memory.punch(addr, 8 << 20).unwrap();
        assert!(allocated(&memory) < 1 << 20);
    }
}
