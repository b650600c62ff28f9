//! The platform of a card: the queues of this process by number, for `hcomm-aicpu`.

use core::marker::PhantomData;
use core::mem::transmute;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use embedded_hal::delay::DelayNs;
use hcomm_aicpu::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use hcomm_aicpu::spec::queue::QueueStatus;
use spin::Mutex;

use crate::abi::{SqCqFn, code};
use crate::barrier;
use crate::error::HalError;
use crate::functions::Hal;
use crate::queue::{Position, Queue, QueueIds, TaskFailure, tail_of};

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
    /// [`Queue::restore_code`].
    pub restore_code: Option<i32>,
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
    /// The device has tasks in it that this library has not queued, or no longer knows of.
    #[error("sq {sq} has tasks of someone else: head {head}, tail {tail}")]
    Busy {
        /// Submission queue.
        sq: u32,
        /// Entry that the device fetches next.
        head: u32,
        /// Entry behind the last one that was rung for.
        tail: u32,
    },
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

/// A queue of the platform. `regs` of a descriptor is its address.
#[repr(C, align(64))]
struct Slot {
    /// [`QueueStatus`]; written under the lock. First: every call reads it.
    status: AtomicU64,
    /// What the doorbell needs of the open queue. Written under the lock.
    doorbell: Doorbell,
    /// Held while the queue is opened or closed, and for questions about it.
    queue: Mutex<Option<(u32, Queue)>>,
}

/// A doorbell takes no lock of the platform's: `hcomm-aicpu` rings a queue under the queue's own lock, and it is not opened or closed
/// while a launch fills it ([`CardPlatform::open`]).
struct Doorbell {
    /// Address of `halSqCqConfig`, 0: the queue is not open.
    config: AtomicUsize,
    device: AtomicU32,
    sq: AtomicU32,
    /// Tail that the driver took last.
    rung: AtomicU32,
}

impl Doorbell {
    const fn none() -> Self {
        let (device, sq, rung) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        Self { config: AtomicUsize::new(0), device, sq, rung }
    }

    fn set(&self, queue: &Queue, tail: u32) {
        let (config, device, sq) = queue.doorbell();
        self.device.store(device, Ordering::Relaxed);
        self.sq.store(sq, Ordering::Relaxed);
        self.rung.store(tail, Ordering::Relaxed);
        self.config.store(config as usize, Ordering::Release);
    }

    fn clear(&self) {
        self.config.store(0, Ordering::Relaxed);
    }

    /// Tells the driver the new tail, and gives its code; `None`: the queue is not open.
    #[inline(always)]
    fn ring(&self, sq: u32, tail: u32) -> Option<i32> {
        // SAFETY: Option of a function pointer has the layout of an address in which 0 is None; `set` alone stores another one.
        let config = unsafe { transmute::<usize, Option<SqCqFn>>(self.config.load(Ordering::Acquire)) }?;
        if self.sq.load(Ordering::Relaxed) != sq {
            return None;
        }
        let mut info = tail_of(sq, tail);
        // SAFETY: the function has this signature in the HAL's header, and `info` is its whole argument, ours for the call.
        Some(unsafe { config(self.device.load(Ordering::Relaxed), &raw mut info) })
    }
}

impl Slot {
    /// `regs` of a descriptor whose queue this is.
    fn regs(&self) -> u64 {
        core::ptr::from_ref(self).expose_provenance() as u64
    }

