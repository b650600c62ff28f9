//! Random sequences of calls against a plain model of memory and rings.
//!
//! Up to two kernels at once queue copies and calls that must be refused, in batches or not, on threads of any depth that they
//! share, on a device with or without a fault. What the device did is read from its trace and its memory. `HCOMM_MODEL_CASES` sets how many sequences run,
//! `HCOMM_MODEL_SEED` which.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use hcomm_aicpu::abi::{HcommBatchModeEnd, HcommBatchModeStart, HcommLocalCopyOnThread, HcommThreadResAcquireTimeOut};
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_kernel::kernel;
use hcomm_testkit::{Rig, pattern};
use host_stub::sim::event::{Trace, What};
use host_stub::sim::fault::{Fault, FaultPlan, FaultRule};
use host_stub::{DeviceBuffer, DeviceOptions, LaunchOptions, Stream};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestError, TestRunner};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of the source that all share and no kernel writes, and of the region that one kernel has for each thread.
const LEN: usize = 2048;
/// Sequences unless `HCOMM_MODEL_CASES` says otherwise.
const CASES: u32 = 300;

/// One call of a kernel.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// Copies within the kernel's region of the thread, or from the shared source into it.
    Copy { thread: usize, dst: usize, src: usize, len: usize, from_own: bool },
    /// A call that changes nothing.
    Refused { thread: usize, why: Why },
    /// Starts a batch, or ends the one that is open.
    Batch,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    NullDst,
    NullSrc,
    NullThread,
    StaleThread,
    WildThread,
    PastTheEnd,
    Empty,
}

impl Why {
    fn code(self) -> i32 {
        match self {
            Self::NullDst | Self::NullSrc | Self::NullThread => 2,
            Self::StaleThread | Self::WildThread => 6,
            Self::PastTheEnd => 1,
            Self::Empty => 0,
        }
    }
}

/// One sequence.
#[derive(Clone, Debug)]
struct Case {
    device_seed: u64,
    fault: Option<FaultRule>,
    depths: Vec<u32>,
    /// Calls of each kernel.
    kernels: Vec<Vec<Call>>,
}

fn call() -> impl Strategy<Value = Call> {
    let thread = 0..3_usize;
    let len = prop_oneof![6 => 1..20_usize, 2 => 20..300_usize, 1 => 300..1000_usize];
    let copy = (thread.clone(), 0..1000_usize, 0..1000_usize, len, any::<bool>())
        .prop_map(|(thread, dst, src, len, from_own)| Call::Copy { thread, dst, src, len, from_own });
    let why = prop_oneof![
        Just(Why::NullDst),
        Just(Why::NullSrc),
        Just(Why::NullThread),
        Just(Why::StaleThread),
        Just(Why::WildThread),
        Just(Why::PastTheEnd),
        Just(Why::Empty),
    ];
    let refused = (thread, why).prop_map(|(thread, why)| Call::Refused { thread, why });
    prop_oneof![8 => copy, 1 => refused, 1 => Just(Call::Batch)]
}

fn fault() -> impl Strategy<Value = Option<FaultRule>> {
    let rule = |fault: Fault, thread: u32, n: u64| match fault {
        Fault::SdmaError | Fault::Translation => FaultRule::new(fault).n(n + 1),
        Fault::Doorbell => FaultRule::new(fault).sq(thread).n(n + 1),
        Fault::DeadQueue => FaultRule::new(fault).sq(thread).n(n),
        _ => FaultRule::new(fault).sq(thread),
    };
    let slow = (1..5000_u64).prop_map(|us| Fault::SlowQueue(Duration::from_micros(us)));
    let faults = [Fault::SdmaError, Fault::Translation, Fault::Doorbell, Fault::DeadQueue];
    let fault = prop_oneof![slow, prop::sample::select(faults.to_vec())];
    prop_oneof![
        1 => Just(None),
        1 => (fault, 0..3_u32, 0..40_u64).prop_map(move |(fault, thread, n)| Some(rule(fault, thread, n))),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let depth = prop_oneof![2..10_u32, Just(64), Just(100)];
    let depths = prop::collection::vec(depth, 3);
    let kernels = prop::collection::vec(prop::collection::vec(call(), 0..60), 1..=2);
    (any::<u64>(), fault(), depths, kernels).prop_map(|(device_seed, fault, depths, kernels)| Case {
        device_seed,
        fault,
        depths,
        kernels,
    })
}

/// A call as the kernel reads it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Entry {
    /// 0 copy, 1 start of a batch, 2 its end, 3 limit of waits for room.
    kind: u32,
    /// What the call answered.
    code: i32,
    thread: u64,
    dst: u64,
    src: u64,
    len: u64,
}

