//! The fields of a work entry, and a builder for each kind.

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

use super::order::Order;
use super::reduce::UbReduce;
use super::{BLOCK_SIZE, index::WorkDepth};
use crate::spec::DeviceAddr;

/// One block as the ring holds it: eight 64-bit words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(8))]
pub struct Block(pub [u64; BLOCK_SIZE / 8]);
const _: () = assert!(size_of::<Block>() == BLOCK_SIZE);

/// Word 0.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Control {
    /// Not used.
    block_index: u16,
    #[bits(2)]
    place: u8,
    completion_order: bool,
    fence: bool,
    /// The peer gets an event.
    solicited: bool,
    cqe: bool,
    /// The data is in the entry.
    inline: bool,
    /// Word 9 is valid.
    reduces: bool,
    #[bits(4)]
    reserved: u8,
    token_enabled: bool,
    #[bits(2)]
    remote_jetty_type: u8,
    owner: bool,
}

/// Number of a kind of entry.
mod opcode {
    pub(super) const WRITE: u8 = 3;
    pub(super) const WRITE_WITH_NOTIFY: u8 = 5;
    pub(super) const READ: u8 = 6;
}

/// Word 1.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Operation {
    /// Not used.
    target_hint: u8,
    opcode: u8,
    #[bits(6)]
    reserved: u8,
    #[bits(10)]
    inline_len: u16,
}

/// Word 2.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Path {
    #[bits(24)]
    path: u32,
    /// How many local ranges follow: one, also where the data is in the entry.
    local_ranges: u8,
}

/// Word 3, and word 12 of an entry with a notify.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct TokenWord {
    #[bits(20)]
    token_id: u32,
    #[bits(12)]
    reserved: u16,
}

/// Word 9: zero where the entry does not reduce.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct ReduceWord {
    udf_type: u8,
    #[bits(4)]
    data_type: u8,
    #[bits(4)]
    op: u8,
    reserved: u16,
}

/// Bytes 8..32 of every entry: the same in all that name one memory of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Far {
    /// [`Path`], then [`TokenWord`].
    path_and_token: u64,
    /// Last byte first.
    eid: [u64; 2],
}
const _: () = assert!(size_of::<Far>() == 24);

impl Far {
    const fn new(peer: Peer, token_id: TokenId) -> Self {
        let path = Path::new().with_path(peer.path.0).with_local_ranges(1).into_bits();
        let token = TokenWord::new().with_token_id(token_id.0).into_bits();
        let eid = u128::from_be_bytes(peer.eid.0);
        Self { path_and_token: path as u64 | (token as u64) << 32, eid: [eid as u64, (eid >> 64) as u64] }
    }
}

/// Bytes 0..48 of every entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Head {
    control: Control,
    operation: Operation,
    far: Far,
    token_value: u32,
    reduce: ReduceWord,
    remote: DeviceAddr,
}
const _: () = assert!(size_of::<Head>() == 48);
const _: () = assert!(core::mem::offset_of!(Head, token_value) == 32);
const _: () = assert!(core::mem::offset_of!(Head, remote) == 40);

/// An entry of one block as the ring holds it. In an entry with inline data the first word of the local range is the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WorkEntry {
    head: Head,
    len: u32,
    local_token_id: u32,
    local: DeviceAddr,
}
const _: () = assert!(size_of::<WorkEntry>() == BLOCK_SIZE);
const _: () = assert!(core::mem::offset_of!(WorkEntry, local) == 56);

/// An entry of two blocks as the ring holds it, where the second does not begin the ring again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NotifyEntry {
    head: Head,
    notify_token: TokenWord,
    notify_token_value: u32,
    notify: DeviceAddr,
    notify_data: u64,
    reserved: u64,
    len: u32,
    local_token_id: u32,
    local: DeviceAddr,
    /// Zero. The existing stack leaves here what its memory held before.
    undefined: [u64; 4],
}
const _: () = assert!(size_of::<NotifyEntry>() == 2 * BLOCK_SIZE);
const _: () = assert!(core::mem::offset_of!(NotifyEntry, notify_data) == BLOCK_SIZE);
const _: () = assert!(core::mem::offset_of!(NotifyEntry, local) == 88);

/// Identifies an endpoint in the UB network, first byte first. An entry holds it with the last byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eid(pub [u8; 16]);

/// Largest transport path number: the field has 24 bits.
pub const MAX_PATH: u32 = (1 << 24) - 1;
/// Largest id of a token at the peer: the field has 20 bits.
pub const MAX_TOKEN_ID: u32 = (1 << 20) - 1;

