//! Vector clocks: what has happened before.

/// One sequence of events that are ordered among themselves: a queue, a stream with its launches, a call of the host.
///
/// Numbers are small and used again: a later actor may take the number of an earlier one that it comes after.
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
        let index = actor as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += 1;
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
    fn tick_moves_one_actor() {
        let mut ticked = clock(&[1]);
        ticked.tick(2);
        ticked.tick(0);
        assert_eq!(ticked, clock(&[2, 0, 1]));
    }
}
