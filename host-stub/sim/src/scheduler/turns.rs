//! Steps of deterministic mode: one thing at a time, and a seed picks which of those that can be done.

use std::time::Duration;

use super::Scheduler;
use crate::baton::SplitMix;
use crate::engine::Job;
use crate::memory::Memory;

/// What deterministic mode keeps.
pub(super) struct Turns {
    random: SplitMix,
    /// Transfers that were started and not made: engines end in any order.
    transfers: Vec<Job>,
}

/// One thing that a step may do.
#[derive(Clone, Copy)]
enum Choice {
    /// End this transfer.
    Transfer(usize),
    /// Look at this queue's doorbell, and start one task of it.
    Queue(u32),
    /// Look at the streams.
    Streams,
}

impl<M: Memory> Scheduler<M> {
    /// From now on each step does one thing, which `seed` picks.
    pub fn by_turns(self, seed: u64) -> Self {
        Self { turns: Some(Turns { random: SplitMix(seed), transfers: Vec::new() }), ..self }
    }

    /// Keeps a transfer for a later step. `false`: not in this mode.
    pub(crate) fn defer(&mut self, job: Job) -> bool {
        let Some(turns) = &mut self.turns else { return false };
        turns.transfers.push(job);
        true
    }

    /// Ends a copy that was started before the device failed: engines finish what they have begun. `false`: there is none.
    pub(super) fn end_deferred(&mut self) -> bool {
        let copies = self.turns.as_ref().map_or(0, |turns| turns.transfers.len());
        copies != 0 && self.choose(Choice::Transfer(copies - 1), Duration::ZERO)
    }

    /// Does one of the things that can be done. `None`: not in this mode.
    pub(super) fn step_by_turns(&mut self, now: Duration) -> Option<bool> {
        let turns = self.turns.as_mut()?;
        let transfers = (0..turns.transfers.len()).map(Choice::Transfer);
        let queues = self.active.iter().copied().map(Choice::Queue);
        let mut choices: Vec<Choice> = transfers.chain(queues).chain([Choice::Streams]).collect();
        while !choices.is_empty() {
            let picked = match &mut self.turns {
                Some(turns) if choices.len() > 1 => turns.random.below(choices.len() as u64) as usize,
                _ => 0,
            };
            if self.choose(choices.swap_remove(picked), now) {
                return Some(true);
            }
        }
        Some(false)
    }

    fn choose(&mut self, choice: Choice, now: Duration) -> bool {
        match choice {
            Choice::Transfer(index) => {
                let Some(turns) = &mut self.turns else { return false };
                let Job { sq_id, transfer } = turns.transfers.swap_remove(index);
                let result = transfer.run(&*self.shared.memory);
                self.transferred(sq_id, result);
                true
            }
            Choice::Queue(sq_id) => {
                let worked = self.step_queue(sq_id, 1);
                if self.retire(sq_id) {
                    self.active.retain(|id| *id != sq_id);
                }
                worked
            }
            Choice::Streams => self.step_streams(now),
        }
    }
}
