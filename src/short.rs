//! The short way of a call: what nearly every call needs and nothing else.
//!
//! It is taken when the queue is known to be the handle's, is enabled, and has room and task ids ahead of its tail
//! ([`State::short_end`]). Everything else goes the [long way](crate::queue::submit), which makes the next calls short.

use crate::batch::BatchId;
use crate::device::Core;
use crate::encode::{Task, stamp_950};
use crate::error::Error;
use crate::port::{Port, with_core};
use crate::queue::State;
use crate::spec::thread::ThreadHandle;
use crate::task_id::IdRange;
use crate::work::Tasks;

/// What the short way did.
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

/// The short way for one task. `task` is asked for it once the handle is known, and is told whether the queue is enabled: only
/// then the thread lives for certain. `None`: it needs a closer look. Queues exactly what [`submit`](crate::queue::submit) would.
#[inline(always)]
pub(crate) fn submit_one<P: Port>(
    port: &P,
    core: &Core<'_>,
    handle: ThreadHandle,
    task: impl FnOnce(bool) -> Option<Task>,
) -> Short {
    let mut state = core.device().queue_of(handle).lock();
    let tail = state.tail;
    if !is_known(&state, handle) {
        return Short::NotTaken;
    }
    let is_enabled = port.status(state.ring.queue) == state.enabled;
    let Some(task) = task(is_enabled) else { return Short::NotTaken };
    let batch = core.batch().current();
    // Without a batch on either side these are the same, too. `&` needs one branch where `&&` needs two.
    if is_enabled & (state.stager == batch) {
        let next = write_next(port, &state, tail, task);
        if batch == BatchId::NONE {
            // Pairs with the device's acquire load of the doorbell, as in `State::ring`.
            port.store_barrier();
            if port.ring(state.ring.queue, next.tail).is_err() {
                return Short::Refused { sq_id: state.ring.queue.sq_id };
            }
            state.rung = next.tail;
        }
        next.keep(&mut state);
        return Short::Queued;
    }
    if !is_enabled || state.has_staged() {
        return Short::NotTaken;
    }
    write_next(port, &state, tail, task).keep(&mut state);
    state.stager = batch;
    Short::First
}

/// Whether the state is that of `handle`, with room for a task. The registers of a queue that was never entered must not be
/// looked at; it has no room.
#[inline(always)]
fn is_known(state: &State, handle: ThreadHandle) -> bool {
    (state.handle == handle) & (state.tail != state.short_end)
}

/// Where a queue goes on after a task.
struct Next {
    tail: u32,
    ids: IdRange,
}

impl Next {
    #[inline(always)]
    fn keep(self, state: &mut State) {
        (state.tail, state.ids.range) = (self.tail, self.ids);
    }
}

/// Writes `task` into the entry at `tail`, which is before the short way's end. Only queues of an Ascend950 have one.
#[inline(always)]
fn write_next<P: Port>(port: &P, state: &State, tail: u32, task: Task) -> Next {
    let (task_id, ids) = state.ids.range.take(1);
    // SAFETY: an entry of the ring that `Ring::new` checked, free until the doorbell, since the tail is not `short_end`.
    unsafe { port.write_slot(state.ring.slot(tail), &task.for_950(task_id)) };
    // Below the depth: the short way ends before the ring does.
    Next { tail: tail + 1, ids }
}

