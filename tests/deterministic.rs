//! Deterministic mode: same seed, same trace; time is virtual; nothing hangs.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::{CopyListParams, ListedCopy};
use hcomm_testkit::calls::{copy, record, wait};
use hcomm_testkit::{LIMIT, Rig, at, pattern};
use host_stub::sim::event::What;
use host_stub::sim::fault::{Fault, FaultPlan, FaultRule};
use host_stub::{Check, Checks, Cpu, Device, DeviceOptions, Error, Kernel, Stream};
use zerocopy::IntoBytes;

/// Two kernels at the same time, each with copies on a thread of its own and on one that they share. Gives the trace.
fn two_kernels(seed: u64) -> String {
    let rig = Rig::with_options(DeviceOptions::deterministic(seed));
    let other = Stream::new(&rig.device);
    let threads = [4, 4, 8].map(|depth| rig.thread(depth).0);
    let bytes = pattern(400, 1);
    let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 400]));
    let kernel = rig.device.load_kernel("copy_list").unwrap();
    let mut lists = Vec::new();
    for (which, stream) in [&rig.stream, &other].into_iter().enumerate() {
        let copy = |index: usize| {
            let thread = threads[if index.is_multiple_of(3) { 2 } else { which }];
            let offset = which * 200 + index * 10;
            ListedCopy { thread, dst: at(&dst, offset), src: at(&src, offset), len: 10 }
        };
        let list: Vec<_> = (0..20).map(copy).collect();
        let entries = rig.buffer(list.as_bytes());
        let params = CopyListParams { header: CopyListParams::HEADER, list: entries.addr(), count: 20, batch: 0 };
        stream.launch_and_drain(&kernel, &params).unwrap();
        lists.push(entries);
    }
    rig.stream.synchronize().unwrap();
    other.synchronize().unwrap();
    assert!(rig.read(&dst) == bytes, "seed {seed}: a copy is wrong");
    rig.device.trace().to_string()
}

/// Two threads write one range, with or without a notify between them. Gives what is there in the end.
fn two_writers(seed: u64, ordered: bool) -> Vec<u8> {
    let checks = if ordered { Checks::DEFAULT } else { Checks::DEFAULT.without(Check::Race) };
    let rig = Rig::with_options(DeviceOptions { checks: Some(checks), ..DeviceOptions::deterministic(seed) });
    let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
    let (one, two, dst) = (rig.buffer(&[1; 64]), rig.buffer(&[2; 64]), rig.buffer(&[0; 64]));
    let copies = [copy(first, dst.addr(), one.addr(), 64), copy(second, dst.addr(), two.addr(), 64)];
    match ordered {
        true => rig.good_calls(&[copies[0], record(first, second, 0), wait(second, 0, 0), copies[1]]).unwrap(),
        false => rig.good_calls(&copies).unwrap(),
    }
    rig.read(&dst)
}

/// Case 42.
#[test]
fn writers_without_a_notify_end_differently_under_some_seeds() {
    let firsts = (0..50).filter(|seed| two_writers(*seed, false) == [1; 64]).count();
    assert!((1..50).contains(&firsts), "the first writer was the last one under {firsts} of 50 seeds");
    for seed in 0..50 {
        assert_eq!(two_writers(seed, true), [2; 64], "seed {seed}");
    }
}

#[test]
fn same_seed_gives_the_same_trace() {
    for seed in 0..20 {
        let (first, second) = (two_kernels(seed), two_kernels(seed));
        let differing = first.lines().zip(second.lines()).find(|(first, second)| first != second);
        assert!(first == second, "seed {seed}: {differing:?}");
        assert_eq!(first.matches("task ended").count(), 40, "seed {seed}");
    }
}

#[test]
fn different_seeds_interleave_two_kernels_differently() {
    let mut orders: Vec<String> = (0..10)
        .map(|seed| {
            let doorbells = |line: &&str| line.contains(" core ") && line.contains("doorbell");
            let who = |line: &str| line.split_once(" core ").map_or_else(String::new, |(_, rest)| rest[..1].to_owned());
            two_kernels(seed).lines().filter(doorbells).map(who).collect()
        })
        .collect();
    for order in &orders {
        assert_eq!((order.matches('0').count(), order.matches('1').count()), (20, 20));
    }
    let switches = |order: &String| order.contains("01") && order.contains("10");
    assert!(orders.iter().any(switches), "kernels take turns: {orders:?}");
    orders.sort();
    orders.dedup();
    assert!(orders.len() >= 8, "only {} different orders from 10 seeds", orders.len());
}

