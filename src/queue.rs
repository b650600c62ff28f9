//! Submission queue: room in the ring, slots, publication, and the wait for room. No hardware in it: see [`port`](crate::port).
//!
//! Publication is two steps that no other core of the device can come between: all slots of a group are written, then one
//! barrier and one doorbell make them the device's. A group that is refused leaves tail and task ids as they were.

use core::sync::atomic::Ordering;

use embedded_hal::delay::DelayNs;

use crate::batch::BatchId;
use crate::device::Core;
use crate::encode::Task;
use crate::error::{Error, QueueFull};
use crate::port::{Port, QueueId, with_core};
use crate::spec::queue::{MIN_DEPTH, QueueStatus};
use crate::spec::soc::Soc;
use crate::spec::stars910::{Stamp, flip_place_holder};
use crate::spec::thread::ThreadHandle;
use crate::spec::{DeviceAddr, SQE_SIZE, Sqe};
use crate::sync::{Mutex, const_fn, fence};
use crate::task_id::{Flip, FlippingId, HeldBlock, IdDraw, IdRange};
use crate::thread::Thread;

/// First and longest pause between two looks at the head of a full ring.
const PAUSE_NS: (u32, u32) = (1_000, 1_000_000);

/// Tasks of one call, in order.
pub(crate) trait Tasks: Clone {
    /// Tasks still to be queued.
    fn remaining(&self) -> u64;
    /// The next task, of which there is one.
    fn next(&mut self) -> Task;
    /// Bytes of the tasks that were taken.
    fn queued_len(&self) -> u64;
}

/// A call of one task that moves no bytes.
#[derive(Clone, Copy)]
pub(crate) struct One {
    task: Task,
    left: u64,
}

impl One {
    #[inline]
    pub(crate) fn new(task: Task) -> Self {
        Self { task, left: 1 }
    }
}

impl Tasks for One {
    #[inline]
    fn remaining(&self) -> u64 {
        self.left
    }

    #[inline]
    fn next(&mut self) -> Task {
        self.left = 0;
        self.task
    }

    fn queued_len(&self) -> u64 {
        0
    }
}

/// A ring as the descriptor of its thread gives it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Ring {
    base: DeviceAddr,
    queue: QueueId,
    depth: u32,
    /// Low 16 bits of the stream's number: as much as a descriptor holds.
    stream_id: u16,
}

impl Ring {
    /// # Errors
    /// [`Error::BadQueue`] for a depth below [`MIN_DEPTH`], a base that is null or not aligned to an entry, or a ring
    /// that runs past the end of the address space.
    pub(crate) fn new(base: DeviceAddr, depth: u32, queue: QueueId, stream_id: u32) -> Result<Self, Error> {
        let bad = |what, value, limit| Err(Error::BadQueue { sq_id: queue.sq_id, what, value, limit });
        let entry = SQE_SIZE as u64;
        if depth < MIN_DEPTH {
            return bad("depth", depth.into(), MIN_DEPTH.into());
        }
        if base.is_null() || !base.0.is_multiple_of(entry) || base.0.checked_add(u64::from(depth) * entry).is_none() {
            return bad("ring address", base.0, entry);
        }
        Ok(Self { base, depth, queue, stream_id: stream_id as u16 })
    }

    /// Entries from `from` up to `to`, both below the depth.
    fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { self.depth - from + to }
    }

    fn after(&self, index: u32) -> u32 {
        if index + 1 == self.depth { 0 } else { index + 1 }
    }

    fn slot(&self, index: u32) -> DeviceAddr {
        DeviceAddr(self.base.0 + u64::from(index) * SQE_SIZE as u64)
    }
}

/// Where the next task id of a queue comes from: which of the two depends on the SoC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ids {
    /// Ascend950.
    range: IdRange,
    /// Ascend910B, Ascend910_93.
    flipping: FlippingId,
}

/// The device's own state of one queue. What a call reads together lies together.
#[repr(C)]
struct State {
    /// Handle of the thread that everything below belongs to; 0 = of none yet. It was found good, and for as long as the
    /// status word is `enabled`, it still is: each life of a slot has status words of its own.
    handle: ThreadHandle,
    ring: Ring,
    /// Head as last read. The device may be further on.
    head: u32,
    /// One past the last entry that is written: from `rung` up to here tasks are staged.
    tail: u32,
    /// One past the last entry that the device may run.
    rung: u32,
    /// Status word that lets a call go on without a closer look.
    enabled: QueueStatus,
    /// The batch that has staged the tasks from `rung` to `tail`, all of one core; none when there are none.
    stager: BatchId,
    ids: Ids,
}

impl State {
    const NONE: Self = Self {
        handle: ThreadHandle(0),
        ring: Ring { base: DeviceAddr(0), depth: 0, queue: QueueId { sq_id: 0, regs: 0 }, stream_id: 0 },
        head: 0,
        tail: 0,
        rung: 0,
        enabled: QueueStatus::FREE,
        stager: BatchId::NONE,
        ids: Ids { range: IdRange::EMPTY, flipping: FlippingId::FIRST },
    };

    /// Free entries as far as the cached head tells. One entry stays empty: a full ring differs from an empty one.
    fn free(&self) -> u32 {
        self.ring.depth - 1 - self.ring.distance(self.head, self.tail)
    }

    /// Reads the head again. The device is not trusted: it can only have come closer to the tail.
    fn read_head<P: Port>(&mut self, port: &P) -> Result<(), Error> {
        let ring = self.ring;
        let head = port.head(ring.queue);
        let outstanding = ring.distance(self.head, self.tail);
        if head >= ring.depth || ring.distance(head, self.tail) > outstanding {
            let (value, limit) = (head.into(), self.tail.into());
            return Err(Error::BadQueue { sq_id: ring.queue.sq_id, what: "head", value, limit });
        }
        // Pairs with the device's release store of the head: it has read the entries before it, we may write them now.
        fence(Ordering::Acquire);
        self.head = head;
        Ok(())
    }

    /// Entries that `tasks` tasks take from here on: theirs, and those of the place holders between them.
    #[inline]
    fn entries_for(&self, soc: Soc, tasks: u64) -> u64 {
        match soc {
            Soc::Ascend950 => tasks,
            Soc::Ascend910B | Soc::Ascend910_93 => self.ids.flipping.entries_for(tasks),
        }
    }

