//! Planted bugs in an all-gather of four threads whose calls a kernel in Rust makes: each is found on its first run, natively and in
//! the image, and nothing else is. The same in C: `tests/c_races.rs`.

use std::mem::ManuallyDrop;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::Call;
use hcomm_testkit::calls::{copy, record, reduce, wait};
use hcomm_testkit::{CPUS, Rig, pattern, wait_until};
use host_stub::sim::check::history::Kind;
use host_stub::sim::check::report::RacingAccess;
use host_stub::{Cpu, Error};

const RANKS: usize = 4;
const LEN: u64 = 1000;
const ALL: u64 = LEN * RANKS as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// The main thread does not wait for phase 1 of worker 3.
    NoJoin,
    /// Worker 3 does not wait for phase 2.
    NoBegin,
    /// What rank 3 sends was never written.
    NeverWritten,
    /// The accumulator of a sum was never set.
    NeverSet,
    /// The result is freed before the launch.
    Freed,
    /// It is freed before the synchronise, when all has run.
    FreedLate,
    /// The host reads a part of it before the synchronise, when all has run.
    ReadEarly,
}

/// The ranks of one device: buffers stand for them.
struct Gather {
    rig: Rig,
    threads: Vec<ThreadHandle>,
    send: Vec<DeviceAddr>,
    ccl: DeviceAddr,
    recv: DeviceAddr,
    sum: DeviceAddr,
}

impl Gather {
    fn new(cpu: Cpu) -> Self {
        let rig = Rig::new(cpu);
        let threads = rig.threads(RANKS as u32, 7, 64);
        let allocate = |len| rig.device.allocate(len).unwrap();
        let send = (0..RANKS).map(|_| allocate(LEN)).collect();
        let (ccl, recv, sum) = (allocate(ALL), allocate(ALL), allocate(LEN));
        rig.device.copy_in(ccl, &[0; ALL as usize]).unwrap();
        Self { rig, threads, send, ccl, recv, sum }
    }

    /// What the kernel calls. Chunk *n* is written by thread *n* and read by the next one.
    fn calls(&self, bug: Bug) -> Vec<Call> {
        let part = |addr: DeviceAddr, rank: usize| DeviceAddr(addr.0 + LEN * rank as u64);
        let thread = |rank: usize| self.threads[rank % RANKS];
        let notify = |from, to, index| [record(thread(from), thread(to), index), wait(thread(to), index, 60)];
        let mut list: Vec<_> =
            (0..RANKS).map(|rank| copy(thread(rank), part(self.ccl, rank), self.send[rank], LEN)).collect();
        let is_joined = |worker: &usize| !(bug == Bug::NoJoin && *worker == 3);
        let begins = |worker: &usize| !(bug == Bug::NoBegin && *worker == 3);
        list.extend((1..RANKS).filter(is_joined).flat_map(|worker| notify(worker, 0, worker as u32)));
        list.extend((1..RANKS).filter(begins).flat_map(|worker| notify(0, worker, 1)));
        list.extend((0..RANKS).map(|rank| copy(thread(rank + 1), part(self.recv, rank), part(self.ccl, rank), LEN)));
        if bug == Bug::NeverSet {
            list.extend((1..RANKS).flat_map(|worker| notify(worker, 0, 3 + worker as u32)));
            list.push(reduce(thread(0), self.sum, self.recv, LEN / 4, DataType::INT32, ReduceOp::SUM));
        }
        list
    }

