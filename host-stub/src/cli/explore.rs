//! `explore`: runs a program under one schedule after the other, and repeats one that failed.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use host_stub::explore::process::{ProcessReport, REPORT_VAR, SCHEDULE_VAR, fix_addresses};
use host_stub::explore::{Plan, Token};
use serde::Serialize;

use super::failure::Failure;
use super::output::Output;

/// Schedules that are tried unless something else is said.
const SCHEDULES: u64 = 1000;
/// Time between two lines of progress.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// Run a program that links libhcomm_sim under many schedules, until one fails.
#[derive(Debug, Args)]
pub struct ExploreArgs {
    /// Schedules to try [default: 1000]
    #[arg(long, conflicts_with_all = ["time", "replay"])]
    schedules: Option<u64>,
    /// Seconds to try schedules for
    #[arg(long, conflicts_with = "replay")]
    time: Option<f64>,
    /// random, pct:DEPTH, or exhaustive (not supported for programs)
    #[arg(long, default_value = "random")]
    strategy: ProgramStrategy,
    /// Programs that run at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: u32,
    /// First seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Run once, under the schedule that this token names
    #[arg(long, value_name = "TOKEN")]
    replay: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramStrategy {
    Random,
    Pct(u32),
    Exhaustive,
}

impl FromStr for ProgramStrategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let depth = |text: &str| text.parse().ok().filter(|depth| (1..=64).contains(depth)).map(Self::Pct);
        match text {
            "random" => Ok(Self::Random),
            "pct" => Ok(Self::Pct(3)),
            "exhaustive" => Ok(Self::Exhaustive),
            _ => text
                .strip_prefix("pct:")
                .and_then(depth)
                .ok_or("must be random, pct:1 to pct:64, or exhaustive".to_owned()),
        }
    }
}

/// What was tried.
#[derive(Debug, Default, Serialize)]
struct Tried {
    schedules: u64,
    distinct: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<Failed>,
    #[serde(skip)]
    hashes: HashSet<u64>,
    #[serde(skip)]
    unsupported: Option<String>,
    /// Runs that the token may not repeat.
    inexact: u64,
}

#[derive(Debug, Serialize)]
struct Failed {
    why: String,
    token: String,
    output: String,
}

/// How one run has ended.
struct Run {
    status: ExitStatus,
    output: Vec<u8>,
    report: Option<ProcessReport>,
}

