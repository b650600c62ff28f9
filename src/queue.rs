//! Submission queue: room in the ring, slots, publication, and the wait for room. No hardware in it: see [`port`](crate::port).
//!
//! Publication is two steps that no other core of the device can come between: all slots of a group are written, then one
//! barrier and one doorbell make them the device's. A group that is refused leaves tail and task ids as they were.

use core::sync::atomic::Ordering;

use crate::batch::BatchId;
use crate::device::Core;
use crate::encode::{stamp_910, stamp_950};
use crate::error::{Error, Stop};
use crate::port::Port;
use crate::ring::Ring;
use crate::spec::queue::QueueStatus;
use crate::spec::soc::Soc;
use crate::spec::stars910::{Stamp, flip_place_holder};
use crate::spec::thread::ThreadHandle;
use crate::sync::{Mutex, MutexGuard, const_fn, fence};
use crate::task_id::{Flip, FlippingId, HeldBlock, IdDraw, IdRange};
use crate::thread::Thread;
use crate::wait::Wait;
use crate::work::Tasks;

/// Where the next task id of a queue comes from: which of the two depends on the SoC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    /// Ascend950.
    pub(crate) range: IdRange,
    /// Ascend910B, Ascend910_93.
    flipping: FlippingId,
}

impl Ids {
    const FIRST: Self = Self { range: IdRange::EMPTY, flipping: FlippingId::FIRST };
}

/// The device's own state of one queue. What a call reads together lies together.
#[repr(C)]
pub(crate) struct State {
    /// Handle of the thread that everything below belongs to; 0 = of none yet. It was found good, and for as long as the
    /// status word is `enabled`, it still is: each life of a slot has status words of its own.
    pub(crate) handle: ThreadHandle,
    pub(crate) ring: Ring,
    /// Head as last read. The device may be further on.
    head: u32,
    /// One past the last entry that the device may run.
    pub(crate) rung: u32,
    /// One past the last entry that is written: from `rung` up to here tasks are staged.
    pub(crate) tail: u32,
    /// From the tail up to here entries are free, are not the last of the ring, and have ids in their range, one each:
    /// calls that take one of them are [`short`](crate::short).
    pub(crate) short_end: u32,
    /// Status word that lets a call go on without a closer look.
    pub(crate) enabled: QueueStatus,
    /// The batch that has staged the tasks from `rung` to `tail`, all of one core; none when there are none.
    pub(crate) stager: BatchId,
    /// The batch whose staged tasks went when the queue started anew, until its end has told so. Of two it is the later one.
    lost: BatchId,
    pub(crate) ids: Ids,
}

impl State {
    const NONE: Self = Self {
        handle: ThreadHandle(0),
        ring: Ring::NONE,
        head: 0,
        rung: 0,
        tail: 0,
        short_end: 0,
        enabled: QueueStatus::FREE,
        stager: BatchId::NONE,
        lost: BatchId::NONE,
        ids: Ids::FIRST,
    };

    /// Free entries as far as the cached head tells. One entry stays empty: a full ring differs from an empty one.
    fn free(&self) -> u32 {
        self.ring.depth - 1 - self.ring.distance(self.head, self.tail)
    }

    /// Opens the short way for as many calls as it can: after tail, head or ids have changed in any other way than by it.
    fn open_short_way(&mut self) {
        let end = if self.head > self.tail { self.head - 1 } else { self.ring.depth - 1 };
        self.short_end = self.tail + self.ids.range.left().min(end - self.tail);
    }

