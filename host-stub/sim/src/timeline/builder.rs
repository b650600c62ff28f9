//! Makes a timeline from the event stream.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::memory::Allocations;
use super::model::{About, Arrow, ArrowKind, Clock, Slice, SliceId, SliceKind, Timeline, TrackKind, Value};
use super::tracks::{ThreadName, Tracks};
use crate::error::DeviceError;
use crate::event::{Caller, Event, HostThread, NotifyUser, Observer, Origin, Queuer, Range, SiteId, TaskPlace, What};
use crate::ids::StreamId;

/// Most slices that are kept; later ones are only counted.
const MAX_SLICES: usize = 4 << 20;
/// Number of a slice for which there was no room.
const NO_SLICE: SliceId = SliceId::MAX;
/// End of a slice that has not ended.
const OPEN: u64 = u64::MAX;

/// An operation of a stream that has not ended.
struct Operation {
    name: Arc<str>,
    kind: SliceKind,
    /// The call of the host that has queued it, and when.
    call: SliceId,
    submitted_ns: u64,
}

#[derive(Default)]
struct Stream {
    operations: VecDeque<Operation>,
    /// Kernel of the next launch that is submitted.
    kernel: Option<Arc<str>>,
    /// Slice of the first operation, once something was told of it.
    open: Option<SliceId>,
    /// The last operation that has ended, and when.
    ended: Option<(SliceId, u64)>,
}

/// A doorbell whose tasks have not all begun.
struct Doorbell {
    slice: SliceId,
    at_ns: u64,
    tail: u32,
    has_arrow: bool,
}

#[derive(Default)]
struct Queue {
    doorbells: VecDeque<Doorbell>,
    task: Option<SliceId>,
    /// Lane of the engines that moves bytes for the task, and the slice there.
    lane: Option<(usize, SliceId)>,
    /// Tasks that have begun since its thread was acquired.
    tasks: u64,
    /// The last one that has begun.
    last: Option<SliceId>,
}

/// The observer.
#[derive(Default)]
pub struct Builder {
    timeline: Timeline,
    tracks: Tracks,
    allocations: Allocations,
    names: HashMap<&'static str, Arc<str>>,
    now_ns: u64,
    /// Calls that host threads are in.
    calls: HashMap<HostThread, SliceId>,
    streams: HashMap<StreamId, Stream>,
    queues: HashMap<u32, Queue>,
    kernels: HashMap<u64, (SliceId, Arc<str>)>,
    /// Lanes of the engines: whether each is in use.
    lanes: Vec<bool>,
    /// Records of each notify that no wait has taken.
    records: HashMap<u32, Vec<(SliceId, u64)>>,
}

impl Builder {
    /// For the device in slot `device` of the process.
    pub fn new(device: usize, clock: Clock) -> Self {
        Self { timeline: Timeline { device, clock, ..Timeline::default() }, ..Self::default() }
    }

    /// Slices so far.
    pub fn slice_count(&self) -> usize {
        self.timeline.slices.len()
    }

    /// The timeline so far. What has not ended ends now. `text` knows the places of calls.
    pub fn timeline(&self, text: &dyn Fn(SiteId) -> Option<Arc<str>>) -> Timeline {
        let mut timeline = self.timeline.clone();
        for details in timeline.slices.iter_mut().map(|slice| &mut slice.details) {
            details.retain_mut(|(_, value)| match *value {
                Value::Site(site) => text(site).map(|text| *value = Value::Text(text)).is_some(),
                _ => true,
            });
        }
        for slice in timeline.slices.iter_mut().filter(|slice| slice.end_ns == OPEN) {
            slice.end_ns = self.now_ns.max(slice.start_ns);
            slice.details.push(("state", Value::Name("has not ended")));
        }
        timeline
    }

    fn name(&mut self, name: &'static str) -> Arc<str> {
        Arc::clone(self.names.entry(name).or_insert_with(|| name.into()))
    }

