//! Host and kernel in step: the control pair of a launch, notifies of streams, and what a kernel that forgets its part gives.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::{Call, Control, LocalCopyParams};
use hcomm_testkit::calls::{call, copy, record, wait};
use hcomm_testkit::{CPUS, LIMIT, Rig, pattern, wait_until};
use host_stub::{Check, Checks, Comm, ControlPair, Cpu, DeviceOptions, Kernel, Notify, Stream};

/// Parameters of a copy of 64 bytes from `src` to `dst`, 64-byte buffers both.
fn params(rig: &Rig, thread: ThreadHandle, control: Control) -> (LocalCopyParams, [host_stub::DeviceBuffer; 2]) {
    let (src, dst) = (rig.buffer(&pattern(64, 1)), rig.buffer(&[0; 64]));
    let (user_in, ccl_buf) = (src.addr(), dst.addr());
    let header = LocalCopyParams::HEADER;
    (LocalCopyParams { header, thread: thread.0, user_in, ccl_buf, ccl_buf_size: 64, len: 64, control }, [src, dst])
}

#[test]
fn end_notify_releases_the_stream() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 1, 8)[0];
        let pair = ControlPair::new(&rig.comm, &rig.stream, thread, 0).unwrap();
        let (params, [_src, dst]) = params(&rig, thread, pair.control());
        let kernel = rig.device.load_kernel("local_copy").unwrap();
        for _ in 0..20 {
            rig.device.copy_in(dst.addr(), &[0; 64]).unwrap();
            let stats = rig.stream.launch_with_control(&pair, &kernel, &params).unwrap();
            rig.stream.synchronize().unwrap();
            assert_eq!(rig.read(&dst), pattern(64, 1), "{cpu:?}");
            assert_eq!((stats.tasks(), stats.doorbells()), (3, 1), "{cpu:?}: wait, copy, record in one batch");
        }
    }
}

#[test]
fn kernel_that_records_no_end_is_not_green() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 1, 8)[0];
        let (params, [_src, dst]) = params(&rig, thread, Control::NONE);
        rig.stream.launch(&rig.device.load_kernel("local_copy").unwrap(), &params).unwrap();
        let error = rig.stream.synchronize().unwrap_err().to_string();
        let info = rig.comm.thread_info(thread).unwrap();
        let text = format!(
            "kernel local_copy has queued 1 tasks on stream {}, sq {} that no notify orders before the end",
            info.stream_id, info.sq_id
        );
        assert!(error.starts_with("device error 507001: ") && error.contains(&text), "{cpu:?}: {error}");
        // The work was waited for all the same, and the device goes on.
        assert_eq!(rig.read(&dst), pattern(64, 1));
        rig.good_calls(&[]).unwrap();
    }
}

#[test]
fn stream_that_waits_for_an_unrecorded_end_is_a_deadlock() {
    for cpu in CPUS {
        let rig = Rig::with_deadlock_limit(cpu);
        let thread = rig.threads(1, 1, 8)[0];
        let pair = ControlPair::new(&rig.comm, &rig.stream, thread, 0).unwrap();
        let (params, _buffers) = params(&rig, thread, Control::NONE);
        let kernel = rig.device.load_kernel("local_copy").unwrap();
        rig.stream.launch_with_control(&pair, &kernel, &params).unwrap();
        let started = Instant::now();
        let error = rig.stream.synchronize().unwrap_err().to_string();
        assert!(started.elapsed() < LIMIT, "{cpu:?}: {:?}", started.elapsed());
        let text = format!("507048: deadlock: stream {} waits for notify", rig.stream.id());
        assert!(error.contains(&text) && error.contains("which nothing is left to record"), "{cpu:?}: {error}");
    }
}

