//! Batch mode of a core: tasks are staged in their rings, and each queue's doorbell is rung once, at the end.

use core::sync::atomic::{AtomicUsize, Ordering};

use heapless::Vec;

use crate::device::{Device, MAX_QUEUES};
use crate::error::Error;
use crate::port::{Platform, Port, with_core};
use crate::sync::{Mutex, const_fn};

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
/// The first refusal: [`Error::DoorbellRefused`], or what befell staged tasks before ([`Error::Suspended`] by a reset,
/// [`Error::BadHandle`] by a freed thread). The tasks of that queue are dropped, those of the others run.
pub fn end() -> Result<(), Error> {
    with_core(|core| core.batch().end(&Platform, core.device())).unwrap_or(Err(Error::NoCore))
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
    /// Queues with tasks of this core that were not rung, each once.
    queues: Vec<u16, MAX_QUEUES>,
    /// First mishap since the batch began.
    error: Option<Error>,
}

impl Batch {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { open: AtomicUsize::new(BatchId::NONE.0), staged: Mutex::new(Staged { queues: Vec::new(), error: None }) }
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

    pub(crate) fn end<P: Port>(&self, port: &P, device: &Device) -> Result<(), Error> {
        self.open.store(BatchId::NONE.0, Ordering::Relaxed);
        self.ring_staged(port, device);
        self.staged.lock().error.take().map_or(Ok(()), Err)
    }

    /// Closes the batch without ringing: its tasks are dropped. Whether there was anything to close.
    pub(crate) fn discard(&self, device: &Device) -> bool {
        let was_open = self.open.swap(BatchId::NONE.0, Ordering::Relaxed) != BatchId::NONE.0;
        self.take_queues(|index| device.queue_at(index).drop_staged(self.id()));
        self.staged.lock().error = None;
        was_open
    }

    /// Calls `with` for each queue of the list, in order, and empties it.
    fn take_queues(&self, mut with: impl FnMut(usize)) {
        let mut taken = 0;
        loop {
            // Not locked while `with` runs: it may note an error.
            let Some(index) = self.staged.lock().queues.get(taken).copied() else { break };
            with(index.into());
            taken += 1;
        }
        self.staged.lock().queues.clear();
    }

    /// Remembers that queue `index` has its first staged task.
    #[cold]
    pub(crate) fn note(&self, index: usize) {
        let mut staged = self.staged.lock();
        let index = index as u16;
        // A queue comes here again when another core has rung what this one staged.
        if !staged.queues.contains(&index) && staged.queues.push(index).is_err() {
            debug_assert!(false, "the list has room for every queue of the device");
        }
    }

    /// Remembers the first mishap, for the end of the batch to report.
    pub(crate) fn note_error(&self, error: Error) {
        self.staged.lock().error.get_or_insert(error);
    }

    /// Rings every queue with staged tasks. Called at the end, and while one ring is full: what the others hold may be what
    /// the full one waits for.
    pub(crate) fn ring_staged<P: Port>(&self, port: &P, device: &Device) {
        self.take_queues(|index| {
            if let Err(error) = device.queue_at(index).ring_staged(port, self.id()) {
                self.note_error(error);
            }
        });
    }
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
            batch.take_queues(|index| taken.push(index).expect("no more queues than there are"));
            assert!(taken.iter().copied().eq(0..QUEUES), "round {round}");
            batch.take_queues(|index| panic!("queue {index} was taken before"));
        }
    }
}
