//! Task descriptors (SQE) of Ascend910B and Ascend910_93, as the AI CPU queues them. Source: docs/spec.md, "Ascend910
//! descriptors".
//!
//! A builder writes all 64 bytes: reserved fields are zero, whatever the slot held before.

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

use super::stars950::{AddrTooLarge, MAX_WRITE_ADDR, WriteControl};
use super::{DeviceAddr, NotifyIdTooLarge, SQE_SIZE, Sqe};

/// `kernelCredit` of an SDMA task: 960 s in units of 4 s.
const CREDIT_SDMA: u8 = 240;
/// `kernelCredit` of a record and a place holder.
const CREDIT_DEFAULT: u8 = 254;
/// `kernelCredit` of a wait, which the queue's timer leaves alone.
const CREDIT_NEVER: u8 = 255;

/// Kinds of descriptor that are queued here.
mod sqe_type {
    pub(super) const PLACE_HOLDER: u8 = 3;
    pub(super) const NOTIFY_RECORD: u8 = 6;
    pub(super) const NOTIFY_WAIT: u8 = 7;
    pub(super) const WRITE_VALUE: u8 = 8;
    pub(super) const SDMA: u8 = 11;
}

/// First word of the header of every kind.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct HeaderFlags {
    #[bits(6)]
    sqe_type: u8,
    l1_lock: bool,
    l1_unlock: bool,
    #[bits(2)]
    ie: u8,
    #[bits(2)]
    pre_p: u8,
    #[bits(2)]
    post_p: u8,
    wr_cqe: bool,
    #[bits(1)]
    reserved: u8,
    block_dim: u16,
}

/// Which stream queues a task, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Stream of the queue.
    pub stream_id: u16,
    /// Counts the tasks of the stream, modulo 2^16.
    pub task_id: u16,
}

/// Bytes 0..8 of every descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SqeHeader {
    flags: HeaderFlags,
    stream_id: u16,
    task_id: u16,
}
const _: () = assert!(size_of::<SqeHeader>() == 8);

impl SqeHeader {
    const fn new(sqe_type: u8, stamp: Stamp) -> Self {
        let flags = HeaderFlags::new().with_sqe_type(sqe_type);
        Self { flags, stream_id: stamp.stream_id, task_id: stamp.task_id }
    }
}

/// Word 3.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Credit {
    reserved: u16,
    kernel_credit: u8,
    ptr_mode: bool,
    #[bits(7)]
    reserved_high: u8,
}

/// Word 4 of an SDMA descriptor.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct SdmaControl {
    opcode: u8,
    ie2: bool,
    sssv: bool,
    dssv: bool,
    sns: bool,
    dns: bool,
    #[bits(4)]
    qos: u8,
    sro: bool,
    dro: bool,
    partid: u8,
    #[bits(5)]
    mpam: u8,
}

/// Where the two ends of a copy lie to each other. Open: any number is a valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkType(pub u8);

impl LinkType {
    /// In one chip: what local copies and reduces use.
    pub const ONCHIP: Self = Self(0);
    /// Between two devices of a server.
    pub const HCCS: Self = Self(1);
    /// Between two dies.
    pub const SIO: Self = Self(4);
}

/// QoS of a task between places that are near.
const QOS_NEAR: u8 = 6;

/// An SDMA descriptor as the ring holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct SdmaSqe {
    header: SqeHeader,
    reserved: u32,
    credit: Credit,
    control: SdmaControl,
    streams: [u32; 2],
    len: u32,
    src: DeviceAddr,
    dst: DeviceAddr,
    link_type: u32,
    reserved_end: [u32; 3],
}
const _: () = assert!(size_of::<SdmaSqe>() == SQE_SIZE);
const _: () = assert!(core::mem::offset_of!(SdmaSqe, len) == 28);
const _: () = assert!(core::mem::offset_of!(SdmaSqe, src) == 32);
const _: () = assert!(core::mem::offset_of!(SdmaSqe, link_type) == 48);

/// Builder of an SDMA copy or reduce of one chunk.
#[derive(Clone, Copy, Debug)]
pub struct Sdma {
    src: DeviceAddr,
    dst: DeviceAddr,
    len: u32,
    opcode: u8,
    link_type: LinkType,
    qos: u8,
}

impl Sdma {
    /// A copy of `len` bytes in one chip.
    pub const fn new(src: DeviceAddr, dst: DeviceAddr, len: u32) -> Self {
        Self { src, dst, len, opcode: 0, link_type: LinkType::ONCHIP, qos: QOS_NEAR }
    }

    /// Sets the opcode byte as [`SdmaReduce`](super::data_type::SdmaReduce) gives it; 0 is the copy.
    pub const fn with_opcode(self, opcode: u8) -> Self {
        Self { opcode, ..self }
    }

    /// A copy over `link_type`. Of `qos` the low 4 bits count, and only where the ends are not near.
    pub const fn with_link(self, link_type: LinkType, qos: u8) -> Self {
        let is_near = link_type.0 == LinkType::ONCHIP.0 || link_type.0 == LinkType::SIO.0;
        Self { link_type, qos: if is_near { QOS_NEAR } else { qos & 0xf }, ..self }
    }