    /// Begins a slice.
    fn begin(&mut self, kind: SliceKind, name: Arc<str>, on: (TrackKind, u64), about: About) -> SliceId {
        let timeline = &mut self.timeline;
        if timeline.slices.len() >= MAX_SLICES {
            timeline.lost += 1;
            return NO_SLICE;
        }
        let track = self.tracks.id(&mut timeline.tracks, on.0, on.1);
        let (start_ns, end_ns) = (self.now_ns, OPEN);
        let slice = Slice { track, start_ns, end_ns, kind, name, about, details: Vec::new(), finding: None };
        timeline.slices.push(slice);
        timeline.slices.len() as SliceId - 1
    }

    fn end(&mut self, id: SliceId) {
        if let Some(slice) = self.timeline.slices.get_mut(id as usize) {
            slice.end_ns = self.now_ns;
        }
    }

    /// A slice without a duration.
    fn point(&mut self, kind: SliceKind, name: Arc<str>, on: (TrackKind, u64)) -> SliceId {
        let id = self.begin(kind, name, on, About::Nothing);
        self.end(id);
        id
    }

    fn detail(&mut self, id: SliceId, name: &'static str, value: Value) {
        if let Some(slice) = self.timeline.slices.get_mut(id as usize) {
            slice.details.push((name, value));
        }
    }

    fn called_at(&mut self, id: SliceId, site: SiteId) {
        let is_new = self.timeline.slices.get(id as usize).is_some_and(|slice| {
            site != SiteId::UNKNOWN && !slice.details.iter().any(|(name, _)| *name == "called at")
        });
        if is_new {
            self.detail(id, "called at", Value::Site(site));
        }
    }

    fn comm(&mut self, what: &'static str, Origin { core, .. }: Origin, comm: u32) {
        let name = self.name(what);
        let id = self.point(SliceKind::Call, name, (TrackKind::Core, core as u64));
        self.detail(id, "communicator", Value::Number(comm.into()));
    }

    fn rename(&mut self, id: SliceId, name: &'static str) {
        let name = self.name(name);
        if let Some(slice) = self.timeline.slices.get_mut(id as usize) {
            slice.name = name;
        }
    }

    fn find(&mut self, id: SliceId, text: &Arc<str>) {
        if let Some(slice) = self.timeline.slices.get_mut(id as usize) {
            slice.finding.get_or_insert_with(|| Arc::clone(text));
        }
    }

    fn arrow(&mut self, kind: ArrowKind, (from, from_ns): (SliceId, u64), to: SliceId) {
        if from != NO_SLICE && to != NO_SLICE {
            self.timeline.arrows.push(Arrow { kind, from, from_ns, to, to_ns: self.now_ns });
        }
    }

    /// The call that a thread of the host is in; its first event begins it.
    fn call(&mut self, host: HostThread, kind: SliceKind, name: &'static str) -> SliceId {
        if let Some(id) = self.calls.get(&host) {
            return *id;
        }
        let name = self.name(name);
        let id = self.begin(kind, name, (TrackKind::Host, host.0), About::Host(host.0));
        self.calls.insert(host, id);
        id
    }

    fn submitted(&mut self, host: HostThread, stream_id: StreamId, operation: &'static str, site: SiteId) {
        let (is_wait, text) = match operation {
            "synchronize" => (true, operation),
            "notify wait" => (false, "queue a notify wait"),
            "notify record" => (false, "queue a notify record"),
            "transfer" => (false, "queue a copy or reduce"),
            other => (false, other),
        };
        let call = self.call(host, if is_wait { SliceKind::Wait } else { SliceKind::Call }, text);
        self.detail(call, "stream", Value::Number(stream_id.into()));
        self.called_at(call, site);
        let default = self.name(operation);
        let submitted_ns = self.now_ns;
        let stream = self.streams.entry(stream_id).or_default();
        let (kind, name) = match operation {
            "launch" => (SliceKind::Launch, stream.kernel.take().unwrap_or(default)),
            "notify wait" | "synchronize" => (SliceKind::Wait, default),
            _ => (SliceKind::Task, default),
        };
        stream.operations.push_back(Operation { name, kind, call, submitted_ns });
    }

