//! Litmus table of the race check: small programs in pairs, one that races and one that does not. The racy one is reported
//! on its first run, whatever order its accesses take; the other one never is. Without the one edge that it stands for, the
//! check reports that one, too: its events are given to a second check with the events of that edge left out.

use std::sync::Arc;

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::Call;
use hcomm_testkit::calls::{self, Launched};
use hcomm_testkit::{Rig, at, wait_until};
use host_stub::sim::check::findings::Findings;
use host_stub::sim::check::joint::JointCheck;
use host_stub::sim::check::race::{RaceCheck, RaceMember};
use host_stub::sim::event::{Event, Observer, Origin, Places, Queuer, Site, Sites, What};
use host_stub::{Check, Checks, Comm, Cpu, DeviceBuffer, DeviceOptions, Error, Notify, Stream};

/// Bytes of each buffer.
const LEN: u64 = 256;
/// Entries of each ring.
const DEPTH: u32 = 8;

/// Three threads with four notifies, four buffers, two streams with a notify of the host.
struct Ground<'r> {
    rig: &'r Rig,
    threads: Vec<ThreadHandle>,
    streams: [Stream; 2],
    notify: Notify,
    buffers: Vec<Option<DeviceBuffer>>,
    /// Name of the communicator, for kernels.
    name: DeviceBuffer,
    /// Lists of calls of launches that may still run.
    launched: Vec<Launched>,
    /// Last: it frees the threads.
    comm: Comm,
}

/// What the host does.
enum Step {
    /// Launches a kernel on a stream; the operation ends with the kernel.
    Launch(usize, Vec<Call>),
    /// Launches a kernel on a stream; the operation ends with all that the kernel has queued.
    Drained(usize, Vec<Call>),
    Sync(usize),
    /// Records the host's notify on a stream.
    Record(usize),
    /// Lets a stream wait for the host's notify.
    Wait(usize),
    CopyIn(usize),
    CopyOut(usize),
    CopyWithin(usize, usize),
    /// Frees a buffer and allocates one of the same size in its place.
    Renew(usize),
    /// Waits until a thread has run so many tasks, which orders nothing. Nothing in deterministic mode.
    Poll(usize, u64),
}
use Step::*;

impl<'r> Ground<'r> {
    fn new(rig: &'r Rig) -> Self {
        let comm = Comm::new(&rig.device).unwrap();
        let config = host_stub::ThreadConfig { engine: Engine::AICPU_TS, ..host_stub::ThreadConfig::new(3) };
        let threads = comm.acquire_threads_with(&config.notifies(4).depth(DEPTH)).unwrap();
        let mut name = comm.name().as_bytes().to_vec();
        name.push(0);
        Self {
            threads,
            streams: [Stream::new(&rig.device), Stream::new(&rig.device)],
            notify: Notify::new(&rig.device).unwrap(),
            buffers: (0..4).map(|index| Some(rig.buffer(&[index; LEN as usize]))).collect(),
            name: rig.buffer(&name),
            launched: Vec::new(),
            comm,
            rig,
        }
    }

    fn at(&self, (buffer, offset): (usize, usize)) -> hcomm_aicpu::spec::DeviceAddr {
        at(self.buffers[buffer].as_ref().unwrap(), offset)
    }

    /// A copy on a thread, of `len` bytes, to and from an offset of a buffer.
    fn copy(&self, thread: usize, to: (usize, usize), from: (usize, usize), len: u64) -> Call {
        calls::copy(self.threads[thread], self.at(to), self.at(from), len)
    }

    /// A sum of 64 bytes on a thread.
    fn sum(&self, thread: usize, to: usize, from: usize) -> Call {
        calls::reduce(self.threads[thread], self.at((to, 0)), self.at((from, 0)), 16, DataType::INT32, ReduceOp::SUM)
    }

    fn record(&self, from: usize, to: usize, index: u32) -> Call {
        calls::record(self.threads[from], self.threads[to], index)
    }

    fn wait(&self, thread: usize, index: u32) -> Call {
        calls::wait(self.threads[thread], index, 60)
    }

    fn join(&self, thread: usize) -> Call {
        calls::call(Call::JOIN, &[self.threads[thread].0, 10_000])
    }

    fn synchronize(&self, thread: usize) -> Call {
        calls::call(Call::SYNCHRONIZE, &[self.threads[thread].0])
    }

    fn lock(&self) -> Call {
        calls::call(Call::ACQUIRE_COMM, &[self.name.addr().0])
    }

    fn unlock(&self) -> Call {
        calls::call(Call::RELEASE_COMM, &[self.name.addr().0])
    }

