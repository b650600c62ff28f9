//! Streams of the host as the scheduler keeps them: operations, the launch that runs, and those that have ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::cpu::{Refusals, Returned};
use super::error::DeviceError;
use super::ids::QueueGeneration;
use super::stream::{KernelLaunch, Op, StreamId, StreamShared};
use super::vector_clock::VectorClock;

/// A launch that has been started.
pub(crate) struct Running {
    pub(crate) launch: KernelLaunch,
    pub(crate) core: usize,
    /// Observed doorbells when it started.
    pub(crate) since: u64,
    /// Rung entries of the device when it started.
    pub(crate) rung: u64,
    pub(crate) deadline: Duration,
    pub(crate) returned: Option<Returned>,
    /// What it has queued, once it has returned.
    pub(crate) queued: Option<Vec<Queued>>,
    /// Tasks that were dropped while its kernel ran, each with whether the kernel may have queued them.
    pub(crate) dropped: Vec<(DroppedTasks, bool)>,
    /// What went wrong without the device failing.
    pub(crate) error: Option<DeviceError>,
    /// Calls of its kernel that were refused.
    pub(crate) refused: Refusals,
}

impl Running {
    /// Notes that tasks were dropped which the launch, if it has queued them, has lost.
    fn note_dropped(&mut self, stream_id: StreamId, dropped: &DroppedTasks) {
        match &self.queued {
            None => {
                let may_be = dropped.may_be_of(stream_id, self.since);
                self.dropped.push((dropped.clone(), may_be));
            }
            Some(queued) if queued.iter().any(|queued| dropped.is_of(queued)) => {
                self.error.get_or_insert_with(|| dropped.error.clone());
            }
            Some(_) => {}
        }
    }

    /// The kernel has returned: what it rang says which of the dropped tasks were its own.
    pub(crate) fn judge_dropped(&mut self, returned: &Returned) {
        for (dropped, may_be) in std::mem::take(&mut self.dropped) {
            let is_own = match &returned.rung {
                Some(rung) => rung.iter().any(|(sq_id, tasks)| *sq_id == dropped.sq_id && *tasks > dropped.first),
                None => may_be,
            };
            if is_own {
                self.error.get_or_insert(dropped.error);
            }
        }
    }
}

/// Tasks that a queue has lost.
#[derive(Clone)]
pub(crate) struct DroppedTasks {
    pub(crate) sq_id: u32,
    pub(crate) generation: QueueGeneration,
    /// Tasks of the queue before them.
    pub(crate) first: u64,
    /// As in the queue.
    pub(crate) last_rung: u64,
    /// As in the queue.
    pub(crate) last_unsure: u64,
    /// As in the queue.
    pub(crate) users: Vec<StreamId>,
    pub(crate) error: DeviceError,
}

impl DroppedTasks {
    /// Whether a kernel of stream `id` that was started at `since` and still runs may have queued some of them.
    fn may_be_of(&self, id: StreamId, since: u64) -> bool {
        let is_sure = self.last_unsure <= since;
        self.last_rung > since && (is_sure || self.users.is_empty() || self.users.contains(&id))
    }

    fn is_of(&self, queued: &Queued) -> bool {
        queued.generation == self.generation && queued.tasks > self.first
    }
}

/// Tasks of one queue, up to the last one that a launch has queued.
#[derive(Clone, Copy)]
pub(crate) struct Queued {
    pub(crate) sq_id: u32,
    pub(crate) generation: QueueGeneration,
    pub(crate) tasks: u64,
    /// Not those of another kernel that ran at the same time.
    pub(crate) is_sure: bool,
}

/// A launch that has completed since the host has last synchronised.
pub(crate) struct Ended {
    pub(crate) kernel: Arc<str>,
    /// Observed doorbells when it started.
    pub(crate) since: u64,
    pub(crate) queued: Vec<Queued>,
    /// It completed with the last of its tasks: there is nothing to order.
    pub(crate) drained: bool,
}

/// A wait for a notify that has begun.
#[derive(Clone, Copy)]
pub(crate) struct StreamWait {
    pub(crate) notify_id: u32,
    pub(crate) deadline: Option<Duration>,
}

pub(crate) struct HostStream {
    pub(crate) shared: Arc<StreamShared>,
    pub(crate) ops: VecDeque<Op>,
    pub(crate) running: Option<Running>,
    /// The first of `ops` is a wait that has begun.
    pub(crate) wait: Option<StreamWait>,
    /// Tasks of each queue that have happened before its next operation, as notifies tell.
    pub(crate) before: VectorClock,
    pub(crate) ended: Vec<Ended>,
    /// Launches that have ended since the stream was made.
    pub(crate) launches_ended: u64,
    /// A launch has failed: what was submitted behind it does not run.
    pub(crate) failed: bool,
    /// The host has released it: no operation follows.
    pub(crate) detached: bool,
}

impl HostStream {
    pub(crate) fn new(shared: Arc<StreamShared>) -> Self {
        Self {
            shared,
            ops: VecDeque::new(),
            running: None,
            wait: None,
            before: VectorClock::default(),
            ended: Vec::new(),
            launches_ended: 0,
            failed: false,
            detached: false,
        }
    }

    /// When the running kernel or the wait that has begun is over.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let kernel = self.running.as_ref().filter(|running| running.returned.is_none());
        kernel.map(|running| running.deadline).or_else(|| self.wait?.deadline)
    }

    /// Ends everything with an error. Gives the parameters of its launches: a kernel that still runs may read them. `with`: what all
    /// kernels end with when one of them fails.
    pub(crate) fn end_all(&mut self, error: &DeviceError, with: Option<&'static str>) -> Vec<u64> {
        let mut args = Vec::new();
        if let Some(running) = self.running.take() {
            args.push(running.launch.args);
            let (stream_id, kernel) = (self.shared.id(), running.launch.name.to_string());
            let beside = with.filter(|_| error.is_of_kernel_beside(stream_id) && running.returned.is_none());
            self.shared.complete(Some(match beside {
                Some(what) => DeviceError::KernelEnded { stream_id, kernel, what, by: error.to_string() },
                None => error.clone(),
            }));
        }
        if !self.ended.is_empty() {
            // The work of a launch that has completed may be what failed.
            self.shared.fail(error.clone());
        }
        for op in self.ops.drain(..) {
            if let Op::KernelLaunch(launch) = &op {
                args.push(launch.args);
            }
            self.shared.end(&op, Some(error.clone()));
        }
        self.ended.clear();
        (self.wait, self.failed) = (None, false);
        args.retain(|args| *args != 0);
        args
    }

    /// Work of a launch will never run: the launch, if it still goes on, or the stream has an error.
    pub(crate) fn note_dropped(&mut self, dropped: &DroppedTasks) {
        if let Some(running) = &mut self.running {
            running.note_dropped(self.shared.id(), dropped);
        }
        if self.ended.iter().any(|ended| ended.queued.iter().any(|queued| dropped.is_of(queued))) {
            self.shared.fail(dropped.error.clone());
        }
    }

    /// Number of its launch whose kernel has not returned.
    pub(crate) fn kernel(&self) -> Option<u64> {
        self.running.as_ref().filter(|running| running.returned.is_none()).map(|running| running.launch.number)
    }
}
