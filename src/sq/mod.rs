//! Submission queues: the only writer of ring slots and doorbells.
//!
//! A call reserves entries, pushes tasks into them and commits. [`Slots::reserve`] is the fast path: a queue that is known
//! to be the handle's, is enabled, and has entries and ids in a straight line. [`refresh`] does everything else: it looks
//! the handle up, reads status and head again, waits for room, and gives entries that may wrap.
//!
//! Publication is two steps that no other core of the device can come between: all slots of a group are written, then one
//! barrier and one doorbell make them the device's. A group that is refused leaves tail and task ids as they were.

mod batch;
mod entries;
mod ids;
mod record;
mod ring;
mod slots;
mod stars;
mod state;
mod wait;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::channel::state::Channels;
use crate::error::{Error, QueueFull, Stop};
use crate::handle::TablePlace;
use crate::port::Platform;
use crate::spec::record::EntryPoint;
use crate::spec::soc::Soc;
#[cfg(not(loom))]
pub(crate) use crate::spec::thread::MAX_THREADS as MAX_QUEUES;
use crate::spec::thread::{DESCRIPTOR_SIZE, ThreadHandle};
use crate::sync::{MutexGuard, const_fn};
use crate::task::{Chunks, Request};
use batch::{Batch, BatchId};
pub(crate) use entries::{EntrySource, EntryWriter, has_passed, publish_staged, submit_doorbell, try_entry};
use ids::{IdAllocator, IdDraw};
pub(crate) use record::Note;
use record::Recorder;
use slots::{Drawn, Slots, Straight};
pub(crate) use slots::{Fast, TaskSource};
pub(crate) use stars::{has_aclrt_notifies, max_notify_id};
use state::{Doorbell, QueueSlot, Rules, State};
pub(crate) use wait::Wait;

/// Loom follows each lock: few are enough for it.
#[cfg(loom)]
pub(crate) const MAX_QUEUES: usize = 4;

/// The queues of a device.
#[repr(C)]
pub(crate) struct Queues {
    slots: [QueueSlot; MAX_QUEUES],
    pub(crate) channels: Channels,
    pub(crate) table: TablePlace,
    /// Device type of the SoC, or 0 for an Ascend950: a new device is all zero.
    soc: AtomicU32,
    /// Address of the first record ring, 0: calls are not recorded.
    records: AtomicU64,
    ids: IdAllocator,
}

impl Queues {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                slots: queue_slots(),
                channels: Channels::new(),
                table: TablePlace::none(),
                soc: AtomicU32::new(0),
                records: AtomicU64::new(0),
                ids: IdAllocator::new(),
            }
        }
    }

    pub(crate) fn set_soc(&self, soc: Soc) {
        self.soc.store(soc as u32, Ordering::Relaxed);
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
    }

    fn rules(&self) -> Rules<'_> {
        Rules { channels: &self.channels, soc: self.soc(), recording: self.records.load(Ordering::Relaxed) != 0 }
    }

    /// Index of the state of the queue behind `handle`. Descriptors that lie side by side have different ones; any number
    /// has one.
    #[inline(always)]
    fn index(handle: ThreadHandle) -> usize {
        (handle.addr().0 / DESCRIPTOR_SIZE) as usize % MAX_QUEUES
    }

    #[inline(always)]
    fn queue(&self, handle: ThreadHandle) -> &QueueSlot {
        self.at(Self::index(handle))
    }

    /// The queue with this index, which is one of [`index`](Self::index).
    #[inline(always)]
    fn at(&self, index: usize) -> &QueueSlot {
        &self.slots[index % MAX_QUEUES]
    }

    /// The queue of an Ascend910B or Ascend910_93 counts on from `id`.
    #[cfg(test)]
    pub(crate) fn set_next_id_910(&self, handle: ThreadHandle, id: u64) {
        self.queue(handle).lock().ids.flipping = ids::FlippingId::after(id);
    }

    /// The fast path for one task on the queue of `handle`. `source` is asked for it once the handle is known to have been
    /// good, and before the status word tells whether its thread still lives.
    #[inline(always)]
    pub(crate) fn try_one<P: Platform>(
        &self,
        io: &P,
        core: &CoreQueues,
        handle: ThreadHandle,
        source: impl TaskSource,
    ) -> Fast {
        slots::try_one(io, &core.batch, self.queue(handle), handle, source)
    }
}