#[test]
fn every_task_names_the_launch_that_queued_it() {
    let trace = two_kernels(5);
    let started: Vec<&str> = trace.lines().filter(|line| line.contains("task began")).collect();
    assert_eq!(started.len(), 40);
    for line in started {
        // Kernel 1 copies bytes 0..200 of the buffers, kernel 2 those from 200 on.
        let len_and_after = line.split_once(" len 10 by launch ").expect("an origin").1;
        assert!(len_and_after == "1 core 0" || len_and_after == "2 core 1", "{line}");
    }
}

#[test]
fn trace_tells_a_launch_from_its_start_to_its_end() {
    let rig = Rig::with_options(DeviceOptions::deterministic(1));
    let thread = rig.thread(8);
    let buffer = rig.buffer(&[1; 64]);
    let copy = ListedCopy { thread: thread.0, dst: at(&buffer, 32), src: at(&buffer, 0), len: 16 };
    rig.copy_list(&[copy], false).unwrap();
    let trace = rig.device.trace();
    assert!(trace.events.is_sorted_by_key(|event| event.at), "time goes on");
    let text = trace.to_string();
    let facts = [
        "host: launch queued: stream 1 kernel copy_list",
        "stars: launch 1 started: stream 1 kernel copy_list core 0",
        "core 0: doorbell: sq 0 tail 1",
        "sdma: task began: stream 2 sq 0 slot 0 task 0x0 sdma copy dst hbm+",
        "sdma: task ended: stream 2 sq 0 slot 0 task 0x0",
        "stars: head published: sq 0 head 1",
        "stars: launch 1 ended",
    ];
    let mut rest = text.as_str();
    for fact in facts {
        rest = rest.split_once(fact).unwrap_or_else(|| panic!("no {fact:?} in the rest of\n{text}")).1;
    }
    assert!(text.contains("core 0: launch 1 kernel returned: code 0"));
}

#[test]
fn events_are_recorded_also_without_a_seed() {
    let rig = Rig::with_options(DeviceOptions { record: true, ..DeviceOptions::native() });
    let thread = rig.thread(8);
    let buffer = rig.buffer(&[1; 64]);
    let copy = ListedCopy { thread: thread.0, dst: at(&buffer, 32), src: at(&buffer, 0), len: 16 };
    rig.copy_list(&[copy], false).unwrap();
    let text = rig.device.trace().to_string();
    assert!(text.contains(" len 16 by launch 1 core 0") && text.contains("launch 1 ended"), "{text}");
    let silent = Rig::new(Cpu::Native);
    silent.copy_list(&[ListedCopy { len: 0, ..copy }], false).unwrap_err();
    assert_eq!(silent.device.trace().events, []);
}

#[test]
fn deterministic_mode_is_refused_with_qemu() {
    let options = DeviceOptions { cpu: Cpu::Qemu, deterministic: Some(1), ..DeviceOptions::default() };
    assert!(matches!(Device::open(options), Err(Error::NotDeterministic)));
}