    /// Does one step. `Err`: the race that it returns.
    fn step(&mut self, step: Step) -> Result<(), Error> {
        match step {
            Launch(stream, list) => self.launch(stream, &list, false),
            Drained(stream, list) => self.launch(stream, &list, true),
            Sync(stream) => self.streams[stream].synchronize(),
            Record(stream) => self.notify.record(&self.streams[stream]),
            Wait(stream) => self.notify.wait_and_reset(&self.streams[stream], 60),
            CopyIn(buffer) => self.rig.device.copy_in(self.at((buffer, 0)), &[9; 64]),
            CopyOut(buffer) => self.rig.device.copy_out(self.at((buffer, 0)), &mut [0; 64]),
            CopyWithin(to, from) => self.rig.device.copy_within(self.at((to, 0)), self.at((from, 0)), 64),
            Renew(buffer) => {
                drop(self.buffers[buffer].take());
                let freed = self.rig.device.check_findings();
                self.buffers[buffer] = Some(self.rig.buffer(&[7; LEN as usize]));
                freed
            }
            Poll(thread, tasks) => {
                if self.rig.device.options().deterministic.is_none() {
                    let run = || self.comm.thread_statistics(self.threads[thread]).unwrap().tasks;
                    assert!(wait_until(|| run() >= tasks));
                }
                Ok(())
            }
        }
    }

    fn launch(&mut self, stream: usize, list: &[Call], drain: bool) -> Result<(), Error> {
        let launched = self.rig.launch_calls_on(&self.streams[stream], list, drain);
        self.launched.push(launched);
        Ok(())
    }

    /// Does the steps, then synchronises all. Gives the races that were returned.
    fn run(mut self, steps: Vec<Step>) -> Vec<String> {
        let mut races = Vec::new();
        let mut note = |result: Result<(), Error>| match result {
            Ok(()) => true,
            Err(Error::Race(race)) => {
                races.push(race.to_string());
                false
            }
            Err(other) => panic!("{other}"),
        };
        for step in steps {
            note(self.step(step));
        }
        for stream in &self.streams {
            while !note(stream.synchronize()) {}
        }
        while !note(self.rig.device.check_findings()) {}
        // Ends what nothing has waited for, so that the buffers can be freed.
        self.comm.release_threads(&self.threads);
        for codes in self.launched.drain(..) {
            assert!(self.rig.codes(&codes).iter().all(|code| *code == 0));
        }
        races
    }
}

/// The edge that a program stands for, by the events that make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    /// A wait takes a notify.
    Notify,
    /// A queue that was seen empty.
    Drained,
    /// The unlock of a communicator.
    Lock,
    /// A synchronise.
    Synchronize,
    /// A launch that ends with its tasks.
    LaunchEnd,
    /// A submitted operation after the host call.
    Submit,
    /// The order of tasks in a queue: each is given a queue of its own.
    Queue,
    /// The order of operations in a stream: each launch is given a stream of its own.
    Stream,
    /// Nothing: the accesses are no conflict. The second one is made to write the bytes of the first.
    None,
}

struct NoPlaces;

impl Places for NoPlaces {
    fn text(&self, _site: &Site) -> String {
        String::new()
    }
}

/// Races among these events, with those of `edge` left out.
fn races_without(events: &[Event], edge: Option<Edge>) -> u64 {
    let findings = Arc::new(Findings::new(Arc::new(Sites::default()), Box::new(NoPlaces)));
    let mut check = RaceCheck::default();
    let device = events.first().map_or(0, |event| event.device);
    check.join(device, RaceMember { findings: Arc::clone(&findings), soc: Soc::Ascend950, start: None });
    let mut tasks = 0;
    let mut first_write = None;
    for event in events {
        let mut event = event.clone();
        let left_out = match (&mut event.what, edge) {
            (What::NotifyTaken { .. }, Some(Edge::Notify))
            | (What::Observed { .. }, Some(Edge::Drained))
            | (What::CommAcquired { .. }, Some(Edge::Lock))
            | (What::Synchronized { .. }, Some(Edge::Synchronize))
            | (What::Submitted { .. }, Some(Edge::Submit)) => true,
            (What::LaunchEnded { drained, .. }, Some(Edge::LaunchEnd)) => {
                *drained = false;
                false
            }
            (What::TaskBegan { task, .. }, Some(Edge::Queue)) => {
                tasks += 1;
                task.sq_id = 500 + tasks;
                false
            }
            (What::LaunchStarted { origin: Origin { launch, .. }, stream_id, .. }, Some(Edge::Stream)) => {
                *stream_id += 1000 * *launch as u32;
                false
            }
            (What::TaskBegan { reads, writes, by: Some(Queuer { .. }), .. }, Some(Edge::None)) if reads[0].len != 0 => {
                let first = *first_write.get_or_insert(*writes);
                (reads[0], *writes) = (first, first);
                false
            }
            _ => false,
        };
        if !left_out {
            check.on(&event);
        }
    }
    findings.count()
}