    /// The slice of the first operation of a stream. It has begun when it was submitted, or when the one before it ended.
    fn operation(&mut self, stream_id: StreamId) -> Option<SliceId> {
        let stream = self.streams.entry(stream_id).or_default();
        if stream.open.is_some() {
            return stream.open;
        }
        let first = stream.operations.front()?;
        let start_ns = stream.ended.map_or(0, |(_, at)| at).max(first.submitted_ns);
        let (kind, name) = (first.kind, Arc::clone(&first.name));
        let id = self.begin(kind, name, (TrackKind::Stream, stream_id.into()), About::Stream(stream_id));
        if let Some(slice) = self.timeline.slices.get_mut(id as usize) {
            slice.start_ns = start_ns;
        }
        self.streams.entry(stream_id).or_default().open = Some(id);
        Some(id)
    }

    fn operation_ended(&mut self, stream_id: StreamId) {
        let id = self.operation(stream_id);
        let at = self.now_ns;
        let stream = self.streams.entry(stream_id).or_default();
        stream.operations.pop_front();
        stream.open = None;
        if let Some(id) = id {
            stream.ended = Some((id, at));
            self.end(id);
        }
    }

    fn synchronized(&mut self, host: HostThread, stream_id: StreamId) {
        let call = self.call(host, SliceKind::Wait, "synchronize");
        if let Some(ended) = self.streams.get(&stream_id).and_then(|stream| stream.ended) {
            self.arrow(ArrowKind::Synchronize, ended, call);
        }
    }

    fn launch_started(&mut self, Origin { launch, core }: Origin, stream_id: StreamId, kernel: &Arc<str>) {
        let operation = self.operation(stream_id);
        let first = self.streams.get(&stream_id).and_then(|stream| stream.operations.front());
        let call = first.map(|first| (first.call, first.submitted_ns));
        let id =
            self.begin(SliceKind::Kernel, Arc::clone(kernel), (TrackKind::Core, core as u64), About::Launch(launch));
        for slice in operation.into_iter().chain([id]) {
            self.detail(slice, "launch", Value::Number(launch));
        }
        self.detail(id, "stream", Value::Number(stream_id.into()));
        if let Some(call) = call {
            self.arrow(ArrowKind::Launch, call, id);
        }
        self.kernels.insert(launch, (id, Arc::clone(kernel)));
    }

    fn doorbell(&mut self, by: Option<Origin>, sq_id: u32, tail: u32) -> SliceId {
        let on = by.map_or((TrackKind::Queue, sq_id.into()), |by| (TrackKind::Core, by.core as u64));
        let name = self.name("doorbell");
        let id = self.point(SliceKind::Call, name, on);
        self.detail(id, "sq", Value::Number(sq_id.into()));
        self.detail(id, "tail", Value::Number(tail.into()));
        id
    }

