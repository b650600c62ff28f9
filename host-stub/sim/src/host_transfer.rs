//! Copies, reduces and fills by a stream.

use std::fmt;

use super::event::Range;
use super::memory::{Memory, OutsideHbm};
use super::reduce::Reduce;

/// A copy or reduce of device memory that the host has queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTransfer {
    /// First byte written.
    pub dst: u64,
    /// First byte read.
    pub src: u64,
    /// Bytes.
    pub len: u64,
    /// `None`: a copy.
    pub reduce: Option<Reduce>,
}

impl fmt::Display for HostTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dst, src, len, reduce } = self;
        let kind = if reduce.is_some() { "reduce" } else { "copy" };
        write!(f, "{kind} of {len} bytes from {src:#x} to {dst:#x}")
    }
}

/// What a stream does with device memory that the device itself does not know: a copy from or to the host, or a fill.
pub struct HostWork {
    /// What it is, for messages.
    pub text: String,
    /// Bytes of the device that it reads.
    pub reads: Range,
    /// Bytes of the device that it writes.
    pub writes: Range,
    /// Does it, once both ranges are known to be the user's.
    pub run: WorkFn,
}

/// The work of [`HostWork`].
pub type WorkFn = Box<dyn FnOnce(&dyn Memory) -> Result<(), OutsideHbm> + Send>;

impl fmt::Debug for HostWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
