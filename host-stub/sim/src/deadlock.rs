//! Finds out that nothing can go on, and why.
//!
//! A host that has not synchronised yet may still submit what releases a wait, so it counts only while a host waits, and
//! after it has lasted for a moment: another thread of the host may be about to submit.

use std::time::Duration;

use super::decode::{self, Action};
use super::error::{DeviceError, QueueName};
use super::memory::Memory;
use super::notify::NotifyName;
use super::queue::HwQueue;
use super::scheduler::Scheduler;
use super::stream::{Op, StreamId};

/// How long it has to last.
const GRACE: Duration = Duration::from_millis(200);

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A task of a queue.
    Task {
        /// Queue.
        queue: QueueName,
        /// Task.
        task_id: u32,
    },
    /// A stream of the host.
    Stream(StreamId),
}

impl std::fmt::Display for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Task { queue, task_id } => write!(f, "{queue}, task {task_id:#x}"),
            Self::Stream(id) => write!(f, "stream {id}"),
        }
    }
}

/// Waits that never end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Each waits for a notify that the next one would record after its own wait.
    pub waits: Vec<(Waiter, NotifyName)>,
    /// The last one waits for the first. Otherwise nothing is left that would record its notify.
    pub is_cycle: bool,
}

impl std::fmt::Display for Deadlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "deadlock: ")?;
        for (index, (waiter, notify)) in self.waits.iter().enumerate() {
            match index {
                0 => write!(f, "{waiter} waits for {notify}")?,
                _ => write!(f, ", which is to be recorded behind the wait of {waiter} for {notify}")?,
            }
        }
        match self.waits.first() {
            Some((first, _)) if self.is_cycle => write!(f, ", which is to be recorded behind the wait of {first}"),
            _ => write!(f, ", which nothing is left to record"),
        }
    }
}

/// A wait, and what its queue or stream would record behind it.
struct Node {
    waiter: Waiter,
    notify_id: u32,
    records: Vec<u32>,
}

impl<M: Memory> Scheduler<M> {
    /// Whether nothing goes on, nothing can, and a host waits for it. Called after a step that did nothing.
    fn is_stuck(&self) -> bool {
        let waits = |stream: &super::operations::HostStream| {
            stream.ops.iter().any(|op| matches!(op, Op::Synchronize)) && stream.shared.is_waited_for()
        };
        let held_up = |queue: &HwQueue| queue.busy || queue.is_runnable();
        self.streams.values().any(waits)
            && !self.core_busy.contains(&true)
            && !self.queues.iter().flatten().any(held_up)
            && (self.queues.iter().flatten().any(HwQueue::is_parked)
                || self.streams.values().any(|stream| stream.wait.is_some()))
    }

    /// When it is certain, if it has begun.
    pub(super) fn deadlock_due(&self) -> Option<Duration> {
        self.stuck_since.map(|since| since.saturating_add(GRACE))
    }

    /// Looks for a deadlock, and fails the device if there is one. Called after a step that did nothing.
    pub(super) fn is_deadlocked(&mut self) -> bool {
        if !self.is_stuck() {
            self.stuck_since = None;
            return false;
        }
        let since = *self.stuck_since.get_or_insert(self.now);
        if self.now < since.saturating_add(GRACE) {
            return false;
        }
        let deadlock = self.explain();
        self.fail(DeviceError::Deadlock(deadlock));
        true
    }

    /// Follows one wait to the one that holds up who would record it, until there is none or the way closes.
    fn explain(&self) -> Deadlock {
        let nodes = self.nodes();
        let mut way = vec![0];
        loop {
            let last = &nodes[way[way.len() - 1]];
            match nodes.iter().position(|node| node.records.contains(&last.notify_id)) {
                None => return self.deadlock(&nodes, &way, false),
                Some(next) => match way.iter().position(|node| *node == next) {
                    Some(start) => return self.deadlock(&nodes, &way[start..], true),
                    None => way.push(next),
                },
            }
        }
    }

    fn deadlock(&self, nodes: &[Node], way: &[usize], is_cycle: bool) -> Deadlock {
        let wait = |index: &usize| (nodes[*index].waiter, self.notifies.name(nodes[*index].notify_id));
        Deadlock { waits: way.iter().map(wait).collect(), is_cycle }
    }

    /// All waits, of which there is at least one.
    fn nodes(&self) -> Vec<Node> {
        let queues = self.queues.iter().flatten().filter_map(|queue| {
            let wait = queue.wait.filter(|wait| wait.parked)?;
            let waiter = Waiter::Task { queue: queue.config.name(), task_id: wait.task_id };
            Some(Node { waiter, notify_id: wait.notify_id, records: self.records_of(queue) })
        });
        let streams = self.streams.iter().filter_map(|(id, stream)| {
            let records = stream.ops.iter().filter_map(|op| match op {
                Op::NotifyRecord { id } => Some(*id),
                _ => None,
            });
            Some(Node { waiter: Waiter::Stream(*id), notify_id: stream.wait?.notify_id, records: records.collect() })
        });
        queues.chain(streams).collect()
    }

    /// Notifies that the entries of a queue record, from its head to what was rung.
    fn records_of(&self, queue: &HwQueue) -> Vec<u32> {
        let mut records = Vec::new();
        let mut slot = queue.head;
        while slot != queue.rung {
            let addr = queue.config.base + u64::from(slot) * decode::SQE_LEN as u64;
            let task =
                self.shared.memory.load_sqe(addr).ok().and_then(|sqe| decode::decode(self.shared.soc, &sqe).ok());
            if let Some(Action::Record { id, .. }) = task.map(|task| task.action) {
                records.push(id);
            }
            slot = if slot + 1 == queue.config.depth { 0 } else { slot + 1 };
        }
        records
    }
}
