//! Names of what a device has, as messages and events give them: plain data that every other file may import.

use crate::message::debug_is_the_message;

/// Number of a stream, unique in its device.
pub type StreamId = u32;

/// One use of a queue number, unique in its device: a queue that is acquired again has another generation.
pub type QueueGeneration = u64;

/// A queue, in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueName {
    /// Stream whose tasks the queue holds; `None`: the queue belongs to no thread.
    pub stream_id: Option<u32>,
    /// The queue.
    pub sq_id: u32,
}

impl std::fmt::Display for QueueName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(stream_id) = self.stream_id {
            write!(f, "stream {stream_id}, ")?;
        }
        write!(f, "sq {}", self.sq_id)
    }
}

/// Whose a notify is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A thread's.
    Thread {
        /// Stream of the thread.
        stream_id: StreamId,
        /// Index within the thread.
        index: u32,
    },
    /// Of an end of a channel: only its peer records it.
    Channel {
        /// Slot of the peer's device.
        peer: u32,
        /// Rank of the peer.
        peer_rank: u32,
        /// Index within the end.
        index: u32,
    },
    /// Made by itself, for streams of the host.
    Host,
}

/// A notify, in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifyName {
    /// Its id.
    pub id: u32,
    /// Its owner; `None`: not allocated.
    pub owner: Option<Owner>,
}

impl std::fmt::Display for NotifyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "notify {}", self.id)?;
        match self.owner {
            Some(Owner::Thread { stream_id, index }) => {
                write!(f, " (index {index} of the thread of stream {stream_id})")
            }
            Some(Owner::Channel { peer_rank, index, .. }) => {
                write!(f, " (index {index} of the channel to rank {peer_rank})")
            }
            Some(Owner::Host) => write!(f, " (of the host)"),
            None => write!(f, " (not allocated)"),
        }
    }
}

/// The id is not allocated.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("notify {0} belongs to no thread and to no host")]
pub struct NoSuchNotify(pub u32);
debug_is_the_message!(NoSuchNotify);

/// A notify that is left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The notify.
    pub notify: NotifyName,
    /// Its bit or count.
    pub value: u32,
    /// Records that no wait has taken; 0 for the count forms.
    pub untaken: u32,
}
