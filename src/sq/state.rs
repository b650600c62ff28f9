//! The device's own state of one queue: where its ring is, what of it was written, rung and run, and which ids are next.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::batch::BatchId;
use super::ids::{HeldBlock, Holds};
use super::ring::Ring;
use super::stars::{Format, Ids};
use crate::channel::state::{Channels, StagedChannels};
use crate::error::{QueueField, QueueFull};
use crate::handle::{QueuePlace, Slot, TablePlace};
use crate::port::{Platform, QueueId, ReadFailed};
use crate::spec::queue::QueueStatus;
use crate::spec::soc::Soc;
use crate::spec::thread::ThreadHandle;
use crate::stop::Stop;
use crate::sync::{Mutex, MutexGuard, const_fn, fence, lock_cold};

/// What a call reads together lies together.
#[repr(C)]
pub(crate) struct State {
    /// Slot of the thread that everything below belongs to. Its handle was found good, and as long as the status word is
    /// `enabled`, it still is: no other thread and no reset gives the queue this word again.
    pub(crate) slot: Option<Slot>,
    pub(crate) ring: Ring,
    /// Head as last read. The device may be further on.
    pub(crate) head: u32,
    /// One past the last entry that the device may run.
    pub(crate) rung: u32,
    /// One past the last entry that is written: from `rung` up to here tasks are staged.
    pub(crate) tail: u32,
    /// Bound of the fast path: from the tail up to here entries are free, are not the last of the ring, and have ids in their
    /// range, one each. Closed (the tail itself) on SoCs whose ids are not counted so, and while calls are recorded.
    pub(crate) straight_end: u32,
    /// Status word that lets a call take the fast path.
    pub(crate) enabled: QueueStatus,
    /// The batch that has staged the tasks from `rung` to `tail`, all of one core; none when there are none.
    pub(crate) stager: BatchId,
    /// Batch that lost staged tasks to a queue reset or to another thread in the slot; cleared when its end reports it. Only
    /// the latest is kept.
    lost: BatchId,
    /// How often the tail has gone over the end of the ring.
    pub(crate) lap: u32,
    /// Channels whose doorbells are staged.
    pub(crate) staged_channels: StagedChannels,
    pub(crate) ids: Ids,
    /// Of the device.
    pub(crate) rules: Rules,
    /// The device refused doorbells when the queue was last entered.
    pub(crate) is_refusing: bool,
}

impl State {
    const NONE: Self = Self {
        slot: None,
        ring: Ring::NONE,
        head: 0,
        rung: 0,
        tail: 0,
        straight_end: 0,
        enabled: QueueStatus::FREE,
        stager: BatchId::NONE,
        lost: BatchId::NONE,
        lap: 0,
        staged_channels: StagedChannels::NONE,
        ids: Ids::FIRST,
        rules: Rules::NONE,
        is_refusing: false,
    };

    /// Whether the state is that of the thread of `handle`, with `count` entries for the fast path. A queue without a thread
    /// has none, so its registers are not looked at.
    #[inline(always)]
    pub(crate) fn has_straight(&self, handle: ThreadHandle, count: u64) -> bool {
        (self.handle() == handle) & (count <= (self.straight_end - self.tail).into())
    }

    #[inline(always)]
    fn handle(&self) -> ThreadHandle {
        self.slot.map_or(ThreadHandle(0), Slot::handle)
    }

    /// Place of the next entry among all that were ever put into the ring, but for those that were dropped.
    #[inline(always)]
    pub(crate) fn position(&self) -> u64 {
        u64::from(self.lap) << 32 | u64::from(self.tail)
    }

    /// The same for the entry that the device fetches next.
    pub(crate) fn head_position(&self) -> u64 {
        let lap = self.lap.wrapping_sub(u32::from(self.head > self.tail));
        u64::from(lap) << 32 | u64::from(self.head)
    }

    /// Free entries as far as the cached head tells. One entry stays empty: a full ring differs from an empty one.
    pub(crate) fn free(&self) -> u32 {
        self.ring.depth - 1 - self.ring.distance(self.head, self.tail)
    }

