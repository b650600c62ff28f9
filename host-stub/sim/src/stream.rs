//! Streams of the host: operations in order, and what the host waits for.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::deterministic::{FreeRunning, Turn};
use super::error::DeviceError;
use super::event::{Access, AccessKind, Object};
pub use super::host_transfer::{HostTransfer, HostWork};
pub use super::ids::StreamId;
use super::kernel::KernelEntry;
use super::stream_event::EventMark;

/// How long a host lets others go first before it sleeps. A short launch has ended by then, and no thread has to wake a processor
/// that has nothing else to do: on a virtual machine that takes longer than the launch.
const YIELDS: Duration = Duration::from_micros(10);

/// One operation of a stream.
#[derive(Debug)]
pub enum Op {
    /// Runs a kernel on the AI CPU.
    KernelLaunch(KernelLaunch),
    /// Records a notify.
    NotifyRecord {
        /// The notify.
        id: u32,
    },
    /// Waits for a notify, and clears it.
    NotifyWait {
        /// The notify.
        id: u32,
        /// Limit in seconds, 0 = no limit.
        timeout_s: u32,
    },
    /// The host waits for everything before.
    Synchronize,
    /// Copies or reduces device memory, as the host has queued it (CPU_TS).
    HostTransfer(HostTransfer),
    /// Copies between host and device, or fills device memory.
    HostWork(HostWork),
    /// Reaches a mark of an event.
    EventRecord(Arc<EventMark>),
    /// Waits until another stream has reached a mark of an event.
    EventWait(Arc<EventMark>),
}

impl Op {
    /// Its kind.
    pub fn name(&self) -> &'static str {
        match self {
            Self::KernelLaunch(_) => "launch",
            Self::NotifyRecord { .. } => "notify record",
            Self::NotifyWait { .. } => "notify wait",
            Self::Synchronize => "synchronize",
            Self::HostTransfer(_) | Self::HostWork(_) => "transfer",
            Self::EventRecord(_) => "event record",
            Self::EventWait(_) => "event wait",
        }
    }
}

/// A kernel and what it is started with.
#[derive(Clone, Debug)]
pub struct KernelLaunch {
    /// Its name, for messages.
    pub name: Arc<str>,
    /// Where it is.
    pub entry: KernelEntry,
    /// Its parameters in HBM, which the launch owns; 0 = none.
    pub args: u64,
    /// How long it may take.
    pub timeout: Duration,
    /// It completes only with the last task that the kernel has queued.
    pub drain: bool,
    /// A kernel that returns 0 after a refused call has not failed: its calls are there to be refused.
    pub expects_refusals: bool,
    /// Number in the order of starts, from 1; the scheduler sets it.
    pub number: u64,
    /// Filled in when it has completed.
    pub stats: Arc<LaunchStats>,
}

/// What a launch did. All zero until it has completed. Exact as long as no other launch runs beside it.
#[derive(Debug, Default)]
pub struct LaunchStats {
    tasks: AtomicU64,
    doorbells: AtomicU64,
    instructions: AtomicU64,
}

impl LaunchStats {
    /// Tasks that the kernel has queued.
    pub fn tasks(&self) -> u64 {
        self.tasks.load(Ordering::Relaxed)
    }

    /// Doorbells that were rung.
    pub fn doorbells(&self) -> u64 {
        self.doorbells.load(Ordering::Relaxed)
    }

    /// Instructions of the kernel as the processor counted them; 0 where it does not count.
    pub fn instructions(&self) -> u64 {
        self.instructions.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, tasks: u64, doorbells: u64, instructions: u64) {
        self.tasks.store(tasks, Ordering::Relaxed);
        self.doorbells.store(doorbells, Ordering::Relaxed);
        self.instructions.store(instructions, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct State {
    submitted: u64,
    /// Places of the looks of hosts that are outstanding among what was submitted, oldest first.
    looks: VecDeque<u64>,
    /// Operations have been submitted that no look has ended after.
    unseen: bool,
    /// Threads of the host that wait.
    waiters: Vec<Waiter>,
    /// Number of the next one.
    next_waiter: u64,
    /// The first error that no host has been told.
    error: Option<DeviceError>,
    /// The error that a host was told last.
    told: Option<DeviceError>,
    /// Errors that hosts were told.
    tellings: u64,
}

/// A thread of the host that waits.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    number: u64,
    /// Operations that must have completed.
    target: u64,
    /// Its wait ends also without them, at a limit of its own.
    has_limit: bool,
}

/// What host and scheduler share of a stream.
pub struct StreamShared {
    id: StreamId,
    turn: Arc<dyn Turn>,
    state: Mutex<State>,
    /// Operations that have completed. Written under the lock of the state.
    completed: AtomicU64,
    changed: Condvar,
}

/// A thread of the host that waits for everything that was submitted before, until this is dropped.
pub struct Waiting<'a> {
    stream: &'a StreamShared,
    waiter: Waiter,
    needs_look: bool,
    /// Errors that hosts had been told when it began.
    tellings: u64,
}

impl Waiting<'_> {
    /// Whether a look, [`Op::Synchronize`], has been counted, which is to be handed to the scheduler now.
    pub fn needs_look(&self) -> bool {
        self.needs_look
    }

    /// Place of the last operation that it waits for.
    pub fn target(&self) -> u64 {
        self.waiter.target
    }