/// Transport path number, at most [`MAX_PATH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathNumber(u32);

/// The number does not fit into the field. It is never cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transport path number {0:#x} is above {MAX_PATH:#x}")]
pub struct PathTooLarge(pub u32);

impl PathNumber {
    /// # Errors
    /// A number above [`MAX_PATH`].
    #[inline]
    pub const fn new(path: u32) -> Result<Self, PathTooLarge> {
        if path > MAX_PATH { Err(PathTooLarge(path)) } else { Ok(Self(path)) }
    }
}

/// Id of a token at the peer, at most [`MAX_TOKEN_ID`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenId(u32);

/// The id does not fit into the field. It is never cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("token id {0:#x} is above {MAX_TOKEN_ID:#x}")]
pub struct TokenIdTooLarge(pub u32);

impl TokenId {
    /// # Errors
    /// An id above [`MAX_TOKEN_ID`].
    #[inline]
    pub const fn new(id: u32) -> Result<Self, TokenIdTooLarge> {
        if id > MAX_TOKEN_ID { Err(TokenIdTooLarge(id)) } else { Ok(Self(id)) }
    }
}

/// The other end of a channel: the same in all its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// How to reach it.
    pub path: PathNumber,
    /// Who it is.
    pub eid: Eid,
}

/// Memory of the peer, in its own addresses, with what the peer has given the right to use it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// First byte.
    pub addr: DeviceAddr,
    /// Token of the memory.
    pub token_id: TokenId,
    /// Value of the token.
    pub token_value: u32,
}

/// Memory of the sender. Its token has an id of 32 bits and no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// First byte.
    pub addr: DeviceAddr,
    /// Token of the memory.
    pub token_id: u32,
}

/// Register of one of the peer's notifies.
pub type NotifyTarget = Remote;

/// Memory of a peer as entries name it, all but the address: made once, for many entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    far: Far,
    token_value: u32,
}

impl Region {
    /// What `peer` gives the right to use by this token.
    pub const fn new(peer: Peer, token_id: TokenId, token_value: u32) -> Self {
        Self { far: Far::new(peer, token_id), token_value }
    }

    const fn of(peer: Peer, remote: Remote) -> (Self, DeviceAddr) {
        (Self::new(peer, remote.token_id, remote.token_value), remote.addr)
    }
}

/// `remote_jetty_type` of a jetty.
const JETTY: u8 = 1;
/// What a record writes.
const NOTIFY_VALUE: u32 = 1;

impl Head {
    /// Of an entry without inline data, reduce and order bits.
    #[inline]
    const fn new(opcode: u8, region: Region, remote: DeviceAddr) -> Self {
        let control = Control::new().with_solicited(true).with_token_enabled(true).with_remote_jetty_type(JETTY);
        Self {
            control,
            operation: Operation::new().with_opcode(opcode),
            far: region.far,
            token_value: region.token_value,
            reduce: ReduceWord::new(),
            remote,
        }
    }

    const fn reduce(self, reduce: UbReduce) -> Self {
        let word = ReduceWord::new().with_data_type(reduce.type_code()).with_op(reduce.op_code());
        Self { control: self.control.with_reduces(true), reduce: word, ..self }
    }

    const fn at(self, index: u16, depth: WorkDepth, order: Order) -> Self {
        let control = self.control.with_place(order.place.0 & 3).with_completion_order(order.completion);
        let control = control.with_fence(order.fence).with_cqe(order.cqe).with_owner(depth.is_owner(index));
        Self { control, ..self }
    }
}

/// A transfer without a notify: what write and read have in common.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    head: Head,
    local: Local,
    len: u32,
}

impl Transfer {
    const fn reduce(self, reduce: UbReduce) -> Self {
        Self { head: self.head.reduce(reduce), ..self }
    }

    const fn build(self, index: u16, depth: WorkDepth, order: Order) -> Block {
        let Self { head, local, len } = self;
        let head = head.at(index, depth, order);
        transmute!(WorkEntry { head, len, local_token_id: local.token_id, local: local.addr })
    }
}

/// Builder of a write to the peer.
#[derive(Clone, Copy, Debug)]
pub struct Write(Transfer);

impl Write {
    /// Writes `len` bytes from `local` to `remote`. The hardware takes at most [`MAX_SLICE`](super::MAX_SLICE).
    pub const fn new(peer: Peer, remote: Remote, local: Local, len: u32) -> Self {
        let (region, remote) = Region::of(peer, remote);
        Self::to(region, remote, local, len)
    }