    fn task_began(
        &mut self,
        task: TaskPlace,
        kind: &'static str,
        by: Option<Queuer>,
        reads: [Range; 2],
        writes: Range,
    ) {
        let TaskPlace { stream_id, sq_id, slot, task_id } = task;
        let queue = self.queues.entry(sq_id).or_default();
        queue.tasks += 1;
        let about = About::Task { sq_id, number: queue.tasks };
        let name = self.name(kind);
        let is_wait = kind == "notify wait";
        let slice_kind = if is_wait { SliceKind::Wait } else { SliceKind::Task };
        let id = self.begin(slice_kind, Arc::clone(&name), (TrackKind::Queue, sq_id.into()), about);
        let moves = writes.len != 0 && kind.starts_with("sdma");
        let lane = moves.then(|| {
            let lane = self.lanes.iter().position(|is_used| !is_used).unwrap_or(self.lanes.len());
            self.lanes.resize(self.lanes.len().max(lane + 1), false);
            self.lanes[lane] = true;
            (lane, self.begin(slice_kind, name, (TrackKind::Engine, lane as u64), about))
        });
        let mut details = vec![
            ("task", Value::Hex(task_id.into())),
            ("slot", Value::Number(slot.into())),
            ("stream", Value::Number(stream_id.into())),
        ];
        if reads[0].len != 0 {
            details.push(("source", self.allocations.place(reads[0])));
        }
        if writes.len != 0 {
            details.push(("destination", self.allocations.place(writes)));
            details.push(("bytes", Value::Number(writes.len)));
        }
        if let Some(Queuer { origin, call, site }) = by {
            details.push(("launch", Value::Number(origin.launch)));
            if let Some((_, kernel)) = self.kernels.get(&origin.launch) {
                details.push(("kernel", Value::Text(Arc::clone(kernel))));
            }
            details.extend(call.map(|call| ("call", Value::Number(call))));
            details.extend((site != SiteId::UNKNOWN).then_some(("called at", Value::Site(site))));
        }
        for slice in [Some(id), lane.map(|(_, slice)| slice)].into_iter().flatten() {
            if let Some(slice) = self.timeline.slices.get_mut(slice as usize) {
                slice.details.clone_from(&details);
            }
        }
        let queue = self.queues.entry(sq_id).or_default();
        (queue.task, queue.last, queue.lane) = (Some(id), Some(id), lane);
        while queue.doorbells.front().is_some_and(|doorbell| doorbell.tail == slot) {
            queue.doorbells.pop_front();
        }
        let first = queue.doorbells.front_mut().filter(|doorbell| !doorbell.has_arrow);
        if let Some((slice, at_ns)) = first.map(|doorbell| {
            doorbell.has_arrow = true;
            (doorbell.slice, doorbell.at_ns)
        }) {
            self.arrow(ArrowKind::Doorbell, (slice, at_ns), id);
        }
    }

    fn task_ended(&mut self, sq_id: u32) {
        let queue = self.queues.entry(sq_id).or_default();
        let (task, lane) = (queue.task.take(), queue.lane.take());
        if let Some((lane, slice)) = lane {
            self.lanes[lane] = false;
            self.end(slice);
        }
        if let Some(task) = task {
            self.end(task);
        }
    }

    /// Nothing that a queue had is carried out any more.
    fn queue_emptied(&mut self, sq_id: u32) {
        self.task_ended(sq_id);
        self.queues.entry(sq_id).or_default().doorbells.clear();
    }

    fn user(&mut self, by: NotifyUser) -> Option<SliceId> {
        match by {
            NotifyUser::Task(task) => self.queues.get(&task.sq_id)?.task,
            NotifyUser::Stream(id) => self.operation(id),
            // A transfer of another device is in that device's timeline.
            NotifyUser::Peer { .. } => None,
        }
    }

    fn notify_set(&mut self, id: u32, by: NotifyUser, from: u32) {
        let Some(slice) = self.user(by) else { return };
        self.detail(slice, "notify", Value::Number(id.into()));
        let at = self.now_ns;
        let records = self.records.entry(id).or_default();
        if from == 0 {
            records.clear();
        }
        records.push((slice, at));
    }

    fn notify_taken(&mut self, id: u32, by: NotifyUser, to: u32) {
        let Some(slice) = self.user(by) else { return };
        self.detail(slice, "notify", Value::Number(id.into()));
        let records = self.records.get(&id).cloned().unwrap_or_default();
        records.into_iter().for_each(|record| self.arrow(ArrowKind::Notify, record, slice));
        if to == 0 {
            self.records.remove(&id);
        }
    }

