//! Notifies between threads, through the host API on both CPUs: rows of section C of the case log. The number in a name is the
//! row's.

use std::time::{Duration, Instant};

use hcomm_aicpu::spec::stars950::{NotifyWait, Sdma};
use hcomm_aicpu::spec::{DeviceAddr, Sqe};
use hcomm_kernel::Call;
use hcomm_testkit::calls::{call, copy, record, wait};
use hcomm_testkit::{CPUS, DEADLOCK_LIMIT, LIMIT, Rig, pattern};
use host_stub::{Check, Checks, Cpu, DeviceOptions};
use zerocopy::IntoBytes;

/// Case 7.
#[test]
fn step_without_bytes_still_signals() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let buffer = rig.buffer(&[1; 32]);
        let list = [
            wait(first, 0, 0),
            record(second, first, 0),
            copy(second, buffer.at(16), buffer.addr(), 0),
            record(first, second, 0),
            wait(second, 0, 1),
        ];
        rig.good_calls(&list).unwrap();
        let tasks = [first, second].map(|thread| rig.comm.thread_statistics(thread).unwrap().tasks);
        assert_eq!(tasks, [2, 2], "{cpu:?}");
    }
}

/// Case 37.
#[test]
fn wait_without_record_is_reported_long_before_its_limit() {
    for cpu in CPUS {
        let rig = Rig::with_deadlock_limit(cpu);
        let thread = rig.threads(1, 1, 8)[0];
        let info = rig.comm.thread_info(thread).unwrap();
        let started = Instant::now();
        let error = rig.good_calls(&[wait(thread, 0, 1836)]).unwrap_err().to_string();
        assert!(started.elapsed() < LIMIT, "{cpu:?}: {:?}", started.elapsed());
        let (stream, sq, id) = (info.stream_id, info.sq_id, rig.comm.notify_id(thread, 0).unwrap());
        let notify = format!("notify {id} (index 0 of the thread of stream {stream})");
        let start = format!("device error 507048: deadlock: stream {stream}, sq {sq}, task 0x");
        let end = format!(" waits for {notify}, which nothing is left to record");
        assert!(error.starts_with(&start) && error.contains(&end), "{cpu:?}: {error}");
    }
}

/// Case 37.
#[test]
fn wait_without_record_comes_to_its_limit() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 2, 8)[0];
        let launched = rig.launch_calls(&[wait(thread, 1, 1)]);
        // As long as no host waits, a thread may still be about to record.
        std::thread::sleep(Duration::from_millis(1300));
        let error = rig.stream.synchronize().unwrap_err().to_string();
        assert!(error.starts_with("device error 507048: stream "), "{cpu:?}: {error}");
        assert!(
            error.contains(" was not recorded within 1 s; queued at ") && error.contains("(index 1 of"),
            "{cpu:?}: {error}"
        );
        drop(launched);
    }
}

#[test]
fn threads_that_wait_for_each_other_are_reported_with_the_cycle() {
    for cpu in CPUS {
        let rig = Rig::with_deadlock_limit(cpu);
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let list = [wait(first, 0, 0), record(first, second, 0), wait(second, 0, 0), record(second, first, 0)];
        let started = Instant::now();
        let error = rig.good_calls(&list).unwrap_err().to_string();
        assert!(started.elapsed() < LIMIT, "{cpu:?}: {:?}", started.elapsed());
        let streams = [first, second].map(|thread| rig.comm.thread_info(thread).unwrap().stream_id);
        let behind = ", which is to be recorded behind the wait of stream";
        assert!(error.contains("507048: deadlock: "), "{cpu:?}: {error}");
        assert_eq!(error.matches(behind).count(), 2, "{cpu:?}: {error}");
        assert!(streams.iter().all(|stream| error.contains(&format!("thread of stream {stream}"))), "{error}");
    }
}

/// Case 38.
#[test]
fn record_too_many_is_reported_and_releases_no_later_wait() {
    for cpu in CPUS {
        let rig = Rig::with_deadlock_limit(cpu);
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let twice = [record(first, second, 0), record(first, second, 0), wait(second, 0, 0)];
        let error = rig.good_calls(&twice).unwrap_err().to_string();
        let stream = rig.comm.thread_info(second).unwrap().stream_id;
        let text = format!(
            "(index 0 of the thread of stream {stream}) was recorded once more than it was waited for at the end"
        );
        assert!(error.contains(&text), "{cpu:?}: {error}");
        // The device goes on; what was left does not release the next operation.
        let error = rig.good_calls(&[wait(second, 0, 0)]).unwrap_err().to_string();
        assert!(error.contains("which nothing is left to record"), "{cpu:?}: {error}");
    }
}

#[test]
fn record_that_is_left_is_a_warning_if_the_list_of_checks_says_so() {
    for cpu in CPUS {
        let rig = Rig::with_options(DeviceOptions {
            cpu,
            checks: Some(Checks::DEFAULT.warning(Check::Sync)),
            deadlock_limit: Some(DEADLOCK_LIMIT),
            ..DeviceOptions::default()
        });
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        rig.good_calls(&[record(first, second, 0)]).unwrap();
        // Neither does it release the next operation then.
        let error = rig.good_calls(&[wait(second, 0, 0)]).unwrap_err().to_string();
        assert!(error.contains("deadlock"), "{cpu:?}: {error}");
    }
}

