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

use core::sync::atomic::{AtomicU64, Ordering};

use crate::channel::state::Channels;
use crate::error::{Error, QueueFull};
use crate::port::Platform;
use crate::spec::record::EntryPoint;
use crate::spec::thread::{DESCRIPTOR_SIZE, ThreadHandle};
use crate::stop::Stop;
use crate::sync::{MutexGuard, const_fn};
use crate::task::{Divisible, Request};
use batch::{Batch, BatchId, MAX_QUEUES};
pub(crate) use entries::{EntrySource, EntryWriter, has_passed, publish_staged, submit_doorbell, try_entry};
use ids::IdAllocator;
pub(crate) use record::Note;
use record::Recorder;
use slots::Slots;
pub(crate) use slots::{Fast, TaskSource};
use stars::Encode;
pub(crate) use stars::{has_aclrt_notifies, max_notify_id};
use state::{QueueSlot, Shared, State};
pub(crate) use wait::Wait;

/// The queues of a device.
#[repr(C)]
pub(crate) struct Queues {
    slots: [QueueSlot; MAX_QUEUES],
    pub(crate) channels: Channels,
    pub(crate) shared: Shared,
    ids: IdAllocator,
}

impl Queues {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                slots: queue_slots(),
                channels: Channels::new(),
                shared: Shared::none(),
                ids: IdAllocator::new(),
            }
        }
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

    /// What task ids of the queue of `handle` are drawn with.
    #[inline(always)]
    fn ids_of(&self, handle: ThreadHandle) -> (&IdAllocator, &[QueueSlot], &QueueSlot) {
        (&self.ids, &self.slots, self.queue(handle))
    }

    /// The queue of an Ascend910B or Ascend910_93 counts on from `id`.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn set_next_id_910(&self, handle: ThreadHandle, id: u64) {
        self.queue(handle).lock_slow().ids.flipping = ids::FlippingId::after(id);
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

/// Bytes of a device for each queue.
pub(crate) const QUEUE_STATE: usize = size_of::<QueueSlot>();

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

    /// How long a call waits for room in a full queue, in microseconds; `u64::MAX` = without limit.
    pub(crate) fn sq_full_timeout_us(&self) -> u64 {
        self.sq_full_timeout_us.load(Ordering::Relaxed)
    }

    /// Sets [`sq_full_timeout_us`](Self::sq_full_timeout_us); 0 = without limit.
    pub(crate) fn set_sq_full_timeout_us(&self, us: u64) {
        self.sq_full_timeout_us.store(if us == 0 { u64::MAX } else { us }, Ordering::Relaxed);
    }

    /// Room for a record of a call that queues nothing, if calls are recorded.
    pub(crate) fn room_for_note<P: Platform>(&self, io: &P, queues: &Queues) -> Result<Note, Error> {
        Ok(Note(self.record_room(io, queues)?))
    }

    /// Where a call is recorded, if calls are: waits until the host has read enough.
    #[inline(always)]
    fn record_room<P: Platform>(&self, io: &P, queues: &Queues) -> Result<Option<record::Ring>, Stop> {
        let ring = self.recorder.ring_of(queues.shared.records());
        if let Some(ring) = ring {
            ring.wait_for_room(io, self.sq_full_timeout_us())?;
        }
        Ok(ring)
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
        let mut taken = self.batch.take_queues();
        while let Some(index) = taken.next() {
            queues.at(index).drop_staged(self.batch.id());
        }
        drop(taken);
        // A launch that is over is told of nothing.
        let _ = self.batch.take_failure();
        was_open
    }

    /// Rings every queue with staged tasks. Called at the end, and while one ring is full: what the others hold may be what
    /// the full one waits for.
    #[cold]
    #[inline(never)]
    pub(crate) fn ring_staged<P: Platform>(&self, io: &P, queues: &Queues) {
        let mut taken = self.batch.take_queues();
        while let Some(index) = taken.next() {
            let (batch, mut state) = (self.batch.id(), queues.at(index).lock_slow());
            taken.keep_failure(state.take_loss(batch));
            if state.stager == batch {
                taken.keep_failure(state.ring_staged(io, batch));
            }
        }
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
pub(crate) fn submit<P: Platform, T: Encode + Divisible>(
    io: &P,
    queues: &Queues,
    core: &CoreQueues,
    handle: ThreadHandle,
    request: Request<T>,
    entry: EntryPoint,
) -> Result<(), Error> {
    // A reduce of several chunks need not be quick.
    if entry == EntryPoint::LOCAL_COPY
        && let Some((opcode, chunks)) = request.as_local()
    {
        let count = chunks.remaining();
        // Entries on the fast path for all of a copy: several chunks, or the first task of its queue in a batch.
        if let Some(mut state) = queues.queue(handle).try_lock()
            && state.has_straight(handle, count)
            && let Some(mut slots) = Slots::reserve(io, core.batch.current(), &mut state, true)
        {
            for chunk in chunks {
                slots.push(|| chunk.task(opcode));
            }
            let is_first = slots.commit()?;
            drop(state);
            if is_first {
                core.note(handle);
            }
            return Ok(());
        }
    }
    // A copy, so that the path before it needs no memory for its own.
    let mut rest = request;
    submit_slow(&Call { io, queues, core, handle, entry }, &mut rest)
}

/// What a call is made with.
struct Call<'c, P> {
    io: &'c P,
    queues: &'c Queues,
    core: &'c CoreQueues,
    handle: ThreadHandle,
    entry: EntryPoint,
}

