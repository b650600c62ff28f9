//! Probabilistic concurrency testing: random priorities that change at a few random steps (Burckhardt et al., "A Randomized
//! Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010).
//!
//! A bug of depth `d` shows once `d` steps come in a certain order. With `n` actors and `k` steps, one schedule finds it with a
//! probability of at least `1 / (n * k^(d - 1))`.

use std::collections::HashMap;

use crate::event::{Actor, Chooser};
use crate::random::SplitMix;

/// The actor with the highest priority goes on.
pub struct Pct {
    random: SplitMix,
    /// An actor that has never been seen gets a random priority, all of which are above those of change points.
    priorities: HashMap<Actor, u64>,
    /// Steps at which the actor that would go on gets a low priority: the later in the list, the lower.
    changes: Vec<u64>,
    step: u64,
}

impl Pct {
    /// Choices of `seed` that find bugs of this depth, at least 1, in schedules of up to `steps` steps.
    pub fn new(seed: u64, depth: u32, steps: u64) -> Self {
        let mut random = SplitMix(seed);
        let steps = steps.max(1);
        let changes = (1..depth).map(|_| 1 + random.below(steps)).collect();
        Self { random, priorities: HashMap::new(), changes, step: 0 }
    }

    /// Schedules after which a bug of `depth` was found with a probability of at least one half, in a program of so many actors
    /// and steps.
    pub fn schedules_for_half(actors: u64, steps: u64, depth: u32) -> u64 {
        let odds = actors.max(1) as f64 * (steps.max(1) as f64).powi(depth.saturating_sub(1) as i32);
        // ln(1/2) / ln(1 - p) with p = 1 / odds.
        if odds <= 1.0 { 1 } else { (0.5_f64.ln() / (-1.0 / odds).ln_1p()).ceil() as u64 }
    }

    fn highest(&self, ready: &[Actor]) -> usize {
        let priority = |place: &usize| self.priorities.get(&ready[*place]).copied().unwrap_or(0);
        (0..ready.len()).max_by_key(priority).unwrap_or(0)
    }
}

impl Chooser for Pct {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        for actor in ready {
            if !self.priorities.contains_key(actor) {
                let above = self.changes.len() as u64 + 1;
                // Two equal ones of 2^63 are no concern: the later in `ready` goes first.
                let priority = above + self.random.below(1 << 63);
                self.priorities.insert(*actor, priority);
            }
        }
        self.step += 1;
        while let Some(place) = self.changes.iter().position(|change| *change == self.step) {
            // Once each.
            self.changes[place] = 0;
            let highest = ready[self.highest(ready)];
            let low = (self.changes.len() - place) as u64;
            self.priorities.insert(highest, low);
        }
        self.highest(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Actors `0..actors` make `each` steps. Gives who made each step.
    fn schedule(mut pct: Pct, actors: usize, each: usize) -> Vec<usize> {
        let mut left = vec![each; actors];
        let mut order = Vec::new();
        while left.iter().any(|left| *left != 0) {
            let ready: Vec<_> = (0..actors).filter(|actor| left[*actor] != 0).map(Actor::Host).collect();
            let Actor::Host(actor) = ready[pct.choose(&ready)] else { unreachable!() };
            left[actor] -= 1;
            order.push(actor);
        }
        order
    }

    #[test]
    fn depth_one_runs_each_actor_to_its_end() {
        let order = schedule(Pct::new(3, 1, 12), 3, 4);
        let mut runs = order.clone();
        runs.dedup();
        assert_eq!((order.len(), runs.len()), (12, 3), "{order:?}");
        assert_eq!(order, schedule(Pct::new(3, 1, 12), 3, 4));
    }

    #[test]
    fn each_depth_has_as_many_changes_of_actor_as_it_may() {
        for seed in 0..200 {
            let mut runs = schedule(Pct::new(seed, 3, 12), 3, 4);
            runs.dedup();
            assert!(runs.len() <= 5, "seed {seed}: two change points, {runs:?}");
        }
    }

    /// The bug: all of actor 0's first step, all of actor 1, then the rest of actor 0. Depth 2.
    #[test]
    fn bug_is_found_as_often_as_the_bound_says() {
        let found = |seed: &u64| {
            let order = schedule(Pct::new(*seed, 2, 8), 2, 4);
            order[0] == 0 && order[1..5] == [1; 4]
        };
        let count = (0..1600).filter(found).count();
        // 1600 / (n = 2 * k = 8) = 100; three standard deviations below.
        assert!(count >= 70, "found by {count} of 1600 schedules");
        assert_eq!(Pct::schedules_for_half(2, 8, 2), 11);
    }
}