    /// The same to address `remote` of `region`.
    #[inline]
    pub const fn to(region: Region, remote: DeviceAddr, local: Local, len: u32) -> Self {
        Self(Transfer { head: Head::new(opcode::WRITE, region, remote), local, len })
    }

    /// Makes it a reduce into the peer's memory.
    pub const fn reduce(self, reduce: UbReduce) -> Self {
        Self(self.0.reduce(reduce))
    }

    /// The entry at producer index `index` of a ring.
    #[inline]
    pub const fn build(self, index: u16, depth: WorkDepth, order: Order) -> Block {
        self.0.build(index, depth, order)
    }
}

/// Builder of a read from the peer.
#[derive(Clone, Copy, Debug)]
pub struct Read(Transfer);

impl Read {
    /// Reads `len` bytes from `remote` to `local`. The hardware takes at most [`MAX_SLICE`](super::MAX_SLICE).
    pub const fn new(peer: Peer, remote: Remote, local: Local, len: u32) -> Self {
        let (region, remote) = Region::of(peer, remote);
        Self::from(region, remote, local, len)
    }

    /// The same from address `remote` of `region`.
    #[inline]
    pub const fn from(region: Region, remote: DeviceAddr, local: Local, len: u32) -> Self {
        Self(Transfer { head: Head::new(opcode::READ, region, remote), local, len })
    }

    /// Makes it a reduce into the sender's memory.
    pub const fn reduce(self, reduce: UbReduce) -> Self {
        Self(self.0.reduce(reduce))
    }

    /// The entry at producer index `index` of a ring.
    #[inline]
    pub const fn build(self, index: u16, depth: WorkDepth, order: Order) -> Block {
        self.0.build(index, depth, order)
    }
}

/// Builder of a record of one of the peer's notifies: a write of 4 bytes that are in the entry.
#[derive(Clone, Copy, Debug)]
pub struct NotifyRecord(Head);

impl NotifyRecord {
    /// Sets the notify behind `target`.
    pub const fn new(peer: Peer, target: NotifyTarget) -> Self {
        let (region, register) = Region::of(peer, target);
        Self::at(region, register)
    }

    /// The same at address `register` of `region`.
    #[inline]
    pub const fn at(region: Region, register: DeviceAddr) -> Self {
        let head = Head::new(opcode::WRITE, region, register);
        let operation = head.operation.with_inline_len(size_of_val(&NOTIFY_VALUE) as u16);
        Self(Head { control: head.control.with_inline(true), operation, ..head })
    }

    /// The entry at producer index `index` of a ring.
    #[inline]
    pub const fn build(self, index: u16, depth: WorkDepth, order: Order) -> Block {
        let head = self.0.at(index, depth, order);
        transmute!(WorkEntry { head, len: NOTIFY_VALUE, local_token_id: 0, local: DeviceAddr(0) })
    }
}

/// Builder of a write to the peer that then sets one of its notifies.
#[derive(Clone, Copy, Debug)]
pub struct WriteWithNotify {
    transfer: Transfer,
    target: NotifyTarget,
}

impl WriteWithNotify {
    /// Writes `len` bytes from `local` to `remote`, then sets the notify behind `target`. The hardware takes at most
    /// [`MAX_SLICE`](super::MAX_SLICE).
    pub const fn new(peer: Peer, remote: Remote, local: Local, len: u32, target: NotifyTarget) -> Self {
        let (region, remote) = Region::of(peer, remote);
        Self::to(region, remote, local, len, target)
    }

    /// The same to address `remote` of `region`.
    #[inline]
    pub const fn to(region: Region, remote: DeviceAddr, local: Local, len: u32, target: NotifyTarget) -> Self {
        let head = Head::new(opcode::WRITE_WITH_NOTIFY, region, remote);
        Self { transfer: Transfer { head, local, len }, target }
    }

    /// Makes it a reduce into the peer's memory.
    pub const fn reduce(self, reduce: UbReduce) -> Self {
        Self { transfer: self.transfer.reduce(reduce), ..self }
    }