    fn error(&mut self, error: &DeviceError) {
        let text: Arc<str> = error.to_string().into();
        let slices: Vec<SliceId> = match error {
            DeviceError::Task { queue, .. } | DeviceError::Stalled { queue, .. } => {
                self.queues.get(&queue.sq_id).and_then(|queue| queue.task).into_iter().collect()
            }
            DeviceError::Deadlock(_) => self.queues.values().filter_map(|queue| queue.task).collect(),
            DeviceError::KernelFault { stream_id, .. }
            | DeviceError::KernelTimeout { stream_id, .. }
            | DeviceError::Stream { stream_id, .. }
            | DeviceError::HostTransfer { stream_id, .. } => {
                self.streams.get(stream_id).and_then(|stream| stream.open).into_iter().collect()
            }
            _ => Vec::new(),
        };
        slices.iter().for_each(|slice| self.find(*slice, &text));
        self.timeline.errors.push((self.now_ns, text));
        // Every operation ends with the error.
        let open: Vec<StreamId> = self.streams.keys().copied().collect();
        for stream_id in open {
            while self.streams.get(&stream_id).is_some_and(|stream| !stream.operations.is_empty()) {
                self.operation_ended(stream_id);
            }
        }
    }

    /// The last launch of a stream: its slice there, and that of its kernel.
    fn last_launch(&self, stream_id: StreamId) -> Vec<SliceId> {
        let is_it = |slice: &Slice| slice.kind == SliceKind::Launch && slice.about == About::Stream(stream_id);
        let Some(place) = self.timeline.slices.iter().rposition(is_it) else { return Vec::new() };
        let number = self.timeline.slices[place].details.iter().find_map(|detail| match detail {
            ("launch", Value::Number(number)) => Some(*number),
            _ => None,
        });
        let kernel = number.and_then(|number| self.kernels.get(&number)).map(|(slice, _)| *slice);
        std::iter::once(place as SliceId).chain(kernel).collect()
    }

    /// What a launch or a stream has left, on the launch and on what it is about.
    fn found(&mut self, error: &DeviceError) {
        let text: Arc<str> = error.to_string().into();
        let records = |id: u32| self.records.get(&id).into_iter().flatten().map(|(slice, _)| *slice);
        let slices: Vec<SliceId> = match error {
            DeviceError::UnorderedWork { stream_id, queue, left, .. } => {
                let last = self.queues.get(&queue.sq_id).and_then(|queue| queue.last);
                let left = left.iter().flat_map(|left| records(left.notify.id));
                self.last_launch(*stream_id).into_iter().chain(last).chain(left).collect()
            }
            DeviceError::NotifyLeftSet { stream_id, first, .. } => {
                records(first.notify.id).chain(self.streams.get(stream_id).and_then(|stream| stream.open)).collect()
            }
            DeviceError::RefusalIgnored { stream_id, .. }
            | DeviceError::BatchLeftOpen { stream_id, .. }
            | DeviceError::KernelCode { stream_id, .. } => self.last_launch(*stream_id),
            _ => Vec::new(),
        };
        slices.iter().for_each(|slice| self.find(*slice, &text));
        self.timeline.errors.push((self.now_ns, text));
    }

    fn refused(&mut self, origin: Option<Origin>, code: i32, text: &Arc<str>, site: SiteId) {
        let Some(Origin { core, .. }) = origin else {
            return self.timeline.errors.push((self.now_ns, Arc::clone(text)));
        };
        let name = self.name("refused call");
        let id = self.point(SliceKind::Call, name, (TrackKind::Core, core as u64));
        self.detail(id, "code", Value::Text(code.to_string().into()));
        self.called_at(id, site);
        self.find(id, text);
    }
}

