//! The platform of a card: the queues of this process by number, for `hcomm-aicpu`.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use embedded_hal::delay::DelayNs;
use hcomm_aicpu::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use hcomm_aicpu::spec::queue::QueueStatus;
use spin::Mutex;

use crate::barrier;
use crate::error::{HalError, RingError};
use crate::functions::Hal;
use crate::queue::{Position, Queue, QueueIds};

/// Queues that a process can have open.
pub const MAX_QUEUES: usize = 64;

/// Time of the processor.
pub trait Clock {
    /// Monotonic time in microseconds.
    fn now_us() -> u64;
}

/// The counter of an AArch64 core, which a process may read.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter;

#[cfg(target_arch = "aarch64")]
impl Clock for Counter {
    fn now_us() -> u64 {
        let (count, frequency): (u64, u64);
        // SAFETY: two reads of registers that user space may read on Linux; the first barrier keeps the count behind what was before.
        unsafe {
            core::arch::asm!(
                "isb",
                "mrs {count}, cntvct_el0",
                "mrs {frequency}, cntfrq_el0",
                count = out(reg) count,
                frequency = out(reg) frequency,
                options(nostack, preserves_flags),
            );
        }
        // Firmware that has not set the frequency leaves 0 there.
        (u128::from(count) * 1_000_000 / u128::from(frequency.max(1))) as u64
    }
}

/// Where a queue is, for its thread descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// What the descriptor has in `regs`.
    pub regs: u64,
    /// Address of the ring.
    pub base: u64,
    /// Entries of the ring.
    pub depth: u32,
    /// Where the queue stands.
    pub position: Position,
}

/// A queue could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The driver's library.
    #[error(transparent)]
    Hal(#[from] HalError),
    /// No room for one more.
    #[error("{MAX_QUEUES} queues are open already")]
    Full,
    /// It was opened so often that no word is left which tells one opening from another.
    #[error("sq {0} was opened 2^40 times: it needs another generation")]
    WornOut(u32),
}

/// The message: what `unwrap` and a failed assertion print.
impl core::fmt::Debug for OpenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

struct Slot {
    /// Held for each call of the HAL about the queue: it orders nothing between threads by itself.
    queue: Mutex<Option<(u32, Queue)>>,
    /// [`QueueStatus`]; written under the lock.
    status: AtomicU64,
}

/// The platform of a card. One for a library, in a static: it outlives launches, as the library does.
pub struct CardPlatform<C> {
    slots: [Slot; MAX_QUEUES],
    clock: PhantomData<fn() -> C>,
}

impl<C: Clock> Default for CardPlatform<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock> CardPlatform<C> {
    /// No queue is open.
    pub const fn new() -> Self {
        let slots =
            [const { Slot { queue: Mutex::new(None), status: AtomicU64::new(QueueStatus::FREE.0) } }; MAX_QUEUES];
        Self { slots, clock: PhantomData }
    }

    /// Opens a queue at the start of a launch, again if it is open: the host may have reset it between two. Not while another
    /// launch fills the queue. `generation` is that of its thread.
    ///
    /// # Errors
    /// [`OpenError`]. A queue that was open and can't be opened again takes no tasks.
    pub fn open(&self, hal: &Hal, ids: QueueIds, generation: u16) -> Result<Opened, OpenError> {
        let is_its = |slot: &&Slot| slot.queue.lock().as_ref().is_some_and(|(sq, _)| *sq == ids.sq);
        let is_free = |slot: &&Slot| slot.queue.lock().is_none();
        // Two launches that open a queue at a time find the same slot, or the second one finds it taken by the first.
        let slot = self.slots.iter().find(is_its).or_else(|| self.slots.iter().find(is_free)).ok_or(OpenError::Full)?;
        let mut queue = slot.queue.lock();
        if queue.as_ref().is_some_and(|(sq, _)| *sq != ids.sq) {
            drop(queue);
            return self.open(hal, ids, generation);
        }
        let before = QueueStatus(slot.status.load(Ordering::Relaxed));
        slot.status.store(before.with_state(QueueStatus::FREE).0, Ordering::Release);
        let (opened, position) = Queue::open(hal, ids)?;
        // Never a word that a core may have seen: the library then restarts at the head.
        let status = if queue.is_some() && before.generation() == generation {
            before.with_state(QueueStatus::ENABLED).after_reset().ok_or(OpenError::WornOut(ids.sq))?
        } else {
            QueueStatus::ENABLED.with_generation(generation)
        };
        *queue = Some((ids.sq, opened));
        slot.status.store(status.0, Ordering::Release);
        let regs = self.slots.iter().position(|other| core::ptr::eq(other, slot)).map_or(0, |index| index as u64);
        Ok(Opened { regs, base: opened.base(), depth: opened.depth(), position })
    }

