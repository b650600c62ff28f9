//! What a report of a race says: both accesses, the bytes and their allocation.

use std::fmt;
use std::sync::Arc;

use super::history::Kind;
use crate::event::Range;
use crate::stream::StreamId;

/// Who made an access, as far as a report names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maker {
    /// A task of a queue.
    Task {
        /// Kind of task, by name.
        kind: &'static str,
        /// Stream of the queue.
        stream_id: u32,
        /// The queue.
        sq_id: u32,
        /// Number of the task.
        task_id: u32,
        /// Launch whose kernel queued it, if that is known.
        launch: Option<u64>,
    },
    /// A copy or reduce that the host queued on a stream.
    StreamTransfer {
        /// The stream.
        stream_id: StreamId,
    },
    /// A copy by a host thread.
    HostCopy {
        /// Number of the thread.
        host: u64,
    },
    /// A free by a host thread.
    Free {
        /// Number of the thread.
        host: u64,
    },
}

/// One of the two accesses of a race, as a report names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RacingAccess {
    /// Who made it.
    pub maker: Maker,
    /// Read or write.
    pub kind: Kind,
    /// Kernel of the launch that queued the task.
    pub kernel: Option<Arc<str>>,
}

impl fmt::Display for RacingAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            Kind::Read => "read",
            Kind::Write => "write",
        };
        match self.maker {
            Maker::Task { kind, stream_id, sq_id, task_id, launch } => {
                write!(f, "the {verb} of task {task_id:#x} ({kind}, stream {stream_id}, sq {sq_id}")?;
                if let Some(launch) = launch {
                    write!(f, ", launch {launch}")?;
                }
                if let Some(kernel) = &self.kernel {
                    write!(f, " of kernel {kernel}")?;
                }
                f.write_str(")")
            }
            Maker::StreamTransfer { stream_id } => write!(f, "the {verb} of a transfer on stream {stream_id}"),
            Maker::HostCopy { host } => write!(f, "the {verb} of a copy by host thread {host}"),
            Maker::Free { host } => write!(f, "the free by host thread {host}"),
        }
    }
}

/// Two accesses that nothing orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The one that came first in this run.
    pub first: RacingAccess,
    /// The other one.
    pub second: RacingAccess,
    /// Bytes that both touch.
    pub range: Range,
    /// The allocation that they lie in; empty if it is not known.
    pub allocation: Range,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, range: Range { addr, len }, allocation } = self;
        write!(f, "race on {len} bytes at {addr:#x}")?;
        if allocation.len != 0 {
            let offset = addr - allocation.addr;
            write!(f, " (offset {offset} of the allocation of {} bytes at {:#x})", allocation.len, allocation.addr)?;
        }
        write!(f, ": nothing orders {second} behind {first}")
    }
}
