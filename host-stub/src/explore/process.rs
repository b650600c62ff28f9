//! One schedule for a whole program: `HCOMM_SIM_SCHEDULE`.
//!
//! The run begins when the program opens its first device, with the thread that does. `host-stub explore` sets the variable, and
//! reads what the run was like from a file that the process writes at its end.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use hcomm_sim::explore::token::{Plan, Token, TokenError};
use hcomm_sim::explore::{Engine, Limits, hosts};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Environment variable with a token, `random:SEED`, or `pct:SEED:DEPTH:STEPS`.
pub const SCHEDULE_VAR: &str = "HCOMM_SIM_SCHEDULE";
/// Environment variable with the file that the process writes its [`ProcessReport`] to.
pub const REPORT_VAR: &str = "HCOMM_SIM_SCHEDULE_REPORT";

/// What the run of a process was like.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessReport {
    /// What repeats it.
    pub token: String,
    /// Steps of all actors.
    pub steps: u64,
    /// What tells the schedule from others.
    pub hash: u64,
    /// What went wrong.
    pub failures: Vec<String>,
    /// Why the token may not repeat it.
    pub inexact: Option<String>,
    /// Why it can't be explored.
    pub unsupported: Option<String>,
}

/// The program that `command` starts has its parts at the same addresses each time.
pub fn fix_addresses(command: &mut Command) {
    // SAFETY: between fork and exec only one system call is made, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| {
            // A system that forbids it leaves the addresses random: a program that uses none as a number does not differ.
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            Ok(())
        });
    }
}

/// The run of the process.
struct ProcessRun {
    engine: Arc<Engine>,
    plan: Plan,
    /// Options that the token was made with.
    options: Option<u64>,
    process: u32,
    unsupported: OnceLock<String>,
}

static RUN: OnceLock<Option<ProcessRun>> = OnceLock::new();

/// The run that a device is opened in: that of the calling thread, or that of the process.
///
/// # Errors
/// [`Error::BadSchedule`].
pub(crate) fn current() -> Result<Option<Arc<Engine>>, Error> {
    if let Some(engine) = hosts::current() {
        return Ok(Some(engine));
    }
    let run = match RUN.get() {
        Some(run) => run,
        None => {
            let run = begin()?;
            RUN.get_or_init(|| run)
        }
    };
    Ok(run.as_ref().filter(|run| run.process == std::process::id()).map(|run| Arc::clone(&run.engine)))
}

/// A device was not opened, since it can't take part.
pub(crate) fn note_unsupported(error: &Error) {
    if let Some(Some(run)) = RUN.get() {
        // The first one is kept.
        let _ = run.unsupported.set(error.to_string());
    }
}

fn begin() -> Result<Option<ProcessRun>, Error> {
    let Some(value) = std::env::var_os(SCHEDULE_VAR).filter(|value| !value.is_empty()) else { return Ok(None) };
    let (plan, options) = plan_of(&value.to_string_lossy()).map_err(Error::BadSchedule)?;
    let engine = Engine::new(plan.chooser(), Limits::default());
    hosts::enter_first(&engine);
    // SAFETY: `at_exit` takes nothing and does not unwind: what it calls writes a file and standard error, and returns.
    unsafe { libc::atexit(at_exit) };
    let process = std::process::id();
    Ok(Some(ProcessRun { engine, plan, options, process, unsupported: OnceLock::new() }))
}

/// The plan that the variable names, and the options of a token that knows them.
fn plan_of(text: &str) -> Result<(Plan, Option<u64>), TokenError> {
    let malformed = || TokenError::Malformed {
        text: text.to_owned(),
        why: "must be random:SEED, pct:SEED:DEPTH:STEPS or a token, with decimal numbers",
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| malformed());
    let plan = match text.split(':').collect::<Vec<_>>()[..] {
        ["random", seed] => Plan::Random { seed: number(seed)? },
        ["pct", seed, depth, steps] => {
            let depth = u32::try_from(number(depth)?).ok().filter(|depth| (1..=64).contains(depth));
            Plan::Pct { seed: number(seed)?, depth: depth.ok_or_else(malformed)?, steps: number(steps)? }
        }
        _ => {
            let token: Token = text.parse()?;
            return Ok((token.plan, Some(token.options).filter(|options| *options != 0)));
        }
    };
    Ok((plan, None))
}

impl ProcessRun {
    fn report(&self) -> ProcessReport {
        let outcome = self.engine.outcome();
        let is_inexact = outcome.inexact.is_some();
        let token = Token { plan: self.plan.clone(), options: outcome.options, is_inexact };
        let mut unsupported = self.unsupported.get().cloned();
        if let Some(options) = self.options.filter(|options| *options != outcome.options) {
            let now = outcome.options;
            unsupported = Some(format!(
                "the token was made with other options of the devices (hash {options:x}, now {now:x}): its schedule can't be repeated"
            ));
        }
        ProcessReport {
            token: token.print(&std::env::temp_dir()),
            steps: outcome.steps,
            hash: outcome.hash,
            failures: outcome.failures,
            inexact: outcome.inexact,
            unsupported,
        }
    }
}

extern "C" fn at_exit() {
    let Some(Some(run)) = RUN.get() else { return };
    if run.process != std::process::id() {
        // A forked child, which has none of the threads of the run.
        return;
    }
    let report = run.report();
    match std::env::var_os(REPORT_VAR).map(PathBuf::from) {
        Some(path) => {
            let text = serde_json::to_string(&report).unwrap_or_default();
            if let Err(error) = std::fs::write(&path, text) {
                log::error!("{}: {error}", path.display());
            }
        }
        None => {
            if let Some(why) = &report.unsupported {
                log::error!("{why}");
            }
            if !report.failures.is_empty() {
                log::error!("schedule {} has failed: {}", report.token, report.failures.join("; "));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_names_a_plan_or_a_token() {
        assert_eq!(plan_of("random:7"), Ok((Plan::Random { seed: 7 }, None)));
        assert_eq!(plan_of("pct:7:3:100"), Ok((Plan::Pct { seed: 7, depth: 3, steps: 100 }, None)));
        assert_eq!(plan_of("s1.r.7.ff"), Ok((Plan::Random { seed: 7 }, Some(255))));
        for text in ["random", "random:x", "pct:1:0:9", "pct:1:2", "exhaustive", "s9.r.7.ff"] {
            assert!(plan_of(text).is_err(), "{text}");
        }
    }
}
