//! The task scheduler (STARS): steps hardware queues and host streams in order.
//!
//! One thread of a device owns a [`Scheduler`] and calls [`step`](Scheduler::step); all other threads send it a [`Command`].

mod by_turns;
mod explored;
mod halt_watch;
mod launches;
mod queues;
mod requests;
mod run;
mod state;
mod streams;
mod turns;

pub(crate) use queues::Observed;
pub use run::{run, run_by_turns};
pub use state::{FailedTask, Scheduler, SchedulerConfig};

use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::spec::record::RECORDS;

use self::requests::Removal;
use super::alloc::Kind;
use super::error::{DeviceError, DoorbellError, QueueName};
use super::event::{Origin, Range, What};
use super::fault::Fault;
use super::inbox::Command;
use super::memory::Memory;
use super::queue::{HwQueue, QueueConfig, Registers};
use super::stall::Stall;
use super::stream::Op;

/// Tasks of one queue that run before the next queue has its turn.
const TASKS_PER_TURN: u32 = 64;

/// Commands for which memory is kept.
const KEPT_COMMANDS: usize = 1024;

/// What one step did, and so how the caller should go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Something: step again.
    Worked,
    /// Nothing, but a polled kernel runs: look again soon.
    Polling,
    /// Nothing, and only a command or the end of this time can change that.
    Waiting(Duration),
    /// Nothing is going on.
    Idle,
    /// It was told to stop.
    Stopped,
}

impl<M: Memory> Scheduler<M> {
    /// Does what can be done at `now`, a time since the start of the device, without waiting.
    pub fn step(&mut self, now: Duration) -> Progress {
        self.now = now;
        self.end_halt_on_command();
        let mut worked = self.take_commands();
        if self.stopped {
            self.close();
            return Progress::Stopped;
        }
        self.answer_peers();
        self.finish_removals();
        worked |= self.recover();
        if self.failed() {
            worked |= self.end_deferred();
            return if worked { Progress::Worked } else { Progress::Idle };
        }
        worked |= match self.step_by_turns(now) {
            Some(worked) => worked,
            None => {
                let queues = self.step_queues();
                let streams = self.step_streams(now);
                self.has_woken |= streams;
                queues | streams
            }
        };
        self.end_late_waits();
        if worked || self.failed() {
            self.end_halt();
            return Progress::Worked;
        }
        self.rest();
        if self.is_deadlocked() {
            return Progress::Worked;
        }
        match self.next_event() {
            Some(_) if self.cpu.is_polled() && self.launches.is_any_running() => Progress::Polling,
            Some(event) => Progress::Waiting(event.saturating_sub(now)),
            None => Progress::Idle,
        }
    }

    /// Whether a kernel, an engine or a host was woken since the last call. It may wait for the processor of the caller, who
    /// should let it go first before it looks for work again and again.
    pub fn take_woken(&mut self) -> bool {
        std::mem::take(&mut self.has_woken)
    }

    /// When the next limit is over, of a launch, a wait or the time that a deadlock has to last, or a queue is to be looked at.
    fn next_event(&self) -> Option<Duration> {
        let look = |id: &u32| self.queues.get(*id)?.hold.next_look(self.config.task_limit());
        self.streams
            .deadlines()
            .chain(self.queues.active().iter().filter_map(look))
            .chain(self.queues.next_deadline())
            .chain(self.next_look_at_halt())
            .chain(self.next_modelled())
            .min()
    }

    pub(super) fn failed(&self) -> bool {
        self.shared.failed.is_set()
    }

