//! Exploration of schedules: all outcomes are found, one that fails is repeated by its token, and what can't be told apart is tried
//! once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::Arc;

use hcomm_testkit::Rig;
use hcomm_testkit::calls::{copy, record, wait};
use host_stub::explore::{self, Limits, Report, Strategy, try_explore, try_replay};
use host_stub::product::Product;
use host_stub::sim::explore::pct::Pct;
use host_stub::{Check, Checks, Cpu, Device, DeviceOptions, Error, Kernel, Stream};

fn unchecked() -> DeviceOptions {
    DeviceOptions { checks: Some(Checks::NONE), ..DeviceOptions::native() }
}

/// Two threads write one range, with or without a notify between them. Gives the byte that is there in the end.
fn two_writers(options: DeviceOptions, ordered: bool) -> Result<u8, Error> {
    let rig = Rig::with_options(options);
    let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
    let (one, two, dst) = (rig.buffer(&[1; 64]), rig.buffer(&[2; 64]), rig.buffer(&[0; 64]));
    let copies = [copy(first, dst.addr(), one.addr(), 64), copy(second, dst.addr(), two.addr(), 64)];
    match ordered {
        true => rig.good_calls(&[copies[0], record(first, second, 0), wait(second, 0, 0), copies[1]])?,
        false => rig.good_calls(&copies)?,
    }
    Ok(rig.read(&dst)[0])
}

/// Every schedule of `test`, and what it has given.
fn outcomes<T: Ord>(test: impl Fn() -> T) -> (BTreeSet<T>, Report) {
    let seen = RefCell::new(BTreeSet::new());
    let report = explore::exhaustive(Limits::default(), || {
        let outcome = test();
        seen.borrow_mut().insert(outcome);
    });
    (seen.into_inner(), report)
}

/// Case 360.
#[test]
fn exhaustive_finds_both_outcomes_of_two_writers_and_one_once_they_are_ordered() {
    let (seen, report) = outcomes(|| two_writers(unchecked(), false).unwrap());
    assert_eq!((seen, report.is_complete(), report.schedules), ([1, 2].into(), true, 2), "{report:?}");
    let (seen, report) = outcomes(|| two_writers(unchecked(), true).unwrap());
    assert_eq!((seen, report.is_complete(), report.schedules), ([2].into(), true, 1), "{report:?}");
}

/// Case 361.
#[test]
fn race_check_reports_two_writers_in_the_first_schedule() {
    let checks = Checks::NONE.with(Check::Race);
    let options = DeviceOptions { checks: Some(checks), ..DeviceOptions::native() };
    let test = || two_writers(options.clone(), false).map(drop);
    let failure = try_explore(Strategy::Exhaustive, Limits::default(), test).unwrap_err();
    assert_eq!(failure.schedules, 1);
    assert!(failure.text.contains("race"), "{failure}");
}

/// Case 362.
#[test]
fn independent_queues_take_one_schedule() {
    let test = || {
        let rig = Rig::with_options(unchecked());
        let threads = rig.threads(4, 0, 8);
        let (src, dst) = (rig.buffer(&[7; 256]), rig.buffer(&[0; 256]));
        let offset = |queue: usize, task: usize| (queue * 64 + task * 16) as u64;
        let calls =
            (0..4).flat_map(|task| threads.iter().enumerate().map(move |(queue, thread)| (queue, task, *thread)));
        let calls: Vec<_> = calls
            .map(|(queue, task, thread)| {
                let at = |addr: u64| hcomm_aicpu::spec::DeviceAddr(addr + offset(queue, task));
                copy(thread, at(dst.addr().0), at(src.addr().0), 16)
            })
            .collect();
        rig.good_calls(&calls).unwrap();
        rig.read(&dst)
    };
    let (seen, report) = outcomes(test);
    assert_eq!((seen.len(), report.schedules, report.redundant, report.is_complete()), (1, 1, 0, true), "{report:?}");
}

/// Three notifies start three queues: one reads a byte twice, the others write it once each. The planted bug shows if the first read
/// comes between the writes and the second one after them: three steps in a certain order.
fn depth_three() -> Result<(), String> {
    let rig = Rig::with_options(DeviceOptions { record: true, ..unchecked() });
    let threads = rig.threads(4, 1, 8);
    let byte = |value| rig.buffer(&[value; 16]);
    let (x, one, two, first, second) = (byte(0), byte(1), byte(2), byte(0), byte(0));
    let [start, reader, writer, other] = threads[..] else { unreachable!() };
    let starts = [reader, writer, other].map(|thread| record(start, thread, 0));
    let waits = [reader, writer, other].map(|thread| wait(thread, 0, 0));
    let copies = [
        copy(reader, first.addr(), x.addr(), 16),
        copy(reader, second.addr(), x.addr(), 16),
        copy(writer, x.addr(), one.addr(), 16),
        copy(other, x.addr(), two.addr(), 16),
    ];
    rig.good_calls(&[&waits[..], &copies[..], &starts[..]].concat()).unwrap();
    let read = (rig.read(&first)[0], rig.read(&second)[0]);
    TRACE.with_borrow_mut(|trace| *trace = rig.device.trace().to_string());
    if read == (1, 2) { Err(format!("read {read:?}")) } else { Ok(()) }
}

