//! The race check: small kernels in pairs, one that races and one that does not.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::Call;
use hcomm_testkit::{CPUS, Rig, calls};
use host_stub::{Check, Checks, Cpu, DeviceBuffer, DeviceOptions, Error, Stream};

fn rig(cpu: Cpu) -> Rig {
    Rig::with_options(DeviceOptions {
        cpu,
        checks: Some(Checks::DEFAULT.with(Check::Race)),
        ..DeviceOptions::default()
    })
}

/// Three threads with two notifies, and three buffers of 64 bytes that are written.
struct Ground {
    rig: Rig,
    threads: Vec<ThreadHandle>,
    buffers: Vec<DeviceBuffer>,
}

impl Ground {
    fn new(cpu: Cpu) -> Self {
        let rig = rig(cpu);
        let threads = rig.comm.acquire_threads(Engine::AICPU_TS, 3, 2).unwrap();
        let buffers = (0..3).map(|index| rig.buffer(&[index; 64])).collect();
        Self { rig, threads, buffers }
    }

    /// A copy on thread `thread` of `len` bytes, from and to an offset of a buffer.
    fn copy(&self, thread: usize, to: (usize, u64), from: (usize, u64), len: u64) -> Call {
        let at = |(buffer, offset): (usize, u64)| DeviceAddr(self.buffers[buffer].addr().0 + offset);
        calls::copy(self.threads[thread], at(to), at(from), len)
    }

    fn sum(&self, thread: usize, to: usize, from: usize) -> Call {
        let [to, from] = [to, from].map(|buffer| self.buffers[buffer].addr());
        calls::reduce(self.threads[thread], to, from, 16, DataType::INT32, ReduceOp::SUM)
    }

    /// Thread `to` goes on only when `from` has come here.
    fn order(&self, from: usize, to: usize, index: u32) -> [Call; 2] {
        [calls::record(self.threads[from], self.threads[to], index), calls::wait(self.threads[to], index, 60)]
    }
}

/// What a launch of these calls answers: the text of the race, or `None`.
fn race(ground: &Ground, list: &[Call]) -> Option<String> {
    match ground.rig.good_calls(list) {
        Ok(()) => None,
        Err(Error::Race(race)) => Some(race.to_string()),
        Err(other) => panic!("{other}"),
    }
}

/// Builds the calls of a small kernel.
type Build = fn(&Ground) -> Vec<Call>;

