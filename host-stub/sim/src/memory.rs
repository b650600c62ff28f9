//! What the device needs of its memory.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::message::debug_is_the_message;
use super::reduce::Reduce;

/// An access that is not inside HBM.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{len} bytes at {addr:#x} are not inside hbm")]
pub struct OutsideHbm {
    /// First byte.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
}
debug_is_the_message!(OutsideHbm);

/// What scheduler and engines need of memory. A test runs them over a plain vector.
pub trait Memory: Send + Sync + 'static {
    /// Reads the 64 bytes of a descriptor, in eight 64-bit words.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    fn load_sqe(&self, addr: u64) -> Result<[u8; 64], OutsideHbm>;

    /// Copies `len` bytes; the ranges may overlap.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    fn copy(&self, dst: u64, src: u64, len: u64) -> Result<(), OutsideHbm>;

    /// Reduces `len` bytes of `src` into those of `dst`, block by block in the order of the addresses.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    ///
    /// # Panics
    /// If `len` cuts an element.
    fn reduce(&self, dst: u64, src: u64, len: u64, reduce: Reduce) -> Result<(), OutsideHbm>;

    /// Whether `addr` is in this HBM.
    fn contains(&self, addr: u64) -> bool;

    /// Copies `len` bytes from another device's HBM to this one's.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    fn copy_from(&self, dst: u64, from: &Self, src: u64, len: u64) -> Result<(), OutsideHbm>
    where
        Self: Sized;

    /// Reduces `len` bytes of another device's HBM into those of this one's, as [`reduce`](Self::reduce).
    ///
    /// # Errors
    /// [`OutsideHbm`].
    fn reduce_from(&self, dst: u64, from: &Self, src: u64, len: u64, reduce: Reduce) -> Result<(), OutsideHbm>
    where
        Self: Sized;

    /// Writes `value` to the four bytes at `addr`.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    fn write_value(&self, addr: u64, value: u32) -> Result<(), OutsideHbm>;

    /// Writes bytes of HBM, for the host.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    fn write_hbm(&self, addr: u64, bytes: &[u8]) -> Result<(), OutsideHbm>;

    /// Reads bytes of HBM, for the host.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    fn read_hbm(&self, addr: u64, out: &mut [u8]) -> Result<(), OutsideHbm>;

    /// The first bytes of a range of HBM that have memory; `None`: none has, all of it is a hole, which reads as zeros. The range
    /// is not empty and inside HBM.
    fn first_data(&self, addr: u64, len: u64) -> Option<Range<u64>> {
        Some(addr..addr + len)
    }

    /// Stores the 64-bit word at `addr` of HBM, which is a multiple of 8. An AI CPU that reads it with acquire sees all that
    /// was written before.
    ///
    /// # Errors
    /// [`OutsideHbm`], also for an unaligned address.
    fn publish_hbm_word(&self, addr: u64, value: u64) -> Result<(), OutsideHbm>;

    /// Gives the memory of a range of HBM that holds nothing back to the system, if it can. What is read there next is zero, or
    /// what was there before.
    fn discard(&self, addr: u64, len: u64) {
        let _ = (addr, len);
    }

    /// The 64-bit word at `phys` of the low part.
    fn word64(&self, phys: u64) -> &AtomicU64;

    /// The 32-bit word at `phys` of the low part.
    fn word32(&self, phys: u64) -> &AtomicU32;
}
