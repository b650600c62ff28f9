//! Entry points of the device crate on a platform of plain memory: their codes in order, and what they leave alone. Only the
//! public interface is used, so that every call takes the way that a kernel's call takes.

use hcomm_aicpu::abi::{
    HcommBatchModeEnd, HcommBatchModeStart, HcommLocalCopyOnThread, HcommLocalReduceOnThread,
    HcommThreadNotifyRecordOnThread, HcommThreadNotifyWaitOnThread, HcommThreadResAcquireTimeOut,
};
use hcomm_aicpu::copy::MAX_CHUNK;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::spec::stars950::Sdma;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_aicpu::spec::{DeviceAddr, Sqe};
use hcomm_aicpu::{Error, QueueFull, Thread};
use hcomm_testkit_platform::{NOTIFIES, Rig, SQ_ID, STALE};

const DST: u64 = 0x12c0_0002_0000;
const SRC: u64 = 0x12c0_0001_0000;
const LEN: u64 = 8;
/// With [`LEN`] bytes it goes past 2^64.
const NEAR_THE_END: u64 = u64::MAX - 6;

fn copy(thread: u64, dst: u64, src: u64, len: u64) -> i32 {
    let (dst, src) = (std::ptr::without_provenance_mut(dst as usize), std::ptr::without_provenance(src as usize));
    HcommLocalCopyOnThread(thread, dst, src, len)
}

fn reduce(thread: u64, dst: u64, src: u64, count: u64, data_type: DataType, op: ReduceOp) -> i32 {
    let (dst, src) = (std::ptr::without_provenance_mut(dst as usize), std::ptr::without_provenance(src as usize));
    HcommLocalReduceOnThread(thread, dst, src, count, data_type.0, op.0)
}

/// A copy that is accepted if there is room.
fn good_copy(rig: &Rig) -> i32 {
    copy(rig.live(), DST, SRC, LEN)
}

/// Code of the same copy by the Rust API, on the handle that works.
fn safe_copy(rig: &Rig, dst: u64, src: u64, len: u64) -> i32 {
    let thread = Thread::from_handle(ThreadHandle(rig.live())).unwrap();
    thread.local_copy(DeviceAddr(dst), DeviceAddr(src), len).map_or_else(|error| error.code(), |()| 0)
}

/// Descriptor of [`good_copy`].
fn sqe(task_id: u32) -> Sqe {
    Sdma::new(DeviceAddr(SRC), DeviceAddr(DST), LEN as u32).build(task_id)
}

/// How a call finds its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Nobody has used it.
    New,
    /// Two copies have gone through it: the first call of a queue takes a longer way than the next.
    Known,
    /// As [`New`](Self::New), with a batch open.
    NewInBatch,
    /// As [`Known`](Self::Known), and a batch has staged a third.
    Staged,
}

impl Before {
    const ALL: [Self; 4] = [Self::New, Self::Known, Self::NewInBatch, Self::Staged];

    fn is_in_batch(self) -> bool {
        matches!(self, Self::NewInBatch | Self::Staged)
    }

    fn prepare(self, rig: &Rig) {
        if matches!(self, Self::Known | Self::Staged) {
            assert_eq!([good_copy(rig), good_copy(rig)], [0; 2]);
            rig.run(2);
        }
        if self.is_in_batch() {
            assert_eq!(HcommBatchModeStart(std::ptr::null()), 0);
        }
        if self == Self::Staged {
            assert_eq!(good_copy(rig), 0);
        }
        rig.forget_calls();
    }

    /// Everything goes on as if nothing had happened since [`prepare`](Self::prepare): batch, slots and task ids.
    #[track_caller]
    fn goes_on(self, rig: &Rig) {
        if self.is_in_batch() {
            assert_eq!(HcommBatchModeEnd(std::ptr::null()), 0, "{self:?}: the batch");
            let staged = if self == Self::Staged { &[3][..] } else { &[] };
            assert_eq!(rig.doorbells(), staged, "{self:?}: what the batch has staged");
        }
        assert_eq!(good_copy(rig), 0);
        let tasks = match self {
            Self::New | Self::NewInBatch => 1,
            Self::Known => 3,
            Self::Staged => 4,
        };
        let expected: Vec<_> = (0..tasks).map(|task| (task, sqe(task))).collect();
        assert_eq!(rig.take_published(), expected, "{self:?}");
    }
}

