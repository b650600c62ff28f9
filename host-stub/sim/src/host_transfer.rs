//! A copy or reduce by a stream.

use std::fmt;

use super::reduce::Reduce;

/// A copy or reduce that the host has queued.
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
