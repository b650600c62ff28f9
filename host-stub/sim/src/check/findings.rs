//! What the checks of a device have found, until a call of the host returns it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::report::Race;
use crate::event::HostThread;
use crate::stream::StreamId;

/// Pairs of accesses that are kept; later ones are only counted.
const MAX_PAIRS: usize = 64;

/// Whose next call returns a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The next synchronise of a stream.
    Stream(StreamId),
    /// The call that a host thread is in.
    Host(HostThread),
}

#[derive(Debug)]
struct Finding {
    race: Race,
    receiver: Option<Receiver>,
    /// How often it was found.
    count: u64,
    is_told: bool,
}

#[derive(Debug, Default)]
struct State {
    findings: Vec<Finding>,
    /// Races for which there was no room.
    lost: u64,
}

/// What was found. Each pair of accesses once, then counted.
#[derive(Debug, Default)]
pub struct Findings(Mutex<State>);

impl Findings {
    /// Adds a race, which a call of `receiver` returns; `None`: the one that looks at what is left.
    pub(super) fn add(&self, race: Race, receiver: Option<Receiver>) {
        let mut state = self.lock();
        let known = |finding: &&mut Finding| {
            finding.receiver == receiver && finding.race.first == race.first && finding.race.second == race.second
        };
        if let Some(finding) = state.findings.iter_mut().find(known) {
            finding.count += 1;
        } else if state.findings.len() < MAX_PAIRS {
            state.findings.push(Finding { race, receiver, count: 1, is_told: false });
        } else {
            state.lost += 1;
        }
    }

    /// The oldest race of `receiver` that was not returned yet.
    pub fn take(&self, receiver: Receiver) -> Option<Race> {
        let mut state = self.lock();
        let finding =
            state.findings.iter_mut().find(|finding| finding.receiver == Some(receiver) && !finding.is_told)?;
        finding.is_told = true;
        Some(finding.race.clone())
    }

    /// Races that no call has returned, and how often others were found.
    pub fn untold(&self) -> Vec<Race> {
        self.lock().findings.iter().filter(|finding| !finding.is_told).map(|finding| finding.race.clone()).collect()
    }

    /// Races that were found in all.
    pub fn count(&self) -> u64 {
        let state = self.lock();
        state.findings.iter().map(|finding| finding.count).sum::<u64>() + state.lost
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