    fn has_staged(&self) -> bool {
        self.stager != BatchId::NONE
    }

    /// Makes everything up to the tail the device's.
    #[inline]
    fn ring<P: Port>(&mut self, port: &P) -> Result<(), Error> {
        // Pairs with the device's acquire load of the doorbell: it sees the new tail only after the slots.
        port.store_barrier();
        if port.ring(self.ring.queue, self.tail).is_err() {
            return Err(Error::DoorbellRefused { sq_id: self.ring.queue.sq_id });
        }
        (self.rung, self.stager) = (self.tail, BatchId::NONE);
        Ok(())
    }

    /// Rings for what is staged. On a refusal `batch` drops its tasks: they must not run with a later doorbell.
    fn ring_staged<P: Port>(&mut self, port: &P, batch: BatchId) -> Result<(), Error> {
        let result = if self.has_staged() { self.ring(port) } else { Ok(()) };
        self.drop_staged(batch);
        result
    }

    /// Forgets what `batch` has staged, and nothing of another one.
    fn drop_staged(&mut self, batch: BatchId) {
        if self.stager == batch {
            (self.tail, self.stager) = (self.rung, BatchId::NONE);
        }
    }

    /// Starts anew at the head that the device reports: after a thread was acquired or its queue was reset.
    fn restart<P: Port>(&mut self, port: &P, status: QueueStatus) -> Result<(), Error> {
        let Ring { depth, queue, .. } = self.ring;
        let head = port.head(queue);
        if head >= depth {
            let (value, limit) = (head.into(), depth.into());
            return Err(Error::BadQueue { sq_id: queue.sq_id, what: "head", value, limit });
        }
        (self.head, self.rung, self.tail, self.stager) = (head, head, head, BatchId::NONE);
        self.enabled = QueueStatus::ENABLED.with_epoch(status.epoch());
        Ok(())
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

impl QueueSlot {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { state: Mutex::new(State::NONE), held: HeldBlock::none() }
        }
    }

    pub(crate) fn held(&self) -> &HeldBlock {
        &self.held
    }

    /// Rings for the tasks that `batch` has staged, if there are any.
    pub(crate) fn ring_staged<P: Port>(&self, port: &P, batch: BatchId) -> Result<(), Error> {
        let mut state = self.state.lock();
        if state.stager == batch { state.ring_staged(port, batch) } else { Ok(()) }
    }

    /// Forgets the tasks that `batch` has staged.
    pub(crate) fn drop_staged(&self, batch: BatchId) {
        self.state.lock().drop_staged(batch);
    }
}

/// What [`submit_one`] did.
#[derive(Clone, Copy)]
pub(crate) enum Short {
    /// It queued the task.
    Queued,
    /// It staged the task, the first of its queue in this batch: [`Short::or_else`] tells the batch.
    First,
    /// The doorbell was refused; nothing has changed.
    Refused {
        /// The queue.
        sq_id: u32,
    },
    /// Nothing: something needs a closer look.
    NotTaken,
}

impl Short {
    /// Ends a call: `long` does the whole of it, unless the short way has.
    #[inline]
    pub(crate) fn or_else(self, handle: ThreadHandle, long: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        match self {
            Self::Queued => Ok(()),
            Self::First => with_core(|core| core.batch().note(core.device().queue_index(handle))).ok_or(Error::NoCore),
            Self::Refused { sq_id } => Err(Error::DoorbellRefused { sq_id }),
            Self::NotTaken => long(),
        }
    }
}

/// The short way for one task: takes it only if the queue is known to be `handle`'s, enabled, and to have room. Queues
/// exactly what [`submit`] would.
#[inline(always)]
pub(crate) fn submit_one<P: Port>(port: &P, core: &Core<'_>, handle: ThreadHandle, task: Task) -> Short {
    let slot = core.device().queue_of(handle);
    let mut state = slot.state.lock();
    if handle.0 == 0 || state.handle != handle || port.status(state.ring.queue) != state.enabled {
        return Short::NotTaken;
    }
    let tail = state.tail;
    let next = state.ring.after(tail);
    if next == state.head {
        return Short::NotTaken;
    }
    // Only queues of an Ascend950 draw from a range.
    let Some((task_id, range)) = state.ids.range.split_first() else { return Short::NotTaken };
    let batch = core.batch().current();
    let is_first = state.stager != batch;
    if is_first && state.has_staged() {
        return Short::NotTaken;
    }
    let (slot, sqe) = (state.ring.slot(tail), task.for_950(task_id));
    if batch != BatchId::NONE {
        // SAFETY: as in `write`; the entry at the tail is free, since the one after it is not the head.
        unsafe { port.write_slot(slot, &sqe) };
        (state.tail, state.ids.range) = (next, range);
        if is_first {
            state.stager = batch;
            return Short::First;
        }
    } else {
        // SAFETY: as above.
        unsafe { port.write_slot(slot, &sqe) };
        // Pairs with the device's acquire load of the doorbell, as in `State::ring`.
        port.store_barrier();
        if port.ring(state.ring.queue, next).is_err() {
            return Short::Refused { sq_id: state.ring.queue.sq_id };
        }
        (state.tail, state.rung, state.ids.range) = (next, next, range);
    }
    Short::Queued
}

/// The short way for some tasks: as [`submit_one`], all in one group.
#[inline]
pub(crate) fn submit_some<P: Port>(port: &P, core: &Core<'_>, handle: ThreadHandle, mut tasks: impl Tasks) -> Short {
    let slot = core.device().queue_of(handle);
    let mut state = slot.state.lock();
    if handle.0 == 0 || state.handle != handle || port.status(state.ring.queue) != state.enabled {
        return Short::NotTaken;
    }
    // A batch has more to look at.
    if core.batch().current() != BatchId::NONE || state.has_staged() {
        return Short::NotTaken;
    }
    let Ok(count) = u32::try_from(tasks.remaining()) else { return Short::NotTaken };
    let Some((first_id, range)) = state.ids.range.split_at(count).filter(|_| count <= state.free()) else {
        return Short::NotTaken;
    };
    let (ring, mut tail) = (state.ring, state.tail);
    for task_id in first_id..first_id + count {
        // SAFETY: as in `write`; there are `count` free entries from the tail on.
        unsafe { port.write_slot(ring.slot(tail), &tasks.next().for_950(task_id)) };
        tail = ring.after(tail);
    }
    // Pairs with the device's acquire load of the doorbell, as in `State::ring`.
    port.store_barrier();
    if port.ring(ring.queue, tail).is_err() {
        return Short::Refused { sq_id: ring.queue.sq_id };
    }
    (state.tail, state.rung, state.ids.range) = (tail, tail, range);
    Short::Queued
}

