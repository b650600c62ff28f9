//! Steps of a scheduler in an exploration: each queue and each stream is an actor, and a step is one task or one operation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::state::Scheduler;
use crate::decode::{self, Action, Until};
use crate::event::{Access, AccessKind, Actor, Object};
use crate::explore::steps::{Idle, Steps};
use crate::ids::StreamId;
use crate::memory::Memory;
use crate::panics::panic_text;
use crate::stream::Op;

/// A scheduler that makes the steps that it is told.
struct Explored<M: Memory> {
    scheduler: Scheduler<M>,
    /// Number of the device in the run.
    device: u32,
}

impl<M: Memory> Scheduler<M> {
    /// A scheduler without a thread, whose device has this number in the run.
    pub fn explored(self, device: u32) -> Box<dyn Steps> {
        Box::new(Explored { scheduler: self, device })
    }

    /// Whether the task at the head of a queue can be done now. A wait can once its notify is set.
    fn queue_can_go_on(&mut self, sq_id: u32) -> bool {
        let (now, timeout) = (self.now, self.config.task_timeout);
        let Some(queue) = self.queues.get_mut(sq_id).filter(|queue| queue.is_runnable()) else { return false };
        if queue.hold.keeps(now) {
            return queue.hold.is_over(now, timeout);
        }
        let Ok(sqe) = self.shared.memory.load_sqe(queue.slot_addr()) else { return true };
        match decode::decode(self.shared.soc, &sqe).map(|task| task.action) {
            Ok(Action::Wait { id, until, .. }) => self.notifies.can_take(id, until) || self.hopeless(id).is_some(),
            _ => true,
        }
    }

    /// Whether the operation of a stream that runs can end now, or the next one begin.
    fn stream_can_go_on(&mut self, id: StreamId) -> bool {
        let now = self.now;
        let Some(stream) = self.streams.get_mut(id) else { return false };
        if let Some(mut running) = stream.running.take() {
            let can = match running.returned.clone() {
                Some(returned) => self.is_complete(id, &mut running, &returned),
                None => self.cpu.has_ended(running.core) || now >= running.deadline,
            };
            if let Some(stream) = self.streams.get_mut(id) {
                stream.running = Some(running);
            }
            return can;
        }
        match stream.ops.front() {
            None => false,
            Some(Op::Synchronize) => !self.has_outstanding_work(id),
            Some(_) if stream.failed => true,
            Some(Op::KernelLaunch(_)) => self.launches.has_free_core(),
            Some(Op::EventWait(mark)) => mark.is_over(),
            Some(Op::NotifyWait { id, .. }) => {
                let is_over = stream.wait.and_then(|wait| wait.deadline).is_some_and(|deadline| now >= deadline);
                is_over || self.notifies.can_take(*id, Until::Set)
            }
            Some(_) => true,
        }
    }

    /// Tells what the step of a stream uses that its operation does not tell itself.
    fn touch_operation(&self, id: StreamId) {
        let Some(stream) = self.streams.get(id) else { return };
        let touch = |object, kind| self.shared.turn.touch(Access::new(object, kind));
        let place = stream.shared.completed() + 1;
        self.shared.turn.touch(Access::of(Object::Operations(id), place, 1, AccessKind::Await));
        if let Some(running) = &stream.running {
            match &running.queued {
                _ if running.returned.is_none() => {
                    touch(Object::Kernel(running.core), AccessKind::Await);
                    touch(Object::Cores, AccessKind::Write);
                }
                Some(queued) if running.launch.drain => {
                    queued.iter().for_each(|queued| touch(Object::Head(queued.sq_id), AccessKind::Await));
                }
                _ => {}
            }
            return;
        }
        match stream.ops.front() {
            Some(Op::Synchronize) => {
                let queued = stream.ended.iter().flat_map(|ended| &ended.queued);
                queued.for_each(|queued| touch(Object::Head(queued.sq_id), AccessKind::Await));
            }
            Some(Op::KernelLaunch(_)) => touch(Object::Cores, AccessKind::Write),
            Some(Op::EventRecord(mark)) => touch(Object::Event(mark.event()), AccessKind::Write),
            Some(Op::EventWait(mark)) => touch(Object::Event(mark.event()), AccessKind::Await),
            _ => {}
        }
    }

