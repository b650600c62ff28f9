//! Race check: two accesses to one byte, at least one of them a write, that nothing orders.
//!
//! An observer of the event stream. It follows what orders the actors ([`HappensBefore`]) and keeps the accesses
//! ([`History`]); it never looks at memory, and a race is found whatever order the two accesses took.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::findings::{Findings, Receiver};
use super::happens_before::{CallId, HappensBefore, Who};
use super::history::{Access, Conflict, History, Kind};
use super::report::{Maker, Race, RacingAccess};
use crate::event::{Event, HostThread, NotifyUser, Observer, Origin, Queuer, Range, TaskPlace, What};
use crate::stream::StreamId;

/// The observer.
pub struct RaceCheck {
    order: HappensBefore,
    history: History<Maker>,
    /// User allocations: length by first byte.
    allocations: BTreeMap<u64, u64>,
    /// Host threads that are inside a call.
    calling: BTreeSet<HostThread>,
    /// Streams whose oldest operation has begun.
    begun: BTreeSet<StreamId>,
    /// Stream and kernel of each launch whose tasks may still begin.
    launches: BTreeMap<u64, (StreamId, Arc<str>)>,
    /// Queues on which a launch that runs has tasks.
    used: BTreeMap<u64, BTreeSet<u32>>,
    /// Queue of each thread handle.
    queues: BTreeMap<u64, u32>,
    findings: Arc<Findings>,
}

impl RaceCheck {
    /// A check that puts what it finds into `findings`.
    pub fn new(findings: Arc<Findings>) -> Self {
        Self {
            order: HappensBefore::default(),
            history: History::default(),
            allocations: BTreeMap::new(),
            calling: BTreeSet::new(),
            begun: BTreeSet::new(),
            launches: BTreeMap::new(),
            used: BTreeMap::new(),
            queues: BTreeMap::new(),
            findings,
        }
    }

    /// The call that `host` is in; its first event begins it.
    fn call_of(&mut self, host: HostThread) -> CallId {
        let call = host.0;
        if self.calling.insert(host) {
            self.order.call_begins(call);
        }
        call
    }

    /// The oldest operation of a stream is carried out.
    fn operation(&mut self, stream_id: StreamId) {
        if self.begun.insert(stream_id) {
            self.order.operation_begins(stream_id);
        }
    }

    fn access(&mut self, who: Who, range: Range, kind: Kind, maker: Maker, receiver: Option<Receiver>) {
        let Some((actor, clock)) = self.order.now(who) else { return };
        let access = Access { actor, time: clock.time_of(actor), kind, site: maker };
        let mut conflicts: Vec<Conflict<Maker>> = Vec::new();
        self.history.access(range.addr..range.addr + range.len, access, clock, |conflict| {
            // The history is cut where earlier accesses began and ended; a report is about all bytes of the two.
            let is_next = |known: &&mut Conflict<Maker>| {
                known.earlier == conflict.earlier && known.range.end == conflict.range.start
            };
            match conflicts.iter_mut().find(is_next) {
                Some(known) => known.range.end = conflict.range.end,
                None => conflicts.push(conflict),
            }
        });
        for conflict in conflicts {
            self.report(conflict, maker, kind, receiver);
        }
        if self.history.is_due() {
            let known = self.order.known_to_all();
            self.history.sweep(&known);
            self.order.forget_launches(&known);
        }
    }

    fn report(&mut self, conflict: Conflict<Maker>, maker: Maker, kind: Kind, receiver: Option<Receiver>) {
        let Conflict { range, earlier } = conflict;
        let range = Range { addr: range.start, len: range.end - range.start };
        let block = self.allocations.range(..=range.addr).next_back();
        let allocation = block.map_or(Range::default(), |(addr, len)| Range { addr: *addr, len: *len });
        let race =
            Race { first: self.named(earlier.site, earlier.kind), second: self.named(maker, kind), range, allocation };
        self.findings.add(race, receiver);
    }

    fn named(&self, maker: Maker, kind: Kind) -> RacingAccess {
        let launch = match maker {
            Maker::Task { launch, .. } => launch,
            _ => None,
        };
        let kernel = launch.and_then(|launch| self.launches.get(&launch)).map(|(_, kernel)| Arc::clone(kernel));
        RacingAccess { maker, kind, kernel }
    }

    fn task_began(
        &mut self,
        task: TaskPlace,
        kind: &'static str,
        by: Option<Queuer>,
        reads: [Range; 2],
        writes: Range,
    ) {
        let TaskPlace { stream_id, sq_id, task_id, .. } = task;
        self.order.task_begins(sq_id, by.map(|by| (by.origin.launch, by.call)));
        let launch = by.map(|by| by.origin.launch);
        if let Some(launch) = launch {
            self.used.entry(launch).or_default().insert(sq_id);
        }
        let receiver =
            launch.and_then(|launch| self.launches.get(&launch)).map(|(stream, _)| Receiver::Stream(*stream));
        let maker = Maker::Task { kind, stream_id, sq_id, task_id, launch };
        self.transfer(Who::Queue(sq_id), reads, writes, maker, receiver);
    }

