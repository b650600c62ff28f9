//! Register block of one submission queue, as the image sees it.
//!
//! Single-writer words: the image writes the doorbell, the host writes head and status.

use bitfield_struct::bitfield;

/// Distance between the register blocks of two queues, in bytes.
pub const SQ_REGS_STRIDE: u64 = 64;
/// Offset of the doorbell word (`u64`, written by the image).
pub const DOORBELL_OFFSET: usize = 0;
/// Offset of the head (`u32`, written by the host): next entry that the scheduler will fetch, `0..depth`.
pub const HEAD_OFFSET: usize = 8;
/// Offset of the status word (`u32`, written by the host), see [`QueueStatus`].
pub const STATUS_OFFSET: usize = 12;

/// Smallest depth of a ring: at most `depth - 1` entries are outstanding.
pub const MIN_DEPTH: u32 = 2;
/// Depth of a ring unless the owner asks for another one. A queue says its own depth; nothing else may assume it.
pub const DEFAULT_DEPTH: u32 = 2048;

/// The doorbell word: one aligned 64-bit store publishes the tail and counts the store.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct Doorbell {
    /// One past the last published entry, `0..depth`.
    pub tail: u32,
    /// Doorbells rung since the queue was made, modulo 2^32.
    pub count: u32,
}

/// Status word of a queue: what the host lets it do (low 8 bits), and which life it is in (high 24 bits).
///
/// Open: an unknown state counts as [`FREE`](Self::FREE). The constants are the words of a queue in epoch 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct QueueStatus(pub u32);

impl QueueStatus {
    /// Belongs to no thread.
    pub const FREE: Self = Self(0);
    /// Takes tasks.
    pub const ENABLED: Self = Self(1);
    /// Refuses the doorbell.
    pub const REFUSING: Self = Self(2);
    /// Its communicator is being suspended.
    pub const SUSPENDED: Self = Self(3);

    const STATE_BITS: u32 = 8;

    /// The state alone, comparable with the constants.
    pub const fn state(self) -> Self {
        Self(self.0 & ((1 << Self::STATE_BITS) - 1))
    }

    /// Changes when a new thread gets the queue and when the queue is reset, so that no two of its lives have an enabled
    /// word in common. After a change head and tail start anew at the head register.
    pub const fn epoch(self) -> u32 {
        self.0 >> Self::STATE_BITS
    }

    /// This state in `epoch`.
    pub const fn with_epoch(self, epoch: u32) -> Self {
        Self(self.state().0 | epoch << Self::STATE_BITS)
    }
}
