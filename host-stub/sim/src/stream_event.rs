//! Events of streams: places that a stream reaches, for which other streams and the host wait.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::vector_clock::VectorClock;

/// How far a stream has come on its way to a mark.
#[derive(Debug, Default)]
enum Place {
    /// Not there yet.
    #[default]
    Ahead,
    /// Reached at this time since the device was opened, with what had happened before.
    Reached(Duration, VectorClock),
    /// The stream ended its operations without it: the device has failed.
    GivenUp,
}

/// One record of an event on a stream.
#[derive(Debug)]
pub struct EventMark {
    event: u32,
    place: Mutex<Place>,
}

impl EventMark {
    /// A mark of the event with this number.
    pub fn new(event: u32) -> Self {
        Self { event, place: Mutex::default() }
    }

    /// Number of its event.
    pub fn event(&self) -> u32 {
        self.event
    }

    /// The stream has reached it.
    pub(super) fn reach(&self, at: Duration, before: &VectorClock) {
        *self.place() = Place::Reached(at, before.clone());
    }

    /// The stream does not reach it any more, unless it has.
    pub(super) fn end(&self) {
        let mut place = self.place();
        if matches!(*place, Place::Ahead) {
            *place = Place::GivenUp;
        }
    }

    /// Whether nothing that waits for it has to wait any longer.
    pub fn is_over(&self) -> bool {
        !matches!(*self.place(), Place::Ahead)
    }

    /// When it was reached, since the device was opened.
    pub fn reached_at(&self) -> Option<Duration> {
        match *self.place() {
            Place::Reached(at, _) => Some(at),
            _ => None,
        }
    }

    /// Joins what had happened before it to `clock`. `false`: the stream is not there yet.
    pub(super) fn pass(&self, clock: &mut VectorClock) -> bool {
        match &*self.place() {
            Place::Ahead => return false,
            Place::Reached(_, before) => clock.join(before),
            Place::GivenUp => {}
        }
        true
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
