//! Checks of what a program does: their findings, on both CPUs, and what their list makes of them.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::{Call, CallListParams};
use hcomm_testkit::calls::{copy, record, reduce, wait};
use hcomm_testkit::{CPUS, Rig, pattern};
use host_stub::{Check, Checks, ControlPair, Cpu, DeviceBuffer, DeviceOptions, Error, LaunchOptions};
use zerocopy::IntoBytes;

/// A device that looks for uses of bytes that were never written.
fn init_rig(cpu: Cpu) -> Rig {
    let checks = Some(Checks::DEFAULT.with(Check::Init));
    Rig::with_options(DeviceOptions { cpu, checks, ..DeviceOptions::default() })
}

/// Launches kernel `call_list`, which ignores the codes of its calls, and gives the text of the error, if there is one.
fn run_carelessly(rig: &Rig, list: &[Call], options: LaunchOptions) -> Option<String> {
    let (entries, codes) = (rig.buffer(list.as_bytes()), rig.buffer(&vec![0xee; list.len() * 4]));
    let (header, count) = (CallListParams::HEADER, list.len() as u64);
    let params = CallListParams { header, list: entries.addr(), count, codes: codes.addr() };
    let kernel = rig.device.load_kernel("call_list").unwrap();
    rig.stream.launch_bytes_with(&kernel, params.as_bytes(), LaunchOptions { drain: true, ..options }).unwrap();
    rig.stream.synchronize().err().map(|error| error.to_string())
}

/// Case 239, 321.
#[test]
fn kernel_that_ignores_a_refused_call_fails_its_launch() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let (src, dst) = (rig.buffer(&pattern(64, 1)), rig.buffer(&[0; 64]));
        let null = copy(first, DeviceAddr(0), src.addr(), 64);
        let list = [null, copy(first, dst.addr(), src.addr(), 64), null, record(first, second, 99)];
        let error = run_carelessly(&rig, &list, LaunchOptions::default()).expect("calls were refused");
        for text in [
            "507018",
            "kernel call_list returned 0 although calls of it were refused",
            "HcommLocalCopyOnThread: dst is null (code 2, HCCL_E_PTR) at ",
            ", 2 times; HcommThreadNotifyRecordOnThread: ",
            "notify index 99, the thread has 1 (code 2, HCCL_E_PTR) at ",
        ] {
            assert!(error.contains(text), "{cpu:?}: {error}");
        }
        // Each names the line of its call: the list's copy, and its record.
        let places: Vec<_> = error.match_indices(" at kernel/src/call_list.rs:").collect();
        assert_eq!(places.len(), 2, "{cpu:?}: {error}");
        assert_eq!(rig.read(&dst), pattern(64, 1), "{cpu:?}: the other call has done its work");
        // The device goes on; a launch whose calls are there to be refused is not looked at.
        assert_eq!(run_carelessly(&rig, &list[1..2], LaunchOptions::default()), None, "{cpu:?}");
        let options = LaunchOptions { expects_refusals: true, ..LaunchOptions::default() };
        assert_eq!(run_carelessly(&rig, &list, options), None, "{cpu:?}");
    }
}

#[test]
fn list_of_checks_decides_about_ignored_refusals() {
    for cpu in CPUS {
        for checks in [Checks::DEFAULT.warning(Check::Calls), Checks::DEFAULT.without(Check::Calls), Checks::NONE] {
            let rig = Rig::with_options(DeviceOptions { cpu, checks: Some(checks), ..DeviceOptions::default() });
            let (thread, src) = (rig.threads(1, 0, 8)[0], rig.buffer(&[1]));
            let null = copy(thread, DeviceAddr(0), src.addr(), 1);
            assert_eq!(run_carelessly(&rig, &[null], LaunchOptions::default()), None, "{cpu:?} {checks}");
        }
    }
}

/// Case 323.
#[test]
fn freed_memory_is_told_as_freed_although_the_program_has_allocated_since() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let (thread, src) = (rig.threads(1, 0, 8)[0], rig.buffer(&pattern(4096, 1)));
        let old = rig.device.allocate(4096).unwrap();
        let line = line!() + 1;
        rig.device.free(old).unwrap();
        let new = rig.buffer(&[0; 4096]);
        assert_ne!(new.addr(), old);
        let error = rig.calls(&[copy(thread, old, src.addr(), 4096)]).unwrap_err().to_string();
        let place = format!("which was freed at tests/checks.rs:{line} (");
        assert!(error.contains(&place) && error.contains(") before the first launch was queued"), "{cpu:?}: {error}");
    }
}

#[test]
fn memory_is_used_again_at_once_if_the_check_is_off() {
    let checks = Some(Checks::DEFAULT.without(Check::Free));
    let rig = Rig::with_options(DeviceOptions { checks, ..DeviceOptions::native() });
    let old = rig.device.allocate(4096).unwrap();
    rig.device.free(old).unwrap();
    assert_eq!(rig.device.allocate(4096).unwrap(), old);
}