/// Name, the kernel that races with what its report says, and the one that does not.
const PAIRS: &[(&str, Build, &[&str], Build)] = &[
    (
        "two writers",
        |g| vec![g.copy(0, (0, 0), (1, 0), 64), g.copy(1, (0, 0), (2, 0), 64)],
        &["race on 64 bytes", "offset 0 of the allocation of 64 bytes", "the write of task", "sdma copy"],
        |g| {
            let [record, wait] = g.order(0, 1, 0);
            vec![g.copy(0, (0, 0), (1, 0), 64), record, wait, g.copy(1, (0, 0), (2, 0), 64)]
        },
    ),
    (
        "read behind a write",
        |g| vec![g.copy(0, (0, 0), (1, 0), 64), g.copy(1, (2, 0), (0, 8), 32)],
        &["race on 32 bytes", "offset 8 of", "the read of task", "the write of task"],
        |g| {
            let [record, wait] = g.order(0, 1, 1);
            vec![g.copy(0, (0, 0), (1, 0), 64), record, wait, g.copy(1, (2, 0), (0, 8), 32)]
        },
    ),
    (
        "overlap of one byte, and adjacent bytes",
        |g| vec![g.copy(0, (0, 0), (1, 0), 33), g.copy(1, (0, 32), (2, 32), 32)],
        &["race on 1 bytes", "offset 32 of"],
        |g| vec![g.copy(0, (0, 0), (1, 0), 32), g.copy(1, (0, 32), (2, 32), 32)],
    ),
    (
        "two reduces, and two readers",
        |g| vec![g.sum(0, 0, 1), g.sum(1, 0, 2)],
        &["race on 64 bytes", "the write of task"],
        |g| vec![g.copy(0, (1, 0), (0, 0), 64), g.copy(1, (2, 0), (0, 0), 64)],
    ),
    (
        "record before the access, and behind it",
        |g| {
            let [record, wait] = g.order(0, 1, 0);
            vec![record, g.copy(0, (0, 0), (1, 0), 64), wait, g.copy(1, (0, 0), (2, 0), 64)]
        },
        &["race on 64 bytes"],
        |g| {
            let [record, wait] = g.order(0, 1, 0);
            vec![g.copy(0, (0, 0), (1, 0), 64), record, wait, g.copy(1, (0, 0), (2, 0), 64)]
        },
    ),
    (
        "order through a third thread, broken and whole",
        |g| {
            let ([first, second], [third, fourth]) = (g.order(0, 2, 0), g.order(2, 1, 1));
            vec![g.copy(0, (0, 0), (1, 0), 8), third, first, second, fourth, g.copy(1, (0, 0), (2, 0), 8)]
        },
        &["race on 8 bytes"],
        |g| {
            let ([first, second], [third, fourth]) = (g.order(0, 2, 0), g.order(2, 1, 1));
            vec![g.copy(0, (0, 0), (1, 0), 8), first, second, third, fourth, g.copy(1, (0, 0), (2, 0), 8)]
        },
    ),
    (
        "reused notify: the second round without its wait, and with it",
        |g| {
            let ([record, wait], [back, back_wait]) = (g.order(0, 1, 0), g.order(1, 0, 0));
            let round = [g.copy(0, (0, 0), (1, 0), 8), record, wait, g.copy(1, (2, 0), (0, 0), 8)];
            let unordered = [g.copy(0, (0, 0), (1, 0), 8), back, back_wait];
            round.into_iter().chain(unordered).collect()
        },
        &["race on 8 bytes", "the read of task", "the write of task"],
        |g| {
            let ([record, wait], [back, back_wait]) = (g.order(0, 1, 0), g.order(1, 0, 0));
            let round = [g.copy(0, (0, 0), (1, 0), 8), record, wait, g.copy(1, (2, 0), (0, 0), 8), back, back_wait];
            round.into_iter().chain(round).collect()
        },
    ),
    (
        "chunks of different threads, and one thread for all",
        |g| vec![g.copy(0, (0, 0), (1, 0), 64), g.copy(1, (2, 0), (0, 0), 8), g.copy(2, (2, 8), (0, 8), 8)],
        &["race on 8 bytes"],
        |g| vec![g.copy(0, (0, 0), (1, 0), 64), g.copy(0, (2, 0), (0, 0), 8), g.copy(0, (2, 8), (0, 8), 8)],
    ),
];

#[test]
fn racy_kernels_are_reported_and_fixed_ones_are_not() {
    for cpu in CPUS {
        let ground = Ground::new(cpu);
        for (name, racy, texts, fixed) in PAIRS {
            let found = race(&ground, &racy(&ground)).unwrap_or_else(|| panic!("{name}, {cpu:?}: no race"));
            for text in *texts {
                assert!(found.contains(text), "{name}, {cpu:?}: no {text:?} in {found}");
            }
            // Each further synchronise returns one more; afterwards nothing is left.
            while let Err(error) = ground.rig.stream.synchronize() {
                assert!(matches!(error, Error::Race(_)), "{name}, {cpu:?}: {error}");
            }
            assert_eq!(race(&ground, &fixed(&ground)), None, "{name}, {cpu:?}");
        }
    }
}

