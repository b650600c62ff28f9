//! Batch mode of a core: tasks are staged in their rings, and each queue's doorbell is rung once, at the end.

use core::sync::atomic::{AtomicUsize, Ordering};

use heapless::Vec;

use crate::device::{Device, MAX_QUEUES};
use crate::error::{Error, Stop};
use crate::port::{Launch, Platform, Port, with_core};
use crate::sync::{Mutex, MutexGuard, const_fn};

/// Starts a batch on the core that runs the caller: from now on calls stage their tasks. In a batch it changes nothing.
///
/// # Errors
/// [`Error::NoCore`] outside a kernel.
pub fn start() -> Result<(), Error> {
    with_core(|core| core.batch().start()).ok_or(Error::NoCore)
}

/// Ends the batch: rings each queue that has staged tasks, in the order in which they were first used. Without a batch it
/// does nothing.
///
/// # Errors
/// The first refusal: [`Error::DoorbellRefused`], or what befell staged tasks before: [`Error::Suspended`] also by a reset or
/// by a new thread in the slot, [`Error::BadHandle`] by a freed thread. The tasks of that queue are dropped, those of the
/// others run.
pub fn end() -> Result<(), Error> {
    let launch = Launch;
    let core = launch.core().ok_or(Error::NoCore)?;
    Ok(core.batch().end(&Platform, core.device())?)
}

/// Tells the batches of a device's cores apart: where they are in memory. Zero: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchId(usize);

impl BatchId {
    /// No batch.
    pub(crate) const NONE: Self = Self(0);
}

/// Batch state of one core.
#[repr(C)]
pub(crate) struct Batch {
    /// The batch's own id while it is open, else 0.
    open: AtomicUsize,
    /// Locked by its own core alone: the lock is there because a core is shared by reference.
    staged: Mutex<Staged>,
}

struct Staged {
    /// Queues with tasks of this core that were not rung, each once, in the order of their first task.
    queues: Vec<u16, MAX_QUEUES>,
    /// Which these are, a bit for each.
    listed: [u64; MAX_QUEUES.div_ceil(64)],
    /// First mishap since the batch began.
    mishap: Option<Stop>,
}

impl Staged {
    const NONE: Self = Self { queues: Vec::new(), listed: [0; MAX_QUEUES.div_ceil(64)], mishap: None };
}

impl Batch {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { open: AtomicUsize::new(BatchId::NONE.0), staged: Mutex::new(Staged::NONE) }
        }
    }

    #[inline]
    fn id(&self) -> BatchId {
        BatchId(core::ptr::from_ref(self).addr())
    }

    /// The batch that is open on this core.
    #[inline]
    pub(crate) fn current(&self) -> BatchId {
        BatchId(self.open.load(Ordering::Relaxed))
    }

    pub(crate) fn start(&self) {
        self.open.store(self.id().0, Ordering::Relaxed);
    }

    pub(crate) fn end<P: Port>(&self, port: &P, device: &Device) -> Result<(), Stop> {
        self.open.store(BatchId::NONE.0, Ordering::Relaxed);
        self.ring_staged(port, device);
        self.lock().mishap.take().map_or(Ok(()), Err)
    }

    /// Closes the batch without ringing: its tasks are dropped. Whether there was anything to close.
    pub(crate) fn discard(&self, device: &Device) -> bool {
        let was_open = self.open.swap(BatchId::NONE.0, Ordering::Relaxed) != BatchId::NONE.0;
        self.take_queues(|index| {
            device.queue_at(index).drop_staged(self.id());
            Ok(())
        });
        self.lock().mishap = None;
        was_open
    }

    #[cold]
    #[inline(never)]
    fn lock(&self) -> MutexGuard<'_, Staged> {
        self.staged.lock()
    }

    /// Calls `with` for each queue of the list, in order, empties it, and remembers the first mishap.
    fn take_queues(&self, mut with: impl FnMut(usize) -> Result<(), Stop>) {
        // Held while `with` locks queues, one after the other: who holds a queue's lock waits for its own batch alone.
        let mut staged = self.lock();
        let mut taken = 0;
        while let Some(index) = staged.queues.get(taken).copied() {
            taken += 1;
            let (word, bit) = place(index);
            staged.listed[word] &= !bit;
            if let Err(mishap) = with(index.into()) {
                staged.mishap.get_or_insert(mishap);
            }
        }
        staged.queues.clear();
    }

    /// Remembers that queue `index` has its first staged task.
    #[cold]
    #[inline(never)]
    pub(crate) fn note(&self, index: usize) {
        let mut staged = self.lock();
        let index = index as u16;
        let (word, bit) = place(index);
        // A queue comes here again when another core has rung what this one staged.
        if staged.listed[word] & bit != 0 {
            return;
        }
        staged.listed[word] |= bit;
        if staged.queues.push(index).is_err() {
            debug_assert!(false, "the list has room for every queue of the device");
        }
    }

    /// Remembers the first mishap, for the end of the batch to report.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_mishap(&self, mishap: Stop) {
        self.lock().mishap.get_or_insert(mishap);
    }

    /// `result`, whose mishap the end of the batch reports, too.
    pub(crate) fn keep_mishap(&self, result: Result<(), Stop>) -> Result<(), Stop> {
        if let Err(mishap) = result {
            self.note_mishap(mishap);
        }
        result
    }

    /// Rings every queue with staged tasks. Called at the end, and while one ring is full: what the others hold may be what
    /// the full one waits for.
    pub(crate) fn ring_staged<P: Port>(&self, port: &P, device: &Device) {
        self.take_queues(|index| device.queue_at(index).ring_staged(port, self.id()));
    }
}

/// Word and bit of a queue in [`Staged::listed`].
fn place(index: u16) -> (usize, u64) {
    let index = index as usize % MAX_QUEUES;
    (index / 64, 1 << (index % 64))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn case_67_list_of_queues_has_room_for_every_queue_of_the_device() {
        // Miri takes too long for all of them.
        const QUEUES: usize = if cfg!(miri) { 64 } else { MAX_QUEUES };
        let batch = Batch::new();
        for round in 0..3 {
            // Each twice: a queue comes again when another core has rung what this one had staged.
            (0..QUEUES).chain(0..QUEUES).for_each(|index| batch.note(index));
            let mut taken = Vec::<usize, { MAX_QUEUES + 1 }>::new();
            batch.take_queues(|index| {
                taken.push(index).expect("no more queues than there are");
                Ok(())
            });
            assert!(taken.iter().copied().eq(0..QUEUES), "round {round}");
            batch.take_queues(|index| panic!("queue {index} was taken before"));
        }
    }
}
