//! The task scheduler (STARS): steps hardware queues and host streams in order.
//!
//! One thread of a device owns a [`Scheduler`] and calls [`step`](Scheduler::step); everybody else sends it a [`Command`].
#![forbid(unsafe_code)]

mod turns;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use hcomm_aicpu::spec::queue::QueueStatus;

use super::decode::{self, Task, TaskKind};
use super::engine::{CopyJob, EnginePool, INLINE_LEN};
use super::error::{DeviceError, DoorbellError, QueueName, TaskError};
use super::fault::{Fault, FaultCounter, FaultPlan};
use super::hold::Hold;
use super::inbox::Command;
use super::memory::{Memory, OutsideHbm};
use super::queue::{HwQueue, QueueConfig, Registers};
use super::recovery::Recovery;
use super::shared::Shared;
use super::stream::{HostCopy, KernelLaunch, Op, StreamId, StreamShared};
use super::trace::{Origin, TaskPlace, TaskRange, What, Who};
use crate::backend::{Cpu, CpuFault, Returned};

/// Tasks of one queue that run before the next queue has its turn.
const TASKS_PER_TURN: u32 = 64;

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

/// How a scheduler treats what can go wrong.
#[derive(Clone, Debug)]
pub struct Conduct {
    /// Faults to inject.
    pub faults: FaultPlan,
    /// How long the task at the head of a queue may wait until it runs.
    pub task_timeout: Duration,
    /// Whether a partial overlap of source and destination is only logged and counted.
    pub overlap_is_warning: bool,
}

impl Default for Conduct {
    fn default() -> Self {
        Self { faults: FaultPlan::default(), task_timeout: Duration::from_secs(60), overlap_is_warning: false }
    }
}

/// A launch that has been started.
pub(super) struct Running {
    launch: KernelLaunch,
    core: usize,
    /// Observed doorbells when it started.
    pub(super) since: u64,
    /// Tasks of the device when it started.
    tasks: u64,
    deadline: Duration,
    pub(super) returned: Option<Returned>,
    /// What went wrong without the device failing.
    pub(super) error: Option<DeviceError>,
}

pub(super) struct HostStream {
    shared: Arc<StreamShared>,
    ops: VecDeque<Op>,
    pub(super) running: Option<Running>,
    /// Nobody will submit to it any more.
    detached: bool,
}

/// The scheduler of one device.
pub struct Scheduler<M: Memory> {
    pub(super) shared: Arc<Shared<M>>,
    pub(super) cpu: Box<dyn Cpu>,
    /// `None`: all copies are made by the scheduler's own thread.
    pub(super) engines: Option<EnginePool>,
    /// Deterministic mode.
    turns: Option<turns::Turns>,
    pub(super) queues: Vec<Option<HwQueue>>,
    /// Queues that may have something to do.
    active: Vec<u32>,
    pub(super) streams: BTreeMap<StreamId, HostStream>,
    pub(super) core_busy: Vec<bool>,
    /// Doorbells observed, over all queues.
    observed: u64,
    /// Launches that were started.
    launches: u64,
    /// Removed queues that an engine still works on, and who waits for them.
    removals: Vec<(Vec<u32>, SyncSender<()>)>,
    /// What waits for engines and kernels.
    pub(super) recoveries: Vec<Recovery>,
    /// Parameters of launches that ended with their kernel still running.
    pub(super) orphans: Vec<u64>,
    conduct: Conduct,
    faults: FaultCounter,
    /// Time of the present step.
    now: Duration,
    commands: Vec<Command>,
    stopped: bool,
}

impl<M: Memory> Scheduler<M> {
    /// A scheduler without queues and streams.
    pub fn new(shared: Arc<Shared<M>>, cpu: Box<dyn Cpu>, engines: Option<EnginePool>) -> Self {
        let core_busy = vec![false; cpu.cores()];
        Self {
            shared,
            cpu,
            engines,
            turns: None,
            queues: Vec::new(),
            active: Vec::new(),
            streams: BTreeMap::new(),
            core_busy,
            observed: 0,
            launches: 0,
            removals: Vec::new(),
            recoveries: Vec::new(),
            orphans: Vec::new(),
            conduct: Conduct::default(),
            faults: FaultCounter::default(),
            now: Duration::ZERO,
            commands: Vec::new(),
            stopped: false,
        }
    }

