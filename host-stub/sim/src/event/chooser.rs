//! Who goes on next in deterministic mode, and in an exploration of schedules.

use super::access::Access;
use crate::random::SplitMix;

/// Something that can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Actor {
    /// The task scheduler, which then chooses among the next three.
    Stars,
    /// A transfer that an SDMA engine has begun, by its place in the list of those.
    Transfer(usize),
    /// A queue: looks at its doorbell, and starts one task.
    Queue {
        /// Number of its device in the run.
        device: u32,
        /// The queue.
        sq_id: u32,
    },
    /// The host streams.
    Streams,
    /// One host stream.
    Stream {
        /// Number of its device in the run.
        device: u32,
        /// The stream.
        id: u32,
    },
    /// The kernel on a core.
    Core {
        /// Number of its device in the run.
        device: u32,
        /// The core.
        core: usize,
    },
    /// A thread of the host.
    Host(usize),
}

/// Decides who goes on. The same decisions give the same run.
pub trait Chooser: Send {
    /// Index in `ready` of the one that goes on. It has at least two actors, in an exploration at least one.
    fn choose(&mut self, ready: &[Actor]) -> usize;

    /// The one that was chosen last has come to its next choice, and has used this. Told in an exploration alone.
    fn ran(&mut self, accesses: &[Access]) {
        let _ = accesses;
    }

    /// Nothing could go on, and time has gone to the next deadline. Told in an exploration alone.
    fn time_passed(&mut self) {}
}

/// One choice in so many changes how fast each actor is.
const REDRAW: u64 = 64;

/// Random choices from a seed. Scheduler, cores and host threads differ in speed, and the speeds change: a slow device, a
/// slow core, and every other case.
pub struct Seed {
    random: SplitMix,
    weights: Vec<(Actor, u64)>,
}

impl Seed {
    /// The choices of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { random: SplitMix(seed), weights: Vec::new() }
    }

    fn weight(&self, actor: &Actor) -> u64 {
        self.weights.iter().find(|(known, _)| known == actor).map_or(1, |(_, weight)| *weight)
    }
}

impl Chooser for Seed {
    fn choose(&mut self, ready: &[Actor]) -> usize {
        // What the scheduler does next has no speed of its own.
        if ready.iter().any(|actor| matches!(actor, Actor::Transfer(_) | Actor::Queue { .. } | Actor::Streams)) {
            return self.random.below(ready.len() as u64) as usize;
        }
        for actor in ready {
            if !self.weights.iter().any(|(known, _)| known == actor) {
                self.weights.push((*actor, 1));
            }
        }
        if self.random.below(REDRAW) == 0 {
            for (_, weight) in &mut self.weights {
                *weight = 1 << (2 * self.random.below(4));
            }
        }
        let total = ready.iter().map(|actor| self.weight(actor)).sum();
        let mut drawn = self.random.below(total);
        let hit = |actor: &Actor| {
            let weight = self.weight(actor);
            let hit = drawn < weight;
            drawn = drawn.saturating_sub(weight);
            hit
        };
        ready.iter().position(hit).expect("the draw is below the sum of the weights")
    }
}
