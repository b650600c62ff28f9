//! Records of calls, see [`spec::record`](crate::spec::record): one ring a core, of which the core is the one writer.

use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::{AtomicU64, Ordering};

use super::wait::Wait;
use crate::port::Platform;
use crate::spec::queue::QueueStatus;
use crate::spec::record::{CallRecord, EntryPoint, RECORD_STRIDE, RECORDS, RecordRing};
use crate::stop::Stop;

/// Which ring is the core's.
pub(crate) struct Recorder {
    core: u32,
}

impl Recorder {
    pub(crate) const fn new(core: u32) -> Self {
        Self { core }
    }

    /// The ring of the core, if the first one is at `base`; 0: calls are not recorded.
    pub(crate) fn ring_of(&self, base: u64) -> Option<Ring> {
        (base != 0).then(|| Ring(with_exposed_provenance_mut((base + u64::from(self.core) * RECORD_STRIDE) as usize)))
    }
}

/// Room for the record of a call that queues nothing; `None`: calls are not recorded.
pub(crate) struct Note(pub(super) Option<Ring>);

impl Note {
    /// Writes it: function `entry`, which was about `number`.
    pub(crate) fn write<P: Platform>(&self, io: &P, entry: EntryPoint, number: u32) {
        if let Some(ring) = &self.0 {
            ring.write(io, entry, 0, QueueStatus::FREE, number, 0);
            // The host may look at the record before another core sees what the caller does next.
            io.store_barrier();
        }
    }
}

/// A core's ring.
#[derive(Clone, Copy)]
pub(crate) struct Ring(*mut RecordRing);

impl Ring {
    fn head<'r>(self) -> &'r AtomicU64 {
        // SAFETY: the ring stays mapped, aligned and writable while a kernel runs (`Device::set_record_rings`); both sides
        // access the word atomically.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.0).head) }
    }

    /// Whether a record fits: the host has read the one whose place it takes.
    fn has_room(self) -> bool {
        // SAFETY: as in `head`; the host stores the word atomically.
        let tail = unsafe { AtomicU64::from_ptr(&raw mut (*self.0).tail) };
        // Pairs with the release store of the host: it has read the record before we write over it.
        self.head().load(Ordering::Relaxed).wrapping_sub(tail.load(Ordering::Acquire)) < RECORDS as u64
    }

    /// Waits until a record fits, for up to `timeout_us`.
    ///
    /// # Errors
    /// [`Error::RecordsNotRead`](crate::Error::RecordsNotRead).
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_for_room<P: Platform>(self, io: &P, timeout_us: u64) -> Result<(), Stop> {
        let mut wait = Wait::NONE;
        while !self.has_room() {
            if !wait.pause(io, timeout_us) {
                return Err(Stop::records_not_read(timeout_us));
            }
        }
        Ok(())
    }

    /// Writes a record. It [has room](Self::has_room), which only this core takes.
    #[cold]
    #[inline(never)]
    pub(crate) fn write<P: Platform>(
        self,
        io: &P,
        entry: EntryPoint,
        sq_id: u32,
        status: QueueStatus,
        first: u32,
        count: u32,
    ) {
        let number = self.head().load(Ordering::Relaxed);
        // SAFETY: the remainder is below the length of `slots` of the ring, which is ours as in `head`; the host does not read
        // the place before `head` has passed it, so that nothing else refers to it.
        let record =
            unsafe { &mut *(&raw mut (*self.0).slots).cast::<CallRecord>().add((number % RECORDS as u64) as usize) };
        (record.seq, record.status, record.entry) = (number + 1, status, entry);
        (record.sq_id, record.first, record.count) = (sq_id, first, count);
        io.return_addresses(&mut record.frames);
        // Pairs with the acquire load of the host: a reader that sees the new head sees the record.
        self.head().store(number + 1, Ordering::Release);
    }
}