/// The report of an uninitialised read, if that is what a call answers.
fn uninitialised(result: Result<(), Error>) -> Option<String> {
    match result {
        Ok(()) => None,
        Err(Error::Uninitialised(read)) => Some(read.to_string()),
        Err(other) => panic!("{other}"),
    }
}

fn copy_out(rig: &Rig, buffer: &DeviceBuffer, len: usize) -> Option<String> {
    uninitialised(rig.device.copy_out(buffer.addr(), &mut vec![0; len]))
}

/// Case 324.
#[test]
fn reduce_of_bytes_that_were_never_written_is_reported() {
    for cpu in CPUS {
        // The first is filled at allocation, the second is a hole.
        for len in [64, 4 << 20] {
            let rig = init_rig(cpu);
            let thread = rig.threads(1, 0, 8)[0];
            let (sum, data) = (rig.device.malloc(len).unwrap(), rig.buffer(&[1; 64]));
            let to_sum = reduce(thread, sum.addr(), data.addr(), 16, DataType::INT32, ReduceOp::SUM);
            let found = uninitialised(rig.good_calls(&[to_sum])).expect("the accumulator was never set");
            let text = format!("uses 64 bytes at {:#x} (offset 0 of the allocation of {len} bytes", sum.addr().0);
            assert!(found.contains(&text) && found.ends_with("that were never written"), "{cpu:?}: {found}");
            assert!(found.contains("kernel call_list"), "{cpu:?}: {found}");
            // Once: the bytes count as written now.
            assert_eq!(uninitialised(rig.good_calls(&[to_sum])), None, "{cpu:?}");
            // The source as well.
            let source = rig.device.malloc(len).unwrap();
            let from_source = reduce(thread, data.addr(), source.addr(), 16, DataType::INT32, ReduceOp::SUM);
            let found = uninitialised(rig.good_calls(&[from_source])).expect("the source was never set");
            assert!(found.contains(&format!("uses 64 bytes at {:#x}", source.addr().0)), "{cpu:?}: {found}");
        }
    }
}

/// Case 325.
#[test]
fn unwritten_bytes_that_a_task_has_copied_to_a_result_are_reported() {
    for cpu in CPUS {
        let rig = init_rig(cpu);
        let thread = rig.threads(1, 0, 8)[0];
        let [source, between, result] = [(); 3].map(|()| rig.device.malloc(100).unwrap());
        rig.device.copy_in(source.addr(), &[7; 60]).unwrap();
        // Over another distance than a multiple of the pattern.
        let odd = DeviceAddr(between.addr().0 + 3);
        let list = [copy(thread, odd, source.addr(), 80), copy(thread, result.addr(), odd, 80)];
        assert_eq!(uninitialised(rig.good_calls(&list)), None, "{cpu:?}: a copy alone uses nothing");
        let found = copy_out(&rig, &result, 100).expect("20 bytes were never written");
        assert!(found.contains("a copy to the host"), "{cpu:?}: {found}");
        let text = format!("uses 20 bytes at {:#x}", result.addr().0 + 60);
        assert!(found.contains(&text) && found.contains("that a task has copied there"), "{cpu:?}: {found}");
        assert_eq!(copy_out(&rig, &result, 100), None, "{cpu:?}: told once");
    }
}

/// Case 326.
#[test]
fn bytes_that_are_written_in_any_way_or_only_read_as_a_tail_are_no_error() {
    for cpu in CPUS {
        let rig = init_rig(cpu);
        let thread = rig.threads(1, 0, 8)[0];
        // The tail of a buffer that nothing has touched: a warning.
        let buffer = rig.device.malloc(100).unwrap();
        rig.device.copy_in(buffer.addr(), &[1; 60]).unwrap();
        assert_eq!(copy_out(&rig, &buffer, 100), None, "{cpu:?}");
        // A kernel's own stores, then a task, then a copy to the host; short and long allocations.
        for len in [64, 4 << 20] {
            let [codes, result] = [(); 2].map(|()| rig.device.malloc(len).unwrap());
            let data = rig.buffer(&[1; 8]);
            let calls = [copy(thread, data.addr(), data.addr(), 8); 3];
            rig.calls_with_codes_at(&calls, &codes).unwrap();
            rig.good_calls(&[copy(thread, result.addr(), codes.addr(), 12)]).unwrap();
            let mut out = [1; 12];
            assert_eq!(uninitialised(rig.device.copy_out(result.addr(), &mut out)), None, "{cpu:?} {len}");
            assert_eq!(out, [0; 12], "{cpu:?} {len}");
        }
        // Copies of the host, and what the device has copied.
        let [first, second] = [(); 2].map(|()| rig.device.malloc(64).unwrap());
        rig.device.copy_in(first.addr(), &[5; 64]).unwrap();
        rig.device.copy_within(second.addr(), first.addr(), 64).unwrap();
        let list = [reduce(thread, second.addr(), first.addr(), 16, DataType::INT32, ReduceOp::SUM)];
        assert_eq!(uninitialised(rig.good_calls(&list)), None, "{cpu:?}");
    }
}

