//! What the scheduler does with the task at the head of a queue.

use std::sync::atomic::Ordering;

use super::decode::{self, Action, Effect, Task, Until};
use super::engine::{INLINE_LEN, Job, Transfer};
use super::error::{DeviceError, TaskError};
use super::event::{Access, AccessKind, NotifyUser, Object, Range, TaskPlace, What};
use super::fault::Fault;
use super::memory::{Memory, OutsideHbm};
use super::notify::RecordedBy;
use super::queue::{HwQueue, QueueConfig, QueueWait, Registers};
use super::reduce::Reduce;
use super::scheduler::{FailedTask, Scheduler};
use super::vector_clock::VectorClock;

impl<M: Memory> Scheduler<M> {
    /// Carries out the task at the head of a queue, hands it to an engine, or parks the queue if it is a wait.
    pub(super) fn run_task(&mut self, sq_id: u32) {
        let Some(queue) = self.queue_mut(sq_id) else { return };
        let addr = queue.slot_addr();
        let Ok(sqe) = self.shared.memory.load_sqe(addr) else {
            return self.task_failed(sq_id, 0, TaskError::Slot { addr });
        };
        let task_id = decode::task_id(self.shared.soc, &sqe);
        if let Some(queue) = self.queue_mut(sq_id) {
            queue.task_id = task_id;
        }
        if let Err(error) = self.carry_out(sq_id, &sqe) {
            self.task_failed(sq_id, task_id, error);
        }
    }

    fn carry_out(&mut self, sq_id: u32, sqe: &[u8; 64]) -> Result<(), TaskError> {
        let task = decode::decode(self.shared.soc, sqe)?;
        self.touch_task(sq_id, task.action);
        self.tell_start(sq_id, task.action);
        match task.action {
            Action::Sdma { .. } => self.transfer(sq_id, &task),
            Action::PlaceHolder => {
                self.task_done(sq_id);
                Ok(())
            }
            Action::WriteValue { addr, value } => {
                let len = size_of_val(&value) as u32;
                let alloc = self.shared.lock_alloc();
                alloc.check_user(addr, len.into()).map_err(|error| TaskError::Dst { len, error })?;
                drop(alloc);
                self.shared
                    .memory
                    .write_value(addr, value)
                    .map_err(|OutsideHbm { addr, .. }| TaskError::Slot { addr })?;
                self.task_done(sq_id);
                Ok(())
            }
            Action::RemoteRecord { addr } => self.remote_record(sq_id, addr),
            Action::UbDoorbell { jetty, producer_index } => self.ring_channel(sq_id, jetty, producer_index),
            Action::Record { id, effect } => {
                let Some(queue) = self.queue_mut(sq_id) else { return Ok(()) };
                queue.before.advance(sq_id, queue.done_total + 1);
                let before = queue.before.clone();
                let by =
                    RecordedBy::Task { queue: queue.generation, task: queue.done_total + 1, rung_at: queue.rung_at() };
                let user = NotifyUser::Task(place(queue));
                self.record(id, effect, by, user, &before)?;
                self.task_done(sq_id);
                Ok(())
            }
            Action::Wait { id, until, timeout_s } => self.wait(sq_id, task.task_id, id, until, timeout_s),
        }
    }

    fn transfer(&mut self, sq_id: u32, task: &Task) -> Result<(), TaskError> {
        let Action::Sdma { src, dst, len, opcode } = task.action else { return Ok(()) };
        // A copy is none; the decoder has refused every other opcode that is none.
        let reduce = Reduce::from_opcode(opcode);
        if let Some(size) = reduce.map(Reduce::element_len).filter(|size| !len.is_multiple_of(*size)) {
            return Err(TaskError::CutElement { len, size });
        }
        if let Some(result) = self.remote_sdma(dst, src, len, reduce) {
            self.inject(sq_id, task)?;
            result?;
            self.task_done(sq_id);
            return Ok(());
        }
        if len != 0 {
            let alloc = self.shared.lock_alloc();
            alloc.check_user(src, len.into()).map_err(|error| TaskError::Src { len, error })?;
            alloc.check_user(dst, len.into()).map_err(|error| TaskError::Dst { len, error })?;
            drop(alloc);
            self.check_overlap(sq_id, src, dst, len)?;
        }
        self.inject(sq_id, task)?;
        if len == 0 {
            self.task_done(sq_id);
            return Ok(());
        }
        let transfer = Transfer { dst, src, len, reduce };
        let job = Job { sq_id, transfer };
        if self.defer(job) {
            if let Some(queue) = self.queue_mut(sq_id) {
                queue.busy = true;
            }
            return Ok(());
        }
        match &self.engines {
            Some(engines) if len >= INLINE_LEN => {
                engines.submit(job);
                self.has_woken = true;
                if let Some(queue) = self.queue_mut(sq_id) {
                    queue.busy = true;
                }
            }
            _ => {
                transfer.run(&*self.shared.memory).map_err(|OutsideHbm { addr, .. }| TaskError::Slot { addr })?;
                self.task_done(sq_id);
            }
        }
        Ok(())
    }

