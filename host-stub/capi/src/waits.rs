//! Threads of the program that use this library, and those of them that wait for other ranks.
//!
//! If all of them wait at the same time, none is left that could end a wait: each is told at once.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::error::CallError;

/// Environment variable with the limit of a wait for other ranks, in seconds.
const TIMEOUT_VAR: &str = "HCCL_CONNECT_TIMEOUT";
/// Its default.
const TIMEOUT_DEFAULT_S: u64 = 120;
/// The values that it may have. A card takes them from 120 on.
const TIMEOUTS_S: std::ops::RangeInclusive<u64> = 1..=7200;

/// How long a call waits for other ranks.
///
/// # Errors
/// `HCCL_CONNECT_TIMEOUT` is wrong.
pub fn connect_timeout() -> Result<Duration, CallError> {
    let Some(value) = std::env::var_os(TIMEOUT_VAR) else { return Ok(Duration::from_secs(TIMEOUT_DEFAULT_S)) };
    match value.to_string_lossy().trim().parse() {
        Ok(seconds) if TIMEOUTS_S.contains(&seconds) => Ok(Duration::from_secs(seconds)),
        _ => {
            let (first, last) = (TIMEOUTS_S.start(), TIMEOUTS_S.end());
            let text = format!("{TIMEOUT_VAR} is {value:?}: must be a whole number of seconds from {first} to {last}");
            Err(CallError::Invalid(text))
        }
    }
}

/// What a wait that has reached its limit adds to its text.
pub fn timed_out(limit: Duration) -> String {
    format!("none has come within {} s ({TIMEOUT_VAR})", limit.as_secs())
}

/// A thread that waits.
struct Wait {
    /// Who waits for whom.
    what: String,
    /// The last change after which its condition was found not to hold.
    seen: u64,
    /// All threads wait: the texts of all.
    told: Option<Arc<str>>,
}

/// Threads that use this library, by number.
#[derive(Default)]
pub struct Waits {
    users: BTreeSet<u64>,
    waiting: BTreeMap<u64, Wait>,
    changes: u64,
}

impl Waits {
    /// `thread` uses this library.
    pub fn begin(&mut self, thread: u64) {
        self.users.insert(thread);
    }

    /// `thread` has ended.
    pub fn end(&mut self, thread: u64) {
        self.users.remove(&thread);
        self.waiting.remove(&thread);
        self.change();
    }

    /// Whether `thread` uses this library and has not ended.
    pub fn is_live(&self, thread: u64) -> bool {
        self.users.contains(&thread)
    }

    /// Something has changed that a thread may wait for.
    pub fn change(&mut self) {
        self.changes += 1;
    }

    /// What `thread` waits for has not come. Gives the text of all waits if no thread is left that could bring it.
    pub fn wait(&mut self, thread: u64, what: String) -> Option<Arc<str>> {
        let changes = self.changes;
        let wait = self.waiting.entry(thread).or_insert(Wait { what: String::new(), seen: 0, told: None });
        if wait.told.is_some() {
            return wait.told.clone();
        }
        (wait.what, wait.seen) = (what, changes);
        let is_stuck = |user| self.waiting.get(user).is_some_and(|wait| wait.seen == changes && wait.told.is_none());
        if !self.is_live(thread) || !self.users.iter().all(is_stuck) {
            return None;
        }
        let texts: Vec<_> = self.waiting.values().map(|wait| wait.what.as_str()).collect();
        let text: Arc<str> = format!("{}; no other thread of the program uses this library", texts.join(", ")).into();
        self.waiting.values_mut().for_each(|wait| wait.told = Some(Arc::clone(&text)));
        Some(text)
    }

    /// `thread` waits no longer.
    pub fn go_on(&mut self, thread: u64) {
        self.waiting.remove(&thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(waits: &mut Waits, thread: u64) -> Option<Arc<str>> {
        waits.wait(thread, format!("{thread} waits"))
    }

    #[test]
    fn all_are_told_once_the_last_one_waits() {
        let mut waits = Waits::default();
        waits.begin(1);
        waits.begin(2);
        assert_eq!(wait(&mut waits, 1), None);
        let text = wait(&mut waits, 2).unwrap();
        assert_eq!(&*text, "1 waits, 2 waits; no other thread of the program uses this library");
        assert_eq!(wait(&mut waits, 1), Some(text));
    }

    #[test]
    fn thread_that_has_not_looked_since_the_last_change_may_go_on() {
        let mut waits = Waits::default();
        waits.begin(1);
        waits.begin(2);
        assert_eq!(wait(&mut waits, 1), None);
        waits.change();
        assert_eq!(wait(&mut waits, 2), None);
        assert!(wait(&mut waits, 1).is_some());
    }

    #[test]
    fn thread_that_has_ended_is_not_waited_for() {
        let mut waits = Waits::default();
        waits.begin(1);
        waits.begin(2);
        assert_eq!(wait(&mut waits, 1), None);
        waits.end(2);
        assert!(!waits.is_live(2));
        assert!(wait(&mut waits, 1).is_some());
        waits.go_on(1);
        waits.begin(3);
        assert_eq!(wait(&mut waits, 1), None);
    }
}
