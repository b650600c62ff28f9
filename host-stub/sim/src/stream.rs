//! Streams of the host: operations in order, and what the host waits for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::baton::Baton;
use super::cpu::KernelEntry;
use super::error::DeviceError;
use super::reduce::Reduce;

/// How long a host lets others go first before it sleeps. A short launch has ended by then, and nobody has to wake a processor
/// that has nothing else to do: on a virtual machine that takes longer than the launch.
const YIELDS: Duration = Duration::from_micros(10);

/// Number of a stream, unique in its device.
pub type StreamId = u32;

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
        /// Limit in seconds, 0 = for ever.
        timeout_s: u32,
    },
    /// The host waits for everything before.
    Synchronize,
    /// Copies or reduces device memory, as the host has queued it (CPU_TS).
    HostTransfer(HostTransfer),
}

/// A copy or reduce that the host has queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTransfer {
    /// First byte written.
    pub dst: u64,
    /// First byte read.
    pub src: u64,
    /// Bytes.
    pub len: u64,
    /// `None`: a copy.
    pub reduce: Option<Reduce>,
}

impl std::fmt::Display for HostTransfer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { dst, src, len, reduce } = self;
        let kind = if reduce.is_some() { "reduce" } else { "copy" };
        write!(f, "{kind} of {len} bytes from {src:#x} to {dst:#x}")
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
    /// Looks of the host that are outstanding; counted in `submitted`, too.
    looks: u64,
    /// Operations have been submitted that no look has ended after.
    unseen: bool,
    /// Threads of the host that wait.
    waiting: u32,
    error: Option<DeviceError>,
}

/// What host and scheduler share of a stream.
pub struct StreamShared {
    id: StreamId,
    baton: Option<Arc<Baton>>,
    state: Mutex<State>,
    /// Operations that have completed. Written by whoever has locked the state.
    completed: AtomicU64,
    changed: Condvar,
}

/// A thread of the host that waits for a stream, until this is dropped.
pub struct Waiting<'a>(&'a StreamShared);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
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

impl StreamShared {
    /// An empty stream.
    pub fn new(id: StreamId) -> Self {
        Self { id, baton: None, state: Mutex::default(), completed: AtomicU64::new(0), changed: Condvar::new() }
    }

    /// In deterministic mode: hosts that wait for the stream wait for the baton.
    pub fn with_baton(self, baton: Option<Arc<Baton>>) -> Self {
        Self { baton, ..self }
    }

    /// Its number.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Counts an operation that is about to be handed to the scheduler.
    pub fn submit(&self) {
        let mut state = self.lock();
        state.submitted += 1;
        state.unseen = true;
    }

    /// Counts a look of the host, [`Op::Synchronize`], that is about to be handed to the scheduler.
    /// `false`: there is nothing to look at, and nothing has been counted.
    pub fn submit_look(&self) -> bool {
        let mut state = self.lock();
        if !state.unseen && state.submitted == self.completed() {
            return false;
        }
        state.unseen = false;
        state.submitted += 1;
        state.looks += 1;
        true
    }

    /// Counts a thread of the host that is about to wait. Called before its look is submitted, so that who sees the look
    /// sees the thread.
    pub fn begin_wait(&self) -> Waiting<'_> {
        self.lock().waiting += 1;
        Waiting(self)
    }

    /// Whether a thread of the host waits. A look may be outstanding although none does any more.
    pub fn is_waited_for(&self) -> bool {
        self.lock().waiting != 0
    }

    /// Ends `op`, the oldest operation.
    pub fn end(&self, op: &Op, error: Option<DeviceError>) {
        if matches!(op, Op::Synchronize) {
            self.lock().looks -= 1;
        }
        self.complete(error);
    }

    /// Keeps an error of what has completed, if it is the first.
    pub fn fail(&self, error: DeviceError) {
        self.lock().error.get_or_insert(error);
    }

    /// Ends the oldest operation. The first error is kept until it is reported.
    pub fn complete(&self, error: Option<DeviceError>) {
        let mut state = self.lock();
        // Release: a host that does not lock to look sees what the operation has done.
        self.completed.fetch_add(1, Ordering::Release);
        if state.error.is_none() {
            state.error = error;
        }
        self.changed.notify_all();
        if let Some(baton) = &self.baton {
            baton.wake_hosts();
        }
    }

    /// Operations that have not completed.
    pub fn outstanding(&self) -> u64 {
        let state = self.lock();
        state.submitted - self.completed() - state.looks
    }

    /// Waits until everything that has been submitted so far has completed.
    pub fn wait(&self, timeout: Duration) -> Waited {
        let started = Instant::now();
        let target = self.lock().submitted;
        while self.completed() < target && started.elapsed() < YIELDS.min(timeout) {
            std::thread::yield_now();
        }
        let mut state = self.lock();
        while self.completed() < target {
            let left = timeout.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Waited::TimedOut(target - self.completed() - state.looks);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        Waited::Done(state.error.take())
    }

    fn completed(&self) -> u64 {
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