#[cfg(not(loom))]
const fn queue_slots() -> [QueueSlot; MAX_QUEUES] {
    [const { QueueSlot::new() }; MAX_QUEUES]
}

#[cfg(loom)]
fn queue_slots() -> [QueueSlot; MAX_QUEUES] {
    core::array::from_fn(|_| QueueSlot::new())
}

/// What the calls of one core share.
#[repr(C)]
pub(crate) struct CoreQueues {
    batch: Batch,
    sq_full_timeout_us: AtomicU64,
    recorder: Recorder,
}

impl CoreQueues {
    const_fn! {
        /// Of core `core`.
        pub(crate) fn new(core: u32) -> Self {
            Self { batch: Batch::new(core), sq_full_timeout_us: AtomicU64::new(0), recorder: Recorder::new(core) }
        }
    }

    /// How long a call waits for room in a full queue, in microseconds; 0 = without limit.
    pub(crate) fn sq_full_timeout_us(&self) -> u64 {
        self.sq_full_timeout_us.load(Ordering::Relaxed)
    }

    pub(crate) fn set_sq_full_timeout_us(&self, us: u64) {
        self.sq_full_timeout_us.store(us, Ordering::Relaxed);
    }

    /// The same, for a [`Wait`].
    pub(crate) fn limit(&self) -> Option<u64> {
        Some(self.sq_full_timeout_us()).filter(|us| *us != 0)
    }

    /// Room for a record of a call that queues nothing, if calls are recorded.
    pub(crate) fn room_for_note<P: Platform>(&self, io: &P, queues: &Queues) -> Result<Note, Stop> {
        let ring = self.recorder.ring_of(queues.records.load(Ordering::Relaxed));
        ring.map_or(Ok(()), |ring| ring.wait_for_room(io, self.limit()))?;
        Ok(Note(ring))
    }

    /// Remembers that the queue of `handle` has its first task of the open batch.
    pub(crate) fn note(&self, handle: ThreadHandle) {
        self.batch.note(Queues::index(handle));
    }

    pub(crate) fn start_batch(&self) {
        self.batch.start();
    }

    /// Ends the batch: rings each queue that it has staged tasks on.
    pub(crate) fn end_batch<P: Platform>(&self, io: &P, queues: &Queues) -> Result<(), Error> {
        self.batch.close();
        self.ring_staged(io, queues);
        Ok(self.batch.take_failure()?)
    }

    /// Closes the batch without ringing: its tasks are dropped. Gives whether there was anything to close.
    pub(crate) fn discard_batch(&self, queues: &Queues) -> bool {
        let was_open = self.batch.close();
        let rules = queues.rules();
        self.batch.take_queues(|index| {
            queues.at(index).drop_staged(&rules, self.batch.id());
            Ok(())
        });
        // A launch that is over is told of nothing.
        let _ = self.batch.take_failure();
        was_open
    }

    /// Rings every queue with staged tasks. Called at the end, and while one ring is full: what the others hold may be what
    /// the full one waits for.
    pub(crate) fn ring_staged<P: Platform>(&self, io: &P, queues: &Queues) {
        let rules = queues.rules();
        self.batch.take_queues(|index| queues.at(index).ring_staged(io, &rules, self.batch.id()));
    }
}