/// Whatever state a queue is in, `call` answers `code` and leaves no trace.
#[track_caller]
fn refused_without_a_trace(code: i32, what: &str, call: impl Fn(&Rig) -> i32) {
    for before in Before::ALL {
        let rig = Rig::new(8);
        rig.launch(|| {
            before.prepare(&rig);
            let slots = rig.slots();
            assert_eq!(call(&rig), code, "{before:?}, {what}");
            assert_eq!((rig.slots(), rig.doorbells()), (slots, vec![]), "{before:?}, {what}");
            before.goes_on(&rig);
        });
    }
}

/// Case 46.
#[test]
fn every_copy_answers_the_first_of_its_mistakes_and_leaves_no_trace() {
    let handles = |rig: &Rig| [&[rig.live(), 0], &rig.bad_handles()[..]].concat();
    let count = handles(&Rig::new(2)).len();
    assert!(count > 15);
    for dst in [DST, 0, NEAR_THE_END] {
        for src in [SRC, 0, NEAR_THE_END] {
            for handle in 0..count {
                for len in [LEN, 0, 2 * MAX_CHUNK] {
                    for status in [QueueStatus::ENABLED, QueueStatus::SUSPENDED, QueueStatus::REFUSING] {
                        let code = match (dst, src, handle) {
                            (0, ..) | (_, 0, _) | (.., 1) => 2,
                            (.., 2..) => 6,
                            (NEAR_THE_END, ..) | (_, NEAR_THE_END, _) if len != 0 => 1,
                            _ if len == 0 => 0,
                            _ => match status {
                                QueueStatus::ENABLED => continue,
                                QueueStatus::SUSPENDED => 22,
                                _ => 16,
                            },
                        };
                        let what = format!("dst {dst:#x}, src {src:#x}, handle {handle}, len {len}, {status:?}");
                        refused_without_a_trace(code, &what, |rig| {
                            rig.set_status(status);
                            let code = copy(handles(rig)[handle], dst, src, len);
                            if handle == 0 {
                                assert_eq!(safe_copy(rig, dst, src, len), code, "the Rust API");
                            }
                            rig.set_status(QueueStatus::ENABLED);
                            code
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn copy_of_any_length_is_cut_by_the_chunk_rule() {
    for len in [1, MAX_CHUNK - 1, MAX_CHUNK, MAX_CHUNK + 1, 2 * MAX_CHUNK, 2 * MAX_CHUNK + 1, (1 << 32) + 1] {
        for before in [Before::New, Before::Known] {
            let rig = Rig::new(8);
            rig.launch(|| {
                before.prepare(&rig);
                let first = rig.take_published().len() as u32;
                assert_eq!(copy(rig.live(), DST, SRC, len), 0);
                let chunk = |index: u64| {
                    let (done, id) = (index * MAX_CHUNK, first + index as u32);
                    let len = (len - done).min(MAX_CHUNK) as u32;
                    (id, Sdma::new(DeviceAddr(SRC + done), DeviceAddr(DST + done), len).build(id))
                };
                let expected: Vec<_> = (0..len.div_ceil(MAX_CHUNK)).map(chunk).collect();
                assert_eq!(rig.take_published(), expected, "{before:?}, {len} bytes");
                assert_eq!(rig.doorbells().len(), 1, "{before:?}, {len} bytes");
            });
        }
    }
}

#[test]
fn full_ring_is_reported_before_a_refused_doorbell_and_after_a_suspension() {
    for (status, code) in [
        (QueueStatus::ENABLED, 9),
        (QueueStatus::REFUSING, 9),
        (QueueStatus::SUSPENDED, 22),
        // A thread that has been freed.
        (QueueStatus::FREE, 6),
    ] {
        let rig = Rig::new(4);
        rig.launch(|| {
            assert_eq!([good_copy(&rig), good_copy(&rig), good_copy(&rig)], [0; 3]);
            let slots = rig.slots();
            for refuse in [false, true] {
                rig.set_status(status);
                rig.refuse_ring(refuse);
                assert_eq!(good_copy(&rig), code, "{status:?}");
                assert_eq!((rig.slots(), rig.published()), (slots.clone(), 3), "{status:?}");
            }
            rig.set_status(QueueStatus::ENABLED);
            rig.refuse_ring(false);
            rig.run(2);
            assert_eq!(good_copy(&rig), 0);
            assert_eq!(rig.take_published()[3..], [(3, sqe(3))]);
        });
    }
}

/// Case 34.
#[test]
fn doorbell_that_is_refused_when_it_is_rung_is_not_rung_later() {
    for before in [Before::New, Before::Known] {
        for len in [LEN, 2 * MAX_CHUNK + 1] {
            let rig = Rig::new(8);
            rig.launch(|| {
                before.prepare(&rig);
                rig.refuse_ring(true);
                assert_eq!(copy(rig.live(), DST, SRC, len), 16);
                rig.refuse_ring(false);
                // The slots behind the tail were written and are free; the next call overwrites them.
                before.goes_on(&rig);
            });
        }
    }
    // In a batch the end rings.
    for before in [Before::NewInBatch, Before::Staged] {
        let rig = Rig::new(8);
        rig.launch(|| {
            before.prepare(&rig);
            assert_eq!(good_copy(&rig), 0);
            rig.refuse_ring(true);
            assert_eq!(HcommBatchModeEnd(std::ptr::null()), 16);
            rig.refuse_ring(false);
            let published = rig.published() as u32;
            assert_eq!(HcommBatchModeEnd(std::ptr::null()), 0, "there is no batch any more");
            assert_eq!(good_copy(&rig), 0);
            // Where a task of the batch would have been; the ids of the batch are used up.
            let [.., (slot, last)] = rig.take_published()[..] else { unreachable!() };
            assert_eq!((slot, last), (published, sqe(if before == Before::Staged { 4 } else { 1 })));
        });
    }
}

#[test]
fn batch_that_is_refused_takes_nothing_along_that_was_rung_before() {
    for len in [LEN, MAX_CHUNK + 1, 2 * MAX_CHUNK + 1] {
        let rig = Rig::new(8);
        rig.launch(|| {
            assert_eq!([good_copy(&rig), copy(rig.live(), DST, SRC, len)], [0; 2]);
            let rung = rig.take_published().len() as u32;
            rig.run(rung);
            assert_eq!(HcommBatchModeStart(std::ptr::null()), 0);
            assert_eq!(good_copy(&rig), 0);
            rig.refuse_ring(true);
            assert_eq!(HcommBatchModeEnd(std::ptr::null()), 16);
            rig.refuse_ring(false);
            assert_eq!(good_copy(&rig), 0);
            // The id of the refused task is used up, its slot is not.
            assert_eq!(rig.take_published(), [(rung, sqe(rung + 1))], "{len} bytes before the batch");
        });
    }
}

#[test]
fn freed_thread_is_refused_however_well_its_queue_is_known() {
    for before in Before::ALL {
        let rig = Rig::new(8);
        rig.launch(|| {
            before.prepare(&rig);
            // Status word and tag each tell by themselves.
            rig.set_status(QueueStatus::FREE);
            let slots = rig.slots();
            assert_eq!(good_copy(&rig), 6, "{before:?}");
            rig.free_thread();
            assert_eq!(good_copy(&rig), 6, "{before:?}");
            assert_eq!(HcommThreadNotifyWaitOnThread(rig.live(), 0, 1), 6, "{before:?}");
            assert_eq!(HcommThreadNotifyRecordOnThread(rig.live(), rig.live(), 0), 6, "{before:?}");
            assert_eq!((rig.slots(), rig.doorbells()), (slots, vec![]), "{before:?}");
        });
    }
}

#[test]
fn other_calls_are_refused_without_a_trace_too() {
    let sum = |thread, dst, src, count, data_type| reduce(thread, dst, src, count, data_type, ReduceOp::SUM);
    let i32s = DataType::INT32;
    refused_without_a_trace(2, "reduce to null", |rig| sum(rig.live(), 0, SRC, 2, i32s));
    refused_without_a_trace(2, "reduce of null", |rig| sum(rig.live(), DST, 0, 2, i32s));
    refused_without_a_trace(2, "reduce on thread 0", |_| sum(0, DST, SRC, 2, i32s));
    refused_without_a_trace(6, "reduce on no thread", |rig| sum(rig.live() + 64, DST, SRC, 2, i32s));
    refused_without_a_trace(5, "reduce of another type", |rig| sum(rig.live(), DST, SRC, 2, DataType(13)));
    refused_without_a_trace(1, "reduce of too many", |rig| sum(rig.live(), DST, SRC, u64::MAX / 2, i32s));
    refused_without_a_trace(1, "reduce past the end", |rig| sum(rig.live(), u64::MAX - 3, SRC, 2, i32s));
    refused_without_a_trace(1, "reduce to between elements", |rig| sum(rig.live(), DST + 2, SRC, 2, i32s));
    refused_without_a_trace(1, "reduce of between elements", |rig| sum(rig.live(), DST, SRC + 1, 2, i32s));
    refused_without_a_trace(0, "reduce of nothing", |rig| sum(rig.live(), DST, SRC, 0, i32s));

    refused_without_a_trace(2, "record on thread 0", |rig| HcommThreadNotifyRecordOnThread(0, rig.live(), 0));
    refused_without_a_trace(2, "record to thread 0", |rig| HcommThreadNotifyRecordOnThread(rig.live(), 0, 0));
    refused_without_a_trace(2, "wait on thread 0", |_| HcommThreadNotifyWaitOnThread(0, 0, 1));
    for index in [NOTIFIES, u32::MAX] {
        let record = |rig: &Rig| HcommThreadNotifyRecordOnThread(rig.live(), rig.live(), index);
        refused_without_a_trace(2, "record of a notify that is not there", record);
        let wait = |rig: &Rig| HcommThreadNotifyWaitOnThread(rig.live(), index, 1);
        refused_without_a_trace(2, "wait for a notify that is not there", wait);
    }
    let rig = Rig::new(2);
    for (index, bad) in rig.bad_handles().into_iter().enumerate() {
        // A CPU_TS thread queues no task, and takes a notify.
        let is_peer = bad == rig.of_other_engine();
        let handle = move |rig: &Rig| rig.bad_handles()[index];
        let what = format!("handle {index}");
        refused_without_a_trace(6, &what, |rig| HcommThreadNotifyWaitOnThread(handle(rig), 0, 1));
        refused_without_a_trace(6, &what, |rig| HcommThreadNotifyRecordOnThread(handle(rig), rig.live(), 0));
        if !is_peer {
            refused_without_a_trace(6, &what, |rig| HcommThreadNotifyRecordOnThread(rig.live(), handle(rig), 0));
        }
    }
}

/// Case 17.
#[test]
fn ring_of_any_depth_takes_depth_minus_one_from_any_head() {
    for depth in [2, 5, 8, 100, 128, 2048] {
        for head in 0..depth {
            let rig = Rig::starting_at(depth, head);
            rig.launch(|| {
                let accepted = (0..depth - 1).filter(|_| good_copy(&rig) == 0).count();
                assert_eq!(accepted as u32, depth - 1, "depth {depth}, head {head}");
                let slots = rig.slots();
                let tail = (head + depth - 1) % depth;
                assert_eq!(slots[tail as usize], STALE, "depth {depth}, head {head}");
                assert_eq!(good_copy(&rig), 9, "depth {depth}, head {head}");
                assert!(rig.slots() == slots, "depth {depth}, head {head}: the ring has changed");
                // One entry has run, without a word: the next call looks again, waits for nothing, and takes the one slot.
                rig.run(1);
                rig.forget_calls();
                assert_eq!(good_copy(&rig), 0, "depth {depth}, head {head}");
                assert_eq!((rig.head_reads(), rig.delays(), rig.doorbells()), (1, vec![], vec![head]));
                let published = rig.take_published();
                let expected = (0..depth).map(|task| ((head + task) % depth, sqe(task)));
                assert!(published.into_iter().eq(expected), "depth {depth}, head {head}");
            });
        }
    }
}

/// The next copy on a ring of 4 that three have filled, by the Rust API.
fn copy_to_full_ring(rig: &Rig) -> Result<(), Error> {
    let thread = Thread::from_handle(ThreadHandle(rig.live())).unwrap();
    assert_eq!([good_copy(rig), good_copy(rig), good_copy(rig)], [0; 3]);
    rig.forget_calls();
    thread.local_copy(DeviceAddr(DST), DeviceAddr(SRC), LEN)
}

#[test]
fn full_ring_is_waited_for_with_growing_pauses_up_to_the_callers_limit_on_the_clock() {
    for slowness in [1, 10] {
        let rig = Rig::new(4);
        rig.slow_delays(slowness);
        rig.launch(|| {
            let full = QueueFull { sq_id: SQ_ID, head: 0, tail: 3, wanted: 1, queued_len: 0, timeout_us: 1_000_000 };
            assert_eq!(copy_to_full_ring(&rig), Err(full.into()));
            let delays = rig.delays();
            assert_eq!(delays[..4], [1_000, 2_000, 4_000, 8_000]);
            assert!(delays.is_sorted() && delays.last() == Some(&1_000_000), "{delays:?}");
            // The clock tells when the second is over, however long a delay takes.
            let waited = delays.iter().map(|ns| u64::from(*ns) / 1000 * slowness).sum::<u64>();
            assert!((1_000_000..1_000_000 + 1_000 * slowness).contains(&waited), "{waited} us");
            rig.run(3);
            assert_eq!(good_copy(&rig), 0);
            assert_eq!(rig.take_published()[3], (3, sqe(3)));
        });
    }
}

#[test]
fn limit_of_a_kernel_ends_with_it() {
    let rig = Rig::new(4);
    rig.launch(|| assert_eq!(HcommThreadResAcquireTimeOut(7.0), 0));
    rig.slow_delays(1000);
    rig.launch_with_defaults(|| {
        let Err(Error::QueueFull(full)) = copy_to_full_ring(&rig) else { panic!("full") };
        assert_eq!(full.timeout_us, 1_856_000_000);
    });
}

#[test]
fn limit_0_waits_for_as_long_as_it_takes() {
    let rig = Rig::new(4);
    // Each pause of 1 ms takes 1000 s: far more than any limit that there is.
    rig.slow_delays(1_000_000);
    rig.run_at_looks(1, 100);
    rig.launch(|| {
        assert_eq!(HcommThreadResAcquireTimeOut(0.0), 0);
        assert_eq!(copy_to_full_ring(&rig), Ok(()));
        assert!(rig.delays().len() >= 99);
    });
}

/// Case 30.
#[test]
fn split_copy_that_fits_the_ring_is_queued_as_a_whole_or_not_at_all() {
    let len = 2 * MAX_CHUNK + 1;
    let rig = Rig::new(4);
    rig.launch(|| {
        assert_eq!(good_copy(&rig), 0);
        let slots = rig.slots();
        // Two entries are free, three are needed.
        assert_eq!(copy(rig.live(), DST, SRC, len), 9);
        assert_eq!((rig.slots(), rig.published()), (slots, 1));
        rig.run(1);
        rig.forget_calls();
        assert_eq!(copy(rig.live(), DST, SRC, len), 0);
        assert_eq!(rig.doorbells(), [0]);
        let expected = |index: u64, len: u64| {
            let at = |addr| DeviceAddr(addr + index * MAX_CHUNK);
            (index as u32 + 1, Sdma::new(at(SRC), at(DST), len as u32).build(index as u32 + 1))
        };
        assert_eq!(rig.take_published()[1..], [expected(0, MAX_CHUNK), expected(1, MAX_CHUNK), expected(2, 1)]);
    });
}

#[test]
fn split_copy_larger_than_the_ring_that_runs_out_of_time_says_how_far_it_came() {
    let len = 10 * MAX_CHUNK - 5;
    let rig = Rig::new(4);
    rig.launch(|| {
        let thread = Thread::from_handle(ThreadHandle(rig.live())).unwrap();
        let (mut done, mut parts, mut expected_id) = (0, Vec::new(), 0);
        // Each call goes on where the one before has ended; between them one entry more runs than the time before.
        while done < len {
            let at = |addr| DeviceAddr(addr + done);
            let result = thread.local_copy(at(DST), at(SRC), len - done);
            let mut part = 0;
            for (_, published) in rig.take_published() {
                let chunk = MAX_CHUNK.min(len - done - part);
                let (dst, src) = (DeviceAddr(at(DST).0 + part), DeviceAddr(at(SRC).0 + part));
                assert_eq!(published, Sdma::new(src, dst, chunk as u32).build(expected_id));
                expected_id += 1;
                part += chunk;
            }
            match result {
                Ok(()) => assert_eq!(part, len - done),
                Err(Error::QueueFull(full)) => assert_eq!(full.queued_len, part, "{full}"),
                Err(error) => panic!("{error}"),
            }
            done += part;
            parts.push(part / MAX_CHUNK);
            rig.run(parts.len() as u32);
        }
        // A rest that fits the ring is queued as a whole.
        assert_eq!(parts, [3, 1, 2, 3, 0]);
    });
}