    /// Sets how it treats what can go wrong.
    pub fn with_conduct(self, conduct: Conduct) -> Self {
        Self { faults: FaultCounter::new(&conduct.faults), conduct, ..self }
    }

    /// Does what can be done at `now`, a time since the start of the device, without waiting.
    pub fn step(&mut self, now: Duration) -> Progress {
        self.now = now;
        let mut worked = self.take_commands();
        if self.stopped {
            self.close();
            return Progress::Stopped;
        }
        worked |= self.recover();
        if self.failed() {
            worked |= self.end_deferred();
            return if worked { Progress::Worked } else { Progress::Idle };
        }
        worked |= match self.step_by_turns(now) {
            Some(worked) => worked,
            None => self.step_queues() | self.step_streams(now),
        };
        if worked || self.failed() {
            return Progress::Worked;
        }
        let running = || self.streams.values().filter_map(|stream| stream.running.as_ref());
        let kernel = running().filter(|running| running.returned.is_none()).map(|running| running.deadline).min();
        let look = |id: &u32| self.queues[*id as usize].as_ref()?.hold.next_look(self.conduct.task_timeout);
        let queue = self.active.iter().filter_map(look).min();
        match kernel.into_iter().chain(queue).min() {
            Some(_) if kernel.is_some() && self.cpu.is_polled() => Progress::Polling,
            Some(deadline) => Progress::Waiting(deadline.saturating_sub(now)),
            None => Progress::Idle,
        }
    }

    fn failed(&self) -> bool {
        self.shared.failed.is_set()
    }