/// The short way for some tasks: as [`submit_one`], all in one group.
#[inline]
pub(crate) fn submit_some<P: Port>(port: &P, core: &Core<'_>, handle: ThreadHandle, mut tasks: impl Tasks) -> Short {
    let mut state = core.device().queue_of(handle).lock();
    // A batch has more to look at.
    let is_batch = core.batch().current() != BatchId::NONE || state.has_staged();
    if is_batch || !is_known(&state, handle) || port.status(state.ring.queue) != state.enabled {
        return Short::NotTaken;
    }
    let Ok(count) = u32::try_from(tasks.remaining()) else { return Short::NotTaken };
    if count > state.short_end - state.tail {
        return Short::NotTaken;
    }
    let (ring, tail) = (state.ring, state.tail);
    let (first_id, ids) = state.ids.range.take(count);
    let next = tail + count;
    for index in 0..count {
        let sqe = tasks.next(stamp_950(first_id + index));
        // SAFETY: as in `write_next`, for each of `count` entries.
        unsafe { port.write_slot(ring.slot(tail + index), &sqe) };
    }
    // Pairs with the device's acquire load of the doorbell, as in `State::ring`.
    port.store_barrier();
    if port.ring(ring.queue, next).is_err() {
        return Short::Refused { sq_id: ring.queue.sq_id };
    }
    (state.tail, state.rung, state.ids.range) = (next, next, ids);
    Short::Queued
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::queue::submit;
    use crate::spec::queue::QueueStatus;
    use crate::test_port::{Call, TestPort};
    use crate::test_rig::{Bytes, Rig, byte_task, rings, sqe};

    #[test]
    fn short_way_publishes_as_the_long_way_does() {
        let rig = Rig::new(TestPort::starting_at(8, 6));
        let core = Core::new(&rig.device);
        let handle = rig.thread.handle();
        let short = |task| submit_one(&rig.port, &core, handle, |_| Some(byte_task(task)));
        assert!(matches!(short(0), Short::NotTaken), "not known yet");
        rig.submit(1, 1).unwrap();
        assert!(matches!(short(0), Short::NotTaken), "the last of the ring");
        rig.submit(1, 1).unwrap();
        rig.port.take_calls();
        for (task, slot, tail) in [(1, 0, 1), (2, 1, 2), (3, 2, 3)] {
            assert!(matches!(short(task), Short::Queued));
            assert_eq!(rig.port.take_calls(), [Call::Status, Call::Slot(slot), Call::Barrier, Call::Ring(tail)]);
            assert_eq!(rig.port.slots()[slot as usize], sqe(task, task as u32 + 1));
        }
        rig.submit(1, 1).unwrap();
        assert_eq!(rig.port.slots()[3], sqe(0, 5), "the long way goes on where the short one was");
    }

    #[test]
    fn short_way_takes_no_entry_that_the_device_may_read() {
        for depth in [2, 3, 5, 8] {
            for head in 0..depth {
                let rig = Rig::new(TestPort::starting_at(depth, head));
                let core = Core::new(&rig.device);
                // Each call is tried the short way first; the device does nothing.
                for task in 0..depth - 1 {
                    let handle = rig.thread.handle();
                    let short = submit_one(&rig.port, &core, handle, |_| Some(byte_task(0)));
                    if matches!(short, Short::NotTaken) {
                        rig.submit(1, 1).unwrap();
                    }
                    let slot = (head + task) % depth;
                    assert_eq!(rig.port.slots()[slot as usize], sqe(0, task), "depth {depth}, head {head}");
                }
                let before = rig.port.slots();
                let short = submit_one(&rig.port, &core, rig.thread.handle(), |_| Some(byte_task(9)));
                assert!(matches!(short, Short::NotTaken), "depth {depth}, head {head}");
                assert_eq!(rig.port.slots(), before, "depth {depth}, head {head}");
            }
        }
    }

    #[test]
    fn dropped_tasks_keep_their_ids_and_the_short_way_its_block() {
        let rig = Rig::new(TestPort::new(2048));
        let batching = rig.batching();
        submit(&rig.port, &batching, rig.thread, &mut Bytes::new(1020)).unwrap();
        assert!(batching.finish_launch().batch_left_open);
        let core = Core::new(&rig.device);
        let short = |task| submit_one(&rig.port, &core, rig.thread.handle(), |_| Some(byte_task(task)));
        for task in 0..4 {
            assert!(matches!(short(task), Short::Queued), "task {task}");
            assert_eq!(rig.port.slots()[task as usize], sqe(task, 1020 + task as u32));
        }
        assert!(matches!(short(4), Short::NotTaken), "the next id is another block's");
    }

    #[test]
    fn short_way_is_not_taken_where_something_needs_a_closer_look() {
        let rig = Rig::new(TestPort::new(4));
        let core = Core::new(&rig.device);
        let handle = rig.thread.handle();
        rig.submit(2, 1).unwrap();
        let before = rig.port.slots();
        let not_taken = |handle: u64, why| {
            let short = submit_one(&rig.port, &core, ThreadHandle(handle), |_| Some(byte_task(9)));
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
        let other = rig.batching();
        submit(&rig.port, &other, rig.thread, &mut Bytes::new(1)).unwrap();
        assert!(other.finish_launch().batch_left_open);
        assert!(matches!(submit_one(&rig.port, &core, handle, |_| Some(byte_task(2))), Short::Queued));
        let before = rig.port.slots();
        assert!(matches!(submit_one(&rig.port, &core, handle, |_| Some(byte_task(9))), Short::NotTaken), "full");
        assert_eq!(rig.port.slots(), before);
    }

    #[test]
    fn short_way_takes_no_new_block_of_ids() {
        let rig = Rig::new(TestPort::new(2048));
        let core = Core::new(&rig.device);
        let short = |task| submit_one(&rig.port, &core, rig.thread.handle(), |_| Some(byte_task(task)));
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
        let (first, second) = (rig.batching(), rig.batching());
        let short = |core: &Core<'_>, task| submit_one(&rig.port, core, rig.thread.handle(), |_| Some(byte_task(task)));
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
        let refused = submit_one(&rig.port, &core, rig.thread.handle(), |_| Some(byte_task(1)));
        assert!(matches!(refused, Short::Refused { sq_id: 9 }));
        rig.port.refuse_ring.set(false);
        rig.submit(1, 1).unwrap();
        assert_eq!(rig.port.slots()[1], sqe(0, 1));
        assert_eq!(rig.port.take_calls().last(), Some(&Call::Ring(2)));
    }

    #[test]
    fn short_way_of_several_publishes_as_the_long_way_does() {
        let rig = Rig::new(TestPort::new(8));
        let core = Core::new(&rig.device);
        let some = |count| submit_some(&rig.port, &core, rig.thread.handle(), Bytes::new(count));
        assert!(matches!(some(2), Short::NotTaken), "not known yet");
        rig.submit(1, 1).unwrap();
        rig.port.take_calls();
        assert!(matches!(some(3), Short::Queued));
        let expected = [Call::Status, Call::Slot(1), Call::Slot(2), Call::Slot(3), Call::Barrier, Call::Ring(4)];
        assert_eq!(rig.port.take_calls(), expected);
        assert_eq!(rig.port.slots()[1..4], [sqe(0, 1), sqe(1, 2), sqe(2, 3)]);
        rig.port.refuse_ring.set(true);
        assert!(matches!(some(2), Short::Refused { sq_id: 9 }));
        rig.port.refuse_ring.set(false);
        rig.port.status.set(QueueStatus::SUSPENDED);
        assert!(matches!(some(2), Short::NotTaken), "another status");
        rig.port.status.set(QueueStatus::ENABLED);
        assert!(matches!(some(4), Short::NotTaken), "one more than there is room for");
        assert!(matches!(some(3), Short::Queued));
        assert_eq!(rig.port.slots()[4..7], [sqe(0, 4), sqe(1, 5), sqe(2, 6)]);
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
}
