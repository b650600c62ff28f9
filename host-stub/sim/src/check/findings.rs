//! What the checks of a device have found, until a call of the host returns it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::report::Race;
use crate::event::{HostThread, Site, SiteId, Sites};
use crate::stream::StreamId;

/// Pairs of calls that are kept; later ones are only counted.
const MAX_PAIRS: usize = 64;

/// Whose next call returns a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The next synchronise of a stream.
    Stream(StreamId),
    /// The call that a host thread is in.
    Host(HostThread),
}

/// Finds file and line of places in programs.
pub trait Places: Send + Sync {
    /// Text of the place: file, line and function of the first frame that is not the library's, as far as they are known.
    fn text(&self, site: &Site) -> String;
}

#[derive(Debug)]
struct Finding {
    race: Race,
    receiver: Option<Receiver>,
    is_told: bool,
}

#[derive(Debug, Default)]
struct State {
    findings: Vec<Finding>,
    /// Races whose pairs are not kept, or not any more.
    others: u64,
}

/// What was found. Each pair of calls once, then counted.
pub struct Findings {
    state: Mutex<State>,
    /// There may be a finding that was not told.
    has_untold: AtomicBool,
    sites: Arc<Sites>,
    places: Box<dyn Places>,
    texts: Mutex<HashMap<SiteId, Arc<str>>>,
}

impl Findings {
    /// No findings. `places` knows the places that `sites` holds.
    pub fn new(sites: Arc<Sites>, places: Box<dyn Places>) -> Self {
        Self { state: Mutex::default(), has_untold: AtomicBool::new(false), sites, places, texts: Mutex::default() }
    }

    /// Adds a race, which a call of `receiver` returns; `None`: the one that looks at what is left.
    pub(super) fn add(&self, race: Race, receiver: Option<Receiver>) {
        let mut state = lock(&self.state);
        let is_known = |finding: &&mut Finding| finding.receiver == receiver && finding.race.is_same_pair(&race);
        if let Some(finding) = state.findings.iter_mut().find(is_known) {
            finding.race.count += 1;
            // What was told is found again by a later launch or call, which has to fail as well.
            if finding.is_told {
                *finding = Finding { race: Race { count: finding.race.count, ..race }, receiver, is_told: false };
            }
        } else {
            if state.findings.len() == MAX_PAIRS
                && let Some(told) = state.findings.iter().position(|finding| finding.is_told)
            {
                state.others += state.findings.remove(told).race.count;
            }
            if state.findings.len() < MAX_PAIRS {
                state.findings.push(Finding { race, receiver, is_told: false });
            } else {
                state.others += 1;
            }
        }
        self.has_untold.store(true, Ordering::Release);
    }

    /// The oldest race of `receiver` that was not returned yet.
    pub fn take(&self, receiver: Receiver) -> Option<Race> {
        self.take_where(|of| of == Some(receiver)).map(|(race, _)| race)
    }

    /// The oldest race that no call has returned, and the number of such pairs that are left.
    pub fn take_any(&self) -> Option<(Race, usize)> {
        self.take_where(|_| true)
    }

    fn take_where(&self, is_receiver: impl Fn(Option<Receiver>) -> bool) -> Option<(Race, usize)> {
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
        let mut race = state.findings[first].race.clone();
        race.count = 0;
        // One report for one pair of lines, on whatever way the program came to them.
        for finding in &mut state.findings[first..] {
            if is_open(finding) && finding.race.is_same_pair(&race) {
                finding.is_told = true;
                race.count += finding.race.count;
            }
        }
        let left = state.findings.iter().filter(|finding| is_open(finding)).count();
        Some((race, left))
    }

    /// All races that are kept, whether or not a call has returned them.
    pub fn all(&self) -> Vec<Race> {
        self.find_texts();
        lock(&self.state).findings.iter().map(|finding| finding.race.clone()).collect()
    }

    /// Races that were found in all.
    pub fn count(&self) -> u64 {
        let state = lock(&self.state);
        state.findings.iter().map(|finding| finding.race.count).sum::<u64>() + state.others
    }

    /// Fills the texts of all places in. Files are read without the lock that the scheduler takes for a new finding.
    fn find_texts(&self) {
        let mut texts = lock(&self.texts);
        let open: Vec<_> = {
            let mut state = lock(&self.state);
            let races = state.findings.iter_mut().filter(|finding| !finding.is_told).map(|finding| &mut finding.race);
            races.flat_map(|race| race.places_mut().filter_map(|place| place.open_site()).collect::<Vec<_>>()).collect()
        };
        for id in open {
            if !texts.contains_key(&id)
                && let Some(site) = self.sites.get(id)
            {
                texts.insert(id, self.places.text(&site).into());
            }
        }
        let mut state = lock(&self.state);
        for place in state.findings.iter_mut().flat_map(|finding| finding.race.places_mut()) {
            if let Some(id) = place.open_site() {
                place.text = texts.get(&id).cloned();
            }
        }
    }
}

impl std::fmt::Debug for Findings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Findings").field("state", &self.state).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
