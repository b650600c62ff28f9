//! What the scheduler does with the operations of host streams.
//!
//! A launch completes when its kernel has returned, as on a card. A stream waits for the tasks of a kernel only where it waits
//! for a notify that they record. When the host synchronises, work that no wait of the stream orders is reported.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::check::list::{Check, Level};
use super::cpu::{CpuFault, Refusals, Refused, RefusedCall, Returned};
use super::decode::{Effect, Until};
use super::error::{DeviceError, HostTransferError, TaskError};
use super::event::{Access, AccessKind, NotifyUser, Object, Origin, Range, What};
use super::host_stream::{Ended, Queued, Running, StreamWait};
use super::host_transfer::HostWork;
use super::memory::Memory;
use super::notify::RecordedBy;
use super::queue::{HwQueue, Registers};
use super::scheduler::{Observed, Scheduler};
use super::stream::{HostTransfer, KernelLaunch, Op, StreamId};

/// Operations of a stream for which memory is kept.
const KEPT_OPS: usize = 1024;

impl<M: Memory> Scheduler<M> {
    pub(super) fn step_streams(&mut self, now: Duration) -> bool {
        let mut worked = false;
        let mut from = 0;
        while let Some(id) = self.streams.next_from(from) {
            worked |= self.step_stream(id, now);
            if self.failed() {
                return true;
            }
            from = id + 1;
        }
        worked
    }

    /// Ends the operation of a stream that has completed, and starts the next one if it can.
    pub(crate) fn step_stream(&mut self, id: StreamId, now: Duration) -> bool {
        let Some(stream) = self.streams.get_mut(id) else { return false };
        match stream.running.take() {
            Some(running) => self.step_launch(id, running, now),
            None => self.step_op(id, now),
        }
    }

    /// The first operation of a stream that runs none.
    fn step_op(&mut self, id: StreamId, now: Duration) -> bool {
        let Some(stream) = self.streams.get_mut(id) else { return false };
        let Some(op) = stream.ops.pop_front() else { return false };
        if stream.ops.is_empty() {
            stream.ops.shrink_to(KEPT_OPS);
        }
        let error = match op {
            Op::Synchronize => match self.end_of_operation(id) {
                Some(error) => error,
                None => return self.not_yet(id, op),
            },
            Op::KernelLaunch(launch) if !stream.failed => return self.start(id, launch, now),
            Op::KernelLaunch(ref launch) => {
                stream.launches_ended += 1;
                self.free_args(launch);
                None
            }
            Op::NotifyRecord { .. }
            | Op::NotifyWait { .. }
            | Op::HostTransfer(_)
            | Op::HostWork(_)
            | Op::EventRecord(_)
            | Op::EventWait(_)
                if stream.failed =>
            {
                None
            }
            Op::HostTransfer(transfer) => match self.host_transfer(id, transfer) {
                Ok(()) => None,
                Err(error) => {
                    // It ends with everything else that is on the device.
                    self.not_yet(id, op);
                    self.fail(DeviceError::HostTransfer { stream_id: id, transfer: transfer.to_string(), error });
                    return true;
                }
            },
            Op::HostWork(work) => {
                let text = work.text.clone();
                match self.host_work(id, work) {
                    Ok(()) => self.end_host_work(id),
                    Err(error) => {
                        let error = DeviceError::HostTransfer { stream_id: id, transfer: text, error };
                        // The work is gone: the others end with the device.
                        if let Some(stream) = self.streams.get_mut(id) {
                            stream.shared.complete(Some(error.clone()));
                        }
                        self.fail(error);
                    }
                }
                return true;
            }
            Op::EventRecord(ref mark) => {
                mark.reach(self.shared.turn.now(), &stream.before);
                let event = mark.event();
                self.shared.events.tell(|| What::EventRecorded { stream_id: id, event });
                None
            }
            Op::EventWait(ref mark) => {
                if !mark.pass(&mut stream.before) {
                    return self.not_yet(id, op);
                }
                let event = mark.event();
                self.shared.events.tell(|| What::EventAwaited { stream_id: id, event });
                None
            }
            Op::NotifyRecord { id: notify_id } => {
                let before = stream.before.clone();
                let by = RecordedBy::Stream { id, launches_ended: stream.launches_ended };
                let result = self.record(notify_id, Effect::Set, by, NotifyUser::Stream(id), &before);
                result.err().map(|error| stream_error(id, error))
            }
            Op::NotifyWait { id: notify_id, timeout_s } => match self.notifies.take(notify_id, Until::Set) {
                Ok(Some(before)) => {
                    stream.before.join(before);
                    stream.wait = None;
                    self.shared.turn.touch(Access::new(Object::Notify(notify_id), AccessKind::Take));
                    let (by, to) = (NotifyUser::Stream(id), self.notifies.value(notify_id));
                    self.shared.events.tell(|| What::NotifyTaken { id: notify_id, by, to });
                    None
                }
                Ok(None) => {
                    let wait = StreamWait { notify_id, deadline: self.config.wait_deadline(now, timeout_s) };
                    let wait = *stream.wait.get_or_insert(wait);
                    if wait.deadline.is_none_or(|deadline| now < deadline) {
                        return self.not_yet(id, op);
                    }
                    let notify = self.notifies.name(notify_id);
                    let error = stream_error(id, TaskError::WaitTimeout { notify, timeout_s });
                    if self.config.failed_tasks.is_none() {
                        stream.ops.push_front(op);
                        self.fail(error);
                        return true;
                    }
                    stream.wait = None;
                    Some(error)
                }
                Err(error) => Some(stream_error(id, error.into())),
            },
        };
        let Some(stream) = self.streams.get_mut(id) else { return true };
        stream.failed |= error.is_some();
        if matches!(op, Op::Synchronize) {
            stream.failed = false;
        }
        self.shared.events.tell(|| What::OperationEnded { stream_id: id });
        stream.shared.end(&op, error);
        self.forget(id);
        true
    }

