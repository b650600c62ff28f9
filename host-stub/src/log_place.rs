//! Where a line of the device's log comes from: kernel, launch, core and time. A logger asks while it takes the line.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use hcomm_sim::deterministic::Turn;

/// Launch that a core runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Name of the kernel.
    pub kernel: Arc<str>,
    /// Number of the launch on its device, from 1.
    pub launch: u64,
}

/// Where a line of the log comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlace {
    /// The launch.
    pub running: Running,
    /// Core of the AI CPU.
    pub core: usize,
    /// Microseconds of the clock that kernels read, if they came with the line. In deterministic mode they are virtual; no time is
    /// that of a card.
    pub at_us: Option<u64>,
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { running: Running { kernel, launch }, core, at_us } = self;
        write!(f, "{kernel}, launch {launch}, core {core}")?;
        match at_us {
            Some(us) => write!(f, ", {}.{:06} s", us / 1_000_000, us % 1_000_000),
            None => Ok(()),
        }
    }
}

/// Where the lines of a thread come from.
enum Source {
    /// A kernel that the thread runs.
    Kernel { running: Running, core: usize, turn: Arc<dyn Turn> },
    /// A line of another processor.
    Line(LogPlace),
}

thread_local! {
    static SOURCE: RefCell<Option<Source>> = const { RefCell::new(None) };
}

/// Where the line comes from that the calling thread logs; `None`: not from a kernel. For loggers.
pub fn log_place() -> Option<LogPlace> {
    let place = |source: &Source| match source {
        Source::Kernel { running, core, turn } => {
            let at_us = u64::try_from(turn.now().as_micros()).ok();
            LogPlace { running: running.clone(), core: *core, at_us }
        }
        Source::Line(place) => place.clone(),
    };
    // When the thread ends, its values may be gone.
    SOURCE.try_with(|source| source.borrow().as_ref().map(place)).ok().flatten()
}

/// Lines that `log` logs come from `place`.
pub(crate) fn during<R>(place: Option<LogPlace>, log: impl FnOnce() -> R) -> R {
    let before = SOURCE.replace(place.map(Source::Line));
    let result = log();
    SOURCE.set(before);
    result
}

/// The calling thread runs a kernel from now on.
pub(crate) fn begin(running: Running, core: usize, turn: &Arc<dyn Turn>) {
    SOURCE.set(Some(Source::Kernel { running, core, turn: Arc::clone(turn) }));
}

/// The kernel of the calling thread has ended.
pub(crate) fn end() {
    SOURCE.set(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_that_of_the_line_and_none_afterwards() {
        let running = Running { kernel: "k".into(), launch: 3 };
        let place = LogPlace { running: running.clone(), core: 1, at_us: Some(1_000_020) };
        assert_eq!(during(Some(place.clone()), log_place), Some(place.clone()));
        assert_eq!(log_place(), None);
        assert_eq!(place.to_string(), "k, launch 3, core 1, 1.000020 s");
        assert_eq!(LogPlace { running, core: 0, at_us: None }.to_string(), "k, launch 3, core 0");
    }
}
