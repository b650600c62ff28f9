//! Channel handle and channel descriptor.
//!
//! The host writes descriptors into a table in device memory and tells the device where the table is; to the device they are
//! read-only. The rules of the [thread table](super::thread) hold here too: the tag is written last and cleared first, and a
//! handle is looked up, never dereferenced.
//!
//! A channel joins two devices. Each end has a descriptor, a work ring and notifies of its own. An end writes to and reads
//! from the *exchanged* memory of the other end, records the other end's notifies, and waits for its own.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::DeviceAddr;

/// Bytes of a descriptor.
pub const CHANNEL_SIZE: u64 = 256;
/// What the address of the table is a multiple of.
pub const CHANNEL_ALIGN: u64 = 64;
/// Channels that a device can have at a time: 16 ranks in each of 64 communicators.
pub const MAX_CHANNELS: usize = 1024;
/// First word of a live descriptor, "HCCN"; zero in an unused slot.
pub const CHANNEL_MAGIC: u32 = 0x4e43_4348;
/// Layout version of the descriptor.
pub const CHANNEL_VERSION: u16 = 1;
/// Most notifies of one end of a channel.
pub const MAX_CHANNEL_NOTIFIES: u32 = 64;
/// Blocks of a work ring unless the owner asks for another number. A descriptor says its own; nothing else may assume it.
pub const DEFAULT_WORK_DEPTH: u32 = 32_768;
/// Most blocks of a channel's work ring: of two producer indices it can then be told which is the later one.
pub const MAX_WORK_DEPTH: u32 = 32_768;

/// Device virtual address of the notify window of device slot 0. No processor maps it.
pub const NOTIFY_WINDOW_BASE: u64 = 0x12e0_0000_0000;
/// Distance of the notify windows of two device slots.
pub const NOTIFY_WINDOW_STRIDE: u64 = 1 << 40;
/// Bytes of the register of a notify on an Ascend950.
pub const NOTIFY_SIZE_950: u32 = 8;
/// Bytes of the register of a notify on an Ascend910B and Ascend910_93.
pub const NOTIFY_SIZE_910: u32 = 4;
/// Physical address of the notify window of device 0 on an Ascend910B and Ascend910_93: what a write value names.
pub const NOTIFY_WINDOW_PHYS_910: u64 = 0x3_0000_0000;
/// Distance of the physical notify windows of two devices.
pub const NOTIFY_WINDOW_PHYS_STRIDE_910: u64 = 1 << 32;

/// `ChannelHandle` of the C API: generation (bits 48..63) and device address of the channel descriptor (bits 0..47).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct ChannelHandle(pub u64);

impl ChannelHandle {
    const ADDR_BITS: u32 = 48;

    /// Handle of the descriptor at `addr` in its `generation`.
    pub const fn new(addr: DeviceAddr, generation: u16) -> Self {
        debug_assert!(addr.0 >> Self::ADDR_BITS == 0);
        Self(addr.0 | (generation as u64) << Self::ADDR_BITS)
    }

    /// Address of the descriptor. Not checked: it may lie anywhere.
    pub const fn addr(self) -> DeviceAddr {
        DeviceAddr(self.0 & ((1 << Self::ADDR_BITS) - 1))
    }

    /// Generation that the descriptor must have.
    pub const fn generation(self) -> u16 {
        (self.0 >> Self::ADDR_BITS) as u16
    }
}

/// How the ends of a channel reach each other (`CommProtocol`). Open: any number is a valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Protocol(pub i32);

impl Protocol {
    /// SDMA to the peer's memory, and a write value to its notify: Ascend910B, Ascend910_93.
    pub const HCCS: Self = Self(0);
    /// Work entries and a doorbell descriptor: Ascend950.
    pub const UB_CTP: Self = Self(4);
}

/// First eight bytes of a descriptor: one 64-bit read tells whether it is alive in the generation of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(8))]
pub struct ChannelTag {
    /// [`CHANNEL_MAGIC`], or anything else in a slot that is not in use.
    pub magic: u32,
    /// [`CHANNEL_VERSION`].
    pub version: u16,
    /// Counts the channels of the slot, so that a handle of an earlier one is refused. Never 0, never used twice.
    pub generation: u16,
}

impl ChannelTag {
    /// The tag of a live descriptor.
    pub const fn live(generation: u16) -> Self {
        Self { magic: CHANNEL_MAGIC, version: CHANNEL_VERSION, generation }
    }

    /// As the one word that is compared.
    pub const fn to_bits(self) -> u64 {
        self.magic as u64 | (self.version as u64) << 32 | (self.generation as u64) << 48
    }
}