    /// The two blocks of the entry, of which the first has producer index `index`. Each goes to the slot of its own index:
    /// where the first is in the last slot, the second is in slot 0.
    #[inline]
    pub const fn build(self, index: u16, depth: WorkDepth, order: Order) -> [Block; 2] {
        let Self { transfer: Transfer { head, local, len }, target } = self;
        let sqe = NotifyEntry {
            head: head.at(index, depth, order),
            notify_token: TokenWord::new().with_token_id(target.token_id.0),
            notify_token_value: target.token_value,
            notify: target.addr,
            notify_data: NOTIFY_VALUE as u64,
            reserved: 0,
            len,
            local_token_id: local.token_id,
            local: local.addr,
            undefined: [0; 4],
        };
        transmute!(sqe)
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;

    use super::*;
    use crate::spec::data_type::{DataType, ReduceOp};

    const PEER: Peer = Peer {
        path: PathNumber(0x12_3456),
        eid: Eid([0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf]),
    };
    const REMOTE: Remote =
        Remote { addr: DeviceAddr(0x12d1_8000_1000), token_id: TokenId(0x5678), token_value: 0xcafe_f00d };
    const LOCAL: Local = Local { addr: DeviceAddr(0x12c0_c000_0000), token_id: 0x1234 };
    const NOTIFY: Remote = Remote { addr: DeviceAddr(0x3_0001_f400), token_id: TokenId(0x2_3477), token_value: 0x99 };

    fn hex(block: Block) -> String {
        block.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// One recorded entry of each kind; tests/device has all of them.
    #[test]
    fn entries_equal_recorded_ones() {
        let depth = WorkDepth::new(64).unwrap();
        let sum = UbReduce::new(ReduceOp::SUM, DataType::FP32).unwrap();
        let write = Write::new(PEER, REMOTE, LOCAL, 4096).reduce(sum).build(0, depth, Order::LAST);
        let read = Read::new(PEER, REMOTE, LOCAL, 1 << 20).build(7, depth, Order::LAST);
        let record = NotifyRecord::new(PEER, Remote { token_id: TokenId(0x77), ..NOTIFY }).build(0, depth, Order::LAST);
        let [first, second] = WriteWithNotify::new(PEER, REMOTE, LOCAL, 4096, NOTIFY).build(63, depth, Order::LAST);
        #[rustfmt::skip]
        let rows = [
            (write, "0000be30000300005634120178560000afaeadacabaaa9a8a7a6a5a4a3a2a1a00df0feca00a7000000100080d11200000010000034120000000000c0c0120000"),
            (read, "00003e30000600005634120178560000afaeadacabaaa9a8a7a6a5a4a3a2a1a00df0feca0000000000100080d11200000000100034120000000000c0c0120000"),
            (record, "00007e30000300015634120177000000afaeadacabaaa9a8a7a6a5a4a3a2a1a0990000000000000000f401000300000001000000000000000000000000000000"),
            (first, "00003eb0000500005634120178560000afaeadacabaaa9a8a7a6a5a4a3a2a1a00df0feca0000000000100080d1120000773402009900000000f4010003000000"),
            (second, "010000000000000000000000000000000010000034120000000000c0c01200000000000000000000000000000000000000000000000000000000000000000000"),
        ];
        for (block, expected) in rows {
            assert_eq!(hex(block), expected);
        }
    }

    #[test]
    fn reduces_change_opcode_bits_and_word_9_alone() {
        let depth = WorkDepth::new(64).unwrap();
        let max = UbReduce::new(ReduceOp::MAX, DataType::INT16).unwrap();
        let (write, read) = (Write::new(PEER, REMOTE, LOCAL, 64), Read::new(PEER, REMOTE, LOCAL, 64));
        let notify = WriteWithNotify::new(PEER, REMOTE, LOCAL, 64, NOTIFY);
        let pairs = [
            (write.build(1, depth, Order::LAST), write.reduce(max).build(1, depth, Order::LAST)),
            (read.build(1, depth, Order::LAST), read.reduce(max).build(1, depth, Order::LAST)),
            (notify.build(1, depth, Order::LAST)[0], notify.reduce(max).build(1, depth, Order::LAST)[0]),
        ];
        for (plain, reducing) in pairs {
            let Block([w0, w1, w2, w3, w4, w5, w6, w7]) = plain;
            assert_eq!(reducing, Block([w0 | 1 << 23, w1, w2, w3, w4 | 0x8100 << 32, w5, w6, w7]));
        }
    }

    #[test]
    fn numbers_wider_than_their_fields_are_refused() {
        assert_eq!(PathNumber::new(MAX_PATH), Ok(PathNumber(0xff_ffff)));
        assert_eq!(PathNumber::new(1 << 24), Err(PathTooLarge(1 << 24)));
        assert_eq!(TokenId::new(MAX_TOKEN_ID), Ok(TokenId(0xf_ffff)));
        assert_eq!(TokenId::new(1 << 20), Err(TokenIdTooLarge(1 << 20)));
    }
}
