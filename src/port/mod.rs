//! What a platform gives: doorbell, head and status of a queue, barrier, clock, delay.
//!
//! [`Platform`] is the trait. A program has exactly one platform: [`export_platform!`](crate::export_platform) makes a static
//! of a type that implements the trait the program's platform, and a platform in C defines the same functions
//! ([`hooks`]). Tests hand their own platforms to the code under test. Nothing here assumes registers in memory; a platform
//! that has them finds the block in [`regs`].
//!
//! ```
//! use embedded_hal::delay::DelayNs;
//! use hcomm_aicpu::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
//! use hcomm_aicpu::spec::queue::QueueStatus;
//!
//! /// Queues behind a driver.
//! struct Driver;
//!
//! impl Platform for Driver {
//!     fn has_queue(&self, sq_id: u32, _regs: u64) -> bool {
//!         sq_id < 16
//!     }
//!
//!     fn head(&self, queue: QueueId) -> Result<u32, ReadFailed> {
//!         driver::property(queue.sq_id(), "head").map_err(ReadFailed)
//!     }
//!
//!     fn status(&self, _queue: QueueId) -> Result<QueueStatus, ReadFailed> {
//!         Ok(QueueStatus::ENABLED)
//!     }
//!
//!     fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
//!         driver::set_tail(queue.sq_id(), tail).map_err(|_| DoorbellRefused)
//!     }
//!
//!     fn store_barrier(&self) {
//!         std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
//!     }
//!
//!     fn now_us(&self) -> u64 {
//!         driver::clock_us()
//!     }
//!
//!     fn delay(&self) -> impl DelayNs {
//!         Sleep
//!     }
//! }
//!
//! struct Sleep;
//!
//! impl DelayNs for Sleep {
//!     fn delay_ns(&mut self, ns: u32) {
//!         std::thread::sleep(std::time::Duration::from_nanos(ns.into()));
//!     }
//! }
//!
//! static MINE: Driver = Driver;
//! hcomm_aicpu::export_platform!(MINE);
//!
//! // A device without threads refuses every handle; a kernel that runs on it finds that out.
//! let device = Box::new(hcomm_aicpu::Device::new());
//! let handle = hcomm_aicpu::spec::thread::ThreadHandle(0x40);
//! let (found, _) = device.run(0, || hcomm_aicpu::Thread::from_handle(handle)).unwrap();
//! assert_eq!(found, Err(hcomm_aicpu::Error::BadHandle(handle)));
//!
//! # mod driver {
//! #     pub fn property(_queue: u32, _name: &str) -> Result<u32, i32> { Ok(0) }
//! #     pub fn set_tail(_queue: u32, _tail: u32) -> Result<(), i32> { Ok(()) }
//! #     pub fn clock_us() -> u64 { 0 }
//! # }
//! ```

pub mod hooks;
pub mod regs;

use embedded_hal::delay::DelayNs;

use crate::error::Error;
use crate::spec::queue::QueueStatus;
use crate::spec::{DeviceAddr, Sqe};

/// Names a queue to the platform, which has said that it has this queue ([`Platform::has_queue`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueId {
    sq_id: u32,
    regs: u64,
}

impl QueueId {
    /// Of no queue.
    pub(crate) const NONE: Self = Self { sq_id: 0, regs: 0 };

    /// Names a queue.
    ///
    /// # Safety
    /// The platform that is asked with it has said `true` to [`Platform::has_queue`] for these numbers.
    #[inline]
    pub unsafe fn new_unchecked(sq_id: u32, regs: u64) -> Self {
        Self { sq_id, regs }
    }

    /// The queue, if `platform` has it.
    pub(crate) fn of<P: Platform>(platform: &P, sq_id: u32, regs: u64) -> Option<Self> {
        platform.has_queue(sq_id, regs).then_some(Self { sq_id, regs })
    }

    /// Number of the submission queue.
    #[inline]
    pub fn sq_id(self) -> u32 {
        self.sq_id
    }

    /// `regs` of the thread descriptor: what the platform finds the queue's registers by.
    #[inline]
    pub fn regs(self) -> u64 {
        self.regs
    }
}

/// The doorbell did not take the new tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("doorbell refused")]
pub struct DoorbellRefused;

/// A register could not be read; with the platform's own code, which is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("register can't be read: code {0}")]
pub struct ReadFailed(pub i32);

/// One platform, or one test's stand-in for it. Safe to implement: nothing that an implementation answers is trusted with
/// memory.
pub trait Platform {
    /// Whether `regs` of a thread descriptor names the registers of queue `sq_id`. Asked once for each thread, before
    /// anything else is asked of its queue.
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool;

    /// Entry that the device fetches next. It need not be below the depth: a wrong one is refused.
    ///
    /// # Errors
    /// [`ReadFailed`].
    fn head(&self, queue: QueueId) -> Result<u32, ReadFailed>;

    /// Whether the queue takes tasks, and for which thread.
    ///
    /// # Errors
    /// [`ReadFailed`].
    fn status(&self, queue: QueueId) -> Result<QueueStatus, ReadFailed>;

    /// Rings the doorbell: the device may run everything before entry `tail`. The slots were made visible by
    /// [`store_barrier`](Self::store_barrier).
    ///
    /// # Errors
    /// [`DoorbellRefused`]: the device has not taken the tail.
    fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused>;

    /// Makes every store before it visible to the device before any store after it.
    fn store_barrier(&self);

    /// Monotonic time in microseconds.
    fn now_us(&self) -> u64;

    /// A delay for back-off. A delay of 0 ns: the caller waits for another core of the device.
    fn delay(&self) -> impl DelayNs;

    /// Function `who` refuses a call: for a log.
    fn refused(&self, who: &'static str, error: &Error) {
        let _ = (who, error);
    }

    /// Fills `addrs` with return addresses of the caller, innermost first, then 0. Only asked for while calls are recorded.
    fn return_addresses(&self, addrs: &mut [u64]) {
        addrs.fill(0);
    }

    /// Stores all 64 bytes of `sqe` into the ring entry at `slot`, as four 16-byte volatile stores in order of address. Only
    /// for tests to replace: memory that is no memory.
    ///
    /// # Safety
    /// `slot` is a 64-byte aligned ring entry that is mapped and that only the caller writes until the doorbell.
    #[doc(hidden)]
    #[inline(always)]
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::hooks::Hooks;
    use super::*;

    #[test]
    fn slot_is_written_whole() {
        #[repr(align(64))]
        struct Entry(Sqe);
        let sqe = Sqe([1, 2, 3, 4, 5, 6, 7, 8]);
        let mut entry = Entry(Sqe([u64::MAX; 8]));
        // SAFETY: an entry of our own.
        unsafe { Hooks.write_slot(DeviceAddr::from(&raw mut entry), &sqe) };
        assert_eq!(entry.0, sqe);
    }
}
