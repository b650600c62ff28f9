//! The word that each thread of this process keeps for the device crate: the core that it is.
//!
//! A table instead of thread-local memory: that of a library which is opened at run time needs relocations that not every
//! loader has room for. A thread is known by its thread pointer, which no two threads share.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use hcomm_aicpu::MAX_CORES;
use hcomm_aicpu::port::hooks::CurrentCore;

#[repr(C, align(16))]
struct Place {
    /// Thread pointer of the thread that has the place, 0: free.
    owner: AtomicUsize,
    core: AtomicPtr<c_void>,
}

static PLACES: [Place; MAX_CORES] =
    [const { Place { owner: AtomicUsize::new(0), core: AtomicPtr::new(ptr::null_mut()) } }; MAX_CORES];

/// Threads that run kernels, for the device crate.
pub struct ThisThread;

// SAFETY: `get` looks for the place of the calling thread, which the thread alone takes, writes and gives back; without one it
// gives null.
unsafe impl CurrentCore for ThisThread {
    #[inline(always)]
    fn get() -> *const c_void {
        let (own, owner, core) = first_look();
        if owner == own {
            // SAFETY: this thread has a place only while it has a core (`set`).
            unsafe { core::hint::assert_unchecked(!core.is_null()) };
            return core;
        }
        search(own).map_or(ptr::null(), |index| PLACES[index].core.load(Ordering::Relaxed).cast_const())
    }

    fn set(core: *const c_void) {
        let owner = thread_pointer();
        match search(owner) {
            Some(index) => {
                PLACES[index].core.store(core.cast_mut(), Ordering::Relaxed);
                if core.is_null() {
                    PLACES[index].owner.store(0, Ordering::Release);
                }
            }
            None if core.is_null() => {}
            None => take(owner, core),
        }
    }
}

/// Index of the calling thread's place; `None` outside of a kernel.
pub fn place() -> Option<usize> {
    search(thread_pointer())
}

#[cold]
#[inline(never)]
fn search(owner: usize) -> Option<usize> {
    indices(owner).find(|index| PLACES[*index].owner.load(Ordering::Relaxed) == owner)
}

/// There is a free place: no more threads run kernels than there are cores, and each core has one.
fn take(owner: usize, core: *const c_void) {
    let is_taken =
        |index: &usize| PLACES[*index].owner.compare_exchange(0, owner, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if let Some(index) = indices(owner).find(is_taken) {
        PLACES[index].core.store(core.cast_mut(), Ordering::Relaxed);
    }
}

/// All places, from the first one of a thread on.
fn indices(owner: usize) -> impl Iterator<Item = usize> {
    let first = first_place(owner);
    (0..MAX_CORES).map(move |step| (first + step) % MAX_CORES)
}

/// Where the place of a thread is unless another thread has it. Thread pointers lie at the ends of stacks, which are some
/// pages or some MiB apart.
#[inline(always)]
fn first_place(owner: usize) -> usize {
    (owner ^ owner >> 11) >> 12 & (MAX_CORES - 1)
}

/// Thread pointer of the caller, and owner and core of its first place. Every call of a kernel begins with it, so that each
/// instruction counts: the compiler would make 12 of them.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn first_look() -> (usize, usize, *const c_void) {
    let (own, owner, core): (usize, usize, *const c_void);
    // SAFETY: a register that each thread of a Linux process has to itself, and two aligned words of the place with the number that
    // `first_place` gives.
    unsafe {
        core::arch::asm!(
            "mrs {own}, tpidr_el0",
            "eor {place}, {own}, {own}, lsr #11",
            "ubfx {place}, {place}, #12, #6",
            "add {place}, {places}, {place}, lsl #4",
            "ldp {owner}, {core}, [{place}]",
            own = out(reg) own,
            place = out(reg) _,
            places = in(reg) &raw const PLACES,
            owner = out(reg) owner,
            core = out(reg) core,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    (own, owner, core)
}
const _: () = assert!(size_of::<Place>() == 16 && MAX_CORES == 64);

#[cfg(not(target_arch = "aarch64"))]
#[inline(always)]
fn first_look() -> (usize, usize, *const c_void) {
    let own = thread_pointer();
    let place = &PLACES[first_place(own)];
    (own, place.owner.load(Ordering::Relaxed), place.core.load(Ordering::Relaxed).cast_const())
}

#[inline(always)]
fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads a register that each thread of a Linux process has to itself, and that does not change.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    // SAFETY: the first word of a thread's control block is its own address (ELF TLS, variant II).
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
    }
    pointer
}