impl Observer for Builder {
    fn on(&mut self, event: &Event) {
        self.now_ns = self.now_ns.max(u64::try_from(event.at.as_nanos()).unwrap_or(OPEN - 1));
        match event.what {
            What::Alloc { host, range, kind, site } => {
                let number = self.allocations.add(range);
                let call = self.call(host, SliceKind::Call, "allocate");
                self.detail(call, "allocation", Value::Number(number));
                self.detail(call, "bytes", Value::Number(range.len));
                self.detail(call, "for", Value::Name(kind.name()));
                self.called_at(call, site);
            }
            What::Free { host, range, site } => {
                let number = self.allocations.remove(range);
                if let Some(host) = host {
                    let call = self.call(host, SliceKind::Call, "free");
                    self.detail(call, "allocation", number.map_or(Value::Hex(range.addr), Value::Number));
                    self.called_at(call, site);
                }
            }
            What::HostCopy { host, reads, writes, site } => {
                let name = match (reads.len, writes.len) {
                    (0, _) => "copy to the device",
                    (_, 0) => "copy from the device",
                    _ => "copy in the device",
                };
                let call = self.call(host, SliceKind::Call, name);
                self.called_at(call, site);
                for (name, range) in [("source", reads), ("destination", writes)] {
                    if range.len != 0 {
                        let place = self.allocations.place(range);
                        self.detail(call, name, place);
                    }
                }
            }
            What::ThreadsAcquired { host, ref threads, caller } => {
                for (index, thread) in (1..).zip(threads.iter()) {
                    let name = ThreadName { stream_id: thread.stream_id, index, count: threads.len() };
                    self.tracks.name_thread(thread.sq_id, name);
                    self.queues.insert(thread.sq_id, Queue::default());
                }
                let call = self.call(host, SliceKind::Call, "acquire threads");
                // Their memory was allocated before, in the same call.
                self.rename(call, "acquire threads");
                self.detail(call, "threads", Value::Number(threads.len() as u64));
                match caller {
                    Caller::Source(place) => {
                        self.detail(call, "called at", Value::Source { file: place.file(), line: place.line() });
                    }
                    Caller::Site(site) => self.called_at(call, site),
                    Caller::Unknown => {}
                }
            }
            What::ThreadsReleased { host, ref threads } => {
                let call = self.call(host, SliceKind::Call, "release threads");
                self.detail(call, "threads", Value::Number(threads.len() as u64));
            }
            What::HostReturned { host } => {
                if let Some(id) = self.calls.remove(&host) {
                    self.end(id);
                }
            }
            What::LaunchQueued { host, stream_id, ref kernel } => {
                let call = self.call(host, SliceKind::Call, "launch");
                self.detail(call, "kernel", Value::Text(Arc::clone(kernel)));
                self.streams.entry(stream_id).or_default().kernel = Some(Arc::clone(kernel));
            }
            What::Submitted { host, stream_id, operation, site } => self.submitted(host, stream_id, operation, site),
            What::Synchronized { host, stream_id, .. } => self.synchronized(host, stream_id),
            What::StreamTransfer { stream_id, reads, writes } => {
                if let Some(id) = self.operation(stream_id) {
                    // Memory of the host has no range.
                    for (name, range) in [("source", reads[0]), ("destination", writes)] {
                        if range.len != 0 {
                            let place = self.allocations.place(range);
                            self.detail(id, name, place);
                        }
                    }
                }
            }
            What::EventRecorded { stream_id, event } | What::EventAwaited { stream_id, event } => {
                if let Some(id) = self.operation(stream_id) {
                    self.detail(id, "event", Value::Number(event.into()));
                }
            }
            What::EventObserved { host, event } => {
                let call = self.call(host, SliceKind::Call, "event was reached");
                self.detail(call, "event", Value::Number(event.into()));
            }
            What::EventDestroyed { host, event } => {
                let call = self.call(host, SliceKind::Call, "destroy event");
                self.detail(call, "event", Value::Number(event.into()));
            }
            What::OperationEnded { stream_id } => self.operation_ended(stream_id),
            What::LaunchStarted { origin, stream_id, ref kernel } => self.launch_started(origin, stream_id, kernel),
            What::LaunchReturned { origin, code } => {
                if let Some((id, _)) = self.kernels.get(&origin.launch) {
                    let id = *id;
                    self.detail(id, "code", Value::Number(code.into()));
                    self.end(id);
                }
            }
            What::Call { origin, seq, entry, sq_id, first, count, site } => {
                let name = self.name(entry.name().unwrap_or("unknown function"));
                let id = self.point(SliceKind::Call, name, (TrackKind::Core, origin.core as u64));
                self.detail(id, "call", Value::Number(seq));
                self.detail(id, "sq", Value::Number(sq_id.into()));
                self.detail(id, "first slot", Value::Number(first.into()));
                self.detail(id, "slots", Value::Number(count.into()));
                self.called_at(id, site);
            }
            What::CallRefused { origin, code, ref text, site } => self.refused(origin, code, text, site),
            What::Observed { origin, sq_id, head, .. } => {
                let name = self.name("queue has drained");
                let id = self.point(SliceKind::Call, name, (TrackKind::Core, origin.core as u64));
                self.detail(id, "sq", Value::Number(sq_id.into()));
                self.detail(id, "head", Value::Number(head.into()));
            }
            What::Doorbell { by, sq_id, tail } => {
                let (slice, at_ns) = (self.doorbell(by, sq_id, tail), self.now_ns);
                let doorbell = Doorbell { slice, at_ns, tail, has_arrow: false };
                self.queues.entry(sq_id).or_default().doorbells.push_back(doorbell);
            }
            What::DoorbellRefused { by, sq_id, tail, ref error } => {
                let id = self.doorbell(Some(by), sq_id, tail);
                self.find(id, &error.to_string().into());
            }
            What::TaskBegan { task, kind, by, reads, writes } => self.task_began(task, kind, by, reads, writes),
            What::TaskEnded { task } => self.task_ended(task.sq_id),
            What::TasksDropped { sq_id, count, reason, .. } => {
                self.queue_emptied(sq_id);
                let name = self.name("tasks dropped");
                let id = self.point(SliceKind::Task, name, (TrackKind::Queue, sq_id.into()));
                self.detail(id, "tasks", Value::Number(count.into()));
                self.find(id, &reason.into());
            }
            What::QueueReset { sq_id } => self.queue_emptied(sq_id),
            What::NotifySet { id, by, from, .. } => self.notify_set(id, by, from),
            What::NotifyTaken { id, by, to } => self.notify_taken(id, by, to),
            What::Error(ref error) => self.error(error),
            What::Found(ref error) => self.found(error),
            What::CommAcquired { origin, comm } => self.comm("communicator locked", origin, comm),
            What::CommReleased { origin, comm } => self.comm("communicator unlocked", origin, comm),
            What::LaunchEnded { .. }
            | What::ChannelMade { .. }
            | What::ChannelRung { .. }
            | What::Entry { .. }
            | What::OwnAccess { .. }
            | What::HeadPublished { .. }
            | What::QueueSuspended { .. }
            | What::StreamReset { .. }
            | What::StreamRemoved { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ORIGIN: Origin = Origin { launch: 1, core: 0 };

    /// A timeline of events, one each microsecond.
    fn timeline(events: Vec<What>) -> Timeline {
        let mut builder = Builder::new(2, Clock::Real);
        for (at, what) in (1..).zip(events) {
            builder.on(&Event { at: Duration::from_micros(at), device: 2, what });
        }
        builder.timeline(&|_| None)
    }

    fn task(sq_id: u32, slot: u32) -> TaskPlace {
        TaskPlace { stream_id: 9 + sq_id, sq_id, slot, task_id: slot }
    }

    fn began(sq_id: u32, slot: u32, kind: &'static str) -> What {
        let none = Range::default();
        What::TaskBegan { task: task(sq_id, slot), kind, by: None, reads: [none; 2], writes: none }
    }

    fn doorbell(sq_id: u32, tail: u32) -> What {
        What::Doorbell { by: Some(ORIGIN), sq_id, tail }
    }

    fn arrows(timeline: &Timeline) -> Vec<(ArrowKind, u64, u64)> {
        timeline.arrows.iter().map(|arrow| (arrow.kind, arrow.from_ns / 1000, arrow.to_ns / 1000)).collect()
    }

    #[test]
    fn doorbell_points_to_its_first_task_also_around_the_end_of_the_ring() {
        let ended = |slot| What::TaskEnded { task: task(1, slot) };
        let timeline = timeline(vec![
            doorbell(1, 2),
            doorbell(1, 3),
            began(1, 0, "place holder"),
            ended(0),
            began(1, 1, "place holder"),
            ended(1),
            began(1, 2, "place holder"),
            ended(2),
            // Depth 4: the next tasks are those in slots 3 and 0.
            doorbell(1, 1),
            began(1, 3, "place holder"),
            ended(3),
            began(1, 0, "place holder"),
        ]);
        let doorbell = ArrowKind::Doorbell;
        assert_eq!(arrows(&timeline), [(doorbell, 1, 3), (doorbell, 2, 7), (doorbell, 9, 10)]);
        // The last task has not ended.
        let last = timeline.slices.last().unwrap();
        assert_eq!((last.start_ns, last.end_ns), (12_000, 12_000));
        assert_eq!(last.details.last(), Some(&("state", Value::Name("has not ended"))));
    }

    #[test]
    fn record_of_a_reset_notify_points_to_no_later_wait() {
        let by = |sq_id| NotifyUser::Task(task(sq_id, 0));
        let set = |sq_id, from| What::NotifySet { id: 5, by: by(sq_id), from, to: 1 };
        let taken = || What::NotifyTaken { id: 5, by: by(3), to: 0 };
        let timeline = timeline(vec![
            began(1, 0, "notify record"),
            began(2, 0, "notify record"),
            began(3, 0, "notify wait"),
            set(1, 0),
            // It is not set any more: something has reset it.
            set(2, 0),
            taken(),
            taken(),
            // Two records of a set notify, taken by one wait.
            set(1, 0),
            set(2, 1),
            taken(),
        ]);
        let notify = ArrowKind::Notify;
        assert_eq!(arrows(&timeline), [(notify, 5, 6), (notify, 8, 10), (notify, 9, 10)]);
    }

    #[test]
    fn error_ends_every_operation_and_marks_the_task_that_has_failed() {
        let host = HostThread(7);
        let submitted = |operation| What::Submitted { host, stream_id: 4, operation, site: SiteId::UNKNOWN };
        let error = DeviceError::Deadlock(crate::deadlock::Deadlock {
            waits: Vec::new(),
            is_cycle: false,
            doubled: None,
            found: crate::deadlock::Found::Certain,
        });
        let timeline = timeline(vec![
            submitted("notify wait"),
            submitted("synchronize"),
            began(1, 0, "notify wait"),
            What::Error(error.clone()),
            What::HostReturned { host },
        ]);
        let found: Vec<_> = timeline.slices.iter().filter(|slice| slice.finding.is_some()).collect();
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].name, found[0].finding.as_deref()), ("notify wait", Some(&*error.to_string())));
        assert_eq!(timeline.errors.len(), 1);
        let on_stream = |slice: &&Slice| timeline.tracks[slice.track as usize].kind == TrackKind::Stream;
        let ends: Vec<u64> = timeline.slices.iter().filter(on_stream).map(|slice| slice.end_ns / 1000).collect();
        assert_eq!(ends, [4, 4]);
        assert_eq!(timeline.device, 2);
    }

    #[test]
    fn queue_that_is_acquired_again_gets_a_track_of_its_own() {
        let acquired = |count: u64| {
            let thread = |handle| crate::event::AcquiredThread { handle, stream_id: handle as u32, sq_id: 1 };
            let threads = (1..=count).map(thread).collect();
            What::ThreadsAcquired { host: HostThread(1), threads, caller: Caller::Unknown }
        };
        let timeline = timeline(vec![acquired(1), began(1, 0, "notify wait"), acquired(2), began(1, 0, "notify wait")]);
        let queues = timeline.tracks.iter().filter(|track| track.kind == TrackKind::Queue);
        let names: Vec<_> = queues.map(|track| track.name.as_str()).collect();
        assert_eq!(names, ["thread 1 of 1 (stream 1, sq 1)", "thread 2 of 2 (stream 2, sq 1)"]);
    }
}
