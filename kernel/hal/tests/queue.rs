//! A queue of the stand-in: opening, doorbell, reports, and every refusal.
#![allow(non_snake_case, reason = "names of the HAL's functions")]

mod fake;

use fake::{FakeReport, HOST_DEVICE, take};
use hcomm_hal::{Hal, HalError, Position, Queue, QueueIds, Restore, RingError, TaskFailure};

#[unsafe(no_mangle)]
extern "C" fn halResourceIdRestore(key: *mut u8) -> i32 {
    fake::restore(key)
}

const IDS: QueueIds = QueueIds { restore: Restore::Tried, host_device: HOST_DEVICE, stream: 17, sq: 9, logic_cq: 4 };

#[test]
fn a_queue_is_what_the_hal_says_of_it() {
    let turn = take();
    let hal = Hal::of_process();
    let (queue, position) = Queue::open(&hal, IDS).unwrap();
    assert_eq!((queue.base(), queue.depth()), (0x7f12_3456_7000, 2048));
    assert_eq!(position, Position { head: 3, tail: 2047 });
    assert_eq!(queue.restore_code(), None);
    assert_eq!(turn.with(|state| state.restored.clone()), [17]);
    turn.queue(|queue| queue.head = 2047);
    assert_eq!(queue.head(), Ok(2047));
    for tail in [0, 1, 2047] {
        assert_eq!(queue.ring(tail), Ok(()));
    }
    assert_eq!(turn.queue(|queue| queue.rung.clone()), [0, 1, 2047]);
}

#[test]
fn rings_of_any_depth_above_128_are_taken() {
    let turn = take();
    let hal = Hal::of_process();
    for (depth, is_taken) in [(129, true), (1 << 16, true), (128, false), (0, false), ((1 << 16) + 1, false)] {
        turn.queue(|queue| (queue.depth, queue.head, queue.tail) = (depth, 0, 0));
        let opened = Queue::open(&hal, IDS).map(|(queue, _)| queue.depth());
        let expected = HalError::Range { what: "depth", sq: 9, value: u64::from(depth), min: 129, max: 1 << 16 };
        assert_eq!(opened, if is_taken { Ok(depth) } else { Err(expected) });
    }
}

#[test]
fn answers_that_can_t_be_are_errors() {
    let turn = take();
    let hal = Hal::of_process();
    let error = || Queue::open(&hal, IDS).unwrap_err();
    turn.queue(|queue| queue.head = 2048);
    assert_eq!(error(), HalError::Range { what: "head", sq: 9, value: 2048, min: 0, max: 2047 });
    turn.queue(|queue| (queue.head, queue.tail) = (0, u32::MAX));
    assert_eq!(error(), HalError::Range { what: "tail", sq: 9, value: u64::from(u32::MAX), min: 0, max: 2047 });
    for base in [0, 0x7f12_3456_7020] {
        turn.queue(|queue| (queue.base, queue.tail) = (base, 0));
        assert_eq!(error(), HalError::Base { sq: 9, base });
    }
    turn.with(|state| state.query_code = 3);
    assert_eq!(error(), HalError::Query { property: 6, sq: 9, code: 3 });
    assert_eq!(error().to_string(), "halSqCqQuery returned 3 for property 6 of sq 9");
}

#[test]
fn ids_that_no_runtime_gives_are_refused_before_any_call() {
    let turn = take();
    let hal = Hal::of_process();
    for (ids, what) in [
        (QueueIds { sq: 1 << 16, ..IDS }, "sq id"),
        (QueueIds { stream: 1 << 16, ..IDS }, "stream id"),
        (QueueIds { logic_cq: u32::MAX, ..IDS }, "logic cq id"),
    ] {
        assert!(matches!(Queue::open(&hal, ids), Err(HalError::Range { what: found, .. }) if found == what));
    }
    assert!(turn.with(|state| state.restored.is_empty()));
    let unknown = Queue::open(&hal, QueueIds { sq: 10, ..IDS }).unwrap_err();
    assert_eq!(unknown, HalError::Query { property: 6, sq: 10, code: 3 });
    // The local number where the host's belongs.
    let mixed_up = Queue::open(&hal, QueueIds { host_device: fake::LOCAL_DEVICE, ..IDS }).unwrap_err();
    assert_eq!(mixed_up, HalError::Failed { function: "drvGetLocalDevIDByHostDevID", code: 2 });
}

