//! The queues of a device, as its scheduler keeps them.

use std::time::Duration;

use crate::ids::QueueGeneration;
use crate::queue::{HwQueue, QueueConfig};
use crate::stall::Stall;

/// What the device had observed at some time, over all queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// Doorbells.
    pub(crate) doorbells: u64,
    /// Entries that were rung.
    pub(crate) rung: u64,
}

/// All queues, those that may have something to do, and when a wait of one is over.
#[derive(Default)]
pub(crate) struct Queues {
    slots: Vec<Option<HwQueue>>,
    /// Queues that may have something to do.
    active: Vec<u32>,
    observed: Observed,
    /// Queues that were ever made.
    generations: QueueGeneration,
    /// No parked queue has a deadline before.
    next_deadline: Option<Duration>,
}

impl Queues {
    /// One more than the largest number that a queue has had.
    pub(crate) fn count(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn get(&self, sq_id: u32) -> Option<&HwQueue> {
        self.slots.get(sq_id as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, sq_id: u32) -> Option<&mut HwQueue> {
        self.slots.get_mut(sq_id as usize)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &HwQueue> {
        self.slots.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut HwQueue> {
        self.slots.iter_mut().flatten()
    }

    /// Adds an empty queue.
    pub(crate) fn add(&mut self, config: QueueConfig, hold: Stall) {
        let index = config.sq_id as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        self.generations += 1;
        self.slots[index] = Some(HwQueue { hold, ..HwQueue::new(config, self.generations) });
    }

    /// Removes a queue, and what the others know of it. Whether there was one.
    pub(crate) fn remove(&mut self, sq_id: u32) -> bool {
        let was_there = self.slots.get_mut(sq_id as usize).and_then(Option::take).is_some();
        if was_there {
            self.active.retain(|active| *active != sq_id);
            self.iter_mut().for_each(|queue| queue.before.forget(sq_id));
        }
        was_there
    }

    /// Queues that may have something to do.
    pub(crate) fn active(&self) -> &[u32] {
        &self.active
    }

    /// A queue may have something to do.
    pub(crate) fn activate(&mut self, sq_id: u32) {
        if let Some(queue) = self.get_mut(sq_id)
            && !queue.active
        {
            queue.active = true;
            self.active.push(sq_id);
        }
    }

    /// The queue at this place of the list of active ones has nothing to do; the last one takes its place.
    pub(crate) fn retire_at(&mut self, place: usize) {
        self.active.swap_remove(place);
    }

    /// A queue has nothing to do; the others keep their order.
    pub(crate) fn retire(&mut self, sq_id: u32) {
        self.active.retain(|active| *active != sq_id);
    }

    /// What was observed so far.
    pub(crate) fn observed(&self) -> Observed {
        self.observed
    }

    /// New doorbells were observed, with so many entries. Gives the number of all doorbells.
    pub(crate) fn observe(&mut self, doorbells: u32, rung: u64) -> u64 {
        self.observed.doorbells += u64::from(doorbells);
        self.observed.rung += rung;
        self.observed.doorbells
    }

    /// No wait is over before; `None`: none has a limit.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        self.next_deadline
    }

    /// A wait has begun that is over at `deadline`.
    pub(crate) fn add_deadline(&mut self, deadline: Option<Duration>) {
        self.next_deadline = self.next_deadline.into_iter().chain(deadline).min();
    }

    /// Looks at the waits again: none is over before the earliest limit behind `now`.
    pub(crate) fn find_deadline(&mut self, now: Duration) {
        let parked = self.iter().filter(|queue| queue.is_parked() && !queue.stopped);
        let deadlines = parked.filter_map(|queue| queue.wait?.deadline);
        self.next_deadline = deadlines.filter(|deadline| now < *deadline).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(ids: &[u32]) -> Queues {
        let mut queues = Queues::default();
        for &sq_id in ids {
            queues.add(QueueConfig { stream_id: sq_id + 10, sq_id, base: 0, depth: 8 }, Stall::default());
            queues.activate(sq_id);
        }
        queues
    }

    #[test]
    fn removed_queue_is_neither_active_nor_known_to_others() {
        let mut queues = queues(&[1, 3]);
        queues.get_mut(3).unwrap().before.advance(1, 7);
        queues.activate(3);
        assert_eq!((queues.active(), queues.count()), (&[1, 3][..], 4));
        assert!(queues.remove(1) && !queues.remove(1) && !queues.remove(9));
        assert_eq!((queues.active(), queues.iter().count()), (&[3][..], 1));
        assert_eq!(queues.get(3).unwrap().before.time_of(1), 0);
        queues.add(QueueConfig { stream_id: 1, sq_id: 1, base: 0, depth: 8 }, Stall::default());
        assert_eq!(queues.get(1).unwrap().generation, 3);
    }

    #[test]
    fn earliest_deadline_is_kept_until_it_is_over() {
        let mut queues = Queues::default();
        assert_eq!(queues.next_deadline(), None);
        for limit in [Some(5), None, Some(3), Some(9)] {
            queues.add_deadline(limit.map(Duration::from_secs));
        }
        assert_eq!(queues.next_deadline(), Some(Duration::from_secs(3)));
        // No queue waits.
        queues.find_deadline(Duration::from_secs(4));
        assert_eq!(queues.next_deadline(), None);
    }

    #[test]
    fn observed_doorbells_and_entries_are_counted_over_all_queues() {
        let mut queues = Queues::default();
        assert_eq!([queues.observe(2, 5), queues.observe(1, 1)], [2, 3]);
        assert_eq!(queues.observed(), Observed { doorbells: 3, rung: 6 });
    }
}
