//! What every reader of the event stream implements.

use super::what::Event;

/// A reader of the event stream. The scheduler calls it, or a host thread that asks for a result; never two at a time.
pub trait Observer: Send {
    /// Takes the next event.
    fn on(&mut self, event: &Event);
}