/// Case 40.
#[test]
fn wait_has_the_credit_never_and_a_copy_the_ordinary_one() {
    let credit = |sqe: Sqe| sqe.as_bytes()[14];
    assert_eq!(credit(NotifyWait::new(1, 1).unwrap().build(0)), 255);
    assert_eq!(credit(Sdma::new(DeviceAddr(64), DeviceAddr(128), 1).build(0)), 254);
}

/// Case 41.
#[test]
fn index_beyond_the_last_notify_is_refused() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let [first, second] = rig.threads(2, 2, 16)[..] else { unreachable!() };
        let bad = [2, 3, u32::MAX].into_iter().flat_map(|index| [record(first, second, index), wait(second, index, 1)]);
        let list: Vec<Call> = bad.chain([record(first, second, 1), wait(second, 1, 0)]).collect();
        assert_eq!(rig.calls(&list).unwrap(), [2, 2, 2, 2, 2, 2, 0, 0], "{cpu:?}");
        let tasks = [first, second].map(|thread| rig.comm.thread_statistics(thread).unwrap().tasks);
        assert_eq!(tasks, [1, 1], "{cpu:?}");
    }
}

/// Case 42.
#[test]
fn notify_orders_two_writers_of_one_range() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let (one, two, dst) = (rig.buffer(&pattern(64, 1)), rig.buffer(&pattern(64, 2)), rig.buffer(&[0; 64]));
        for _ in 0..50 {
            let list = [
                wait(second, 0, 0),
                copy(second, dst.addr(), two.addr(), 64),
                copy(first, dst.addr(), one.addr(), 64),
                record(first, second, 0),
            ];
            rig.good_calls(&list).unwrap();
            assert_eq!(rig.read(&dst), pattern(64, 2), "{cpu:?}");
        }
    }
}

/// Case 44.
#[test]
fn what_a_kernel_has_stored_is_what_its_copy_reads() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 0, 8)[0];
        let (src, dst) = (rig.buffer(&[0xee; 8]), rig.buffer(&[0; 8]));
        // The kernel stores the code of its first call, 2 for the null address, into `src`, and then copies it.
        let list = [copy(thread, DeviceAddr(0), src.addr(), 1), copy(thread, dst.addr(), src.addr(), 4)];
        rig.calls_with_codes_at(&list, &src).unwrap();
        assert_eq!(rig.read(&dst), [2, 0, 0, 0, 0, 0, 0, 0], "{cpu:?}");
    }
}

#[test]
fn default_limit_of_waits_is_what_the_kernel_sets() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 1, 8)[0];
        let limit = |seconds: f32| call(Call::SET_NOTIFY_WAIT_TIMEOUT, &[seconds.to_bits().into()]);
        let bad = [limit(-1.0), limit(f32::NAN), limit(4_294_967_296.0), limit(f32::INFINITY)];
        assert_eq!(rig.calls(&bad).unwrap(), [1; 4], "{cpu:?}");
        // A fraction rounds up: never to 0, which means no limit.
        let launched = rig.launch_calls(&[limit(0.25), call(Call::NOTIFY_WAIT_DEFAULT, &[thread.0, 0])]);
        std::thread::sleep(Duration::from_millis(1300));
        let error = rig.stream.synchronize().unwrap_err().to_string();
        assert!(error.contains(" was not recorded within 1 s; queued at "), "{cpu:?}: {error}");
        drop(launched);
    }
}

#[test]
fn waits_block_their_own_queue_alone() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let threads = rig.threads(8, 1, 16);
        let bytes = pattern(8, 3);
        let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 8]));
        // Each waits for the one behind it; only the last can start.
        let chain = threads.iter().enumerate().flat_map(|(index, &thread)| {
            let byte = copy(thread, dst.at(index as u64), src.at(index as u64), 1);
            let before = (index + 1 < threads.len()).then(|| wait(thread, 0, 0));
            let after = index.checked_sub(1).map(|before| record(thread, threads[before], 0));
            before.into_iter().chain([byte]).chain(after)
        });
        rig.good_calls(&chain.collect::<Vec<_>>()).unwrap();
        assert_eq!(rig.read(&dst), bytes, "{cpu:?}");
    }
}

/// Case 52.
#[test]
fn notifies_of_a_communicator_run_out_as_a_whole() {
    let rig = Rig::new(Cpu::Native);
    let acquire =
        |count, notifies| rig.comm.acquire_threads(hcomm_aicpu::spec::thread::Engine::AICPU_TS, count, notifies);
    let error = acquire(1, 65_536).unwrap_err().to_string();
    assert_eq!(error, "65536 notifies a thread: must be at most 65535");
    assert_eq!(acquire(1, 65_535).unwrap().len(), 1);
    let error = acquire(2, 1).unwrap_err().to_string();
    assert_eq!(error, "2 notifies: only 1 of 65536 are free");
    let last = acquire(1, 1).unwrap()[0];
    assert!(acquire(1, 1).is_err());
    assert_eq!(acquire(1, 0).unwrap().len(), 1);
    assert_eq!(rig.comm.notify_id(last, 0).unwrap(), 65_535);
    // Another communicator has notifies of its own, up to what the descriptors can name.
    let other = host_stub::Comm::new(&rig.device).unwrap();
    assert_eq!(other.acquire_threads(hcomm_aicpu::spec::thread::Engine::AICPU_TS, 1, 65_535).unwrap().len(), 1);
}