#[test]
fn work_of_another_thread_that_the_end_does_not_cover_is_reported() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let [first, second] = rig.threads(2, 2, 8)[..] else { unreachable!() };
        let cpu_thread = rig.comm.acquire_thread_with_stream(&rig.stream, 1).unwrap();
        let (src, dst) = (rig.buffer(&[7; 2]), rig.buffer(&[0; 2]));
        let copies = [copy(first, dst.addr(), src.addr(), 1), copy(second, dst.at(1), src.at(1), 1)];
        let end = record(first, cpu_thread, 0);
        // Without the notify between the threads, and with it.
        let loose = [copies[0], copies[1], end];
        let tied = [copies[0], copies[1], record(second, first, 0), wait(first, 0, 0), end];
        let run = |list: &[Call]| {
            let launched = rig.launch_calls(list);
            rig.comm.notify_wait(&rig.stream, cpu_thread, 0, 10).unwrap();
            let result = rig.stream.synchronize();
            assert_eq!(rig.codes(&launched), vec![0; list.len()]);
            result
        };
        let error = run(&loose).unwrap_err().to_string();
        let stream = rig.comm.thread_info(second).unwrap().stream_id;
        let text = format!("kernel call_list has queued 1 tasks on stream {stream},");
        assert!(error.contains(&text), "{cpu:?}: {error}");
        run(&tied).unwrap();
        assert_eq!(rig.read(&dst), [7, 7]);
    }
}

#[test]
fn launches_on_two_streams_answer_for_their_own_work() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let streams = [Stream::new(&rig.device), Stream::new(&rig.device)];
        let threads = rig.threads(2, 1, 8);
        let pairs = [0, 1].map(|which| ControlPair::new(&rig.comm, &streams[which], threads[which], 0).unwrap());
        let kernel = rig.device.load_kernel("local_copy").unwrap();
        let each = [0, 1].map(|which| params(&rig, threads[which], pairs[which].control()));
        for _ in 0..100 {
            for which in [0, 1] {
                streams[which].launch_with_control(&pairs[which], &kernel, &each[which].0).unwrap();
            }
            for stream in &streams {
                stream.synchronize().unwrap_or_else(|error| panic!("{cpu:?}: {error}"));
            }
        }
    }
}

#[test]
fn deadlock_is_reported_only_while_a_host_waits() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let (notify, other) = (Notify::new(&rig.device).unwrap(), Stream::new(&rig.device));
        notify.wait_and_reset(&rig.stream, 0).unwrap();
        let error = rig.stream.synchronize_for(Duration::from_millis(1)).unwrap_err().to_string();
        assert!(error.contains("1 operations have not completed"), "{cpu:?}: {error}");
        std::thread::sleep(Duration::from_millis(400));
        notify.record(&other).unwrap();
        rig.stream.synchronize().unwrap();
    }
}

#[test]
fn unordered_work_is_a_warning_if_the_list_of_checks_says_so() {
    for cpu in CPUS {
        let rig = Rig::with_options(DeviceOptions {
            cpu,
            checks: Some(Checks::DEFAULT.without(Check::Race).warning(Check::Sync)),
            ..DeviceOptions::default()
        });
        let thread = rig.threads(1, 1, 8)[0];
        let (params, [_src, dst]) = params(&rig, thread, Control::NONE);
        rig.stream.launch(&rig.device.load_kernel("local_copy").unwrap(), &params).unwrap();
        rig.stream.synchronize().unwrap();
        assert_eq!(rig.read(&dst), pattern(64, 1));
    }
}

#[test]
fn kernel_that_fails_releases_its_stream() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 1, 8)[0];
        let pair = ControlPair::new(&rig.comm, &rig.stream, thread, 0).unwrap();
        let kernel = rig.device.load_kernel("local_copy").unwrap();
        let (good, [_src, dst]) = params(&rig, thread, pair.control());
        let stale = LocalCopyParams { thread: thread.0 ^ 1 << 48, ..good };
        let too_long = LocalCopyParams { len: 65, ..good };
        for (bad, code) in [(stale, 6), (too_long, 1)] {
            rig.stream.launch_with_control(&pair, &kernel, &bad).unwrap();
            // What comes behind it does not run.
            rig.stream.launch_with_control(&pair, &kernel, &good).unwrap();
            let error = rig.stream.synchronize().unwrap_err().to_string();
            let text = format!("kernel local_copy returned {code} ");
            assert!(error.contains("507018") && error.contains(&text), "{cpu:?}: {error}");
            assert_eq!(rig.read(&dst), [0; 64], "{cpu:?}");
        }
        // Nothing that the failed launches left behind disturbs the next.
        rig.stream.launch_with_control(&pair, &kernel, &good).unwrap();
        rig.stream.synchronize().unwrap();
        assert_eq!(rig.read(&dst), pattern(64, 1), "{cpu:?}");
    }
}

/// Whether [`takes_too_long`] may return.
static MAY_RETURN: AtomicBool = AtomicBool::new(false);