/// Queues `tasks` on the queue of `thread`: all in one group, or in as few as it takes when the ring is smaller than that.
/// In a batch they are staged; otherwise each group is rung for.
///
/// # Errors
/// [`Error::Suspended`], [`Error::QueueFull`], [`Error::DoorbellRefused`] in this order; [`Error::BadHandle`] when the thread
/// has been freed; [`Error::BadQueue`] when the device reports what can't be. The group that was refused left no trace.
#[cold]
pub(crate) fn submit<P: Port>(port: &P, core: &Core<'_>, thread: &Thread, mut tasks: impl Tasks) -> Result<(), Error> {
    let slot = core.device().queue_of(thread.handle());
    let soc = core.device().soc();
    let mut wait = None;
    let mut flows = false;
    while tasks.remaining() > 0 {
        let mut state = slot.state.lock();
        let refusing = enter(port, core, thread, slot, &mut state)?;

        let room = state.ring.depth - 1;
        let needed = state.entries_for(soc, tasks.remaining());
        let wanted = u32::try_from(needed).map_or(room, |needed| needed.min(room));
        if state.free() < wanted {
            state.read_head(port)?;
        }
        // More tasks than entries: they flow through the ring as it drains.
        flows |= needed > room.into();
        let group = if flows { state.free().min(wanted) } else { wanted };
        if group > 0 && state.free() >= group {
            if refusing {
                return Err(Error::DoorbellRefused { sq_id: state.ring.queue.sq_id });
            }
            publish(port, core, thread, slot, &mut state, &mut tasks, group)?;
            wait = None;
            continue;
        }

        // What is staged here will never run unless it is rung for, and then nor will this call.
        state.ring_staged(port, core.batch().current()).inspect_err(|error| core.batch().note_error(*error))?;
        let State { ring, head, tail, .. } = *state;
        // The lock is free during the pause: another core's call on this queue has a limit of its own.
        drop(state);
        core.batch().ring_staged(port, core.device());
        let wait = wait.get_or_insert_with(|| Wait::new(port, Some(core.sq_full_timeout_us()).filter(|us| *us != 0)));
        if !wait.pause(port) {
            return Err(wait.over(ring, head, tail, wanted, tasks.queued_len()));
        }
    }
    Ok(())
}

/// Makes `state` that of `thread`'s present life, and looks at the status. `Ok(true)`: it refuses doorbells.
#[inline]
fn enter<P: Port>(
    port: &P,
    core: &Core<'_>,
    thread: &Thread,
    slot: &QueueSlot,
    state: &mut State,
) -> Result<bool, Error> {
    if state.handle == thread.handle() && port.status(state.ring.queue) == state.enabled {
        return Ok(false);
    }
    enter_anew(port, core, thread, slot, state)
}

#[cold]
fn enter_anew<P: Port>(
    port: &P,
    core: &Core<'_>,
    thread: &Thread,
    slot: &QueueSlot,
    state: &mut State,
) -> Result<bool, Error> {
    if state.handle != thread.handle() {
        let ring = thread.ring()?;
        if state.has_staged() {
            core.batch().note_error(Error::BadHandle(thread.handle()));
        }
        *state = State { ring, ..State::NONE };
        slot.held.clear();
        let status = port.status(ring.queue);
        state.restart(port, status)?;
        state.handle = thread.handle();
    }
    let sq_id = state.ring.queue.sq_id;
    let status = port.status(state.ring.queue);
    match status.state() {
        QueueStatus::SUSPENDED => return Err(Error::Suspended { sq_id }),
        QueueStatus::ENABLED | QueueStatus::REFUSING => {}
        _ => return Err(Error::BadHandle(thread.handle())),
    }
    if status.epoch() != state.enabled.epoch() {
        if state.has_staged() {
            core.batch().note_error(Error::Suspended { sq_id });
        }
        state.restart(port, status)?;
    }
    Ok(status.state() == QueueStatus::REFUSING)
}

/// Waits until the device has taken every task that was queued on `thread` before, those that a batch has staged included.
///
/// # Errors
/// [`Error::QueueFull`] with no entry wanted when that takes longer than `timeout_us` (`None` = for ever), and as [`submit`].
pub(crate) fn drain<P: Port>(port: &P, core: &Core<'_>, thread: &Thread, timeout_us: Option<u64>) -> Result<(), Error> {
    let slot = core.device().queue_of(thread.handle());
    let mut wait = Wait::new(port, timeout_us);
    loop {
        let mut state = slot.state.lock();
        enter(port, core, thread, slot, &mut state)?;
        state.ring_staged(port, core.batch().current()).inspect_err(|error| core.batch().note_error(*error))?;
        state.read_head(port)?;
        let State { ring, head, tail, .. } = *state;
        if head == tail {
            return Ok(());
        }
        drop(state);
        core.batch().ring_staged(port, core.device());
        if !wait.pause(port) {
            return Err(wait.over(ring, head, tail, 0, 0));
        }
    }
}

