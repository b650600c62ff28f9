//! SDMA copy and reduce.

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

use super::{CREDIT_DEFAULT, Credit, SqeHeader, SqeType};
use crate::spec::data_type::{DataType, ReduceOp, SdmaReduce};
use crate::spec::{DeviceAddr, SQE_SIZE, Sqe};

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
        Some(self.with_opcode(SdmaReduce::new(op, data_type)?.opcode))
    }

    /// Sets the opcode byte as [`SdmaReduce`] gives it; 0 is the copy.
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
        Sqe::of_words(transmute!(sqe))
    }
}