    fn take_commands(&mut self) -> bool {
        let mut commands = std::mem::take(&mut self.commands);
        self.shared.inbox.take(&mut commands);
        let worked = !commands.is_empty();
        for command in commands.drain(..) {
            self.obey(command);
        }
        // Kept for its capacity.
        self.commands = commands;
        worked
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::AddQueue(config) => self.add_queue(config),
            Command::RemoveQueues(ids, reply) => {
                for id in &ids {
                    self.drop_tasks(*id, "freed");
                    if let Some(queue) = self.queue_mut(*id) {
                        queue.stopped = true;
                    }
                }
                self.removals.push((ids, reply));
                self.finish_removals();
            }
            Command::SuspendQueues(ids, reply) => {
                self.suspend(&ids);
                // Whoever asked may have stopped waiting.
                let _ = reply.try_send(());
            }
            Command::Recover(recovery) => self.recoveries.push(recovery),
            Command::AddStream(shared) => {
                let stream = HostStream { shared, ops: VecDeque::new(), running: None, detached: false };
                self.streams.insert(stream.shared.id(), stream);
            }
            Command::RemoveStream(id) => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.detached = true;
                }
                self.forget(id);
            }
            Command::Submit(id, op) => {
                let failed = self.shared.failed.get();
                if let Some(stream) = self.streams.get_mut(&id) {
                    match failed {
                        None => stream.ops.push_back(op),
                        Some(error) => stream.shared.complete(Some(error)),
                    }
                }
            }
            Command::Rung(sq_id) => self.activate(sq_id),
            Command::BadDoorbell(sq_id, error) => self.bad_doorbell(sq_id, error),
            // The step that follows polls the cores.
            Command::CoreEnded => {}
            Command::Copied { sq_id, result } => self.copied(sq_id, result),
            Command::Stop => self.stopped = true,
        }
    }

    fn add_queue(&mut self, config: QueueConfig) {
        self.shared.recorder.forget_rings(config.sq_id);
        let index = config.sq_id as usize;
        if self.queues.len() <= index {
            self.queues.resize_with(index + 1, || None);
        }
        let faults = &self.conduct.faults;
        let hold =
            Hold { delay: faults.delay(config.name()), runs_left: faults.dead_after(config.name()), since: None };
        self.queues[index] = Some(HwQueue { hold, ..HwQueue::new(config) });
    }

    pub(super) fn queue_mut(&mut self, sq_id: u32) -> Option<&mut HwQueue> {
        self.queues.get_mut(sq_id as usize)?.as_mut()
    }

    fn finish_removals(&mut self) {
        let queues = &mut self.queues;
        self.removals.retain(|(ids, reply)| {
            let busy = |id: &u32| queues.get(*id as usize).and_then(Option::as_ref).is_some_and(|queue| queue.busy);
            if ids.iter().any(busy) {
                return true;
            }
            for id in ids {
                if let Some(queue) = queues.get_mut(*id as usize) {
                    *queue = None;
                    // Before anybody looks for doorbells of free queues: those of its last life are none.
                    Registers::of(&*self.shared.memory, *id).reset();
                }
            }
            // Whoever asked may have stopped waiting.
            let _ = reply.try_send(());
            false
        });
        self.active.retain(|id| self.queues[*id as usize].is_some());
    }

    fn activate(&mut self, sq_id: u32) {
        if let Some(queue) = self.queue_mut(sq_id)
            && !queue.active
        {
            queue.active = true;
            self.active.push(sq_id);
        }
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

    /// Looks at all doorbells, also of queues that belong to no thread. For a CPU that rings by a store.
    fn poll_doorbells(&mut self) {
        for index in 0..self.queues.len() {
            let sq_id = index as u32;
            let doorbell = Registers::of(&*self.shared.memory, sq_id).doorbell();
            match &self.queues[index] {
                Some(queue) if doorbell.count() != queue.count => self.activate(sq_id),
                None if doorbell.count() != 0 => return self.bad_doorbell(sq_id, DoorbellError::FreeQueue),
                _ => {}
            }
        }
    }

    fn step_queues(&mut self) -> bool {
        if self.cpu.is_polled() && self.core_busy.contains(&true) {
            self.poll_doorbells();
        }
        let mut worked = false;
        let mut index = 0;
        while index < self.active.len() && !self.failed() {
            let sq_id = self.active[index];
            worked |= self.step_queue(sq_id, TASKS_PER_TURN);
            if self.retire(sq_id) {
                self.active.swap_remove(index);
            } else {
                index += 1;
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
                Some(queue) if !queue.busy && !queue.stopped && !queue.is_empty() => {
                    if queue.hold.keeps(now) {
                        worked |= self.check_stalled(sq_id) || self.listen(sq_id);
                        break;
                    }
                    self.run_task(sq_id);
                }
                _ => break,
            }
            worked = true;
        }
        worked
    }

    /// Fails the device if the task at the head of a queue has waited for too long.
    fn check_stalled(&mut self, sq_id: u32) -> bool {
        let (now, timeout) = (self.now, self.conduct.task_timeout);
        let Some(queue) = self.queue_mut(sq_id).filter(|queue| queue.hold.is_over(now, timeout)) else { return false };
        queue.stopped = true;
        let (name, slot, tail, addr) = (queue.config.name(), queue.head, queue.rung, queue.slot_addr());
        let task_id = self.shared.memory.load_sqe(addr).map_or(0, |sqe| decode::task_id(&sqe));
        self.fail(DeviceError::Stalled { queue: name, task_id, slot, tail, timeout });
        true
    }

    /// Takes a new tail.
    pub(super) fn observe(&mut self, sq_id: u32) -> Result<u32, DoorbellError> {
        let doorbell = Registers::of(&*self.shared.memory, sq_id).doorbell();
        let observed = self.observed;
        // Who rings by a call has said so already.
        let origin = if self.cpu.is_polled() { Some(self.only_running()) } else { None };
        let Some(queue) = self.queue_mut(sq_id) else { return Ok(0) };
        let new = queue.observe(doorbell)?;
        if new != 0 {
            queue.last_rung = observed + u64::from(new);
            self.observed = observed + u64::from(new);
            self.shared.counters.doorbells.fetch_add(u64::from(new), Ordering::Relaxed);
            if let Some(entry) = self.shared.queues.get(sq_id) {
                let seen = entry.doorbells.fetch_add(u64::from(new), Ordering::Relaxed) + u64::from(new);
                // A doorbell that is a store can't be refused: the queue says so before.
                let refuse_at = entry.refuse_at.load(Ordering::Relaxed);
                if self.cpu.is_polled() && refuse_at != 0 && seen + 1 >= refuse_at {
                    Registers::of(&*self.shared.memory, sq_id).set_state(QueueStatus::REFUSING);
                }
            }
            if let Some(origin) = origin {
                self.shared.record_doorbell(sq_id, doorbell.tail(), origin);
            }
        }
        Ok(new)
    }

    /// Asks to be told of the next doorbell of a queue that will not be looked at for a while. `true`: one has come already.
    fn listen(&self, sq_id: u32) -> bool {
        let queue = self.queues.get(sq_id as usize).and_then(Option::as_ref);
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
        let Some(queue) = self.queues.get_mut(sq_id as usize).and_then(Option::as_mut) else { return true };
        if queue.busy || !(queue.is_empty() || queue.stopped) {
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

    /// Carries out the task at the head of a queue, or hands it to an engine.
    fn run_task(&mut self, sq_id: u32) {
        let Some(queue) = self.queue_mut(sq_id) else { return };
        let addr = queue.slot_addr();
        let Ok(sqe) = self.shared.memory.load_sqe(addr) else {
            return self.task_failed(sq_id, 0, TaskError::Slot { addr });
        };
        if let Some(queue) = self.queue_mut(sq_id) {
            queue.task_id = decode::task_id(&sqe);
        }
        if let Err(error) = self.carry_out(sq_id, &sqe) {
            self.task_failed(sq_id, decode::task_id(&sqe), error);
        }
    }

    fn carry_out(&mut self, sq_id: u32, sqe: &[u8; 64]) -> Result<(), TaskError> {
        let task = decode::decode(sqe)?;
        self.record_start(sq_id, &task);
        if task.kind == TaskKind::SdmaReduce {
            return Err(TaskError::NotSupported { kind: task.kind.name(), opcode: task.opcode });
        }
        let len = task.len;
        if len != 0 {
            let alloc = self.shared.lock_alloc();
            alloc.check_user(task.src, u64::from(len)).map_err(|error| TaskError::Src { len, error })?;
            alloc.check_user(task.dst, u64::from(len)).map_err(|error| TaskError::Dst { len, error })?;
            drop(alloc);
            self.check_overlap(sq_id, task.src, task.dst, len)?;
        }
        self.inject(sq_id, &task)?;
        let job = CopyJob { sq_id, dst: task.dst, src: task.src, len };
        if len != 0 && self.defer(job) {
            if let Some(queue) = self.queue_mut(sq_id) {
                queue.busy = true;
            }
            return Ok(());
        }
        match &self.engines {
            Some(engines) if len >= INLINE_LEN => {
                engines.submit(job);
                if let Some(queue) = self.queue_mut(sq_id) {
                    queue.busy = true;
                }
            }
            _ => {
                if len != 0 {
                    let copied = self.shared.memory.copy(task.dst, task.src, u64::from(len));
                    copied.map_err(|OutsideHbm { addr, .. }| TaskError::Slot { addr })?;
                }
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
        if !self.conduct.overlap_is_warning {
            return Err(error);
        }
        self.shared.counters.overlaps.fetch_add(1, Ordering::Relaxed);
        log::warn!("sq {sq_id}: {error}");
        Ok(())
    }

    /// # Errors
    /// What the fault plan has for this task.
    fn inject(&mut self, sq_id: u32, task: &Task) -> Result<(), TaskError> {
        let Some(name) = self.queue_mut(sq_id).map(|queue| queue.config.name()) else { return Ok(()) };
        let Task { src, dst, len, .. } = *task;
        match self.faults.task(name, task.task_id) {
            Some(Fault::Translation) => Err(TaskError::Translation { src, len }),
            Some(_) => Err(TaskError::Engine { src, dst, len }),
            None => Ok(()),
        }
    }

    fn copied(&mut self, sq_id: u32, result: Result<(), OutsideHbm>) {
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

    fn task_done(&mut self, sq_id: u32) {
        let Some(queue) = self.queue_mut(sq_id) else { return };
        let task = place(queue);
        let head = queue.advance();
        self.shared.recorder.record(Who::Sdma, || What::TaskEnded { task });
        self.shared.recorder.record(Who::Stars, || What::HeadPublished { sq_id, head });
        Registers::of(&*self.shared.memory, sq_id).set_head(head);
        self.shared.counters.tasks.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = self.shared.queues.get(sq_id) {
            entry.tasks.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn record_start(&self, sq_id: u32, task: &Task) {
        let recorder = &self.shared.recorder;
        let Some(queue) = self.queues.get(sq_id as usize).and_then(Option::as_ref) else { return };
        recorder.record(Who::Sdma, || What::TaskStarted {
            task: place(queue),
            kind: task.kind.name(),
            range: TaskRange { dst: task.dst, src: task.src, len: task.len },
            origin: recorder.origin(sq_id, queue.head),
        });
    }

    /// The launch whose kernel runs, if it is the only one.
    fn only_running(&self) -> Option<Origin> {
        let mut running =
            self.streams.values().filter_map(|stream| stream.running.as_ref()).filter(|one| one.returned.is_none());
        let Running { launch, core, .. } = running.next()?;
        let origin = Origin { launch: launch.number, core: *core };
        running.next().is_none().then_some(origin)
    }

    fn task_failed(&mut self, sq_id: u32, task_id: u32, error: TaskError) {
        let Some(queue) = self.queue_mut(sq_id) else { return };
        queue.stopped = true;
        let (queue, slot) = (queue.config.name(), queue.head);
        self.fail(DeviceError::Task { queue, task_id, slot, error });
    }

    fn step_streams(&mut self, now: Duration) -> bool {
        let mut worked = false;
        let mut from = 0;
        while let Some((&id, _)) = self.streams.range(from..).next() {
            worked |= self.step_stream(id, now);
            if self.failed() {
                return true;
            }
            from = id + 1;
        }
        worked
    }

    /// Ends the running operation of a stream if it has completed, and starts the next one if it can.
    fn step_stream(&mut self, id: StreamId, now: Duration) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        let Some(mut running) = stream.running.take() else {
            return match stream.ops.pop_front() {
                Some(Op::KernelLaunch(launch)) => self.start(id, launch, now),
                Some(Op::HostCopy(copy)) => self.host_copy(id, copy),
                None => false,
            };
        };
        let was_running = running.returned.is_none();
        if was_running {
            match self.cpu.poll(running.core) {
                Ok(None) if now < running.deadline => {}
                Ok(None) => {
                    let place = self.cpu.whereabouts(running.core);
                    self.cpu.abandon(running.core);
                    let (kernel, timeout) = (running.launch.name.to_string(), running.launch.timeout);
                    return self.launch_failed(id, running, |stream_id| DeviceError::KernelTimeout {
                        stream_id,
                        kernel,
                        timeout,
                        place,
                    });
                }
                Ok(Some(returned)) => {
                    running.returned = Some(returned);
                    let (launch, code) = (running.launch.number, returned.code);
                    self.shared.recorder.record(Who::Core(running.core), || What::KernelReturned { launch, code });
                    self.core_busy[running.core] = false;
                    // Everything that the kernel rang is visible now: here, or as a command that the next step takes.
                    if self.cpu.is_polled() {
                        self.poll_doorbells();
                        if self.failed() {
                            return true;
                        }
                    }
                }
                Err(fault) => {
                    let kernel = running.launch.name.to_string();
                    return self.launch_failed(id, running, |stream_id| match fault {
                        CpuFault::Kernel(text) => DeviceError::KernelFault { stream_id, kernel, text },
                        CpuFault::Cpu(text) => DeviceError::Cpu(text),
                    });
                }
            }
        }
        match running.returned {
            Some(returned) if !was_running && self.is_complete(&running) => {
                self.complete(id, &running, returned);
                true
            }
            returned => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.running = Some(running);
                }
                was_running && returned.is_some()
            }
        }
    }

    /// Starts a launch on a free core; without one it stays the next operation of its stream.
    fn start(&mut self, id: StreamId, mut launch: KernelLaunch, now: Duration) -> bool {
        let Some(core) = self.core_busy.iter().position(|busy| !busy) else {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.ops.push_front(Op::KernelLaunch(launch));
            }
            return false;
        };
        self.launches += 1;
        launch.number = self.launches;
        self.shared.recorder.record(Who::Stars, || What::LaunchStarted {
            origin: Origin { launch: launch.number, core },
            stream_id: id,
            kernel: Arc::clone(&launch.name),
        });
        let started = self.cpu.start(core, &launch);
        self.core_busy[core] = true;
        let running = Running {
            core,
            since: self.observed,
            tasks: self.shared.counters.tasks.load(Ordering::Relaxed),
            deadline: now.saturating_add(launch.timeout),
            returned: None,
            error: None,
            launch,
        };
        if let Err(CpuFault::Cpu(text) | CpuFault::Kernel(text)) = started {
            return self.launch_failed(id, running, |_| DeviceError::Cpu(text));
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.running = Some(running);
        }
        true
    }

    /// Carries out a copy of the host, which is next on its stream.
    fn host_copy(&mut self, id: StreamId, copy: HostCopy) -> bool {
        let HostCopy { dst, src, len } = copy;
        let checked = {
            let alloc = self.shared.lock_alloc();
            alloc.check_user(src, len).and_then(|()| alloc.check_user(dst, len))
        };
        let Some(stream) = self.streams.get_mut(&id) else { return true };
        if let Err(error) = checked {
            // It ends with everything else that is on the device.
            stream.ops.push_front(Op::HostCopy(copy));
            self.fail(DeviceError::HostCopy { stream_id: id, dst, src, len, error });
            return true;
        }
        self.shared.memory.copy(dst, src, len).expect("what is allocated is in hbm");
        self.shared.counters.tasks.fetch_add(1, Ordering::Relaxed);
        stream.shared.complete(None);
        self.forget(id);
        true
    }

    /// The completion rule: the kernel has returned, and every queue that was rung since it started is empty.
    fn is_complete(&self, running: &Running) -> bool {
        let outstanding = |queue: &HwQueue| {
            let doorbell = Registers::of(&*self.shared.memory, queue.config.sq_id).doorbell();
            doorbell.count() != queue.count || (queue.last_rung > running.since && !queue.is_empty())
        };
        // A queue that is not active has nothing to do; `Rung` comes before the end of the kernel that rang.
        let active = self.active.iter().filter_map(|id| self.queues[*id as usize].as_ref());
        running.returned.is_some() && !active.into_iter().any(outstanding)
    }

    fn complete(&mut self, id: StreamId, running: &Running, returned: Returned) {
        let tasks = self.shared.counters.tasks.load(Ordering::Relaxed) - running.tasks;
        running.launch.stats.set(tasks, self.observed - running.since, returned.instructions);
        let launch = running.launch.number;
        self.shared.recorder.record(Who::Stars, || What::LaunchEnded { launch });
        self.free_args(&running.launch);
        let kernel = || running.launch.name.to_string();
        // A kernel that returns a code has ended in order: its launch failed, the device has not.
        let code = || {
            (returned.code != 0).then(|| DeviceError::KernelCode {
                stream_id: id,
                kernel: kernel(),
                code: returned.code,
            })
        };
        let error = code().or_else(|| running.error.clone());
        if let Some(stream) = self.streams.get(&id) {
            stream.shared.complete(error);
        }
        self.forget(id);
    }

    /// Drops a stream that nobody holds any more, once it is empty.
    fn forget(&mut self, id: StreamId) {
        let empty = |stream: &HostStream| stream.detached && stream.ops.is_empty() && stream.running.is_none();
        if self.streams.get(&id).is_some_and(empty) {
            self.streams.remove(&id);
        }
    }

    fn free_args(&self, launch: &KernelLaunch) {
        if launch.args != 0 {
            self.shared.lock_alloc().free(launch.args).expect("a launch owns its parameters until it ends");
        }
    }

    fn launch_failed(&mut self, id: StreamId, running: Running, error: impl FnOnce(u32) -> DeviceError) -> bool {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.running = Some(running);
        }
        self.fail(error(id));
        true
    }

    /// The device has failed: its queues refuse, and every operation ends with the first error.
    fn fail(&mut self, error: DeviceError) {
        self.shared.recorder.record(Who::Stars, || What::Error(error.clone()));
        let first = self.shared.failed.set(error);
        for queue in self.queues.iter().flatten() {
            Registers::of(&*self.shared.memory, queue.config.sq_id).set_state(QueueStatus::REFUSING);
        }
        self.end_all(&first);
    }

    pub(super) fn end_all(&mut self, error: &DeviceError) {
        for stream in self.streams.values_mut() {
            // Parameters of what still runs stay allocated: the kernel may read them.
            let (running, count) = (stream.running.take(), stream.ops.len());
            let count = count + usize::from(running.is_some());
            let queued = stream.ops.drain(..).map(|op| match op {
                Op::KernelLaunch(launch) => launch.args,
                Op::HostCopy(_) => 0,
            });
            self.orphans
                .extend(queued.chain(running.iter().map(|running| running.launch.args)).filter(|args| *args != 0));
            for _ in 0..count {
                stream.shared.complete(Some(error.clone()));
            }
        }
    }

    fn close(&mut self) {
        for core in 0..self.core_busy.len() {
            if self.core_busy[core] {
                self.cpu.abandon(core);
            }
        }
        self.end_all(&DeviceError::Closed);
        for (_, reply) in self.removals.drain(..) {
            // Whoever asked may have stopped waiting.
            let _ = reply.try_send(());
        }
    }
}

/// The task at the head of a queue.
fn place(queue: &HwQueue) -> TaskPlace {
    let QueueConfig { stream_id, sq_id, .. } = queue.config;
    TaskPlace { stream_id, sq_id, slot: queue.head, task_id: queue.task_id }
}