/// Writes `group` descriptors into free slots, of which there are as many, and rings once unless a batch is open.
#[inline]
fn publish<P: Port>(
    port: &P,
    core: &Core<'_>,
    thread: &Thread,
    slot: &QueueSlot,
    state: &mut State,
    tasks: &mut impl Tasks,
    group: u32,
) -> Result<(), Error> {
    let batch = core.batch().current();
    if batch != BatchId::NONE && batch != state.stager && state.has_staged() {
        // Of another core: rung for now, lest its tasks and ours share their fate at the end of either batch.
        state.ring(port)?;
    }
    let before = (state.tail, state.ids);
    let mut left = tasks.clone();
    let held = core.device().queues().iter().map(QueueSlot::held);
    let mut draw = IdDraw::new(core.device().ids(), held, &slot.held, state.ids.range);
    let Ring { stream_id, .. } = state.ring;
    match core.device().soc() {
        Soc::Ascend950 => write(port, state, group, |_| left.next().for_950(draw.next())),
        Soc::Ascend910B | Soc::Ascend910_93 => write(port, state, group, |ids| match ids.flipping.next() {
            Flip::TaskId(task_id) => left.next().for_910(Stamp { stream_id, task_id }),
            Flip::PlaceHolder(flips) => flip_place_holder(stream_id, flips),
        }),
    }
    if batch != BatchId::NONE {
        if !state.has_staged() {
            core.batch().note(core.device().queue_index(thread.handle()));
        }
        state.stager = batch;
    } else if let Err(error) = state.ring(port) {
        draw.undo();
        (state.tail, state.ids) = before;
        return Err(error);
    }
    state.ids.range = draw.finish();
    *tasks = left;
    Ok(())
}

/// Fills the next `group` free entries, and moves the tail behind them.
#[inline]
fn write<P: Port>(port: &P, state: &mut State, group: u32, mut next: impl FnMut(&mut Ids) -> Sqe) {
    let ring = state.ring;
    for _ in 0..group {
        let sqe = next(&mut state.ids);
        // SAFETY: `tail` is below the depth of a ring that `Ring::new` checked and the host keeps mapped for the thread's
        // life (`Device::set_thread_table`); `submit` saw `group` free entries from here on, which are ours until the
        // doorbell.
        unsafe { port.write_slot(ring.slot(state.tail), &sqe) };
        state.tail = ring.after(state.tail);
    }
}

/// A wait for the device that ends.
struct Wait {
    since_us: u64,
    /// `None`: waits for as long as it takes.
    timeout_us: Option<u64>,
    pause_ns: u32,
}

impl Wait {
    #[cold]
    fn new<P: Port>(port: &P, timeout_us: Option<u64>) -> Self {
        Self { since_us: port.now_us(), timeout_us, pause_ns: PAUSE_NS.0 }
    }

    /// Pauses, for twice as long each time up to the cap. `false`, without a pause: the limit is over.
    #[cold]
    fn pause<P: Port>(&mut self, port: &P) -> bool {
        if self.timeout_us.is_some_and(|limit| port.now_us().saturating_sub(self.since_us) >= limit) {
            return false;
        }
        port.delay().delay_ns(self.pause_ns);
        self.pause_ns = self.pause_ns.saturating_mul(2).min(PAUSE_NS.1);
        true
    }

