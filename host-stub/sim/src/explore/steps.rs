//! A device as the engine of an exploration sees it: what can go on in it, one step at a time.

use std::time::Duration;

use crate::event::Actor;

/// What a device does that has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// A wait has ended, or the device has failed: look again.
    Worked,
    /// It waits, at most until this time.
    Until(Option<Duration>),
}

/// The scheduler of a device, without a thread of its own.
pub trait Steps: Send {
    /// Takes the commands that have come. Whether there were any.
    fn settle(&mut self, now: Duration) -> bool;

    /// Adds the queues and streams that can go on.
    fn ready(&mut self, now: Duration, into: &mut Vec<Actor>);

    /// One step of a queue or stream that can go on.
    fn run(&mut self, actor: Actor, now: Duration);

    /// Nothing can go on anywhere: waits begin, or end since their time is over.
    fn idle(&mut self, now: Duration) -> Idle;

    /// The device closes.
    fn close(&mut self, now: Duration);
}