/// # Errors
/// A schedule that fails, a program that can't be run or explored.
pub fn run(args: &ExploreArgs, output: Output) -> Result<(), Failure> {
    if let Some(token) = &args.replay {
        let parsed: Token = token.parse().map_err(|error| Failure::Usage(format!("--replay: {error}")))?;
        let tried = Mutex::new(Tried::default());
        one(args, token, &parsed.plan, 0, &tried)?;
        return finish(args, output, tried.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
    if args.strategy == ProgramStrategy::Exhaustive {
        let text =
            "exhaustive is for tests in Rust (host_stub::explore::exhaustive): a program is explored by random or pct";
        return Err(Failure::Unsupported(text.to_owned()));
    }
    let time = match args.time.map(Duration::try_from_secs_f64).transpose() {
        Ok(time) => time,
        Err(error) => return Err(Failure::Usage(format!("--time: {error}"))),
    };
    let count = if time.is_some() { u64::MAX } else { args.schedules.unwrap_or(SCHEDULES) };
    let (tried, next, steps, is_over) =
        (Mutex::new(Tried::default()), AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let (started, progress) = (Instant::now(), Mutex::new(Instant::now()));
    let work = |job: u32| -> Result<(), Failure> {
        while !is_over.load(Ordering::Relaxed) && time.is_none_or(|time| started.elapsed() < time) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            let seed = args.first.wrapping_add(index);
            let (plan, value) = match args.strategy {
                ProgramStrategy::Pct(depth) => {
                    let steps = steps.load(Ordering::Relaxed);
                    (Plan::Pct { seed, depth, steps }, format!("pct:{seed}:{depth}:{steps}"))
                }
                _ => (Plan::Random { seed }, format!("random:{seed}")),
            };
            let goes_on =
                one(args, &value, &plan, job, &tried).inspect_err(|_| is_over.store(true, Ordering::Relaxed))?;
            steps.fetch_max(goes_on.unwrap_or(0), Ordering::Relaxed);
            if goes_on.is_none() {
                is_over.store(true, Ordering::Relaxed);
            }
            let mut last = lock(&progress);
            if last.elapsed() >= PROGRESS_EVERY {
                *last = Instant::now();
                let (tried, rate) = (lock(&tried), started.elapsed().as_secs_f64());
                let (count, distinct) = (tried.schedules, tried.hashes.len());
                // A standard error that is closed is no reason to stop.
                let _ = writeln!(io::stderr(), "{count} schedules, {distinct} distinct, {:.0}/s", count as f64 / rate);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..args.jobs).map(|job| (scope, job)).collect();
        let jobs: Vec<_> = jobs.into_iter().map(|(scope, job)| scope.spawn(move || work(job))).collect();
        jobs.into_iter()
            .try_for_each(|job| job.join().unwrap_or_else(|_| Err(Failure::Device("a job has panicked".to_owned()))))
    })?;
    finish(args, output, tried.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One run of the program. Gives its steps; `None`: nothing more is to be tried.
fn one(args: &ExploreArgs, value: &str, plan: &Plan, job: u32, tried: &Mutex<Tried>) -> Result<Option<u64>, Failure> {
    let Run { status, output, report } = run_program(args, value, job)?;
    let mut tried = lock(tried);
    tried.schedules += 1;
    let known = report.unwrap_or_default();
    if let Some(why) = &known.unsupported {
        tried.unsupported.get_or_insert(why.clone());
        return Ok(None);
    }
    if known.token.is_empty() && status.success() {
        let text = "the program has opened no device of libhcomm_sim, or has ended without exit".to_owned();
        tried.unsupported.get_or_insert(text);
        return Ok(None);
    }
    tried.hashes.insert(known.hash);
    tried.inexact += u64::from(known.inexact.is_some());
    if status.success() && known.failures.is_empty() {
        return Ok(Some(known.steps));
    }
    let mut why = if status.success() { Vec::new() } else { vec![format!("the program has ended with {status}")] };
    why.extend(known.failures);
    why.extend(known.inexact.map(|inexact| format!("the schedule is not exact: {inexact}")));
    let token = match known.token.is_empty() {
        false => known.token,
        // It has ended by a signal: what is not known of the run is left out.
        true => Token { plan: plan.clone(), options: 0, is_inexact: false }.to_string(),
    };
    let output = String::from_utf8_lossy(&output).into_owned();
    tried.failed.get_or_insert(Failed { why: why.join("; "), token, output });
    Ok(None)
}

/// Runs the program with `HCOMM_SIM_SCHEDULE=value` and addresses that are the same each time.
fn run_program(args: &ExploreArgs, value: &str, job: u32) -> Result<Run, Failure> {
    let report: PathBuf = std::env::temp_dir().join(format!("hcomm-explore-{}-{job}.json", std::process::id()));
    let _ = std::fs::remove_file(&report);
    let mut command = Command::new(&args.program[0]);
    command.args(&args.program[1..]).env(SCHEDULE_VAR, value).env(REPORT_VAR, &report).stdin(Stdio::null());
    fix_addresses(&mut command);
    let failed = |error| Failure::Usage(format!("{}: {error}", args.program[0].to_string_lossy()));
    let ended = command.output().map_err(failed)?;
    let text = std::fs::read_to_string(&report).ok();
    let _ = std::fs::remove_file(&report);
    let mut output = ended.stdout;
    output.extend(ended.stderr);
    Ok(Run { status: ended.status, output, report: text.and_then(|text| serde_json::from_str(&text).ok()) })
}

fn finish(args: &ExploreArgs, output: Output, mut tried: Tried) -> Result<(), Failure> {
    tried.distinct = tried.hashes.len();
    if let Some(why) = tried.unsupported {
        return Err(Failure::Unsupported(why));
    }
    let program: Vec<_> = args.program.iter().map(|part| part.to_string_lossy()).collect();
    let program = program.join(" ");
    output.answer(&tried, |out| {
        if let Some(failed) = &tried.failed {
            writeln!(out, "{}", failed.output.trim_end())?;
            writeln!(out, "a schedule has failed: {}", failed.why)?;
            writeln!(out, "token: {}", failed.token)?;
            writeln!(out, "replay: host-stub explore --replay {} -- {program}", failed.token)?;
        }
        if tried.inexact != 0 {
            writeln!(out, "{} schedules are not exact: their tokens may not repeat them", tried.inexact)?;
        }
        writeln!(out, "{} schedules, {} distinct", tried.schedules, tried.distinct)
    })?;
    if tried.failed.is_some() { Err(Failure::Reported) } else { Ok(()) }
}