    #[cold]
    fn over(&self, ring: Ring, head: u32, tail: u32, wanted: u32, queued_len: u64) -> Error {
        let (sq_id, timeout_us) = (ring.queue.sq_id, self.timeout_us.unwrap_or(0));
        QueueFull { sq_id, head, tail, wanted, queued_len, timeout_us }.into()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::spec::DeviceAddr;
    use crate::spec::stars950::Sdma;
    use crate::test_port::{Call, STALE, TestPort};

    /// `count` tasks of one byte each; task *n* copies to address *n*.
    #[derive(Clone)]
    struct Bytes {
        next: u64,
        count: u64,
    }

    impl Bytes {
        fn new(count: u64) -> Self {
            Self { next: 0, count }
        }
    }

    fn sqe(task: u64, task_id: u32) -> Sqe {
        Sdma::new(DeviceAddr(0x2000), DeviceAddr(task), 1).build(task_id)
    }

    impl Tasks for Bytes {
        fn remaining(&self) -> u64 {
            self.count - self.next
        }

        fn next(&mut self) -> Task {
            self.next += 1;
            Task::Sdma { src: DeviceAddr(0x2000), dst: DeviceAddr(self.next - 1), len: 1, opcode: 0 }
        }

        fn queued_len(&self) -> u64 {
            self.next
        }
    }

    struct Rig {
        port: TestPort,
        device: Box<crate::Device>,
        thread: Thread,
    }

    impl Rig {
        fn new(mut port: TestPort) -> Self {
            let device = port.device();
            let thread = port.thread(&device);
            Self { port, device, thread }
        }

        fn submit(&self, count: u64, timeout_us: u64) -> Result<(), Error> {
            let core = Core::new(&self.device);
            core.set_sq_full_timeout_us(timeout_us);
            submit(&self.port, &core, &self.thread, Bytes::new(count))
        }
    }

    #[test]
    fn case_31_group_is_published_slots_barrier_doorbell() {
        let rig = Rig::new(TestPort::new(8));
        rig.submit(3, 1).unwrap();
        rig.port.take_calls();
        rig.submit(2, 1).unwrap();
        let expected = [Call::Status, Call::Slot(3), Call::Slot(4), Call::Barrier, Call::Ring(5)];
        assert_eq!(rig.port.take_calls(), expected, "one look at the status, none at the head, one doorbell");
        let slots = rig.port.slots();
        assert_eq!(slots[..5], [sqe(0, 0), sqe(1, 1), sqe(2, 2), sqe(0, 3), sqe(1, 4)]);
        assert_eq!(slots[5..], [STALE; 3], "slots past the tail are not touched");
    }

    #[test]
    fn group_wraps_over_the_end_of_the_ring() {
        let rig = Rig::new(TestPort::starting_at(8, 7));
        rig.submit(3, 1).unwrap();
        let slots = rig.port.slots();
        assert_eq!([slots[7], slots[0], slots[1]], [sqe(0, 0), sqe(1, 1), sqe(2, 2)]);
        assert_eq!(rig.port.take_calls().last(), Some(&Call::Ring(2)));
    }

    /// Miri takes too long for big rings.
    fn depths(all: &[u32]) -> impl Iterator<Item = u32> {
        all.iter().copied().filter(|depth| !cfg!(miri) || *depth <= 5)
    }

    #[test]
    fn case_17_every_depth_and_head_takes_depth_minus_one() {
        for depth in depths(&[2, 5, 8, 100, 128]) {
            for head in 0..depth {
                let rig = Rig::new(TestPort::starting_at(depth, head));
                for task in 0..depth - 1 {
                    assert_eq!(rig.submit(1, 1), Ok(()), "depth {depth}, head {head}, task {task}");
                }
                let before = (rig.port.slots(), rig.device.queue_of(rig.thread.handle()).state.lock().ids);
                rig.port.expect_delays(&[1000]);
                let tail = (head + depth - 1) % depth;
                let full = QueueFull { sq_id: 9, head, tail, wanted: 1, queued_len: 0, timeout_us: 1 };
                assert_eq!(rig.submit(1, 1), Err(full.into()), "depth {depth}, head {head}");
                assert_eq!((rig.port.slots(), rig.device.queue_of(rig.thread.handle()).state.lock().ids), before);
                // The ring is as it was: once the device has run one entry, the next call takes exactly its slot.
                rig.port.speed.set(1);
                rig.port.take_calls();
                assert_eq!(rig.submit(1, 1), Ok(()), "depth {depth}, head {head}");
                let calls = rig.port.take_calls();
                assert_eq!(calls, [Call::Status, Call::Head, Call::Slot(tail), Call::Barrier, Call::Ring(head)]);
            }
        }
    }

    #[test]
    fn case_21_drained_ring_is_read_again_before_it_is_called_full() {
        let rig = Rig::new(TestPort::new(8));
        rig.submit(7, 1).unwrap();
        rig.port.speed.set(8);
        rig.port.take_calls();
        rig.submit(1, 1).unwrap();
        let expected = [Call::Status, Call::Head, Call::Slot(7), Call::Barrier, Call::Ring(0)];
        assert_eq!(rig.port.take_calls(), expected, "one look at the head, no delay");
    }

    #[test]
    fn several_laps_keep_every_descriptor_whole() {
        for depth in depths(&[2, 5, 8, 100, 2048]) {
            let rig = Rig::new(TestPort::new(depth));
            rig.port.speed.set(1);
            for task in 0..3 * depth + 1 {
                rig.submit(1, 0).unwrap();
                let slot = (task % depth) as usize;
                assert_eq!(rig.port.slots()[slot], sqe(0, task), "depth {depth}, task {task}");
            }
        }
    }

    #[test]
    fn back_off_doubles_up_to_its_cap_and_ends_at_the_limit() {
        let rig = Rig::new(TestPort::new(2));
        rig.submit(1, 1).unwrap();
        let mut delays: Vec<u32> = (0..10).map(|turn| 1000 << turn).collect();
        delays.extend([1_000_000; 3]);
        rig.port.expect_delays(&delays);
        let full = QueueFull { sq_id: 9, head: 0, tail: 1, wanted: 1, queued_len: 0, timeout_us: 4000 };
        assert_eq!(rig.submit(1, 4000), Err(full.into()));
    }

    #[test]
    fn zero_waits_for_as_long_as_it_takes() {
        let rig = Rig::new(TestPort::new(2));
        rig.submit(1, 1).unwrap();
        rig.port.now_us.set(u64::MAX - 5);
        let looks = 40;
        let delays: Vec<u32> = (0..looks).map(|turn| 1_000_000.min(1000_u32 << turn.min(20))).collect();
        rig.port.expect_delays(&delays);
        // The clock passes its end meanwhile: no arithmetic may mind.
        rig.port.run_after_looks(looks + 1);
        assert_eq!(rig.submit(1, 0), Ok(()));
    }

    #[test]
    fn more_tasks_than_entries_flow_through() {
        let rig = Rig::new(TestPort::new(5));
        rig.port.speed.set(2);
        rig.submit(23, 1).unwrap();
        let calls = rig.port.take_calls();
        let slots: Vec<u32> =
            calls.iter().filter_map(|call| if let Call::Slot(n) = call { Some(*n) } else { None }).collect();
        assert_eq!(slots, (0..23).map(|task| task % 5).collect::<Vec<_>>());
        assert!(calls.iter().filter(|call| matches!(call, Call::Ring(_))).count() >= 5);
        assert_eq!(rig.port.slots()[2], sqe(22, 22));
    }

    #[test]
    fn timeout_in_the_middle_says_what_was_queued() {
        let rig = Rig::new(TestPort::new(4));
        rig.port.expect_delays(&[1000, 2000]);
        let full = QueueFull { sq_id: 9, head: 0, tail: 3, wanted: 3, queued_len: 3, timeout_us: 2 };
        assert_eq!(rig.submit(10, 2), Err(full.into()));
        assert_eq!(rig.port.slots()[3], STALE);
    }

    #[test]
    fn group_that_fits_is_never_published_in_parts() {
        let rig = Rig::new(TestPort::new(8));
        rig.submit(5, 1).unwrap();
        rig.port.take_calls();
        rig.port.expect_delays(&[1000]);
        assert!(matches!(rig.submit(3, 1), Err(Error::QueueFull(full)) if full.wanted == 3 && full.queued_len == 0));
        assert!(!rig.port.take_calls().iter().any(|call| matches!(call, Call::Slot(_) | Call::Ring(_))));
    }

    #[test]
    fn case_30_refused_doorbell_leaves_tail_and_ids() {
        let rig = Rig::new(TestPort::new(8));
        rig.submit(1, 1).unwrap();
        rig.port.refuse_ring.set(true);
        assert_eq!(rig.submit(2, 1), Err(Error::DoorbellRefused { sq_id: 9 }));
        rig.port.refuse_ring.set(false);
        rig.submit(1, 1).unwrap();
        assert_eq!(rig.port.slots()[1], sqe(0, 1));
        assert_eq!(rig.port.take_calls().last(), Some(&Call::Ring(2)));
    }

    #[test]
    fn refusing_queue_gets_no_descriptor() {
        let rig = Rig::new(TestPort::new(8));
        rig.port.status.set(QueueStatus::REFUSING);
        assert_eq!(rig.submit(2, 1), Err(Error::DoorbellRefused { sq_id: 9 }));
        assert_eq!(rig.port.slots(), [STALE; 8]);
    }

    #[test]
    fn suspended_queue_refuses_also_while_full() {
        let rig = Rig::new(TestPort::new(2));
        rig.submit(1, 1).unwrap();
        rig.port.status.set(QueueStatus::SUSPENDED);
        assert_eq!(rig.submit(1, 1), Err(Error::Suspended { sq_id: 9 }));
        rig.port.status.set(QueueStatus::ENABLED);
        rig.port.speed.set(1);
        assert_eq!(rig.submit(1, 1), Ok(()));
    }

    #[test]
    fn unknown_status_counts_as_free() {
        let rig = Rig::new(TestPort::new(2));
        for status in [0, 4, 0xff, 0xffff_ff00] {
            rig.port.status.set(QueueStatus(status));
            assert_eq!(rig.submit(1, 1), Err(Error::BadHandle(rig.thread.handle())), "{status:#x}");
        }
    }

    #[test]
    fn reset_queue_starts_anew_at_the_head() {
        let rig = Rig::new(TestPort::new(8));
        rig.submit(5, 1).unwrap();
        rig.port.status.set(QueueStatus::ENABLED.with_epoch(1));
        rig.submit(1, 1).unwrap();
        assert_eq!(rig.port.slots()[0], sqe(0, 5), "slot 0, next task id");
        assert_eq!(rig.port.take_calls().last(), Some(&Call::Ring(1)));
    }

    #[test]
    fn head_that_cannot_be_is_refused() {
        let rig = Rig::new(TestPort::new(4));
        rig.submit(2, 1).unwrap();
        for head in [4, 3, u32::MAX] {
            rig.port.head.set(head);
            let bad = Error::BadQueue { sq_id: 9, what: "head", value: head.into(), limit: 2 };
            assert_eq!(rig.submit(2, 1), Err(bad), "head {head}");
        }
        rig.port.head.set(1);
        assert_eq!(rig.submit(2, 1), Ok(()));
    }

    #[test]
    fn case_20_ring_that_cannot_be_is_refused() {
        type Edit = fn(&mut crate::spec::thread::ThreadDescriptor);
        let edits: [(&str, Edit); 5] = [
            ("depth", |thread| thread.depth = 0),
            ("depth", |thread| thread.depth = 1),
            ("ring address", |thread| thread.sq_base = DeviceAddr(0)),
            ("ring address", |thread| thread.sq_base.0 += 8),
            ("ring address", |thread| thread.sq_base = DeviceAddr(u64::MAX - 63)),
        ];
        for (field, edit) in edits {
            let mut port = TestPort::new(4);
            let device = port.device();
            port.edit_descriptor(edit);
            let thread = port.thread(&device);
            let result = submit(&port, &Core::new(&device), &thread, Bytes::new(1));
            assert!(matches!(result, Err(Error::BadQueue { what, .. }) if what == field), "{field}: {result:?}");
            assert_eq!(port.slots(), [STALE; 4]);
        }
    }

    #[test]
    fn thread_freed_after_its_look_up_is_refused() {
        let mut port = TestPort::new(4);
        let device = port.device();
        let thread = port.thread(&device);
        port.edit_descriptor(|descriptor| descriptor.tag.magic = 0);
        let result = submit(&port, &Core::new(&device), &thread, Bytes::new(1));
        assert_eq!(result, Err(Error::BadHandle(thread.handle())));
    }

    /// A core of the rig with an open batch. Boxed: a batch is known by its address.
    fn batching(rig: &Rig) -> Box<Core<'_>> {
        let core = Box::new(Core::new(&rig.device));
        core.set_sq_full_timeout_us(1);
        core.batch().start();
        core
    }