#[test]
fn report_names_calls_threads_and_allocation() {
    for cpu in CPUS {
        let rig = rig(cpu);
        let line = line!() + 1;
        let threads = rig.comm.acquire_threads(Engine::AICPU_TS, 3, 2).unwrap();
        let buffers = (0..3).map(|index| rig.buffer(&[index; 64])).collect();
        let ground = Ground { rig, threads, buffers };
        let list =
            [ground.copy(0, (0, 0), (1, 0), 8), ground.copy(0, (0, 0), (1, 0), 64), ground.copy(2, (2, 0), (0, 8), 8)];
        let text = race(&ground, &list).unwrap();
        for part in [
            "race on 8 bytes at 0x1",
            "(offset 8 of the allocation of 64 bytes at 0x1",
            ", made at host-stub/testkit/src/rig.rs:",
            &format!("the write of task 2 (sdma copy) on thread 0 of the 3 acquired at tests/races.rs:{line}:"),
            &format!("the read of task 1 (sdma copy) on thread 2 of the 3 acquired at tests/races.rs:{line}:"),
            ", queued at kernel/src/call_list.rs:",
            "in launch 1 of kernel call_list",
            "no notify from thread",
        ] {
            assert!(text.contains(part), "{cpu:?}: no {part:?} in {text}");
        }
    }
}

#[test]
fn races_do_not_depend_on_the_order_that_happened() {
    for seed in 0..20 {
        let options =
            DeviceOptions { checks: Some(Checks::DEFAULT.with(Check::Race)), ..DeviceOptions::deterministic(seed) };
        let rig = Rig::with_options(options);
        let threads = rig.comm.acquire_threads(Engine::AICPU_TS, 3, 2).unwrap();
        let buffers = (0..3).map(|index| rig.buffer(&[index; 64])).collect();
        let ground = Ground { rig, threads, buffers };
        for (name, racy, _, fixed) in PAIRS {
            assert!(race(&ground, &racy(&ground)).is_some(), "{name}, seed {seed}");
            while ground.rig.stream.synchronize().is_err() {}
            assert_eq!(race(&ground, &fixed(&ground)), None, "{name}, seed {seed}");
        }
    }
}

#[test]
fn host_copy_and_free_before_synchronise_are_races_and_behind_it_are_not() {
    for cpu in CPUS {
        let ground = Ground::new(cpu);
        let stream = Stream::new(&ground.rig.device);
        let list = [ground.copy(0, (0, 0), (1, 0), 64)];
        for synchronises in [false, true] {
            let launched = ground.rig.launch_calls_and_drain(&stream, &list);
            if synchronises {
                stream.synchronize().unwrap();
            }
            let copied = ground.rig.device.copy_out(ground.buffers[0].addr(), &mut [0; 8]);
            match (synchronises, copied) {
                (true, Ok(())) => {}
                (false, Err(Error::Race(race))) => {
                    let text = race.to_string();
                    assert!(text.contains("race on 8 bytes") && text.contains("copy by host thread"), "{text}");
                }
                // The task had not begun: then it is the later access, and the synchronise returns the race.
                (false, Ok(())) => assert!(matches!(stream.synchronize(), Err(Error::Race(_))), "{cpu:?}"),
                (_, other) => panic!("{cpu:?}, synchronised {synchronises}: {other:?}"),
            }
            stream.synchronize().unwrap();
            drop(launched);
        }
        let freed = ground.rig.buffer(&[1; 64]);
        let list = [calls::copy(ground.threads[0], freed.addr(), ground.buffers[1].addr(), 64)];
        let launched = ground.rig.launch_calls_and_drain(&stream, &list);
        stream.synchronize().unwrap();
        drop(freed);
        drop(launched);
        stream.synchronize().unwrap();
    }
}

#[test]
fn launches_on_two_streams_race_unless_the_host_synchronises_between() {
    for cpu in CPUS {
        let ground = Ground::new(cpu);
        let streams = [Stream::new(&ground.rig.device), Stream::new(&ground.rig.device)];
        for synchronises in [true, false] {
            let first = ground.rig.launch_calls_and_drain(&streams[0], &[ground.copy(0, (0, 0), (1, 0), 64)]);
            if synchronises {
                streams[0].synchronize().unwrap();
            }
            let second = ground.rig.launch_calls_and_drain(&streams[1], &[ground.copy(1, (0, 0), (2, 0), 64)]);
            let results = [streams[0].synchronize(), streams[1].synchronize()];
            let races = results.iter().filter(|result| matches!(result, Err(Error::Race(_)))).count();
            assert_eq!(races, usize::from(!synchronises), "{cpu:?}: {results:?}");
            drop((first, second));
        }
    }
}