/// Parameters of [`model_calls`].
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ModelParams {
    header: ParamsHeader,
    entries: DeviceAddr,
    count: u64,
}

impl KernelParams for ModelParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"MODL");
    const VERSION: u32 = 1;
}

kernel! {
    /// Makes the calls of a list and notes what each answered.
    fn model_calls(params: &ModelParams) -> Result<(), hcomm_aicpu::Error> {
        let entries = std::ptr::with_exposed_provenance_mut::<Entry>(params.entries.0 as usize);
        for index in 0..params.count as usize {
            // SAFETY: the test hands `count` entries over and keeps them until the launch has ended.
            let mut entry = unsafe { entries.add(index).read() };
            let (dst, src) = (entry.dst as usize, entry.src as usize);
            entry.code = match entry.kind {
                0 => HcommLocalCopyOnThread(
                    entry.thread,
                    std::ptr::without_provenance_mut(dst),
                    std::ptr::without_provenance(src),
                    entry.len,
                ),
                1 => HcommBatchModeStart(std::ptr::null()),
                2 => HcommBatchModeEnd(std::ptr::null()),
                _ => HcommThreadResAcquireTimeOut(1.0),
            };
            // SAFETY: as above.
            unsafe { entries.add(index).write(entry) };
        }
        Ok(())
    }
}

/// A copy that the model expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected {
    dst: u64,
    src: u64,
    len: u32,
}

/// What one kernel is given, and what is to come of it.
struct Kernel {
    entries: Vec<Entry>,
    codes: Vec<i32>,
    /// Copies on each thread, each with the number of its call.
    copies: Vec<Vec<(usize, Expected)>>,
}

/// The memory of one run: a source, and a region for each kernel and thread.
struct Memory {
    source: DeviceBuffer,
    regions: Vec<Vec<DeviceBuffer>>,
}

impl Memory {
    fn new(rig: &Rig, case: &Case) -> Self {
        let region = |index: usize| rig.buffer(&pattern(LEN, index as u64));
        let regions = |kernel| (0..case.depths.len()).map(|thread| region(10 * kernel + thread + 1)).collect();
        let regions = (0..case.kernels.len()).map(regions).collect();
        Self { source: region(0), regions }
    }
}

fn plan(calls: &[Call], threads: &[u64], source: &DeviceBuffer, regions: &[DeviceBuffer]) -> Kernel {
    let (mut entries, mut codes, mut copies) = (Vec::new(), Vec::new(), vec![Vec::new(); threads.len()]);
    let mut in_batch = false;
    let mut push = |kind, thread, dst: u64, src: u64, len, code| {
        entries.push(Entry { kind, code: -1, thread, dst, src, len });
        codes.push(code);
        codes.len() - 1
    };
    // A second of virtual time for a queue that is full.
    push(3, 0, 0, 0, 0, 0);
    for call in calls {
        match *call {
            Call::Copy { thread, dst, src, len, from_own } => {
                // Partial overlap within a task has no defined result: such a copy reads the shared source instead.
                let from_own = from_own && (dst == src || dst.abs_diff(src) >= len);
                let from = if from_own { &regions[thread] } else { source };
                let (dst, src) = (regions[thread].addr().0 + dst as u64, from.addr().0 + src as u64);
                let at = push(0, threads[thread], dst, src, len as u64, 0);
                copies[thread].push((at, Expected { dst, src, len: len as u32 }));
            }
            Call::Refused { thread, why } => {
                let (good, dst, src) = (threads[thread], regions[thread].addr().0, source.addr().0);
                let code = why.code();
                let _ = match why {
                    Why::NullDst => push(0, good, 0, src, 8, code),
                    Why::NullSrc => push(0, good, dst, 0, 0, code),
                    Why::NullThread => push(0, 0, dst, src, 8, code),
                    Why::StaleThread => push(0, good ^ (3 << 48), dst, src, 8, code),
                    Why::WildThread => push(0, u64::MAX, dst, src, 8, code),
                    Why::PastTheEnd => push(0, good, dst, src, u64::MAX, code),
                    Why::Empty => push(0, good, dst, src, 0, code),
                };
            }
            Call::Batch => {
                in_batch = !in_batch;
                push(if in_batch { 1 } else { 2 }, 0, 0, 0, 0, 0);
            }
        }
    }
    if in_batch {
        push(2, 0, 0, 0, 0, 0);
    }
    Kernel { entries, codes, copies }
}