    /// Ends the operation of the host that has been carried out.
    fn end_host_work(&mut self, id: StreamId) {
        self.shared.events.tell(|| What::OperationEnded { stream_id: id });
        if let Some(stream) = self.streams.get_mut(id) {
            stream.shared.complete(None);
        }
        self.forget(id);
    }

    /// Carries out work of the host on device memory.
    fn host_work(&self, stream_id: StreamId, work: HostWork) -> Result<(), HostTransferError> {
        let HostWork { reads, writes, run, .. } = work;
        let alloc = self.shared.lock_alloc();
        for range in [reads, writes].iter().filter(|range| range.len != 0) {
            alloc.check_user(range.addr, range.len)?;
        }
        drop(alloc);
        self.touch_bytes(&[reads], writes);
        self.shared.events.tell(|| What::StreamTransfer { stream_id, reads: [reads, Range::default()], writes });
        run(&*self.shared.memory).expect("what is allocated is in hbm");
        self.shared.counters.tasks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Carries out a copy or reduce of the host.
    fn host_transfer(&self, stream_id: StreamId, transfer: HostTransfer) -> Result<(), HostTransferError> {
        let HostTransfer { dst, src, len, reduce } = transfer;
        let alloc = self.shared.lock_alloc();
        alloc.check_user(src, len).and_then(|()| alloc.check_user(dst, len))?;
        drop(alloc);
        if src != dst && src.abs_diff(dst) < len {
            if !self.config.overlap_is_warning {
                return Err(HostTransferError::Overlap);
            }
            self.shared.counters.overlaps.fetch_add(1, Ordering::Relaxed);
            log::warn!("{transfer}: {}", HostTransferError::Overlap);
        }
        self.shared.events.tell(|| {
            let (src, dst) = (Range { addr: src, len }, Range { addr: dst, len });
            let reads = [src, if reduce.is_some() { dst } else { Range::default() }];
            What::StreamTransfer { stream_id, reads, writes: dst }
        });
        self.touch_bytes(&[Range { addr: src, len }], Range { addr: dst, len });
        let memory = &self.shared.memory;
        match reduce {
            None => memory.copy(dst, src, len),
            Some(reduce) => memory.reduce(dst, src, len, reduce),
        }
        .expect("what is allocated is in hbm");
        self.shared.counters.tasks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn not_yet(&mut self, id: StreamId, op: Op) -> bool {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.ops.push_front(op);
        }
        false
    }

    fn step_launch(&mut self, id: StreamId, mut running: Running, now: Duration) -> bool {
        if running.returned.is_none() {
            let polled = self.cpu.poll(running.core);
            if !matches!(polled, Ok(None)) {
                self.read_records_of(Origin { launch: running.launch.number, core: running.core }, true);
            }
            for Refused { code, text, frames } in self.cpu.take_refused(running.core) {
                let origin = Some(Origin { launch: running.launch.number, core: running.core });
                let events = &self.shared.events;
                let site = events.site_in_image(&frames);
                events.tell(|| What::CallRefused { origin, code, text: text.as_str().into(), site });
                running.refused.add(RefusedCall { code, text, place: events.place(site) });
            }
            if !matches!(polled, Ok(None)) || now >= running.deadline {
                running.refused.append(self.cpu.take_refusals(running.core));
            }
            match polled {
                Ok(None) if now < running.deadline => {}
                Ok(None) => {
                    let place = self.cpu.whereabouts(running.core);
                    self.cpu.abandon(running.core);
                    let (kernel, timeout) = (running.launch.name.to_string(), running.launch.timeout);
                    let refused = Box::new(running.refused.clone());
                    return self.launch_failed(id, running, |stream_id| DeviceError::KernelTimeout {
                        stream_id,
                        kernel,
                        timeout,
                        place,
                        refused,
                    });
                }
                Ok(Some(returned)) => {
                    let origin = Origin { launch: running.launch.number, core: running.core };
                    let code = returned.code;
                    running.returned = Some(returned);
                    self.shared.events.tell(|| What::LaunchReturned { origin, code });
                    return self.kernel_returned(id, running);
                }
                Err(fault) => {
                    let (kernel, refused) = (running.launch.name.to_string(), Box::new(running.refused.clone()));
                    return self.launch_failed(id, running, |stream_id| match fault {
                        CpuFault::Kernel(text) => DeviceError::KernelFault { stream_id, kernel, text, refused },
                        CpuFault::Cpu(text) => DeviceError::Cpu(text),
                    });
                }
            }
        }
        if let Some(returned) = running.returned.clone()
            && self.is_complete(id, &mut running, &returned)
        {
            self.complete(id, running, &returned);
            return true;
        }
        if let Some(stream) = self.streams.get_mut(id) {
            stream.running = Some(running);
        }
        false
    }

    /// Everything that the kernel rang is visible now: here, or as a command that the next step takes.
    fn kernel_returned(&mut self, id: StreamId, running: Running) -> bool {
        self.launches.returned(running.core);
        let Some(stream) = self.streams.get_mut(id) else { return true };
        // Before the doorbells: one that is wrong ends this launch as well.
        let running = stream.running.insert(running);
        if let Some(returned) = running.returned.clone().filter(|_| self.cpu.is_polled()) {
            let since = running.since;
            // Before the core takes the next kernel, whose doorbells would look like those of this one.
            self.poll_doorbells(self.shared.queues.count());
            self.observe_all();
            let queued = self.queued(id, since, &returned);
            if let Some(running) = self.streams.get_mut(id).and_then(|stream| stream.running.as_mut()) {
                running.judge_dropped(&returned);
                running.queued = Some(queued);
            }
        }
        true
    }

    /// Takes the new tails of all active queues.
    pub(crate) fn observe_all(&mut self) {
        for place in 0..self.queues.active().len() {
            let sq_id = self.queues.active()[place];
            if let Err(error) = self.observe(sq_id) {
                return self.bad_doorbell(sq_id, error);
            }
        }
    }

    /// Starts a launch on a free core; without one it stays the next operation of its stream.
    fn start(&mut self, id: StreamId, mut launch: KernelLaunch, now: Duration) -> bool {
        let Some((core, number)) = self.launches.start() else {
            return self.not_yet(id, Op::KernelLaunch(launch));
        };
        launch.number = number;
        self.shared.events.tell(|| What::LaunchStarted {
            origin: Origin { launch: launch.number, core },
            stream_id: id,
            kernel: Arc::clone(&launch.name),
        });
        let started = self.cpu.start(core, &launch);
        let Observed { doorbells, rung } = self.queues.observed();
        let running = Running {
            core,
            since: doorbells,
            rung,
            deadline: self.config.launch_deadline(now, launch.timeout),
            returned: None,
            queued: None,
            dropped: Vec::new(),
            error: None,
            refused: Refusals::default(),
            launch,
        };
        if let Err(CpuFault::Cpu(text) | CpuFault::Kernel(text)) = started {
            return self.launch_failed(id, running, |_| DeviceError::Cpu(text));
        }
        if let Some(stream) = self.streams.get_mut(id) {
            stream.running = Some(running);
        }
        true
    }

    /// The completion rule: the kernel has returned, and if the launch asks for it, what it has queued is done.
    pub(crate) fn is_complete(&mut self, id: StreamId, running: &mut Running, returned: &Returned) -> bool {
        if running.queued.is_none() {
            if self.has_unseen_doorbell(returned) {
                return false;
            }
            running.judge_dropped(returned);
            running.queued = Some(self.queued(id, running.since, returned));
        }
        let queued = running.queued.as_deref().unwrap_or_default();
        !running.launch.drain || !queued.iter().any(|queued| self.is_outstanding(queued))
    }

    /// Whether a doorbell of a kernel that has returned has not been taken: what it has queued is known once all are. Those of
    /// other kernels don't matter, where the CPU tells which are whose.
    fn has_unseen_doorbell(&self, returned: &Returned) -> bool {
        let is_own = |sq_id: u32| returned.rung.as_ref().is_none_or(|rung| rung.iter().any(|(own, _)| *own == sq_id));
        let is_unseen = |queue: &HwQueue| {
            let doorbell = Registers::of(&*self.shared.memory, queue.config.sq_id).doorbell();
            !queue.stopped && doorbell.count() != queue.count
        };
        let active = self.queues.active().iter().filter(|id| is_own(**id)).filter_map(|id| self.queues.get(*id));
        active.into_iter().any(is_unseen)
    }

    /// What a kernel of stream `id` has queued that has returned: as its CPU tells, else all that was rung since its start.
    fn queued(&mut self, id: StreamId, since: u64, returned: &Returned) -> Vec<Queued> {
        let queued = |queue: &mut HwQueue, tasks, is_sure| {
            if is_sure {
                queue.add_user(id);
            }
            Queued { sq_id: queue.config.sq_id, generation: queue.generation, tasks, is_sure }
        };
        if let Some(rung) = &returned.rung {
            let of = |(sq_id, tasks): &(u32, u64)| Some(queued(self.queue_mut(*sq_id)?, *tasks, true));
            return rung.iter().filter_map(of).collect();
        }
        let rung = self.queues.iter_mut().filter(|queue| queue.last_rung > since);
        // While two kernels run, a doorbell may be of either, unless only one of the streams has ever used the queue.
        let may_be_own =
            |queue: &&mut HwQueue| queue.last_unsure <= since || queue.users.is_empty() || queue.users.contains(&id);
        let rung = rung.filter(may_be_own).map(|queue| {
            let (tasks, is_sure) = (queue.rung_total, queue.last_unsure <= since || queue.users == [id]);
            queued(queue, tasks, is_sure)
        });
        rung.collect()
    }

    /// Whether tasks are still to come. Those of a queue that is gone, or that has stopped, never will.
    fn is_outstanding(&self, queued: &Queued) -> bool {
        let queue = self.queues.get(queued.sq_id);
        queue.is_some_and(|queue| {
            queue.generation == queued.generation && !queue.stopped && queue.done_total < queued.tasks
        })
    }

    fn complete(&mut self, id: StreamId, running: Running, returned: &Returned) {
        let Running { launch, since, rung, queued, error: dropped, refused, .. } = running;
        let observed = self.queues.observed();
        launch.stats.set(observed.rung - rung, observed.doorbells - since, returned.instructions);
        self.shared.events.tell(|| What::LaunchEnded { launch: launch.number, drained: launch.drain });
        self.free_args(&launch);
        let kernel = || launch.name.to_string();
        // A kernel that returns a code has ended in order: its launch failed, the device has not.
        let error = match returned {
            Returned { code: 0, batch_left_open, .. } => {
                let ignored = refused.lost().filter(|_| !launch.expects_refusals);
                let ignored = ignored.map(|refused| DeviceError::RefusalIgnored {
                    stream_id: id,
                    kernel: kernel(),
                    refused: Box::new(refused),
                });
                let ignored = ignored.and_then(|error| self.report(Check::Calls, error));
                let left_open = || DeviceError::BatchLeftOpen { stream_id: id, kernel: kernel() };
                ignored
                    .or_else(|| batch_left_open.then(left_open).and_then(|error| self.report(Check::Sync, error)))
                    .or(dropped)
            }
            Returned { code, .. } => {
                let refused = Box::new(refused);
                let error = DeviceError::KernelCode { stream_id: id, kernel: kernel(), code: *code, refused };
                self.tell_peers_of_launch(&error);
                self.shared.events.tell(|| What::Found(error.clone()));
                Some(error)
            }
        };
        if let Some(stream) = self.streams.get_mut(id) {
            stream.failed |= error.is_some();
            let queued = queued.unwrap_or_default();
            stream.launches_ended += 1;
            stream.ended.push(Ended { kernel: Arc::clone(&launch.name), since, queued, drained: launch.drain });
            self.shared.events.tell(|| What::OperationEnded { stream_id: id });
            stream.shared.complete(error);
        }
        self.forget(id);
    }

    /// The launch whose kernel may have rung what is observed now, if it is the only one: it runs, or has just returned. For a
    /// CPU that is polled.
    pub(super) fn only_running(&self) -> Option<Origin> {
        let mut running = self.streams.running().filter(|one| one.queued.is_none());
        let Running { launch, core, .. } = running.next()?;
        let origin = Origin { launch: launch.number, core: *core };
        running.next().is_none().then_some(origin)
    }

    /// A finding of `check` becomes an error, a warning in the log, or nothing.
    fn report(&self, check: Check, error: DeviceError) -> Option<DeviceError> {
        let level = self.shared.checks.level(check);
        if level != Level::Off {
            self.shared.events.tell(|| What::Found(error.clone()));
        }
        match level {
            Level::Error => return Some(error),
            Level::Warn => log::warn!("{error}"),
            Level::Off => {}
        }
        None
    }

    /// Whether tasks of launches of a stream that have ended are still to come.
    pub(crate) fn has_outstanding_work(&self, id: StreamId) -> bool {
        let ended = self.streams.get(id).into_iter().flat_map(|stream| &stream.ended);
        // What may be another stream's is neither waited for nor judged.
        let mut queued = ended.flat_map(|ended| &ended.queued).filter(|queued| queued.is_sure);
        queued.any(|queued| self.is_outstanding(queued))
    }

    /// What the host sees when it synchronises: waits until what its launches have queued is done, and gives the error that
    /// they leave behind. `None`: not yet.
    fn end_of_operation(&mut self, id: StreamId) -> Option<Option<DeviceError>> {
        if self.has_outstanding_work(id) {
            return None;
        }
        let stream = self.streams.get(id)?;
        let failed = stream.failed;
        let unordered = stream.ended.iter().filter(|ended| !ended.drained).find_map(|ended| {
            let is_ordered = |queued: &&Queued| !queued.is_sure || stream.before.time_of(queued.sq_id) >= queued.tasks;
            let queued = ended.queued.iter().find(|queued| !is_ordered(queued))?;
            Some((ended.kernel.to_string(), *queued, queued.tasks - stream.before.time_of(queued.sq_id)))
        });
        let unordered = unordered.and_then(|(kernel, queued, tasks)| {
            let queue = self.queues.get(queued.sq_id).filter(|queue| queue.generation == queued.generation)?;
            Some((kernel, queue.config.name(), tasks))
        });
        let ended = self.streams.get_mut(id).map(|stream| std::mem::take(&mut stream.ended))?;
        let leftovers = self.leftovers(id, &ended, failed);
        // A launch that has failed leaves things behind; the failure is what the host has to know.
        // A wait that is missing leaves both behind: one message names work and notify.
        let error = match (unordered, leftovers) {
            (Some((kernel, queue, tasks)), leftovers) => {
                let (left, others) = match leftovers {
                    Some(DeviceError::NotifyLeftSet { first, others, .. }) => (Some(first), others),
                    _ => (None, 0),
                };
                Some(DeviceError::UnorderedWork { stream_id: id, kernel, queue, tasks, left, others })
            }
            (None, leftovers) => leftovers,
        };
        let error = error.filter(|_| !failed).and_then(|error| self.report(Check::Sync, error));
        Some(error)
    }

    /// Drops a stream that the host has released, once it is empty.
    pub(super) fn forget(&mut self, id: StreamId) {
        if self.streams.forget_released(id) {
            self.shared.events.tell(|| What::StreamRemoved { stream_id: id });
            self.queues.iter_mut().for_each(|queue| queue.users.retain(|user| *user != id));
        }
    }

    fn free_args(&self, launch: &KernelLaunch) {
        if launch.args != 0 {
            self.shared.free_own(launch.args, None);
        }
    }

    fn launch_failed(&mut self, id: StreamId, running: Running, error: impl FnOnce(StreamId) -> DeviceError) -> bool {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.running = Some(running);
        }
        self.fail(error(id));
        true
    }
}

/// An error of an operation of a stream itself.
fn stream_error(stream_id: StreamId, error: TaskError) -> DeviceError {
    DeviceError::Stream { stream_id, error }
}
