//! What a report of an uninitialised read says: who used the bytes, which they are, and how sure it is.

use std::fmt;
use std::sync::Arc;

use super::init::{Certainty, Uninitialised};
use super::report::{CallPlace, RacyAllocation, at};
use crate::event::{HostThread, TaskPlace};
use crate::stream::StreamId;

/// Who has used bytes that were never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A task.
    Task {
        /// Kind of task, by name.
        kind: &'static str,
        /// Where it was in its queue.
        task: TaskPlace,
        /// Kernel that queued it, if that is known.
        kernel: Option<Arc<str>>,
    },
    /// A reduce that the host queued on a stream.
    StreamTransfer {
        /// The stream.
        stream_id: StreamId,
    },
    /// The code of a kernel itself.
    Own {
        /// Launch of the kernel.
        launch: u64,
        /// The kernel, if it is known.
        kernel: Option<Arc<str>>,
    },
    /// A copy to the host.
    HostCopy {
        /// The thread that has called.
        host: HostThread,
    },
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task { kind, task: TaskPlace { stream_id, sq_id, slot, task_id }, kernel } => {
                write!(f, "task {task_id:#x} ({kind}, stream {stream_id}, sq {sq_id}, slot {slot}")?;
                match kernel {
                    Some(kernel) => write!(f, ", kernel {kernel})"),
                    None => f.write_str(")"),
                }
            }
            Self::StreamTransfer { stream_id } => write!(f, "a reduce on stream {stream_id}"),
            Self::Own { launch, kernel } => match kernel {
                Some(kernel) => write!(f, "the code of kernel {kernel} itself in launch {launch}"),
                None => write!(f, "the code of the kernel itself in launch {launch}"),
            },
            Self::HostCopy { .. } => f.write_str("a copy to the host"),
        }
    }
}

/// A use of bytes that were never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UninitialisedRead {
    /// Who.
    pub reader: Reader,
    /// Where the program called for it.
    pub place: CallPlace,
    /// The bytes.
    pub found: Uninitialised,
    /// The allocation that they lie in, if it is known.
    pub allocation: Option<RacyAllocation>,
    /// How often the same call has done so.
    pub count: u64,
}

impl UninitialisedRead {
    /// Whether a kernel's own code has used them.
    pub fn is_of_own_code(&self) -> bool {
        matches!(self.reader, Reader::Own { .. })
    }

    /// Whether it is an error: it is certain, and it is no copy to the host of bytes that nothing has touched, such as the end of
    /// a buffer.
    pub fn is_error(&self) -> bool {
        let is_tail = matches!(self.reader, Reader::HostCopy { .. }) && !self.found.is_carried;
        self.found.certainty == Certainty::Certain && !is_tail
    }

    /// Whether a report of this one stands for `other`, too: the same bytes for the same reader.
    pub fn is_same(&self, other: &Self) -> bool {
        self.reader == other.reader && self.place == other.place && self.found == other.found
    }

    /// The places that a report of it names.
    pub fn places_mut(&mut self) -> Vec<&mut CallPlace> {
        let allocation = self.allocation.iter_mut().map(|allocation| &mut allocation.place);
        std::iter::once(&mut self.place).chain(allocation).collect()
    }
}

impl fmt::Display for UninitialisedRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reader, place, found: Uninitialised { range, is_carried, certainty }, allocation, .. } = self;
        write!(f, "uninitialised read: {reader}")?;
        at(f, if self.is_of_own_code() { "" } else { ", called" }, place)?;
        write!(f, " uses {} bytes at {:#x}", range.end - range.start, range.start)?;
        if let Some(RacyAllocation { range: all, place }) = allocation {
            write!(f, " (offset {} of the allocation of {} bytes at {:#x}", range.start - all.addr, all.len, all.addr)?;
            at(f, ", made", place)?;
            f.write_str(")")?;
        }
        f.write_str(match (is_carried, certainty) {
            (true, Certainty::Certain) => " that a task has copied there from memory that was never written",
            (false, Certainty::Certain) => " that were never written",
            (true, Certainty::Possible) => {
                " that a task has copied there from memory that was perhaps never written: check core sees the kernel's own stores"
            }
            (false, Certainty::Possible) => " that were perhaps never written: check core sees the kernel's own stores",
        })
    }
}
