//! Table of the communicators of a device: the host writes it, to the device it is read-only.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of a communicator's name, with the zero byte at its end.
pub const COMM_NAME_LEN: usize = 128;
/// Entries of the table.
pub const MAX_COMMS: usize = 64;
/// Distance of two entries in bytes.
pub const COMM_ENTRY_SIZE: u64 = 136;

/// One communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CommEntry {
    /// Not 0 while the communicator exists. Written last, cleared first.
    pub live: u64,
    /// Its name, filled up with zero bytes, of which there is at least one.
    pub name: [u8; COMM_NAME_LEN],
}
const _: () = assert!(size_of::<CommEntry>() as u64 == COMM_ENTRY_SIZE);

impl CommEntry {
    /// An entry that is not in use.
    pub const UNUSED: Self = Self { live: 0, name: [0; COMM_NAME_LEN] };

    /// The entry of a communicator called `name`; `None` if the name is empty, too long, or has a zero byte in it.
    pub fn new(name: &str) -> Option<Self> {
        let mut entry = Self { live: 1, ..Self::UNUSED };
        if name.is_empty() || name.len() >= COMM_NAME_LEN || name.contains('\0') {
            return None;
        }
        entry.name[..name.len()].copy_from_slice(name.as_bytes());
        Some(entry)
    }
}
