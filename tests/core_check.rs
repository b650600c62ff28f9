//! The check `core`: what kernels' own code loads and stores. Each finding names function, line, bytes and allocation.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::{OwnAccessParams, OwnStep};
use hcomm_testkit::{Rig, at, pattern};
use host_stub::{Check, Checks, Cpu, DeviceBuffer, DeviceOptions, Error};
use zerocopy::IntoBytes;

fn rig(checks: &str) -> Rig {
    Rig::with_options(DeviceOptions { checks: Some(checks.parse().unwrap()), ..DeviceOptions::default() })
}

fn thread(rig: &Rig) -> ThreadHandle {
    rig.comm.acquire_threads(Engine::AICPU_TS, 1, 0).unwrap()[0]
}

const NONE: ThreadHandle = ThreadHandle(0);

fn step(kind: u64, thread: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64) -> OwnStep {
    OwnStep { kind, thread: thread.0, dst, src, len }
}

fn store(dst: DeviceAddr, len: u64) -> OwnStep {
    step(OwnStep::STORE, NONE, dst, dst, len)
}

fn load(src: DeviceAddr, len: u64) -> OwnStep {
    step(OwnStep::LOAD, NONE, src, src, len)
}

fn copy(thread: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64) -> OwnStep {
    step(OwnStep::COPY, thread, dst, src, len)
}

fn synchronize(thread: ThreadHandle) -> OwnStep {
    step(OwnStep::SYNCHRONIZE, thread, DeviceAddr(0), DeviceAddr(0), 0)
}

/// Launches kernel `own_access` with these steps, drains it and synchronises.
fn run(rig: &Rig, steps: &[OwnStep]) -> Result<(), Error> {
    let list = rig.buffer(steps.as_bytes());
    let params = OwnAccessParams { header: OwnAccessParams::HEADER, steps: list.addr(), count: steps.len() as u64 };
    rig.stream.launch_and_drain(&rig.device.load_kernel("own_access").unwrap(), &params).unwrap();
    rig.stream.synchronize()
}

