//! An observer that keeps all events.

use super::what::Event;

/// Most events that are kept; later ones are only counted.
const CAPACITY: usize = 1 << 20;

/// Keeps events in the order in which they come.
#[derive(Default)]
pub struct Recorder {
    events: Vec<Event>,
    lost: u64,
}

impl Recorder {
    /// Keeps `event`, if there is room.
    pub fn keep(&mut self, event: Event) {
        if self.events.len() < CAPACITY {
            self.events.push(event);
        } else {
            self.lost += 1;
        }
    }

    /// What was recorded so far, on a device whose HBM starts at `hbm_base`.
    pub fn trace(&self, hbm_base: u64) -> Trace {
        Trace { hbm_base, events: self.events.clone(), lost: self.lost }
    }
}

/// What a device has recorded. Its text has one line for each event, with addresses of HBM as offsets from its start: so it
/// does not depend on the slot of the process that the device got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// First address of HBM.
    pub hbm_base: u64,
    /// Events, in the order in which they were recorded.
    pub events: Vec<Event>,
    /// Events after those, for which there was no room.
    pub lost: u64,
}
