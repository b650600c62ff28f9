//! Suspended queues, and deadlocks over the end of a ring.

use std::sync::mpsc::sync_channel;

use super::super::hosts::HostThreads;
use super::super::inbox::Recovery;
use super::*;

/// A process whose threads all wait.
struct NoThreads;

impl HostThreads for NoThreads {
    fn free(&self, _blocked: u32) -> Option<u32> {
        Some(0)
    }

    fn go_on(&self) {}
}

/// Adds queue 2 of stream 8: a ring of `depth` entries at the start of the source buffer.
fn add_queue(rig: &mut Rig, depth: u32) {
    rig.shared.inbox.send(Command::AddQueue(QueueConfig { stream_id: 8, sq_id: 2, base: rig.src, depth }));
    rig.shared.queues.get(2).unwrap().depth.store(depth, std::sync::atomic::Ordering::Relaxed);
    Registers::of(&*rig.shared.memory, 2).enable(1);
    rig.settle();
}

fn put_in_queue_2(rig: &Rig, slot: u32, sqe: [u8; 64]) {
    rig.shared.memory.write(rig.src + u64::from(slot) * 64, &sqe);
}

/// Case 175.
#[test]
fn deadlock_is_followed_over_the_end_of_the_ring() {
    let mut rig = Rig::new(8, false);
    rig.scheduler = rig.scheduler.with_hosts(Box::new(NoThreads));
    let notifies = [5, 6].map(|id| (id, Owner::Thread { stream_id: 7, index: id - 5 }));
    rig.shared.inbox.send(Command::AddNotifies([&notifies[..], &[(7, Owner::Host)]].concat()));
    add_queue(&mut rig, 4);
    // Queue 2 runs three tasks, so that its wait is in its last slot and the record behind it in slot 0.
    for slot in 0..3 {
        put_in_queue_2(&rig, slot, copy_sqe(slot, rig.dst, rig.dst + 64, 1));
    }
    rig.shared.ring(2, 3, ORIGIN).unwrap();
    rig.settle();
    put_in_queue_2(&rig, 3, notify_sqe(3, 5, Some(0)));
    put_in_queue_2(&rig, 0, notify_sqe(4, 6, None));
    rig.shared.ring(2, 1, ORIGIN).unwrap();
    rig.put_sqe(0, notify_sqe(9, 6, Some(0)));
    rig.shared.ring(1, 1, ORIGIN).unwrap();
    // A host waits, or nothing would be looked for.
    rig.stream.submit();
    rig.shared.inbox.send(Command::Submit(9, Op::NotifyWait { id: 7, timeout_s: 100 }));
    let stream = Arc::clone(&rig.stream);
    let _waiting = rig.begin_synchronize(&stream);
    for _ in 0..1000 {
        rig.settle();
        rig.now += Duration::from_millis(1);
    }
    let text = "deadlock: stream 7, sq 1, task 0x9 waits for notify 6 (index 1 of the thread of stream 7), which is to be \
                recorded behind the wait of stream 8, sq 2, task 0x3 for notify 5 (index 0 of the thread of stream 7), \
                which nothing is left to record";
    assert_eq!(rig.failed(), text);
}

/// Case 176.
#[test]
fn doorbell_of_a_suspended_queue_runs_nothing() {
    let mut rig = Rig::new(8, true);
    rig.launch();
    let (reply, answer) = sync_channel(1);
    rig.shared.inbox.send(Command::SuspendQueues(vec![1], reply));
    rig.settle();
    assert_eq!(answer.try_recv(), Ok(()));
    rig.shared.memory.write(rig.src, &[7]);
    rig.put(0);
    // The kernel had looked at the status before, and rings.
    rig.registers().ring(1);
    rig.settle();
    assert_eq!((rig.shared.memory.read(rig.dst, 1), rig.registers().head()), (vec![0], 0));
    assert_eq!(rig.shared.failed.get(), None);
    // A tail outside the ring is as little looked at.
    rig.registers().ring(9);
    rig.settle();
    assert_eq!(rig.shared.failed.get(), None);
}

/// Case 177.
#[test]
fn resume_does_not_wait_for_tasks_that_have_not_begun() {
    let mut rig = waiting_rig(0);
    let (reply, answer) = sync_channel(1);
    rig.shared.inbox.send(Command::SuspendQueues(vec![1], reply));
    rig.settle();
    assert_eq!(answer.try_recv(), Ok(()));
    let (reply, answer) = sync_channel(1);
    rig.shared.inbox.send(Command::Recover(Recovery::Resume(vec![1], reply)));
    rig.settle();
    assert_eq!(answer.try_recv(), Ok(()));
    assert_eq!((rig.registers().head(), rig.registers().doorbell().tail()), (0, 0));
    // The wait that was dropped is over: the queue runs what comes next.
    rig.shared.memory.write(rig.src, &[7]);
    rig.put(0);
    rig.shared.ring(1, 1, ORIGIN).unwrap();
    rig.settle();
    assert_eq!((rig.shared.memory.read(rig.dst, 1), rig.registers().head()), (vec![7], 1));
}
