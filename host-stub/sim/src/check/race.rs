//! Race check: two accesses to one byte, at least one of them a write, that nothing orders.
//!
//! An observer of the event stream. It follows what orders the actors ([`HappensBefore`]) and keeps the accesses
//! ([`History`]); it never looks at memory, and a race is found whatever order the two accesses took.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use hcomm_aicpu::spec::record::EntryPoint;
use hcomm_aicpu::spec::soc::Soc;

use super::findings::{Findings, Receiver};
use super::happens_before::{CallId, HappensBefore, Who};
use super::history::{Access, Conflict, History, Kind};
use super::report::{CallPlace, Maker, Race, RacingAccess, RacyAllocation, ThreadName};
use super::start::{Early, EarlyTask, StartRule};
use crate::event::{Caller, Event, HostThread, NotifyUser, Observer, Origin, Queuer, Range, SiteId, TaskPlace, What};
use crate::stream::StreamId;

/// Events have numbers from here on among the notifies, whose ids are smaller.
const EVENTS: u32 = 1 << 31;

/// Kind of a task that waits, by name.
const WAIT: &str = "notify wait";
/// Launches that are kept without a look at what can be forgotten.
const SMALL: usize = 256;

/// A thread that the host has acquired and not released.
struct Thread {
    sq_id: u32,
    index: usize,
    count: usize,
    caller: Caller,
}

/// A launch whose tasks may still begin.
struct Launch {
    stream_id: StreamId,
    /// Number of the name of its kernel.
    kernel: u32,
    /// Its stream has gone on: nothing joins its queues any more.
    has_ended: bool,
}

/// The observer.
pub struct RaceCheck {
    order: HappensBefore,
    history: History<Maker>,
    /// User allocations: length, and where they were made, by first byte.
    allocations: BTreeMap<u64, (u64, SiteId)>,
    /// Host threads that are inside a call.
    calling: BTreeSet<HostThread>,
    /// Streams whose oldest operation has begun.
    begun: BTreeSet<StreamId>,
    launches: BTreeMap<u64, Launch>,
    /// Names of kernels.
    kernels: Vec<Arc<str>>,
    /// Queues on which a launch that runs has tasks.
    used: BTreeMap<u64, BTreeSet<u32>>,
    /// By handle.
    threads: BTreeMap<u64, Thread>,
    /// Tasks of each queue since its thread was acquired.
    tasks: BTreeMap<u32, u64>,
    /// Where the host has submitted the operations of each stream that have not begun, and the one that has.
    submitted: BTreeMap<StreamId, (VecDeque<SiteId>, SiteId)>,
    /// Launches at which it is time to forget some.
    sweep_at: usize,
    /// On an Ascend910 a kernel does not learn that a queue has drained.
    drains_order: bool,
    /// The warning about that was given.
    has_warned: bool,
    /// The start rule, if it is checked.
    start: Option<StartRule>,
    findings: Arc<Findings>,
}

impl RaceCheck {
    /// A check of a device with the chip `soc`, which puts what it finds into `findings`.
    ///
    /// It knows what comes before what, so that it follows the start rule of `sync`, too.
    pub fn new(findings: Arc<Findings>, soc: Soc, start: Option<StartRule>) -> Self {
        Self {
            order: HappensBefore::default(),
            history: History::default(),
            allocations: BTreeMap::new(),
            calling: BTreeSet::new(),
            begun: BTreeSet::new(),
            launches: BTreeMap::new(),
            kernels: Vec::new(),
            used: BTreeMap::new(),
            threads: BTreeMap::new(),
            tasks: BTreeMap::new(),
            submitted: BTreeMap::new(),
            drains_order: soc == Soc::Ascend950,
            has_warned: false,
            sweep_at: SMALL,
            start,
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
            if let Some((waiting, begun)) = self.submitted.get_mut(&stream_id) {
                *begun = waiting.pop_front().unwrap_or_default();
            }
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
            self.sweep();
        }
    }