/// Queues the tasks of `request` on the queue of `handle`: all in one group, or in as few as it takes when the ring is
/// smaller than that. In a batch they are staged; otherwise each group is rung for.
///
/// # Errors
/// [`Error::BadHandle`], [`Error::WrongEngine`]; [`Error::Suspended`], [`Error::QueueFull`], [`Error::DoorbellRefused`] in
/// this order; [`Error::BadQueue`], [`Error::QueueRead`] when the device reports what can't be. The group that was refused
/// left no trace.
#[inline(always)]
pub(crate) fn submit<P: Platform>(
    io: &P,
    queues: &Queues,
    core: &CoreQueues,
    handle: ThreadHandle,
    request: Request,
    entry: EntryPoint,
) -> Result<(), Error> {
    // A reduce of several chunks need not be quick.
    if entry == EntryPoint::LOCAL_COPY
        && let Request::Transfer { opcode, chunks } = request
        && let Some(mut slots) = reserve(io, queues, core, handle, &chunks)
    {
        for chunk in chunks {
            slots.push(|| chunk.task(opcode));
        }
        if slots.commit()? {
            core.note(handle);
        }
        return Ok(());
    }
    // A copy, so that the path before it needs no memory for its own.
    let mut rest = request;
    submit_slow(io, queues, core, handle, &mut rest, entry)
}

/// Entries on the fast path for all of a copy: several chunks, or the first task of its queue in a batch.
#[inline(always)]
fn reserve<'q, P: Platform>(
    io: &'q P,
    queues: &'q Queues,
    core: &CoreQueues,
    handle: ThreadHandle,
    chunks: &Chunks,
) -> Option<Slots<'q, P, Straight>> {
    let count = u32::try_from(chunks.remaining()).ok()?;
    let state = queues.queue(handle).lock();
    if !state.has_straight(handle, count) {
        return None;
    }
    Slots::reserve(io, &core.batch, state, true)
}

/// What a call still has to do.
struct Plan<'r> {
    request: &'r mut Request,
    entry: EntryPoint,
    /// More entries than the ring holds: they are committed in groups, as the ring drains.
    flows: bool,
    /// The wait for room; starts again after progress.
    wait: Option<Wait>,
    /// What a call whose time is over answers, in place of [`Stop::Full`].
    full: Option<QueueFull>,
}

impl Plan<'_> {
    /// What the call answers. Out of line: it moves an error.
    #[cold]
    #[inline(never)]
    fn error(&self, stop: Stop) -> Error {
        match &self.full {
            Some(full) => Error::QueueFull(*full),
            None => stop.into(),
        }
    }
}

/// All of a call, the slow way.
#[cold]
#[inline(never)]
fn submit_slow<P: Platform>(
    io: &P,
    queues: &Queues,
    core: &CoreQueues,
    handle: ThreadHandle,
    request: &mut Request,
    entry: EntryPoint,
) -> Result<(), Error> {
    let mut plan = Plan { request, entry, flows: false, wait: None, full: None };
    while !plan.request.is_empty() {
        if let Err(stop) = submit_refreshed(io, queues, core, handle, &mut plan) {
            return Err(plan.error(stop));
        }
    }
    Ok(())
}

/// One group: entries that are refreshed, filled and committed.
#[inline(always)]
fn submit_refreshed<P: Platform>(
    io: &P,
    queues: &Queues,
    core: &CoreQueues,
    handle: ThreadHandle,
    plan: &mut Plan<'_>,
) -> Result<(), Stop> {
    // Before a queue is locked: no lock is held during a wait.
    let recorder = core.recorder.ring_of(queues.records.load(Ordering::Relaxed));
    if let Some(ring) = recorder {
        ring.wait_for_room(io, core.limit())?;
    }
    let (rules, batch) = (queues.rules(), core.batch.current());
    let (queue, mut state, count) = refresh(io, queues, core, handle, plan, &rules)?;
    publish_others(io, &rules, batch, &mut state)?;
    let ids = state.ids;
    let draw = IdDraw::new(&queues.ids, &queues.slots[..], ids::Holds::held(queue), ids.range);
    let mut slots = Slots::drawn(io, batch, state, Drawn { rules, ids, draw });
    let first = slots.tail();
    for _ in 0..count {
        slots.push(|| plan.request.take_next());
    }
    if let Some(ring) = recorder {
        let state = slots.state();
        ring.write(io, plan.entry, state.ring.queue.sq_id(), state.enabled, first, count);
    }
    if slots.commit()? {
        core.note(handle);
    }
    Ok(())
}