/// What the device knows of its end of a channel: written by the host before the handle is given out. Nothing of it changes
/// while the channel lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct ChannelDescriptor {
    /// Magic, version, generation. Written last, cleared first.
    pub tag: ChannelTag,
    /// Communicator, as [`ThreadDescriptor::comm`](super::thread::ThreadDescriptor::comm) of its threads.
    pub comm: u64,
    /// How the peer is reached.
    pub protocol: Protocol,
    /// Slot of the own device.
    pub device: u32,
    /// Slot of the peer's device.
    pub peer_device: u32,
    /// Rank of this end in the communicator.
    pub rank: u32,
    /// Rank of the peer.
    pub peer_rank: u32,
    /// Bytes of a notify's register.
    pub notify_size: u32,
    /// UB: first block of the work ring, 64-byte aligned. No task may name this memory.
    pub ring: DeviceAddr,
    /// UB: blocks of the work ring, a power of two from 2 to [`MAX_WORK_DEPTH`].
    pub depth: u32,
    /// UB: producer index of the first entry that the device writes, 0..2^16. The device counts on by itself.
    pub producer_index: u32,
    /// UB: number of the jetty.
    pub jetty: u16,
    /// UB: function of the jetty, 7 bits.
    pub jetty_function: u8,
    /// UB: die of the jetty, 1 bit.
    pub jetty_die: u8,
    /// UB: transport path number, 24 bits.
    pub path: u32,
    /// UB: this end, first byte first.
    pub eid: [u8; 16],
    /// UB: the peer, first byte first.
    pub peer_eid: [u8; 16],
    /// Most bytes of one entry, 1 to [`MAX_SLICE`](super::ub::MAX_SLICE); a multiple of 4.
    pub max_slice: u32,
    /// UB: token of the own memory. Also for memory of this device that is not registered.
    pub local_token_id: u32,
    /// Exchanged memory of the peer, in the peer's addresses.
    pub remote: DeviceAddr,
    /// Its bytes.
    pub remote_len: u64,
    /// UB: its token, 20 bits.
    pub remote_token_id: u32,
    /// UB: value of the token.
    pub remote_token_value: u32,
    /// UB: token of the peer's notify registers, 20 bits.
    pub notify_token_id: u32,
    /// UB: value of the token.
    pub notify_token_value: u32,
    /// Register of notify 0 of the peer's end, in the peer's notify window. Notify *i* lies *i* times `notify_size` behind it.
    /// HCCS: its physical address.
    pub peer_notify: DeviceAddr,
    /// Id of notify 0 of this end; notify *i* has the id *i* higher.
    pub notify_id: u32,
    /// Notifies of this end, at most [`MAX_CHANNEL_NOTIFIES`].
    pub notify_count: u32,
    /// Id of notify 0 of the peer's end on the peer's device.
    pub peer_notify_id: u32,
    /// Notifies of the peer's end.
    pub peer_notify_count: u32,
    /// Zero.
    pub reserved: [u64; 12],
}
const _: () = assert!(size_of::<ChannelDescriptor>() as u64 == CHANNEL_SIZE);
const _: () = assert!(align_of::<ChannelDescriptor>() as u64 == CHANNEL_ALIGN);
const _: () = assert!(core::mem::offset_of!(ChannelDescriptor, ring) == 40);
const _: () = assert!(core::mem::offset_of!(ChannelDescriptor, remote) == 104);
const _: () = assert!(core::mem::offset_of!(ChannelDescriptor, peer_notify) == 136);
const _: () = assert!(core::mem::offset_of!(ChannelDescriptor, peer_notify_count) == 156);

/// Register of notify `id` of the device in slot `device`, in its notify window.
pub const fn notify_addr(device: u32, id: u32, notify_size: u32) -> DeviceAddr {
    DeviceAddr(NOTIFY_WINDOW_BASE + device as u64 * NOTIFY_WINDOW_STRIDE + id as u64 * notify_size as u64)
}

/// Physical address of the register of notify `id` of an Ascend910B or Ascend910_93.
pub const fn notify_phys_910(device: u32, id: u32) -> DeviceAddr {
    let window = NOTIFY_WINDOW_PHYS_910 + device as u64 * NOTIFY_WINDOW_PHYS_STRIDE_910;
    DeviceAddr(window + id as u64 * NOTIFY_SIZE_910 as u64)
}

/// One transfer of `HcommBatchTransferOnThread`. What the words hold depends on the kind: length or count, `dst`, `src`; then
/// operator (low half) and type (high half) of a reduce; then the notify index, in the low half of the next word. A record has
/// its index in the low half of the first word.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HcommBatchTransferDesc {
    /// 0 write, 1 write reduce, 2 write with notify, 3 write reduce with notify, 4 read, 5 read reduce, 6 notify record.
    pub kind: i32,
    /// Not looked at.
    pub reserved: u32,
    /// See above.
    pub words: [u64; 7],
}
const _: () = assert!(size_of::<HcommBatchTransferDesc>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_keeps_both_halves() {
        let handle = ChannelHandle::new(DeviceAddr(0x7fff_ffff_ff00), 0xfffe);
        assert_eq!(handle.0, 0xfffe_7fff_ffff_ff00);
        assert_eq!((handle.addr(), handle.generation()), (DeviceAddr(0x7fff_ffff_ff00), 0xfffe));
    }

    #[test]
    fn tag_is_the_first_word_of_the_descriptor_and_not_that_of_a_thread() {
        let tag = ChannelTag::live(0xabcd);
        assert_eq!(tag.as_bytes(), tag.to_bits().to_le_bytes());
        assert_eq!(tag.as_bytes()[..4], *b"HCCN");
        assert_ne!(tag.to_bits(), super::super::thread::DescriptorTag::live(0xabcd).to_bits());
    }

    #[test]
    fn notify_windows_of_devices_do_not_meet_each_other_or_hbm() {
        use super::super::map::{HBM_BASE, HBM_MAX, HBM_STRIDE};
        let last_id = (1 << 17) - 1;
        for device in 0..64 {
            let window = notify_addr(device, 0, NOTIFY_SIZE_950).0;
            let end = notify_addr(device, last_id, NOTIFY_SIZE_950).0 + 8;
            assert!(end <= notify_addr(device + 1, 0, NOTIFY_SIZE_950).0);
            for other in 0..64 {
                let hbm = HBM_BASE + other * HBM_STRIDE;
                assert!(end <= hbm || window >= hbm + HBM_MAX, "window {device}, hbm {other}");
            }
        }
        assert_eq!(notify_phys_910(3, 5).0, 0x6_0000_0014);
    }
}