    /// Forgets what everything that is still to come is ordered behind.
    fn sweep(&mut self) {
        let known = self.order.known_to_all();
        self.history.sweep(&known);
        self.order.forget_launches(&known);
        let order = &self.order;
        // A kernel that has returned may be known to all while its tasks are still to come.
        self.launches.retain(|launch, of| !of.has_ended || order.knows_launch(*launch));
        let launches = &self.launches;
        self.used.retain(|launch, _| launches.contains_key(launch));
        self.sweep_at = SMALL.max(2 * self.launches.len());
    }

    fn report(&mut self, conflict: Conflict<Maker>, maker: Maker, kind: Kind, receiver: Option<Receiver>) {
        let Conflict { range, earlier } = conflict;
        let range = Range { addr: range.start, len: range.end - range.start };
        let block = self.allocations.range(..=range.addr).next_back();
        let allocation = block.map(|(addr, (len, site))| RacyAllocation {
            range: Range { addr: *addr, len: *len },
            place: CallPlace::of_site(*site),
        });
        let (first, second) = (self.named(earlier.site, earlier.kind), self.named(maker, kind));
        self.findings.add(Race { first, second, range, allocation, count: 1 }, receiver);
    }

    fn named(&self, maker: Maker, kind: Kind) -> RacingAccess {
        let (kernel, thread) = match maker {
            Maker::Task { kernel, sq_id, .. } => {
                (kernel.and_then(|kernel| self.kernels.get(kernel as usize)).cloned(), self.thread_name(sq_id))
            }
            _ => (None, None),
        };
        RacingAccess { maker, kind, kernel, thread, place: CallPlace::of_site(maker.site()) }
    }

    /// Number of the name of a kernel.
    fn kernel(&mut self, name: &Arc<str>) -> u32 {
        let known = self.kernels.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.kernels.push(Arc::clone(name));
            self.kernels.len() - 1
        }) as u32
    }

    fn observed(&mut self, launch: u64, entry: EntryPoint, sq_id: u32) {
        if self.drains_order {
            return self.order.observes(launch, sq_id);
        }
        if !std::mem::replace(&mut self.has_warned, true) {
            let name = entry.name().unwrap_or("a call");
            log::warn!(
                "{name} orders nothing on this chip: there it does not wait for the tasks of its thread; order them by a notify"
            );
        }
    }

    fn task_began(
        &mut self,
        task: TaskPlace,
        kind: &'static str,
        by: Option<Queuer>,
        reads: [Range; 2],
        writes: Range,
    ) {
        let TaskPlace { stream_id, sq_id, .. } = task;
        self.order.task_begins(sq_id, by.map(|by| (by.origin.launch, by.call)));
        let launch = by.map(|by| by.origin.launch);
        if let Some(launch) = launch {
            self.used.entry(launch).or_default().insert(sq_id);
        }
        let number = self.tasks.entry(sq_id).or_default();
        *number += 1;
        let number = *number;
        let of = launch.and_then(|launch| self.launches.get(&launch));
        let (receiver, kernel) = (of.map(|of| Receiver::Stream(of.stream_id)), of.map(|of| of.kernel));
        let site = by.map_or(SiteId::UNKNOWN, |by| by.site);
        let maker = Maker::Task { kind, stream_id, sq_id, number, launch, kernel, site };
        if let (Some(start), Some(launch)) = (&mut self.start, launch) {
            if kind == WAIT {
                start.wait_begins(launch, sq_id);
            } else if writes.len != 0
                && let Some((_, clock)) = self.order.now(Who::Queue(sq_id))
                && let Some(early) = start.transfer_begins(launch, sq_id, clock, maker)
            {
                self.report_early(early);
            }
        }
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

    /// The wait of queue `sq_id` for a notify is over.
    fn wait_ended(&mut self, sq_id: u32, notify: u32) {
        let (Some(start), Some((actor, clock))) = (&mut self.start, self.order.now(Who::Queue(sq_id))) else { return };
        for early in start.wait_ends(sq_id, notify, actor, clock) {
            self.report_early(early);
        }
    }

    fn report_early(&self, (maker, notify, sq_id): Early) {
        let Maker::Task { launch, .. } = maker else { return };
        let task = self.named(maker, Kind::Write);
        let receiver = launch.and_then(|launch| self.launches.get(&launch)).map(|of| Receiver::Stream(of.stream_id));
        self.findings.add(EarlyTask { task, notify, waiter: self.thread_name(sq_id), count: 1 }, receiver);
    }

    fn thread_name(&self, sq_id: u32) -> Option<ThreadName> {
        let thread = self.threads.values().find(|thread| thread.sq_id == sq_id)?;
        let place = CallPlace { caller: thread.caller, text: None };
        Some(ThreadName { index: thread.index, count: thread.count, place })
    }

    /// Who uses a notify. `None`: another device, whose order is not followed here.
    fn notify(&mut self, by: NotifyUser) -> Option<Who> {
        match by {
            NotifyUser::Task(task) => Some(Who::Queue(task.sq_id)),
            NotifyUser::Stream(id) => {
                self.operation(id);
                Some(Who::Stream(id))
            }
            NotifyUser::Peer { .. } => None,
        }
    }

    fn ended(&mut self, launch: u64, drained: bool) {
        let Some(of) = self.launches.get_mut(&launch) else { return };
        of.has_ended = true;
        let stream_id = of.stream_id;
        let used = self.used.remove(&launch).unwrap_or_default();
        if drained {
            for sq_id in used {
                self.order.joins(Who::Stream(stream_id), Who::Queue(sq_id));
            }
        }
    }
}