/// Rings for what another core has staged, if this one is about to stage: what happens at the end of either is its own.
#[inline(always)]
fn publish_others<P: Platform>(io: &P, rules: &Rules<'_>, batch: BatchId, state: &mut State) -> Result<(), Stop> {
    if batch != BatchId::NONE && batch != state.stager && state.has_staged() {
        let tail = state.tail;
        state.ring(io, tail)?;
        state.stager = BatchId::NONE;
        rules.channels.settle(&mut state.staged_channels, true);
    }
    Ok(())
}

/// Free entries for what `plan` has left, waiting for room if need be: the slow path of [`reserve`]. Gives the queue, locked,
/// and how many entries the next group has.
#[inline(always)]
fn refresh<'q, P: Platform>(
    io: &P,
    queues: &'q Queues,
    core: &CoreQueues,
    handle: ThreadHandle,
    plan: &mut Plan<'_>,
    rules: &Rules<'_>,
) -> Result<(&'q QueueSlot, MutexGuard<'q, State>, u32), Stop> {
    let queue = queues.queue(handle);
    loop {
        let mut state = queue.lock_slow();
        let doorbell = queue.enter(io, rules, &queues.table.get(), handle, &mut state)?;

        let room = state.ring.depth - 1;
        let needed = state.ids.entries_for(rules.soc, plan.request.remaining());
        let wanted = u32::try_from(needed).map_or(room, |needed| needed.min(room));
        if state.free() < wanted {
            state.read_head(io)?;
        }
        let free = state.free();
        // More entries than the ring holds: they flow through it as it drains.
        plan.flows |= needed > room.into();
        let group = if plan.flows { free.min(wanted) } else { wanted };
        if group > 0 && free >= group {
            if doorbell == Doorbell::Refusing {
                return Err(Stop::DoorbellRefused { sq_id: state.ring.queue.sq_id() });
            }
            plan.wait = None;
            return Ok((queue, state, group));
        }

        // What is staged here will never run unless it is rung for, and then nor will this call.
        core.batch.keep_failure(state.ring_staged(io, rules, core.batch.current()))?;
        let (ring, head, tail) = (state.ring, state.head, state.tail);
        // The lock is free during the pause: another core's call on this queue has a limit of its own.
        drop(state);
        core.ring_staged(io, queues);
        let wait = plan.wait.get_or_insert_with(|| Wait::new(io, core.limit()));
        if !wait.pause(io) {
            plan.full = Some(wait.over(ring, head, tail, wanted, plan.request.queued_len()));
            return Err(Stop::Full);
        }
    }
}

/// Waits until the device has taken every task that was queued on the thread of `handle` before, those that a batch has
/// staged included. At most `timeout_us`; `None`: for as long as a call waits for room.
///
/// # Errors
/// [`Error::QueueFull`] with no entry wanted after that time, and as [`submit`].
pub(crate) fn drain<P: Platform>(
    io: &P,
    queues: &Queues,
    core: &CoreQueues,
    handle: ThreadHandle,
    timeout_us: Option<u64>,
    entry: EntryPoint,
) -> Result<(), Error> {
    let (queue, rules) = (queues.queue(handle), queues.rules());
    let recorder = core.recorder.ring_of(queues.records.load(Ordering::Relaxed));
    if let Some(ring) = recorder {
        ring.wait_for_room(io, core.limit())?;
    }
    let mut wait = Wait::new(io, timeout_us.or(core.limit()));
    loop {
        let mut state = queue.lock_slow();
        queue.enter(io, &rules, &queues.table.get(), handle, &mut state)?;
        core.batch.keep_failure(state.ring_staged(io, &rules, core.batch.current()))?;
        state.read_head(io)?;
        let (ring, head, tail, status) = (state.ring, state.head, state.tail, state.enabled);
        drop(state);
        if head == tail {
            if let Some(recorder) = recorder {
                recorder.write(io, entry, ring.queue.sq_id(), status, head, 0);
            }
            return Ok(());
        }
        core.ring_staged(io, queues);
        if !wait.pause(io) {
            return Err(wait.over(ring, head, tail, 0, 0).into());
        }
    }
}
