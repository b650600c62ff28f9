//! The device's memory: a file of the host process. The low part is mapped anywhere, HBM at its device address.

use std::os::fd::RawFd;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use hcomm_aicpu::spec::map::{HBM_HOLE, LOW_SIZE, RAM_PHYS};
use hcomm_aicpu::spec::runner::{HBM_STEP, HBM_STEP_WORDS, HBM_STEPS_PHYS, LOW_MAPPED};

/// Where the low part is mapped; null before [`map_low`].
static LOW: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// HBM, known once the boot block has been read.
pub static HBM: OnceLock<Hbm> = OnceLock::new();

/// Maps the low part of the file.
///
/// # Errors
/// As a message.
pub fn map_low(file: RawFd) -> Result<(), String> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the system's choice.
    let ptr = unsafe { libc::mmap(null_mut(), LOW_MAPPED as usize, protection, libc::MAP_SHARED, file, 0) };
    if ptr == libc::MAP_FAILED {
        return Err(format!("device memory (file {file}) can't be mapped: {}", std::io::Error::last_os_error()));
    }
    LOW.store(ptr.cast(), Ordering::Release);
    Ok(())
}

/// Pointer to the place in the low part that has this address in the image.
///
/// # Panics
/// If it is not in the part that is mapped, or not aligned for a `T`.
#[inline]
pub fn low<T>(phys: u64) -> *mut T {
    let offset = phys.wrapping_sub(RAM_PHYS);
    assert!(
        offset <= LOW_MAPPED - size_of::<T>() as u64,
        "{phys:#x} is not in the part of memory that the runner maps"
    );
    let ptr = LOW.load(Ordering::Relaxed).wrapping_add(offset as usize).cast::<T>();
    assert!(ptr.is_aligned(), "{phys:#x} is not aligned");
    ptr
}

/// HBM of the device.
pub struct Hbm {
    file: RawFd,
    base: u64,
    size: u64,
    /// Steps that are mapped. Changed under the lock.
    mapped: [AtomicU64; HBM_STEP_WORDS],
    lock: Mutex<()>,
}

impl Hbm {
    /// HBM of `size` bytes at `base`, of which nothing is mapped.
    pub fn new(file: RawFd, base: u64, size: u64) -> Self {
        Self { file, base, size, mapped: [const { AtomicU64::new(0) }; HBM_STEP_WORDS], lock: Mutex::new(()) }
    }

    /// Maps the steps that the host asks for and that are not mapped.
    ///
    /// # Errors
    /// As a message.
    pub fn map_steps(&self) -> Result<(), String> {
        for (index, mapped) in self.mapped.iter().enumerate() {
            // SAFETY: an aligned word of the low part, which stays mapped; the host alone writes it, atomically.
            let wanted = unsafe { AtomicU64::from_ptr(low::<u64>(HBM_STEPS_PHYS).add(index)) }.load(Ordering::Acquire);
            if wanted & !mapped.load(Ordering::Acquire) != 0 {
                let _lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
                for bit in (0..64).filter(|bit| wanted & !mapped.load(Ordering::Relaxed) & 1 << bit != 0) {
                    self.map_step(index as u64 * 64 + bit)?;
                    mapped.fetch_or(1 << bit, Ordering::Release);
                }
            }
        }
        Ok(())
    }

    fn map_step(&self, step: u64) -> Result<(), String> {
        // The first page is never mapped.
        let start = (step * HBM_STEP).max(HBM_HOLE);
        let end = ((step + 1) * HBM_STEP).min(self.size);
        if start >= end {
            return Err(format!("step {step} of hbm is behind its {} bytes", self.size));
        }
        let addr = without_provenance_mut((self.base + start) as usize);
        let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
        let (protection, offset) = (libc::PROT_READ | libc::PROT_WRITE, (LOW_SIZE + start) as libc::off_t);
        // SAFETY: the flag makes the call fail rather than replace what is mapped there; the host has asked for the step.
        let ptr = unsafe { libc::mmap(addr, (end - start) as usize, protection, flags, self.file, offset) };
        if ptr == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            return Err(format!("{} bytes of hbm at {addr:p} can't be mapped: {error}", end - start));
        }
        if ptr != addr {
            return Err(format!("hbm can't be mapped at {addr:p}: that address range is taken"));
        }
        Ok(())
    }
}
