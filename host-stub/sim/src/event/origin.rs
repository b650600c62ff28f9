//! Who queued a task, as an error of the task names it.

use std::fmt;
use std::panic::Location;

use super::site::Place;

/// A thread, as the host program knows it: its index in the list of handles that it got by one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadIndex {
    pub(super) index: usize,
    pub(super) count: usize,
    /// Line of Rust that acquired it; `None`: `place` says where.
    pub(super) line: Option<&'static Location<'static>>,
    pub(super) place: Place,
}

impl fmt::Display for ThreadIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} of the {}", self.index, self.count)?;
        match self.line {
            Some(line) => write!(f, " acquired at {line}"),
            None => f.write_str(&self.place.after(" acquired")),
        }
    }
}

/// See the module. Empty where the device records nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskOrigin {
    /// Launch whose kernel queued it, if that is known.
    pub launch: Option<u64>,
    /// Where the kernel called.
    pub place: Place,
    /// Thread that it was queued on.
    pub thread: Option<ThreadIndex>,
}

/// `; queued at FILE:LINE (function) in launch 3 on thread 2 of the 4 acquired at FILE:LINE`: what is known of it.
impl fmt::Display for TaskOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.to_string();
        if place.is_empty() && self.launch.is_none() && self.thread.is_none() {
            return Ok(());
        }
        write!(f, "; queued{place}")?;
        if let Some(launch) = self.launch {
            write!(f, " in launch {launch}")?;
        }
        match &self.thread {
            Some(thread) => write!(f, " on {thread}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 240.
    #[test]
    fn what_is_not_known_is_left_out() {
        assert_eq!(TaskOrigin::default().to_string(), "");
        let thread = ThreadIndex { index: 2, count: 4, line: None, place: Place::default() };
        let origin = TaskOrigin { launch: Some(3), place: Place::default(), thread: Some(thread) };
        assert_eq!(origin.to_string(), "; queued in launch 3 on thread 2 of the 4");
    }
}
