//! Names of the communicators of a device, where its kernels read them.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::comm::{COMM_ENTRY_SIZE, CommEntry, MAX_COMMS};
use zerocopy::IntoBytes;

use crate::error::Error;
use hcomm_mapping::SharedMemory;

/// The table, as the host keeps it.
pub(crate) struct CommTable {
    base: DeviceAddr,
    used: [bool; MAX_COMMS],
    /// Communicators that were ever made: the next one's number.
    made: u64,
}

impl CommTable {
    /// An empty table at `base`.
    pub(crate) fn new(base: DeviceAddr) -> Self {
        Self { base, used: [false; MAX_COMMS], made: 0 }
    }

    /// Adds a communicator with a name that no other has had on this device. Gives its place, its number from 1 and its name.
    pub(crate) fn add(&mut self, memory: &SharedMemory) -> Result<(usize, u64, String), Error> {
        let slot = self.used.iter().position(|used| !used).ok_or(Error::NoComms(MAX_COMMS))?;
        let name = format!("comm_{}_{}", memory.slot(), self.made);
        let entry = CommEntry::new(&name).expect("the name is short");
        let addr = self.addr(slot);
        memory.write(addr + 8, &entry.as_bytes()[8..])?;
        // Release pairs with the device's acquire: a device that sees it live sees its name.
        memory.hbm_word64(addr)?.store(entry.live, Ordering::Release);
        self.made += 1;
        self.used[slot] = true;
        Ok((slot, self.made, name))
    }

    /// Removes the communicator in this place.
    pub(crate) fn remove(&mut self, memory: &SharedMemory, slot: usize) {
        let live = memory.hbm_word64(self.addr(slot)).expect("the table is in hbm");
        live.store(0, Ordering::SeqCst);
        self.used[slot] = false;
    }

    fn addr(&self, slot: usize) -> u64 {
        self.base.0 + slot as u64 * COMM_ENTRY_SIZE
    }
}