    /// Waits, but for at most `timeout`.
    pub fn wait(&self, timeout: Duration) -> Waited {
        let (stream, target) = (self.stream, self.waiter.target);
        let started = Instant::now();
        while stream.completed() < target && started.elapsed() < YIELDS.min(timeout) {
            std::thread::yield_now();
        }
        let mut state = stream.lock();
        while stream.completed() < target {
            let left = timeout.saturating_sub(started.elapsed());
            if left.is_zero() {
                let completed = stream.completed();
                let looks = state.looks.iter().filter(|place| **place <= target).count() as u64;
                return Waited::TimedOut(target - completed - looks);
            }
            state = stream.changed.wait_timeout(state, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        // Every thread that waits hears of an error, not only the one that is the first to run again.
        match state.error.take() {
            Some(error) => {
                state.told = Some(error);
                state.tellings += 1;
            }
            None if state.tellings == self.tellings => return Waited::Done(None),
            None => {}
        }
        Waited::Done(state.told.clone())
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.stream.lock().waiters.retain(|waiter| waiter.number != self.waiter.number);
    }
}

/// How a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited {
    /// All operations have completed, with the first error among them.
    Done(Option<DeviceError>),
    /// The time is over, and this many operations have not completed.
    TimedOut(u64),
}

/// Threads of the host that wait for a stream, and whose wait is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiters {
    /// All of them.
    pub all: u32,
    /// Those that nothing but the device can release.
    pub without_limit: u32,
}

impl StreamShared {
    /// An empty stream, whose waits are in real time.
    pub fn new(id: StreamId) -> Self {
        Self::with_turn(id, Arc::new(FreeRunning::default()))
    }

    /// An empty stream of a device that goes on as `turn` says.
    pub fn with_turn(id: StreamId, turn: Arc<dyn Turn>) -> Self {
        Self { id, turn, state: Mutex::default(), completed: AtomicU64::new(0), changed: Condvar::new() }
    }

    /// Its number.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Counts an operation that is about to be handed to the scheduler. Gives its place among all that were submitted.
    pub fn submit(&self) -> u64 {
        let mut state = self.lock();
        state.submitted += 1;
        state.unseen = true;
        state.submitted
    }

    /// Operations that were submitted.
    pub fn submitted(&self) -> u64 {
        self.lock().submitted
    }

    /// Counts a thread of the host that is about to wait for the operation in this place and those before, without a look.
    pub fn begin_wait_until(&self, place: u64, has_limit: bool) -> Waiting<'_> {
        self.wait_by(self.lock(), place, false, has_limit)
    }

    /// Counts a thread of the host that is about to wait for all that has been submitted so far, and its look if there is
    /// anything to look at. `has_limit`: it will not wait without end.
    pub fn begin_wait(&self, has_limit: bool) -> Waiting<'_> {
        let mut state = self.lock();
        let needs_look = state.unseen || state.submitted != self.completed();
        if needs_look {
            state.unseen = false;
            state.submitted += 1;
            let place = state.submitted;
            state.looks.push_back(place);
        }
        let target = state.submitted;
        self.wait_by(state, target, needs_look, has_limit)
    }

    /// What a host hears now that waits for what has been submitted so far, without a look of its own.
    #[cfg(test)]
    pub fn peek(&self) -> Waited {
        let state = self.lock();
        let target = state.submitted;
        self.wait_by(state, target, false, true).wait(Duration::ZERO)
    }

    fn wait_by(&self, mut state: MutexGuard<'_, State>, target: u64, needs_look: bool, has_limit: bool) -> Waiting<'_> {
        state.next_waiter += 1;
        let waiter = Waiter { number: state.next_waiter, target, has_limit };
        state.waiters.push(waiter);
        Waiting { stream: self, waiter, needs_look, tellings: state.tellings }
    }

    /// Threads of the host that wait. A look may be outstanding although none does any more.
    pub fn waiters(&self) -> Waiters {
        let state = self.lock();
        let completed = self.completed();
        let waits = || state.waiters.iter().filter(|waiter| waiter.target > completed);
        let without_limit = waits().filter(|waiter| !waiter.has_limit).count();
        Waiters { all: waits().count() as u32, without_limit: without_limit as u32 }
    }

    /// Ends `op`, the oldest operation.
    pub fn end(&self, op: &Op, error: Option<DeviceError>) {
        if let Op::EventRecord(mark) = op {
            mark.end();
        }
        let is_look = matches!(op, Op::Synchronize);
        self.complete_one(is_look, error);
    }

    /// Keeps an error of what has completed, if it is the first.
    pub fn fail(&self, error: DeviceError) {
        self.lock().error.get_or_insert(error);
    }

    /// Ends the oldest operation. The first error is kept until it is reported.
    pub fn complete(&self, error: Option<DeviceError>) {
        self.complete_one(false, error);
    }

    fn complete_one(&self, is_look: bool, error: Option<DeviceError>) {
        let mut state = self.lock();
        if is_look {
            state.looks.pop_front();
        }
        // Release: a host that does not lock to look sees what the operation has done.
        let completed = self.completed.fetch_add(1, Ordering::Release) + 1;
        if state.error.is_none() {
            state.error = error;
        }
        self.changed.notify_all();
        self.turn.touch(Access::of(Object::Completed(self.id), completed, 1, AccessKind::Write));
        self.turn.wake_hosts(self.id, completed);
    }

    /// Operations that have not completed.
    pub fn outstanding(&self) -> u64 {
        let state = self.lock();
        state.submitted - self.completed() - state.looks.len() as u64
    }

    /// Operations that have completed.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl std::fmt::Debug for StreamShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamShared")
            .field("id", &self.id)
            .field("state", &self.state)
            .field("completed", &self.completed)
            .finish_non_exhaustive()
    }
}