/// What the trace says about one run.
struct Seen {
    /// Copies that each queue has carried out, in order.
    ended: Vec<Vec<Expected>>,
    /// Errors of the device.
    errors: usize,
}

/// Reads the trace and checks what holds for every run: slots and heads go round, ids are each used once, and a task has
/// ended before the next one of its queue starts. Where no doorbell is refused, no id is left out either.
fn read_trace(trace: &Trace, depths: &[u32], all_ids: bool) -> Result<Seen, TestCaseError> {
    prop_assert_eq!(trace.lost, 0);
    let mut seen = Seen { ended: vec![Vec::new(); depths.len()], errors: 0 };
    let mut ids = HashSet::new();
    // Slot of the next task, and the task in it while it runs.
    let mut next = vec![(0, None); depths.len()];
    let mut last_id = vec![None; depths.len()];
    for event in &trace.events {
        match &event.what {
            What::TaskBegan { task, reads: [src, _], writes, .. } => {
                let queue = task.sq_id as usize;
                prop_assert!(next[queue] == (task.slot, None), "queue {}: {}", queue, event);
                prop_assert!(ids.insert(task.task_id), "task id used twice: {}", event);
                let consecutive = last_id[queue].is_none_or(|last: u32| last + 1 == task.task_id);
                prop_assert!(consecutive || !all_ids, "a refused call has used up an id: {}", event);
                last_id[queue] = Some(task.task_id);
                let copy = Expected { dst: writes.addr, src: src.addr, len: writes.len as u32 };
                next[queue].1 = Some((task.task_id, copy));
            }
            What::TaskEnded { task } => {
                let queue = task.sq_id as usize;
                let running =
                    next[queue].1.filter(|(task_id, _)| *task_id == task.task_id && next[queue].0 == task.slot);
                let Some((_, copy)) = running else { return Err(TestCaseError::fail(format!("not running: {event}"))) };
                seen.ended[queue].push(copy);
                next[queue] = ((task.slot + 1) % depths[queue], None);
            }
            What::HeadPublished { sq_id, head } => {
                prop_assert!(next[*sq_id as usize] == (*head, None), "{}", event);
            }
            What::Error(_) => seen.errors += 1,
            _ => {}
        }
    }
    Ok(seen)
}

fn check(case: &Case) -> TestCaseResult {
    let faults = FaultPlan { rules: case.fault.into_iter().collect() };
    let rig = Rig::with_options(DeviceOptions { faults, ..DeviceOptions::deterministic(case.device_seed) });
    let threads: Vec<u64> = case.depths.iter().map(|depth| rig.thread(*depth).0).collect();
    let memory = Memory::new(&rig, case);
    let kernel = rig.device.load_kernel("model_calls").expect("it is of this program");
    let mut runs = Vec::new();
    for (calls, regions) in case.kernels.iter().zip(&memory.regions) {
        let plan = plan(calls, &threads, &memory.source, regions);
        // Before any kernel runs: a device that has failed gives no memory.
        let entries = rig.buffer(plan.entries.as_bytes());
        runs.push((plan, entries, Stream::new(&rig.device), None));
    }
    for (plan, entries, stream, stats) in &mut runs {
        let (header, count) = (ModelParams::HEADER, plan.entries.len() as u64);
        // Refused if the first kernel has brought the device down already.
        let params = ModelParams { header, entries: entries.addr(), count };
        let options = LaunchOptions { drain: true, expects_refusals: true, ..LaunchOptions::default() };
        *stats = stream.launch_bytes_with(&kernel, params.as_bytes(), options).ok();
    }
    let failed = runs.iter().filter(|(_, _, stream, _)| stream.synchronize().is_err()).count();

    let fault = case.fault.map(|rule| rule.fault);
    let seen = read_trace(&rig.device.trace(), &case.depths, fault != Some(Fault::Doorbell))?;
    let harmless = matches!(fault, None | Some(Fault::SlowQueue(_) | Fault::Doorbell));
    let told = if harmless { failed == 0 && seen.errors == 0 } else { (failed > 0) == (seen.errors > 0) };
    prop_assert!(told, "{failed} launches failed, {} errors seen", seen.errors);
    let source = pattern(LEN, 0);
    prop_assert!(rig.read(&memory.source) == source, "the source changed");
    for (index, (plan, entries, _, stats)) in runs.iter().enumerate() {
        let codes = answers(&rig, plan, entries);
        check_codes(case, plan, &codes, failed > 0)?;
        let mut carried_out = 0;
        for (thread, expected) in plan.copies.iter().enumerate() {
            let region = &memory.regions[index][thread];
            // Kernels that share a queue each have a region of their own.
            let mine = |copy: &&Expected| copy.dst.wrapping_sub(region.addr().0) < LEN as u64;
            let ended: Vec<Expected> = seen.ended[thread].iter().filter(mine).copied().collect();
            // On a device that has failed a call may have queued its task and not have answered before the host looked.
            let is_accepted = |code: i32| code == 0 || (failed > 0 && code == -1);
            let accepted: Vec<Expected> =
                expected.iter().filter(|(at, _)| is_accepted(codes[*at])).map(|(_, copy)| *copy).collect();
            if failed == 0 && fault != Some(Fault::Doorbell) {
                prop_assert_eq!(&ended, &accepted, "kernel {}, thread {}", index, thread);
            } else {
                // A batch that is refused drops what it had accepted, a device that fails runs no more.
                prop_assert!(is_part(&ended, &accepted), "kernel {}, thread {}: {:?}", index, thread, ended);
            }
            let before = pattern(LEN, 10 * index as u64 + thread as u64 + 1);
            let after = replay(before, (memory.source.addr().0, &source), region.addr().0, &ended);
            prop_assert!(rig.read(region) == after, "kernel {}, thread {}: memory differs", index, thread);
            carried_out += ended.len() as u64;
        }
        if failed == 0 {
            prop_assert!(stats.as_ref().is_some_and(|stats| stats.tasks() >= carried_out));
        }
    }
    prop_assert_eq!(rig.device.statistics().tasks, seen.ended.iter().flatten().count() as u64);
    Ok(())
}

