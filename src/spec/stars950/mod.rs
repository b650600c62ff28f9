//! Task descriptors (SQE) of Ascend950. Source: docs/spec.md, "Ascend950 descriptors".
//!
//! A builder writes all 64 bytes: reserved fields are zero, whatever the slot held before.

mod notify;
mod sdma;
mod write_value;

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use notify::{MAX_NOTIFY_ID, NotifyRecord, NotifySqe, NotifyWait};
pub use sdma::{Sdma, SdmaSqe};
pub(super) use write_value::WriteControl;
pub use write_value::{AddrTooLarge, MAX_WRITE_ADDR, WriteValue, WriteValueSqe};

/// Number of a descriptor kind. Open: any number read from a ring is a valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqeType(pub u8);

impl SqeType {
    /// Records a notify.
    pub const NOTIFY_RECORD: Self = Self(6);
    /// Waits for a notify.
    pub const NOTIFY_WAIT: Self = Self(7);
    /// Writes a value to an address.
    pub const WRITE_VALUE: Self = Self(8);
    /// UB transfer: a doorbell of a work ring, see [`ub`](super::ub).
    pub const UBDMA: Self = Self(9);
    /// SDMA copy or reduce.
    pub const SDMA: Self = Self(11);
}

/// `kernelCredit` of a task that the queue's own timer may end.
pub const CREDIT_DEFAULT: u8 = 254;
/// `kernelCredit` of a task that the queue's timer leaves alone: a wait that it ended would miss its record.
pub const CREDIT_NEVER: u8 = 255;

/// First word of the header of every kind.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct HeaderFlags {
    /// Kind, see [`SqeType`].
    #[bits(6)]
    pub sqe_type: u8,
    /// Locks the queue's hardware slot.
    pub lock: bool,
    /// Unlocks it.
    pub unlock: bool,
    /// Raises an interrupt.
    pub ie: bool,
    /// Pre-processing.
    pub pre_p: bool,
    /// Post-processing.
    pub post_p: bool,
    /// Writes a completion entry.
    pub wr_cqe: bool,
    /// Parameters are behind a pointer.
    pub ptr_mode: bool,
    /// Run-to-completion mode.
    pub rtt_mode: bool,
    /// Reports the head.
    pub head_update: bool,
    #[bits(1)]
    reserved: u8,
    /// Blocks of a compute kernel.
    pub num_blocks: u16,
}

/// Bytes 0..8 of every descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SqeHeader {
    /// Kind and flags.
    pub flags: HeaderFlags,
    /// 32-bit task id: its low half lies in the field named stream id, its high half in the field named task id.
    pub task_id: u32,
}
const _: () = assert!(size_of::<SqeHeader>() == 8);

impl SqeHeader {
    pub(super) const fn new(sqe_type: SqeType, task_id: u32) -> Self {
        Self { flags: HeaderFlags::new().with_sqe_type(sqe_type.0), task_id }
    }
}

/// Word 3: how long the queue lets a task run.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Credit {
    /// Kind of notify; zero in the other kinds.
    pub sub_type: u16,
    /// [`CREDIT_DEFAULT`] or [`CREDIT_NEVER`].
    pub kernel_credit: u8,
    reserved_high: u8,
}
