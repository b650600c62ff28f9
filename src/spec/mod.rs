//! Formats only: what host, device image and task scheduler agree on, byte by byte.
//!
//! | module | format |
//! |---|---|
//! | [`code`] | result codes of the C API |
//! | [`soc`] | generations of the chip |
//! | [`stars950`], [`stars910`] | 64-byte task descriptors (SQE) |
//! | [`ub`] | work entries of a UB channel, and their doorbell descriptor |
//! | [`data_type`] | element types and reduce operators, and their SDMA codes |
//! | [`queue`] | register block of a submission queue |
//! | [`thread`] | thread handle and thread descriptor |
//! | [`channel`] | channel handle and channel descriptor |
//! | [`comm`] | table of communicators |
//! | [`card`] | launches and status of a library on a card |
//! | [`params`] | head of a kernel's launch parameters |
//! | [`map`] | physical and virtual addresses |
//! | [`record`] | records of calls, for the checks of the host |
//! | [`own_access`] | accesses of HBM by the program's own code, for the check `core` |
//! | [`mailbox`] | boot block, mailbox, fault record and log ring of the device image |
//!
//! Nothing here touches memory. All words are little-endian, as both processors are.
#![forbid(unsafe_code)]

pub mod card;
pub mod channel;
pub mod code;
pub mod comm;
pub mod data_type;
pub mod mailbox;
pub mod map;
pub mod own_access;
pub mod params;
pub mod queue;
pub mod record;
pub mod runner;
pub mod soc;
pub mod stars910;
pub mod stars950;
pub mod thread;
pub mod ub;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const _: () = assert!(cfg!(target_endian = "little"), "all formats are little-endian words of the processor");

/// Size of a task descriptor (SQE) in bytes, on every SoC.
pub const SQE_SIZE: usize = 64;

/// One task descriptor as the ring holds it: eight 64-bit words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(8))]
pub struct Sqe(pub [u64; SQE_SIZE / 8]);
const _: () = assert!(size_of::<Sqe>() == SQE_SIZE);

impl Sqe {
    /// Of 32-bit words. Put together here, so that a program that chooses between descriptors keeps them in registers.
    #[inline(always)]
    pub(crate) const fn of_words(words: [u32; SQE_SIZE / 4]) -> Self {
        let mut pairs = [0; SQE_SIZE / 8];
        let mut index = 0;
        while index < pairs.len() {
            pairs[index] = words[2 * index] as u64 | (words[2 * index + 1] as u64) << 32;
            index += 1;
        }
        Self(pairs)
    }
}

/// The id of a notify does not fit into the field of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("notify id {id} is above {limit}")]
pub struct NotifyIdTooLarge {
    /// The id.
    pub id: u32,
    /// Largest that the field holds.
    pub limit: u32,
}

impl NotifyIdTooLarge {
    const fn check(id: u32, limit: u32) -> Result<(), Self> {
        if id > limit { Err(Self { id, limit }) } else { Ok(()) }
    }
}

/// Address in the device's address space: the same number in the host process, in the image and in a descriptor.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(transparent)]
pub struct DeviceAddr(pub u64);

impl DeviceAddr {
    /// Whether this is the null address, which no entry point accepts.
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }
}

impl<T> From<*const T> for DeviceAddr {
    fn from(ptr: *const T) -> Self {
        Self(ptr as usize as u64)
    }
}

impl<T> From<*mut T> for DeviceAddr {
    fn from(ptr: *mut T) -> Self {
        Self(ptr as usize as u64)
    }
}

impl core::fmt::Display for DeviceAddr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