/// What each call answered; -1 for those that were not made.
fn answers(rig: &Rig, plan: &Kernel, entries: &DeviceBuffer) -> Vec<i32> {
    let bytes = rig.read(entries);
    let entries = bytes.chunks_exact(size_of::<Entry>()).take(plan.codes.len());
    entries.map(|entry| Entry::read_from_bytes(entry).expect("as long as an entry").code).collect()
}

/// Each call answers what the model says; with a fault a copy, or the end of a batch, may answer what the fault makes of it.
fn check_codes(case: &Case, plan: &Kernel, codes: &[i32], failed: bool) -> TestCaseResult {
    for (index, (code, expected)) in codes.iter().zip(&plan.codes).enumerate() {
        let by_fault = *expected == 0
            && match (case.fault.map(|rule| rule.fault), *code) {
                // Doorbell refused, also by a device that has failed; queue full for too long.
                (Some(Fault::Doorbell), 16) => true,
                (Some(Fault::DeadQueue), 9) => true,
                // Refused by a device that has failed, or not made before the host looked.
                (Some(_), 16 | -1) => failed,
                _ => false,
            };
        prop_assert!(
            code == expected || by_fault || (failed && *code == -1),
            "call {}: {} for {}",
            index,
            code,
            expected
        );
    }
    Ok(())
}

/// Whether `part` is `whole` with some left out.
fn is_part(part: &[Expected], whole: &[Expected]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|copy| whole.any(|other| other == copy))
}

/// The model of memory: copies in their order.
fn replay(mut bytes: Vec<u8>, source: (u64, &[u8]), region: u64, copies: &[Expected]) -> Vec<u8> {
    for Expected { dst, src, len } in copies {
        let (dst, len) = ((dst - region) as usize, *len as usize);
        match src.wrapping_sub(region) as usize {
            own if own < LEN => bytes.copy_within(own..own + len, dst),
            _ => {
                let from = (src - source.0) as usize;
                bytes[dst..dst + len].copy_from_slice(&source.1[from..from + len]);
            }
        }
    }
    bytes
}

#[test]
fn random_sequences_do_what_the_model_does() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let cases = number("HCOMM_MODEL_CASES").map_or(CASES, |cases| cases as u32);
    let seed = number("HCOMM_MODEL_SEED").unwrap_or_else(|| RandomState::new().hash_one(cases));
    let config = Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() };
    let result = TestRunner::new(config).run(&case(), |case| check(&case));
    if let Err(TestError::Fail(reason, case)) = &result {
        panic!(
            "HCOMM_MODEL_SEED={seed} HCOMM_MODEL_CASES={cases}, device seed {}: {reason}\n{case:?}",
            case.device_seed
        );
    }
    result.unwrap();
}