    fn run_explored(&mut self, actor: Actor, now: Duration) {
        self.now = now;
        match actor {
            Actor::Queue { sq_id, .. } => {
                self.step_queue(sq_id, 1);
                if self.retire(sq_id) {
                    self.queues.retire(sq_id);
                }
            }
            Actor::Stream { id, .. } => {
                self.touch_operation(id);
                self.step_stream(id, now);
                if let Some(running) = self.streams.get(id).and_then(|stream| stream.running.as_ref())
                    && running.returned.is_none()
                {
                    self.shared.turn.touch(Access::new(Object::Kernel(running.core), AccessKind::Write));
                }
            }
            // Those have threads of their own, or belong to deterministic mode.
            Actor::Stars | Actor::Transfer(_) | Actor::Streams | Actor::Core { .. } | Actor::Host(_) => {}
        }
        self.end_late_waits();
        self.end_halt();
    }

    fn settle(&mut self, now: Duration) -> bool {
        self.now = now;
        self.end_halt_on_command();
        let mut worked = self.take_commands();
        if self.stopped {
            return false;
        }
        self.finish_removals();
        worked |= self.recover();
        if !self.failed() {
            self.observe_all();
        }
        worked
    }

    fn rest_explored(&mut self, now: Duration) -> Idle {
        self.now = now;
        if self.failed() {
            return Idle::Until(None);
        }
        // Waits that find nothing begin now.
        let queues = self.queues.active().to_vec();
        let worked = queues.into_iter().fold(false, |worked, sq_id| worked | self.step_queue(sq_id, 1));
        let streams: Vec<_> = self.streams.ids().collect();
        let worked = streams.into_iter().fold(worked, |worked, id| worked | self.step_stream(id, now));
        self.end_late_waits();
        if worked || self.failed() {
            return Idle::Worked;
        }
        self.rest();
        if self.is_deadlocked() {
            return Idle::Worked;
        }
        Idle::Until(self.next_event())
    }
}

impl<M: Memory> Explored<M> {
    /// If the scheduler panics, its device has failed, and no call waits for it.
    fn guarded<R>(&mut self, otherwise: R, step: impl FnOnce(&mut Scheduler<M>) -> R) -> R {
        let scheduler = &mut self.scheduler;
        match catch_unwind(AssertUnwindSafe(|| step(scheduler))) {
            Ok(result) => result,
            Err(payload) => {
                // What is half done does not matter: no task runs any more, and all that is read is what is outstanding.
                scheduler.crash(panic_text(&*payload).to_owned());
                otherwise
            }
        }
    }
}

impl<M: Memory> Steps for Explored<M> {
    fn settle(&mut self, now: Duration) -> bool {
        self.guarded(false, |scheduler| scheduler.settle(now))
    }

    fn ready(&mut self, now: Duration, into: &mut Vec<Actor>) {
        let device = self.device;
        self.guarded((), |scheduler| {
            scheduler.now = now;
            if scheduler.failed() {
                return;
            }
            let active = scheduler.queues.active().to_vec();
            let queues = active.into_iter().filter(|sq_id| scheduler.queue_can_go_on(*sq_id));
            into.extend(queues.map(|sq_id| Actor::Queue { device, sq_id }));
            let streams: Vec<_> = scheduler.streams.ids().collect();
            let streams = streams.into_iter().filter(|id| scheduler.stream_can_go_on(*id));
            into.extend(streams.map(|id| Actor::Stream { device, id }));
        });
    }

    fn run(&mut self, actor: Actor, now: Duration) {
        self.guarded((), |scheduler| scheduler.run_explored(actor, now));
    }

    fn idle(&mut self, now: Duration) -> Idle {
        self.guarded(Idle::Worked, |scheduler| scheduler.rest_explored(now))
    }

    fn close(&mut self, now: Duration) {
        self.guarded((), |scheduler| {
            scheduler.step(now);
        });
    }
}