    fn rings(calls: &[Call]) -> Vec<u32> {
        calls.iter().filter_map(|call| if let Call::Ring(tail) = call { Some(*tail) } else { None }).collect()
    }

    #[test]
    fn case_15_batch_rings_once_after_both_parts_around_the_end_of_the_ring() {
        let rig = Rig::new(TestPort::starting_at(8, 7));
        let core = batching(&rig);
        for _ in 0..3 {
            submit(&rig.port, &core, &rig.thread, Bytes::new(1)).unwrap();
        }
        assert_eq!(rings(&rig.port.take_calls()), [] as [u32; 0]);
        assert_eq!(core.batch().end(&rig.port, &rig.device), Ok(()));
        assert_eq!(rig.port.take_calls(), [Call::Barrier, Call::Ring(2)]);
        let slots = rig.port.slots();
        assert_eq!([slots[7], slots[0], slots[1]], [sqe(0, 0), sqe(0, 1), sqe(0, 2)]);
        assert_eq!(slots[2..7], [STALE; 5]);
        assert_eq!(core.batch().end(&rig.port, &rig.device), Ok(()), "an end without a start");
        assert_eq!(rig.port.take_calls(), []);
    }

    #[test]
    fn batches_of_two_cores_on_one_queue_do_not_share_their_fate() {
        let rig = Rig::new(TestPort::new(8));
        let (first, second) = (batching(&rig), batching(&rig));
        submit(&rig.port, &first, &rig.thread, Bytes::new(1)).unwrap();
        submit(&rig.port, &second, &rig.thread, Bytes::new(2)).unwrap();
        assert_eq!(
            rings(&rig.port.take_calls()),
            [1],
            "the first core's task is rung for before the second's are staged"
        );
        assert!(first.finish_launch().batch_left_open);
        assert_eq!(second.batch().end(&rig.port, &rig.device), Ok(()));
        assert_eq!(rings(&rig.port.take_calls()), [3], "what the second has staged is still there");
        assert_eq!(first.batch().end(&rig.port, &rig.device), Ok(()));
        assert_eq!(rings(&rig.port.take_calls()), []);
    }

    #[test]
    fn nested_start_changes_nothing() {
        let rig = Rig::new(TestPort::new(8));
        let core = batching(&rig);
        submit(&rig.port, &core, &rig.thread, Bytes::new(1)).unwrap();
        core.batch().start();
        submit(&rig.port, &core, &rig.thread, Bytes::new(1)).unwrap();
        core.batch().end(&rig.port, &rig.device).unwrap();
        submit(&rig.port, &core, &rig.thread, Bytes::new(1)).unwrap();
        assert_eq!(rings(&rig.port.take_calls()), [2, 3]);
    }

    #[test]
    fn batch_larger_than_the_ring_flows_through_it() {
        let rig = Rig::new(TestPort::new(4));
        rig.port.speed.set(1);
        let core = batching(&rig);
        // Two times everything in the ring is staged: only then is it rung for, and waited.
        rig.port.expect_delays(&[1000; 2]);
        for _ in 0..7 {
            submit(&rig.port, &core, &rig.thread, Bytes::new(1)).unwrap();
        }
        core.batch().end(&rig.port, &rig.device).unwrap();
        assert_eq!(rig.port.slots()[2], sqe(0, 6));
        assert_eq!(rings(&rig.port.take_calls()).last(), Some(&3));
    }