thread_local! {
    /// Of the last run of [`depth_three`].
    static TRACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Case 363.
#[test]
fn pct_finds_a_bug_of_depth_three_within_its_bound_and_the_token_repeats_it() {
    let measured = explore::pct(1, 1, || {
        // The first schedule has no change of priority.
        let _ = depth_three();
    });
    let bound = Pct::schedules_for_half(measured.actors as u64, measured.steps, 3);
    let strategy = Strategy::Pct { depth: 3, first: 0, schedules: bound };
    let failure = try_explore(strategy, Limits::default(), depth_three).unwrap_err();
    assert!(failure.text.contains("read (1, 2)"), "{failure}");
    let trace = TRACE.take();
    for run in 0..100 {
        let repeated = try_replay(&failure.token, depth_three).unwrap_err().to_string();
        assert!(repeated.contains("read (1, 2)"), "run {run}: {repeated}");
        assert!(TRACE.take() == trace, "run {run} has another trace");
    }
}

/// Case 364.
#[test]
fn list_of_decisions_repeats_what_exhaustive_has_found() {
    let test = || match two_writers(unchecked(), false).unwrap() {
        1 => Err("the first writer was the last one"),
        _ => Ok(()),
    };
    let failure = try_explore(Strategy::Exhaustive, Limits::default(), test).unwrap_err();
    assert!(failure.token.starts_with("s1.d."), "{}", failure.token);
    for _ in 0..10 {
        assert!(
            try_replay(&failure.token, test).unwrap_err().to_string().contains("the first writer was the last one")
        );
    }
    let other = DeviceOptions { queue_depth: 64, ..unchecked() };
    let error = try_replay(&failure.token, || two_writers(other.clone(), false).map(drop)).unwrap_err().to_string();
    assert!(error.contains("other options of the devices"), "{error}");
    let newer = failure.token.replacen("s1", "s2", 1);
    let error = try_replay(&newer, test).unwrap_err().to_string();
    assert!(error.contains("version 2 of the choice points"), "{error}");
}

extern "C-unwind" fn looks_at_the_clock(_args: *const c_void) -> u32 {
    let now = || hcomm_aicpu::port::Platform::now_us(&hcomm_aicpu::port::hooks::Hooks);
    let start = now();
    while now() - start < 3000 {}
    0
}

/// Case 365.
#[test]
fn kernel_that_reads_the_clock_in_a_loop_makes_it_not_complete() {
    let report = explore::exhaustive(Limits::default(), || {
        let rig = Rig::with_options(unchecked());
        rig.stream.launch_bytes(&Kernel::native("clock", looks_at_the_clock), &[]).unwrap();
        rig.stream.synchronize().unwrap();
    });
    assert_eq!(report.incomplete.as_deref(), Some("a kernel reads the clock in a loop"));
}

/// Case 366.
#[test]
fn deadlock_is_a_failure() {
    // Each thread waits for the other one before it records.
    let test = || {
        let rig = Rig::with_options(unchecked());
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let lists = [(first, second), (second, first)].map(|(own, other)| [wait(own, 0, 0), record(own, other, 0)]);
        rig.good_calls(lists.as_flattened())
    };
    let failure = try_explore(Strategy::Random { first: 0, schedules: 1 }, Limits::default(), test).unwrap_err();
    assert!(failure.text.contains("deadlock: "), "{failure}");
}

/// Case 367.
#[test]
fn host_threads_take_part() {
    // Each thread fills the same bytes by a stream of its own.
    let test = || {
        let product = Product::from_key("atlas-800t-a2").unwrap();
        let rig = Arc::new(Rig::with_options(DeviceOptions { product, ..unchecked() }));
        let dst = Arc::new(rig.buffer(&[0; 16]));
        let sources = [1, 2].map(|value| rig.buffer(&[value; 16]));
        let threads = sources.map(|source| {
            let (rig, dst) = (Arc::clone(&rig), Arc::clone(&dst));
            explore::spawn(move || {
                let stream = Stream::new(&rig.device);
                stream.copy(dst.addr(), source.addr(), 16).unwrap();
                stream.synchronize().unwrap();
                source
            })
        });
        let _sources = threads.map(|thread| thread.join().unwrap());
        rig.read(&dst)[0]
    };
    let (seen, report) = outcomes(test);
    assert_eq!((seen, report.is_complete()), ([1, 2].into(), true), "{report:?}");
}

#[test]
fn another_cpu_is_refused() {
    let failure = try_explore(Strategy::Random { first: 0, schedules: 1 }, Limits::default(), || {
        Device::open(DeviceOptions { cpu: Cpu::Qemu, ..DeviceOptions::default() }).map(drop)
    });
    assert!(failure.unwrap_err().text.contains("native cpu only"));
}
