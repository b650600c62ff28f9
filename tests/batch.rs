//! Batches, and kernels of more than one thread, through the host API on both CPUs. The number in a name is the case log's row.

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::{Call, PingpongParams, STAGED_COPY_INPUT_NOTIFIES, STAGED_COPY_OUTPUT_NOTIFIES, StagedCopyParams};
use hcomm_testkit::calls::{call, copy, record, wait};
use hcomm_testkit::{CPUS, Rig, pattern};
use host_stub::{Check, Checks, ControlPair, DeviceOptions};

fn start() -> Call {
    call(Call::BATCH_START, &[])
}

fn end() -> Call {
    call(Call::BATCH_END, &[])
}

#[test]
fn batch_rings_each_queue_once() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let threads = rig.threads(3, 0, 128);
        let bytes = pattern(99, 1);
        let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 99]));
        let copies = (0..99).map(|index| copy(threads[index as usize % 3], dst.at(index), src.at(index), 1));
        let list: Vec<Call> = [start()].into_iter().chain(copies).chain([end()]).collect();
        rig.good_calls(&list).unwrap();
        assert_eq!(rig.read(&dst), bytes);
        for thread in threads {
            let queue = rig.comm.thread_statistics(thread).unwrap();
            assert_eq!((queue.tasks, queue.doorbells), (33, 1), "{cpu:?}");
        }
    }
}

#[test]
fn nested_and_unmatched_starts_and_ends_answer_0() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 0, 16)[0];
        let (src, dst) = (rig.buffer(&[9; 3]), rig.buffer(&[0; 3]));
        let byte = |index| copy(thread, dst.at(index), src.at(index), 1);
        // The first end ends the batch; the second finds none, and neither does the one before the start.
        let list = [end(), start(), byte(0), start(), byte(1), end(), byte(2), end()];
        rig.good_calls(&list).unwrap();
        assert_eq!(rig.read(&dst), [9; 3]);
        let queue = rig.comm.thread_statistics(thread).unwrap();
        assert_eq!((queue.tasks, queue.doorbells), (3, 2), "{cpu:?}");
    }
}

#[test]
fn call_that_is_refused_does_not_poison_the_batch() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 1, 16)[0];
        let (src, dst) = (rig.buffer(&[9; 2]), rig.buffer(&[0; 2]));
        let null = hcomm_aicpu::spec::thread::ThreadHandle(0);
        let byte = |thread, index| copy(thread, dst.at(index), src.at(index), 1);
        let list =
            [start(), byte(null, 0), byte(thread, 0), wait(thread, 1, 0), byte(thread, 1), end(), start(), end()];
        assert_eq!(rig.calls(&list).unwrap(), [0, 2, 0, 2, 0, 0, 0, 0], "{cpu:?}");
        assert_eq!(rig.read(&dst), [9; 2]);
    }
}

#[test]
fn synchronize_in_a_batch_rings_for_what_is_staged() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let [first, second] = rig.threads(2, 1, 16)[..] else { unreachable!() };
        let (src, dst) = (rig.buffer(&[9; 2]), rig.buffer(&[0; 2]));
        let list = [
            start(),
            wait(first, 0, 10),
            copy(first, dst.addr(), src.addr(), 1),
            copy(second, dst.at(1), src.at(1), 1),
            record(second, first, 0),
            // What `second` has staged is what `first` waits for.
            call(Call::SYNCHRONIZE, &[first.0]),
            call(Call::JOIN, &[second.0, 10]),
            end(),
        ];
        rig.good_calls(&list).unwrap();
        assert_eq!(rig.read(&dst), [9; 2], "{cpu:?}");
        // A queue whose wait is not released keeps a join until its limit; 0 looks once.
        let list = [wait(first, 0, 0), call(Call::JOIN, &[first.0, 0]), record(second, first, 0)];
        assert_eq!(rig.calls(&list).unwrap(), [0, 9, 0], "{cpu:?}");
    }
}

/// Case 36.
#[test]
fn tasks_of_a_batch_that_is_never_ended_do_not_run() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 0, 16)[0];
        let (src, dst) = (rig.buffer(&[9]), rig.buffer(&[0]));
        let list = [start(), copy(thread, dst.addr(), src.addr(), 1)];
        let error = rig.calls(&list).unwrap_err().to_string();
        assert!(
            error.contains("507018") && error.contains("kernel call_list has left its batch open"),
            "{cpu:?}: {error}"
        );
        assert_eq!(rig.read(&dst), [0], "{cpu:?}");
        // The next kernel starts without a batch, and nothing of the old one comes along.
        rig.good_calls(&[copy(thread, dst.addr(), src.addr(), 1)]).unwrap();
        assert_eq!(rig.read(&dst), [9]);
        assert_eq!(rig.comm.thread_statistics(thread).unwrap().tasks, 1, "{cpu:?}");
    }
}

