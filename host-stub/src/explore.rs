//! Runs a test under many schedules, and repeats the one that fails. With the habits of loom and shuttle: the test is a
//! function that opens its own devices, and that panics or returns an error.
//!
//! ```
//! use host_stub::product::Product;
//! use host_stub::{Device, DeviceOptions, Error, Stream, explore};
//!
//! // Every schedule of a program that copies by a stream and reads after a synchronise.
//! let product = Product::from_key("atlas-800t-a2").unwrap();
//! let report = explore::exhaustive(explore::Limits::default(), || -> Result<(), Error> {
//!     let device = Device::open(DeviceOptions { product, ..DeviceOptions::native() })?;
//!     let (dst, src, stream) = (device.malloc(64)?, device.malloc(64)?, Stream::new(&device));
//!     stream.copy(dst.addr(), src.addr(), 64)?;
//!     stream.synchronize()
//! });
//! assert!(report.is_complete());
//! ```
//!
//! Each queue, each stream, each kernel and each host thread is an actor; one goes on at a time, and a strategy picks it at each
//! choice: the call of a kernel, the task of a queue, the operation of a stream, the call of a host thread. Time stands still while
//! an actor can go on. Host threads take part that [`spawn`] has started. A schedule has failed if the test panics or returns an
//! error, if a device has failed that was opened without a fault plan, or if a check has found something.
//!
//! What a kernel or a host thread does in memory by its own instructions is part of the step that it is in: no other order of it
//! is tried. Kernels run on threads of this process ([`Cpu::Native`](crate::Cpu::Native)); a device on another CPU is not opened.

pub mod process;
mod run;
mod thread;

use std::time::{Duration, Instant};

use self::run::{Run, run_once};
use hcomm_sim::explore::decisions::{Writer, Written};
use hcomm_sim::explore::exhaustive::Exhaustive;
pub use hcomm_sim::explore::token::{Plan, Token, TokenError};
pub use run::TestResult;
pub use thread::{JoinHandle, spawn};

/// Limits of [`exhaustive`], and of every schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Schedules; `None`: all there are.
    pub schedules: Option<u64>,
    /// Real time; `None`: as long as it takes.
    pub time: Option<Duration>,
    /// Steps of one schedule, after which it has failed.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { schedules: None, time: None, steps: hcomm_sim::explore::Limits::default().steps }
    }
}

/// What schedules are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Uniform random choices, with the seeds from `first` on.
    Random {
        /// The first seed.
        first: u64,
        /// How many.
        schedules: u64,
    },
    /// Random priorities with `depth - 1` changes, with the seeds from `first` on.
    Pct {
        /// Depth of the bugs that are looked for, at least 1.
        depth: u32,
        /// The first seed.
        first: u64,
        /// How many.
        schedules: u64,
    },
    /// Every schedule, but one of those that differ only in the order of steps that use nothing in common.
    Exhaustive,
}

/// Schedules that were tried, none of which has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Schedules.
    pub schedules: u64,
    /// Different ones among them.
    pub distinct: u64,
    /// Runs that were, from some step on, another order of a schedule before. Of [`Strategy::Exhaustive`]; they are not in `schedules`.
    pub redundant: u64,
    /// Steps of the longest schedule.
    pub steps: u64,
    /// Actors of the schedule with the most.
    pub actors: usize,
    /// Why these are not all schedules; `None`: they are.
    pub incomplete: Option<String>,
}

impl Report {
    /// Whether these are all schedules, but for the order of steps that use nothing in common.
    pub fn is_complete(&self) -> bool {
        self.incomplete.is_none()
    }
}

/// A schedule that has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "schedule {schedules} has failed: {text}\n  token: {token}\n  replay: host_stub::explore::replay(\"{token}\", test)"
)]
pub struct Failure {
    /// What went wrong.
    pub text: String,
    /// What repeats it.
    pub token: String,
    /// How many schedules were tried, this one included.
    pub schedules: u64,
}

/// Why a token was not repeated, or what it has shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// It names no schedule.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The devices of the run had other options.
    #[error(
        "the token was made with other options of the devices (hash {token:x}, now {now:x}): its schedule can't be repeated; \
         open the devices as they were, or explore again"
    )]
    Options {
        /// Of the token.
        token: u64,
        /// Of the run.
        now: u64,
    },
    /// The schedule fails, as it did.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Runs `test` under `n` random schedules.
///
/// # Panics
/// If one fails: with what went wrong, and its token.
pub fn random<R: TestResult>(n: u64, test: impl Fn() -> R) -> Report {
    or_panic(try_explore(Strategy::Random { first: 0, schedules: n }, Limits::default(), test))
}

/// Runs `test` under `n` schedules with random priorities that change `depth - 1` times: a bug that shows once `depth` steps come in
/// a certain order is found by each with a probability of at least `1 / (actors * steps^(depth - 1))`.
///
/// # Panics
/// If one fails: with what went wrong, and its token.
pub fn pct<R: TestResult>(n: u64, depth: u32, test: impl Fn() -> R) -> Report {
    or_panic(try_explore(Strategy::Pct { depth, first: 0, schedules: n }, Limits::default(), test))
}

