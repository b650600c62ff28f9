//! What the platform gives: doorbell, head and status of a queue, barrier, clock, delay, and the core that runs.
//!
//! The logic is generic over [`Port`], so that each test has a port of its own. A program has exactly one *platform*: the
//! functions `hcomm_port_*`, which the device image and the host's native CPU each define once. [`Platform`] is the port
//! that calls them. Nothing here assumes registers in memory.

use core::ffi::c_void;

use embedded_hal::delay::DelayNs;

use crate::device::Core;
use crate::error::Error;
use crate::spec::queue::QueueStatus;
use crate::spec::{DeviceAddr, Sqe};

/// Names a queue to the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueId {
    /// Number of the submission queue.
    pub sq_id: u32,
    /// `regs` of the thread descriptor: what the platform finds the queue's registers by.
    pub regs: u64,
}

/// The doorbell did not take the new tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("doorbell refused")]
pub struct DoorbellRefused;

/// One platform, or one test's stand-in for it.
pub trait Port {
    /// Entry that the device fetches next, as the device says it: not trusted to be below the depth.
    fn head(&self, queue: QueueId) -> u32;

    /// Whether the queue takes tasks.
    fn status(&self, queue: QueueId) -> QueueStatus;

    /// Rings the doorbell: the device may run everything up to `tail`. The slots must have been made visible by
    /// [`store_barrier`](Self::store_barrier).
    ///
    /// # Errors
    /// [`DoorbellRefused`]: the device has not taken the tail.
    fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused>;

    /// Makes every store before it visible to the device before any store after it.
    fn store_barrier(&self);

    /// Monotonic time in microseconds.
    fn now_us(&self) -> u64;

    /// A delay for back-off.
    fn delay(&self) -> impl DelayNs;

    /// Stores all 64 bytes of `sqe` into the ring entry at `slot`, as aligned 64-bit stores in order of address.
    ///
    /// # Safety
    /// `slot` is a 64-byte aligned ring entry that is mapped, and no one else's until the doorbell.
    #[inline]
    unsafe fn write_slot(&self, slot: DeviceAddr, sqe: &Sqe) {
        let pairs = core::ptr::with_exposed_provenance_mut::<u128>(slot.0 as usize);
        for (index, pair) in sqe.0.chunks_exact(2).enumerate() {
            // Two aligned 64-bit stores, for which AArch64 has one instruction.
            let pair = u128::from(pair[0]) | u128::from(pair[1]) << 64;
            // SAFETY: the caller owes a mapped, aligned entry of eight words, which no one else touches.
            unsafe { pairs.add(index).write_volatile(pair.to_le()) };
        }
    }
}

/// The port of this program's platform.
#[derive(Clone, Copy, Debug, Default)]
pub struct Platform;

// The platform of a program. C linkage and plain numbers, so that a platform can also be written in C.
unsafe extern "C" {
    /// The [`Core`] that runs the caller, null outside a launch. It stays valid until the launch ends.
    safe fn hcomm_port_core() -> *const c_void;
    /// [`Port::head`].
    safe fn hcomm_port_head(sq_id: u32, regs: u64) -> u32;
    /// [`Port::status`].
    safe fn hcomm_port_status(sq_id: u32, regs: u64) -> u64;
    /// [`Port::ring`]: 0, or anything else for a refusal.
    safe fn hcomm_port_ring(sq_id: u32, regs: u64, tail: u32) -> i32;
    /// [`Port::store_barrier`].
    safe fn hcomm_port_store_barrier();
    /// [`Port::now_us`].
    safe fn hcomm_port_now_us() -> u64;
    /// Waits for at least `ns` nanoseconds. 0: the caller waits for another core of the device.
    safe fn hcomm_port_delay_ns(ns: u32);
    /// A call is refused with `code`: for the log. `who` (UTF-8, not ended by a zero, readable for good) says by whom,
    /// `error` (an [`Error`], readable during the call) says why.
    fn hcomm_port_refused(who: *const u8, who_len: usize, code: i32, error: *const c_void);
}

impl Port for Platform {
    #[inline]
    fn head(&self, queue: QueueId) -> u32 {
        hcomm_port_head(queue.sq_id, queue.regs)
    }

    #[inline]
    fn status(&self, queue: QueueId) -> QueueStatus {
        QueueStatus(hcomm_port_status(queue.sq_id, queue.regs))
    }

    #[inline]
    fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        if hcomm_port_ring(queue.sq_id, queue.regs, tail) == 0 { Ok(()) } else { Err(DoorbellRefused) }
    }

    #[inline]
    fn store_barrier(&self) {
        hcomm_port_store_barrier();
    }

    fn now_us(&self) -> u64 {
        hcomm_port_now_us()
    }

    fn delay(&self) -> impl DelayNs {
        PlatformDelay
    }
}

struct PlatformDelay;

impl DelayNs for PlatformDelay {
    fn delay_ns(&mut self, ns: u32) {
        hcomm_port_delay_ns(ns);
    }
}

/// Tells the platform that `who` refuses a call and why, and gives the code.
#[cold]
#[inline(never)]
pub fn refuse(who: &'static str, error: &Error) -> i32 {
    let code = error.code();
    // SAFETY: a name of the program and a live error, as the hook may expect.
    unsafe { hcomm_port_refused(who.as_ptr(), who.len(), code, (&raw const *error).cast()) };
    code
}

/// A core waits for another one: a delay of nothing.
#[cfg(not(loom))]
#[cold]
pub(crate) fn relax() {
    hcomm_port_delay_ns(0);
}

/// The launch that the caller is in, if it is in one: what its core is borrowed from.
pub(crate) struct Launch;

impl Launch {
    /// The core that runs the caller; `None` outside a launch.
    #[inline(always)]
    pub(crate) fn core(&self) -> Option<&Core<'_>> {
        // SAFETY: the platform's contract (see `hcomm_port_core`): null, or a core that outlives the launch that we are in,
        // which no caller keeps it beyond: it is borrowed from a value of the calling function.
        unsafe { hcomm_port_core().cast::<Core<'_>>().as_ref() }
    }
}

/// Calls `run` with the core that runs the caller; `None` outside a launch.
#[inline]
pub(crate) fn with_core<R>(run: impl FnOnce(&Core<'_>) -> R) -> Option<R> {
    Launch.core().map(run)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slot_is_written_whole() {
        #[repr(align(64))]
        struct Entry(Sqe);
        let sqe = Sqe([1, 2, 3, 4, 5, 6, 7, 8]);
        let mut entry = Entry(Sqe([u64::MAX; 8]));
        // SAFETY: an entry of our own.
        unsafe { Platform.write_slot(DeviceAddr::from(&raw mut entry), &sqe) };
        assert_eq!(entry.0, sqe);
    }
}