#[test]
fn batch_left_open_is_a_warning_if_the_list_of_checks_says_so() {
    for cpu in CPUS {
        let rig = Rig::with_options(DeviceOptions {
            cpu,
            checks: Some(Checks::DEFAULT.warning(Check::Sync)),
            ..DeviceOptions::default()
        });
        assert_eq!(rig.calls(&[start()]).unwrap(), [0], "{cpu:?}");
    }
}

/// Kernel `pingpong` over `rounds` rounds, on rings of `depth` entries.
fn pingpong(rig: &Rig, rounds: u64, depth: u32) {
    let [first, second] = rig.threads(2, 2, depth)[..] else { unreachable!() };
    let pair = ControlPair::new(&rig.comm, &rig.stream, first, 1).unwrap();
    let (header, control) = (PingpongParams::HEADER, pair.control());
    let params = PingpongParams { header, first: first.0, second: second.0, rounds, control };
    let kernel = rig.device.load_kernel("pingpong").unwrap();
    let stats = rig.stream.launch_with_control(&pair, &kernel, &params).unwrap();
    rig.stream.synchronize().unwrap();
    assert_eq!(stats.tasks(), 4 * rounds + 2);
    let tasks = [first, second].map(|thread| rig.comm.thread_statistics(thread).unwrap().tasks);
    assert_eq!(tasks, [2 * rounds + 2, 2 * rounds]);
}

#[test]
fn threads_that_wait_for_each_other_go_on_in_a_batch_larger_than_their_rings() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        for (rounds, depth) in [(0, 8), (1, 8), (1000, 2), (1000, 5), (3000, 128)] {
            pingpong(&rig, rounds, depth);
        }
    }
}

#[test]
fn threads_that_wait_for_each_other_go_on_under_any_seed() {
    for seed in 0..20 {
        pingpong(&Rig::with_options(DeviceOptions::deterministic(seed)), 40, 5);
    }
}

/// Kernel `staged_copy` of `len` bytes through `ccl` bytes. Gives the tasks.
fn staged_copy(rig: &Rig, len: usize, ccl: u64, depth: u32) -> u64 {
    let input = rig.threads(1, STAGED_COPY_INPUT_NOTIFIES + 1, depth)[0];
    let output = rig.threads(1, STAGED_COPY_OUTPUT_NOTIFIES, depth)[0];
    let bytes = pattern(len, len as u64);
    let src = rig.buffer(if bytes.is_empty() { &[0] } else { &bytes });
    let dst = rig.buffer(&vec![0xee; len + 64]);
    let buffer = rig.device.malloc(ccl).unwrap();
    let pair = ControlPair::new(&rig.comm, &rig.stream, input, STAGED_COPY_INPUT_NOTIFIES).unwrap();
    let params = StagedCopyParams {
        header: StagedCopyParams::HEADER,
        input: input.0,
        output: output.0,
        user_in: src.addr(),
        user_out: dst.addr(),
        ccl_buf: buffer.addr(),
        ccl_buf_size: ccl,
        len: len as u64,
        control: pair.control(),
    };
    let kernel = rig.device.load_kernel("staged_copy").unwrap();
    let stats = rig.stream.launch_with_control(&pair, &kernel, &params).unwrap();
    rig.stream.synchronize().unwrap();
    let expected = [&bytes[..], &[0xee; 64]].concat();
    assert!(rig.read(&dst) == expected, "{len} bytes through {ccl}");
    stats.tasks()
}

/// Case 45.
#[test]
fn input_larger_than_the_ccl_buffer_goes_through_in_pieces() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        // Halves of 512 KiB: five pieces, ten copies, five "full", three "free" with their waits, and the end.
        assert_eq!(staged_copy(&rig, (2 << 20) + 1, 1 << 20, 2048), 2 * 5 + 2 * 5 + 2 * 3 + 2 + 2, "{cpu:?}");
    }
}

#[test]
fn staged_copy_of_any_length_through_any_buffer() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        for ccl in [1, 2, 3, 63, 128, 1000, 4096] {
            for len in [0, 1, 2, 3, 7, 64, 65, 1000] {
                staged_copy(&rig, len, ccl, 16);
            }
        }
    }
}

#[test]
fn staged_copy_under_any_seed() {
    for seed in 0..20 {
        staged_copy(&Rig::with_options(DeviceOptions::deterministic(seed)), 1000, 100, 4);
    }
}
