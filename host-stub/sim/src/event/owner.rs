//! Who queued the task in each slot of a ring.
//!
//! Filled from the records of calls, or, where calls are not recorded, from the doorbells. The last writer of a slot is the
//! one who queued its task: a call whose doorbell was refused leaves an entry that the next call replaces.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::what::Queuer;

/// Who queued the tasks of every queue of a device.
pub struct TaskOwners(Vec<Mutex<Vec<Option<Queuer>>>>);

impl TaskOwners {
    /// For `queues` queues, all without tasks.
    pub fn new(queues: u32) -> Self {
        Self((0..queues).map(|_| Mutex::default()).collect())
    }

    /// Whether there is a queue with this number.
    pub fn has(&self, sq_id: u32) -> bool {
        (sq_id as usize) < self.0.len()
    }

    /// `by` has queued the tasks in `count` slots from `first` on, in a ring of `depth` slots.
    pub fn set(&self, sq_id: u32, first: u32, count: u32, depth: u32, by: Option<Queuer>) {
        let Some(mut slots) = self.slots(sq_id) else { return };
        if slots.len() < depth as usize {
            slots.resize(depth as usize, None);
        }
        let mut slot = first;
        for _ in 0..count.min(depth) {
            if let Some(owner) = slots.get_mut(slot as usize) {
                *owner = by;
            }
            slot = if slot + 1 >= depth { 0 } else { slot + 1 };
        }
    }

    /// Who has queued the task in `slot`; `None` if that is not known.
    pub fn get(&self, sq_id: u32, slot: u32) -> Option<Queuer> {
        self.slots(sq_id)?.get(slot as usize).copied().flatten()
    }

    /// Queue `sq_id` has no tasks any more.
    pub fn clear(&self, sq_id: u32) {
        if let Some(mut slots) = self.slots(sq_id) {
            slots.clear();
        }
    }

    fn slots(&self, sq_id: u32) -> Option<MutexGuard<'_, Vec<Option<Queuer>>>> {
        Some(self.0.get(sq_id as usize)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::super::site::SiteId;
    use super::super::what::Origin;
    use super::*;

    #[test]
    fn every_task_has_the_call_that_wrote_its_slot_last() {
        let owners = TaskOwners::new(2);
        let by =
            |launch, call| Some(Queuer { origin: Origin { launch, core: 0 }, call: Some(call), site: SiteId::UNKNOWN });
        // Depth 4. The second call writes what the first one wrote and goes round the end.
        owners.set(1, 0, 4, 4, by(1, 1));
        owners.set(1, 2, 3, 4, by(2, 2));
        let found = [0, 1, 2, 3].map(|slot| owners.get(1, slot));
        assert_eq!(found, [by(2, 2), by(1, 1), by(2, 2), by(2, 2)]);
        assert_eq!([owners.get(1, 4), owners.get(0, 0), owners.get(7, 1)], [None; 3]);
        owners.clear(1);
        assert_eq!(owners.get(1, 1), None);
    }
}