    /// Runs once. Gives what is found, one line each.
    fn run(&self, bug: Bug) -> Vec<String> {
        let Self { rig, threads, send, recv, .. } = self;
        for (rank, addr) in send.iter().enumerate() {
            if bug != Bug::NeverWritten || rank != 3 {
                rig.device.copy_in(*addr, &pattern(LEN as usize, rank as u64)).unwrap();
            }
        }
        let mut found = Vec::new();
        let mut note = |result: Result<(), Error>| match result {
            Ok(()) => false,
            Err(Error::AlreadyFailed(_)) => false,
            Err(error) => {
                found.push(line(&error));
                true
            }
        };
        if bug == Bug::Freed {
            rig.device.free(*recv).unwrap();
        }
        let ran = || threads.iter().map(|thread| rig.comm.thread_statistics(*thread).unwrap().tasks).sum::<u64>();
        let (list, before) = (self.calls(bug), ran());
        let launched = ManuallyDrop::new(rig.launch_calls_and_drain(&rig.stream, &list));
        if matches!(bug, Bug::FreedLate | Bug::ReadEarly) {
            assert!(wait_until(|| ran() - before == list.len() as u64), "{bug:?}: not all tasks have run");
        }
        match bug {
            Bug::FreedLate => _ = note(rig.device.free(*recv)),
            Bug::ReadEarly => _ = note(rig.device.copy_out(DeviceAddr(recv.0 + LEN), &mut [0; 8])),
            _ => {}
        }
        while note(rig.stream.synchronize()) {}
        if !matches!(bug, Bug::Freed | Bug::FreedLate) {
            note(rig.device.copy_out(*recv, &mut [0; ALL as usize]));
            drop(ManuallyDrop::into_inner(launched));
        }
        while note(rig.device.check_findings()) {}
        found.sort();
        found
    }
}

/// `write thread 3`, `read host`.
fn access(access: &RacingAccess) -> String {
    let verb = if access.kind == Kind::Read { "read" } else { "write" };
    let place = access.place.text.as_deref().unwrap_or("an unknown place");
    match &access.thread {
        Some(thread) => {
            assert!(place.starts_with("kernel/src/call_list.rs:"), "{place}");
            assert_eq!(thread.count, RANKS);
            format!("{verb} thread {}", thread.index)
        }
        None => {
            assert!(place.starts_with("tests/gather_races.rs:"), "{place}");
            format!("{verb} host")
        }
    }
}

/// What a finding says, in short.
fn line(error: &Error) -> String {
    match error {
        Error::Race(race) => {
            let offset = race.range.addr - race.allocation.as_ref().unwrap().range.addr;
            let mut both = [access(&race.first), access(&race.second)];
            both.sort();
            format!("race {} at {offset}, {} times: {}, {}", race.range.len, race.count, both[0], both[1])
        }
        Error::Uninitialised(read) => {
            let range = &read.found.range;
            let offset = range.start - read.allocation.as_ref().unwrap().range.addr;
            format!("uninitialised {} at {offset}, carried {}", range.end - range.start, read.found.is_carried)
        }
        other => {
            let text = other.to_string();
            let place = "which was freed at tests/gather_races.rs:";
            if text.contains(place) { "freed".to_owned() } else { text }
        }
    }
}

/// Case 232, 233, 234, 235, 236, 237.
#[test]
fn planted_bugs_are_found_and_nothing_else() {
    const BUGS: [(Bug, &[&str]); 7] = [
        (Bug::NoJoin, &["race 1000 at 3000, 1 times: read thread 0, write thread 3"]),
        (Bug::NoBegin, &["race 1000 at 2000, 1 times: read thread 3, write thread 2"]),
        (Bug::NeverWritten, &["uninitialised 1000 at 3000, carried true"]),
        (Bug::NeverSet, &["uninitialised 1000 at 0, carried false"]),
        (Bug::Freed, &["freed"]),
        (Bug::FreedLate, &["race 1000 at 0, 4 times: write host, write thread 1"]),
        (Bug::ReadEarly, &["race 8 at 1000, 1 times: read host, write thread 2"]),
    ];
    for cpu in CPUS {
        for (bug, expected) in BUGS {
            assert_eq!(Gather::new(cpu).run(bug), expected, "{bug:?}, {cpu:?}");
        }
    }
}

/// Case 238.
#[test]
fn gather_without_a_bug_is_green_every_time() {
    for (cpu, rounds) in [(Cpu::Native, 100), (Cpu::Qemu, 20)] {
        let gather = Gather::new(cpu);
        for round in 0..rounds {
            assert_eq!(gather.run(Bug::None), [""; 0], "{cpu:?}, round {round}");
        }
    }
}
