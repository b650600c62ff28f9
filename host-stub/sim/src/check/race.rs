//! Race check: two accesses to one byte, at least one of them a write, that nothing orders.
//!
//! An observer of the event stream. It follows what orders the actors ([`HappensBefore`]) and keeps the accesses
//! ([`History`]); it never looks at memory, and a race is found whatever order the two accesses took.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops;
use std::sync::Arc;

use hcomm_aicpu::spec::record::EntryPoint;
use hcomm_aicpu::spec::soc::Soc;

use super::channels::{ChannelUse, DOORBELL, Doorbell, Ringer};
use super::findings::{Findings, Receiver, Report};
use super::happens_before::{CallId, HappensBefore, Who};
use super::history::{Access, Conflict, History, Kind};
use super::joint::JointCheck;
use super::report::{CallPlace, Cause, Maker, Race, RacingAccess, RacyAllocation, ThreadName};
use super::start::{Early, EarlyTask, StartRule};
use crate::event::{
    Caller, ChannelName, Event, HostThread, NotifyUser, Observer, Origin, Queuer, Range, RecordId, SiteId, TaskPlace,
    What,
};
use crate::stream::StreamId;

/// Events have numbers from here on among the notifies, whose ids are smaller.
const EVENTS: u64 = 1 << 31;
/// Numbers of the queues, streams, launches and notifies of one device.
const OF_DEVICE: u64 = 1 << 40;

/// Kind of a task that waits, by name.
const WAIT: &str = "notify wait";
/// Launches that are kept without a look at what can be forgotten.
const SMALL: usize = 256;

/// A thread that the host has acquired and not released.
struct Thread {
    /// Its queue, among those of all devices.
    queue: u64,
    index: usize,
    count: usize,
    caller: Caller,
}

/// A launch whose tasks may still begin.
struct Launch {
    device: usize,
    stream_id: StreamId,
    /// Number of the name of its kernel.
    kernel: u32,
    /// Its stream has gone on: nothing joins its queues any more.
    has_ended: bool,
}

/// One of the devices.
struct Member {
    /// On an Ascend910 a kernel does not learn that a queue has drained.
    drains_order: bool,
    /// The warning about that was given.
    has_warned: bool,
    /// The start rule, if it is checked.
    start: Option<StartRule>,
    findings: Arc<Findings>,
    /// Its rank, once it has a channel.
    rank: Option<u32>,
}

/// What a device brings to the check.
pub struct RaceMember {
    /// Where what is found about it goes.
    pub findings: Arc<Findings>,
    /// Its chip.
    pub soc: Soc,
    /// The start rule of `sync`, if it is checked: the race check knows what comes before what.
    pub start: Option<StartRule>,
}

/// What the check keeps of all devices that are joined: transfers and records go from one to another.
#[derive(Default)]
pub struct RaceCheck {
    members: BTreeMap<usize, Member>,
    /// Device of the event that is looked at.
    device: usize,
    channels: ChannelUse,
    order: HappensBefore,
    history: History<Maker>,
    /// User allocations: length, and where they were made, by first byte.
    allocations: BTreeMap<u64, (u64, SiteId)>,
    /// Host threads that are inside a call.
    calling: BTreeSet<HostThread>,
    /// Streams whose oldest operation has begun.
    begun: BTreeSet<u64>,
    launches: BTreeMap<u64, Launch>,
    /// Names of kernels.
    kernels: Vec<Arc<str>>,
    /// Queues on which a launch that runs has tasks.
    used: BTreeMap<u64, BTreeSet<u64>>,
    /// By handle.
    threads: BTreeMap<u64, Thread>,
    /// Tasks of each queue since its thread was acquired.
    tasks: BTreeMap<u64, u64>,
    /// Where the host has submitted the operations of each stream that have not begun, and the one that has.
    submitted: BTreeMap<u64, (VecDeque<SiteId>, SiteId)>,
    /// Launches at which it is time to forget some.
    sweep_at: usize,
}

