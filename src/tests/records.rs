//! Records of calls.

use std::ptr;

use crate::error::Error;
use crate::spec::DeviceAddr;
use crate::spec::queue::QueueStatus;
use crate::spec::record::{CallRecord, EntryPoint, RECORDS, RecordRing};
use crate::sq::Fast;
use crate::tests::port::{Call, TestPort};
use crate::tests::rig::Rig;

/// A rig whose calls are recorded, with a ring for each of two cores.
struct Recording {
    rig: Rig,
    rings: Vec<RecordRing>,
}

impl Recording {
    fn new(port: TestPort) -> Self {
        let rig = Rig::new(port);
        // SAFETY: all zero is an empty ring.
        let mut rings: Vec<RecordRing> = vec![unsafe { std::mem::zeroed() }; 2];
        // SAFETY: the rings are on the heap, where a move leaves them, and live as long as the device.
        unsafe { rig.device.set_record_rings(DeviceAddr::from(rings.as_mut_ptr())) };
        Self { rig, rings }
    }

    fn head(&self, core: usize) -> u64 {
        // SAFETY: a word of our own, which the code under test writes by its address.
        unsafe { (&raw const self.rings[core].head).read_volatile() }
    }

    fn record(&self, core: usize, number: usize) -> CallRecord {
        // SAFETY: a place of our own, which the code under test writes by its address.
        unsafe { ptr::from_ref(&self.rings[core].slots[number % RECORDS]).read_volatile() }
    }

    fn set_tail(&mut self, core: usize, tail: u64) {
        // SAFETY: a word of our own, which the code under test reads by its address.
        unsafe { (&raw mut self.rings[core].tail).write_volatile(tail) };
    }
}

/// Entry point, first slot and number of slots.
fn what(record: &CallRecord) -> (EntryPoint, u32, u32) {
    (record.entry, record.first, record.count)
}

#[test]
fn each_call_leaves_one_record_and_none_takes_the_fast_path() {
    let recording = Recording::new(TestPort::starting_at(8, 6));
    let rig = &recording.rig;
    let core = rig.core(1);
    rig.submit_on(&core, 3).unwrap();
    assert!(matches!(rig.fast_on(&core, 0), Fast::NotTaken));
    rig.submit_on(&core, 1).unwrap();
    assert_eq!((recording.head(1), recording.head(0)), (2, 0), "the ring of its core");
    let first = recording.record(1, 0);
    assert_eq!(what(&first), (EntryPoint::LOCAL_COPY, 6, 3));
    assert_eq!((first.seq, first.sq_id, first.status), (1, 9, QueueStatus::ENABLED));
    assert_eq!(first.frames[..3], [rig.port.frames[0], rig.port.frames[1], 0]);
    let second = recording.record(1, 1);
    assert_eq!((second.seq, what(&second)), (2, (EntryPoint::LOCAL_COPY, 1, 1)));
}

#[test]
fn record_is_there_before_the_doorbell() {
    let recording = Recording::new(TestPort::new(8));
    recording.rig.port.refuse_ring.set(true);
    assert!(recording.rig.submit(2, 1).is_err());
    assert_eq!((recording.head(0), what(&recording.record(0, 0))), (1, (EntryPoint::LOCAL_COPY, 0, 2)));
}

#[test]
fn each_group_of_a_call_that_flows_and_each_drain_has_a_record() {
    let recording = Recording::new(TestPort::new(4));
    let rig = &recording.rig;
    rig.port.speed.set(3);
    rig.submit(7, 1).unwrap();
    let groups: Vec<_> = (0..recording.head(0) as usize).map(|number| what(&recording.record(0, number))).collect();
    assert_eq!(groups.iter().map(|group| group.2).sum::<u32>(), 7);
    assert!(groups.windows(2).all(|pair| (pair[0].1 + pair[0].2) % 4 == pair[1].1), "{groups:?}");
    rig.drain_on(&rig.core(0), 0).unwrap();
    let last = recording.record(0, recording.head(0) as usize - 1);
    assert_eq!(what(&last), (EntryPoint::JOIN, 3, 0), "the head that it has seen");
}

#[test]
#[cfg_attr(miri, ignore = "fills a ring of 511 records, which takes minutes there")]
fn full_ring_waits_for_the_host_without_a_lock_and_for_no_longer_than_a_full_queue() {
    let mut recording = Recording::new(TestPort::new(8));
    recording.rig.port.speed.set(8);
    for _ in 0..RECORDS {
        recording.rig.submit(1, 1).unwrap();
    }
    recording.rig.port.take_calls();
    recording.rig.port.expect_delays(&[1000, 2000]);
    assert_eq!(recording.rig.submit(1, 3), Err(Error::RecordsNotRead { timeout_us: 3 }));
    assert_eq!(recording.head(0), RECORDS as u64, "nothing is dropped");
    let calls = recording.rig.port.take_calls();
    assert!(!calls.iter().any(|call| matches!(call, Call::Slot(_) | Call::Ring(_))), "{calls:?}");
    recording.set_tail(0, 1);
    recording.rig.submit(1, 1).unwrap();
    assert_eq!(recording.record(0, 0).seq, RECORDS as u64 + 1, "the place that the host has read");
}

#[test]
fn lock_of_a_communicator_leaves_a_record_and_then_a_barrier() {
    let recording = Recording::new(TestPort::new(8));
    let port = &recording.rig.port;
    let core = recording.rig.core(1);
    port.take_calls();
    core.room_for_note(port).unwrap().write(port, EntryPoint::RELEASE_COMM, 63);
    assert_eq!(port.take_calls(), [Call::Barrier], "the host may look before another core can lock it");
    assert_eq!((recording.head(1), what(&recording.record(1, 0))), (1, (EntryPoint::RELEASE_COMM, 63, 0)));

    let silent = Rig::new(TestPort::new(8));
    silent.core(0).room_for_note(&silent.port).unwrap().write(&silent.port, EntryPoint::RELEASE_COMM, 63);
    assert_eq!(silent.port.take_calls(), []);
}

/// Case 304.
#[test]
fn record_of_a_staged_task_is_handed_on_before_another_core_can_ring_for_it() {
    let recording = Recording::new(TestPort::new(8));
    let core = recording.rig.batching(0);
    recording.rig.port.take_calls();
    recording.rig.submit_on(&core, 1).unwrap();
    assert_eq!(recording.head(0), 1);
    let calls = recording.rig.port.take_calls();
    assert_eq!(calls.last(), Some(&Call::Barrier), "{calls:?}");
    assert!(!calls.iter().any(|call| matches!(call, Call::Ring(_))), "{calls:?}");
}
