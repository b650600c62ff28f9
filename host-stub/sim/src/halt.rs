//! Finds out that nothing can go on, and why.
//!
//! It counts only while a thread of the host waits. It is a deadlock at once when no thread of the process could still submit
//! what releases a wait. Otherwise it is a warning, and each wait keeps its own limit, unless there is one for this.

use std::io::Write;
use std::time::Duration;

use super::deadlock::{Deadlock, Found, Halt, LIMIT_VAR, Node, WARN_AFTER, Waiter, threads};
use super::decode::{self, Action};
use super::error::DeviceError;
use super::event::NotifyUser;
use super::fabric::{Port, remote_notify};
use super::ids::Owner;
use super::memory::Memory;
use super::queue::HwQueue;
use super::scheduler::Scheduler;
use super::stream::{Op, Waiters};

/// How long it lasts until the threads of the process are counted: most halts are over by then.
const FIRST_LOOK: Duration = Duration::from_millis(1);
/// Time between two counts before the warning, and after it. The end of a thread is no event.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(50));

impl<M: Memory> Scheduler<M> {
    /// Threads of the host that wait, if nothing goes on and nothing can. Called after a step that did nothing.
    fn halted(&self) -> Option<Waiters> {
        let is_parked =
            self.queues.iter().any(HwQueue::is_parked) || self.streams.iter().any(|stream| stream.wait.is_some());
        if self.goes_on() || !is_parked {
            return None;
        }
        Some(self.streams.waiters()).filter(|waiters| waiters.all != 0)
    }

    /// Tells the other devices whether anything goes on here. Called after a step that did nothing.
    pub(super) fn rest(&self) {
        if let Some(port) = &self.port {
            port.set_at_rest(!self.goes_on());
        }
    }

    /// Tells the other devices what this one waits for, if they ask.
    pub(super) fn answer_peers(&self) {
        if let Some(port) = self.port.as_ref().filter(|port| port.is_asked()) {
            port.answer(self.nodes(Some(port.rank())));
        }
    }

    /// Whether a kernel runs, an engine works, or a queue has a task that it can run.
    fn goes_on(&self) -> bool {
        let held_up = |queue: &HwQueue| queue.busy || queue.is_runnable();
        self.launches.is_any_running() || self.queues.iter().any(held_up)
    }

    /// When to look again at a halt, if there is one.
    pub(super) fn next_look_at_halt(&self) -> Option<Duration> {
        self.halt_watch.next_look()
    }

    /// Something may go on again.
    pub(super) fn end_halt(&mut self) {
        self.halt_watch.end();
    }

    /// A command may make something go on. Called before it is taken.
    pub(super) fn end_halt_on_command(&mut self) {
        if let Some(port) = self.port.as_ref().filter(|_| self.shared.inbox.is_pending()) {
            // Before the command is taken, so that at each moment the device has a command or is not at rest.
            port.set_at_rest(false);
        }
        if self.halt_watch.is_halted() && self.shared.inbox.is_pending() {
            self.end_halt();
        }
    }

    /// Looks for a deadlock, and fails the device if there is one. Called after a step that did nothing.
    pub(super) fn is_deadlocked(&mut self) -> bool {
        let (now, limit) = (self.now, self.config.deadlock_limit);
        let Some(waiters) = self.halted() else {
            self.end_halt();
            return false;
        };
        let first = Halt {
            since: now,
            look_at: limit.map_or(FIRST_LOOK, |limit| limit.min(FIRST_LOOK)).saturating_add(now),
            was_certain: false,
            warned: false,
            is_published: false,
        };
        let mut halt = self.halt_watch.get_or_begin(first);
        if now < halt.look_at {
            return false;
        }
        let free = self.halt_watch.free_threads(waiters.without_limit);
        halt.is_published = true;
        let others_rest = self.port.as_ref().is_none_or(Port::others_at_rest);
        if !others_rest {
            // What another device does may end the wait: the time of the halt begins when that rests, too.
            halt.since = now;
        }
        let (is_certain, lasted) = (free == Some(0) && others_rest, now.saturating_sub(halt.since));
        // For the text: what the others wait for.
        let is_told = self.port.as_ref().is_none_or(Port::asks_others);
        // Twice, since a thread that was counted as the last one may have started another and ended.
        let found = match limit {
            _ if !is_told => None,
            _ if is_certain && halt.was_certain => Some(Found::Certain),
            Some(limit) if lasted >= limit => Some(Found::Limit { limit, free }),
            _ => None,
        };
        if let Some(found) = found {
            let deadlock = self.explain(found);
            self.fail(DeviceError::Deadlock(deadlock));
            return true;
        }
        if lasted >= WARN_AFTER && !halt.warned {
            halt.warned = true;
            self.warn_of_halt(free);
        }
        let every = match halt.warned {
            _ if is_certain => FIRST_LOOK,
            false => LOOK_EVERY.0.min(WARN_AFTER.saturating_sub(lasted)),
            true => LOOK_EVERY.1,
        };
        let every = if is_told { every } else { every.min(FIRST_LOOK) };
        let left = limit.map_or(every, |limit| limit.saturating_sub(lasted)).max(Duration::from_micros(100));
        halt.was_certain = is_certain;
        halt.look_at = now.saturating_add(every.min(left));
        self.halt_watch.keep(halt);
        false
    }