    /// # Errors
    /// [`TaskError::Overlap`], unless that is only to be logged.
    fn check_overlap(&self, sq_id: u32, src: u64, dst: u64, len: u32) -> Result<(), TaskError> {
        if src == dst || src.abs_diff(dst) >= u64::from(len) {
            return Ok(());
        }
        let error = TaskError::Overlap { src, dst, len };
        if !self.config.overlap_is_warning {
            return Err(error);
        }
        self.shared.counters.overlaps.fetch_add(1, Ordering::Relaxed);
        log::warn!("sq {sq_id}: {error}");
        Ok(())
    }

    /// # Errors
    /// What the fault plan has for this task. Only transfers are counted: notifies do not go through the engine.
    fn inject(&mut self, sq_id: u32, task: &Task) -> Result<(), TaskError> {
        let Action::Sdma { src, dst, len, .. } = task.action else { return Ok(()) };
        let Some(name) = self.queue_mut(sq_id).map(|queue| queue.config.name()) else { return Ok(()) };
        let Some(rule) = self.faults.task(name, task.task_id) else { return Ok(()) };
        self.shared.fault_log.note(rule);
        match rule.fault {
            Fault::Translation => Err(TaskError::Translation { src, len }),
            _ => Err(TaskError::Engine { src, dst, len }),
        }
    }

    /// An engine has done the task at the head of a queue.
    pub(super) fn transferred(&mut self, sq_id: u32, result: Result<(), OutsideHbm>) {
        if let Some(queue) = self.queue_mut(sq_id) {
            queue.busy = false;
            match result {
                Ok(()) => self.task_done(sq_id),
                Err(OutsideHbm { addr, .. }) => {
                    let task_id = queue.task_id;
                    self.task_failed(sq_id, task_id, TaskError::Slot { addr });
                }
            }
        }
        self.finish_removals();
    }

    /// Records a notify and lets the queues that wait for it look again.
    pub(super) fn record(
        &mut self,
        id: u32,
        effect: Effect,
        by: RecordedBy,
        user: NotifyUser,
        before: &VectorClock,
    ) -> Result<(), TaskError> {
        let from = self.notifies.value(id);
        if effect == Effect::Set {
            self.notifies.note_double(id, user);
        }
        let waiting = self.notifies.record(id, effect, by, before)?;
        let to = self.notifies.value(id);
        let kind = if effect == Effect::Set && from & 1 == 0 { AccessKind::Set } else { AccessKind::Write };
        self.shared.turn.touch(Access::new(Object::Notify(id), kind));
        self.shared.events.tell(|| What::NotifySet { id, by: user, from, to });
        for sq_id in waiting {
            if let Some(wait) = self.queue_mut(sq_id).and_then(|queue| queue.wait.as_mut()) {
                wait.parked = false;
                self.activate(sq_id);
            }
        }
        Ok(())
    }

    fn wait(&mut self, sq_id: u32, task_id: u32, id: u32, until: Until, timeout_s: u32) -> Result<(), TaskError> {
        let now = self.now;
        let taken = self.notifies.take(id, until)?;
        let Some(queue) = self.queues.get_mut(sq_id) else { return Ok(()) };
        if let Some(before) = taken {
            queue.before.join(before);
            let kind = if until == Until::Set { AccessKind::Take } else { AccessKind::Write };
            self.shared.turn.touch(Access::new(Object::Notify(id), kind));
            let (by, to) = (NotifyUser::Task(place(queue)), self.notifies.value(id));
            self.shared.events.tell(|| What::NotifyTaken { id, by, to });
            self.task_done(sq_id);
            return Ok(());
        }
        if let Some(error) = self.hopeless(id) {
            return Err(error);
        }
        let Some(queue) = self.queues.get_mut(sq_id) else { return Ok(()) };
        let wait = queue.wait.get_or_insert(QueueWait {
            task_id,
            notify_id: id,
            timeout_s,
            deadline: self.config.wait_deadline(now, timeout_s),
            parked: true,
        });
        wait.parked = true;
        let deadline = wait.deadline;
        self.queues.add_deadline(deadline);
        self.notifies.wait(id, sq_id);
        Ok(())
    }