/// Steps of a program.
type Build = fn(&Ground) -> Vec<Step>;

/// A pair.
struct Pair {
    name: &'static str,
    edge: Edge,
    racy: Build,
    /// What a report of the racy one contains.
    texts: &'static [&'static str],
    fixed: Build,
}

const fn pair(name: &'static str, edge: Edge, racy: Build, texts: &'static [&'static str], fixed: Build) -> Pair {
    Pair { name, edge, racy, texts, fixed }
}

/// One launch of which all is waited for.
fn one(list: Vec<Call>) -> Vec<Step> {
    vec![Drained(0, list), Sync(0)]
}

#[path = "litmus/table.rs"]
mod table;
use table::PAIRS;

fn options(cpu: Cpu) -> DeviceOptions {
    DeviceOptions { cpu, checks: Some(Checks::NONE.with(Check::Race)), record: true, ..DeviceOptions::default() }
}

/// Runs both programs of every pair on a device.
fn run_all(rig: &Rig, round: &str, replay: bool) {
    // In deterministic mode nothing says when the task has begun: freed before, it is an error of the device.
    let is_possible = |pair: &&Pair| rig.device.options().deterministic.is_none() || !pair.name.starts_with("free");
    for Pair { name, edge, racy, texts, fixed } in PAIRS.iter().filter(is_possible) {
        let ground = Ground::new(rig);
        let steps = racy(&ground);
        let races = ground.run(steps);
        assert!(!races.is_empty(), "{name}, {round}: not reported");
        let has = |text: &&str| races.iter().any(|race| race.contains(*text));
        assert!(texts.iter().all(has), "{name}, {round}: not all of {texts:?} in {races:?}");

        let ground = Ground::new(rig);
        let before = rig.device.trace().events.len();
        let steps = fixed(&ground);
        assert_eq!(ground.run(steps), Vec::<String>::new(), "{name}, {round}");
        if replay {
            let events = rig.device.trace().events.split_off(before);
            assert_eq!(races_without(&events, None), 0, "{name}, {round}");
            assert_ne!(races_without(&events, Some(*edge)), 0, "{name}, {round}: green without {edge:?}");
        }
    }
}

#[test]
fn there_are_at_least_sixty_pairs() {
    assert!(PAIRS.len() >= 60, "{}", PAIRS.len());
    let mut names: Vec<_> = PAIRS.iter().map(|pair| pair.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), PAIRS.len());
}

/// Case 300.
#[test]
fn racy_programs_are_reported_on_the_first_run_and_fixed_ones_only_without_their_edge() {
    for cpu in hcomm_testkit::CPUS {
        run_all(&Rig::with_options(options(cpu)), &format!("{cpu:?}"), true);
    }
}

/// Case 302. On one core, so that the second kernel never finds the communicator locked.
#[test]
fn lock_of_a_communicator_orders_two_launches() {
    let rig = Rig::with_options(options(Cpu::Qemu));
    let run = |locks: bool| {
        let ground = Ground::new(&rig);
        let lists = [0, 1].map(|thread| {
            let work = vec![ground.copy(thread, (0, 0), (1 + thread, 0), 64), ground.join(thread)];
            if locks { [vec![ground.lock()], work, vec![ground.unlock()]].concat() } else { work }
        });
        let [first, second] = lists;
        let before = rig.device.trace().events.len();
        let races = ground.run(vec![Drained(0, first), Drained(1, second)]);
        (races, rig.device.trace().events.split_off(before))
    };
    assert_eq!(run(false).0.len(), 1);
    let (races, events) = run(true);
    assert_eq!(races, Vec::<String>::new());
    assert_eq!((races_without(&events, None), races_without(&events, Some(Edge::Lock))), (0, 1));
}

#[test]
fn reports_do_not_depend_on_the_order_that_a_seed_gives() {
    for seed in 0..100 {
        let options = DeviceOptions { deterministic: Some(seed), record: false, ..options(Cpu::Native) };
        run_all(&Rig::with_options(options), &format!("seed {seed}"), false);
    }
}

#[test]
fn reports_do_not_depend_on_the_order_that_the_emulator_gives() {
    let rig = Rig::with_options(DeviceOptions { record: false, ..options(Cpu::Qemu) });
    for round in 0..20 {
        run_all(&rig, &format!("QEMU, round {round}"), false);
    }
}