    #[test]
    fn refused_batch_is_dropped_and_does_not_run_later() {
        let rig = Rig::new(TestPort::new(8));
        let core = batching(&rig);
        submit(&rig.port, &core, &rig.thread, Bytes::new(2)).unwrap();
        rig.port.refuse_ring.set(true);
        assert_eq!(core.batch().end(&rig.port, &rig.device), Err(Error::DoorbellRefused { sq_id: 9 }));
        rig.port.refuse_ring.set(false);
        rig.submit(1, 1).unwrap();
        assert_eq!(rings(&rig.port.take_calls()), [2, 1]);
        assert_eq!(rig.port.slots()[0], sqe(0, 2));
        core.batch().start();
        assert_eq!(core.batch().end(&rig.port, &rig.device), Ok(()), "the next batch starts clean");
    }

    #[test]
    fn refused_call_leaves_the_batch_as_it_was() {
        let rig = Rig::new(TestPort::new(3));
        let core = batching(&rig);
        submit(&rig.port, &core, &rig.thread, Bytes::new(1)).unwrap();
        rig.port.status.set(QueueStatus::SUSPENDED);
        assert_eq!(submit(&rig.port, &core, &rig.thread, Bytes::new(1)), Err(Error::Suspended { sq_id: 9 }));
        rig.port.status.set(QueueStatus::REFUSING);
        assert_eq!(submit(&rig.port, &core, &rig.thread, Bytes::new(1)), Err(Error::DoorbellRefused { sq_id: 9 }));
        rig.port.status.set(QueueStatus::ENABLED);
        core.batch().end(&rig.port, &rig.device).unwrap();
        assert_eq!(rings(&rig.port.take_calls()), [1]);
    }

    #[test]
    fn reset_in_a_batch_is_reported_at_its_end() {
        let rig = Rig::new(TestPort::new(8));
        let core = batching(&rig);
        submit(&rig.port, &core, &rig.thread, Bytes::new(2)).unwrap();
        rig.port.status.set(QueueStatus::ENABLED.with_epoch(1));
        submit(&rig.port, &core, &rig.thread, Bytes::new(1)).unwrap();
        assert_eq!(core.batch().end(&rig.port, &rig.device), Err(Error::Suspended { sq_id: 9 }));
        assert_eq!(rings(&rig.port.take_calls()), [1]);
    }

    #[test]
    fn batch_left_open_is_dropped_and_told() {
        let rig = Rig::new(TestPort::new(8));
        let core = batching(&rig);
        submit(&rig.port, &core, &rig.thread, Bytes::new(2)).unwrap();
        assert!(core.finish_launch().batch_left_open);
        assert!(!core.finish_launch().batch_left_open);
        rig.submit(1, 1).unwrap();
        assert_eq!(rings(&rig.port.take_calls()), [1]);
    }

    #[test]
    fn drain_rings_what_is_staged_and_waits_for_it() {
        let rig = Rig::new(TestPort::new(8));
        let core = batching(&rig);
        submit(&rig.port, &core, &rig.thread, Bytes::new(3)).unwrap();
        rig.port.expect_delays(&[1000]);
        let busy = QueueFull { sq_id: 9, head: 0, tail: 3, wanted: 0, queued_len: 0, timeout_us: 1 };
        assert_eq!(drain(&rig.port, &core, &rig.thread, Some(1)), Err(busy.into()));
        rig.port.speed.set(3);
        assert_eq!(drain(&rig.port, &core, &rig.thread, Some(0)), Ok(()));
        assert_eq!(rings(&rig.port.take_calls()), [3]);
    }

    fn byte_task(task: u64) -> Task {
        Task::Sdma { src: DeviceAddr(0x2000), dst: DeviceAddr(task), len: 1, opcode: 0 }
    }

    #[test]
    fn short_way_publishes_as_the_long_way_does() {
        let rig = Rig::new(TestPort::starting_at(8, 6));
        let core = Core::new(&rig.device);
        let handle = rig.thread.handle();
        assert!(matches!(submit_one(&rig.port, &core, handle, byte_task(0)), Short::NotTaken), "not known yet");
        rig.submit(1, 1).unwrap();
        rig.port.take_calls();
        for (task, slot, tail) in [(1, 7, 0), (2, 0, 1), (3, 1, 2)] {
            assert!(matches!(submit_one(&rig.port, &core, handle, byte_task(task)), Short::Queued));
            assert_eq!(rig.port.take_calls(), [Call::Status, Call::Slot(slot), Call::Barrier, Call::Ring(tail)]);
            assert_eq!(rig.port.slots()[slot as usize], sqe(task, task as u32));
        }
        rig.submit(1, 1).unwrap();
        assert_eq!(rig.port.slots()[2], sqe(0, 4), "the long way goes on where the short one was");
    }

    #[test]
    fn short_way_is_not_taken_where_something_needs_a_closer_look() {
        let rig = Rig::new(TestPort::new(4));
        let core = Core::new(&rig.device);
        let handle = rig.thread.handle();
        rig.submit(2, 1).unwrap();
        let before = rig.port.slots();
        let not_taken = |handle: u64, why| {
            let short = submit_one(&rig.port, &core, ThreadHandle(handle), byte_task(9));
            assert!(matches!(short, Short::NotTaken), "{why}");
            assert_eq!(rig.port.slots(), before, "{why}");
        };
        for other in [0, 1, handle.0 + 1, handle.0 + 64, handle.0 ^ 1 << 48, u64::MAX] {
            not_taken(other, "another handle");
        }
        for status in [QueueStatus::FREE, QueueStatus::REFUSING, QueueStatus::SUSPENDED, QueueStatus(0x101)] {
            rig.port.status.set(status);
            not_taken(handle.0, "another status");
        }
        rig.port.status.set(QueueStatus::ENABLED);
        let other = batching(&rig);
        submit(&rig.port, &other, &rig.thread, Bytes::new(1)).unwrap();
        assert!(other.finish_launch().batch_left_open);
        assert!(matches!(submit_one(&rig.port, &core, handle, byte_task(2)), Short::Queued));
        let before = rig.port.slots();
        assert!(matches!(submit_one(&rig.port, &core, handle, byte_task(9)), Short::NotTaken), "full");
        assert_eq!(rig.port.slots(), before);
    }

