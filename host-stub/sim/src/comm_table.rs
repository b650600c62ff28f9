//! Names of the communicators of a device, where its kernels read them.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::comm::{COMM_ENTRY_SIZE, CommEntry, MAX_COMMS};
use zerocopy::IntoBytes;

use super::memory::Memory;

/// The table, as the host keeps it.
#[derive(Debug)]
pub struct CommTable {
    base: DeviceAddr,
    /// Device slot in the process: part of each name.
    device: usize,
    used: [bool; MAX_COMMS],
    /// Communicators that were ever made: the next one's number.
    made: u64,
}

impl CommTable {
    /// An empty table at `base` of the HBM of the device in slot `device`.
    pub fn new(base: DeviceAddr, device: usize) -> Self {
        Self { base, device, used: [false; MAX_COMMS], made: 0 }
    }

    /// Adds a communicator with a name that no other has had on this device. Gives its place, its number
    /// from 1 and its name; `None`: all [`MAX_COMMS`] places are in use.
    ///
    /// # Panics
    /// If the table is not in HBM.
    pub fn add(&mut self, memory: &impl Memory) -> Option<(usize, u64, String)> {
        let slot = self.used.iter().position(|used| !used)?;
        let name = format!("comm_{}_{}", self.device, self.made);
        let entry = CommEntry::new(&name).expect("the name is short");
        let addr = self.addr(slot);
        memory.write_hbm(addr + 8, &entry.as_bytes()[8..]).expect("the table is in hbm");
        // Pairs with the device's acquire: a device that sees it live sees its name.
        memory.publish_hbm_word(addr, entry.live).expect("the table is in hbm");
        self.made += 1;
        self.used[slot] = true;
        Some((slot, self.made, name))
    }

    /// Removes the communicator in this place.
    ///
    /// # Panics
    /// If the table is not in HBM.
    pub fn remove(&mut self, memory: &impl Memory, slot: usize) {
        memory.publish_hbm_word(self.addr(slot), 0).expect("the table is in hbm");
        self.used[slot] = false;
    }

    fn addr(&self, slot: usize) -> u64 {
        self.base.0 + slot as u64 * COMM_ENTRY_SIZE
    }
}