    /// Recomputes how many entries the fast path may use. Called after every other change of head, tail or ids.
    #[cold]
    #[inline(never)]
    pub(crate) fn open(&mut self) {
        let end = if self.head > self.tail { self.head - 1 } else { self.ring.depth - 1 };
        let straight = if self.rules.recording() { 0 } else { self.ids.straight(self.rules.format()) };
        self.straight_end = self.tail + straight.min(end - self.tail);
    }

    /// Reads the head again. The device is not trusted: it can only have come closer to what was rung, not to what is staged.
    pub(crate) fn read_head<P: Platform>(&mut self, io: &P) -> Result<(), Stop> {
        let ring = self.ring;
        let head = io.head(ring.queue).map_err(|error| unreadable(ring.queue, QueueField::Head, error))?;
        let outstanding = ring.distance(self.head, self.rung);
        if head >= ring.depth || ring.distance(head, self.rung) > outstanding {
            return Err(Stop::bad_head(ring.queue.sq_id(), head, self.rung));
        }
        // Pairs with the device's release store of the head: it has read the entries before it, we may write them now.
        fence(Ordering::Acquire);
        self.head = head;
        Ok(())
    }

    /// What a call answers that has waited for `wanted` free entries for too long.
    pub(crate) fn full(&self, wanted: u32, queued_len: u64, timeout_us: u64) -> QueueFull {
        let Self { ring, head, tail, .. } = *self;
        QueueFull { sq_id: ring.queue.sq_id(), head, tail, wanted, queued_len, timeout_us }
    }

    pub(crate) fn status<P: Platform>(&self, io: &P) -> Result<QueueStatus, Stop> {
        io.status(self.ring.queue).map_err(|error| unreadable(self.ring.queue, QueueField::Status, error))
    }

    #[inline]
    pub(crate) fn has_staged(&self) -> bool {
        self.stager != BatchId::NONE
    }

    /// Makes everything before `tail` the device's: the one place that rings.
    #[inline(always)]
    pub(crate) fn ring<P: Platform>(&mut self, io: &P, tail: u32) -> Result<(), Stop> {
        // Pairs with the device's acquire load of the doorbell: it sees the new tail only after the slots.
        io.store_barrier();
        if io.ring(self.ring.queue, tail).is_err() {
            return Err(Stop::doorbell_refused(self.ring.queue.sq_id()));
        }
        self.rung = tail;
        Ok(())
    }

    /// [`ring`](Self::ring) for the slow path: out of line, and for all that is staged.
    #[cold]
    #[inline(never)]
    pub(crate) fn ring_cold<P: Platform>(&mut self, io: &P, tail: u32) -> Result<(), Stop> {
        self.ring(io, tail)?;
        self.staged_channels.end(true);
        Ok(())
    }

    /// Rings for what is staged, unless the queue takes no tasks any more or was reset since. If that fails `batch` loses
    /// its tasks: they must not run with a later doorbell.
    #[cold]
    #[inline(never)]
    pub(crate) fn ring_staged<P: Platform>(&mut self, io: &P, batch: BatchId) -> Result<(), Stop> {
        if !self.has_staged() {
            return Ok(());
        }
        let result = self.try_ring_staged(io);
        if result.is_ok() || self.stager == batch {
            self.settle_staged();
        }
        result
    }

    /// Rings for what another core has staged, if `batch` is about to stage: what happens at the end of either is its own.
    pub(crate) fn publish_others<P: Platform>(&mut self, io: &P, batch: BatchId) -> Result<(), Stop> {
        if batch == BatchId::NONE || batch == self.stager { Ok(()) } else { self.ring_staged(io, batch) }
    }

    #[inline(always)]
    fn try_ring_staged<P: Platform>(&mut self, io: &P) -> Result<(), Stop> {
        let status = self.status(io)?;
        if status == self.enabled {
            self.ring_cold(io, self.tail)
        } else {
            Err(stop(status, self.ring.queue, self.handle()))
        }
    }

    /// What is staged was rung for, or is dropped.
    fn settle_staged(&mut self) {
        // Unless it was published.
        self.staged_channels.end(false);
        self.lap = self.lap.wrapping_sub(u32::from(self.rung > self.tail));
        (self.tail, self.stager) = (self.rung, BatchId::NONE);
        self.open();
    }

    /// Forgets what `batch` has staged, and nothing of another one.
    fn drop_staged(&mut self, batch: BatchId) {
        if self.stager == batch {
            self.settle_staged();
        }
    }

