//! Steps of deterministic mode: one thing at a time, and a [`Chooser`] picks which of those that can be done.

use std::time::Duration;

use super::state::Scheduler;
use super::turns::Turns;
use crate::engine::Job;
use crate::event::{Actor, Chooser};
use crate::memory::Memory;

impl<M: Memory> Scheduler<M> {
    /// From now on each step does one thing, which `chooser` picks.
    pub fn by_turns(self, chooser: Box<dyn Chooser>) -> Self {
        Self { turns: Some(Turns { chooser, transfers: Vec::new() }), ..self }
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
        copies != 0 && self.choose(Actor::Transfer(copies - 1), Duration::ZERO)
    }

    /// Does one of the things that can be done. `None`: not in this mode.
    pub(super) fn step_by_turns(&mut self, now: Duration) -> Option<bool> {
        let turns = self.turns.as_mut()?;
        let transfers = (0..turns.transfers.len()).map(Actor::Transfer);
        let queues = self.queues.active().iter().map(|sq_id| Actor::Queue { device: 0, sq_id: *sq_id });
        let mut choices: Vec<Actor> = transfers.chain(queues).chain([Actor::Streams]).collect();
        while !choices.is_empty() {
            let picked = match &mut self.turns {
                Some(turns) if choices.len() > 1 => turns.chooser.choose(&choices),
                _ => 0,
            };
            if self.choose(choices.swap_remove(picked), now) {
                return Some(true);
            }
        }
        Some(false)
    }

    fn choose(&mut self, choice: Actor, now: Duration) -> bool {
        match choice {
            Actor::Transfer(index) => {
                let Some(turns) = &mut self.turns else { return false };
                let Job { sq_id, transfer } = turns.transfers.swap_remove(index);
                let result = transfer.run(&*self.shared.memory);
                self.transferred(sq_id, result);
                true
            }
            Actor::Queue { sq_id, .. } => {
                let worked = self.step_queue(sq_id, 1);
                if self.retire(sq_id) {
                    self.queues.retire(sq_id);
                }
                worked
            }
            Actor::Streams => self.step_streams(now),
            // Those have a turn of their own.
            Actor::Stars | Actor::Stream { .. } | Actor::Core { .. } | Actor::Host(_) => false,
        }
    }
}