/// Case 327.
#[test]
fn second_record_of_a_notify_that_is_set_is_the_cause_of_a_deadlock() {
    for cpu in CPUS {
        let rig = Rig::with_deadlock_limit(cpu);
        let thread = rig.threads(1, 1, 8)[0];
        // One queue: both records have run before the first wait.
        let list = [record(thread, thread, 0), record(thread, thread, 0), wait(thread, 0, 0), wait(thread, 0, 0)];
        let error = rig.calls(&list).unwrap_err().to_string();
        let stream = rig.comm.thread_info(thread).unwrap().stream_id;
        for text in [
            "deadlock: ".to_owned(),
            format!("(index 0 of the thread of stream {stream}) was recorded by stream {stream} sq 0 slot 1 task"),
            "while it was still set: that record was lost".to_owned(),
        ] {
            assert!(error.contains(&text), "{cpu:?}: {error}");
        }
    }
}

/// Case 328.
#[test]
fn wait_that_is_missing_is_named_beside_the_work_that_it_would_order() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let (src, dst) = (rig.buffer(&pattern(64, 1)), rig.buffer(&[0; 64]));
        let launched = rig.launch_calls(&[copy(second, dst.addr(), src.addr(), 64), record(second, first, 0)]);
        let error = rig.stream.synchronize().unwrap_err().to_string();
        let stream = rig.comm.thread_info(first).unwrap().stream_id;
        for text in [
            "kernel call_list has queued 2 tasks on".to_owned(),
            "that no notify orders before the end of the stream".to_owned(),
            format!("(index 0 of the thread of stream {stream}) was recorded once more than it was waited for"),
            "add the wait that is missing".to_owned(),
        ] {
            assert!(error.contains(&text), "{cpu:?}: {error}");
        }
        assert_eq!(rig.codes(&launched), [0, 0]);
        // Without a record: both ways out.
        let launched = rig.launch_calls(&[copy(second, dst.addr(), src.addr(), 64)]);
        let error = rig.stream.synchronize().unwrap_err().to_string();
        assert!(error.contains("control pair") && error.contains("launch_and_drain"), "{cpu:?}: {error}");
        drop(launched);
    }
}

/// Case 330.
#[test]
fn worker_that_does_not_wait_for_the_start_is_reported() {
    for cpu in CPUS {
        let checks = Some(Checks::DEFAULT.with(Check::Race));
        let rig = Rig::with_options(DeviceOptions { cpu, checks, ..DeviceOptions::default() });
        let threads = rig.threads(2, 3, 8);
        let [main, worker] = threads[..] else { unreachable!() };
        let buffers = [(); 4].map(|()| rig.buffer(&[1; 64]));
        let copy_on = |thread, to: usize, from: usize| copy(thread, buffers[to].addr(), buffers[from].addr(), 64);
        let pair = ControlPair::new(&rig.comm, &rig.stream, main, 0).unwrap();
        let control = pair.control();
        for starts_worker in [true, false] {
            let mut list = vec![wait(main, 0, 60), copy_on(main, 0, 1)];
            if starts_worker {
                list.extend([record(main, worker, 1), wait(worker, 1, 60)]);
            }
            list.extend([copy_on(worker, 2, 3), record(worker, main, 1), wait(main, 1, 60)]);
            list.push(record(main, ThreadHandle(control.cpu_thread), control.end_notify));
            let (entries, codes) = (rig.buffer(list.as_bytes()), rig.buffer(&vec![0xee; list.len() * 4]));
            let (header, count) = (CallListParams::HEADER, list.len() as u64);
            let params = CallListParams { header, list: entries.addr(), count, codes: codes.addr() };
            rig.stream.launch_with_control(&pair, &rig.device.load_kernel("call_list").unwrap(), &params).unwrap();
            match rig.stream.synchronize() {
                Ok(()) => assert!(starts_worker, "{cpu:?}: the worker is not ordered behind the start"),
                Err(Error::EarlyTask(early)) => {
                    let text = early.to_string();
                    assert!(!starts_worker && text.contains("on thread 1 of the 2"), "{cpu:?}: {text}");
                    assert!(text.contains("behind the wait for the start notify"), "{cpu:?}: {text}");
                }
                Err(other) => panic!("{cpu:?}: {other}"),
            }
        }
    }
}
