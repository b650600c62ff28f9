//! Batch mode of a core: tasks are staged in their rings, and each queue's doorbell is rung once, at the end.

use core::sync::atomic::{AtomicU32, Ordering};

use heapless::Vec;

#[cfg(not(loom))]
pub(super) use crate::spec::thread::MAX_THREADS as MAX_QUEUES;
use crate::stop::Stop;
use crate::sync::{Mutex, MutexGuard, const_fn, lock_cold};

/// Loom follows each lock: few are enough for it.
#[cfg(loom)]
pub(super) const MAX_QUEUES: usize = 4;

/// Tells the batches of a device's cores apart: number of the core + 1. Zero: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchId(u32);

impl BatchId {
    /// No batch.
    pub(crate) const NONE: Self = Self(0);

    /// As the number that a channel keeps.
    #[inline(always)]
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// The batch with this [`number`](Self::number).
    pub(crate) fn of_number(number: u32) -> Self {
        Self(number)
    }
}

/// Batch state of one core.
#[repr(C)]
pub(crate) struct Batch {
    /// The core's own id while its batch is open, else 0.
    open: AtomicU32,
    id: BatchId,
    /// Locked by its own core alone: the lock is there because a core is shared by reference.
    staged: Mutex<Staged>,
}

struct Staged {
    /// Queues with tasks of this core that were not rung, each once, in the order of their first task.
    queues: Vec<u16, MAX_QUEUES>,
    /// Which these are, a bit for each.
    listed: [u64; MAX_QUEUES.div_ceil(64)],
    /// First failure since the batch began.
    failure: Option<Stop>,
}

impl Staged {
    const NONE: Self = Self { queues: Vec::new(), listed: [0; MAX_QUEUES.div_ceil(64)], failure: None };
}

impl Batch {
    const_fn! {
        /// Batch state of core `core`, without a batch.
        pub(crate) fn new(core: u32) -> Self {
            Self { open: AtomicU32::new(BatchId::NONE.0), id: BatchId(core + 1), staged: Mutex::new(Staged::NONE) }
        }
    }

    /// What tasks of this core's batches are marked with.
    #[inline]
    pub(crate) fn id(&self) -> BatchId {
        self.id
    }

    /// The batch that is open on this core.
    #[inline(always)]
    pub(crate) fn current(&self) -> BatchId {
        BatchId(self.open.load(Ordering::Relaxed))
    }

    /// Opens a batch; one that is open stays.
    pub(crate) fn start(&self) {
        self.open.store(self.id.0, Ordering::Relaxed);
    }

    /// Closes the batch. Gives whether there was one.
    pub(crate) fn close(&self) -> bool {
        self.open.swap(BatchId::NONE.0, Ordering::Relaxed) != BatchId::NONE.0
    }

    fn lock(&self) -> MutexGuard<'_, Staged> {
        lock_cold(&self.staged)
    }

    /// The queues of the list, in order. It is empty after the last one was taken.
    #[inline(always)]
    pub(crate) fn take_queues(&self) -> TakeQueues<'_> {
        // Held while the caller locks queues, one after the other: a core that holds a queue's lock waits for its own batch
        // alone.
        TakeQueues { staged: self.lock(), taken: 0 }
    }

    /// Adds queue `index`, which has its first staged task, to the list.
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

    /// `result`; its failure is also kept for the end of the batch to report, if it is the first one.
    #[cold]
    #[inline(always)]
    pub(crate) fn keep_failure(&self, result: Result<(), Stop>) -> Result<(), Stop> {
        if let Err(stop) = result {
            self.lock().failure.get_or_insert(stop);
        }
        result
    }

    /// The first failure, once.
    pub(crate) fn take_failure(&self) -> Result<(), Stop> {
        self.lock().failure.take().map_or(Ok(()), Err)
    }
}

/// See [`Batch::take_queues`].
pub(crate) struct TakeQueues<'b> {
    staged: MutexGuard<'b, Staged>,
    taken: usize,
}

impl TakeQueues<'_> {
    /// The next queue.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<usize> {
        let Some(index) = self.staged.queues.get(self.taken).copied() else {
            self.staged.queues.clear();
            return None;
        };
        self.taken += 1;
        let (word, bit) = place(index);
        self.staged.listed[word] &= !bit;
        Some(index.into())
    }

    /// Keeps the first failure for the end of the batch to report.
    #[inline(always)]
    pub(crate) fn keep_failure(&mut self, result: Result<(), Stop>) {
        if let Err(stop) = result {
            self.staged.failure.get_or_insert(stop);
        }
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

    /// Case 67.
    #[test]
    fn list_of_queues_has_room_for_every_queue_of_the_device() {
        // Miri takes too long for all of them.
        const QUEUES: usize = if cfg!(miri) { 64 } else { MAX_QUEUES };
        let batch = Batch::new(0);
        for round in 0..3 {
            // Each twice: a queue comes again when another core has rung what this one had staged.
            (0..QUEUES).chain(0..QUEUES).for_each(|index| batch.note(index));
            let mut taken = Vec::<usize, { MAX_QUEUES + 1 }>::new();
            let mut queues = batch.take_queues();
            while let Some(index) = queues.next() {
                taken.push(index).expect("no more queues than there are");
            }
            drop(queues);
            assert!(taken.iter().copied().eq(0..QUEUES), "round {round}");
            assert_eq!(batch.take_queues().next(), None, "all were taken before");
        }
    }

    #[test]
    fn first_failure_wins_and_is_told_once() {
        let batch = Batch::new(0);
        let (first, second) = (Stop::suspended(1), Stop::doorbell_refused(2));
        assert_eq!(batch.keep_failure(Err(first)), Err(first));
        assert_eq!(batch.keep_failure(Err(second)), Err(second));
        batch.note(5);
        batch.take_queues().keep_failure(Err(second));
        assert_eq!(batch.take_failure(), Err(first));
        assert_eq!(batch.take_failure(), Ok(()));
    }
}