#[test]
fn a_failed_restore_is_an_error_where_the_vendor_needs_it() {
    let turn = take();
    let hal = Hal::of_process();
    turn.with(|state| state.restore_code = 22);
    let (queue, _) = Queue::open(&hal, IDS).unwrap();
    assert_eq!(queue.restore_code(), Some(22));
    let error = Queue::open(&hal, QueueIds { restore: Restore::Required, ..IDS }).unwrap_err();
    assert_eq!(error, HalError::Failed { function: "halResourceIdRestore", code: 22 });
}

#[test]
fn a_paused_queue_and_a_lost_one_are_told_apart() {
    let turn = take();
    let hal = Hal::of_process();
    let (queue, _) = Queue::open(&hal, IDS).unwrap();
    turn.queue(|queue| queue.paused = true);
    assert_eq!(queue.ring(1), Err(RingError::Suspended { sq: 9 }));
    turn.queue(|queue| queue.paused = false);
    assert_eq!(queue.ring(2048), Err(RingError::Refused { sq: 9, code: 3 }));
    turn.with(|state| state.queues.clear());
    assert_eq!(queue.ring(1), Err(RingError::Refused { sq: 9, code: 3 }));
    assert_eq!(queue.head(), Err(HalError::Query { property: 1, sq: 9, code: 3 }));
}

/// A report of stream 17: task@2 errCode@4 errType@8 sqeType@9.
fn report(task: u16, error_type: u8, error_code: u32) -> FakeReport {
    let mut report = [0xee; 32];
    report[0..2].copy_from_slice(&17u16.to_le_bytes());
    report[2..4].copy_from_slice(&task.to_le_bytes());
    report[4..8].copy_from_slice(&error_code.to_le_bytes());
    report[8] = error_type;
    report[9] = 11;
    report
}

#[test]
fn the_first_failed_task_is_given_and_the_reports_are_fetched_to_their_end() {
    let turn = take();
    let hal = Hal::of_process();
    let (queue, _) = Queue::open(&hal, IDS).unwrap();
    assert_eq!(queue.failed_task(), Ok(None));
    // 40 warnings, then two failures: more than one call fetches.
    let warnings = (0..40).map(|task| report(task, 0x40, 7));
    let all = warnings.chain([report(500, 0x42, 0x1234), report(501, 1, 9)]);
    turn.with(|state| state.reports.insert((4, 17), all.collect()));
    let first = TaskFailure { task: 500, kind: 2, code: 0x1234, sqe_type: 11 };
    assert_eq!(queue.failed_task(), Ok(Some(first)));
    assert_eq!(turn.with(|state| state.reports[&(4, 17)].len()), 0);
    assert_eq!(queue.failed_task(), Ok(None));
}

#[test]
fn reports_of_other_queues_are_not_ours_to_fetch() {
    let turn = take();
    let hal = Hal::of_process();
    let (queue, _) = Queue::open(&hal, IDS).unwrap();
    turn.with(|state| {
        state.reports.insert((4, 18), [report(1, 1, 1)].into());
        state.reports.insert((5, 17), [report(1, 1, 1)].into());
    });
    assert_eq!(queue.failed_task(), Ok(None));
    assert_eq!(turn.with(|state| state.reports.values().map(|reports| reports.len()).sum::<usize>()), 2);
}

#[test]
fn fetching_ends_whatever_the_hal_answers() {
    let turn = take();
    let hal = Hal::of_process();
    let (queue, _) = Queue::open(&hal, IDS).unwrap();
    turn.with(|state| {
        state.reports.insert((4, 17), [report(1, 0x40, 1)].into());
        state.endless = true;
    });
    assert_eq!(queue.failed_task(), Ok(None));
    assert_eq!(turn.with(|state| state.report_calls), 2048 / 32 + 1);
    turn.with(|state| (state.endless, state.overfull) = (true, true));
    let error = queue.failed_task().unwrap_err();
    assert_eq!(error, HalError::Range { what: "number of reports", sq: 9, value: 33, min: 0, max: 32 });
}
