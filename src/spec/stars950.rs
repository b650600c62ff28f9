//! Task descriptors (SQE) of Ascend950. Source: docs/spec.md, "Ascend950 descriptors".
//!
//! A builder writes all 64 bytes: reserved fields are zero, whatever the slot held before.

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

use super::data_type::{DataType, ReduceOp, sdma_opcode};
use super::{DeviceAddr, SQE_SIZE, Sqe};

/// Number of a descriptor kind. Open: any number read from a ring is a valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqeType(pub u8);

impl SqeType {
    /// SDMA copy or reduce.
    pub const SDMA: Self = Self(11);
}

/// `kernelCredit` of a task that the queue's own timer may end.
pub const CREDIT_DEFAULT: u8 = 254;

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
    const fn new(sqe_type: SqeType, task_id: u32) -> Self {
        Self { flags: HeaderFlags::new().with_sqe_type(sqe_type.0), task_id }
    }
}

/// Word 3: how long the queue lets a task run.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Credit {
    reserved_low: u16,
    /// [`CREDIT_DEFAULT`], or 255 for a task that may never be ended.
    pub kernel_credit: u8,
    reserved_high: u8,
}

/// Word 4 of an SDMA descriptor.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SdmaControl {
    /// 0 = copy, else type code OR operator code.
    pub opcode: u8,
    /// Source substream id is valid.
    pub sssv: bool,
    /// Destination substream id is valid.
    pub dssv: bool,
    /// Source is non-secure.
    pub sns: bool,
    /// Destination is non-secure.
    pub dns: bool,
    /// Source read order.
    pub sro: bool,
    /// Destination read order.
    pub dro: bool,
    /// 0 = one plain range.
    #[bits(2)]
    pub stride: u8,
    /// Second interrupt flag.
    pub ie2: bool,
    /// Compression.
    pub comp_en: bool,
    #[bits(14)]
    reserved: u16,
}

/// SDMA copy or reduce of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SdmaSqe {
    /// Bytes 0..8.
    pub header: SqeHeader,
    reserved: u32,
    /// Word 3.
    pub credit: Credit,
    /// Word 4.
    pub control: SdmaControl,
    /// Words 5..8: descriptor id, memory partition, QoS, stream and substream ids; all zero on this path.
    partition_and_streams: [u32; 3],
    /// First byte read.
    pub src: DeviceAddr,
    /// First byte written.
    pub dst: DeviceAddr,
    /// Bytes to move.
    pub len: u32,
    /// Words 13..16: offsets for indirect forms; all zero on this path.
    offsets: [u32; 3],
}
const _: () = assert!(size_of::<SdmaSqe>() == SQE_SIZE);
const _: () = assert!(core::mem::offset_of!(SdmaSqe, control) == 16);
const _: () = assert!(core::mem::offset_of!(SdmaSqe, src) == 32);
const _: () = assert!(core::mem::offset_of!(SdmaSqe, dst) == 40);
const _: () = assert!(core::mem::offset_of!(SdmaSqe, len) == 48);

/// Builder of an SDMA descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Sdma {
    src: DeviceAddr,
    dst: DeviceAddr,
    len: u32,
    opcode: u8,
}

impl Sdma {
    /// A copy of `len` bytes.
    pub const fn new(src: DeviceAddr, dst: DeviceAddr, len: u32) -> Self {
        Self { src, dst, len, opcode: 0 }
    }

    /// Makes it a reduce: `dst = op(dst, src)` element by element. `None` where the engine does not compute the pair.
    pub fn reduce(self, op: ReduceOp, data_type: DataType) -> Option<Self> {
        Some(self.with_opcode(sdma_opcode(op, data_type)?))
    }

    /// Sets the opcode byte as [`sdma_opcode`] gives it; 0 is the copy.
    pub const fn with_opcode(self, opcode: u8) -> Self {
        Self { opcode, ..self }
    }

    /// The descriptor with this task id.
    #[inline]
    pub const fn build(self, task_id: u32) -> Sqe {
        let control =
            SdmaControl::new().with_opcode(self.opcode).with_sssv(true).with_dssv(true).with_sns(true).with_dns(true);
        let sqe = SdmaSqe {
            header: SqeHeader::new(SqeType::SDMA, task_id),
            reserved: 0,
            credit: Credit::new().with_kernel_credit(CREDIT_DEFAULT),
            control,
            partition_and_streams: [0; 3],
            src: self.src,
            dst: self.dst,
            len: self.len,
            offsets: [0; 3],
        };
        transmute!(sqe)
    }
}