    #[test]
    fn short_way_takes_no_new_block_of_ids() {
        let rig = Rig::new(TestPort::new(2048));
        let core = Core::new(&rig.device);
        let short = |task| submit_one(&rig.port, &core, rig.thread.handle(), byte_task(task));
        rig.submit(1023, 1).unwrap();
        assert!(matches!(short(1), Short::Queued));
        assert!(matches!(short(2), Short::NotTaken));
        rig.submit(1, 1).unwrap();
        assert!(matches!(short(3), Short::Queued));
        assert_eq!(rig.port.slots()[1023..1026], [sqe(1, 1023), sqe(0, 1024), sqe(3, 1025)]);
    }

    #[test]
    fn short_way_in_a_batch_stages_and_tells_the_first() {
        let rig = Rig::new(TestPort::new(8));
        rig.submit(1, 1).unwrap();
        rig.port.take_calls();
        let (first, second) = (batching(&rig), batching(&rig));
        let short = |core: &Core<'_>, task| submit_one(&rig.port, core, rig.thread.handle(), byte_task(task));
        assert!(matches!(short(&first, 1), Short::First));
        first.batch().note(rig.device.queue_index(rig.thread.handle()));
        assert!(matches!(short(&first, 2), Short::Queued));
        assert!(matches!(short(&second, 3), Short::NotTaken), "staged by another core");
        assert!(matches!(short(&Core::new(&rig.device), 3), Short::NotTaken), "staged by another core");
        assert_eq!(rings(&rig.port.take_calls()), [] as [u32; 0]);
        assert_eq!(first.batch().end(&rig.port, &rig.device), Ok(()));
        assert_eq!(rings(&rig.port.take_calls()), [3]);
    }

    #[test]
    fn short_way_leaves_no_trace_of_a_refused_doorbell() {
        let rig = Rig::new(TestPort::new(8));
        rig.submit(1, 1).unwrap();
        let core = Core::new(&rig.device);
        rig.port.refuse_ring.set(true);
        let refused = submit_one(&rig.port, &core, rig.thread.handle(), byte_task(1));
        assert!(matches!(refused, Short::Refused { sq_id: 9 }));
        rig.port.refuse_ring.set(false);
        rig.submit(1, 1).unwrap();
        assert_eq!(rig.port.slots()[1], sqe(0, 1));
        assert_eq!(rig.port.take_calls().last(), Some(&Call::Ring(2)));
    }

    #[test]
    fn short_way_of_several_publishes_as_the_long_way_does() {
        let rig = Rig::new(TestPort::starting_at(8, 5));
        let core = Core::new(&rig.device);
        let some = |count| submit_some(&rig.port, &core, rig.thread.handle(), Bytes::new(count));
        assert!(matches!(some(2), Short::NotTaken), "not known yet");
        rig.submit(1, 1).unwrap();
        rig.port.take_calls();
        assert!(matches!(some(3), Short::Queued));
        let expected = [Call::Status, Call::Slot(6), Call::Slot(7), Call::Slot(0), Call::Barrier, Call::Ring(1)];
        assert_eq!(rig.port.take_calls(), expected);
        let slots = rig.port.slots();
        assert_eq!([slots[6], slots[7], slots[0]], [sqe(0, 1), sqe(1, 2), sqe(2, 3)]);
        rig.port.refuse_ring.set(true);
        assert!(matches!(some(2), Short::Refused { sq_id: 9 }));
        rig.port.refuse_ring.set(false);
        rig.port.status.set(QueueStatus::SUSPENDED);
        assert!(matches!(some(2), Short::NotTaken), "another status");
        rig.port.status.set(QueueStatus::ENABLED);
        assert!(matches!(some(4), Short::NotTaken), "one more than there is room for");
        assert!(matches!(some(3), Short::Queued));
        assert_eq!(rig.port.slots()[1..4], [sqe(0, 4), sqe(1, 5), sqe(2, 6)]);
    }

    #[test]
    fn short_way_of_several_stays_in_its_block_of_ids() {
        let rig = Rig::new(TestPort::new(2048));
        let core = Core::new(&rig.device);
        rig.submit(1022, 1).unwrap();
        let some = |count| submit_some(&rig.port, &core, rig.thread.handle(), Bytes::new(count));
        assert!(matches!(some(3), Short::NotTaken));
        assert!(matches!(some(2), Short::Queued));
    }

    #[test]
    fn refused_first_call_gives_its_block_of_ids_back() {
        let rig = Rig::new(TestPort::new(8));
        rig.port.refuse_ring.set(true);
        assert_eq!(rig.submit(1, 1), Err(Error::DoorbellRefused { sq_id: 9 }));
        rig.port.refuse_ring.set(false);
        rig.submit(1, 1).unwrap();
        assert_eq!(rig.port.slots()[0], sqe(0, 0));
    }

    #[test]
    fn descriptors_of_another_soc_always_go_the_long_way() {
        for soc in [Soc::Ascend910B, Soc::Ascend910_93] {
            let rig = Rig::new(TestPort::new(8));
            rig.device.set_soc(soc);
            rig.submit(2, 1).unwrap();
            let core = Core::new(&rig.device);
            assert!(matches!(submit_one(&rig.port, &core, rig.thread.handle(), byte_task(1)), Short::NotTaken));
            let stamp = Stamp { stream_id: 3, task_id: 1 };
            assert_eq!(rig.port.slots()[1], byte_task(1).for_910(stamp));
        }
    }

    #[test]
    fn place_holder_goes_before_the_first_task_of_a_new_round() {
        let rig = Rig::new(TestPort::new(4));
        rig.device.set_soc(Soc::Ascend910B);
        rig.submit(1, 1).unwrap();
        rig.device.queue_of(rig.thread.handle()).state.lock().ids.flipping = FlippingId::after(65_535);
        rig.port.speed.set(4);
        rig.submit(2, 1).unwrap();
        let task = |task, task_id| byte_task(task).for_910(Stamp { stream_id: 3, task_id });
        assert_eq!(rig.port.slots()[1..], [task(0, 65_535), flip_place_holder(3, 1), task(1, 1)]);
    }
}
