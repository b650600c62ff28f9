//! Vector clocks: what has happened before. The scheduler keeps one for what notifies order, the race check for all orders.

use std::collections::BTreeMap;

/// One sequence of events that are ordered among themselves: a queue, a stream with its launches, a call of the host.
///
/// Numbers are small and used again: a later actor may take the number of an earlier one that it comes after, or that is
/// [forgotten](VectorClock::forget).
pub type ActorId = u32;

/// How far each actor had come when something happened. Actors are those of one device; what other devices know is kept beside
/// it, so that it comes back with a record over a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorClock {
    times: Vec<u64>,
    /// The same of actors of other devices, by the slot of the device; none unless channels have handed it on.
    foreign: Option<BTreeMap<u32, Vec<u64>>>,
}

impl VectorClock {
    /// How far `actor` had come; 0 = it had not begun.
    #[inline]
    pub fn time_of(&self, actor: ActorId) -> u64 {
        self.times.get(actor as usize).copied().unwrap_or(0)
    }

    /// Adds that `actor` had come as far as `time`.
    pub fn advance(&mut self, actor: ActorId, time: u64) {
        let own = self.slot(actor);
        *own = (*own).max(time);
    }

    /// Forgets an actor that is gone, whose number may be used again.
    pub fn forget(&mut self, actor: ActorId) {
        if let Some(time) = self.times.get_mut(actor as usize) {
            *time = 0;
        }
    }

    /// Becomes what `other` is, in the memory that it has.
    pub fn copy_from(&mut self, other: &Self) {
        self.times.clone_from(&other.times);
        self.foreign.clone_from(&other.foreign);
    }

    /// Adds all that `other` knows.
    pub fn join(&mut self, other: &Self) {
        join(&mut self.times, &other.times);
        for (device, times) in other.foreign.iter().flat_map(|foreign| foreign.iter()) {
            join(self.foreign.get_or_insert_default().entry(*device).or_default(), times);
        }
    }

    /// This clock of device `from`, as device `own` keeps it.
    pub fn handed_over(&self, from: u32, own: u32) -> Self {
        let mut foreign = self.foreign.clone().unwrap_or_default();
        let times = foreign.remove(&own).unwrap_or_default();
        foreign.insert(from, self.times.clone());
        Self { times, foreign: Some(foreign) }
    }

    /// Takes away all that `other` does not know.
    pub fn meet(&mut self, other: &Self) {
        self.times.truncate(other.times.len());
        for (own, other) in self.times.iter_mut().zip(&other.times) {
            *own = (*own).min(*other);
        }
    }

    /// Whether `other` knows all that this one knows.
    pub fn is_within(&self, other: &Self) -> bool {
        self.times.iter().enumerate().all(|(actor, time)| other.time_of(actor as ActorId) >= *time)
    }

    /// Begins the next step of `actor`: what it did before is ordered before whatever takes over this clock later.
    pub fn tick(&mut self, actor: ActorId) {
        *self.slot(actor) += 1;
    }

    fn slot(&mut self, actor: ActorId) -> &mut u64 {
        let index = actor as usize;
        if self.times.len() <= index {
            self.times.resize(index + 1, 0);
        }
        &mut self.times[index]
    }
}

fn join(own: &mut Vec<u64>, other: &[u64]) {
    if own.len() < other.len() {
        own.resize(other.len(), 0);
    }
    for (own, other) in own.iter_mut().zip(other) {
        *own = (*own).max(*other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(times: &[u64]) -> VectorClock {
        VectorClock { times: times.to_vec(), foreign: None }
    }

    #[test]
    fn join_takes_the_later_and_meet_the_earlier_of_each() {
        let (short, long) = (clock(&[3, 1]), clock(&[2, 4, 5]));
        let (mut joined, mut met) = (short.clone(), long.clone());
        joined.join(&long);
        met.meet(&short);
        assert_eq!((joined, met.clone()), (clock(&[3, 4, 5]), clock(&[2, 1])));
        assert_eq!([0, 1, 2, 3].map(|actor| long.time_of(actor)), [2, 4, 5, 0]);
        assert!(met.is_within(&long) && met.is_within(&short) && !long.is_within(&short) && !short.is_within(&long));
    }

    #[test]
    fn actor_advances_until_it_is_forgotten() {
        let mut queues = clock(&[4]);
        queues.advance(2, 7);
        queues.advance(0, 3);
        assert_eq!(queues, clock(&[4, 0, 7]));
        queues.forget(2);
        queues.forget(9);
        assert_eq!([0, 1, 2, 9].map(|queue| queues.time_of(queue)), [4, 0, 0, 0]);
    }

    #[test]
    fn tick_moves_one_actor() {
        let mut ticked = clock(&[1]);
        ticked.tick(2);
        ticked.tick(0);
        assert_eq!(ticked, clock(&[2, 0, 1]));
    }

    #[test]
    fn what_another_device_knows_comes_back_with_its_record() {
        // Device 3 records for device 5 what its queues 0 and 1 have done.
        let sent = clock(&[4, 7]).handed_over(3, 5);
        assert_eq!((sent.time_of(0), sent.time_of(1)), (0, 0), "device 5 has done nothing by that");
        let mut at_5 = clock(&[0, 0, 9]);
        at_5.join(&sent);
        assert_eq!(at_5.time_of(2), 9);
        // And device 5 for device 3, whose queue 1 has gone on meanwhile.
        let mut at_3 = clock(&[0, 8]);
        at_3.join(&at_5.handed_over(5, 3));
        assert_eq!([0, 1, 2].map(|actor| at_3.time_of(actor)), [4, 8, 0]);
    }
}
