//! Communicators by name: a kernel locks the one that it works for, so that no other does meanwhile.

use core::ffi::CStr;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::device::Core;
use crate::error::Error;
use crate::port::with_core;
use crate::spec::DeviceAddr;
use crate::spec::comm::{COMM_ENTRY_SIZE, COMM_NAME_LEN, MAX_COMMS};
use crate::sync::fence;

/// Locks the communicator called `name`, until [`release`] or the end of the kernel.
///
/// # Errors
/// [`Error::UnknownComm`], [`Error::CommLocked`] if it is locked, also by the caller; [`Error::NoCore`] outside a kernel.
pub fn acquire(name: &CStr) -> Result<(), Error> {
    with_core(|core| core.device().comms().acquire(core, name.to_bytes())).unwrap_or(Err(Error::NoCore))
}

/// Unlocks the communicator called `name`.
///
/// # Errors
/// [`Error::UnknownComm`], [`Error::CommNotLocked`] if the caller has not locked it, [`Error::NoCore`].
pub fn release(name: &CStr) -> Result<(), Error> {
    with_core(|core| core.device().comms().release(core, name.to_bytes())).unwrap_or(Err(Error::NoCore))
}

/// The table of communicators, and who has locked which.
pub(crate) struct Comms {
    base: AtomicU64,
    /// For each entry the core that has locked it, by its address; 0 = none.
    owners: [AtomicUsize; MAX_COMMS],
}

impl Comms {
    pub(crate) const fn new() -> Self {
        Self { base: AtomicU64::new(0), owners: [const { AtomicUsize::new(0) }; MAX_COMMS] }
    }

    pub(crate) fn set_table(&self, base: DeviceAddr) {
        self.base.store(base.0, Ordering::Release);
    }

    fn acquire(&self, core: &Core<'_>, name: &[u8]) -> Result<(), Error> {
        let owner = self.owner(name)?;
        match owner.compare_exchange(0, id(core), Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::CommLocked),
        }
    }

    fn release(&self, core: &Core<'_>, name: &[u8]) -> Result<(), Error> {
        let owner = self.owner(name)?;
        match owner.compare_exchange(id(core), 0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::CommNotLocked),
        }
    }

    /// Unlocks what `core` has locked.
    pub(crate) fn release_all(&self, core: &Core<'_>) {
        for owner in &self.owners {
            // Another core's is left alone.
            let _ = owner.compare_exchange(id(core), 0, Ordering::Release, Ordering::Relaxed);
        }
    }

    fn owner(&self, name: &[u8]) -> Result<&AtomicUsize, Error> {
        let base = self.base.load(Ordering::Acquire);
        if base == 0 || name.is_empty() || name.len() >= COMM_NAME_LEN {
            return Err(Error::UnknownComm);
        }
        let entries = (base..).step_by(COMM_ENTRY_SIZE as usize);
        let found = entries.zip(&self.owners).find(|(entry, _)| is_called(*entry, name));
        found.map(|(_, owner)| owner).ok_or(Error::UnknownComm)
    }
}

/// Names a core: it does not move while a kernel runs on it.
fn id(core: &Core<'_>) -> usize {
    core::ptr::from_ref(core).addr()
}

/// Whether the entry is in use and has this name, which is shorter than the field.
fn is_called(entry: u64, name: &[u8]) -> bool {
    let live = with_exposed_provenance::<u64>(entry as usize);
    // SAFETY: an entry of the table, which stays readable and aligned (`Device::set_comm_table`).
    if unsafe { live.read_volatile() } == 0 {
        return false;
    }
    // Pairs with the host's release store of the word: the name is read after it.
    fence(Ordering::Acquire);
    let first = with_exposed_provenance::<u8>(entry as usize + size_of::<u64>());
    // SAFETY: the name has `COMM_NAME_LEN` bytes behind the word, and `index` is below that.
    let byte = |index| unsafe { first.add(index).read_volatile() };
    name.iter().enumerate().all(|(index, expected)| byte(index) == *expected) && byte(name.len()) == 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::spec::comm::CommEntry;

    fn entry(name: &str) -> CommEntry {
        CommEntry::new(name).unwrap()
    }

    fn device(table: &[CommEntry; MAX_COMMS]) -> Box<Device> {
        let device = Box::new(Device::new());
        // SAFETY: the table outlives the device in every test.
        unsafe { device.set_comm_table(DeviceAddr::from(table.as_ptr())) };
        device
    }

    #[test]
    fn lock_is_held_by_one_core_and_once() {
        let mut table = [CommEntry::UNUSED; MAX_COMMS];
        (table[1], table[63]) = (entry("first"), entry("second"));
        let device = device(&table);
        let (one, two) = (Core::new(&device), Core::new(&device));
        let comms = device.comms();
        assert_eq!(comms.acquire(&one, b"second"), Ok(()));
        assert_eq!(comms.acquire(&one, b"second"), Err(Error::CommLocked));
        assert_eq!(comms.acquire(&two, b"second"), Err(Error::CommLocked));
        assert_eq!(comms.release(&two, b"second"), Err(Error::CommNotLocked));
        assert_eq!(comms.acquire(&two, b"first"), Ok(()));
        assert_eq!(comms.release(&one, b"second"), Ok(()));
        assert_eq!(comms.acquire(&two, b"second"), Ok(()));
        two.finish_launch();
        assert_eq!(comms.acquire(&one, b"first"), Ok(()));
        assert_eq!((Error::CommLocked.code(), Error::CommNotLocked.code()), (20, 6));
    }

    #[test]
    fn only_the_whole_name_of_a_live_entry_is_known() {
        let mut table = [CommEntry::UNUSED; MAX_COMMS];
        table[0] = entry("comm");
        table[1] = CommEntry { live: 0, ..entry("gone") };
        let device = device(&table);
        let core = Core::new(&device);
        for name in ["", "com", "comm1", "gone", &"c".repeat(128), &"c".repeat(500)] {
            assert_eq!(device.comms().acquire(&core, name.as_bytes()), Err(Error::UnknownComm), "{name}");
        }
        assert_eq!(Error::UnknownComm.code(), 2);
        assert_eq!(device.comms().acquire(&core, b"comm"), Ok(()));
    }

    #[test]
    fn without_a_table_nothing_is_known() {
        let device = Box::new(Device::new());
        assert_eq!(device.comms().acquire(&Core::new(&device), b"comm"), Err(Error::UnknownComm));
    }
}