/// Runs `test` under every schedule, but one of those that differ only in the order of steps that use nothing in common: the same
/// bytes, one of the two a write; the same notify, queue, or lock.
///
/// # Panics
/// If one fails: with what went wrong, and its token.
pub fn exhaustive<R: TestResult>(limits: Limits, test: impl Fn() -> R) -> Report {
    or_panic(try_explore(Strategy::Exhaustive, limits, test))
}

/// Runs `test` under the schedule that a token names.
///
/// # Panics
/// If the schedule fails, as it did; or if the token can't be repeated here.
pub fn replay<R: TestResult>(token: &str, test: impl Fn() -> R) {
    if let Err(error) = try_replay(token, test) {
        panic!("{error}");
    }
}

fn or_panic(result: Result<Report, Failure>) -> Report {
    result.unwrap_or_else(|failure| panic!("{failure}"))
}

/// As [`replay`], with an error in place of a panic.
///
/// # Errors
/// [`ReplayError`].
pub fn try_replay<R: TestResult>(token: &str, test: impl Fn() -> R) -> Result<(), ReplayError> {
    let token: Token = token.parse()?;
    let run = run_once(token.plan.chooser(), Limits::default().steps, &test);
    // 0: it was not known when the token was made.
    if token.options != 0 && run.outcome.options != token.options {
        return Err(ReplayError::Options { token: token.options, now: run.outcome.options });
    }
    match run.failure() {
        Some(text) => Err(Failure { text, token: token.print(&std::env::temp_dir()), schedules: 1 }.into()),
        None => Ok(()),
    }
}

/// As [`random`], [`pct`] and [`exhaustive`], with an error in place of a panic.
///
/// # Errors
/// The first schedule that fails.
pub fn try_explore<R: TestResult>(strategy: Strategy, limits: Limits, test: impl Fn() -> R) -> Result<Report, Failure> {
    let mut tried = Tried::default();
    match strategy {
        Strategy::Random { first, schedules } => {
            for seed in (first..).take(schedules as usize) {
                tried.run(Plan::Random { seed }, limits.steps, &test)?;
            }
            tried.report.incomplete = Some("random schedules".to_owned());
        }
        Strategy::Pct { depth, first, schedules } => {
            for seed in (first..).take(schedules as usize) {
                // As long as the longest so far; the first run has no change.
                let steps = tried.report.steps;
                let depth = if steps == 0 { 1 } else { depth.max(1) };
                tried.run(Plan::Pct { seed, depth, steps }, limits.steps, &test)?;
            }
            tried.report.incomplete = Some("random schedules".to_owned());
        }
        Strategy::Exhaustive => tried.run_all(limits, &test)?,
    }
    Ok(tried.report)
}

/// Schedules that were tried.
#[derive(Default)]
struct Tried {
    report: Report,
    hashes: std::collections::HashSet<u64>,
}

impl Tried {
    fn run<R: TestResult>(&mut self, plan: Plan, steps: u64, test: &impl Fn() -> R) -> Result<(), Failure> {
        let run = run_once(plan.chooser(), steps, test);
        self.add(&run, || plan)
    }

    fn add(&mut self, run: &Run, plan: impl FnOnce() -> Plan) -> Result<(), Failure> {
        let report = &mut self.report;
        report.schedules += 1;
        self.hashes.insert(run.outcome.hash);
        report.distinct = self.hashes.len() as u64;
        report.steps = report.steps.max(run.outcome.steps);
        report.actors = report.actors.max(run.outcome.actors);
        let Some(text) = run.failure() else { return Ok(()) };
        let is_inexact = run.outcome.inexact.is_some();
        let token = Token { plan: plan(), options: run.outcome.options, is_inexact };
        Err(Failure { text, token: token.print(&std::env::temp_dir()), schedules: report.schedules })
    }

    fn run_all<R: TestResult>(&mut self, limits: Limits, test: &impl Fn() -> R) -> Result<(), Failure> {
        let (search, started) = (Exhaustive::default(), Instant::now());
        loop {
            let written = Written::default();
            let writer = Writer::new(Box::new(search.clone()), &written);
            let run = run_once(Box::new(writer), limits.steps, test);
            let decisions = || Plan::Decisions(written.lock().unwrap_or_else(|error| error.into_inner()).clone());
            if search.was_redundant() && run.failure().is_none() {
                self.report.redundant += 1;
            } else {
                self.add(&run, decisions)?;
            }
            let incomplete = &mut self.report.incomplete;
            if run.outcome.reads_clock {
                incomplete.get_or_insert("a kernel reads the clock in a loop".to_owned());
            }
            if let Some(why) = run.outcome.inexact {
                incomplete.get_or_insert(why);
            }
            if search.has_changed() {
                incomplete.get_or_insert("the test does not do the same under the same schedule".to_owned());
                return Ok(());
            }
            if !search.next_run() {
                return Ok(());
            }
            let over = match limits {
                Limits { schedules: Some(most), .. } if self.report.schedules >= most => format!("{most} schedules"),
                Limits { time: Some(most), .. } if started.elapsed() >= most => format!("{most:?}"),
                _ => continue,
            };
            incomplete.get_or_insert(format!("the limit of {over} was reached"));
            return Ok(());
        }
    }
}
