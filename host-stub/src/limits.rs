//! Limits of the host API that several files and messages name.
#![forbid(unsafe_code)]

use hcomm_aicpu::spec::map::HBM_MAX;
use hcomm_aicpu::spec::queue::MIN_DEPTH;

/// Most notifies of a thread.
pub const MAX_NOTIFIES: u32 = 65_535;
/// Most entries of a ring.
pub const MAX_DEPTH: u32 = 65_536;
/// Most ranks of a cluster.
pub const MAX_RANKS: usize = 16;
/// Largest value of `HCCL_BUFFSIZE` in MiB: the buffer is as large as the largest HBM.
pub const BUFFSIZE_MAX_MB: u64 = HBM_MAX >> 21;

/// Whether a ring can have `depth` entries.
pub(crate) fn is_depth(depth: u32) -> bool {
    (MIN_DEPTH..=MAX_DEPTH).contains(&depth)
}