impl RaceCheck {
    fn of_device(&self) -> ops::Range<u64> {
        let first = self.device as u64 * OF_DEVICE;
        first..first + OF_DEVICE
    }

    /// A number of the device whose event is looked at, among those of all devices.
    fn id(&self, id: impl Into<u64>) -> u64 {
        self.device as u64 * OF_DEVICE + id.into()
    }

    fn member(&mut self) -> Option<&mut Member> {
        self.members.get_mut(&self.device)
    }

    fn add(&self, report: impl Into<Report>, receiver: Option<Receiver>) {
        if let Some(member) = self.members.get(&self.device) {
            member.findings.add(report, receiver);
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
    fn operation(&mut self, stream_id: StreamId) -> u64 {
        let stream = self.id(stream_id);
        if self.begun.insert(stream) {
            self.order.operation_begins(stream);
            if let Some((waiting, begun)) = self.submitted.get_mut(&stream) {
                *begun = waiting.pop_front().unwrap_or_default();
            }
        }
        stream
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
            self.report(conflict, maker, kind, Cause::Unordered, receiver);
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

    fn report(
        &mut self,
        conflict: Conflict<Maker>,
        maker: Maker,
        kind: Kind,
        cause: Cause,
        receiver: Option<Receiver>,
    ) {
        let Conflict { range, earlier } = conflict;
        let range = Range { addr: range.start, len: range.end - range.start };
        let block = self.allocations.range(..=range.addr).next_back();
        let allocation = block.map(|(addr, (len, site))| RacyAllocation {
            range: Range { addr: *addr, len: *len },
            place: CallPlace::of_site(*site),
        });
        let (first, second) = (self.named(earlier.site, earlier.kind), self.named(maker, kind));
        self.add(Race { first, second, range, allocation, cause, count: 1 }, receiver);
    }

    fn named(&self, maker: Maker, kind: Kind) -> RacingAccess {
        let (kernel, thread) = match maker {
            Maker::Task { device, kernel, sq_id, .. } => {
                let thread = self.thread_name(device as u64 * OF_DEVICE + u64::from(sq_id));
                (kernel.and_then(|kernel| self.kernels.get(kernel as usize)).cloned(), thread)
            }
            Maker::Own { kernel, .. } => (kernel.and_then(|kernel| self.kernels.get(kernel as usize)).cloned(), None),
            _ => (None, None),
        };
        let rank = self.members.get(&maker.device()).and_then(|member| member.rank);
        RacingAccess { maker, kind, rank, kernel, thread, place: CallPlace::of_site(maker.site()) }
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
        let (launch, queue) = (self.id(launch), self.id(sq_id));
        let Some(member) = self.member() else { return };
        if member.drains_order {
            return self.order.observes(launch, queue);
        }
        if !std::mem::replace(&mut member.has_warned, true) {
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
        let (device, queue) = (self.device, self.id(sq_id));
        self.order.task_begins(queue, by.map(|by| (self.id(by.origin.launch), by.call)));
        let launch = by.map(|by| by.origin.launch);
        if let Some(launch) = launch {
            self.used.entry(self.id(launch)).or_default().insert(queue);
        }
        let number = self.tasks.entry(queue).or_default();
        *number += 1;
        let number = *number;
        let of = launch.and_then(|launch| self.launches.get(&self.id(launch)));
        let (receiver, kernel) = (of.map(|of| Receiver::Stream(of.stream_id)), of.map(|of| of.kernel));
        let site = by.map_or(SiteId::UNKNOWN, |by| by.site);
        let maker = Maker::Task { kind, device, stream_id, sq_id, number, peer: None, launch, kernel, site };
        if let Some(launch) = launch {
            if kind == WAIT {
                if let Some(start) = self.start() {
                    start.wait_begins(launch, sq_id);
                }
            } else if writes.len != 0 {
                self.transfer_begins(launch, sq_id, maker);
            }
        }
        let doorbell = || Doorbell::new(launch, number, kernel, site, receiver);
        self.channels.task_begins(queue, (kind == DOORBELL).then(doorbell));
        self.transfer(Who::Queue(queue), reads, writes, maker, receiver);
    }

    fn start(&mut self) -> Option<&mut StartRule> {
        self.member()?.start.as_mut()
    }

    /// A transfer of `launch` begins on a queue of its device.
    fn transfer_begins(&mut self, launch: u64, sq_id: u32, maker: Maker) {
        let queue = self.id(sq_id);
        let Some(start) = self.members.get_mut(&self.device).and_then(|member| member.start.as_mut()) else { return };
        if let Some((_, clock)) = self.order.now(Who::Queue(queue))
            && let Some(early) = start.transfer_begins(launch, sq_id, clock, maker)
        {
            self.report_early(early);
        }
    }

    /// A doorbell on the queue of `task` starts entries of a channel: also those of other threads, whose doorbells are not
    /// rung yet.
    fn channel_rung(&mut self, task: TaskPlace, channel: ChannelName) {
        let queue = self.id(task.sq_id);
        self.order.doorbell_begins(queue);
        let Some(&Doorbell { launch, number, kernel, site, receiver, .. }) = self.channels.doorbell(queue) else {
            return;
        };
        let (device, TaskPlace { stream_id, sq_id, .. }) = (self.device, task);
        let peer = Some(channel.peer_rank);
        let maker = Maker::Task { kind: DOORBELL, device, stream_id, sq_id, number, peer, launch, kernel, site };
        let Some((actor, clock)) = self.order.now(Who::Queue(queue)) else { return };
        let launch_id = launch.map(|launch| self.id(launch));
        let called = launch_id.and_then(|launch| self.order.now(Who::Launch(launch)));
        let (task, launch) =
            ((actor, clock.time_of(actor)), called.map(|(actor, clock)| (actor, clock.time_of(actor))));
        let ringer = Ringer { task, launch, maker };
        let known = called.map(|(_, clock)| clock);
        if let Some(last) = self.channels.rings((device, channel.slot), ringer, clock, known) {
            let (first, second) = (self.named(last, Kind::Write), self.named(maker, Kind::Write));
            let cause = Cause::Channel { rank: channel.rank, peer_rank: channel.peer_rank };
            let race = Race { first, second, range: Range::default(), allocation: None, cause, count: 1 };
            self.add(race, receiver);
        }
    }

    fn entry(&mut self, task: TaskPlace, peer: u32, of: &Entry) {
        let (device, queue, TaskPlace { stream_id, sq_id, .. }) = (self.device, self.id(task.sq_id), task);
        let Entry { kind, is_strong, reads, writes, record } = *of;
        let (launch, number, kernel, site, receiver) = match self.channels.entry_begins(queue) {
            Some(of) => (of.launch, of.number, of.kernel, of.site, of.receiver),
            // A record of a notify by a write value.
            None => (None, self.tasks.get(&queue).copied().unwrap_or(0), None, SiteId::UNKNOWN, None),
        };
        let maker = Maker::Task { kind, device, stream_id, sq_id, number, peer: Some(peer), launch, kernel, site };
        if let Some(launch) = launch.filter(|_| writes.len != 0) {
            self.transfer_begins(launch, sq_id, maker);
        }
        let who = self.order.entry(queue, is_strong, record.is_some() && writes.len != 0);
        self.transfer(who, reads, writes, maker, receiver);
        for (Range { addr, len }, kind) in accesses(reads, writes) {
            for conflict in self.channels.accesses(queue, is_strong, addr..addr + len, kind, maker) {
                self.report(conflict, maker, kind, Cause::Batch, receiver);
            }
        }
        if let Some(record) = record {
            self.order.sends(who, record, is_strong);
        }
    }

    /// The code of a kernel has accessed memory.
    fn own_access(&mut self, launch: u64, range: Range, writes: bool, is_poll: bool, site: SiteId) {
        let (device, id) = (self.device, self.id(launch));
        self.order.launch_accesses(id);
        let of = self.launches.get(&id);
        let (receiver, kernel) = (of.map(|of| Receiver::Stream(of.stream_id)), of.map(|of| of.kernel));
        let maker = Maker::Own { device, launch, kernel, is_poll, site };
        let kind = if writes { Kind::Write } else { Kind::Read };
        self.access(Who::Launch(id), range, kind, maker, receiver);
    }

    fn transfer(&mut self, who: Who, reads: [Range; 2], writes: Range, maker: Maker, receiver: Option<Receiver>) {
        for (range, kind) in accesses(reads, writes) {
            self.access(who, range, kind, maker, receiver);
        }
    }

    /// The wait of queue `sq_id` for a notify is over.
    fn wait_ended(&mut self, sq_id: u32, notify: u32) {
        let queue = self.id(sq_id);
        let Some(start) = self.members.get_mut(&self.device).and_then(|member| member.start.as_mut()) else { return };
        let Some((actor, clock)) = self.order.now(Who::Queue(queue)) else { return };
        for early in start.wait_ends(sq_id, notify, actor, clock) {
            self.report_early(early);
        }
    }

    fn report_early(&self, (maker, notify, sq_id): Early) {
        let Maker::Task { launch, .. } = maker else { return };
        let task = self.named(maker, Kind::Write);
        let of = launch.and_then(|launch| self.launches.get(&self.id(launch)));
        let receiver = of.map(|of| Receiver::Stream(of.stream_id));
        self.add(EarlyTask { task, notify, waiter: self.thread_name(self.id(sq_id)), count: 1 }, receiver);
    }

    fn thread_name(&self, queue: u64) -> Option<ThreadName> {
        let thread = self.threads.values().find(|thread| thread.queue == queue)?;
        let place = CallPlace { caller: thread.caller, text: None };
        Some(ThreadName { index: thread.index, count: thread.count, place })
    }

    /// Who of this device uses a notify.
    fn notify(&mut self, by: NotifyUser) -> Option<Who> {
        match by {
            NotifyUser::Task(task) => Some(Who::Queue(self.id(task.sq_id))),
            NotifyUser::Stream(id) => Some(Who::Stream(self.operation(id))),
            NotifyUser::Peer { .. } => None,
        }
    }

    fn ended(&mut self, launch: u64, drained: bool) {
        let launch = self.id(launch);
        let Some(of) = self.launches.get_mut(&launch) else { return };
        of.has_ended = true;
        let stream_id = of.stream_id;
        let stream = self.id(stream_id);
        let used = self.used.remove(&launch).unwrap_or_default();
        if drained {
            for queue in used {
                self.order.joins(Who::Stream(stream), Who::Queue(queue));
            }
        }
    }
}

/// What an entry does.
struct Entry {
    kind: &'static str,
    is_strong: bool,
    reads: [Range; 2],
    writes: Range,
    record: Option<RecordId>,
}

/// A reduce reads what it writes: the write stands for both.
fn accesses(reads: [Range; 2], writes: Range) -> impl Iterator<Item = (Range, Kind)> {
    let read = move |read: &Range| read.len != 0 && *read != writes;
    let reads = reads.into_iter().filter(read).map(|range| (range, Kind::Read));
    reads.chain((writes.len != 0).then_some((writes, Kind::Write)))
}

impl Observer for RaceCheck {
    fn on(&mut self, event: &Event) {
        self.device = event.device;
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
                    self.access(
                        Who::Call(call),
                        range,
                        Kind::Write,
                        Maker::Free { device: self.device, host: host.0, site },
                        receiver,
                    );
                }
                self.history.forget(range.addr..range.addr + range.len);
                self.allocations.remove(&range.addr);
            }
            What::HostCopy { host, reads, writes, site } => {
                let call = self.call_of(host);
                let receiver = Some(Receiver::Host(host));
                let maker = Maker::HostCopy { device: self.device, host: host.0, site };
                self.transfer(Who::Call(call), [reads, Range::default()], writes, maker, receiver);
            }
            What::ThreadsAcquired { host, ref threads, caller } => {
                self.call_of(host);
                let count = threads.len();
                for (index, thread) in threads.iter().enumerate() {
                    let queue = self.id(thread.sq_id);
                    self.threads.insert(thread.handle, Thread { queue, index, count, caller });
                    self.tasks.remove(&queue);
                    self.order.queue_added(queue);
                }
            }
            What::ThreadsReleased { host, ref threads } => {
                let call = self.call_of(host);
                for queue in threads.iter().filter_map(|handle| Some(self.threads.remove(handle)?.queue)) {
                    self.order.queue_removed(call, queue);
                }
            }
            What::HostReturned { host } => {
                if self.calling.remove(&host) {
                    self.order.call_returns(host.0);
                }
            }
            What::Submitted { host, stream_id, site, .. } => {
                let call = self.call_of(host);
                let stream = self.id(stream_id);
                self.order.submits(call, stream);
                self.submitted.entry(stream).or_default().0.push_back(site);
            }
            What::StreamTransfer { stream_id, reads, writes } => {
                let stream = self.operation(stream_id);
                let site = self.submitted.get(&stream).map_or(SiteId::UNKNOWN, |(_, begun)| *begun);
                let maker = Maker::StreamTransfer { device: self.device, stream_id, site };
                self.transfer(Who::Stream(stream), reads, writes, maker, Some(Receiver::Stream(stream_id)));
            }
            What::OperationEnded { stream_id } => {
                let stream = self.operation(stream_id);
                self.begun.remove(&stream);
                self.order.operation_ends(stream);
            }
            What::Synchronized { host, stream_id, failed } => {
                if failed {
                    // What has failed leaves tasks that nothing orders. The cause is told; what the host does about it is no
                    // second finding.
                    self.order.host_joins_all(self.of_device());
                }
                let call = self.call_of(host);
                self.order.joins(Who::Call(call), Who::Stream(self.id(stream_id)));
            }
            What::EventRecorded { stream_id, event } => {
                let stream = self.operation(stream_id);
                self.order.records(Who::Stream(stream), self.id(EVENTS + u64::from(event)));
            }
            What::EventAwaited { stream_id, event } => {
                let stream = self.operation(stream_id);
                self.order.takes(Who::Stream(stream), self.id(EVENTS + u64::from(event)), true);
            }
            What::EventObserved { host, event } => {
                let call = self.call_of(host);
                self.order.takes(Who::Call(call), self.id(EVENTS + u64::from(event)), true);
            }
            What::EventDestroyed { event, .. } => self.order.notify_forgotten(self.id(EVENTS + u64::from(event))),
            What::LaunchStarted { origin: Origin { launch, .. }, stream_id, ref kernel } => {
                let stream = self.operation(stream_id);
                self.order.launch_starts(self.id(launch), stream);
                if let Some(start) = self.start() {
                    start.launch_starts(launch, stream_id);
                }
                let (kernel, device) = (self.kernel(kernel), self.device);
                self.launches.insert(self.id(launch), Launch { device, stream_id, kernel, has_ended: false });
                if self.launches.len() >= SMALL.max(self.sweep_at) {
                    self.sweep();
                }
            }
            What::LaunchReturned { origin, .. } => self.order.launch_returns(self.id(origin.launch)),
            What::LaunchEnded { launch, drained } => self.ended(launch, drained),
            What::Call { origin, seq, .. } => self.order.kernel_calls(self.id(origin.launch), seq),
            What::Observed { origin, entry, sq_id, .. } => self.observed(origin.launch, entry, sq_id),
            What::CommAcquired { origin, comm } => self.order.acquires(self.id(origin.launch), self.id(comm)),
            What::CommReleased { origin, comm } => self.order.releases(self.id(origin.launch), self.id(comm)),
            What::Doorbell { sq_id, tail, .. } => self.order.rung(self.id(sq_id), tail),
            What::TaskBegan { task, kind, by, reads, writes } => self.task_began(task, kind, by, reads, writes),
            What::HeadPublished { sq_id, head } => self.order.advances(self.id(sq_id), head),
            What::TasksDropped { sq_id, .. } => self.order.drops_tasks(self.id(sq_id)),
            What::QueueSuspended { sq_id } => self.order.host_joins(self.id(sq_id)),
            What::StreamReset { stream_id } => {
                let stream = self.id(stream_id);
                self.begun.remove(&stream);
                self.submitted.remove(&stream);
                self.order.stream_reset(stream);
                let device = self.device;
                let is_of = |of: &&mut Launch| of.device == device && of.stream_id == stream_id;
                for of in self.launches.values_mut().filter(is_of) {
                    of.has_ended = true;
                }
            }
            What::StreamRemoved { stream_id } => {
                let stream = self.id(stream_id);
                self.submitted.remove(&stream);
                self.order.stream_removed(stream);
                if let Some(start) = self.start() {
                    start.stream_removed(stream_id);
                }
            }
            What::QueueReset { sq_id } => {
                self.order.drops_tasks(self.id(sq_id));
                self.order.host_joins(self.id(sq_id));
            }
            What::NotifySet { id, by, from, to } => {
                let (who, notify) = (self.notify(by), self.id(id));
                if from == 0 {
                    self.order.notify_forgotten(notify);
                }
                match by {
                    NotifyUser::Peer { record, .. } => self.order.arrives(record, Some(notify).filter(|_| from != to)),
                    NotifyUser::Task(_) | NotifyUser::Stream(_) => {
                        if let Some(who) = who.filter(|_| from != to) {
                            self.order.records(who, notify);
                        }
                    }
                }
                if let (Some(start), NotifyUser::Stream(stream)) = (self.start(), by) {
                    start.stream_records(stream, id);
                }
            }
            What::NotifyTaken { id, by, to } => {
                if let Some(who) = self.notify(by) {
                    self.order.takes(who, self.id(id), to != 0);
                    if let NotifyUser::Task(task) = by {
                        self.wait_ended(task.sq_id, id);
                    }
                }
            }
            What::ChannelMade { channel } => {
                if let Some(member) = self.member() {
                    member.rank = Some(channel.rank);
                }
            }
            What::ChannelRung { task, channel } => self.channel_rung(task, channel),
            What::Entry { task, channel, kind, is_strong, reads, writes, record } => {
                self.entry(task, channel.peer_rank, &Entry { kind, is_strong, reads, writes, record });
            }
            What::OwnAccess { origin, range, writes, is_poll, site, .. } => {
                self.own_access(origin.launch, range, writes, is_poll, site);
            }
            What::LaunchQueued { .. }
            | What::CallRefused { .. }
            | What::DoorbellRefused { .. }
            | What::TaskEnded { .. }
            | What::Found(_) => {}
            // The device runs nothing after this, and the host may read its memory.
            What::Error(_) => {
                self.order.host_joins_all(self.of_device());
                let device = self.device;
                self.launches.values_mut().filter(|of| of.device == device).for_each(|of| of.has_ended = true);
            }
        }
    }
}

impl JointCheck for RaceCheck {
    type Member = RaceMember;

    fn join(&mut self, device: usize, RaceMember { findings, soc, start }: RaceMember) {
        let drains_order = soc == Soc::Ascend950;
        let member = Member { drains_order, has_warned: false, start, findings, rank: None };
        self.members.insert(device, member);
    }

    fn leave(&mut self, device: usize) {
        self.members.remove(&device);
        self.device = device;
        let of = self.of_device();
        self.order.device_leaves(of.clone());
        let is_left = |id: &u64| !of.contains(id);
        self.begun.retain(is_left);
        self.launches.retain(|id, _| is_left(id));
        self.used.retain(|id, _| is_left(id));
        self.threads.retain(|_, thread| is_left(&thread.queue));
        self.tasks.retain(|id, _| is_left(id));
        self.submitted.retain(|id, _| is_left(id));
        self.channels.device_leaves(device, &of);
    }
}
