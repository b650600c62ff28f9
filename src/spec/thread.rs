//! Thread handle and thread descriptor.
//!
//! The host writes descriptors into a table in device memory and tells the device where the table is; to the device they
//! are read-only.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::DeviceAddr;

/// Bytes of a descriptor, and its alignment.
pub const DESCRIPTOR_SIZE: u64 = 64;
/// Threads that a device can have at a time.
pub const MAX_THREADS: usize = 2048;
/// First word of a live descriptor, "HCTD"; zero in an unused slot.
pub const DESCRIPTOR_MAGIC: u32 = 0x4454_4348;
/// Layout version of the descriptor.
pub const DESCRIPTOR_VERSION: u16 = 2;

/// Bits of a handle that hold the address of the descriptor.
const ADDR_BITS: u32 = 48;

/// `ThreadHandle` of the C API: generation (bits 48..63) and device address of the thread descriptor (bits 0..47).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct ThreadHandle(pub u64);

impl ThreadHandle {
    /// Handle of the descriptor at `addr` in its `generation`.
    pub const fn new(addr: DeviceAddr, generation: u16) -> Self {
        debug_assert!(addr.0 >> ADDR_BITS == 0);
        Self(addr.0 | (generation as u64) << ADDR_BITS)
    }

    /// Address of the descriptor. Not checked: it may lie anywhere.
    pub const fn addr(self) -> DeviceAddr {
        DeviceAddr(self.0 & ((1 << ADDR_BITS) - 1))
    }

    /// Generation that the descriptor must have.
    pub const fn generation(self) -> u16 {
        (self.0 >> ADDR_BITS) as u16
    }
}

/// Who runs the tasks of a thread (`CommEngine`). Open: any number is a valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Engine(pub i32);

impl Engine {
    /// The host queues tasks for the task scheduler.
    pub const CPU_TS: Self = Self(1);
    /// The AI CPU queues tasks for the task scheduler.
    pub const AICPU_TS: Self = Self(3);
}

/// First eight bytes of a descriptor: one 64-bit read tells whether it is alive in the generation of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(8))]
pub struct DescriptorTag {
    /// [`DESCRIPTOR_MAGIC`], or anything else in a slot that is not in use.
    pub magic: u32,
    /// [`DESCRIPTOR_VERSION`].
    pub version: u16,
    /// Counts the threads of the slot, so that a handle of an earlier one is refused. Never 0.
    pub generation: u16,
}

impl DescriptorTag {
    /// The tag of a live descriptor.
    pub const fn live(generation: u16) -> Self {
        Self { magic: DESCRIPTOR_MAGIC, version: DESCRIPTOR_VERSION, generation }
    }

    /// As the one word that is compared.
    pub const fn to_bits(self) -> u64 {
        self.magic as u64 | (self.version as u64) << 32 | (self.generation as u64) << 48
    }
}

/// Where the notify ids of a thread are (bits 0..48) and how many it has (bits 48..64): one word, so that both are of one
/// thread whenever it is read. The ids are words of 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct NotifyTable(pub u64);

impl NotifyTable {
    /// `count` ids at `addr`.
    pub const fn new(addr: DeviceAddr, count: u16) -> Self {
        debug_assert!(addr.0 >> ADDR_BITS == 0);
        Self(addr.0 | (count as u64) << ADDR_BITS)
    }

    /// First id.
    pub const fn addr(self) -> DeviceAddr {
        DeviceAddr(self.0 & ((1 << ADDR_BITS) - 1))
    }

    /// Ids.
    pub const fn count(self) -> u32 {
        (self.0 >> ADDR_BITS) as u32
    }
}

/// What the device knows of a communication thread: written by the host before the handle is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct ThreadDescriptor {
    /// Magic, version, generation. Written last, cleared first.
    pub tag: DescriptorTag,
    /// Engine that the thread was acquired for.
    pub engine: Engine,
    /// Stream whose tasks the queue holds.
    pub stream_id: u32,
    /// Submission queue.
    pub sq_id: u32,
    /// Entries of the ring, `MIN_DEPTH..`.
    pub depth: u32,
    /// First entry of the ring, 64-byte aligned.
    pub sq_base: DeviceAddr,
    /// Register block of the queue: what the port's doorbell, head and status take. Means nothing to other code.
    pub regs: u64,
    /// Notify ids of the thread: written as one word.
    pub notifies: NotifyTable,
    /// Communicator of the thread: counts those of the device from 1; 0 for a thread of none.
    pub comm: u64,
    /// Zero.
    pub reserved: u64,
}
const _: () = assert!(size_of::<ThreadDescriptor>() as u64 == DESCRIPTOR_SIZE);
const _: () = assert!(core::mem::offset_of!(ThreadDescriptor, engine) == 8);
const _: () = assert!(core::mem::offset_of!(ThreadDescriptor, sq_base) == 24);
const _: () = assert!(core::mem::offset_of!(ThreadDescriptor, notifies) == 40);
const _: () = assert!(core::mem::offset_of!(ThreadDescriptor, comm) == 48);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_keeps_both_halves() {
        let handle = ThreadHandle::new(DeviceAddr(0x7fff_ffff_ffc0), 0xfffe);
        assert_eq!(handle.0, 0xfffe_7fff_ffff_ffc0);
        assert_eq!((handle.addr(), handle.generation()), (DeviceAddr(0x7fff_ffff_ffc0), 0xfffe));
    }

    #[test]
    fn tag_is_the_first_word_of_the_descriptor() {
        let tag = DescriptorTag::live(0xabcd);
        assert_eq!(tag.as_bytes(), tag.to_bits().to_le_bytes());
    }
}
