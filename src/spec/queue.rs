//! Register block of one submission queue, as the image sees it.
//!
//! Single-writer words: the device's processor writes the doorbell, the host writes head and status.

use bitfield_struct::bitfield;

/// Distance between the register blocks of two queues, in bytes.
pub const SQ_REGS_STRIDE: u64 = 64;
/// Offset of the doorbell word (`u64`, written by the image).
pub const DOORBELL_OFFSET: usize = 0;
/// Offset of the head (`u32`, written by the host): next entry that the scheduler will fetch, `0..depth`.
pub const HEAD_OFFSET: usize = 8;
/// Offset of the status word (`u64`, written by the host), see [`QueueStatus`].
pub const STATUS_OFFSET: usize = 16;

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

/// Status word of a queue, one aligned 64-bit word: what the host lets the queue do (low 8 bits), how often it was reset
/// (40 bits), and the generation of its thread (high 16 bits).
///
/// Two words are equal only if state, resets and generation are. No generation of a thread slot is used twice, so a word
/// that was seen `enabled` is never seen again after a reset or with another thread.
///
/// Open: an unknown state counts as [`FREE`](Self::FREE). The constants are the words of generation 0 without a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct QueueStatus(pub u64);

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
    const RESET_BITS: u32 = 40;

    /// The state alone, comparable with the constants.
    pub const fn state(self) -> Self {
        Self(self.0 & ((1 << Self::STATE_BITS) - 1))
    }

    /// Resets and generation. After a change, head and tail restart at the head register.
    pub const fn epoch(self) -> u64 {
        self.0 >> Self::STATE_BITS
    }

    /// Generation of the thread, as in its handle.
    pub const fn generation(self) -> u16 {
        (self.0 >> (Self::STATE_BITS + Self::RESET_BITS)) as u16
    }

    /// This state with these resets and this generation, as [`epoch`](Self::epoch) gives them.
    pub const fn with_epoch(self, epoch: u64) -> Self {
        Self(self.state().0 | epoch << Self::STATE_BITS)
    }

    /// The same resets and generation in another state.
    pub const fn with_state(self, state: Self) -> Self {
        state.with_epoch(self.epoch())
    }

    /// This state of a queue that a thread of `generation` has just got.
    pub const fn with_generation(self, generation: u16) -> Self {
        self.with_epoch((generation as u64) << Self::RESET_BITS)
    }

    /// This state after one more reset; `None` after 2^40 of them, when the queue needs a new thread.
    pub const fn after_reset(self) -> Option<Self> {
        let next = self.with_epoch(self.epoch() + 1);
        if self.epoch() + 1 < 1 << (Self::RESET_BITS + 16) && next.generation() == self.generation() {
            Some(next)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_word_holds_state_resets_and_generation() {
        let status = QueueStatus::ENABLED.with_generation(0xfffe);
        assert_eq!((status.0, status.generation()), (0xfffe_0000_0000_0001, 0xfffe));
        let reset = status.after_reset().unwrap();
        assert_eq!((reset.0, reset.state(), reset.generation()), (0xfffe_0000_0000_0101, QueueStatus::ENABLED, 0xfffe));
    }

    /// Case 200.
    #[test]
    fn resets_never_change_the_generation() {
        for generation in [1, u16::MAX] {
            let last = QueueStatus(QueueStatus::ENABLED.with_generation(generation).0 | 0x0000_ffff_ffff_ff00);
            assert_eq!(last.generation(), generation);
            assert_eq!(last.after_reset(), None);
        }
    }
}
