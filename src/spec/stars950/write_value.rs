//! Write of a 32-bit value to an address.

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

use super::{CREDIT_DEFAULT, Credit, SqeHeader, SqeType};
use crate::spec::{DeviceAddr, SQE_SIZE, Sqe};

/// Largest address: the field has 49 bits.
pub const MAX_WRITE_ADDR: u64 = (1 << 49) - 1;

/// The address does not fit into the field. It is never cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("address {0} is above {MAX_WRITE_ADDR:#x}")]
pub struct AddrTooLarge(pub DeviceAddr);

/// `awsize` of a 32-bit write.
const SIZE_32: u8 = 2;

/// Word 5, here and on an Ascend910B or Ascend910_93.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(in crate::spec) struct WriteControl {
    #[bits(17)]
    addr_high: u32,
    #[bits(3)]
    reserved: u8,
    /// log2 of the bytes written.
    #[bits(3)]
    awsize: u8,
    snoop: bool,
    #[bits(4)]
    awcache: u8,
    #[bits(3)]
    awprot: u8,
    /// The address is virtual.
    va: bool,
}

impl WriteControl {
    /// Of a 32-bit write to `addr`, of which the caller has checked that it is at most [`MAX_WRITE_ADDR`].
    pub(in crate::spec) const fn to(addr: DeviceAddr, is_virtual: bool) -> Self {
        Self::new().with_awsize(SIZE_32).with_va(is_virtual).with_addr_high((addr.0 >> 32) as u32)
    }
}

/// A write-value descriptor as the ring holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WriteValueSqe {
    header: SqeHeader,
    reserved: u32,
    credit: Credit,
    addr_low: u32,
    control: WriteControl,
    reserved2: u32,
    sub_type: u32,
    value: [u32; 8],
}
const _: () = assert!(size_of::<WriteValueSqe>() == SQE_SIZE);
const _: () = assert!(core::mem::offset_of!(WriteValueSqe, value) == 32);

/// Builder of a write.
#[derive(Clone, Copy, Debug)]
pub struct WriteValue {
    addr: DeviceAddr,
    value: u32,
}

impl WriteValue {
    /// Writes `value` to `addr`.
    ///
    /// # Errors
    /// An address above [`MAX_WRITE_ADDR`].
    pub const fn new(addr: DeviceAddr, value: u32) -> Result<Self, AddrTooLarge> {
        if addr.0 > MAX_WRITE_ADDR { Err(AddrTooLarge(addr)) } else { Ok(Self { addr, value }) }
    }

    /// The descriptor with this task id.
    pub const fn build(self, task_id: u32) -> Sqe {
        let sqe = WriteValueSqe {
            header: SqeHeader::new(SqeType::WRITE_VALUE, task_id),
            reserved: 0,
            credit: Credit::new().with_kernel_credit(CREDIT_DEFAULT),
            addr_low: self.addr.0 as u32,
            control: WriteControl::to(self.addr, true),
            reserved2: 0,
            sub_type: 0,
            value: [self.value, 0, 0, 0, 0, 0, 0, 0],
        };
        transmute!(sqe)
    }
}
