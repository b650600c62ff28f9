//! What the checks of a device have found, until a call of the host returns it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::init_report::UninitialisedRead;
use super::list::{Check, Checks, Level};
use super::own_report::StrayAccess;
use super::report::{CallPlace, Race};
use super::start::EarlyTask;
use crate::event::{HostThread, Places, SiteId, Sites};
use crate::stream::StreamId;

/// Findings that are kept; later ones are only counted.
const MAX_PAIRS: usize = 64;

/// Whose next call returns a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The next synchronise of a stream.
    Stream(StreamId),
    /// The call that a host thread is in.
    Host(HostThread),
}

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Accesses that nothing orders.
    Race(Box<Race>),
    /// Bytes that were used and never written.
    Uninitialised(Box<UninitialisedRead>),
    /// A transfer that is not ordered behind the start of its launch.
    Early(Box<EarlyTask>),
    /// An access of a kernel's own code to bytes that are not its own.
    Stray(Box<StrayAccess>),
}

impl From<Race> for Report {
    fn from(race: Race) -> Self {
        Self::Race(Box::new(race))
    }
}

impl From<UninitialisedRead> for Report {
    fn from(read: UninitialisedRead) -> Self {
        Self::Uninitialised(Box::new(read))
    }
}

impl From<EarlyTask> for Report {
    fn from(early: EarlyTask) -> Self {
        Self::Early(Box::new(early))
    }
}

impl From<StrayAccess> for Report {
    fn from(access: StrayAccess) -> Self {
        Self::Stray(Box::new(access))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Race(race) => race.fmt(f),
            Self::Uninitialised(read) => read.fmt(f),
            Self::Early(early) => early.fmt(f),
            Self::Stray(access) => access.fmt(f),
        }
    }
}

impl Report {
    /// The check that has found it.
    pub fn check(&self) -> Check {
        match self {
            Self::Race(race) if race.is_of_own_code() => Check::Core,
            Self::Race(_) => Check::Race,
            Self::Uninitialised(read) if read.is_of_own_code() => Check::Core,
            Self::Uninitialised(_) => Check::Init,
            Self::Early(_) => Check::Sync,
            Self::Stray(_) => Check::Core,
        }
    }

    /// Whether it is never more than a warning.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Race(race) => race.is_polling(),
            Self::Uninitialised(read) => !read.is_error(),
            Self::Early(_) | Self::Stray(_) => false,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Race(race), Self::Race(other)) => race.is_same_pair(other),
            (Self::Uninitialised(read), Self::Uninitialised(other)) => read.is_same(other),
            (Self::Early(early), Self::Early(other)) => early.is_same(other),
            (Self::Stray(access), Self::Stray(other)) => access.is_same(other),
            _ => false,
        }
    }

    fn count(&self) -> u64 {
        match self {
            Self::Race(race) => race.count,
            Self::Uninitialised(read) => read.count,
            Self::Early(early) => early.count,
            Self::Stray(access) => access.count,
        }
    }

    fn set_count(&mut self, count: u64) {
        match self {
            Self::Race(race) => race.count = count,
            Self::Uninitialised(read) => read.count = count,
            Self::Early(early) => early.count = count,
            Self::Stray(access) => access.count = count,
        }
    }

    fn places_mut(&mut self) -> Vec<&mut CallPlace> {
        match self {
            Self::Race(race) => race.places_mut().collect(),
            Self::Uninitialised(read) => read.places_mut(),
            Self::Early(early) => early.places_mut(),
            Self::Stray(access) => access.places_mut(),
        }
    }
}

#[derive(Debug)]
struct Finding {
    report: Report,
    receiver: Option<Receiver>,
    is_told: bool,
}

#[derive(Debug, Default)]
struct State {
    findings: Vec<Finding>,
    /// Findings that are not kept, or not any more.
    others: u64,
}

/// What was found. Each pair of calls once, then counted.
pub struct Findings {
    state: Mutex<State>,
    /// There may be a finding that was not told.
    has_untold: AtomicBool,
    /// The checks that are made.
    checks: Checks,
    sites: Arc<Sites>,
    places: Box<dyn Places>,
    texts: Mutex<HashMap<SiteId, Arc<str>>>,
}