    /// Forgets all that is staged, by any batch.
    fn lose_staged(&mut self) {
        if self.has_staged() {
            self.staged_channels.end(false);
            (self.lost, self.stager) = (self.stager, BatchId::NONE);
        }
    }

    /// Tells `batch`, once, if tasks of it were lost.
    #[inline(always)]
    pub(crate) fn take_loss(&mut self, batch: BatchId) -> Result<(), Stop> {
        if self.lost != batch {
            return Ok(());
        }
        self.lost = BatchId::NONE;
        Err(Stop::suspended(self.ring.queue.sq_id()))
    }

    /// Restarts at the head that the device reports: after a thread was acquired or its queue was reset.
    fn restart<P: Platform>(&mut self, io: &P, rules: Rules, status: QueueStatus) -> Result<(), Stop> {
        let Ring { depth, queue, .. } = self.ring;
        let head = io.head(queue).map_err(|error| unreadable(queue, QueueField::Head, error))?;
        if head >= depth {
            return Err(Stop::bad_head(queue.sq_id(), head, depth));
        }
        self.lose_staged();
        (self.head, self.rung, self.tail) = (head, head, head);
        (self.enabled, self.rules) = (status.with_state(QueueStatus::ENABLED), rules);
        self.open();
        Ok(())
    }
}

#[cold]
fn unreadable(queue: QueueId, field: QueueField, ReadFailed(code): ReadFailed) -> Stop {
    Stop::unreadable(queue.sq_id(), field, code)
}

/// Why a queue with this status takes no tasks; or, if it is enabled with another word than before, none of those that were
/// staged.
#[cold]
#[inline(never)]
fn stop(status: QueueStatus, queue: QueueId, handle: ThreadHandle) -> Stop {
    match status.state() {
        QueueStatus::REFUSING => Stop::doorbell_refused(queue.sq_id()),
        QueueStatus::SUSPENDED | QueueStatus::ENABLED => Stop::suspended(queue.sq_id()),
        _ => Stop::bad_handle(handle),
    }
}

/// What holds for all queues of a device: one word, that each queue keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules(u32);

impl Rules {
    /// Ascend950, and no calls are recorded.
    pub(crate) const NONE: Self = Self(0);
    const STARS_910: u32 = 1;
    const RECORDING: u32 = 2;

    /// What the chip takes.
    #[inline(always)]
    pub(crate) fn format(self) -> Format {
        if self.0 & Self::STARS_910 == 0 { Format::Stars950 } else { Format::Stars910 }
    }

    /// Calls are recorded: none may take the fast path.
    #[inline(always)]
    fn recording(self) -> bool {
        self.0 & Self::RECORDING != 0
    }
}

/// What the queues of a device share, as it is told before the first launch. All zero: a device without threads, an Ascend950,
/// calls that are not recorded.
#[repr(C)]
pub(crate) struct Shared {
    pub(crate) table: TablePlace,
    /// Address of the first record ring, or 0.
    records: AtomicU64,
    /// [`Rules`].
    rules: AtomicU32,
    /// Device type of the SoC, or 0.
    soc: AtomicU32,
}

impl Shared {
    pub(crate) const fn none() -> Self {
        let (records, soc) = (AtomicU64::new(0), AtomicU32::new(0));
        Self { table: TablePlace::none(), records, rules: AtomicU32::new(Rules::NONE.0), soc }
    }

    pub(crate) fn set_soc(&self, soc: Soc) {
        self.soc.store(soc as u32, Ordering::Relaxed);
        self.set_rule(Rules::STARS_910, Format::of(soc) == Format::Stars910);
    }

    /// The chip whose descriptors are queued.
    #[inline]
    pub(crate) fn soc(&self) -> Soc {
        Soc::from_device_type(self.soc.load(Ordering::Relaxed)).unwrap_or(Soc::Ascend950)
    }

    /// # Safety
    /// As for [`Device::set_record_rings`](crate::Device::set_record_rings).
    pub(crate) unsafe fn set_records(&self, base: u64) {
        self.records.store(base, Ordering::Relaxed);
        self.set_rule(Rules::RECORDING, base != 0);
    }