    /// The slot that `regs` of a descriptor names.
    fn slot(&self, regs: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(regs).ok()?)
    }

    /// Calls `ask` with the open queue.
    fn with<T>(&self, queue: QueueId, ask: impl FnOnce(&Slot, &Queue) -> T) -> Option<T> {
        let slot = self.slot(queue.regs())?;
        let open = slot.queue.lock();
        let (_, open) = open.as_ref().filter(|(sq, _)| *sq == queue.sq_id())?;
        Some(ask(slot, open))
    }
}

/// What [`ReadFailed`] carries where the HAL has given no code.
const NO_CODE: i32 = -1;

impl<C: Clock> Platform for CardPlatform<C> {
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        self.slot(regs).is_some_and(|slot| slot.queue.lock().as_ref().is_some_and(|(sq, _)| *sq == sq_id))
    }

    fn head(&self, queue: QueueId) -> Result<u32, ReadFailed> {
        let head = self.with(queue, |_, queue| queue.head()).ok_or(ReadFailed(NO_CODE))?;
        // What the device has fetched may be written again, but not before the head was read.
        barrier::load();
        head.map_err(|error| match error {
            HalError::Query { code, .. } | HalError::Failed { code, .. } => ReadFailed(code),
            _ => ReadFailed(NO_CODE),
        })
    }

    /// A word of ours: asking the driver for it is a system call.
    fn status(&self, queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        let slot = self.slot(queue.regs()).ok_or(ReadFailed(NO_CODE))?;
        Ok(QueueStatus(slot.status.load(Ordering::Acquire)))
    }

    fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        let ring = |slot: &Slot, queue: &Queue| {
            queue.ring(tail).map_err(|error| {
                if let RingError::Suspended { .. } = error {
                    let status = QueueStatus(slot.status.load(Ordering::Relaxed));
                    slot.status.store(status.with_state(QueueStatus::SUSPENDED).0, Ordering::Release);
                }
                DoorbellRefused
            })
        };
        self.with(queue, ring).unwrap_or(Err(DoorbellRefused))
    }

    fn store_barrier(&self) {
        barrier::store();
    }

    fn now_us(&self) -> u64 {
        C::now_us()
    }

    fn delay(&self) -> impl DelayNs {
        Spin::<C>(PhantomData)
    }
}

/// Waits by looking at the clock: a kernel has no scheduler to give the core to.
struct Spin<C>(PhantomData<fn() -> C>);

impl<C: Clock> DelayNs for Spin<C> {
    fn delay_ns(&mut self, ns: u32) {
        // One more than it takes: the first microsecond may be over at once.
        let us = u64::from(ns.div_ceil(1000)) + 1;
        let begin = C::now_us();
        loop {
            #[cfg(target_arch = "aarch64")]
            // SAFETY: a hint, which touches nothing.
            unsafe {
                core::arch::asm!("yield", options(nomem, nostack, preserves_flags));
            }
            #[cfg(not(target_arch = "aarch64"))]
            core::hint::spin_loop();
            if ns == 0 || C::now_us().wrapping_sub(begin) >= us {
                return;
            }
        }
    }
}
