//! A thread that takes turns in an exploration, and what it waits for.

use std::path::PathBuf;
use std::sync::{Arc, Condvar};

use crate::event::Actor;
use crate::ids::StreamId;

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// A time.
    Time,
    /// A change of head or status of a queue.
    Head { device: u32, sq_id: u32 },
    /// Another kernel of the device ends a call: it may hold a lock.
    Call { device: u32, core: usize },
    /// Operations of a stream, up to this place.
    Stream { device: u32, stream: StreamId, place: u64 },
    /// An answer of the scheduler of a device.
    Answer { device: u32 },
    /// The end of a host thread.
    Thread(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Takes no part.
    Absent,
    /// Can go on, or does.
    Ready,
    /// Can go on once `what` has happened, or at this time.
    Waiting { what: Awaited, until: u64 },
    /// Holds no turn, and waits for something outside of the library.
    Away,
}

/// A thread that takes turns.
pub(super) struct Seat {
    pub(super) actor: Actor,
    pub(super) status: Status,
    /// Folder of a host thread in /proc.
    pub(super) thread: Option<PathBuf>,
    /// Never gets a turn again.
    pub(super) expelled: bool,
    /// Expelled by the watchdog; not reported yet.
    pub(super) stuck: bool,
    /// Queue that the kernel has looked at since it last entered a call or waited.
    pub(super) looked: Option<u32>,
    /// Waits of the kernel that ended by time, one after the other.
    pub(super) polls: u32,
    /// The kernel has entered a call since it started.
    pub(super) in_call: bool,
    /// Times that the kernel has read the clock, with no other call between.
    pub(super) clock_reads: u32,
    pub(super) called: Arc<Condvar>,
}

impl Seat {
    pub(super) fn can_go_on(&self, now: u64) -> bool {
        match self.status {
            Status::Absent | Status::Away => false,
            Status::Ready => true,
            Status::Waiting { until, .. } => until <= now,
        }
    }

    /// When it goes on by itself.
    pub(super) fn until(&self) -> u64 {
        if let Status::Waiting { until, .. } = self.status { until } else { NEVER }
    }

    /// What it waits for, for a message.
    pub(super) fn describe(&self) -> Option<String> {
        let who = match self.actor {
            Actor::Core { device, core } => format!("the kernel on core {core} of device {device}"),
            Actor::Host(number) => format!("host thread {number}"),
            _ => return None,
        };
        let what = match &self.status {
            Status::Waiting { what, .. } => match what {
                Awaited::Time => "a time".to_owned(),
                Awaited::Head { sq_id, .. } => format!("the head of queue {sq_id}"),
                Awaited::Call { .. } => "a lock of the device library".to_owned(),
                Awaited::Stream { stream, .. } => format!("stream {stream}"),
                Awaited::Answer { .. } => "an answer of the scheduler".to_owned(),
                Awaited::Thread(number) => format!("the end of host thread {number}"),
            },
            Status::Away => "something outside of the library".to_owned(),
            Status::Absent | Status::Ready => return None,
        };
        Some(format!("{who} waits for {what}"))
    }
}
