//! What deterministic mode keeps between two steps of the scheduler.

use crate::engine::Job;
use crate::event::Chooser;

/// The chooser, and what an engine has begun.
pub(crate) struct Turns {
    pub(crate) chooser: Box<dyn Chooser>,
    /// Transfers that were started and not made: engines end in any order.
    pub(crate) transfers: Vec<Job>,
}
