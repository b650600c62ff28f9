//! What scheduler, host and native kernels share of a device.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::spec::soc::Soc;

use super::alloc::{AllocError, Allocator, FreeError, Kind};
use super::check::contents;
use super::check::list::{Check, Checks};
use super::deterministic::{HostWait, Turn};
use super::error::{DeviceError, DoorbellError};
use super::event::{Access, AccessKind, Feed, HostThread, Object, Origin, Range, SiteId, What};
use super::fault::FaultLog;
use super::inbox::{Command, Inbox};
use super::memory::Memory;
use super::queue::{QueueConfig, QueueEntry, QueueTable, Registers, check_doorbell, distance};

/// Counters of a device.
#[derive(Debug, Default)]
pub struct DeviceCounters {
    /// Tasks carried out.
    pub tasks: AtomicU64,
    /// Doorbells seen.
    pub doorbells: AtomicU64,
    /// Tasks whose source and destination overlap in part, where that is no error.
    pub overlaps: AtomicU64,
    /// Entries of channels that were carried out.
    pub entries: AtomicU64,
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
    /// Checks that the device makes.
    pub checks: Checks,
    /// Faults of the plan that have happened.
    pub fault_log: FaultLog,
    /// The first error.
    pub failed: FirstError,
    /// Events.
    pub events: Feed,
    /// Who may run, and what time it is.
    pub turn: Arc<dyn Turn>,
}

impl<M: Memory> Shared<M> {
    /// The allocator.
    pub fn lock_alloc(&self) -> MutexGuard<'_, Allocator> {
        self.alloc.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates `len` bytes of HBM, for a thread of the host.
    ///
    /// # Errors
    /// [`AllocError`].
    pub fn allocate(&self, len: u64, kind: Kind) -> Result<u64, AllocError> {
        let site = self.events.site();
        let mut alloc = self.lock_alloc();
        let addr = alloc.allocate(len, kind)?;
        self.turn.touch(Access::new(Object::Allocations, AccessKind::Write));
        if kind == Kind::User && self.checks.is_on(Check::Init) {
            contents::fill(&*self.memory, addr, len).expect("what is allocated is in hbm");
        }
        alloc.made_at(addr, self.events.place(site));
        // Under the lock: the free of the previous owner of these bytes is an earlier event.
        self.events.send(|| What::Alloc { host: HostThread::current(), range: Range { addr, len }, kind, site });
        Ok(addr)
    }

    /// Frees what the device has allocated for itself. `host`: the thread of the host that asked for it.
    ///
    /// # Panics
    /// If it is not the address of a live allocation.
    pub fn free_own(&self, addr: u64, host: Option<HostThread>) {
        let freed = self.free(addr, host, Allocator::free);
        freed.expect("the device frees only what it has allocated");
    }

    /// Frees what the user has allocated.
    ///
    /// # Errors
    /// [`FreeError`].
    pub fn free_user(&self, addr: u64) -> Result<(), FreeError> {
        self.free(addr, Some(HostThread::current()), Allocator::free_user)
    }

    /// Frees, and gives memory that is no longer needed back to the system.
    fn free(
        &self,
        addr: u64,
        host: Option<HostThread>,
        free: impl FnOnce(&mut Allocator, u64) -> Result<u64, FreeError>,
    ) -> Result<(), FreeError> {
        let site = host.map_or(SiteId::UNKNOWN, |_| self.events.site());
        let mut alloc = self.lock_alloc();
        let len = free(&mut alloc, addr)?;
        alloc.freed_at(addr, self.events.place(site));
        self.turn.touch(Access::new(Object::Allocations, AccessKind::Write));
        self.turn.touch(Access::of(Object::Memory, addr, len, AccessKind::Write));
        self.events.send(|| What::Free { host, range: Range { addr, len }, site });
        // Under the lock: the range cannot have been allocated again.
        for (start, len) in alloc.take_unused() {
            self.memory.discard(start, len);
        }
        Ok(())
    }

    /// Entry of queue `sq_id`.
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn queue_entry(&self, sq_id: u32) -> &QueueEntry {
        self.queues.get(sq_id).unwrap_or_else(|| panic!("queue {sq_id} of {}", self.queues.count()))
    }

    /// Makes and enables a queue for a thread of `generation`. `refuse_at`: number of the doorbell that is refused, counted
    /// from 1; 0 = none.
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn add_queue(&self, config: QueueConfig, generation: u16, refuse_at: u64) {
        let QueueConfig { sq_id, depth, .. } = config;
        let (registers, entry) = (Registers::of(&*self.memory, sq_id), self.queue_entry(sq_id));
        registers.reset();
        entry.clear();
        entry.refuse_at.store(refuse_at, Ordering::Relaxed);
        self.inbox.send(Command::AddQueue(config));
        entry.depth.store(depth, Ordering::Release);
        registers.enable(generation);
    }

    /// The state of a queue changes.
    pub(crate) fn touch_status(&self, sq_id: u32) {
        self.turn.touch(Access::new(Object::Status(sq_id), AccessKind::Write));
    }

    /// Lets the status of a queue say that its doorbells are refused.
    pub fn announce_refused_doorbell(&self, sq_id: u32) {
        self.touch_status(sq_id);
        Registers::of(&*self.memory, sq_id).set_state(QueueStatus::REFUSING);
        self.inbox.send(Command::Refused(sq_id));
    }

    /// Tells the device that a queue is free: doorbells of it are refused.
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn free_queue(&self, sq_id: u32) {
        self.touch_status(sq_id);
        Registers::of(&*self.memory, sq_id).set_state(QueueStatus::FREE);
        self.queue_entry(sq_id).depth.store(0, Ordering::Release);
    }

    /// Waits for an answer of the scheduler: at most `limit`, but in deterministic mode as long as anything goes on.
    ///
    /// # Errors
    /// [`RecvTimeoutError`].
    pub fn receive<T>(&self, answer: &Receiver<T>, limit: Duration) -> Result<T, RecvTimeoutError> {
        let mut result = Err(RecvTimeoutError::Timeout);
        let waited = self.turn.host_waits(HostWait::Answer(limit), &mut |slice| {
            result = answer.recv_timeout(slice);
            !matches!(result, Err(RecvTimeoutError::Timeout))
        });
        waited.map_err(|_| RecvTimeoutError::Timeout).and(result)
    }

    fn refuse(&self, sq_id: u32, tail: u32, origin: Origin, error: DoorbellError) -> DoorbellError {
        self.events.send(|| What::DoorbellRefused { by: origin, sq_id, tail, error });
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
                self.inbox.send(Command::Refused(sq_id));
                return Err(self.refuse(sq_id, tail, origin, DoorbellError::Refused));
            }
        }
        // Only the holder of the queue's lock, in the device crate, rings: no other store comes between these.
        let from = registers.doorbell().tail();
        let new = distance(from, tail, depth);
        let total = entry.map_or(0, |entry| entry.rung.fetch_add(new.into(), Ordering::Relaxed) + u64::from(new));
        // Before the doorbell: its tasks may start at once.
        self.events.rung(sq_id, from, new, depth, Some(origin));
        self.events.send(|| What::Doorbell { by: Some(origin), sq_id, tail });
        if self.turn.explores() {
            self.turn.touch(Access::of(Object::Entries(sq_id), total - u64::from(new), new.into(), AccessKind::Write));
            self.turn.touch(Access::new(Object::Tail(sq_id), AccessKind::Write));
        }
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