    /// The slot of a queue, which one of these platforms has.
    #[inline(always)]
    fn of<'s>(queue: QueueId) -> &'s Self {
        // SAFETY: `has_queue` has found the address to be that of a slot (contract of `QueueId`). Slots lie in a platform that the
        // program has exported, a static, or that outlives the caller's use of it.
        unsafe { &*core::ptr::with_exposed_provenance::<Self>(queue.regs() as usize) }
    }
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
        let slots = [const {
            Slot { queue: Mutex::new(None), status: AtomicU64::new(QueueStatus::FREE.0), doorbell: Doorbell::none() }
        }; MAX_QUEUES];
        Self { slots, clock: PhantomData }
    }

    /// Opens a queue at the start of a launch, again if it is open: the host may have reset it between two. Not while another
    /// launch fills the queue. `generation` is that of its thread.
    ///
    /// A queue that stands where this library has left it goes on from there, also while the device still runs tasks of an
    /// earlier launch. Otherwise it was reset, or is new: it must be empty, and the library restarts at its head.
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
        let Position { head, tail } = position;
        let is_known = queue.is_some() && before.generation() == generation;
        let status = if is_known && tail == slot.doorbell.rung.load(Ordering::Relaxed) {
            before.with_state(QueueStatus::ENABLED)
        } else if head != tail {
            // A restart at the head would write over entries that the device has not fetched.
            return Err(OpenError::Busy { sq: ids.sq, head, tail });
        } else if is_known {
            // Never a word that a core may have seen: the library then restarts at the head.
            before.with_state(QueueStatus::ENABLED).after_reset().ok_or(OpenError::WornOut(ids.sq))?
        } else {
            QueueStatus::ENABLED.with_generation(generation)
        };
        slot.doorbell.set(&opened, tail);
        *queue = Some((ids.sq, opened));
        slot.status.store(status.0, Ordering::Release);
        let regs = slot.regs();
        let (base, depth, restore_code) = (opened.base(), opened.depth(), opened.restore_code());
        Ok(Opened { regs, base, depth, position, restore_code })
    }

    /// Forgets a queue: its slot is free, and calls on it are refused. Nothing for one that is not open.
    pub fn close(&self, sq: u32) {
        for slot in &self.slots {
            let mut queue = slot.queue.lock();
            if queue.as_ref().is_some_and(|(open, _)| *open == sq) {
                slot.status.store(QueueStatus::FREE.0, Ordering::Release);
                slot.doorbell.clear();
                *queue = None;
            }
        }
    }

    /// [`Queue::failed_task`] of an open queue; `None` if it is not open.
    ///
    /// # Errors
    /// [`HalError`].
    pub fn failed_task(&self, sq: u32) -> Result<Option<TaskFailure>, HalError> {
        let open = |slot: &Slot| slot.queue.lock().as_ref().filter(|(open, _)| *open == sq).map(|(_, queue)| *queue);
        // A copy: the call of the driver may take long, and only the holder of the launch asks.
        self.slots.iter().find_map(open).map_or(Ok(None), |queue| queue.failed_task())
    }

    /// The slot that `regs` of a descriptor names.
    fn slot(&self, regs: u64) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.regs() == regs)
    }
}

/// What [`ReadFailed`] carries where the HAL has given no code.
const NO_CODE: i32 = -1;

impl<C: Clock> Platform for CardPlatform<C> {
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        self.slot(regs).is_some_and(|slot| slot.queue.lock().as_ref().is_some_and(|(sq, _)| *sq == sq_id))
    }

    fn head(&self, queue: QueueId) -> Result<u32, ReadFailed> {
        let open = Slot::of(queue).queue.lock().filter(|(sq, _)| *sq == queue.sq_id());
        let head = open.ok_or(ReadFailed(NO_CODE))?.1.head();
        // What the device has fetched may be written again, but not before the head was read.
        barrier::load();
        head.map_err(|error| match error {
            HalError::Query { code, .. } | HalError::Failed { code, .. } => ReadFailed(code),
            _ => ReadFailed(NO_CODE),
        })
    }

    /// A word of ours: asking the driver for it is a system call.
    #[inline(always)]
    fn status(&self, queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        Ok(QueueStatus(Slot::of(queue).status.load(Ordering::Acquire)))
    }

    /// Out of line: a call that stages its task needs no registers for it.
    #[inline(never)]
    fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        let slot = Slot::of(queue);
        match slot.doorbell.ring(queue.sq_id(), tail) {
            Some(code::OK) => {
                slot.doorbell.rung.store(tail, Ordering::Relaxed);
                Ok(())
            }
            answer => {
                if answer == Some(code::STATUS) {
                    let status = QueueStatus(slot.status.load(Ordering::Relaxed));
                    slot.status.store(status.with_state(QueueStatus::SUSPENDED).0, Ordering::Release);
                }
                Err(DoorbellRefused)
            }
        }
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
