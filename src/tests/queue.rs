//! The slow path: publication, room, waits, batches, resets.

use crate::error::{Error, QueueField, QueueFull};
use crate::spec::DeviceAddr;
use crate::spec::queue::QueueStatus;
use crate::spec::soc::Soc;
use crate::spec::stars910::{self, Stamp, flip_place_holder};
use crate::spec::thread::ThreadDescriptor;
use crate::task::{MAX_CHUNK, Task};
use crate::tests::port::{Call, STALE, TestPort};
use crate::tests::rig::{Rig, rings, sqe, task};

/// Case 31.
#[test]
fn group_is_published_slots_barrier_doorbell() {
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

/// Case 17.
#[test]
fn every_depth_and_head_takes_depth_minus_one() {
    for depth in depths(&[2, 5, 8, 100, 128]) {
        for head in 0..depth {
            let rig = Rig::new(TestPort::starting_at(depth, head));
            for task in 0..depth - 1 {
                assert_eq!(rig.submit(1, 1), Ok(()), "depth {depth}, head {head}, task {task}");
            }
            let before = rig.port.slots();
            rig.port.expect_delays(&[1000]);
            let tail = (head + depth - 1) % depth;
            let full = QueueFull { sq_id: 9, head, tail, wanted: 1, queued_len: 0, timeout_us: 1 };
            assert_eq!(rig.submit(1, 1), Err(full.into()), "depth {depth}, head {head}");
            assert_eq!(rig.port.slots(), before);
            // The ring is as it was: once the device has run one entry, the next call takes exactly its slot.
            rig.port.speed.set(1);
            rig.port.take_calls();
            assert_eq!(rig.submit(1, 1), Ok(()), "depth {depth}, head {head}");
            let calls = rig.port.take_calls();
            assert_eq!(calls, [Call::Status, Call::Head, Call::Slot(tail), Call::Barrier, Call::Ring(head)]);
        }
    }
}

/// Case 21.
#[test]
fn drained_ring_is_read_again_before_it_is_called_full() {
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
    let full = QueueFull { sq_id: 9, head: 0, tail: 3, wanted: 3, queued_len: 3 * MAX_CHUNK, timeout_us: 2 };
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

/// Case 30.
#[test]
fn refused_doorbell_leaves_tail_and_ids() {
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
        assert_eq!(rig.submit(1, 1), Err(Error::BadHandle(rig.handle)), "{status:#x}");
    }
}

#[test]
fn reset_queue_restarts_at_the_head() {
    let rig = Rig::new(TestPort::new(8));
    rig.submit(5, 1).unwrap();
    rig.port.status.set(QueueStatus::ENABLED.after_reset().unwrap());
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
    let core = rig.batching(0);
    rig.submit_on(&core, 3).unwrap();
    rig.port.head.set(2);
    let bad = Error::BadQueue { sq_id: 9, field: QueueField::Head, value: 2, limit: 0 };
    assert_eq!(rig.submit_on(&core, 1), Err(bad));
    assert_eq!(rig.port.slots(), [sqe(0, 0), sqe(1, 1), sqe(2, 2), STALE], "no staged task is written over");
    rig.port.head.set(0);
    assert_eq!(rig.end_batch(&core), Ok(()));
    assert_eq!(rings(&rig.port.take_calls()), [3]);
}

/// Case 20, 202.
#[test]
fn ring_that_cannot_be_is_refused() {
    type Edit = fn(&mut ThreadDescriptor);
    let edits: [(QueueField, Edit); 7] = [
        (QueueField::Registers, |thread| thread.regs = 0),
        (QueueField::Registers, |thread| thread.sq_id += 1),
        (QueueField::Depth, |thread| thread.depth = 0),
        (QueueField::Depth, |thread| thread.depth = 1),
        (QueueField::RingAddress, |thread| thread.sq_base = DeviceAddr(0)),
        (QueueField::RingAddress, |thread| thread.sq_base.0 += 8),
        (QueueField::RingAddress, |thread| thread.sq_base = DeviceAddr(u64::MAX - 63)),
    ];
    for (field, edit) in edits {
        let mut rig = Rig::new(TestPort::new(4));
        rig.port.edit_descriptor(edit);
        let result = rig.submit(1, 1);
        assert!(matches!(result, Err(Error::BadQueue { field: found, .. }) if found == field), "{field:?}: {result:?}");
        assert_eq!(rig.port.slots(), [STALE; 4]);
    }
}

#[test]
fn thread_freed_after_its_look_up_is_refused() {
    let mut rig = Rig::new(TestPort::new(4));
    rig.port.edit_descriptor(|descriptor| descriptor.tag.magic = 0);
    assert_eq!(rig.submit(1, 1), Err(Error::BadHandle(rig.handle)));
}

/// Case 15.
#[test]
fn batch_rings_once_after_both_parts_around_the_end_of_the_ring() {
    let rig = Rig::new(TestPort::starting_at(8, 7));
    let core = rig.batching(0);
    for _ in 0..3 {
        rig.submit_on(&core, 1).unwrap();
    }
    assert_eq!(rings(&rig.port.take_calls()), [] as [u32; 0]);
    assert_eq!(rig.end_batch(&core), Ok(()));
    assert_eq!(rig.port.take_calls(), [Call::Status, Call::Barrier, Call::Ring(2)]);
    let slots = rig.port.slots();
    assert_eq!([slots[7], slots[0], slots[1]], [sqe(0, 0), sqe(0, 1), sqe(0, 2)]);
    assert_eq!(slots[2..7], [STALE; 5]);
    assert_eq!(rig.end_batch(&core), Ok(()), "an end without a start");
    assert_eq!(rig.port.take_calls(), []);
}

#[test]
fn batches_of_two_cores_on_one_queue_do_not_share_their_fate() {
    let rig = Rig::new(TestPort::new(8));
    let (first, second) = (rig.batching(0), rig.batching(1));
    rig.submit_on(&first, 1).unwrap();
    rig.submit_on(&second, 2).unwrap();
    assert_eq!(rings(&rig.port.take_calls()), [1], "the first core's task is rung for before the second's are staged");
    assert!(first.finish().batch_left_open);
    assert_eq!(rig.end_batch(&second), Ok(()));
    assert_eq!(rings(&rig.port.take_calls()), [3], "what the second has staged is still there");
    assert_eq!(rig.end_batch(&first), Ok(()));
    assert_eq!(rings(&rig.port.take_calls()), []);
}

#[test]
fn nested_start_changes_nothing() {
    let rig = Rig::new(TestPort::new(8));
    let core = rig.batching(0);
    rig.submit_on(&core, 1).unwrap();
    core.queues().start_batch();
    rig.submit_on(&core, 1).unwrap();
    rig.end_batch(&core).unwrap();
    rig.submit_on(&core, 1).unwrap();
    assert_eq!(rings(&rig.port.take_calls()), [2, 3]);
}

#[test]
fn batch_larger_than_the_ring_flows_through_it() {
    let rig = Rig::new(TestPort::new(4));
    rig.port.speed.set(1);
    let core = rig.batching(0);
    // Two times everything in the ring is staged: only then is it rung for, and waited.
    rig.port.expect_delays(&[1000; 2]);
    for _ in 0..7 {
        rig.submit_on(&core, 1).unwrap();
    }
    rig.end_batch(&core).unwrap();
    assert_eq!(rig.port.slots()[2], sqe(0, 6));
    assert_eq!(rings(&rig.port.take_calls()).last(), Some(&3));
}

#[test]
fn refused_batch_is_dropped_and_does_not_run_later() {
    let rig = Rig::new(TestPort::new(8));
    let core = rig.batching(0);
    rig.submit_on(&core, 2).unwrap();
    rig.port.refuse_ring.set(true);
    assert_eq!(rig.end_batch(&core), Err(Error::DoorbellRefused { sq_id: 9 }));
    rig.port.refuse_ring.set(false);
    rig.submit(1, 1).unwrap();
    assert_eq!(rings(&rig.port.take_calls()), [2, 1]);
    assert_eq!(rig.port.slots()[0], sqe(0, 2));
    core.queues().start_batch();
    assert_eq!(rig.end_batch(&core), Ok(()), "the next batch starts clean");
}

#[test]
fn refused_call_leaves_the_batch_as_it_was() {
    let rig = Rig::new(TestPort::new(3));
    let core = rig.batching(0);
    rig.submit_on(&core, 1).unwrap();
    rig.port.status.set(QueueStatus::SUSPENDED);
    assert_eq!(rig.submit_on(&core, 1), Err(Error::Suspended { sq_id: 9 }));
    rig.port.status.set(QueueStatus::REFUSING);
    assert_eq!(rig.submit_on(&core, 1), Err(Error::DoorbellRefused { sq_id: 9 }));
    rig.port.status.set(QueueStatus::ENABLED);
    rig.end_batch(&core).unwrap();
    assert_eq!(rings(&rig.port.take_calls()), [1]);
}

#[test]
fn reset_in_a_batch_is_reported_at_its_end() {
    let rig = Rig::new(TestPort::new(8));
    let core = rig.batching(0);
    rig.submit_on(&core, 2).unwrap();
    rig.port.status.set(QueueStatus::ENABLED.after_reset().unwrap());
    rig.submit_on(&core, 1).unwrap();
    assert_eq!(rig.end_batch(&core), Err(Error::Suspended { sq_id: 9 }));
    assert_eq!(rings(&rig.port.take_calls()), [1]);
}

#[test]
fn tasks_that_a_reset_took_are_told_to_the_batch_that_had_staged_them_and_once() {
    let rig = Rig::new(TestPort::new(8));
    let (loser, finder) = (rig.batching(0), rig.batching(1));
    rig.submit_on(&loser, 2).unwrap();
    rig.port.status.set(QueueStatus::ENABLED.after_reset().unwrap());
    rig.submit_on(&finder, 1).unwrap();
    assert_eq!(rig.end_batch(&finder), Ok(()));
    assert_eq!(rig.end_batch(&loser), Err(Error::Suspended { sq_id: 9 }));
    assert_eq!(rings(&rig.port.take_calls()), [1]);
    loser.queues().start_batch();
    rig.submit_on(&loser, 1).unwrap();
    assert_eq!(rig.end_batch(&loser), Ok(()));
}

#[test]
fn batch_rings_no_queue_that_has_changed_since() {
    let (reset, suspended) = (QueueStatus::ENABLED.with_epoch(1), Error::Suspended { sq_id: 9 });
    let refused = Error::DoorbellRefused { sq_id: 9 };
    for (status, stop) in [
        (reset, Some(suspended)),
        (QueueStatus::SUSPENDED, Some(suspended)),
        (QueueStatus::REFUSING, Some(refused)),
        (QueueStatus::FREE, None),
    ] {
        let rig = Rig::new(TestPort::new(8));
        let core = rig.batching(0);
        rig.submit_on(&core, 2).unwrap();
        rig.port.status.set(status);
        let stop = stop.unwrap_or(Error::BadHandle(rig.handle));
        assert_eq!(rig.end_batch(&core), Err(stop), "{status:?}");
        assert_eq!(rings(&rig.port.take_calls()), [] as [u32; 0], "{status:?}");
        rig.port.status.set(QueueStatus::ENABLED);
        rig.submit(1, 1).unwrap();
        assert_eq!(rings(&rig.port.take_calls()), [1], "{status:?}: the staged tasks are gone");
    }
}

#[test]
fn batch_left_open_is_dropped_and_told() {
    let rig = Rig::new(TestPort::new(8));
    let core = rig.batching(0);
    rig.submit_on(&core, 2).unwrap();
    assert!(core.finish().batch_left_open);
    assert!(!core.finish().batch_left_open);
    rig.submit(1, 1).unwrap();
    assert_eq!(rings(&rig.port.take_calls()), [1]);
}

#[test]
fn drain_rings_what_is_staged_and_waits_for_it() {
    let rig = Rig::new(TestPort::new(8));
    let core = rig.batching(0);
    rig.submit_on(&core, 3).unwrap();
    rig.port.expect_delays(&[1000]);
    let busy = QueueFull { sq_id: 9, head: 0, tail: 3, wanted: 0, queued_len: 0, timeout_us: 1 };
    assert_eq!(rig.drain_on(&core, 1), Err(busy.into()));
    rig.port.speed.set(3);
    assert_eq!(rig.drain_on(&core, 0), Ok(()));
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

/// Case 207.
#[test]
fn register_that_cannot_be_read_is_told_with_the_platforms_code() {
    let rig = Rig::new(TestPort::new(4));
    rig.port.unreadable.set(-7);
    let status = Error::QueueRead { sq_id: 9, field: QueueField::Status, code: -7 };
    assert_eq!((rig.submit(1, 1), status.code()), (Err(status), 16));
    assert_eq!(rig.drain_on(&rig.core(0), 1), Err(status));
    assert_eq!(rig.port.slots(), [STALE; 4]);
    rig.port.unreadable.set(0);
    rig.submit(1, 1).unwrap();
    // A known queue, whose status the fast path reads first.
    rig.port.unreadable.set(3);
    assert_eq!(rig.submit(1, 1), Err(Error::QueueRead { sq_id: 9, field: QueueField::Status, code: 3 }));
}

#[test]
fn head_beyond_the_ring_is_refused_when_a_queue_is_entered() {
    let rig = Rig::new(TestPort::new(4));
    for head in [4, u32::MAX] {
        rig.port.head.set(head);
        let bad = Error::BadQueue { sq_id: 9, field: QueueField::Head, value: head.into(), limit: 4 };
        assert_eq!(rig.submit(1, 1), Err(bad));
    }
    assert_eq!(rig.port.slots(), [STALE; 4]);
    rig.port.head.set(3);
    assert_eq!(rig.submit(1, 1), Ok(()));
    assert_eq!(rig.port.slots()[3], sqe(0, 0));
}

#[test]
fn wait_starts_again_after_progress() {
    let rig = Rig::new(TestPort::new(3));
    let core = rig.core(0);
    core.queues().set_sq_full_timeout_us(3);
    // 6 tasks in groups of 2: each time the device takes its time, within the limit, and pauses start small again.
    rig.port.expect_delays(&[1000, 1000, 2000]);
    rig.port.run_after_each_looks(3);
    assert_eq!(rig.submit_on(&core, 6), Ok(()));
}

#[test]
fn refused_doorbell_fails_a_drain_and_drops_what_was_staged() {
    let rig = Rig::new(TestPort::new(8));
    let core = rig.batching(0);
    rig.submit_on(&core, 2).unwrap();
    rig.port.refuse_ring.set(true);
    let refused = Err(Error::DoorbellRefused { sq_id: 9 });
    assert_eq!(rig.drain_on(&core, 0), refused);
    rig.port.refuse_ring.set(false);
    assert_eq!(rig.end_batch(&core), refused, "the end of the batch reports it, too");
    assert_eq!(rings(&rig.port.take_calls()), [2]);
}

#[test]
fn another_thread_in_the_slot_starts_with_nothing_of_the_one_before() {
    let mut rig = Rig::new(TestPort::new(2048));
    rig.submit(3, 1).unwrap();
    let (handle, generation) = rig.port.next_thread();
    let first = std::mem::replace(&mut rig.handle, handle);
    rig.port.status.set(QueueStatus::ENABLED.with_generation(generation));
    rig.port.head.set(0);
    let staged = rig.batching(1);
    rig.submit_on(&staged, 1).unwrap();
    let calls = rig.port.take_calls();
    assert_eq!(rings(&calls), [3], "its ring is empty: nothing of before is rung for");
    assert_eq!(rig.port.slots()[0], sqe(0, 1024), "ids of a block of its own");
    assert_eq!(rig.end_batch(&staged), Ok(()));
    drop(staged);
    rig.handle = first;
    assert_eq!(rig.submit(1, 1), Err(Error::BadHandle(first)));
}

#[test]
fn staged_tasks_of_a_thread_that_lost_its_slot_are_told() {
    let mut rig = Rig::new(TestPort::new(8));
    let loser_id = 1;
    {
        let loser = rig.batching(loser_id);
        rig.submit_on(&loser, 2).unwrap();
    }
    let (handle, generation) = rig.port.next_thread();
    rig.handle = handle;
    rig.port.status.set(QueueStatus::ENABLED.with_generation(generation));
    rig.submit(1, 1).unwrap();
    assert_eq!(rings(&rig.port.take_calls()), [1], "the staged tasks are gone");
    // Of the same core: it notes the queue with its first task.
    let loser = rig.batching(loser_id);
    rig.submit_on(&loser, 1).unwrap();
    assert_eq!(rig.end_batch(&loser), Err(Error::Suspended { sq_id: 9 }));
}

#[test]
fn staged_tasks_are_lost_also_to_a_thread_whose_queue_takes_none() {
    let mut rig = Rig::new(TestPort::new(8));
    let loser_id = 1;
    {
        let loser = rig.batching(loser_id);
        rig.submit_on(&loser, 2).unwrap();
    }
    rig.handle = rig.port.next_thread().0;
    rig.port.status.set(QueueStatus::FREE);
    assert_eq!(rig.submit(1, 1), Err(Error::BadHandle(rig.handle)));
    let loser = rig.batching(loser_id);
    loser.queues().note(rig.handle);
    assert_eq!(
        rig.end_batch(&loser),
        Err(Error::Suspended { sq_id: 9 }),
        "of the batch, not of a thread without a name"
    );
}

#[test]
fn launch_that_ended_leaves_no_loss_to_the_next_one() {
    let rig = Rig::new(TestPort::new(8));
    let core = rig.batching(1);
    rig.submit_on(&core, 2).unwrap();
    rig.port.status.set(QueueStatus::ENABLED.after_reset().unwrap());
    rig.submit(1, 1).unwrap();
    assert!(core.finish().batch_left_open);
    let next = rig.batching(1);
    rig.submit_on(&next, 1).unwrap();
    assert_eq!(rig.end_batch(&next), Ok(()));
}

/// A queue of an Ascend910B whose next task gets this id.
fn rig_910(port: TestPort, next_id: u64) -> Rig {
    let rig = Rig::new(port);
    rig.device.set_soc(Soc::Ascend910B);
    rig.submit(1, 1).unwrap();
    rig.device.queues().set_next_id_910(rig.handle, next_id);
    rig
}

fn sqe_910(task_no: u64, task_id: u16) -> crate::spec::Sqe {
    let Task::Sdma { src, dst, len, opcode } = task(task_no) else { panic!("a transfer") };
    stars910::Sdma::new(src, dst, len).with_opcode(opcode).build(Stamp { stream_id: 3, task_id })
}

#[test]
fn place_holder_goes_before_the_first_task_of_a_new_round() {
    let rig = rig_910(TestPort::new(4), 65_535);
    rig.port.speed.set(4);
    rig.submit(2, 1).unwrap();
    assert_eq!(rig.port.slots()[1..], [sqe_910(0, 65_535), flip_place_holder(3, 1), sqe_910(1, 1)]);
}

/// Case 206.
#[test]
fn place_holder_in_the_last_entry_of_the_ring_is_followed_by_its_task_in_the_first() {
    let rig = rig_910(TestPort::new(4), 65_534);
    rig.port.speed.set(4);
    // With the place holder these are four entries, more than the ring takes at a time: they flow.
    rig.submit(3, 1).unwrap();
    let expected = [sqe_910(2, 1), sqe_910(0, 65_534), sqe_910(1, 65_535), flip_place_holder(3, 1)];
    assert_eq!(rig.port.slots(), expected);
    assert_eq!(rings(&rig.port.take_calls()), [1, 0, 1]);
}

/// Case 205.
#[test]
fn refused_call_on_an_ascend910_leaves_tail_and_ids() {
    let rig = rig_910(TestPort::new(8), 65_535);
    rig.port.refuse_ring.set(true);
    assert_eq!(rig.submit(2, 1), Err(Error::DoorbellRefused { sq_id: 9 }));
    rig.port.refuse_ring.set(false);
    rig.submit(1, 1).unwrap();
    assert_eq!(rig.port.slots()[1], sqe_910(0, 65_535));
    assert_eq!(rig.port.take_calls().last(), Some(&Call::Ring(2)));
}

/// Case 206.
#[test]
fn place_holder_takes_an_entry_of_the_room_that_a_call_needs() {
    let rig = rig_910(TestPort::new(4), 65_536);
    // Two entries are free: room for the task and its place holder, and not for two tasks with it.
    rig.port.expect_delays(&[1000]);
    assert!(matches!(rig.submit(2, 1), Err(Error::QueueFull(full)) if full.wanted == 3));
    assert_eq!(rig.submit(1, 1), Ok(()));
    assert_eq!(rig.port.slots()[1..], [flip_place_holder(3, 1), sqe_910(0, 1), STALE]);
}