    /// The descriptor.
    pub const fn build(self, stamp: Stamp) -> Sqe {
        let control =
            SdmaControl::new().with_opcode(self.opcode).with_sssv(true).with_dssv(true).with_sns(true).with_dns(true);
        let sqe = SdmaSqe {
            header: SqeHeader::new(sqe_type::SDMA, stamp),
            reserved: 0,
            credit: Credit::new().with_kernel_credit(CREDIT_SDMA),
            control: control.with_qos(self.qos),
            streams: [0; 2],
            len: self.len,
            src: self.src,
            dst: self.dst,
            link_type: self.link_type.0 as u32,
            reserved_end: [0; 3],
        };
        Sqe::of_words(transmute!(sqe))
    }
}

/// Largest notify id: the field has 13 bits.
pub const MAX_NOTIFY_ID: u32 = (1 << 13) - 1;

/// Record, wait and place holder: nothing beyond word 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ShortSqe {
    header: SqeHeader,
    notify_id: u32,
    credit: Credit,
    word4: u32,
    reserved: [u32; 11],
}
const _: () = assert!(size_of::<ShortSqe>() == SQE_SIZE);

const fn short(header: SqeHeader, notify_id: u32, kernel_credit: u8, word4: u32) -> Sqe {
    let credit = Credit::new().with_kernel_credit(kernel_credit);
    Sqe::of_words(transmute!(ShortSqe { header, notify_id, credit, word4, reserved: [0; 11] }))
}

/// Records `notify_id`.
///
/// # Errors
/// [`NotifyIdTooLarge`]: it is never cut to the field.
pub const fn notify_record(notify_id: u32, stamp: Stamp) -> Result<Sqe, NotifyIdTooLarge> {
    match NotifyIdTooLarge::check(notify_id, MAX_NOTIFY_ID) {
        Ok(()) => Ok(record_with_checked_id(notify_id, stamp)),
        Err(error) => Err(error),
    }
}

pub(crate) const fn record_with_checked_id(notify_id: u32, stamp: Stamp) -> Sqe {
    debug_assert!(notify_id <= MAX_NOTIFY_ID);
    short(SqeHeader::new(sqe_type::NOTIFY_RECORD, stamp), notify_id, CREDIT_DEFAULT, 0)
}

/// Waits for `notify_id` for `timeout_s` seconds.
///
/// # Errors
/// [`NotifyIdTooLarge`]: it is never cut to the field.
pub const fn notify_wait(notify_id: u32, timeout_s: u32, stamp: Stamp) -> Result<Sqe, NotifyIdTooLarge> {
    match NotifyIdTooLarge::check(notify_id, MAX_NOTIFY_ID) {
        Ok(()) => Ok(wait_with_checked_id(notify_id, timeout_s, stamp)),
        Err(error) => Err(error),
    }
}

pub(crate) const fn wait_with_checked_id(notify_id: u32, timeout_s: u32, stamp: Stamp) -> Sqe {
    debug_assert!(notify_id <= MAX_NOTIFY_ID);
    short(SqeHeader::new(sqe_type::NOTIFY_WAIT, stamp), notify_id, CREDIT_NEVER, timeout_s)
}

/// A write-value descriptor as the ring holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct WriteValueSqe {
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

/// `subType`: notify of another chip, not over PCIe.
const SUB_TYPE_NOTIFY: u32 = 3;

/// Records a notify of another chip: writes 1 to the physical address of its register.
///
/// # Errors
/// An address above [`MAX_WRITE_ADDR`], which both chips have in common.
pub const fn write_value_record(addr: DeviceAddr, stamp: Stamp) -> Result<Sqe, AddrTooLarge> {
    if addr.0 > MAX_WRITE_ADDR {
        return Err(AddrTooLarge(addr));
    }
    Ok(record_at_checked_addr(addr, stamp))
}

pub(crate) const fn record_at_checked_addr(addr: DeviceAddr, stamp: Stamp) -> Sqe {
    debug_assert!(addr.0 <= MAX_WRITE_ADDR);
    let sqe = WriteValueSqe {
        header: SqeHeader::new(sqe_type::WRITE_VALUE, stamp),
        reserved: 0,
        credit: Credit::new().with_kernel_credit(CREDIT_DEFAULT),
        addr_low: addr.0 as u32,
        control: WriteControl::to(addr, false),
        reserved2: 0,
        sub_type: SUB_TYPE_NOTIFY,
        value: [1, 0, 0, 0, 0, 0, 0, 0],
    };
    transmute!(sqe)
}

/// `blockDim` of a place holder that marks a wrap of task ids.
const FLIP_BLOCK_DIM: u16 = 98;

/// Tells that the stream's task ids have started again `flips` times. It takes the id 0 itself.
pub const fn flip_place_holder(stream_id: u16, flips: u16) -> Sqe {
    let header = SqeHeader::new(sqe_type::PLACE_HOLDER, Stamp { stream_id, task_id: 0 });
    let flags = header.flags.with_pre_p(1).with_block_dim(FLIP_BLOCK_DIM);
    short(SqeHeader { flags, ..header }, 0, CREDIT_DEFAULT, flips as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 203.
    #[test]
    fn id_wider_than_the_field_is_refused() {
        let stamp = Stamp { stream_id: 0, task_id: 0 };
        assert!(notify_record(MAX_NOTIFY_ID, stamp).is_ok() && notify_wait(MAX_NOTIFY_ID, 1, stamp).is_ok());
        for id in [MAX_NOTIFY_ID + 1, u32::MAX] {
            let error = NotifyIdTooLarge { id, limit: MAX_NOTIFY_ID };
            assert_eq!((notify_record(id, stamp), notify_wait(id, 1, stamp)), (Err(error), Err(error)));
        }
        assert_eq!(NotifyIdTooLarge { id: 8192, limit: 8191 }.to_string(), "notify id 8192 is above 8191");
    }
}