/// What a launch of these steps answers, with all checks: the finding is of the check `core`.
#[track_caller]
fn finding(rig: &Rig, steps: &[OwnStep]) -> String {
    let error = run(rig, steps).expect_err("a finding");
    assert!(matches!(error, Error::StrayAccess(_) | Error::Race(_) | Error::Uninitialised(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("device error 507001: "), "{text}");
    text
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

/// A function of the kernel that accesses memory, as a report names it behind its line.
fn code(function: &str) -> String {
    format!(" ({function}) in launch ")
}

fn two_buffers(rig: &Rig) -> [DeviceBuffer; 2] {
    [rig.buffer(&pattern(64, 1)), rig.buffer(&pattern(64, 2))]
}

/// Case 255.
#[test]
fn store_outside_every_allocation_is_reported() {
    let rig = rig("core");
    let [first, second] = two_buffers(&rig);
    let behind = at(&first, 64 + 40);
    assert!(behind.0 < second.addr().0);
    let text = finding(&rig, &[store(behind, 8)]);
    let place = format!("writes 8 bytes at {:#x}: {:#x} was never allocated; 40 bytes after", behind.0, behind.0);
    let made = format!("the allocation of 64 bytes at {:#x}, made at host-stub/testkit/src/rig.rs:", first.addr().0);
    has(&text, &["the code of kernel own_access itself at kernel/src/own_access.rs:", &code("store"), &place]);
    has(&text, &[&made]);
    assert_eq!(rig.read(&first), pattern(64, 1));
    // The device works on, and nothing is told twice.
    run(&rig, &[store(first.addr(), 64)]).unwrap();
}

/// Case 256.
#[test]
fn store_over_the_end_of_an_allocation_is_reported_and_a_load_too() {
    let rig = rig("core");
    let [first, _second] = two_buffers(&rig);
    let text = finding(&rig, &[store(first.addr(), 65)]);
    // At once, or after the host has seen the first part of it.
    has(&text, &[&code("store"), " writes ", "the allocation"]);
    assert!(text.contains(" leaves its allocation ") || text.contains(" was never allocated; 0 bytes after"), "{text}");
    let text = finding(&rig, &[load(at(&first, 60), 8)]);
    has(&text, &[&code("load"), "reads ", " in launch 2 "]);
}

/// Case 257.
#[test]
fn load_of_memory_that_was_never_written_is_reported() {
    let rig = rig("core");
    for len in [4096, 4 << 20] {
        let buffer = rig.device.malloc(len).unwrap();
        rig.device.copy_in(buffer.addr(), &[1; 16]).unwrap();
        run(&rig, &[store(at(&buffer, 16), 16), load(buffer.addr(), 32)]).unwrap();
        let text = finding(&rig, &[load(at(&buffer, 24), 16)]);
        let bytes = format!("uses 8 bytes at {:#x} (offset 32 of the allocation of {len} bytes", at(&buffer, 32).0);
        has(&text, &["uninitialised read: the code of kernel own_access itself", &bytes, "that were never written"]);
        has(&text, &["at kernel/src/own_access.rs:", "(load)", "made at tests/core_check.rs:"]);
        // Once.
        run(&rig, &[load(buffer.addr(), 40)]).unwrap();
    }
}

/// Case 258.
#[test]
fn access_of_freed_memory_is_reported() {
    let rig = rig("core,free");
    let freed = rig.device.allocate(4096).unwrap();
    rig.device.free(freed).unwrap();
    let text = finding(&rig, &[load(freed, 8)]);
    has(
        &text,
        &[
            &code("load"),
            "reads 8 bytes at ",
            "which was freed at tests/core_check.rs:",
            " before the first launch was queued",
        ],
    );
    let text = finding(&rig, &[store(freed, 8)]);
    has(
        &text,
        &[&code("store"), "writes 8 bytes at ", "which was freed at tests/core_check.rs:", " before the first launch"],
    );
}

/// Case 259.
#[test]
fn access_that_nothing_orders_behind_a_task_is_reported_in_either_order() {
    for (steps, names) in [
        // The load may see the bytes before the copy.
        (
            &(|t, a, b| vec![copy(t, a, b, 64), load(a, 16)]) as &dyn Fn(_, DeviceAddr, DeviceAddr) -> Vec<OwnStep>,
            "load",
        ),
        // The copy may read what is stored behind its call.
        (&|t, a, b| vec![copy(t, a, b, 64), store(b, 8)], "store"),
        // The first task alone is drained.
        (&|t, a, b| vec![copy(t, a, b, 8), synchronize(t), copy(t, a, b, 64), store(a, 64)], "store"),
    ] {
        let rig = rig("core");
        let ([first, second], thread) = (two_buffers(&rig), thread(&rig));
        let text = finding(&rig, &steps(thread, first.addr(), second.addr()));
        has(&text, &["race on ", "by the code of kernel own_access itself at kernel/src/own_access.rs:"]);
        has(&text, &[&code(names), "task ", "(sdma copy) on thread 0 of the 1 acquired at tests/core_check.rs:"]);
        has(&text, &["queued at kernel/src/own_access.rs:", "HcommThreadSynchronize"]);
    }
}

/// Case 260.
#[test]
fn load_that_polls_for_a_task_is_a_warning() {
    let rig = rig("core");
    let ([first, second], thread) = (two_buffers(&rig), thread(&rig));
    let poll = step(OwnStep::POLL, NONE, first.addr(), first.addr(), 4);
    run(&rig, &[copy(thread, first.addr(), second.addr(), 64), poll]).unwrap();
    let warnings = rig.device.timeline().errors;
    assert!(warnings.iter().any(|(_, text)| text.starts_with("polling on 4 bytes at ")), "{warnings:?}");
    // It orders nothing: what the kernel reads behind it races.
    let text = finding(&rig, &[copy(thread, first.addr(), second.addr(), 64), poll, load(at(&first, 8), 32)]);
    has(&text, &["race on 32 bytes", &code("load")]);
}

/// Case 261.
#[test]
fn correct_kernels_are_clean_under_all_checks() {
    let rig = rig("all,core");
    let (len, thread) = (4096, thread(&rig));
    let floats = |from: usize| -> Vec<u8> { (from..from + len / 4).flat_map(|n| (n as f32).to_le_bytes()).collect() };
    let (one, two) = (rig.buffer(&floats(0)), rig.buffer(&floats(7)));
    let [sum, out] = [(); 2].map(|()| rig.device.malloc(len as u64).unwrap());
    let [a, b, sum_at, out_at] = [&one, &two, &sum, &out].map(|buffer| buffer.addr());
    for _ in 0..3 {
        run(
            &rig,
            &[
                copy(thread, sum_at, a, len as u64),
                synchronize(thread),
                step(OwnStep::ADD, NONE, sum_at, b, len as u64),
                copy(thread, out_at, sum_at, len as u64),
            ],
        )
        .unwrap();
    }
    let expected: Vec<u8> = (0..len / 4).flat_map(|n| ((2 * n + 7) as f32).to_le_bytes()).collect();
    assert_eq!(rig.read(&out), expected);
    // Own stores into memory that nothing else has written, then a task, then a copy out.
    let [fresh, copied] = [(); 2].map(|()| rig.device.malloc(4 << 20).unwrap());
    run(&rig, &[store(fresh.addr(), 100), copy(thread, copied.addr(), fresh.addr(), 100)]).unwrap();
    let mut bytes = [0; 100];
    rig.device.copy_out(copied.addr(), &mut bytes).unwrap();
    assert_eq!(bytes, std::array::from_fn(|index| index as u8));
    rig.device.check_findings().unwrap();
}

/// Case 262.
#[test]
fn own_stores_make_the_init_check_exact() {
    let rig = rig("init,core");
    let thread = thread(&rig);
    // A hole: without the check the zeros of the page that is touched would count as perhaps written.
    let [src, dst] = [(); 2].map(|()| rig.device.malloc(4 << 20).unwrap());
    run(&rig, &[store(src.addr(), 8), copy(thread, dst.addr(), src.addr(), 16)]).unwrap();
    let error = rig.device.copy_out(dst.addr(), &mut [0; 16]).unwrap_err().to_string();
    let bytes = format!("uses 8 bytes at {:#x}", at(&dst, 8).0);
    has(&error, &[&bytes, "that a task has copied there from memory that was never written"]);
}

/// Case 263.
#[test]
fn core_is_refused_where_it_is_named_and_left_out_of_all_on_other_cpus() {
    for cpu in [Cpu::Native, Cpu::Linux] {
        let options = |checks: Checks| DeviceOptions { cpu, checks: Some(checks), ..DeviceOptions::default() };
        let error = host_stub::Device::open(options(Checks::NONE.with(Check::Core))).err().unwrap().to_string();
        has(&error, &["the check core can't be made on this ai cpu"]);
    }
    let rig = Rig::with_options(DeviceOptions { checks: Some(Checks::ALL), ..DeviceOptions::native() });
    let [first, _second] = two_buffers(&rig);
    run(&rig, &[store(first.addr(), 8)]).unwrap();
}

/// Case 264.
#[test]
fn many_accesses_do_not_get_lost() {
    let rig = rig("core");
    // More than the ring has room for: no two of them are neighbours.
    let (count, thread) = (20_000, thread(&rig));
    let (data, target) = (rig.buffer(&vec![1; count * 128]), rig.buffer(&[0; 16]));
    let mut steps: Vec<_> = (0..count).map(|index| load(at(&data, index * 128), 4)).collect();
    run(&rig, &steps).unwrap();
    // The last of them is known to be in front of the copy, and the one behind it races.
    let last = at(&data, (count - 1) * 128);
    steps.push(copy(thread, last, target.addr(), 16));
    run(&rig, &steps).unwrap();
    steps.push(load(last, 12));
    has(&finding(&rig, &steps), &["race on 12 bytes"]);
}