    /// Fails the waits whose time is over.
    pub(super) fn end_late_waits(&mut self) {
        if self.queues.next_deadline().is_none_or(|deadline| self.now < deadline) {
            return;
        }
        let parked = |queue: &&HwQueue| queue.is_parked() && !queue.stopped;
        let waits = self.queues.iter().filter(parked);
        let waits: Vec<_> = waits.filter_map(|queue| Some((queue.config.sq_id, queue.wait?))).collect();
        self.queues.find_deadline(self.now);
        for (sq_id, wait) in waits {
            if wait.deadline.is_some_and(|deadline| deadline <= self.now) {
                let notify = self.notifies.name(wait.notify_id);
                let error = TaskError::WaitTimeout { notify, timeout_s: wait.timeout_s };
                self.task_failed(sq_id, wait.task_id, error);
            }
        }
    }

    pub(crate) fn task_done(&mut self, sq_id: u32) {
        let Some(queue) = self.queue_mut(sq_id) else { return };
        let task = place(queue);
        let head = queue.advance();
        self.shared.events.tell(|| What::TaskEnded { task });
        self.shared.events.tell(|| What::HeadPublished { sq_id, head });
        Registers::of(&*self.shared.memory, sq_id).set_head(head);
        self.shared.counters.tasks.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = self.shared.queues.get(sq_id) {
            entry.tasks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// In an exploration, tells what the task at the head of a queue uses, but for notifies.
    fn touch_task(&self, sq_id: u32, action: Action) {
        let turn = &self.shared.turn;
        if !turn.explores() {
            return;
        }
        let Some(queue) = self.queues.get(sq_id) else { return };
        turn.touch(Access::of(Object::Entries(sq_id), queue.done_total, 1, AccessKind::Await));
        turn.touch(Access::of(Object::Head(sq_id), queue.done_total, 1, AccessKind::Write));
        match action {
            Action::Sdma { src, dst, len, .. } => {
                let (src, dst) = (Range { addr: src, len: len.into() }, Range { addr: dst, len: len.into() });
                self.touch_bytes(&[src], dst);
            }
            Action::WriteValue { addr, .. } => self.touch_bytes(&[], Range { addr, len: 4 }),
            Action::PlaceHolder
            | Action::Record { .. }
            | Action::RemoteRecord { .. }
            | Action::Wait { .. }
            | Action::UbDoorbell { .. } => {}
        }
    }

    /// In an exploration, tells which bytes a step reads and writes.
    pub(crate) fn touch_bytes(&self, reads: &[Range], writes: Range) {
        let used = reads.iter().map(|range| (*range, AccessKind::Read)).chain([(writes, AccessKind::Write)]);
        for (Range { addr, len }, kind) in used.filter(|(range, _)| range.len != 0) {
            self.shared.turn.touch(Access::of(Object::Memory, addr, len, kind));
        }
    }

    fn tell_start(&self, sq_id: u32, action: Action) {
        let events = &self.shared.events;
        let Some(queue) = self.queues.get(sq_id) else { return };
        // A wait that looks again has begun before.
        if !events.is_on() || queue.wait.is_some() {
            return;
        }
        let none = Range::default();
        let (reads, writes) = match action {
            Action::Sdma { src, dst, len, opcode } => {
                let (src, dst) = (Range { addr: src, len: len.into() }, Range { addr: dst, len: len.into() });
                ([src, if opcode == 0 { none } else { dst }], dst)
            }
            Action::WriteValue { addr, .. } => ([none; 2], Range { addr, len: 4 }),
            Action::PlaceHolder
            | Action::Record { .. }
            | Action::RemoteRecord { .. }
            | Action::Wait { .. }
            | Action::UbDoorbell { .. } => ([none; 2], none),
        };
        events.tell(|| What::TaskBegan {
            task: place(queue),
            kind: action.name(),
            by: events.owner(sq_id, queue.head),
            reads,
            writes,
        });
    }

    pub(crate) fn task_failed(&mut self, sq_id: u32, task_id: u32, error: TaskError) {
        let Some(queue) = self.queue_mut(sq_id) else { return };
        queue.stopped = true;
        let (queue, slot) = (queue.config.name(), queue.head);
        let origin = Box::new(self.shared.events.task_origin(sq_id, slot));
        let error = DeviceError::Task { queue, task_id, slot, error, origin };
        match &self.config.failed_tasks {
            Some(told) => {
                // Without a reader there is nothing to tell: the queue has stopped.
                let _ = told.send(FailedTask { sq_id, task_id, error });
            }
            None => self.fail(error),
        }
    }
}

/// The task at the head of a queue.
pub(crate) fn place(queue: &HwQueue) -> TaskPlace {
    let QueueConfig { stream_id, sq_id, .. } = queue.config;
    TaskPlace { stream_id, sq_id, slot: queue.head, task_id: queue.task_id }
}
