//! The fast path, and that it does what the slow path would.

use crate::context::Core;
use crate::error::Error;
use crate::spec::queue::QueueStatus;
use crate::spec::soc::Soc;
use crate::spec::thread::ThreadHandle;
use crate::sq::Fast;
use crate::tests::port::{Call, TestPort};
use crate::tests::rig::{Rig, rings, sqe};

#[test]
fn fast_path_publishes_as_the_slow_path_does() {
    let rig = Rig::new(TestPort::starting_at(8, 6));
    let core = rig.core(2);
    let fast = |task| rig.fast_on(&core, task);
    assert!(matches!(fast(0), Fast::NotTaken), "not known yet");
    rig.submit(1, 1).unwrap();
    assert!(matches!(fast(0), Fast::NotTaken), "the last of the ring");
    rig.submit(1, 1).unwrap();
    rig.port.take_calls();
    for (task, slot, tail) in [(1, 0, 1), (2, 1, 2), (3, 2, 3)] {
        assert!(matches!(fast(task), Fast::Queued));
        assert_eq!(rig.port.take_calls(), [Call::Status, Call::Slot(slot), Call::Barrier, Call::Ring(tail)]);
        assert_eq!(rig.port.slots()[slot as usize], sqe(task, task as u32 + 1));
    }
    rig.submit(1, 1).unwrap();
    assert_eq!(rig.port.slots()[3], sqe(0, 5), "the slow path goes on where the fast one was");
}

#[test]
fn fast_path_takes_no_entry_that_the_device_may_read() {
    for depth in [2, 3, 5, 8] {
        for head in 0..depth {
            let rig = Rig::new(TestPort::starting_at(depth, head));
            let core = rig.core(2);
            // Each call is tried on the fast path first; the device does nothing.
            for task in 0..depth - 1 {
                let fast = rig.fast_on(&core, 0);
                if matches!(fast, Fast::NotTaken) {
                    rig.submit(1, 1).unwrap();
                }
                let slot = (head + task) % depth;
                assert_eq!(rig.port.slots()[slot as usize], sqe(0, task), "depth {depth}, head {head}");
            }
            let before = rig.port.slots();
            let fast = rig.fast_on(&core, 9);
            assert!(matches!(fast, Fast::NotTaken), "depth {depth}, head {head}");
            assert_eq!(rig.port.slots(), before, "depth {depth}, head {head}");
        }
    }
}

#[test]
fn dropped_tasks_keep_their_ids_and_the_fast_path_its_block() {
    let rig = Rig::new(TestPort::new(2048));
    let batching = rig.batching(0);
    rig.submit_on(&batching, 1020).unwrap();
    assert!(batching.finish().batch_left_open);
    let core = rig.core(2);
    let fast = |task| rig.fast_on(&core, task);
    for task in 0..4 {
        assert!(matches!(fast(task), Fast::Queued), "task {task}");
        assert_eq!(rig.port.slots()[task as usize], sqe(task, 1020 + task as u32));
    }
    assert!(matches!(fast(4), Fast::NotTaken), "the next id is another block's");
}

#[test]
fn fast_path_is_not_taken_where_something_needs_a_closer_look() {
    let rig = Rig::new(TestPort::new(4));
    let core = rig.core(2);
    let handle = rig.handle;
    rig.submit(2, 1).unwrap();
    let before = rig.port.slots();
    let not_taken = |handle: u64, why| {
        let fast = rig.fast_for(&core, ThreadHandle(handle), 9);
        assert!(matches!(fast, Fast::NotTaken), "{why}");
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
    let other = rig.batching(0);
    rig.submit_on(&other, 1).unwrap();
    assert!(other.finish().batch_left_open);
    assert!(matches!(rig.fast_on(&core, 2), Fast::Queued));
    let before = rig.port.slots();
    assert!(matches!(rig.fast_on(&core, 9), Fast::NotTaken), "full");
    assert_eq!(rig.port.slots(), before);
}

#[test]
fn fast_path_takes_no_new_block_of_ids() {
    let rig = Rig::new(TestPort::new(2048));
    let core = rig.core(2);
    let fast = |task| rig.fast_on(&core, task);
    rig.submit(1023, 1).unwrap();
    assert!(matches!(fast(1), Fast::Queued));
    assert!(matches!(fast(2), Fast::NotTaken));
    rig.submit(1, 1).unwrap();
    assert!(matches!(fast(3), Fast::Queued));
    assert_eq!(rig.port.slots()[1023..1026], [sqe(1, 1023), sqe(0, 1024), sqe(3, 1025)]);
}

#[test]
fn fast_path_stages_in_a_batch_after_the_first_task() {
    let rig = Rig::new(TestPort::new(8));
    rig.submit(1, 1).unwrap();
    rig.port.take_calls();
    let (first, second) = (rig.batching(0), rig.batching(1));
    let fast = |core: &Core<'_>, task| rig.fast_on(core, task);
    assert!(matches!(fast(&first, 1), Fast::NotTaken), "the first of the queue in this batch");
    rig.submit_on(&first, 1).unwrap();
    assert!(matches!(fast(&first, 2), Fast::Queued));
    assert!(matches!(fast(&second, 3), Fast::NotTaken), "staged by another core");
    assert!(matches!(fast(&rig.core(2), 3), Fast::NotTaken), "staged by another core");
    assert_eq!(rings(&rig.port.take_calls()), [] as [u32; 0]);
    assert_eq!(rig.end_batch(&first), Ok(()));
    assert_eq!(rings(&rig.port.take_calls()), [3]);
}

#[test]
fn fast_path_leaves_no_trace_of_a_refused_doorbell() {
    let rig = Rig::new(TestPort::new(8));
    rig.submit(1, 1).unwrap();
    let core = rig.core(2);
    rig.port.refuse_ring.set(true);
    let refused = rig.fast_on(&core, 1);
    assert!(matches!(refused, Fast::Refused { sq_id: 9 }));
    rig.port.refuse_ring.set(false);
    rig.submit(1, 1).unwrap();
    assert_eq!(rig.port.slots()[1], sqe(0, 1));
    assert_eq!(rig.port.take_calls().last(), Some(&Call::Ring(2)));
}

#[test]
fn several_tasks_are_published_in_one_group_after_one_look_at_the_status() {
    let rig = Rig::new(TestPort::new(8));
    rig.submit(1, 1).unwrap();
    rig.port.take_calls();
    rig.submit(3, 1).unwrap();
    let expected = [Call::Status, Call::Slot(1), Call::Slot(2), Call::Slot(3), Call::Barrier, Call::Ring(4)];
    assert_eq!(rig.port.take_calls(), expected);
    assert_eq!(rig.port.slots()[1..4], [sqe(0, 1), sqe(1, 2), sqe(2, 3)]);
    rig.port.refuse_ring.set(true);
    assert_eq!(rig.submit(2, 1), Err(Error::DoorbellRefused { sq_id: 9 }));
    assert_eq!(rings(&rig.port.take_calls()), [6], "it is rung once");
    rig.port.refuse_ring.set(false);
    rig.submit(3, 1).unwrap();
    assert_eq!(rig.port.slots()[4..7], [sqe(0, 4), sqe(1, 5), sqe(2, 6)]);
}

#[test]
fn queue_of_another_soc_has_no_fast_path() {
    for soc in [Soc::Ascend910B, Soc::Ascend910_93] {
        let rig = Rig::new(TestPort::new(8));
        rig.device.set_soc(soc);
        rig.submit(2, 1).unwrap();
        assert!(matches!(rig.fast_on(&rig.core(2), 1), Fast::NotTaken), "{soc:?}");
    }
}