impl Observer for RaceCheck {
    fn on(&mut self, event: &Event) {
        match event.what {
            What::Alloc { host, range, site, .. } => {
                self.call_of(host);
                self.history.forget(range.addr..range.addr + range.len);
                self.allocations.insert(range.addr, (range.len, site));
            }
            What::Free { host, range, site } => {
                if let Some(host) = host {
                    let call = self.call_of(host);
                    let receiver = Some(Receiver::Host(host));
                    self.access(Who::Call(call), range, Kind::Write, Maker::Free { host: host.0, site }, receiver);
                }
                self.history.forget(range.addr..range.addr + range.len);
                self.allocations.remove(&range.addr);
            }
            What::HostCopy { host, reads, writes, site } => {
                let call = self.call_of(host);
                let receiver = Some(Receiver::Host(host));
                let maker = Maker::HostCopy { host: host.0, site };
                self.transfer(Who::Call(call), [reads, Range::default()], writes, maker, receiver);
            }
            What::ThreadsAcquired { host, ref threads, caller } => {
                self.call_of(host);
                let count = threads.len();
                for (index, thread) in threads.iter().enumerate() {
                    let sq_id = thread.sq_id;
                    self.threads.insert(thread.handle, Thread { sq_id, index, count, caller });
                    self.tasks.remove(&sq_id);
                    self.order.queue_added(sq_id);
                }
            }
            What::ThreadsReleased { host, ref threads } => {
                let call = self.call_of(host);
                for sq_id in threads.iter().filter_map(|handle| Some(self.threads.remove(handle)?.sq_id)) {
                    self.order.joins(Who::Call(call), Who::Queue(sq_id));
                    self.order.queue_removed(sq_id);
                }
            }
            What::HostReturned { host } => {
                if self.calling.remove(&host) {
                    self.order.call_returns(host.0);
                }
            }
            What::Submitted { host, stream_id, site, .. } => {
                let call = self.call_of(host);
                self.order.submits(call, stream_id);
                self.submitted.entry(stream_id).or_default().0.push_back(site);
            }
            What::StreamTransfer { stream_id, reads, writes } => {
                self.operation(stream_id);
                let site = self.submitted.get(&stream_id).map_or(SiteId::UNKNOWN, |(_, begun)| *begun);
                let maker = Maker::StreamTransfer { stream_id, site };
                self.transfer(Who::Stream(stream_id), reads, writes, maker, Some(Receiver::Stream(stream_id)));
            }
            What::OperationEnded { stream_id } => {
                self.operation(stream_id);
                self.begun.remove(&stream_id);
                self.order.operation_ends(stream_id);
            }
            What::Synchronized { host, stream_id, failed } => {
                if failed {
                    // What has failed leaves tasks that nothing orders. The cause is told; what the host does about it is no
                    // second finding.
                    self.order.host_joins_all();
                }
                let call = self.call_of(host);
                self.order.joins(Who::Call(call), Who::Stream(stream_id));
            }
            What::EventRecorded { stream_id, event } => {
                self.operation(stream_id);
                self.order.records(Who::Stream(stream_id), EVENTS + event);
            }
            What::EventAwaited { stream_id, event } => {
                self.operation(stream_id);
                self.order.takes(Who::Stream(stream_id), EVENTS + event, true);
            }
            What::EventObserved { host, event } => {
                let call = self.call_of(host);
                self.order.takes(Who::Call(call), EVENTS + event, true);
            }
            What::EventDestroyed { event, .. } => self.order.notify_forgotten(EVENTS + event),
            What::LaunchStarted { origin: Origin { launch, .. }, stream_id, ref kernel } => {
                self.operation(stream_id);
                self.order.launch_starts(launch, stream_id);
                if let Some(start) = &mut self.start {
                    start.launch_starts(launch, stream_id);
                }
                let kernel = self.kernel(kernel);
                self.launches.insert(launch, Launch { stream_id, kernel, has_ended: false });
                if self.launches.len() >= self.sweep_at {
                    self.sweep();
                }
            }
            What::LaunchReturned { origin, .. } => self.order.launch_returns(origin.launch),
            What::LaunchEnded { launch, drained } => self.ended(launch, drained),
            What::Call { origin, seq, .. } => self.order.kernel_calls(origin.launch, seq),
            What::Observed { origin, entry, sq_id, .. } => self.observed(origin.launch, entry, sq_id),
            What::CommAcquired { origin, comm } => self.order.acquires(origin.launch, comm),
            What::CommReleased { origin, comm } => self.order.releases(origin.launch, comm),
            What::Doorbell { sq_id, tail, .. } => self.order.rung(sq_id, tail),
            What::TaskBegan { task, kind, by, reads, writes } => self.task_began(task, kind, by, reads, writes),
            What::HeadPublished { sq_id, head } => self.order.advances(sq_id, head),
            What::TasksDropped { sq_id, .. } => self.order.drops_tasks(sq_id),
            What::QueueSuspended { sq_id } => self.order.host_joins(sq_id),
            What::StreamReset { stream_id } => {
                self.begun.remove(&stream_id);
                self.submitted.remove(&stream_id);
                self.order.stream_reset(stream_id);
                for of in self.launches.values_mut().filter(|of| of.stream_id == stream_id) {
                    of.has_ended = true;
                }
            }
            What::QueueReset { sq_id } => {
                self.order.drops_tasks(sq_id);
                self.order.host_joins(sq_id);
            }
            What::NotifySet { id, by, from, to } => {
                let who = self.notify(by);
                if from == 0 {
                    self.order.notify_forgotten(id);
                }
                if let Some(who) = who.filter(|_| from != to) {
                    self.order.records(who, id);
                }
                if let (Some(start), NotifyUser::Stream(stream)) = (&mut self.start, by) {
                    start.stream_records(stream, id);
                }
            }
            What::NotifyTaken { id, by, to } => {
                if let Some(who) = self.notify(by) {
                    self.order.takes(who, id, to != 0);
                    if let Who::Queue(sq_id) = who {
                        self.wait_ended(sq_id, id);
                    }
                }
            }
            What::LaunchQueued { .. }
            | What::CallRefused { .. }
            | What::DoorbellRefused { .. }
            | What::TaskEnded { .. } => {}
            // The device runs nothing after this, and the host may read its memory.
            What::Error(_) => {
                self.order.host_joins_all();
                self.launches.values_mut().for_each(|of| of.has_ended = true);
            }
        }
    }
}
