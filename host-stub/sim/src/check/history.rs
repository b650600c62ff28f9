//! Who has last read and written each byte, and which of two accesses are not ordered.

use std::ops::Range;

use smallvec::SmallVec;

use super::ranges::RangeMap;
use crate::vector_clock::{ActorId, VectorClock};

/// What an access does to its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It leaves them as they are.
    Read,
    /// It changes them.
    Write,
}

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access<S> {
    /// Who made it.
    pub actor: ActorId,
    /// Time of that actor.
    pub time: u64,
    /// Read or write.
    pub kind: Kind,
    /// What the report says of it.
    pub site: S,
}

/// An earlier access that the present one is not ordered behind, with the bytes that both touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict<S> {
    /// Bytes that both touch.
    pub range: Range<u64>,
    /// The other access.
    pub earlier: Access<S>,
}

/// The last read and the last write of each actor, for each byte.
///
/// The last ones suffice: what is not ordered behind an earlier access of an actor is not ordered behind a later one either.
#[derive(Clone, Debug)]
pub struct History<S> {
    ranges: RangeMap<SmallVec<[Access<S>; 2]>>,
    /// Ranges at which it is time to forget what everyone is ordered behind.
    sweep_at: usize,
}

/// Ranges that are kept without a look at what can be forgotten.
const SMALL: usize = 1024;

impl<S: Copy> Default for History<S> {
    fn default() -> Self {
        Self { ranges: RangeMap::default(), sweep_at: SMALL }
    }
}

impl<S: Copy> History<S> {
    /// Adds an access to `range` by an actor whose clock is `clock`, and tells every earlier access that it races with.
    pub fn access(
        &mut self,
        range: Range<u64>,
        access: Access<S>,
        clock: &VectorClock,
        mut conflict: impl FnMut(Conflict<S>),
    ) {
        self.ranges.update(range, |range, accesses| {
            let accesses = accesses.get_or_insert_default();
            let mut own = None;
            for (index, earlier) in accesses.iter().enumerate() {
                if earlier.actor == access.actor {
                    if earlier.kind == access.kind {
                        own = Some(index);
                    }
                    continue;
                }
                let conflicts = earlier.kind == Kind::Write || access.kind == Kind::Write;
                if conflicts && clock.time_of(earlier.actor) < earlier.time {
                    conflict(Conflict { range: range.clone(), earlier: *earlier });
                }
            }
            match own {
                Some(index) => accesses[index] = access,
                None => accesses.push(access),
            }
        });
    }

    /// Forgets the accesses to `range`: its memory is given to someone else.
    pub fn forget(&mut self, range: Range<u64>) {
        self.ranges.clear(range);
    }

    /// Whether enough has come together that [`sweep`](Self::sweep) pays.
    pub fn is_due(&self) -> bool {
        self.ranges.len() >= self.sweep_at
    }

    /// Forgets accesses that everything still to come is ordered behind: `known` is what all of them know.
    pub fn sweep(&mut self, known: &VectorClock) {
        self.ranges.retain(|accesses| {
            accesses.retain(|access| known.time_of(access.actor) < access.time);
            !accesses.is_empty()
        });
        self.sweep_at = SMALL.max(2 * self.ranges.len());
    }

    /// Ranges that are kept.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn access(actor: ActorId, time: u64, kind: Kind) -> Access<u32> {
        Access { actor, time, kind, site: actor * 100 + time as u32 }
    }

    fn conflicts(
        history: &mut History<u32>,
        range: Range<u64>,
        new: Access<u32>,
        clock: &VectorClock,
    ) -> Vec<(Range<u64>, u32)> {
        let mut found = Vec::new();
        history.access(range, new, clock, |conflict| found.push((conflict.range, conflict.earlier.site)));
        found
    }

    #[test]
    fn unordered_accesses_conflict_where_they_overlap_if_one_writes() {
        let mut history = History::default();
        let nothing = VectorClock::default();
        assert_eq!(conflicts(&mut history, 0..10, access(0, 1, Kind::Write), &nothing), []);
        assert_eq!(conflicts(&mut history, 10..20, access(0, 1, Kind::Read), &nothing), []);
        assert_eq!(conflicts(&mut history, 5..15, access(1, 1, Kind::Read), &nothing), [(5..10, 1)]);
        assert_eq!(conflicts(&mut history, 20..30, access(1, 1, Kind::Write), &nothing), [], "adjacent bytes");
        let expected = [(0..5, 1), (5..10, 1), (5..10, 101), (10..15, 1), (10..15, 101), (15..20, 1), (20..30, 101)];
        assert_eq!(conflicts(&mut history, 0..40, access(2, 1, Kind::Write), &nothing), expected);
    }

    #[test]
    fn ordered_accesses_do_not_conflict() {
        let mut history = History::default();
        let mut clock = VectorClock::default();
        clock.tick(0);
        conflicts(&mut history, 0..10, access(0, 1, Kind::Write), &clock);
        assert_eq!(conflicts(&mut history, 0..10, access(1, 1, Kind::Write), &clock), []);
        conflicts(&mut history, 0..10, access(0, 2, Kind::Write), &clock);
        assert_eq!(conflicts(&mut history, 0..10, access(2, 1, Kind::Write), &clock), [(0..10, 2), (0..10, 101)]);
    }

    #[test]
    fn what_everyone_knows_is_forgotten() {
        let mut history = History::default();
        let mut clock = VectorClock::default();
        clock.tick(0);
        conflicts(&mut history, 0..10, access(0, 1, Kind::Write), &clock);
        conflicts(&mut history, 5..10, access(0, 2, Kind::Write), &clock);
        history.sweep(&clock);
        assert_eq!(history.len(), 1);
        history.forget(7..8);
        assert_eq!(history.len(), 2);
        history.forget(0..100);
        assert!(history.is_empty());
    }
}
