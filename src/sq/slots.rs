//! Entries of a ring that are reserved for a call: reserve, push, commit.

use super::batch::{Batch, BatchId};
use super::ids::{Holds, IdAllocator, IdDraw, IdRange};
use super::ring::Ring;
use super::stars::{Encode, Ids};
use super::state::{QueueSlot, State};
use crate::handle::Slot;
use crate::port::Platform;
use crate::spec::thread::ThreadHandle;
use crate::spec::{DeviceAddr, Sqe};
use crate::stop::Stop;
use crate::task::{Divisible, Request, Task};

/// Free entries from the tail on, and ids for them, under the queue's lock. Dropped without a commit, they leave tail and
/// ids as they were.
pub(crate) struct Slots<'q, P, N> {
    io: &'q P,
    /// The batch that is open on the core.
    batch: BatchId,
    /// Of the queue, which is locked.
    state: &'q mut State,
    /// First entry of the ring.
    base: DeviceAddr,
    /// Where the next entry goes.
    tail: u32,
    numbers: N,
}

/// How entries are numbered: index in the ring, and task id.
pub(crate) trait Numbers {
    /// Descriptor of the next entry: the place holder that comes before the next task, if there is one.
    fn place_holder(&mut self, state: &State) -> Option<Sqe>;
    /// Descriptor of the next entry, which is no place holder: of `task`, with the next id.
    fn encode(&mut self, state: &State, task: impl Encode) -> Sqe;
    /// The index after `tail`.
    fn after(ring: &Ring, tail: u32) -> u32;
    /// Whether entries may go over the end of the ring.
    const WRAPS: bool;
    /// [`State::ring`], in line or not.
    fn ring<P: Platform>(state: &mut State, io: &P, tail: u32) -> Result<(), Stop>;
    /// Stores what is left in the state, whose tail is stored. `batch` has staged the entries, unless it is none.
    fn keep(self, state: &mut State, batch: BatchId) -> bool;
}

/// As [`State::straight_end`] says: entries do not wrap, and ids are counted. Ascend950.
pub(crate) struct Straight {
    range: IdRange,
    /// The first of its queue in the batch.
    is_first: bool,
}

impl Numbers for Straight {
    const WRAPS: bool = false;

    #[inline(always)]
    fn place_holder(&mut self, _state: &State) -> Option<Sqe> {
        None
    }

    #[inline(always)]
    fn encode(&mut self, _state: &State, task: impl Encode) -> Sqe {
        let (task_id, rest) = self.range.take(1);
        self.range = rest;
        task.stars950(task_id)
    }

    #[inline(always)]
    fn after(_ring: &Ring, tail: u32) -> u32 {
        // Below the depth: the bound ends before the ring does.
        tail + 1
    }

    #[inline(always)]
    fn ring<P: Platform>(state: &mut State, io: &P, tail: u32) -> Result<(), Stop> {
        state.ring(io, tail)
    }

    #[inline(always)]
    fn keep(self, state: &mut State, batch: BatchId) -> bool {
        state.ids.range = self.range;
        if self.is_first {
            state.stager = batch;
        }
        self.is_first
    }
}

/// Any entries, any ids.
pub(crate) struct Drawn<'q> {
    ids: Ids,
    draw: IdDraw<'q, QueueSlot>,
}

impl Numbers for Drawn<'_> {
    const WRAPS: bool = true;

    #[inline(always)]
    fn place_holder(&mut self, state: &State) -> Option<Sqe> {
        self.ids.take_place_holder(state.rules.format(), state.ring.stream_id)
    }

    #[inline(always)]
    fn encode(&mut self, state: &State, task: impl Encode) -> Sqe {
        self.ids.encode(state.rules.format(), state.ring.stream_id, &mut self.draw, task)
    }

    #[inline(always)]
    fn after(ring: &Ring, tail: u32) -> u32 {
        ring.after(tail)
    }

    #[inline(always)]
    fn ring<P: Platform>(state: &mut State, io: &P, tail: u32) -> Result<(), Stop> {
        state.ring_cold(io, tail)
    }

    #[inline(always)]
    fn keep(self, state: &mut State, batch: BatchId) -> bool {
        let is_first = batch != BatchId::NONE && !state.has_staged();
        state.stager = batch;
        state.ids = Ids { range: self.draw.keep(), ..self.ids };
        state.open();
        is_first
    }
}

impl<'q, P: Platform> Slots<'q, P, Straight> {
    /// The fast path: entries inside the bound, of an enabled queue, with nothing staged by another batch, and, unless
    /// `may_be_first`, not the first of its queue in a batch. `state` was found to [have them](State::has_straight).
    #[inline(always)]
    pub(crate) fn reserve(io: &'q P, batch: BatchId, state: &'q mut State, may_be_first: bool) -> Option<Self> {
        let is_enabled = io.status(state.ring.queue) == Ok(state.enabled);
        // Without a batch on either side these are the same, too.
        let is_first = may_be_first && state.stager == BatchId::NONE && batch != BatchId::NONE;
        if !(is_enabled & ((state.stager == batch) | is_first)) {
            return None;
        }
        let (base, tail, range) = (state.ring.base, state.tail, state.ids.range);
        Some(Self { io, batch, state, base, tail, numbers: Straight { range, is_first } })
    }
}

