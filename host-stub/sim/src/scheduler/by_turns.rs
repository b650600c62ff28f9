//! Steps of deterministic mode: one thing at a time, and a [`Chooser`] picks which of those that can be done.

use std::time::Duration;

use super::state::Scheduler;
use super::turns::{Head, Modelled, Turns};
use crate::cost::CostModel;
use crate::decode;
use crate::engine::Job;
use crate::event::{Actor, Chooser};
use crate::memory::Memory;

impl<M: Memory> Scheduler<M> {
    /// From now on each step does one thing, which `chooser` picks.
    pub fn by_turns(self, chooser: Box<dyn Chooser>) -> Self {
        Self { turns: Some(Turns { chooser, transfers: Vec::new(), modelled: None }), ..self }
    }

    /// Time follows `costs`. After [`by_turns`](Self::by_turns).
    pub fn with_costs(mut self, costs: CostModel) -> Self {
        if let Some(turns) = &mut self.turns {
            turns.modelled = Some(Modelled::new(costs));
        }
        self
    }

    /// Keeps a transfer for a later step. `false`: not in this mode.
    pub(crate) fn defer(&mut self, job: Job) -> bool {
        let Some(turns) = &mut self.turns else { return false };
        match &mut turns.modelled {
            None => turns.transfers.push(job),
            Some(modelled) => modelled.transfers.begin(job, self.now),
        }
        true
    }

    /// Ends a copy that was started before the device failed: engines finish what they have begun. `false`: there is none.
    pub(super) fn end_deferred(&mut self) -> bool {
        if let Some(turns) = &mut self.turns
            && let Some(modelled) = &mut turns.modelled
        {
            turns.transfers.extend(modelled.transfers.take_all());
        }
        let copies = self.turns.as_ref().map_or(0, |turns| turns.transfers.len());
        copies != 0 && self.choose(Actor::Transfer(copies - 1), Duration::ZERO)
    }

    /// Does one of the things that can be done. `None`: not in this mode.
    pub(super) fn step_by_turns(&mut self, now: Duration) -> Option<bool> {
        let turns = self.turns.as_mut()?;
        if let Some(modelled) = &mut turns.modelled {
            turns.transfers.extend(modelled.transfers.ended(now));
        }
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
                // A doorbell is seen at once; the task begins when the model says so.
                let is_rung = self.is_modelled() && self.step_queue(sq_id, 0);
                let worked = is_rung || self.has_begun(sq_id, now) && self.step_queue(sq_id, 1);
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

    fn is_modelled(&self) -> bool {
        self.turns.as_ref().is_some_and(|turns| turns.modelled.is_some())
    }

    /// Whether the task at the head of a queue has begun by `now`; without a model, always. From the first time on that it is asked for,
    /// the task is being fetched.
    fn has_begun(&mut self, sq_id: u32, now: Duration) -> bool {
        let Some(modelled) = self.turns.as_mut().and_then(|turns| turns.modelled.as_mut()) else { return true };
        let Some(queue) = self.queues.get(sq_id).filter(|queue| queue.is_runnable()) else { return true };
        let (generation, done) = (queue.generation, queue.done_total);
        let known = modelled.heads.get(&sq_id).filter(|head| (head.generation, head.done) == (generation, done));
        let begins = match known {
            Some(head) => head.begins,
            None => {
                let sqe = self.shared.memory.load_sqe(queue.slot_addr()).ok();
                let task = sqe.and_then(|sqe| decode::decode(self.shared.soc, &sqe).ok());
                let begins = now.saturating_add(modelled.costs.before(task.map(|task| task.action)));
                modelled.heads.insert(sq_id, Head { generation, done, begins });
                begins
            }
        };
        begins <= now
    }

    /// When the model lets a task begin, or a transfer end, for the next time.
    pub(super) fn next_modelled(&self) -> Option<Duration> {
        let modelled = self.turns.as_ref()?.modelled.as_ref()?;
        let begins = self.queues.active().iter().filter_map(|sq_id| {
            let queue = self.queues.get(*sq_id).filter(|queue| queue.is_runnable())?;
            let head = modelled.heads.get(sq_id)?;
            let is_head = (head.generation, head.done) == (queue.generation, queue.done_total);
            (is_head && head.begins > self.now).then_some(head.begins)
        });
        begins.chain(modelled.transfers.next()).min()
    }
}