impl<P: Platform> Call<'_, P> {
    /// Where the call is recorded, if calls are.
    #[inline(always)]
    fn room_for_record(&self) -> Result<Option<record::Ring>, Stop> {
        self.core.record_room(self.io, self.queues)
    }
}

/// How far a call is.
struct Progress {
    /// More entries than the ring holds: they are committed in groups, as the ring drains.
    flows: bool,
    /// The wait for room; starts again after progress.
    wait: Wait,
    /// What that answers when it has lasted too long.
    full: QueueFull,
}

impl Progress {
    const NONE: Self = Self { flows: false, wait: Wait::NONE, full: QueueFull::NONE };
}

/// All of a call, the slow way.
#[cold]
#[inline(never)]
fn submit_slow<P: Platform, T: Encode + Divisible>(call: &Call<'_, P>, request: &mut Request<T>) -> Result<(), Error> {
    let mut progress = Progress::NONE;
    while !request.is_empty() {
        match submit_group(call, request, &mut progress) {
            Ok(true) => call.core.note(call.handle),
            Ok(false) => {}
            Err(stop) => return Err(stop.error(&progress.full)),
        }
    }
    Ok(())
}

/// One group: entries that are refreshed, filled and committed. Gives whether they are the first that the batch has staged on
/// the queue.
#[inline(always)]
fn submit_group<P: Platform, T: Encode + Divisible>(
    call: &Call<'_, P>,
    request: &mut Request<T>,
    progress: &mut Progress,
) -> Result<bool, Stop> {
    let Call { io, queues, core, handle, entry } = *call;
    let record = call.room_for_record()?;
    let (mut state, count) = refresh(call, request.remaining(), request.queued_len(), progress)?;
    let batch = core.batch.current();
    state.publish_others(io, batch)?;
    let mut slots = Slots::drawn(io, batch, queues.ids_of(handle), &mut state);
    let first = slots.tail();
    for _ in 0..count {
        slots.push_next(request);
    }
    if let Some(ring) = record {
        let state = slots.state();
        ring.write(io, entry, state.ring.queue.sq_id(), state.enabled, first, count);
        if batch != BatchId::NONE {
            // Another core may ring for what the batch has staged: the host looks at the record before that.
            io.store_barrier();
        }
    }
    slots.commit()
}

/// Free entries for `tasks` tasks, waiting for room if need be: the slow path of [`Slots::reserve`]. Gives the queue, locked, and
/// how many entries the next group has.
#[inline(always)]
fn refresh<'q, P: Platform>(
    call: &Call<'q, P>,
    tasks: u64,
    queued_len: u64,
    progress: &mut Progress,
) -> Result<(MutexGuard<'q, State>, u32), Stop> {
    let Call { io, queues, core, handle, .. } = *call;
    let (queue, limit_us) = (queues.queue(handle), core.sq_full_timeout_us());
    loop {
        let mut state = queue.lock_slow();
        queue.enter(io, &queues.shared, handle, &mut state)?;
        let room = state.ring.depth - 1;
        let needed = state.ids.entries_for(state.rules.format(), tasks);
        let wanted = needed.min(room.into()) as u32;
        if state.free() < wanted {
            state.read_head(io)?;
        }
        // More entries than the ring holds: they flow through it as it drains.
        progress.flows |= needed > room.into();
        let free = state.free();
        let group = if progress.flows { free.min(wanted) } else { wanted };
        if group != 0 && group <= free {
            if state.is_refusing {
                return Err(Stop::doorbell_refused(state.ring.queue.sq_id()));
            }
            progress.wait = Wait::NONE;
            return Ok((state, group));
        }
        // What is staged here will never run unless it is rung for, and then nor will this call.
        core.batch.keep_failure(state.ring_staged(io, core.batch.current()))?;
        progress.full = state.full(wanted, queued_len, limit_us);
        // The lock is free during the pause: another core's call on this queue has a limit of its own.
        drop(state);
        // What other queues hold staged may be what this one waits for.
        core.ring_staged(io, queues);
        if !progress.wait.pause(io, limit_us) {
            return Err(Stop::QUEUE_FULL);
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
    let (queue, records) = (queues.queue(handle), core.record_room(io, queues)?);
    let (mut wait, limit_us) = (Wait::NONE, timeout_us.unwrap_or(core.sq_full_timeout_us()));
    loop {
        let mut state = queue.lock_slow();
        queue.enter(io, &queues.shared, handle, &mut state)?;
        core.batch.keep_failure(state.ring_staged(io, core.batch.current()))?;
        state.read_head(io)?;
        let (full, status) = (state.full(0, 0, limit_us), state.enabled);
        drop(state);
        if full.head == full.tail {
            if let Some(ring) = records {
                ring.write(io, entry, full.sq_id, status, full.head, 0);
            }
            return Ok(());
        }
        core.ring_staged(io, queues);
        if !wait.pause(io, limit_us) {
            return Err(full.into());
        }
    }
}