impl<'q, P: Platform> Slots<'q, P, Drawn<'q>> {
    /// Entries of queue `mine` of `queues` that [`refresh`](super::refresh) found to be free.
    #[inline(always)]
    pub(crate) fn drawn(
        io: &'q P,
        batch: BatchId,
        (ids, queues, mine): (&'q IdAllocator, &'q [QueueSlot], &'q QueueSlot),
        state: &'q mut State,
    ) -> Self {
        let draw = IdDraw::new(ids, queues, mine.held(), state.ids.range);
        let (base, tail, ids) = (state.ring.base, state.tail, state.ids);
        Self { io, batch, state, base, tail, numbers: Drawn { ids, draw } }
    }

    /// [`push`](Self::push) of the next task of `request`, out of line.
    #[cold]
    #[inline(never)]
    pub(crate) fn push_next<T: Encode + Divisible>(&mut self, request: &mut Request<T>) {
        self.push(|| request.take_next());
    }
}

impl<P: Platform, N: Numbers> Slots<'_, P, N> {
    /// Fills the next entry, of which there is one: with `task`, or with a place holder that must come before it.
    #[inline(always)]
    pub(crate) fn push<T: Encode>(&mut self, task: impl FnOnce() -> T) {
        let sqe = match self.numbers.place_holder(self.state) {
            Some(place_holder) => place_holder,
            None => self.numbers.encode(self.state, task()),
        };
        // The one place that writes a slot.
        // SAFETY: `tail` is below the depth of a ring that `Ring::new` checked and the host keeps mapped while a kernel runs
        // that has looked the thread up (`Device::set_thread_table`); `has_straight` or `refresh` saw that the entry is free,
        // and it is ours until the doorbell, since we hold the queue's lock.
        unsafe { self.io.write_slot(Ring::slot(self.base, self.tail), &sqe) };
        self.tail = N::after(&self.state.ring, self.tail);
    }

    /// Index of the next entry.
    pub(crate) fn tail(&self) -> u32 {
        self.tail
    }

    /// The queue's state as it was before the entries.
    #[inline(always)]
    pub(crate) fn state(&self) -> &State {
        self.state
    }

    /// Publishes what was pushed: in a batch it is staged, otherwise it is rung for. Gives whether it is the first that
    /// this batch has staged on the queue.
    ///
    /// # Errors
    /// [`Error::DoorbellRefused`](crate::Error::DoorbellRefused): as if nothing had been reserved.
    #[inline(always)]
    pub(crate) fn commit(self) -> Result<bool, Stop> {
        if self.batch == BatchId::NONE {
            N::ring(self.state, self.io, self.tail)?;
        }
        if N::WRAPS {
            self.state.lap = self.state.lap.wrapping_add(u32::from(self.tail < self.state.tail));
        }
        self.state.tail = self.tail;
        Ok(self.numbers.keep(self.state, self.batch))
    }
}

/// What the fast path did.
#[derive(Clone, Copy)]
pub(crate) enum Fast {
    /// It queued the task.
    Queued,
    /// The doorbell was refused; nothing has changed.
    Refused {
        /// The queue.
        sq_id: u32,
    },
    /// Nothing: the slow path does the whole call.
    NotTaken,
}

/// Where the fast path gets its task. A trait of our own, because closures can't be told to be inlined.
pub(crate) trait TaskSource {
    /// The task for the queue of `slot`, which is some; `None`: the slow path must look.
    fn task(self, slot: Option<Slot>) -> Option<Task>;
}

/// The fast path for one task. `source` is asked for it once the handle is known, and before the status tells whether its
/// thread still lives.
#[inline(always)]
pub(crate) fn try_one<P: Platform>(
    io: &P,
    batch: &Batch,
    queue: &QueueSlot,
    handle: ThreadHandle,
    source: impl TaskSource,
) -> Fast {
    let Some(mut state) = queue.try_lock() else { return Fast::NotTaken };
    if !state.has_straight(handle, 1) {
        return Fast::NotTaken;
    }
    let Some(task) = source.task(state.slot) else { return Fast::NotTaken };
    let Some(mut slots) = Slots::reserve(io, batch.current(), &mut state, false) else { return Fast::NotTaken };
    slots.push(|| task);
    let sq_id = slots.state().ring.queue.sq_id();
    match slots.commit() {
        Ok(_) => Fast::Queued,
        Err(_) => Fast::Refused { sq_id },
    }
}
