//! Tasks and doorbells as lines of the log, at level `trace`.
#![forbid(unsafe_code)]

use hcomm_sim::event::{Event, Observer, What};

use crate::backend::log::TARGET;

/// Logs tasks and doorbells.
pub struct TraceLog;

impl TraceLog {
    /// The observer; `None`: the program's logger takes no such lines when the device opens.
    pub fn wanted() -> Option<Box<dyn Observer>> {
        log::log_enabled!(target: TARGET, log::Level::Trace).then(|| Box::new(Self) as _)
    }
}

impl Observer for TraceLog {
    fn on(&mut self, event: &Event) {
        let is_shown = matches!(
            event.what,
            What::Doorbell { .. }
                | What::DoorbellRefused { .. }
                | What::TaskBegan { .. }
                | What::TaskEnded { .. }
                | What::TasksDropped { .. }
                | What::Entry { .. }
        );
        if is_shown {
            log::trace!(target: TARGET, "{event}");
        }
    }
}