    fn take_commands(&mut self) -> bool {
        let mut commands = std::mem::take(&mut self.commands);
        self.shared.inbox.take(&mut commands);
        let worked = !commands.is_empty();
        for command in commands.drain(..) {
            self.handle_command(command);
        }
        // Kept for its capacity, within limits: hosts may have queued very many at once.
        commands.shrink_to(KEPT_COMMANDS);
        self.commands = commands;
        worked
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::AddQueue(config) => self.add_queue(config),
            Command::RemoveQueues(ids, reply) => {
                for id in &ids {
                    self.drop_tasks(*id, "freed");
                    if let Some(queue) = self.queue_mut(*id) {
                        queue.stopped = true;
                    }
                }
                self.requests.remove(ids, self.launches.started(), reply);
                self.finish_removals();
            }
            Command::SuspendQueues(ids, reply) => {
                self.suspend(&ids);
                // The caller may have stopped waiting.
                let _ = reply.try_send(());
                self.shared.turn.answered();
            }
            Command::Recover(recovery) => self.requests.recoveries.push(recovery),
            Command::AddStream(shared) => {
                self.streams.add(shared);
            }
            Command::RemoveStream(id) => {
                if let Some(stream) = self.streams.get_mut(id) {
                    stream.detached = true;
                }
                self.forget(id);
            }
            Command::Submit(id, op) => {
                let failed = self.shared.failed.get();
                if matches!(op, Op::KernelLaunch(_)) {
                    self.forget_launches_of_peers();
                }
                if let Some(stream) = self.streams.get_mut(id) {
                    match failed {
                        None => stream.ops.push_back(op),
                        // A host that only waits is told by a look at the device.
                        Some(error) => {
                            self.shared.events.tell(|| What::StreamReset { stream_id: id });
                            stream.shared.end(&op, Some(error).filter(|_| !matches!(op, Op::Synchronize)));
                        }
                    }
                }
            }
            Command::Rung(sq_id) => self.activate(sq_id),
            Command::BadDoorbell(sq_id, error) => self.bad_doorbell(sq_id, error),
            Command::Refused(sq_id) => self.note_fault(sq_id, |fault| fault == Fault::Doorbell),
            // The step that follows polls the cores.
            Command::CoreEnded => {}
            Command::Transferred { sq_id, result } => self.transferred(sq_id, result),
            Command::AddNotifies(notifies) => {
                notifies.into_iter().for_each(|(id, owner)| self.notifies.add(id, owner));
            }
            Command::RemoveNotifies(ids) => ids.into_iter().for_each(|id| self.remove_notify(id)),
            Command::AddChannel(end) => self.add_channel(*end),
            Command::RemoveChannels(jetties) => self.remove_channels(&jetties),
            Command::PeerRecord { id, record, before } => self.peer_record(id, record, &before),
            Command::PeerFailed(failure) => self.peer_failed(&failure),
            Command::Stop => self.stopped = true,
        }
    }

    fn remove_notify(&mut self, id: u32) {
        if let Some(left) = self.notifies.remove(id).filter(|_| !self.failed()) {
            log::warn!("{} is freed: {}", left.notify, super::error::leftover_text(&left));
        }
    }

    fn add_queue(&mut self, config: QueueConfig) {
        self.shared.events.forget_owners(config.sq_id);
        let faults = &self.config.faults;
        let hold = Stall {
            delay: faults.delay(config.name()),
            runs_left: faults.dead_after(config.name()),
            ..Stall::default()
        };
        self.queues.add(config, hold);
    }

    pub(super) fn queue_mut(&mut self, sq_id: u32) -> Option<&mut HwQueue> {
        self.queues.get_mut(sq_id)
    }

    pub(super) fn finish_removals(&mut self) {
        if self.requests.removals.is_empty() {
            return;
        }
        let (shared, queues, streams) = (&self.shared, &mut self.queues, &mut self.streams);
        let notifies = &mut self.notifies;
        // A kernel that has looked a thread up may still write to its ring.
        let first_kernel = streams.kernels().min().unwrap_or(u64::MAX);
        self.requests.removals.retain(|Removal { ids, last_launch, reply }| {
            let busy = |id: &u32| queues.get(*id).is_some_and(|queue| queue.busy);
            if ids.iter().any(busy) || first_kernel <= *last_launch {
                return true;
            }
            for id in ids {
                if queues.remove(*id) {
                    // Before anybody looks for doorbells of free queues: those of its last generation are none.
                    Registers::of(&*shared.memory, *id).reset();
                    streams.forget_queue(*id);
                    notifies.forget_queue(*id);
                }
            }
            // The caller may have stopped waiting.
            let _ = reply.try_send(());
            shared.turn.answered();
            false
        });
    }

    pub(super) fn activate(&mut self, sq_id: u32) {
        self.queues.activate(sq_id);
    }

    pub(super) fn bad_doorbell(&mut self, sq_id: u32, error: DoorbellError) {
        let queue = match self.queue_mut(sq_id) {
            Some(queue) => {
                queue.stopped = true;
                queue.config.name()
            }
            None => QueueName { stream_id: None, sq_id },
        };
        self.fail(DeviceError::Doorbell { queue, error });
    }

    /// Looks at the doorbells of the first `count` queues, also of those that belong to no thread. For a CPU that rings by a
    /// store.
    pub(super) fn poll_doorbells(&mut self, count: u32) {
        for sq_id in 0..count {
            let doorbell = Registers::of(&*self.shared.memory, sq_id).doorbell();
            match self.queues.get(sq_id) {
                Some(queue) if doorbell.count() != queue.count => self.activate(sq_id),
                None if doorbell.count() != 0 => return self.bad_doorbell(sq_id, DoorbellError::FreeQueue),
                _ => {}
            }
        }
    }

    fn step_queues(&mut self) -> bool {
        if self.cpu.is_polled() && self.launches.is_any_running() {
            // Also without a doorbell: a core waits while its ring of records is full.
            self.read_records(false);
            self.poll_doorbells(self.queues.count());
        }
        let mut worked = false;
        let mut place = 0;
        while let Some(&sq_id) = self.queues.active().get(place).filter(|_| !self.failed()) {
            worked |= self.step_queue(sq_id, TASKS_PER_TURN);
            if self.retire(sq_id) {
                self.queues.retire_at(place);
            } else {
                place += 1;
            }
        }
        worked
    }

    /// Takes the doorbell of one queue and runs up to `tasks` of its tasks.
    fn step_queue(&mut self, sq_id: u32, tasks: u32) -> bool {
        let mut worked = match self.observe(sq_id) {
            Ok(new) => new != 0,
            Err(error) => {
                self.bad_doorbell(sq_id, error);
                return true;
            }
        };
        let now = self.now;
        for _ in 0..tasks {
            match self.queue_mut(sq_id) {
                Some(queue) if queue.is_runnable() => {
                    if queue.hold.keeps(now) {
                        self.note_hold(sq_id);
                        worked |= self.check_stalled(sq_id) || self.listen(sq_id);
                        break;
                    }
                    self.run_task(sq_id);
                }
                _ => break,
            }
            // A wait that finds nothing has done nothing: only a record or its deadline moves the queue again.
            worked |= !self.queue_mut(sq_id).is_some_and(|queue| queue.is_parked());
        }
        worked
    }

    /// Faults of the plan that the queue is hit by have happened.
    fn note_fault(&self, sq_id: u32, is: fn(Fault) -> bool) {
        if let Some(queue) = self.queues.get(sq_id) {
            self.shared.fault_log.note_queue(&self.config.faults, queue.config.name(), is);
        }
    }

    /// A fault keeps the queue from its next task.
    fn note_hold(&mut self, sq_id: u32) {
        let Some(queue) = self.queue_mut(sq_id) else { return };
        let is_dead = queue.hold.runs_left == Some(0);
        if !std::mem::replace(&mut queue.hold.is_noted, true) || is_dead {
            match is_dead {
                true => self.note_fault(sq_id, |fault| fault == Fault::DeadQueue),
                false => self.note_fault(sq_id, |fault| matches!(fault, Fault::SlowQueue(_))),
            }
        }
    }

    /// Fails the device if the task at the head of a queue has waited for too long.
    fn check_stalled(&mut self, sq_id: u32) -> bool {
        let (now, timeout) = (self.now, self.config.task_limit());
        let Some(queue) = self.queue_mut(sq_id).filter(|queue| queue.hold.is_over(now, timeout)) else { return false };
        queue.stopped = true;
        let (name, slot, tail, addr) = (queue.config.name(), queue.head, queue.rung, queue.slot_addr());
        let task_id = self.shared.memory.load_sqe(addr).map_or(0, |sqe| super::decode::task_id(self.shared.soc, &sqe));
        let origin = Box::new(self.shared.events.task_origin(sq_id, slot));
        self.fail(DeviceError::Stalled { queue: name, task_id, slot, tail, timeout, origin });
        true
    }

    /// Takes the records of calls that the cores have written. Called after a doorbell or the end of a kernel was seen: the
    /// records of everything before it are there. `all`: what their own code has accessed since the last record, too.
    pub(super) fn read_records(&mut self, all: bool) {
        if !self.cpu.is_polled() || !self.shared.events.is_on() {
            return;
        }
        for core in 0..self.cpu.cores() {
            let launch = self.streams.running().find(|running| running.core == core && running.queued.is_none());
            if let Some(launch) = launch.map(|running| running.launch.number) {
                let all = all || self.cpu.has_many_own_accesses(core);
                self.read_records_of(Origin { launch, core }, all);
            }
        }
    }

    /// As [`read_records`](Self::read_records), of the kernel of one launch.
    pub(super) fn read_records_of(&mut self, origin: Origin, all: bool) {
        // No more than were there when it was seen: a kernel may write without end.
        for _ in 0..RECORDS {
            let Some(record) = self.cpu.take_record(origin.core) else { break };
            self.read_own_accesses(origin, Some(record.seq));
            let depth = self.shared.queues.get(record.sq_id).map_or(0, |entry| entry.depth.load(Ordering::Acquire));
            let site = self.shared.events.site_in_image(&record.frames);
            self.shared.events.call(origin, &record, depth, site);
        }
        if all {
            self.read_own_accesses(origin, None);
        }
    }

    /// Takes what the kernel's own code has accessed before call `before`, or since the last record that was taken.
    fn read_own_accesses(&mut self, origin: Origin, before: Option<u64>) {
        let shared = &self.shared;
        self.cpu.take_own_accesses(origin.core, before, &mut |access| {
            let site = shared.events.site_of_instruction(access.pc, access.caller);
            let range = Range { addr: access.addr, len: access.len };
            let alloc = shared.lock_alloc();
            let refused = match alloc.kind_at(range.addr) {
                // The parameters of a launch are its kernel's.
                Some(Kind::Args) => return,
                // Rings and tables are the library's.
                Some(kind) if kind != Kind::User && shared.events.is_library(site) => return,
                _ => alloc.check_user(range.addr, range.len).err(),
            };
            drop(alloc);
            let (writes, is_poll) = (access.writes, access.is_poll());
            shared.events.send(|| What::OwnAccess { origin, range, writes, is_poll, site, refused });
        });
    }

    /// Takes a new tail.
    pub(super) fn observe(&mut self, sq_id: u32) -> Result<u32, DoorbellError> {
        let doorbell = Registers::of(&*self.shared.memory, sq_id).doorbell();
        self.read_records(true);
        // Who rings by a call has said so already.
        let origin = if self.cpu.is_polled() { Some(self.only_running()) } else { None };
        let is_sure = !matches!(origin, Some(None));
        let Some(queue) = self.queue_mut(sq_id) else { return Ok(0) };
        let (rung_before, from, depth) = (queue.rung_total, queue.rung, queue.config.depth);
        let new = queue.observe(doorbell)?;
        if new != 0 {
            let rung = queue.rung_total - rung_before;
            let observed = self.queues.observe(new, rung);
            if let Some(queue) = self.queue_mut(sq_id) {
                queue.note_rung(observed, is_sure);
            }
            self.shared.counters.doorbells.fetch_add(u64::from(new), Ordering::Relaxed);
            if let Some(entry) = self.shared.queues.get(sq_id) {
                let seen = entry.doorbells.fetch_add(u64::from(new), Ordering::Relaxed) + u64::from(new);
                // A doorbell that is a store can't be refused: the queue says so before.
                let refuse_at = entry.refuse_at.load(Ordering::Relaxed);
                if self.cpu.is_polled() && refuse_at != 0 && seen + 1 >= refuse_at {
                    Registers::of(&*self.shared.memory, sq_id).set_state(QueueStatus::REFUSING);
                    self.note_fault(sq_id, |fault| fault == Fault::Doorbell);
                }
            }
            if let Some(origin) = origin {
                self.shared.events.rung(sq_id, from, rung as u32, depth, origin);
                self.shared.events.tell(|| What::Doorbell { by: origin, sq_id, tail: doorbell.tail() });
            }
        }
        Ok(new)
    }

    /// Asks to be told of the next doorbell of a queue that will not be looked at for a while. `true`: one has come already.
    fn listen(&self, sq_id: u32) -> bool {
        let queue = self.queues.get(sq_id);
        let (Some(queue), Some(entry)) = (queue, self.shared.queues.get(sq_id)) else { return false };
        entry.noticed.store(false, Ordering::Relaxed);
        // Pairs with the fence of `Shared::ring`.
        fence(Ordering::SeqCst);
        let is_rung = Registers::of(&*self.shared.memory, sq_id).doorbell().count() != queue.count;
        if is_rung {
            entry.noticed.store(true, Ordering::Relaxed);
        }
        is_rung
    }

    /// Takes a queue that has nothing to do out of the list of active ones, unless it was rung just now.
    fn retire(&mut self, sq_id: u32) -> bool {
        let Some(queue) = self.queues.get_mut(sq_id) else { return true };
        if queue.busy || queue.is_runnable() {
            return false;
        }
        let Some(entry) = self.shared.queues.get(sq_id) else { return true };
        entry.noticed.store(false, Ordering::Relaxed);
        // Pairs with the fence of `Shared::ring`.
        fence(Ordering::SeqCst);
        if Registers::of(&*self.shared.memory, sq_id).doorbell().count() != queue.count && !queue.stopped {
            entry.noticed.store(true, Ordering::Relaxed);
            return false;
        }
        queue.active = false;
        true
    }

    /// The device has failed: its queues refuse, and every operation ends with the first error.
    pub(super) fn fail(&mut self, error: DeviceError) {
        // Before any thread that waits is released.
        self.end_halt();
        self.shared.events.tell(|| What::Error(error.clone()));
        if self.shared.turn.explores() && !self.failed() {
            self.shared.turn.report(&error.to_string());
        }
        let first = self.shared.failed.set(error);
        self.tell_peers(Some(&first));
        for queue in self.queues.iter() {
            self.shared.touch_status(queue.config.sq_id);
            Registers::of(&*self.shared.memory, queue.config.sq_id).set_state(QueueStatus::REFUSING);
        }
        self.end_all(&first);
    }

    pub(super) fn end_all(&mut self, error: &DeviceError) {
        // Parameters of what still runs stay allocated: the kernel may read them.
        self.launches.keep(self.streams.end_all(error, self.cpu.ends_with()));
        for stream_id in self.streams.ids() {
            self.shared.events.tell(|| What::StreamReset { stream_id });
        }
    }

    /// It has panicked with this text: whatever is outstanding, and whatever comes later, ends with an error.
    pub fn crash(&mut self, text: String) {
        let error = self.shared.failed.set(DeviceError::Crashed(text));
        self.tell_peers(Some(&error));
        self.requests.drop_all();
        for command in self.shared.inbox.close().into_iter().chain(std::mem::take(&mut self.commands)) {
            if let Command::Submit(id, op) = command
                && let Some(stream) = self.streams.get(id)
            {
                stream.shared.end(&op, Some(error.clone()));
            }
        }
        self.end_halt();
        self.end_all(&error);
    }

    fn close(&mut self) {
        self.tell_peers(None);
        if let Some(port) = &self.port {
            port.leave();
        }
        for core in self.launches.busy_cores() {
            self.cpu.abandon(core);
        }
        self.end_all(&DeviceError::Closed);
        self.requests.answer_removals();
    }
}