    /// Reads the head again. The device is not trusted: it can only have come closer to what was rung, not to what is staged.
    fn read_head<P: Port>(&mut self, port: &P) -> Result<(), Stop> {
        let ring = self.ring;
        let head = port.head(ring.queue);
        let outstanding = ring.distance(self.head, self.rung);
        if head >= ring.depth || ring.distance(head, self.rung) > outstanding {
            return Err(Stop::BadHead { sq_id: ring.queue.sq_id, head, limit: self.rung });
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

    #[inline]
    pub(crate) fn has_staged(&self) -> bool {
        self.stager != BatchId::NONE
    }

    /// Makes everything up to the tail the device's.
    #[inline]
    fn ring<P: Port>(&mut self, port: &P) -> Result<(), Stop> {
        // Pairs with the device's acquire load of the doorbell: it sees the new tail only after the slots.
        port.store_barrier();
        if port.ring(self.ring.queue, self.tail).is_err() {
            return Err(Stop::DoorbellRefused { sq_id: self.ring.queue.sq_id });
        }
        (self.rung, self.stager) = (self.tail, BatchId::NONE);
        Ok(())
    }

    /// Rings for what is staged, unless the queue takes no tasks any more or has started anew since. On a refusal `batch` drops
    /// its tasks: they must not run with a later doorbell.
    #[cold]
    #[inline(never)]
    fn ring_staged<P: Port>(&mut self, port: &P, batch: BatchId) -> Result<(), Stop> {
        let mut result = Ok(());
        if self.has_staged() {
            let queue = self.ring.queue;
            let status = port.status(queue);
            result = if status == self.enabled { self.ring(port) } else { Err(stop(status, queue.sq_id, self.handle)) };
        }
        self.drop_staged(batch);
        result
    }

    /// Forgets what `batch` has staged, and nothing of another one.
    fn drop_staged(&mut self, batch: BatchId) {
        if self.stager == batch {
            (self.tail, self.stager) = (self.rung, BatchId::NONE);
            self.open_short_way();
        }
    }

    /// Forgets all that is staged, whoever it is of.
    fn lose_staged(&mut self) {
        if self.has_staged() {
            (self.lost, self.stager) = (self.stager, BatchId::NONE);
        }
    }

    /// Tells `batch`, once, if tasks of it were lost.
    fn take_loss(&mut self, batch: BatchId) -> Result<(), Stop> {
        if self.lost != batch {
            return Ok(());
        }
        self.lost = BatchId::NONE;
        Err(Stop::Suspended { sq_id: self.ring.queue.sq_id })
    }

    /// Starts anew at the head that the device reports: after a thread was acquired or its queue was reset.
    fn restart<P: Port>(&mut self, port: &P, status: QueueStatus) -> Result<(), Stop> {
        let Ring { depth, queue, .. } = self.ring;
        let head = port.head(queue);
        if head >= depth {
            return Err(Stop::BadHead { sq_id: queue.sq_id, head, limit: depth });
        }
        self.lose_staged();
        (self.head, self.rung, self.tail) = (head, head, head);
        self.enabled = QueueStatus::ENABLED.with_epoch(status.epoch());
        self.open_short_way();
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

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn held(&self) -> &HeldBlock {
        &self.held
    }

    /// [`lock`](Self::lock) for the long ways: out of line.
    #[cold]
    #[inline(never)]
    fn lock_long(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Rings for the tasks that `batch` has staged, if there are any.
    pub(crate) fn ring_staged<P: Port>(&self, port: &P, batch: BatchId) -> Result<(), Stop> {
        let mut state = self.lock_long();
        let loss = state.take_loss(batch);
        if state.stager == batch { loss.and(state.ring_staged(port, batch)) } else { loss }
    }

    /// Forgets the tasks that `batch` has staged.
    pub(crate) fn drop_staged(&self, batch: BatchId) {
        let mut state = self.lock_long();
        state.drop_staged(batch);
        // A launch that is over is told of nothing.
        let _ = state.take_loss(batch);
    }
}

/// Queues `tasks` on the queue of `thread`: all in one group, or in as few as it takes when the ring is smaller than that.
/// In a batch they are staged; otherwise each group is rung for.
///
/// # Errors
/// [`Error::Suspended`], [`Error::QueueFull`], [`Error::DoorbellRefused`] in this order; [`Error::BadHandle`] when the thread
/// has been freed; [`Error::BadQueue`] when the device reports what can't be. The group that was refused left no trace.
#[cold]
#[inline(never)]
pub(crate) fn submit<P: Port>(port: &P, core: &Core<'_>, thread: Thread, tasks: &mut impl Tasks) -> Result<(), Error> {
    let slot = core.device().queue_of(thread.handle());
    let soc = core.device().soc();
    let mut wait = None;
    let mut flows = false;
    while tasks.remaining() > 0 {
        let mut state = slot.lock_long();
        let doorbell = enter(port, thread, slot, &mut state)?;

        let room = state.ring.depth - 1;
        let needed = state.entries_for(soc, tasks.remaining());
        let wanted = u32::try_from(needed).map_or(room, |needed| needed.min(room));
        let mut free = state.free();
        if free < wanted {
            state.read_head(port)?;
            free = state.free();
        }
        // More tasks than entries: they flow through the ring as it drains.
        flows |= needed > room.into();
        let group = if flows { free.min(wanted) } else { wanted };
        if group > 0 && free >= group {
            if doorbell == Doorbell::Refusing {
                return Err(Error::DoorbellRefused { sq_id: state.ring.queue.sq_id });
            }
            publish(port, core, thread, slot, &mut state, tasks, group)?;
            wait = None;
            continue;
        }

        // What is staged here will never run unless it is rung for, and then nor will this call.
        core.batch().keep_mishap(state.ring_staged(port, core.batch().current()))?;
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

/// What a queue that can be entered does with a doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Doorbell {
    Taking,
    Refusing,
}

/// Makes `state` that of `thread`'s present life, and looks at the status.
#[inline]
fn enter<P: Port>(port: &P, thread: Thread, slot: &QueueSlot, state: &mut State) -> Result<Doorbell, Stop> {
    if state.handle == thread.handle() && port.status(state.ring.queue) == state.enabled {
        return Ok(Doorbell::Taking);
    }
    enter_anew(port, thread, slot, state)
}

/// Why a queue with this status takes no tasks; or none of those that were staged before, if it is enabled, but anew.
#[cold]
#[inline(never)]
fn stop(status: QueueStatus, sq_id: u32, handle: ThreadHandle) -> Stop {
    match status.state() {
        QueueStatus::REFUSING => Stop::DoorbellRefused { sq_id },
        QueueStatus::SUSPENDED | QueueStatus::ENABLED => Stop::Suspended { sq_id },
        _ => Stop::BadHandle(handle),
    }
}

#[cold]
#[inline(never)]
fn enter_anew<P: Port>(port: &P, thread: Thread, slot: &QueueSlot, state: &mut State) -> Result<Doorbell, Stop> {
    let is_new = state.handle != thread.handle();
    if is_new {
        let ring = thread.ring()?;
        state.lose_staged();
        // Of no thread until it has started anew.
        (state.handle, state.ring, state.ids) = (ThreadHandle(0), ring, Ids::FIRST);
        (state.tail, state.short_end) = (0, 0);
        slot.held.clear();
    }
    let sq_id = state.ring.queue.sq_id;
    let status = port.status(state.ring.queue);
    if !matches!(status.state(), QueueStatus::ENABLED | QueueStatus::REFUSING) {
        return Err(stop(status, sq_id, thread.handle()));
    }
    if is_new || status.epoch() != state.enabled.epoch() {
        state.restart(port, status)?;
        state.handle = thread.handle();
    }
    Ok(if status.state() == QueueStatus::REFUSING { Doorbell::Refusing } else { Doorbell::Taking })
}

/// Waits until the device has taken every task that was queued on `thread` before, those that a batch has staged included.
///
/// # Errors
/// [`Error::QueueFull`] with no entry wanted when that takes longer than `timeout_us` (`None` = for ever), and as [`submit`].
pub(crate) fn drain<P: Port>(port: &P, core: &Core<'_>, thread: Thread, timeout_us: Option<u64>) -> Result<(), Error> {
    let slot = core.device().queue_of(thread.handle());
    let mut wait = Wait::new(port, timeout_us);
    loop {
        let mut state = slot.lock_long();
        enter(port, thread, slot, &mut state)?;
        core.batch().keep_mishap(state.ring_staged(port, core.batch().current()))?;
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
    thread: Thread,
    slot: &QueueSlot,
    state: &mut State,
    tasks: &mut impl Tasks,
    group: u32,
) -> Result<(), Stop> {
    let batch = core.batch().current();
    if batch != BatchId::NONE && batch != state.stager && state.has_staged() {
        // Of another core: rung for now, lest its tasks and ours share their fate at the end of either batch.
        state.ring(port)?;
    }
    let (tail, flipping) = (state.tail, state.ids.flipping);
    let held = core.device().queues().iter().map(QueueSlot::held);
    let mut draw = IdDraw::new(core.device().ids(), held, &slot.held, state.ids.range);
    let soc = core.device().soc();
    for _ in 0..group {
        write_entry(port, soc, state, &mut draw, tasks);
    }
    if batch != BatchId::NONE {
        if !state.has_staged() {
            core.batch().note(core.device().queue_index(thread.handle()));
        }
        state.stager = batch;
    } else if let Err(mishap) = state.ring(port) {
        draw.undo();
        (state.tail, state.ids.flipping) = (tail, flipping);
        return Err(mishap);
    }
    state.ids.range = draw.finish();
    state.open_short_way();
    Ok(())
}

/// Fills the entry at the tail, which is free, and moves the tail behind it: with the next task, or with a place holder
/// before the first one of a new round of ids. Out of line: the loop around it would be there once for each SoC.
#[inline(never)]
fn write_entry<'q, P: Port>(
    port: &P,
    soc: Soc,
    state: &mut State,
    draw: &mut IdDraw<'q, impl Iterator<Item = &'q HeldBlock> + Clone>,
    tasks: &mut impl Tasks,
) {
    let Ring { stream_id, .. } = state.ring;
    let sqe = match soc {
        Soc::Ascend950 => tasks.next(stamp_950(draw.next())),
        Soc::Ascend910B | Soc::Ascend910_93 => match state.ids.flipping.next() {
            Flip::TaskId(task_id) => tasks.next(stamp_910(Stamp { stream_id, task_id })),
            Flip::PlaceHolder(flips) => flip_place_holder(stream_id, flips),
        },
    };
    // SAFETY: `tail` is below the depth of a ring that `Ring::new` checked and the host keeps mapped for the thread's life
    // (`Device::set_thread_table`); `submit` saw that the entry is free, and it is ours until the doorbell.
    unsafe { port.write_slot(state.ring.slot(state.tail), &sqe) };
    state.tail = state.ring.after(state.tail);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::{QueueField, QueueFull};
    use crate::short::{Short, submit_one};
    use crate::spec::DeviceAddr;
    use crate::test_port::{Call, STALE, TestPort};
    use crate::test_rig::{Bytes, Rig, byte_task, rings, sqe};

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
        for status in [0, 4, 0xff, 0xffff_ffff_ffff_ff00] {
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
            let bad = Error::BadQueue { sq_id: 9, field: QueueField::Head, value: head.into(), limit: 2 };
            assert_eq!(rig.submit(2, 1), Err(bad), "head {head}");
        }
        rig.port.head.set(1);
        assert_eq!(rig.submit(2, 1), Ok(()));
    }

    #[test]
    fn head_among_staged_tasks_is_refused() {
        let rig = Rig::new(TestPort::new(4));
        let core = rig.batching();
        submit(&rig.port, &core, rig.thread, &mut Bytes::new(3)).unwrap();
        rig.port.head.set(2);
        let bad = Error::BadQueue { sq_id: 9, field: QueueField::Head, value: 2, limit: 0 };
        assert_eq!(submit(&rig.port, &core, rig.thread, &mut Bytes::new(1)), Err(bad));
        assert_eq!(rig.port.slots(), [sqe(0, 0), sqe(1, 1), sqe(2, 2), STALE], "no staged task is written over");
        rig.port.head.set(0);
        assert_eq!(core.batch().end(&rig.port, &rig.device), Ok(()));
        assert_eq!(rings(&rig.port.take_calls()), [3]);
    }

    #[test]
    fn case_20_ring_that_cannot_be_is_refused() {
        type Edit = fn(&mut crate::spec::thread::ThreadDescriptor);
        let edits: [(QueueField, Edit); 5] = [
            (QueueField::Depth, |thread| thread.depth = 0),
            (QueueField::Depth, |thread| thread.depth = 1),
            (QueueField::RingAddress, |thread| thread.sq_base = DeviceAddr(0)),
            (QueueField::RingAddress, |thread| thread.sq_base.0 += 8),
            (QueueField::RingAddress, |thread| thread.sq_base = DeviceAddr(u64::MAX - 63)),
        ];
        for (field, edit) in edits {
            let mut port = TestPort::new(4);
            let device = port.device();
            port.edit_descriptor(edit);
            let thread = port.thread(&device);
            let result = submit(&port, &Core::new(&device), thread, &mut Bytes::new(1));
            assert!(
                matches!(result, Err(Error::BadQueue { field: found, .. }) if found == field),
                "{field:?}: {result:?}"
            );
            assert_eq!(port.slots(), [STALE; 4]);
        }
    }

    #[test]
    fn thread_freed_after_its_look_up_is_refused() {
        let mut port = TestPort::new(4);
        let device = port.device();
        let thread = port.thread(&device);
        port.edit_descriptor(|descriptor| descriptor.tag.magic = 0);
        let result = submit(&port, &Core::new(&device), thread, &mut Bytes::new(1));
        assert_eq!(result, Err(Error::BadHandle(thread.handle())));
    }

    #[test]
    fn case_15_batch_rings_once_after_both_parts_around_the_end_of_the_ring() {
        let rig = Rig::new(TestPort::starting_at(8, 7));
        let core = rig.batching();
        for _ in 0..3 {
            submit(&rig.port, &core, rig.thread, &mut Bytes::new(1)).unwrap();
        }
        assert_eq!(rings(&rig.port.take_calls()), [] as [u32; 0]);
        assert_eq!(core.batch().end(&rig.port, &rig.device), Ok(()));
        assert_eq!(rig.port.take_calls(), [Call::Status, Call::Barrier, Call::Ring(2)]);
        let slots = rig.port.slots();
        assert_eq!([slots[7], slots[0], slots[1]], [sqe(0, 0), sqe(0, 1), sqe(0, 2)]);
        assert_eq!(slots[2..7], [STALE; 5]);
        assert_eq!(core.batch().end(&rig.port, &rig.device), Ok(()), "an end without a start");
        assert_eq!(rig.port.take_calls(), []);
    }

    #[test]
    fn batches_of_two_cores_on_one_queue_do_not_share_their_fate() {
        let rig = Rig::new(TestPort::new(8));
        let (first, second) = (rig.batching(), rig.batching());
        submit(&rig.port, &first, rig.thread, &mut Bytes::new(1)).unwrap();
        submit(&rig.port, &second, rig.thread, &mut Bytes::new(2)).unwrap();
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
        let core = rig.batching();
        submit(&rig.port, &core, rig.thread, &mut Bytes::new(1)).unwrap();
        core.batch().start();
        submit(&rig.port, &core, rig.thread, &mut Bytes::new(1)).unwrap();
        core.batch().end(&rig.port, &rig.device).unwrap();
        submit(&rig.port, &core, rig.thread, &mut Bytes::new(1)).unwrap();
        assert_eq!(rings(&rig.port.take_calls()), [2, 3]);
    }

    #[test]
    fn batch_larger_than_the_ring_flows_through_it() {
        let rig = Rig::new(TestPort::new(4));
        rig.port.speed.set(1);
        let core = rig.batching();
        // Two times everything in the ring is staged: only then is it rung for, and waited.
        rig.port.expect_delays(&[1000; 2]);
        for _ in 0..7 {
            submit(&rig.port, &core, rig.thread, &mut Bytes::new(1)).unwrap();
        }
        core.batch().end(&rig.port, &rig.device).unwrap();
        assert_eq!(rig.port.slots()[2], sqe(0, 6));
        assert_eq!(rings(&rig.port.take_calls()).last(), Some(&3));
    }

    #[test]
    fn refused_batch_is_dropped_and_does_not_run_later() {
        let rig = Rig::new(TestPort::new(8));
        let core = rig.batching();
        submit(&rig.port, &core, rig.thread, &mut Bytes::new(2)).unwrap();
        rig.port.refuse_ring.set(true);
        assert_eq!(core.batch().end(&rig.port, &rig.device), Err(Stop::DoorbellRefused { sq_id: 9 }));
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
        let core = rig.batching();
        submit(&rig.port, &core, rig.thread, &mut Bytes::new(1)).unwrap();
        rig.port.status.set(QueueStatus::SUSPENDED);
        assert_eq!(submit(&rig.port, &core, rig.thread, &mut Bytes::new(1)), Err(Error::Suspended { sq_id: 9 }));
        rig.port.status.set(QueueStatus::REFUSING);
        assert_eq!(submit(&rig.port, &core, rig.thread, &mut Bytes::new(1)), Err(Error::DoorbellRefused { sq_id: 9 }));
        rig.port.status.set(QueueStatus::ENABLED);
        core.batch().end(&rig.port, &rig.device).unwrap();
        assert_eq!(rings(&rig.port.take_calls()), [1]);
    }

    #[test]
    fn reset_in_a_batch_is_reported_at_its_end() {
        let rig = Rig::new(TestPort::new(8));
        let core = rig.batching();
        submit(&rig.port, &core, rig.thread, &mut Bytes::new(2)).unwrap();
        rig.port.status.set(QueueStatus::ENABLED.with_epoch(1));
        submit(&rig.port, &core, rig.thread, &mut Bytes::new(1)).unwrap();
        assert_eq!(core.batch().end(&rig.port, &rig.device), Err(Stop::Suspended { sq_id: 9 }));
        assert_eq!(rings(&rig.port.take_calls()), [1]);
    }

    #[test]
    fn tasks_that_a_reset_took_are_told_to_the_batch_that_had_staged_them_and_once() {
        let rig = Rig::new(TestPort::new(8));
        let (loser, finder) = (rig.batching(), rig.batching());
        submit(&rig.port, &loser, rig.thread, &mut Bytes::new(2)).unwrap();
        rig.port.status.set(QueueStatus::ENABLED.with_epoch(1));
        submit(&rig.port, &finder, rig.thread, &mut Bytes::new(1)).unwrap();
        assert_eq!(finder.batch().end(&rig.port, &rig.device), Ok(()));
        assert_eq!(loser.batch().end(&rig.port, &rig.device), Err(Stop::Suspended { sq_id: 9 }));
        assert_eq!(rings(&rig.port.take_calls()), [1]);
        loser.batch().start();
        submit(&rig.port, &loser, rig.thread, &mut Bytes::new(1)).unwrap();
        assert_eq!(loser.batch().end(&rig.port, &rig.device), Ok(()));
    }

    #[test]
    fn batch_rings_no_queue_that_has_changed_since() {
        let (reset, suspended) = (QueueStatus::ENABLED.with_epoch(1), Stop::Suspended { sq_id: 9 });
        let refused = Stop::DoorbellRefused { sq_id: 9 };
        for (status, stop) in [
            (reset, Some(suspended)),
            (QueueStatus::SUSPENDED, Some(suspended)),
            (QueueStatus::REFUSING, Some(refused)),
            (QueueStatus::FREE, None),
        ] {
            let rig = Rig::new(TestPort::new(8));
            let core = rig.batching();
            submit(&rig.port, &core, rig.thread, &mut Bytes::new(2)).unwrap();
            rig.port.status.set(status);
            let stop = stop.unwrap_or(Stop::BadHandle(rig.thread.handle()));
            assert_eq!(core.batch().end(&rig.port, &rig.device), Err(stop), "{status:?}");
            assert_eq!(rings(&rig.port.take_calls()), [] as [u32; 0], "{status:?}");
            rig.port.status.set(QueueStatus::ENABLED);
            rig.submit(1, 1).unwrap();
            assert_eq!(rings(&rig.port.take_calls()), [1], "{status:?}: the staged tasks are gone");
        }
    }

    #[test]
    fn batch_left_open_is_dropped_and_told() {
        let rig = Rig::new(TestPort::new(8));
        let core = rig.batching();
        submit(&rig.port, &core, rig.thread, &mut Bytes::new(2)).unwrap();
        assert!(core.finish_launch().batch_left_open);
        assert!(!core.finish_launch().batch_left_open);
        rig.submit(1, 1).unwrap();
        assert_eq!(rings(&rig.port.take_calls()), [1]);
    }

    #[test]
    fn drain_rings_what_is_staged_and_waits_for_it() {
        let rig = Rig::new(TestPort::new(8));
        let core = rig.batching();
        submit(&rig.port, &core, rig.thread, &mut Bytes::new(3)).unwrap();
        rig.port.expect_delays(&[1000]);
        let busy = QueueFull { sq_id: 9, head: 0, tail: 3, wanted: 0, queued_len: 0, timeout_us: 1 };
        assert_eq!(drain(&rig.port, &core, rig.thread, Some(1)), Err(busy.into()));
        rig.port.speed.set(3);
        assert_eq!(drain(&rig.port, &core, rig.thread, Some(0)), Ok(()));
        assert_eq!(rings(&rig.port.take_calls()), [3]);
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
            assert!(matches!(
                submit_one(&rig.port, &core, rig.thread.handle(), |_| Some(byte_task(1))),
                Short::NotTaken
            ));
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
