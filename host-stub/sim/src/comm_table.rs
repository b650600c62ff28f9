//! Names of the communicators of a device, where its kernels read them.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::comm::{COMM_ENTRY_SIZE, COMM_NAME_LEN, CommEntry, MAX_COMMS};
use zerocopy::IntoBytes;

use super::memory::Memory;
use super::message::debug_is_the_message;

/// Why there is no new communicator.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommError {
    /// Every entry of the table is in use.
    #[error("a device has room for {MAX_COMMS} communicators, and all are in use: drop one first")]
    Full,
    /// A name that the program gives is not valid.
    #[error("communicator name {0:?}: must have 1 to {max} bytes and no zero byte", max = COMM_NAME_LEN - 1)]
    BadName(String),
    /// A communicator of this device has the name.
    #[error("communicator name {0:?} is in use on this device: names are unique")]
    NameTaken(String),
}
debug_is_the_message!(CommError);

/// The table, as the host keeps it.
#[derive(Debug)]
pub struct CommTable {
    base: DeviceAddr,
    /// Device slot in the process: part of each name.
    device: usize,
    /// Names of the live ones, by place.
    names: [Option<Box<str>>; MAX_COMMS],
    /// Communicators that were ever made: the next one's number.
    made: u64,
}

impl CommTable {
    /// An empty table at `base` of the HBM of the device in slot `device`.
    pub fn new(base: DeviceAddr, device: usize) -> Self {
        Self { base, device, names: [const { None }; MAX_COMMS], made: 0 }
    }

    /// Adds a communicator called `name`, or with a name that no other has had on this device. Gives its place, its number
    /// from 1 and its name.
    ///
    /// # Errors
    /// [`CommError`].
    ///
    /// # Panics
    /// If the table is not in HBM.
    pub fn add(&mut self, memory: &impl Memory, name: Option<&str>) -> Result<(usize, u64, String), CommError> {
        let slot = self.names.iter().position(Option::is_none).ok_or(CommError::Full)?;
        let name = name.map_or_else(|| format!("comm_{}_{}", self.device, self.made), str::to_owned);
        let Some(entry) = CommEntry::new(&name) else { return Err(CommError::BadName(name)) };
        if self.names.iter().flatten().any(|other| **other == *name) {
            return Err(CommError::NameTaken(name));
        }
        let addr = self.addr(slot);
        memory.write_hbm(addr + 8, &entry.as_bytes()[8..]).expect("the table is in hbm");
        // Pairs with the device's acquire: a device that sees it live sees its name.
        memory.publish_hbm_word(addr, entry.live).expect("the table is in hbm");
        self.made += 1;
        self.names[slot] = Some(name.as_str().into());
        Ok((slot, self.made, name))
    }

    /// Removes the communicator in this place.
    ///
    /// # Panics
    /// If the table is not in HBM.
    pub fn remove(&mut self, memory: &impl Memory, slot: usize) {
        memory.publish_hbm_word(self.addr(slot), 0).expect("the table is in hbm");
        self.names[slot] = None;
    }

    fn addr(&self, slot: usize) -> u64 {
        self.base.0 + slot as u64 * COMM_ENTRY_SIZE
    }
}
