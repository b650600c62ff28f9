//! Random graphs of copies, reduces, records and waits over several threads: whatever the device makes of the order that is
//! left open, properly synchronised work gives what a plain loop over it gives.

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_kernel::Call;
use hcomm_testkit::calls::{call, copy, record, reduce, wait};
use hcomm_testkit::{Rig, pattern};
use host_stub::{Check, Checks, Cpu, DeviceOptions};
use proptest::prelude::*;

/// Places of memory that tasks work on, and their bytes.
const PLACES: usize = 6;
const PLACE_LEN: usize = 64;
/// Notifies of each thread: each orders one pair of tasks.
const NOTIFIES: u32 = 256;

/// One task of the plain loop.
#[derive(Clone, Copy, Debug)]
struct Work {
    thread: usize,
    dst: usize,
    src: usize,
    /// `None`: a copy.
    op: Option<ReduceOp>,
}

/// What a case is made of.
#[derive(Clone, Debug)]
struct Graph {
    threads: usize,
    depth: u32,
    batch: bool,
    work: Vec<Work>,
}

fn graphs() -> impl Strategy<Value = Graph> {
    let op = prop_oneof![
        2 => Just(None),
        1 => Just(Some(ReduceOp::SUM)),
        1 => Just(Some(ReduceOp::MAX)),
        1 => Just(Some(ReduceOp::MIN)),
    ];
    let work = (0..8usize, 0..PLACES, 0..PLACES, op).prop_map(|(thread, dst, src, op)| Work { thread, dst, src, op });
    (1..=8usize, 2..20u32, any::<bool>(), prop::collection::vec(work, 1..60)).prop_map(
        |(threads, depth, batch, work)| {
            let on = |work: Work| Work { thread: work.thread % threads, ..work };
            Graph { threads, depth, batch, work: work.into_iter().map(on).collect() }
        },
    )
}

/// The plain loop.
fn model(graph: &Graph, memory: &mut [u8]) {
    for work in &graph.work {
        let src = memory[work.src * PLACE_LEN..][..PLACE_LEN].to_vec();
        let dst = &mut memory[work.dst * PLACE_LEN..][..PLACE_LEN];
        let word = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().unwrap());
        match work.op {
            None => dst.copy_from_slice(&src),
            Some(op) => dst.chunks_exact_mut(4).zip(src.chunks_exact(4)).for_each(|(dst, src)| {
                let (a, b) = (word(dst), word(src));
                let value = match op {
                    ReduceOp::SUM => a.wrapping_add(b),
                    ReduceOp::MAX => a.max(b),
                    _ => a.min(b),
                };
                dst.copy_from_slice(&value.to_le_bytes());
            }),
        }
    }
}

/// The same as calls of a kernel: before each task a record and a wait for every thread with an earlier task on the same
/// memory that is not ordered yet.
fn calls(rig: &Rig, graph: &Graph, base: u64) -> Vec<Call> {
    let threads = rig.threads(graph.threads as u32, NOTIFIES, graph.depth);
    let place = |index: usize| hcomm_aicpu::spec::DeviceAddr(base + (index * PLACE_LEN) as u64);
    // For each thread: how many of the tasks of each other one have happened before its next task.
    let mut before = vec![vec![0; graph.threads]; graph.threads];
    let mut queued = vec![0; graph.threads];
    let mut notifies = vec![0; graph.threads];
    let mut list = Vec::new();
    let mut done: Vec<(Work, usize)> = Vec::new();
    for &work in &graph.work {
        let to = work.thread;
        for from in (0..graph.threads).filter(|from| *from != to) {
            let conflicts = |(other, number): &&(Work, usize)| {
                let touches = other.dst == work.dst || other.dst == work.src || other.src == work.dst;
                other.thread == from && touches && *number > before[to][from]
            };
            if done.iter().any(|other| conflicts(&other)) {
                list.push(record(threads[from], threads[to], notifies[to]));
                list.push(wait(threads[to], notifies[to], 60));
                notifies[to] += 1;
                let known = before[from].clone();
                before[to].iter_mut().zip(known).for_each(|(mine, theirs)| *mine = theirs.max(*mine));
                before[to][from] = queued[from];
            }
        }
        queued[to] += 1;
        done.push((work, queued[to]));
        let (dst, src) = (place(work.dst), place(work.src));
        list.push(match work.op {
            None => copy(threads[to], dst, src, PLACE_LEN as u64),
            Some(op) => reduce(threads[to], dst, src, PLACE_LEN as u64 / 4, DataType::INT32, op),
        });
    }
    match graph.batch {
        true => [call(Call::BATCH_START, &[])].into_iter().chain(list).chain([call(Call::BATCH_END, &[])]).collect(),
        false => list,
    }
}

fn check(rig: &Rig, graph: &Graph) {
    let mut expected = pattern(PLACES * PLACE_LEN, 11);
    let memory = rig.buffer(&expected);
    let list = calls(rig, graph, memory.addr().0);
    rig.good_calls(&list).unwrap();
    model(graph, &mut expected);
    assert_eq!(rig.read(&memory), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn graphs_equal_a_plain_loop_under_any_seed(graph in graphs(), seed in any::<u64>()) {
        check(&Rig::with_options(DeviceOptions::deterministic(seed)), &graph);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn graphs_equal_a_plain_loop(graph in graphs()) {
        check(&Rig::new(Cpu::Native), &graph);
    }
}

proptest! {
    // Each case starts the image again.
    #![proptest_config(ProptestConfig { cases: 20, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn graphs_equal_a_plain_loop_on_the_image(graph in graphs()) {
        check(&Rig::new(Cpu::Qemu), &graph);
    }
}

#[test]
fn graph_without_its_notifies_goes_wrong_under_some_seed() {
    // Two threads write one place, a third reads it: what the notifies are for.
    let work = |thread, dst, src| Work { thread, dst, src, op: None };
    let graph = Graph { threads: 3, depth: 8, batch: false, work: vec![work(0, 0, 1), work(1, 0, 2), work(2, 3, 0)] };
    let mut expected = pattern(PLACES * PLACE_LEN, 11);
    model(&graph, &mut expected);
    let wrong = (0..50).any(|seed| {
        let checks = Some(Checks::DEFAULT.without(Check::Race));
        let rig = Rig::with_options(DeviceOptions { checks, ..DeviceOptions::deterministic(seed) });
        let memory = rig.buffer(&pattern(PLACES * PLACE_LEN, 11));
        let copies: Vec<Call> =
            calls(&rig, &graph, memory.addr().0).into_iter().filter(|call| call.function == Call::LOCAL_COPY).collect();
        rig.good_calls(&copies).unwrap();
        rig.read(&memory) != expected
    });
    assert!(wrong, "the order of the copies is the same under every seed");
}