extern "C-unwind" fn takes_too_long(_args: *const c_void) -> u32 {
    (!wait_until(|| MAY_RETURN.load(Ordering::Relaxed))).into()
}

#[test]
fn kernel_that_overruns_releases_its_stream() {
    let options = DeviceOptions { launch_timeout: Some(Duration::from_millis(100)), ..DeviceOptions::native() };
    let rig = Rig::with_options(options);
    let thread = rig.threads(1, 1, 8)[0];
    let pair = ControlPair::new(&rig.comm, &rig.stream, thread, 0).unwrap();
    let (params, _buffers) = params(&rig, thread, pair.control());
    rig.stream.launch_with_control(&pair, &Kernel::native("takes_too_long", takes_too_long), &params).unwrap();
    let error = rig.stream.synchronize().unwrap_err().to_string();
    assert!(error.contains("507017") && error.contains("kernel takes_too_long has not returned within"), "{error}");
    MAY_RETURN.store(true, Ordering::Relaxed);
}

#[test]
fn notify_of_the_host_orders_two_streams() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let other = Stream::new(&rig.device);
        let notify = Notify::new(&rig.device).unwrap();
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let kernel = rig.device.load_kernel("local_copy").unwrap();
        let pairs = [(first, &rig.stream), (second, &other)]
            .map(|(thread, stream)| ControlPair::new(&rig.comm, stream, thread, 0).unwrap());
        let buffers = [pattern(64, 4), vec![0; 64], vec![0; 64]].map(|bytes| rig.buffer(&bytes));
        let step = |which: usize, thread: ThreadHandle| LocalCopyParams {
            header: LocalCopyParams::HEADER,
            thread: thread.0,
            user_in: buffers[which].addr(),
            ccl_buf: buffers[which + 1].addr(),
            ccl_buf_size: 64,
            len: 64,
            control: pairs[which].control(),
        };
        // The second step is submitted first, and waits.
        notify.wait_and_reset(&other, 10).unwrap();
        other.launch_with_control(&pairs[1], &kernel, &step(1, second)).unwrap();
        rig.stream.launch_with_control(&pairs[0], &kernel, &step(0, first)).unwrap();
        notify.record(&rig.stream).unwrap();
        rig.stream.synchronize().unwrap();
        other.synchronize().unwrap();
        assert_eq!(rig.read(&buffers[2]), pattern(64, 4), "{cpu:?}");

        let wait = notify.wait_and_reset(&rig.stream, 1).and_then(|()| rig.stream.synchronize());
        let error = wait.unwrap_err().to_string();
        let (stream, notify) = (rig.stream.id(), notify.id());
        let text = format!("507048: stream {stream}: notify {notify} (of the host) was not recorded within 1 s");
        assert!(error.ends_with(&text), "{cpu:?}: {error}");
    }
}

#[test]
fn host_notifies_of_one_device_are_refused_on_another() {
    let (rig, other) = (Rig::new(Cpu::Native), Rig::new(Cpu::Native));
    let notify = Notify::new(&rig.device).unwrap();
    assert!(
        notify.record(&other.stream).unwrap_err().to_string().starts_with("a notify or event of the device in slot")
    );
    assert!(rig.comm.acquire_thread_with_stream(&other.stream, 1).is_err());
    let pair = ControlPair::new(&rig.comm, &rig.stream, rig.threads(1, 1, 8)[0], 0).unwrap();
    let second = Stream::new(&rig.device);
    let kernel = rig.device.load_kernel("local_copy").unwrap();
    let (params, _buffers) = params(&rig, ThreadHandle(0), pair.control());
    let error = second.launch_with_control(&pair, &kernel, &params).unwrap_err().to_string();
    let text = "control pair or thread of stream";
    let expected = format!("{text} {} used on stream {}: use it on its own stream", rig.stream.id(), second.id());
    assert_eq!(error, expected);
}

