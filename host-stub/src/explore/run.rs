//! One run of a test under one schedule.
#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hcomm_sim::event::Chooser;
use hcomm_sim::explore::{Engine, Limits, Outcome, hosts};
use hcomm_sim::panics::panic_text;

use super::thread;

/// What a test returns: nothing, or a result whose error is a failure.
pub trait TestResult {
    /// Why it has failed, if it has.
    fn failure(self) -> Option<String>;
}

impl TestResult for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: Debug> TestResult for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| format!("{error:?}"))
    }
}

/// How a run has ended.
pub(super) struct Run {
    /// What the test has said.
    text: Option<String>,
    pub(super) outcome: Outcome,
}

impl Run {
    /// Why the schedule has failed, if it has.
    pub(super) fn failure(&self) -> Option<String> {
        let found = self.outcome.failures.iter().map(String::as_str);
        let said = self.text.as_deref();
        // A test repeats what a device has told it.
        let news = found.filter(|found| said.is_none_or(|said| !said.contains(found)));
        let texts: Vec<&str> = said.into_iter().chain(news).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

/// Runs `test` once, with `chooser` deciding.
pub(super) fn run_once<R: TestResult>(chooser: Box<dyn Chooser>, steps: u64, test: &impl Fn() -> R) -> Run {
    let engine = Engine::new(chooser, Limits { steps, ..Limits::default() });
    hosts::enter_first(&engine);
    let text = match catch_unwind(AssertUnwindSafe(|| test().failure())) {
        Ok(text) => text,
        Err(payload) => Some(format!("panic: {}", panic_text(&*payload))),
    };
    if text.is_none() {
        hosts::join_all(&engine);
    }
    // Threads of the run that are left end now: every wait tells them so.
    engine.close();
    hosts::leave();
    thread::join_left(&engine);
    Run { text, outcome: engine.outcome() }
}