    /// Says once for the same waits what they are.
    fn warn_of_halt(&mut self, free: Option<u32>) {
        let deadlock = self.explain(Found::Certain);
        if !self.halt_watch.warn_of(&deadlock) {
            return;
        }
        let threads = free.map_or_else(|| "an unknown number of host threads".to_owned(), threads);
        // A standard error that is closed or full is no reason to stop.
        let _ = writeln!(
            std::io::stderr(),
            "hcomm-sim: warning: nothing in the device can go on; {threads} could still act: {deadlock}. The wait goes on \
             until its own limit; {LIMIT_VAR}=SECONDS sets one for all."
        );
    }

    /// Follows one wait to the one that holds up who would record it, until there is none or the way closes.
    fn explain(&self, found: Found) -> Deadlock {
        let mut nodes = self.nodes(None);
        if let Some(port) = &self.port {
            nodes.extend(port.answers());
        }
        let mut way = vec![0];
        loop {
            let last = &nodes[way[way.len() - 1]];
            let (device, notify) = last.notify;
            match nodes.iter().position(|node| node.records.contains(&(device, notify.id))) {
                None => return self.deadlock(&nodes, &way, false, found),
                Some(next) => match way.iter().position(|node| *node == next) {
                    Some(start) => return self.deadlock(&nodes, &way[start..], true, found),
                    None => way.push(next),
                },
            }
        }
    }

    fn deadlock(&self, nodes: &[Node], way: &[usize], is_cycle: bool, found: Found) -> Deadlock {
        let wait = |index: &usize| (nodes[*index].rank, nodes[*index].waiter, nodes[*index].notify.1);
        let doubled = way.iter().filter(|index| nodes[**index].rank.is_none()).find_map(|index| {
            let id = nodes[*index].notify.1.id;
            let (name, by) = (self.notifies.name(id), self.notifies.doubled_by(id)?);
            let by = match (by, name.owner) {
                (NotifyUser::Peer { .. }, Some(Owner::Channel { peer_rank, .. })) => format!("rank {peer_rank}"),
                _ => by.to_string(),
            };
            Some((name, by))
        });
        Deadlock { waits: way.iter().map(wait).collect(), is_cycle, doubled, found }
    }

    /// All waits. `rank`: as [`Node::rank`].
    fn nodes(&self, rank: Option<u32>) -> Vec<Node> {
        let device = self.device();
        let notify = |id| (device, self.notifies.name(id));
        let queues = self.queues.iter().filter_map(|queue| {
            let wait = queue.wait.filter(|wait| wait.parked)?;
            let waiter = Waiter::Task { queue: queue.config.name(), task_id: wait.task_id };
            Some(Node { waiter, notify: notify(wait.notify_id), records: self.records_of(queue), rank })
        });
        let streams = self.streams.iter().filter_map(|stream| {
            let records = stream.ops.iter().filter_map(|op| match op {
                Op::NotifyRecord { id } => Some((device, *id)),
                _ => None,
            });
            let waiter = Waiter::Stream(stream.shared.id());
            Some(Node { waiter, notify: notify(stream.wait?.notify_id), records: records.collect(), rank })
        });
        queues.chain(streams).collect()
    }

    fn device(&self) -> u32 {
        self.port.as_ref().map_or(0, Port::device)
    }

    /// Notifies that the entries of a queue record, from its head to what was rung.
    fn records_of(&self, queue: &HwQueue) -> Vec<(u32, u32)> {
        let mut records = Vec::new();
        let mut slot = queue.head;
        while slot != queue.rung {
            let addr = queue.config.base + u64::from(slot) * decode::SQE_LEN as u64;
            let task =
                self.shared.memory.load_sqe(addr).ok().and_then(|sqe| decode::decode(self.shared.soc, &sqe).ok());
            match task.map(|task| task.action) {
                Some(Action::Record { id, .. }) => records.push((self.device(), id)),
                Some(Action::RemoteRecord { addr }) => records.extend(remote_notify(addr)),
                Some(Action::UbDoorbell { jetty, producer_index }) => {
                    records.extend(self.records_of_doorbell(jetty, producer_index));
                }
                _ => {}
            }
            slot = if slot + 1 == queue.config.depth { 0 } else { slot + 1 };
        }
        records
    }
}