    fn transfer(&mut self, who: Who, reads: [Range; 2], writes: Range, maker: Maker, receiver: Option<Receiver>) {
        // A reduce reads what it writes: the write stands for both.
        for read in reads.into_iter().filter(|read| read.len != 0 && *read != writes) {
            self.access(who, read, Kind::Read, maker, receiver);
        }
        if writes.len != 0 {
            self.access(who, writes, Kind::Write, maker, receiver);
        }
    }

    fn notify(&mut self, by: NotifyUser) -> Who {
        match by {
            NotifyUser::Task(task) => Who::Queue(task.sq_id),
            NotifyUser::Stream(id) => {
                self.operation(id);
                Who::Stream(id)
            }
        }
    }

    fn ended(&mut self, launch: u64, drained: bool) {
        let Some((stream_id, _)) = self.launches.get(&launch) else { return };
        let used = self.used.remove(&launch).unwrap_or_default();
        if drained {
            for sq_id in used {
                self.order.joins(Who::Stream(*stream_id), Who::Queue(sq_id));
            }
        }
    }
}

impl Observer for RaceCheck {
    fn on(&mut self, event: &Event) {
        match event.what {
            What::Alloc { host, range, .. } => {
                self.call_of(host);
                self.history.forget(range.addr..range.addr + range.len);
                self.allocations.insert(range.addr, range.len);
            }
            What::Free { host, range } => {
                if let Some(host) = host {
                    let call = self.call_of(host);
                    let receiver = Some(Receiver::Host(host));
                    self.access(Who::Call(call), range, Kind::Write, Maker::Free { host: host.0 }, receiver);
                }
                self.history.forget(range.addr..range.addr + range.len);
                self.allocations.remove(&range.addr);
            }
            What::HostCopy { host, reads, writes } => {
                let call = self.call_of(host);
                let receiver = Some(Receiver::Host(host));
                let maker = Maker::HostCopy { host: host.0 };
                self.transfer(Who::Call(call), [reads, Range::default()], writes, maker, receiver);
            }
            What::ThreadsAcquired { host, ref threads, .. } => {
                self.call_of(host);
                self.queues.extend(threads.iter().map(|thread| (thread.handle, thread.sq_id)));
            }
            What::ThreadsReleased { host, ref threads } => {
                let call = self.call_of(host);
                for sq_id in threads.iter().filter_map(|handle| self.queues.remove(handle)) {
                    self.order.joins(Who::Call(call), Who::Queue(sq_id));
                    self.order.queue_removed(sq_id);
                }
            }
            What::HostReturned { host } => {
                if self.calling.remove(&host) {
                    self.order.call_returns(host.0);
                }
            }
            What::Submitted { host, stream_id, .. } => {
                let call = self.call_of(host);
                self.order.submits(call, stream_id);
            }
            What::StreamTransfer { stream_id, reads, writes } => {
                self.operation(stream_id);
                let maker = Maker::StreamTransfer { stream_id };
                self.transfer(Who::Stream(stream_id), reads, writes, maker, Some(Receiver::Stream(stream_id)));
            }
            What::OperationEnded { stream_id } => {
                self.operation(stream_id);
                self.begun.remove(&stream_id);
                self.order.operation_ends(stream_id);
            }
            What::Synchronized { host, stream_id } => {
                let call = self.call_of(host);
                self.order.joins(Who::Call(call), Who::Stream(stream_id));
            }
            What::LaunchStarted { origin: Origin { launch, .. }, stream_id, ref kernel } => {
                self.operation(stream_id);
                self.order.launch_starts(launch, stream_id);
                self.launches.insert(launch, (stream_id, Arc::clone(kernel)));
            }
            What::LaunchReturned { origin, .. } => self.order.launch_returns(origin.launch),
            What::LaunchEnded { launch, drained } => self.ended(launch, drained),
            What::Call { origin, seq, .. } => self.order.kernel_calls(origin.launch, seq),
            What::Observed { origin, sq_id, .. } => self.order.observes(origin.launch, sq_id),
            What::Doorbell { sq_id, tail, .. } => self.order.rung(sq_id, tail),
            What::TaskBegan { task, kind, by, reads, writes } => self.task_began(task, kind, by, reads, writes),
            What::HeadPublished { sq_id, head } => self.order.advances(sq_id, head),
            What::TasksDropped { sq_id, .. } => self.order.drops_tasks(sq_id),
            What::QueueReset { sq_id } => {
                self.order.drops_tasks(sq_id);
                self.order.host_joins(sq_id);
            }
            What::NotifySet { id, by, from, to } => {
                let who = self.notify(by);
                if from == 0 {
                    self.order.notify_forgotten(id);
                }
                if from != to {
                    self.order.records(who, id);
                }
            }
            What::NotifyTaken { id, by, to } => {
                let who = self.notify(by);
                self.order.takes(who, id, to != 0);
            }
            What::LaunchQueued { .. }
            | What::CallRefused { .. }
            | What::DoorbellRefused { .. }
            | What::TaskEnded { .. }
            | What::Error(_) => {}
        }
    }
}
