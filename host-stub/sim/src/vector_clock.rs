//! Vector clocks: what has happened before. The scheduler keeps one for what notifies order, the race check for all orders.

/// One sequence of events that are ordered among themselves: a queue, a stream with its launches, a call of the host.
///
/// Numbers are small and used again: a later actor may take the number of an earlier one that it comes after, or that is
/// [forgotten](VectorClock::forget).
pub type ActorId = u32;

/// How far each actor had come when something happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorClock(Vec<u64>);

impl VectorClock {
    /// How far `actor` had come; 0 = it had not begun.
    #[inline]
    pub fn time_of(&self, actor: ActorId) -> u64 {
        self.0.get(actor as usize).copied().unwrap_or(0)
    }

    /// Adds that `actor` had come as far as `time`.
    pub fn advance(&mut self, actor: ActorId, time: u64) {
        let own = self.slot(actor);
        *own = (*own).max(time);
    }

    /// Forgets an actor that is gone, whose number may be used again.
    pub fn forget(&mut self, actor: ActorId) {
        if let Some(time) = self.0.get_mut(actor as usize) {
            *time = 0;
        }
    }

    /// Becomes what `other` is, in the memory that it has.
    pub fn copy_from(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    /// Adds all that `other` knows.
    pub fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*other);
        }
    }

    /// Takes away all that `other` does not know.
    pub fn meet(&mut self, other: &Self) {
        self.0.truncate(other.0.len());
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).min(*other);
        }
    }

    /// Whether `other` knows all that this one knows.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.iter().enumerate().all(|(actor, time)| other.time_of(actor as ActorId) >= *time)
    }

    /// Begins the next step of `actor`: what it did before is ordered before whatever takes over this clock later.
    pub fn tick(&mut self, actor: ActorId) {
        *self.slot(actor) += 1;
    }

    fn slot(&mut self, actor: ActorId) -> &mut u64 {
        let index = actor as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        &mut self.0[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(times: &[u64]) -> VectorClock {
        VectorClock(times.to_vec())
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
}
