//! A list of decisions: made again, and written down.

use std::sync::{Arc, Mutex};

use super::engine::lock;
use crate::event::{Access, Actor, Chooser};

/// Makes the decisions of a list, and after its end the first choice each time.
pub struct Replay {
    decisions: Vec<u32>,
    place: usize,
}

impl Replay {
    /// The decisions of the choices between two or more.
    pub fn new(decisions: Vec<u32>) -> Self {
        Self { decisions, place: 0 }
    }
}

impl Chooser for Replay {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        if ready.len() < 2 {
            return 0;
        }
        let decision = self.decisions.get(self.place).map_or(0, |decision| *decision as usize);
        self.place += 1;
        // Of another program: the end of the run will show it.
        decision.min(ready.len() - 1)
    }
}

/// Decisions that were made between two or more.
pub type Written = Arc<Mutex<Vec<u32>>>;

/// Writes down what another chooser decides.
pub struct Writer {
    chooser: Box<dyn Chooser>,
    written: Written,
}

impl Writer {
    /// Writes the decisions of `chooser` to `written`.
    pub fn new(chooser: Box<dyn Chooser>, written: &Written) -> Self {
        Self { chooser, written: Arc::clone(written) }
    }
}

impl Chooser for Writer {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        let choice = self.chooser.choose(ready);
        if ready.len() > 1 {
            lock(&self.written).push(choice as u32);
        }
        choice
    }

    fn ran(&mut self, accesses: &[Access]) {
        self.chooser.ran(accesses);
    }

    fn time_passed(&mut self) {
        self.chooser.time_passed();
    }
}
