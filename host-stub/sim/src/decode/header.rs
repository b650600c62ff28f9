//! What every Ascend950 descriptor begins with.

use super::layout::Rule::{Any, Only, Reserved};
use super::layout::{Spec, spec};

/// Bytes 0..8, the same for every type.
pub(super) const HEADER: &[Spec] = &[
    spec("type", 0, 0, 6, Any),
    spec("lock", 0, 6, 1, Only(0)),
    spec("unlock", 0, 7, 1, Only(0)),
    spec("ie", 1, 0, 1, Only(0)),
    spec("pre_p", 1, 1, 1, Only(0)),
    spec("post_p", 1, 2, 1, Only(0)),
    spec("wr_cqe", 1, 3, 1, Only(0)),
    spec("ptr_mode", 1, 4, 1, Only(0)),
    spec("rtt_mode", 1, 5, 1, Only(0)),
    spec("head_update", 1, 6, 1, Only(0)),
    spec("reserved", 1, 7, 1, Reserved),
    spec("num_blocks", 2, 0, 16, Only(0)),
    // One 32-bit task id lies across the fields that the hardware names stream id and task id.
    spec("rt_stream_id", 4, 0, 16, Any),
    spec("task_id", 6, 0, 16, Any),
];

pub(super) const TYPE_NOTIFY_RECORD: u8 = 6;
pub(super) const TYPE_NOTIFY_WAIT: u8 = 7;
pub(super) const TYPE_WRITE_VALUE: u8 = 8;
pub(super) const TYPE_UBDMA: u8 = 9;
pub(super) const TYPE_SDMA: u8 = 11;