    /// Address of the first record ring; 0: calls are not recorded.
    #[inline(always)]
    pub(crate) fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    fn set_rule(&self, bit: u32, holds: bool) {
        if holds {
            self.rules.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.rules.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn rules(&self) -> Rules {
        Rules(self.rules.load(Ordering::Relaxed))
    }
}

/// One entry of the device-private table of queues; each slot of the thread table has its own.
#[repr(align(128))]
pub(crate) struct QueueSlot {
    state: Mutex<State>,
    held: HeldBlock,
}
/// Memory of a thread, ring and notifies apart.
#[cfg(not(loom))]
const _: () = assert!(size_of::<QueueSlot>() + crate::spec::thread::DESCRIPTOR_SIZE as usize <= 256);

impl Holds for QueueSlot {
    fn held(&self) -> &HeldBlock {
        &self.held
    }
}

impl QueueSlot {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { state: Mutex::new(State::NONE), held: HeldBlock::none() }
        }
    }

    /// For the fast path, which leaves a queue that another core holds to the slow one.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.try_lock()
    }

    /// For the slow path: out of line.
    pub(crate) fn lock_slow(&self) -> MutexGuard<'_, State> {
        lock_cold(&self.state)
    }

    /// Looks `handle` up, and at the status of its queue; `state` is then that of the thread, and of the queue since its
    /// last reset.
    ///
    /// # Errors
    /// A bad handle, a descriptor or head that can't be, a queue that takes no tasks.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter<P: Platform>(
        &self,
        io: &P,
        shared: &Shared,
        handle: ThreadHandle,
        state: &mut State,
    ) -> Result<(), Stop> {
        let result = self.try_enter(io, shared, handle, state);
        state.is_refusing = result.is_ok_and(|status| status.state() == QueueStatus::REFUSING);
        result.map(drop)
    }

    #[inline(always)]
    fn try_enter<P: Platform>(
        &self,
        io: &P,
        shared: &Shared,
        handle: ThreadHandle,
        state: &mut State,
    ) -> Result<QueueStatus, Stop> {
        let is_new = state.handle() != handle;
        let mut status = if is_new { QueueStatus::FREE } else { state.status(io)? };
        // A new thread, a reset, or another thread in the slot: only the table tells which.
        let is_other = is_new || status.epoch() != state.enabled.epoch();
        let place = if is_other { Some(shared.table.get().queue_place(handle)?) } else { None };
        if let Some(place) = &place
            && is_new
        {
            state.ring = ring_of(io, place)?;
            state.lose_staged();
            // Of no thread until it has restarted.
            (state.slot, state.ids) = (None, Ids::FIRST);
            (state.tail, state.straight_end) = (0, 0);
            self.held.clear();
            status = state.status(io)?;
        }
        if !matches!(status.state(), QueueStatus::ENABLED | QueueStatus::REFUSING) {
            return Err(stop(status, state.ring.queue, handle));
        }
        if let Some(place) = place {
            state.restart(io, shared.rules(), status)?;
            state.slot = Some(place.slot);
        }
        Ok(status)
    }

    /// Rings for the tasks that `batch` has staged, for a caller that needs them to run. An error counts as lost tasks of the batch.
    /// The channels with staged doorbells learn what became of them.
    pub(crate) fn publish<P: Platform>(&self, io: &P, channels: &Channels, batch: BatchId) -> Result<(), Stop> {
        let mut state = self.lock_slow();
        let result = if state.stager == batch { state.ring_staged(io, batch) } else { Ok(()) };
        channels.settle(&mut state.staged_channels);
        if result.is_err() {
            state.lost = batch;
        }
        result
    }

    /// Forgets the tasks that `batch` has staged.
    pub(crate) fn drop_staged(&self, batch: BatchId) {
        let mut state = self.lock_slow();
        state.drop_staged(batch);
        // A launch that is over is told of nothing.
        let _ = state.take_loss(batch);
    }
}

/// The ring of a thread of engine AICPU_TS, as its descriptor gives it now.
#[inline(always)]
fn ring_of<P: Platform>(io: &P, place: &QueuePlace) -> Result<Ring, Stop> {
    let QueuePlace { sq_base, depth, sq_id, regs, stream_id, .. } = *place;
    let bad = Stop::bad_field(sq_id, QueueField::Registers, regs);
    let queue = QueueId::of(io, sq_id, regs).ok_or(bad)?;
    Ring::new(sq_base, depth, queue, stream_id)
}
