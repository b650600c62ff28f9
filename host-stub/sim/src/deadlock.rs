//! A deadlock: what is known of it, and its text.

use std::time::Duration;

use super::ids::{NotifyName, QueueName, StreamId};

/// How long it lasts until a warning is given.
pub const WARN_AFTER: Duration = Duration::from_millis(200);
/// Environment variable with the limit of `deadlock_limit` of the scheduler.
pub const LIMIT_VAR: &str = "HCOMM_SIM_DEADLOCK_LIMIT";

/// The limit that a number of seconds above 0 means, also a fraction.
///
/// # Errors
/// Any other text.
pub fn parse_limit(text: &str) -> Result<Duration, &'static str> {
    let limit = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit.filter(|limit| !limit.is_zero()).ok_or("must be a number of seconds above 0")
}

/// Nothing can go on, and a thread of the host waits.
#[derive(Clone, Copy, Debug)]
pub struct Halt {
    pub(crate) since: Duration,
    /// When the threads of the process are counted next.
    pub(crate) look_at: Duration,
    /// At the last look, no thread could act any more.
    pub(crate) was_certain: bool,
    pub(crate) warned: bool,
    /// The process has been told how many threads wait.
    pub(crate) is_published: bool,
}

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A task of a queue.
    Task {
        /// Queue.
        queue: QueueName,
        /// Task.
        task_id: u32,
    },
    /// A stream of the host.
    Stream(StreamId),
}

impl std::fmt::Display for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Task { queue, task_id } => write!(f, "{queue}, task {task_id:#x}"),
            Self::Stream(id) => write!(f, "stream {id}"),
        }
    }
}

/// A wait, and what its queue or stream would record behind it. Notifies are those of the device with this slot.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) waiter: Waiter,
    pub(crate) notify: (u32, NotifyName),
    pub(crate) records: Vec<(u32, u32)>,
    /// Rank of its device, as the own device's messages name it; `None`: of the own device.
    pub(crate) rank: Option<u32>,
}

/// Waits that never end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Each waits for a notify that the next one would record after its own wait. The rank if it is one of another device.
    pub waits: Vec<(Option<u32>, Waiter, NotifyName)>,
    /// The last one waits for the first. Otherwise nothing is left that would record its notify.
    pub is_cycle: bool,
    /// One of the notifies that was recorded while it was still set, and by whom: that record is what is missing now.
    pub doubled: Option<(NotifyName, String)>,
    /// How it was found out.
    pub found: Found,
}

/// How a deadlock was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No thread of the process could act any more.
    Certain,
    /// It has lasted for as long as it may.
    Limit {
        /// The limit.
        limit: Duration,
        /// Threads of the process that could still act; `None`: not known.
        free: Option<u32>,
    },
}

struct OfRank<'a>(Option<u32>, &'a Waiter);

impl std::fmt::Display for OfRank<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self(Some(rank), waiter) => write!(f, "rank {rank}'s {waiter}"),
            Self(None, waiter) => waiter.fmt(f),
        }
    }
}

impl std::fmt::Display for Deadlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "deadlock: ")?;
        for (index, (rank, waiter, notify)) in self.waits.iter().enumerate() {
            let waiter = OfRank(*rank, waiter);
            match index {
                0 => write!(f, "{waiter} waits for {notify}")?,
                _ => write!(f, ", which is to be recorded behind the wait of {waiter} for {notify}")?,
            }
        }
        match self.waits.first() {
            Some((rank, first, _)) if self.is_cycle => {
                write!(f, ", which is to be recorded behind the wait of {}", OfRank(*rank, first))?;
            }
            _ => write!(f, ", which nothing is left to record")?,
        }
        if let Some((notify, by)) = &self.doubled {
            write!(
                f,
                "; {notify} was recorded by {by} while it was still set: that record was lost, wait between the two"
            )?;
        }
        match self.found {
            Found::Certain => Ok(()),
            Found::Limit { limit, free: None } => write!(f, "; nothing could go on for {limit:?}"),
            Found::Limit { limit, free: Some(free) } => {
                write!(f, "; nothing could go on for {limit:?}, and none of {} changed that", threads(free))
            }
        }
    }
}

pub(crate) fn threads(count: u32) -> String {
    format!("{count} host thread{}", if count == 1 { "" } else { "s" })
}
