//! What scheduler, host and native kernels share of a device.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::spec::soc::Soc;

use super::alloc::Allocator;
use super::baton::Baton;
use super::error::{DeviceError, DoorbellError};
use super::inbox::{Command, Inbox};
use super::memory::Memory;
use super::queue::{QueueTable, Registers, check_doorbell, distance};
use super::trace::{Origin, Recorder, What, Who};

/// Counters of a device.
#[derive(Debug, Default)]
pub struct DeviceCounters {
    /// Tasks carried out.
    pub tasks: AtomicU64,
    /// Doorbells seen.
    pub doorbells: AtomicU64,
    /// Tasks whose source and destination overlap in part, where that is no error.
    pub overlaps: AtomicU64,
}

/// The first error of a device: later ones are its consequences.
#[derive(Debug, Default)]
pub struct FirstError {
    is_set: AtomicBool,
    error: Mutex<Option<DeviceError>>,
}

impl FirstError {
    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// The error.
    pub fn get(&self) -> Option<DeviceError> {
        if self.is_set() { self.lock().clone() } else { None }
    }

    /// Keeps `error` if it is the first one. Gives the first one.
    pub fn set(&self, error: DeviceError) -> DeviceError {
        let first = self.lock().get_or_insert(error).clone();
        self.is_set.store(true, Ordering::Release);
        first
    }

    /// Forgets it: the device works again.
    pub fn clear(&self) {
        let mut error = self.lock();
        self.is_set.store(false, Ordering::Release);
        *error = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<DeviceError>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What scheduler, host and native kernels share.
pub struct Shared<M> {
    /// Memory.
    pub memory: Arc<M>,
    /// Chip whose descriptors the queues hold.
    pub soc: Soc,
    /// Allocations of HBM.
    pub alloc: Mutex<Allocator>,
    /// Commands.
    pub inbox: Arc<Inbox>,
    /// Queues.
    pub queues: QueueTable,
    /// Counters.
    pub counters: DeviceCounters,
    /// What a kernel forgets is an error, not a warning.
    pub strict: bool,
    /// The first error.
    pub failed: FirstError,
    /// Events.
    pub recorder: Recorder,
    /// Deterministic mode.
    pub baton: Option<Arc<Baton>>,
}

impl<M: Memory> Shared<M> {
    /// The allocator.
    pub fn lock_alloc(&self) -> MutexGuard<'_, Allocator> {
        self.alloc.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an answer of the scheduler: at most `limit`, but in deterministic mode as long as anything goes on.
    ///
    /// # Errors
    /// [`RecvTimeoutError`].
    pub fn receive<T>(&self, answer: &Receiver<T>, limit: Duration) -> Result<T, RecvTimeoutError> {
        match &self.baton {
            Some(baton) => baton.enter().receive(answer),
            None => answer.recv_timeout(limit),
        }
    }

    /// Records that `origin` rings queue `sq_id` up to `tail`.
    pub fn record_doorbell(&self, sq_id: u32, tail: u32, origin: Option<Origin>) {
        if self.recorder.is_on() {
            self.recorder.rung(sq_id, tail, origin);
            let who = origin.map_or(Who::Stars, |origin| Who::Core(origin.core));
            self.recorder.record(who, || What::Doorbell { sq_id, tail });
        }
    }

    fn refuse(&self, sq_id: u32, tail: u32, origin: Origin, error: DoorbellError) -> DoorbellError {
        self.recorder.record(Who::Core(origin.core), || What::DoorbellRefused { sq_id, tail, error });
        error
    }

    /// Rings a doorbell by a call: what a native kernel, that of launch `origin`, does. Gives the entries that were rung since
    /// the queue was made.
    ///
    /// # Errors
    /// [`DoorbellError`]. A doorbell that is wrong has been reported as an error of the device too.
    pub fn ring(&self, sq_id: u32, tail: u32, origin: Origin) -> Result<u64, DoorbellError> {
        let entry = self.queues.get(sq_id);
        let depth = entry.map_or(0, |entry| entry.depth.load(Ordering::Acquire));
        if let Err(error) = check_doorbell(depth, tail) {
            self.inbox.send(Command::BadDoorbell(sq_id, error));
            return Err(self.refuse(sq_id, tail, origin, error));
        }
        let registers = Registers::of(&*self.memory, sq_id);
        if registers.status().state() != QueueStatus::ENABLED {
            return Err(self.refuse(sq_id, tail, origin, DoorbellError::Refused));
        }
        if let Some(entry) = entry {
            let ring = entry.rings.fetch_add(1, Ordering::Relaxed) + 1;
            if ring == entry.refuse_at.load(Ordering::Relaxed) {
                return Err(self.refuse(sq_id, tail, origin, DoorbellError::Refused));
            }
        }
        // Only the holder of the queue's lock, in the device crate, rings: nobody comes between these.
        let new = u64::from(distance(registers.doorbell().tail(), tail, depth));
        let total = entry.map_or(0, |entry| entry.rung.fetch_add(new, Ordering::Relaxed) + new);
        // Before the doorbell: its tasks may start at once.
        self.record_doorbell(sq_id, tail, Some(origin));
        registers.ring(tail);
        // Pairs with the fence of `Scheduler::retire`: either we see `noticed` unset, or the scheduler sees the new doorbell.
        fence(Ordering::SeqCst);
        if let Some(entry) = entry
            && !entry.noticed.swap(true, Ordering::Relaxed)
        {
            self.inbox.send(Command::Rung(sq_id));
        }
        Ok(total)
    }
}