impl Findings {
    /// No findings. `places` knows the places that `sites` holds.
    pub fn new(sites: Arc<Sites>, places: Box<dyn Places>) -> Self {
        Self {
            state: Mutex::default(),
            has_untold: AtomicBool::new(false),
            checks: Checks::ALL,
            sites,
            places,
            texts: Mutex::default(),
        }
    }

    /// Drops what is found by a check that is not one of these.
    pub fn of_checks(self, checks: Checks) -> Self {
        Self { checks, ..self }
    }

    /// Adds a finding, which a call of `receiver` returns; `None`: the one that looks at what is left.
    pub(super) fn add(&self, report: impl Into<Report>, receiver: Option<Receiver>) {
        let mut report = report.into();
        if self.checks.level(report.check()) == Level::Off {
            return;
        }
        let mut state = lock(&self.state);
        let is_known = |finding: &&mut Finding| finding.receiver == receiver && finding.report.is_same(&report);
        if let Some(finding) = state.findings.iter_mut().find(is_known) {
            let count = finding.report.count() + 1;
            finding.report.set_count(count);
            // What was told is found again by a later launch or call, which has to fail as well.
            if finding.is_told {
                report.set_count(count);
                *finding = Finding { report, receiver, is_told: false };
            }
        } else {
            if state.findings.len() == MAX_PAIRS
                && let Some(told) = state.findings.iter().position(|finding| finding.is_told)
            {
                state.others += state.findings.remove(told).report.count();
            }
            if state.findings.len() < MAX_PAIRS {
                state.findings.push(Finding { report, receiver, is_told: false });
            } else {
                state.others += 1;
            }
        }
        self.has_untold.store(true, Ordering::Release);
    }

    /// The oldest finding of `receiver` that was not returned yet.
    pub fn take(&self, receiver: Receiver) -> Option<Report> {
        self.take_where(|of| of == Some(receiver))
    }

    /// The oldest finding that no call has returned.
    pub fn take_any(&self) -> Option<Report> {
        self.take_where(|_| true)
    }

    fn take_where(&self, is_receiver: impl Fn(Option<Receiver>) -> bool) -> Option<Report> {
        if !self.has_untold.load(Ordering::Acquire) {
            return None;
        }
        self.find_texts();
        let mut state = lock(&self.state);
        let is_open = |finding: &Finding| !finding.is_told && is_receiver(finding.receiver);
        let Some(first) = state.findings.iter().position(is_open) else {
            if state.findings.iter().all(|finding| finding.is_told) {
                self.has_untold.store(false, Ordering::Release);
            }
            return None;
        };
        let mut report = state.findings[first].report.clone();
        let mut count = 0;
        // One report for the same lines, on whatever way the program came to them.
        for finding in &mut state.findings[first..] {
            if is_open(finding) && finding.report.is_same(&report) {
                finding.is_told = true;
                count += finding.report.count();
            }
        }
        report.set_count(count);
        Some(report)
    }

    /// All findings that are kept, whether or not a call has returned them.
    pub fn reports(&self) -> Vec<Report> {
        self.find_texts();
        lock(&self.state).findings.iter().map(|finding| finding.report.clone()).collect()
    }

    /// Findings in all.
    pub fn count(&self) -> u64 {
        let state = lock(&self.state);
        state.findings.iter().map(|finding| finding.report.count()).sum::<u64>() + state.others
    }

    /// Fills the texts of all places in. Files are read without the lock that the scheduler takes for a new finding.
    fn find_texts(&self) {
        let mut texts = lock(&self.texts);
        let open: Vec<_> = {
            let mut state = lock(&self.state);
            let open = state.findings.iter_mut().filter(|finding| !finding.is_told);
            open.flat_map(|finding| finding.report.places_mut()).filter_map(|place| place.open_site()).collect()
        };
        for id in open {
            if !texts.contains_key(&id)
                && let Some(site) = self.sites.get(id)
            {
                texts.insert(id, self.places.text(&site).into());
            }
        }
        let mut state = lock(&self.state);
        for place in state.findings.iter_mut().flat_map(|finding| finding.report.places_mut()) {
            if let Some(id) = place.open_site() {
                place.text = texts.get(&id).cloned();
            }
        }
    }
}

impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Findings").field("state", &self.state).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
