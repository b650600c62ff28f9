//! The table of communicators of a device, and which core has locked which.

use core::ptr::with_exposed_provenance;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::spec::DeviceAddr;
use crate::spec::comm::{COMM_ENTRY_SIZE, COMM_NAME_LEN, MAX_COMMS};
use crate::sync::{AtomicU32, const_fn, fence};

/// A core as the holder of a lock: its number + 1; 0 = not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    pub(crate) const fn core(core: u32) -> Self {
        Self(core + 1)
    }
}

/// The lock of a communicator: its [`Owner`], 0 = none. What a core stores while it holds the lock, the next holder sees.
struct Lock(AtomicU32);

impl Lock {
    const_fn! {
        fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    #[cfg(not(loom))]
    const fn all() -> [Self; MAX_COMMS] {
        [const { Self::new() }; MAX_COMMS]
    }

    #[cfg(loom)]
    fn all() -> [Self; MAX_COMMS] {
        core::array::from_fn(|_| Self::new())
    }

    /// `false` if a core holds it.
    fn acquire(&self, by: Owner) -> bool {
        self.0.compare_exchange(0, by.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Calls `before`, then gives the lock up. `false`, and nothing is done, if `by` does not hold it.
    fn release(&self, by: Owner, before: impl FnOnce()) -> bool {
        // What the core itself has stored, if it has locked it: no other core stores then.
        let holds = self.0.load(Ordering::Relaxed) == by.0;
        if holds {
            before();
            self.0.store(0, Ordering::Release);
        }
        holds
    }
}

/// See the module.
pub(crate) struct Comms {
    base: AtomicU64,
    /// One for each entry of the table.
    locks: [Lock; MAX_COMMS],
}

impl Comms {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { base: AtomicU64::new(0), locks: Lock::all() }
        }
    }

    /// # Safety
    /// As for [`Device::set_comm_table`](crate::Device::set_comm_table).
    pub(crate) unsafe fn set_table(&self, base: DeviceAddr) {
        self.base.store(base.0, Ordering::Release);
    }

    /// Gives the place of the communicator in the table.
    pub(crate) fn acquire(&self, by: Owner, name: &[u8]) -> Result<u32, Error> {
        let (place, lock) = self.lock(name)?;
        if lock.acquire(by) { Ok(place) } else { Err(Error::CommLocked) }
    }

    /// `before` is called with the place of the communicator in the table, before another core can lock it.
    pub(crate) fn release(&self, by: Owner, name: &[u8], before: impl FnOnce(u32)) -> Result<(), Error> {
        let (place, lock) = self.lock(name)?;
        if lock.release(by, || before(place)) { Ok(()) } else { Err(Error::CommNotLocked) }
    }

    /// Unlocks what `by` has locked. `before`: as in [`release`](Self::release).
    pub(crate) fn release_all(&self, by: Owner, mut before: impl FnMut(u32)) {
        for (place, lock) in self.locks.iter().enumerate() {
            lock.release(by, || before(place as u32));
        }
    }

    fn lock(&self, name: &[u8]) -> Result<(u32, &Lock), Error> {
        let base = self.base.load(Ordering::Acquire);
        if base == 0 || name.is_empty() || name.len() >= COMM_NAME_LEN {
            return Err(Error::UnknownComm);
        }
        let entries = (base..).step_by(COMM_ENTRY_SIZE as usize);
        let mut places = entries.zip(0..).zip(&self.locks);
        let found = places.find(|((entry, _), _)| is_called(*entry, name));
        found.map(|((_, place), lock)| (place, lock)).ok_or(Error::UnknownComm)
    }
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
    use crate::spec::comm::CommEntry;

    fn entry(name: &str) -> CommEntry {
        CommEntry::new(name).unwrap()
    }

    const ONE: Owner = Owner::core(0);
    const TWO: Owner = Owner::core(1);

    fn comms(table: &[CommEntry; MAX_COMMS]) -> Comms {
        let comms = Comms::new();
        // SAFETY: the table outlives its user in every test.
        unsafe { comms.set_table(DeviceAddr::from(table.as_ptr())) };
        comms
    }

    #[test]
    fn lock_is_held_by_one_core_and_once() {
        let mut table = [CommEntry::UNUSED; MAX_COMMS];
        (table[1], table[63]) = (entry("first"), entry("second"));
        let comms = comms(&table);
        assert_eq!(comms.acquire(ONE, b"second"), Ok(63));
        assert_eq!(comms.acquire(ONE, b"second"), Err(Error::CommLocked));
        assert_eq!(comms.acquire(TWO, b"second"), Err(Error::CommLocked));
        assert_eq!(comms.release(TWO, b"second", |_| unreachable!("not locked by it")), Err(Error::CommNotLocked));
        assert_eq!(comms.acquire(TWO, b"first"), Ok(1));
        let locked = |place| assert_eq!(comms.acquire(TWO, b"second"), Err(Error::CommLocked), "place {place}");
        assert_eq!(comms.release(ONE, b"second", locked), Ok(()));
        assert_eq!(comms.release(ONE, b"second", |_| unreachable!("not locked")), Err(Error::CommNotLocked));
        assert_eq!(comms.acquire(TWO, b"second"), Ok(63));
        let mut released = Vec::new();
        comms.release_all(TWO, |place| released.push(place));
        assert_eq!(released, [1, 63]);
        assert_eq!(comms.acquire(ONE, b"first"), Ok(1));
        assert_eq!((Error::CommLocked.code(), Error::CommNotLocked.code()), (20, 6));
    }

    #[test]
    fn only_the_whole_name_of_a_live_entry_is_known() {
        let mut table = [CommEntry::UNUSED; MAX_COMMS];
        table[0] = entry("comm");
        table[1] = CommEntry { live: 0, ..entry("gone") };
        let comms = comms(&table);
        for name in ["", "com", "comm1", "gone", &"c".repeat(128), &"c".repeat(500)] {
            assert_eq!(comms.acquire(ONE, name.as_bytes()), Err(Error::UnknownComm), "{name}");
        }
        assert_eq!(Error::UnknownComm.code(), 2);
        assert_eq!(comms.acquire(ONE, b"comm"), Ok(0));
    }

    #[test]
    fn without_a_table_nothing_is_known() {
        assert_eq!(Comms::new().acquire(ONE, b"comm"), Err(Error::UnknownComm));
    }
}

/// Every order of two cores that lock one communicator (`make loom`).
#[cfg(all(test, loom))]
mod loom_tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    use super::*;

    #[test]
    fn holder_sees_what_the_holder_before_it_has_stored() {
        loom::model(|| {
            let shared = Arc::new((Lock::new(), UnsafeCell::new(0)));
            let cores: Vec<_> = (0..2)
                .map(|core| {
                    let shared = shared.clone();
                    loom::thread::spawn(move || {
                        let (lock, value) = &*shared;
                        while !lock.acquire(Owner::core(core)) {
                            loom::thread::yield_now();
                        }
                        assert!(!lock.release(Owner::core(1 - core), || unreachable!("not locked by it")));
                        // SAFETY: loom checks that nothing else reads or writes the cell meanwhile.
                        let add = || value.with_mut(|value| unsafe { *value += 1 });
                        assert!(lock.release(Owner::core(core), add));
                    })
                })
                .collect();
            cores.into_iter().for_each(|core| core.join().expect("core"));
            let (lock, value) = &*shared;
            assert!(lock.acquire(Owner::core(0)));
            // SAFETY: both cores have ended.
            assert_eq!(value.with(|value| unsafe { *value }), 2);
        });
    }
}