extern "C-unwind" fn never_returns(_args: *const c_void) -> u32 {
    loop {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn kernel_that_never_calls_the_device_is_given_up() {
    let options = DeviceOptions { watchdog: Duration::from_millis(200), ..DeviceOptions::deterministic(3) };
    let rig = Rig::with_options(options);
    rig.stream.launch_bytes(&Kernel::native("never_returns", never_returns), &[]).unwrap();
    let error = rig.stream.synchronize().unwrap_err();
    let text = "kernel never_returns faulted: it has not called the device for 200ms of real time";
    assert!(error.to_string().contains(text), "{error}");
    assert!(rig.device.trace().to_string().contains(text));
}

extern "C-unwind" fn looks_at_the_clock_without_end(_args: *const c_void) -> u32 {
    loop {
        let _ = hcomm_aicpu::port::Platform::now_us(&hcomm_aicpu::port::hooks::Hooks);
    }
}

#[test]
fn kernel_that_polls_without_end_runs_out_of_virtual_time() {
    let options = DeviceOptions { launch_timeout: Some(Duration::from_secs(100)), ..DeviceOptions::deterministic(3) };
    let started = Instant::now();
    let rig = Rig::with_options(options);
    rig.stream.launch_bytes(&Kernel::native("polls", looks_at_the_clock_without_end), &[]).unwrap();
    let error = rig.stream.synchronize().unwrap_err().to_string();
    assert!(error.contains("507017") && error.contains("kernel polls has not returned within 100s"), "{error}");
    assert!(started.elapsed() < LIMIT, "{:?}", started.elapsed());
}

extern "C-unwind" fn sleeps_a_day(_args: *const c_void) -> u32 {
    use embedded_hal::delay::DelayNs;
    use hcomm_aicpu::port::Platform;
    use hcomm_aicpu::port::hooks::Hooks;
    Hooks.delay().delay_ms(86_400_000);
    (Hooks.now_us() / 1_000_000 != 86_400).into()
}

#[test]
fn a_day_of_virtual_time_takes_no_time() {
    let options =
        DeviceOptions { launch_timeout: Some(Duration::from_secs(90_000)), ..DeviceOptions::deterministic(3) };
    let started = Instant::now();
    let rig = Rig::with_options(options);
    rig.stream.launch_bytes(&Kernel::native("sleeps", sleeps_a_day), &[]).unwrap();
    rig.stream.synchronize().unwrap();
    assert!(started.elapsed() < LIMIT, "{:?}", started.elapsed());
}

#[test]
fn host_limit_is_virtual_too() {
    let rig = Rig::with_options(DeviceOptions::deterministic(4));
    let started = Instant::now();
    rig.stream.launch_bytes(&Kernel::native("sleeps", sleeps_a_day), &[]).unwrap();
    let error = rig.stream.synchronize_for(Duration::from_secs(1000)).unwrap_err();
    assert!(matches!(error, Error::Timeout { outstanding: 1, .. }), "{error}");
    assert!(started.elapsed() < LIMIT, "{:?}", started.elapsed());
}

#[test]
fn several_host_threads_may_share_a_device() {
    let rig = Rig::with_options(DeviceOptions::deterministic(6));
    let bytes = pattern(1000, 2);
    let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 1000]));
    let kernel = rig.device.load_kernel("copy_list").unwrap();
    std::thread::scope(|scope| {
        for part in 0..4_usize {
            let (rig, src, dst, kernel) = (&rig, &src, &dst, &kernel);
            scope.spawn(move || {
                let thread = rig.thread(4).0;
                let stream = Stream::new(&rig.device);
                let copy = |index: usize| {
                    let offset = part * 250 + index * 10;
                    ListedCopy { thread, dst: at(dst, offset), src: at(src, offset), len: 10 }
                };
                let list: Vec<_> = (0..25).map(copy).collect();
                let entries = rig.buffer(list.as_bytes());
                let (header, list) = (CopyListParams::HEADER, entries.addr());
                stream.launch_and_drain(kernel, &CopyListParams { header, list, count: 25, batch: 0 }).unwrap();
                stream.synchronize().unwrap();
            });
        }
    });
    assert!(rig.read(&dst) == bytes);
}

#[test]
fn full_ring_of_a_dead_queue_costs_its_1856_seconds_in_virtual_time_alone() {
    let faults = FaultPlan::one(FaultRule::new(Fault::DeadQueue));
    let task_timeout = Duration::from_secs(5000);
    let rig = Rig::with_options(DeviceOptions { faults, task_timeout, ..DeviceOptions::deterministic(7) });
    let buffer = rig.buffer(&[1; 64]);
    let copy = ListedCopy { thread: rig.thread(2).0, dst: at(&buffer, 32), src: at(&buffer, 0), len: 16 };
    let started = Instant::now();
    // The launch then waits for the first copy, which never runs.
    let error = rig.copy_list(&[copy, copy], false).unwrap_err().to_string();
    let real = started.elapsed();
    assert!(error.contains("5000s"), "{error}");
    let trace = rig.device.trace();
    let returned =
        trace.events.iter().find(|event| matches!(event.what, What::LaunchReturned { code: 9, .. })).unwrap();
    assert_eq!(returned.at.as_secs(), 1856);
    assert!(real < LIMIT, "{real:?} of real time");
}