/// Case 49.
#[test]
fn thread_of_the_host_takes_no_copy_on_the_device() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 1, 8)[0];
        let cpu_thread = rig.comm.acquire_thread_with_stream(&rig.stream, 2).unwrap();
        // Acquired again for the same stream, and exported, it is the same thread.
        assert_eq!(rig.comm.acquire_thread_with_stream(&rig.stream, 1).unwrap(), cpu_thread);
        assert_eq!(rig.comm.export_thread(cpu_thread, Engine::AICPU_TS).unwrap(), cpu_thread);
        assert_eq!(rig.comm.export_thread(thread, Engine::CPU_TS).unwrap(), thread);
        assert!(rig.comm.export_thread(ThreadHandle(thread.0 + 1), Engine::CPU_TS).is_err());
        assert!(rig.comm.export_thread(thread, Engine(4)).is_err());

        let buffer = rig.buffer(&[0; 2]);
        let list = [
            copy(cpu_thread, buffer.at(1), buffer.addr(), 1),
            record(cpu_thread, thread, 0),
            wait(cpu_thread, 0, 1),
            record(thread, cpu_thread, 2),
        ];
        assert_eq!(rig.calls(&list).unwrap(), [6, 6, 6, 2], "{cpu:?}");
    }
}

/// Case 49.
#[test]
fn handle_of_a_communicator_that_is_gone_is_refused() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let other = Comm::new(&rig.device).unwrap();
        let stale = other.acquire_threads(Engine::AICPU_TS, 1, 1).unwrap()[0];
        let name = other.name().to_owned();
        drop(other);
        let live = rig.threads(1, 1, 8)[0];
        let name = rig.buffer(format!("{name}\0").as_bytes());
        let buffer = rig.buffer(&[0; 2]);
        let list = [
            copy(stale, buffer.at(1), buffer.addr(), 1),
            record(live, stale, 0),
            wait(stale, 0, 0),
            call(Call::ACQUIRE_COMM, &[name.addr().0]),
        ];
        assert_eq!(rig.calls(&list).unwrap(), [6, 6, 6, 2], "{cpu:?}");
    }
}

#[test]
fn communicators_are_locked_by_name() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let other = Comm::new(&rig.device).unwrap();
        let [name, second, unknown] =
            [rig.comm.name(), other.name(), "nobody"].map(|name| rig.buffer(format!("{name}\0").as_bytes()));
        let acquire = |name: &host_stub::DeviceBuffer| call(Call::ACQUIRE_COMM, &[name.addr().0]);
        let release = |name: &host_stub::DeviceBuffer| call(Call::RELEASE_COMM, &[name.addr().0]);
        let list = [
            acquire(&name),
            acquire(&name),
            acquire(&second),
            release(&name),
            release(&name),
            acquire(&name),
            acquire(&unknown),
            release(&unknown),
            call(Call::ACQUIRE_COMM, &[0]),
            call(Call::RELEASE_COMM, &[0]),
        ];
        // A kernel that forgets to unlock does not lock out the next.
        for _ in 0..2 {
            assert_eq!(rig.calls(&list).unwrap(), [0, 20, 0, 0, 6, 0, 2, 2, 2, 2], "{cpu:?}");
        }
    }
}

/// Case 53.
#[test]
fn two_communicators_alternate() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let other = Comm::new(&rig.device).unwrap();
        let threads = [&rig.comm, &other].map(|comm| comm.acquire_threads(Engine::AICPU_TS, 1, 0).unwrap()[0]);
        let bytes = pattern(1000, 8);
        let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 1000]));
        let list: Vec<_> =
            (0..1000).map(|index| copy(threads[index as usize % 2], dst.at(index), src.at(index), 1)).collect();
        rig.good_calls(&list).unwrap();
        assert_eq!(rig.read(&dst), bytes);
        for (comm, thread) in [&rig.comm, &other].into_iter().zip(threads) {
            assert_eq!(comm.thread_statistics(thread).unwrap().tasks, 500, "{cpu:?}");
        }
    }
}

/// Case 54.
#[test]
fn communicator_with_work_outstanding_can_be_dropped() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let other = Comm::new(&rig.device).unwrap();
        drop(Comm::new(&rig.device).unwrap());
        let thread = other.acquire_threads(Engine::AICPU_TS, 1, 1).unwrap()[0];
        let buffer = rig.buffer(&[0; 2]);
        // The copy never runs: its queue waits.
        let launched = rig.launch_calls(&[wait(thread, 0, 0), copy(thread, buffer.at(1), buffer.addr(), 1)]);
        while rig.codes(&launched) != [0, 0] {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(other);
        let error = rig.stream.synchronize().unwrap_err().to_string();
        assert!(error.ends_with("2 tasks were dropped, its thread was freed"), "{cpu:?}: {error}");
        rig.good_calls(&[]).unwrap();
    }
}
