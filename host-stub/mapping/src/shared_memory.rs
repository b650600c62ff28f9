//! The shared file of a device and its mappings: HBM at its device virtual address, and the low part.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use hcomm_aicpu::spec::map::{HBM_HOLE, HBM_MAX, LOW_SIZE, RAM_PHYS};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, SeekFrom};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use super::layout::{BASE_VAR, BadBase, Layout, SLOTS};
use hcomm_sim::memory::OutsideHbm;

/// From this length on reads and copies look at the holes of their source, in bytes. Below, the system calls cost more than
/// the bytes.
pub(crate) const HOLE_AWARE_LEN: u64 = 1 << 20;
/// Numbers of open files below this one are those of the standard files.
const FIRST_FILE: i32 = 3;

/// Slots in use. Address space is what a process has only one of, so this is the one table it shares.
static SLOTS_IN_USE: Mutex<[bool; SLOTS]> = Mutex::new([false; SLOTS]);

/// Why there is no memory for a device.
#[derive(thiserror::Error)]
pub enum MemoryError {
    /// Size out of range.
    #[error("hbm size of {0} bytes: must be whole MiB, at most {HBM_MAX} bytes")]
    BadSize(u64),
    /// Every slot of the process is in use.
    #[error("{0} devices are open in this process, no more fit into its address space")]
    NoSlot(usize),
    /// [`BASE_VAR`] has a value that is no base.
    #[error(transparent)]
    BadBase(#[from] BadBase),
    /// HBM is larger than the distance of two device slots.
    #[error("hbm size of {size} bytes: at most {limit} bytes fit at the base of this process ({BASE_VAR})")]
    TooLarge {
        /// Bytes asked for.
        size: u64,
        /// Most bytes.
        limit: u64,
    },
    /// Something else is mapped where HBM has to be.
    #[error("hbm of device slot {slot} has to be at {addr:#x}, but that address range is taken: {BASE_VAR} moves it")]
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

/// The message: what `unwrap` and a failed assertion print.
impl std::fmt::Debug for MemoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// A device slot of the process, given back on drop.
#[derive(Debug)]
struct Slot(usize);

impl Slot {
    /// `wanted` if it is free, else the lowest free one.
    fn take(layout: &Layout, wanted: Option<usize>) -> Result<Self, MemoryError> {
        let mut all = SLOTS_IN_USE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let slots = &mut all[..layout.slots];
        let wanted = wanted.filter(|wanted| slots.get(*wanted) == Some(&false));
        let free = wanted.or_else(|| slots.iter().position(|used| !used)).ok_or(MemoryError::NoSlot(layout.slots))?;
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
    layout: Layout,
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
        Self::in_slot(hbm_size, None)
    }

    /// As [`new`](Self::new), in device slot `wanted` if it is free.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn in_slot(hbm_size: u64, wanted: Option<usize>) -> Result<Self, MemoryError> {
        if !(1 << 20..=HBM_MAX).contains(&hbm_size) || !hbm_size.is_multiple_of(1 << 20) {
            return Err(MemoryError::BadSize(hbm_size));
        }
        let layout = Layout::of_process()?;
        if hbm_size > layout.stride {
            return Err(MemoryError::TooLarge { size: hbm_size, limit: layout.stride });
        }
        let len = LOW_SIZE + hbm_size;
        let os = |call| move |errno: rustix::io::Errno| MemoryError::Os { call, len, source: errno.into() };
        if let Some(limit) = getrlimit(Resource::Fsize).current.filter(|&limit| len > limit) {
            // The call would end the process by a signal.
            return Err(MemoryError::FileLimit { len, limit });
        }
        let slot = Slot::take(&layout, wanted)?;
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
        let addr = layout.slot_base(slot.0) + HBM_HOLE;
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
        Ok(Self { low, _hbm: hbm, file: File::from(fd), hbm_size, layout, slot })
    }

    /// Device slot in the process.
    pub fn slot(&self) -> usize {
        self.slot.0
    }

    /// First address of HBM; its first page is never mapped.
    pub fn hbm_base(&self) -> u64 {
        self.layout.slot_base(self.slot.0)
    }

    /// Addresses where HBM is mapped: all of it but the first page.
    pub fn hbm(&self) -> Range<u64> {
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
        // SAFETY: mapped (checked), aligned (checked), and alive as long as `self`; atomics may be shared.
        Ok(unsafe { AtomicU64::from_ptr(ptr.cast()) })
    }

    /// The first bytes of a range of HBM that have memory; `None`: none has. File systems without holes have memory for all.
    pub(crate) fn first_data(&self, addr: u64, len: u64) -> Option<Range<u64>> {
        let (at, end) = (self.offset(addr), addr + len);
        let data = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
            Ok(data) => addr + (data - at),
            Err(rustix::io::Errno::NXIO) => end,
            Err(_) => return Some(addr..end),
        };
        if data >= end {
            return None;
        }
        let at = self.offset(data);
        let hole = rustix::fs::seek(&self.file, SeekFrom::Hole(at));
        Some(data..hole.map_or(end, |hole| data + (hole - at)).min(end))
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

    pub(crate) fn offset(&self, addr: u64) -> u64 {
        LOW_SIZE + (addr - self.hbm_base())
    }

    /// Pointer to `len` mapped bytes of HBM.
    pub(crate) fn hbm_ptr(&self, addr: u64, len: u64) -> Result<*mut u8, OutsideHbm> {
        let start = self.hbm_base() + HBM_HOLE;
        let end = self.hbm_base() + self.hbm_size;
        match addr.checked_add(len) {
            Some(last) if addr >= start && last <= end => Ok(addr as usize as *mut u8),
            _ => Err(OutsideHbm { addr, len }),
        }
    }

    /// Address of the process at which `len` bytes of the low part from `phys` on are mapped, for as long as this lives.
    ///
    /// # Panics
    /// If they are not in the low part.
    pub fn low_addr(&self, phys: u64, len: usize) -> u64 {
        self.low_ptr(phys, len, 1).expose_provenance() as u64
    }

    /// Pointer to `len` mapped bytes of the low part.
    pub(crate) fn low_ptr(&self, phys: u64, len: usize, align: u64) -> *mut u8 {
        let offset = phys.wrapping_sub(RAM_PHYS);
        let inside = offset <= LOW_SIZE && len as u64 <= LOW_SIZE - offset && phys.is_multiple_of(align);
        assert!(inside, "{len} bytes at {phys:#x} are not in the low part");
        // SAFETY: just checked that the offset is inside the mapping.
        unsafe { self.low.ptr.as_ptr().add(offset as usize) }
    }
}

/// Whether the HBM of a device could be at `addr`.
pub fn is_device_address(addr: u64) -> bool {
    Layout::of_process().is_ok_and(|layout| layout.contains(addr))
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
        let layout = Layout::of_process().unwrap();
        assert!([&first, &second].map(|memory| layout.contains(memory.hbm_base())) == [true; 2]);
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
    fn punch_gives_memory_back() {
        let memory = SharedMemory::new(64 << 20).unwrap();
        let addr = memory.hbm_base() + 8192;
        memory.write(addr, &vec![1; 8 << 20]).unwrap();
        assert!(allocated(&memory) >= 8 << 20);
        memory.punch(addr, 8 << 20).unwrap();
        assert!(allocated(&memory) < 1 << 20);
    }
}
