//! Happens-before: which actor knows of which others, from the events that order them.
//!
//! Actors are calls of the host, streams (with the launches that run on them one after the other) and queues. What one hands
//! to another (a record, a submitted operation, a queued task) carries its clock; who takes it over joins the clocks. Nothing
//! else orders.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::event::RecordId;
use crate::vector_clock::{ActorId, VectorClock};

/// Room for the clocks of submitted operations that stays when a burst of them is over.
const KEPT_CLOCKS: usize = 64;

/// Number of a host call that is under way, as the caller chose it.
pub type CallId = u64;
/// Number of a stream, among those of all devices that are joined.
pub type StreamId = u64;
/// Number of a launch, as above.
pub type LaunchId = u64;
/// Number of a queue, as above.
pub type QueueId = u64;
/// Number of a notify, as above.
pub type NotifyId = u64;

/// Who does something, now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// A call of the host.
    Call(CallId),
    /// A stream: an operation of its own.
    Stream(StreamId),
    /// The code of a kernel.
    Launch(LaunchId),
    /// A task of a queue.
    Queue(QueueId),
    /// An entry of a doorbell, the task at the head of a queue, that nothing orders with the other entries.
    Lane(QueueId, usize),
}

/// An actor with its clock.
#[derive(Clone, Debug, Default)]
struct Seat {
    actor: ActorId,
    clock: VectorClock,
}

impl Seat {
    /// What the seat did so far comes before what takes over the clock that this gives.
    fn hand_over(&mut self) -> VectorClock {
        let clock = self.clock.clone();
        self.clock.tick(self.actor);
        clock
    }
}

#[derive(Debug, Default)]
struct Stream {
    seat: Seat,
    /// Clocks of the host at the operations that have not begun.
    submitted: VecDeque<VectorClock>,
    busy: bool,
    /// Nothing has begun since a call of the host came after all that the stream has done.
    joined: bool,
}

#[derive(Debug)]
struct Launch {
    stream: StreamId,
    /// What its kernel knows now; a new one each time that it learns something.
    clock: Arc<VectorClock>,
    /// What it knew at its calls: the number of a call, and what holds from there on.
    calls: Vec<(u64, Arc<VectorClock>)>,
    has_returned: bool,
}

impl Launch {
    /// What the kernel knew at a call; now, if the call is not known.
    fn clock_at(&self, call: Option<u64>) -> &Arc<VectorClock> {
        let from = call.and_then(|call| self.calls.iter().rev().find(|(from, _)| *from <= call));
        from.map_or(&self.clock, |(_, clock)| clock)
    }
}

#[derive(Debug, Default)]
struct Queue {
    seat: Seat,
    /// The clock of a call that was joined last.
    joined: Option<Arc<VectorClock>>,
    /// The next entry that is fetched, and one past the last one that may run: the same when it has nothing to do.
    head: u32,
    tail: u32,
    /// What is known to the doorbell at its head before any of its entries.
    before: VectorClock,
    /// Entries of that doorbell that are actors of their own, and those that later ones can be.
    lanes: Vec<Seat>,
    used: usize,
}

impl Queue {
    fn is_busy(&self) -> bool {
        self.head != self.tail
    }
}

/// An actor that is gone.
#[derive(Debug)]
struct Gone {
    seat: Seat,
    /// Time of the last step in which it may have done something.
    last: u64,
}

/// What has happened before what, as far as it has gone.
#[derive(Debug, Default)]
pub struct HappensBefore {
    /// What every call of the host that begins now knows: all that has returned.
    host: VectorClock,
    calls: BTreeMap<CallId, Seat>,
    streams: BTreeMap<StreamId, Stream>,
    launches: BTreeMap<LaunchId, Launch>,
    queues: BTreeMap<QueueId, Queue>,
    notifies: BTreeMap<NotifyId, VectorClock>,
    locks: BTreeMap<u64, VectorClock>,
    /// Clocks of records that are on their way to another device.
    sent: BTreeMap<RecordId, VectorClock>,
    /// Actors that are gone.
    free: Vec<Gone>,
    actors: ActorId,
}

impl HappensBefore {
    /// A call of the host begins. It comes after every call that has returned.
    pub fn call_begins(&mut self, call: CallId) {
        let mut seat = self.new_seat();
        seat.clock.join(&self.host);
        self.calls.insert(call, seat);
    }

    /// A call of the host returns.
    pub fn call_returns(&mut self, call: CallId) {
        if let Some(seat) = self.calls.remove(&call) {
            self.host.join(&seat.clock);
            self.leave(seat);
        }
    }

    /// A call submits an operation to a stream.
    pub fn submits(&mut self, call: CallId, stream: StreamId) {
        let Some(seat) = self.calls.get_mut(&call) else { return };
        let clock = seat.hand_over();
        if !self.streams.contains_key(&stream) {
            // The call uses it, so that it comes after every call that has returned.
            let seat = self.new_seat();
            self.streams.insert(stream, Stream { seat, ..Stream::default() });
        }
        self.stream(stream).submitted.push_back(clock);
    }

    /// The next operation of a stream begins.
    pub fn operation_begins(&mut self, id: StreamId) {
        let stream = self.stream(id);
        (stream.busy, stream.joined) = (true, false);
        if let Some(clock) = stream.submitted.pop_front() {
            stream.seat.clock.join(&clock);
        }
        if stream.submitted.is_empty() {
            stream.submitted.shrink_to(KEPT_CLOCKS);
        }
    }

    /// The operation of a stream has ended.
    pub fn operation_ends(&mut self, id: StreamId) {
        self.stream(id).busy = false;
    }

    /// The kernel of a launch starts: the operation of the stream that has begun.
    pub fn launch_starts(&mut self, launch: LaunchId, stream: StreamId) {
        let clock = Arc::new(self.stream(stream).seat.clock.clone());
        self.launches.insert(launch, Launch { stream, clock, calls: Vec::new(), has_returned: false });
    }

    /// A kernel returns: the stream knows what it knew. Its tasks are not included.
    pub fn launch_returns(&mut self, id: LaunchId) {
        let Some(launch) = self.launches.get_mut(&id) else { return };
        launch.has_returned = true;
        let (stream, clock) = (launch.stream, Arc::clone(&launch.clock));
        let seat = &mut self.stream(stream).seat;
        seat.clock.join(&clock);
        seat.clock.tick(seat.actor);
    }

    /// A kernel makes call number `call`, counted up: the tasks that it queues by it come after what it knows now.
    pub fn kernel_calls(&mut self, launch: LaunchId, call: u64) {
        let Some(launch) = self.launches.get_mut(&launch) else { return };
        if launch.calls.last().is_none_or(|(_, clock)| !Arc::ptr_eq(clock, &launch.clock)) {
            launch.calls.push((call, Arc::clone(&launch.clock)));
        }
    }

    /// What the code of a kernel did so far comes before the tasks that it queues from here on, but not before those that it
    /// has queued.
    pub fn launch_ticks(&mut self, launch: LaunchId) {
        let Some(Launch { stream, clock, .. }) = self.launches.get_mut(&launch) else { return };
        if let Some(stream) = self.streams.get(stream) {
            Arc::make_mut(clock).tick(stream.seat.actor);
        }
    }

    /// The code of a kernel accesses memory: the tasks that it has queued do not come after this, those that it queues from here
    /// on do.
    pub fn launch_accesses(&mut self, launch: LaunchId) {
        let Some(Launch { clock, calls, .. }) = self.launches.get(&launch) else { return };
        if calls.last().is_some_and(|(_, known)| Arc::ptr_eq(known, clock)) {
            self.launch_ticks(launch);
        }
    }

    /// The task at the head of a queue begins. It comes after the call that queued it, if that is known, and after the task
    /// before it.
    pub fn task_begins(&mut self, id: QueueId, queued_by: Option<(LaunchId, Option<u64>)>) {
        self.settle(id);
        let (Some(queue), Some((launch, call))) = (self.queues.get_mut(&id), queued_by) else { return };
        // A launch that is forgotten knew nothing that is not known to all.
        let Some(clock) = self.launches.get(&launch).map(|launch| launch.clock_at(call)) else { return };
        if queue.joined.as_ref().is_none_or(|joined| !Arc::ptr_eq(joined, clock)) {
            queue.seat.clock.join(clock);
            queue.joined = Some(Arc::clone(clock));
        }
    }

    /// The task at the head of a queue is a doorbell, whose entries follow.
    pub fn doorbell_begins(&mut self, id: QueueId) {
        self.settle(id);
        let queue = self.queue(id);
        queue.before = queue.seat.hand_over();
    }

    /// Who the next entry of that doorbell is. A strong one comes after all before it. A relaxed one that also records
    /// (`records`) announces its own bytes and no others: it is an actor of its own.
    pub fn entry(&mut self, id: QueueId, is_strong: bool, records: bool) -> Who {
        if is_strong {
            self.settle(id);
        } else if records {
            return self.lane(id);
        }
        Who::Queue(id)
    }

    fn lane(&mut self, id: QueueId) -> Who {
        let used = self.queue(id).used;
        if used == self.queue(id).lanes.len() {
            let seat = self.fresh_seat();
            self.queue(id).lanes.push(seat);
        }
        let queue = self.queue(id);
        let lane = &mut queue.lanes[used];
        lane.clock.join(&queue.before);
        lane.clock.tick(lane.actor);
        queue.used += 1;
        Who::Lane(id, used)
    }

    /// What comes next on a queue comes after all entries of its last doorbell.
    fn settle(&mut self, id: QueueId) {
        let queue = self.queue(id);
        let used = std::mem::take(&mut queue.used);
        queue.lanes[..used].iter().for_each(|lane| queue.seat.clock.join(&lane.clock));
    }

    /// An entry sends a record to another device. A relaxed one that is no actor of its own comes after what is before its
    /// doorbell, and after no other entry.
    pub fn sends(&mut self, who: Who, record: RecordId, is_strong: bool) {
        let clock = match who {
            Who::Queue(id) if !is_strong => self.queue(id).before.clone(),
            _ => self.seat(who).map(Seat::hand_over).unwrap_or_default(),
        };
        self.sent.insert(record, clock);
    }

    /// A record arrives at its notify; `None`: it changes nothing there.
    pub fn arrives(&mut self, record: RecordId, notify: Option<NotifyId>) {
        if let (Some(clock), Some(notify)) = (self.sent.remove(&record), notify) {
            self.notifies.entry(notify).or_default().join(&clock);
        }
    }

    /// A queue may run everything up to `tail`.
    pub fn rung(&mut self, queue: QueueId, tail: u32) {
        self.queue(queue).tail = tail;
    }

    /// A queue has carried out everything up to `head`.
    pub fn advances(&mut self, queue: QueueId, head: u32) {
        self.queue(queue).head = head;
    }

    /// A queue has dropped its tasks: it has nothing to do.
    pub fn drops_tasks(&mut self, queue: QueueId) {
        let queue = self.queue(queue);
        queue.tail = queue.head;
    }

    /// A queue or stream records a notify that was not set. A record of a set notify orders nothing: this is not called.
    pub fn records(&mut self, who: Who, notify: NotifyId) {
        let Some(seat) = self.seat(who) else { return };
        let clock = seat.hand_over();
        self.notifies.entry(notify).or_default().join(&clock);
    }

    /// A wait takes the value of a notify, and with it what was known to those who recorded it. `is_left`: only some of its bits.
    pub fn takes(&mut self, who: Who, notify: NotifyId, is_left: bool) {
        let clock = if is_left { self.notifies.get(&notify).cloned() } else { self.notifies.remove(&notify) };
        if let (Some(clock), Some(seat)) = (clock, self.seat(who)) {
            seat.clock.join(&clock);
        }
    }

    /// A notify was set back without a wait.
    pub fn notify_forgotten(&mut self, notify: NotifyId) {
        self.notifies.remove(&notify);
    }

    /// A kernel has learned that a queue has drained.
    pub fn observes(&mut self, launch: LaunchId, queue: QueueId) {
        let clock = self.queue(queue).seat.hand_over();
        if let Some(launch) = self.launches.get_mut(&launch) {
            Arc::make_mut(&mut launch.clock).join(&clock);
        }
    }

    /// A kernel gives a lock back.
    pub fn releases(&mut self, launch: LaunchId, lock: u64) {
        if let Some(clock) = self.launches.get(&launch).map(|launch| Arc::clone(&launch.clock)) {
            self.locks.entry(lock).or_default().join(&clock);
            self.launch_ticks(launch);
        }
    }

    /// A kernel takes a lock.
    pub fn acquires(&mut self, launch: LaunchId, lock: u64) {
        if let (Some(clock), Some(launch)) = (self.locks.get(&lock), self.launches.get_mut(&launch)) {
            Arc::make_mut(&mut launch.clock).join(clock);
        }
    }

    /// Every call of the host that begins from now on comes after all that `queue` has done.
    pub fn host_joins(&mut self, queue: QueueId) {
        let clock = self.queue(queue).seat.hand_over();
        self.host.join(&clock);
    }

    /// Every call of the host that begins from now on comes after all that the queues, streams and kernels with these numbers
    /// have done.
    pub fn host_joins_all(&mut self, of: Range<u64>) {
        let queues = self.queues.range_mut(of.clone()).map(|(_, queue)| &mut queue.seat);
        let streams = self.streams.range_mut(of.clone()).map(|(_, stream)| &mut stream.seat);
        for seat in queues.chain(streams) {
            self.host.join(&seat.hand_over());
        }
        self.launches.range(of).for_each(|(_, launch)| self.host.join(&launch.clock));
    }

    /// Queues, streams, kernels and notifies with these numbers are gone: their device is closed.
    pub fn device_leaves(&mut self, of: Range<u64>) {
        let ids: Vec<_> = self.queues.range(of.clone()).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.settle(id));
        self.host_joins_all(of.clone());
        for id in self.streams.range(of.clone()).map(|(id, _)| *id).collect::<Vec<_>>() {
            self.stream_removed(id);
        }
        let is_left = |id: &u64| !of.contains(id);
        self.queues.retain(|id, _| is_left(id));
        self.launches.retain(|id, _| is_left(id));
        self.notifies.retain(|id, _| is_left(id));
        self.locks.retain(|id, _| is_left(id));
    }

    /// Every operation of a stream has ended, also those that had not begun. Calls of the host that begin from now on come after
    /// all of them.
    pub fn stream_reset(&mut self, id: StreamId) {
        let stream = self.stream(id);
        stream.submitted.clear();
        stream.busy = false;
        let clock = stream.seat.hand_over();
        self.host.join(&clock);
        for launch in self.launches.values_mut().filter(|launch| launch.stream == id) {
            launch.has_returned = true;
        }
    }

    /// `who` comes after all that `other` has done so far.
    pub fn joins(&mut self, who: Who, other: Who) {
        let Some(clock) = self.seat(other).map(Seat::hand_over) else { return };
        if let Some(seat) = self.seat(who) {
            seat.clock.join(&clock);
        }
        if let (Who::Call(_), Who::Stream(id)) = (who, other) {
            let stream = self.stream(id);
            stream.joined = !stream.busy;
        }
    }

    /// A call of the host has made a queue. Kernels that were launched before do not know it.
    pub fn queue_added(&mut self, id: QueueId) {
        if !self.queues.contains_key(&id) {
            let seat = self.new_seat();
            self.queues.insert(id, Queue { seat, ..Queue::default() });
        }
    }

    /// A call of the host has removed a queue: it comes after all that the queue has done.
    pub fn queue_removed(&mut self, call: CallId, id: QueueId) {
        let Some(Queue { seat, lanes, .. }) = self.queues.remove(&id) else { return };
        for seat in lanes.into_iter().chain([seat]) {
            if let Some(call) = self.calls.get_mut(&call) {
                // The clock as it is: a queue that is gone takes no further step, and its seat is free once the call has returned.
                call.clock.join(&seat.clock);
            }
            self.leave(seat);
        }
    }

    /// A stream is gone.
    pub fn stream_removed(&mut self, id: StreamId) {
        let Some(Stream { seat, joined, .. }) = self.streams.remove(&id) else { return };
        let last = seat.clock.time_of(seat.actor) - u64::from(joined);
        self.free.push(Gone { seat, last });
    }

    /// Actor, time and clock of what `who` does now.
    pub fn now(&self, who: Who) -> Option<(ActorId, &VectorClock)> {
        let seat = |seat: &'_ Seat| seat.actor;
        match who {
            Who::Call(id) => self.calls.get(&id).map(|call| (seat(call), &call.clock)),
            Who::Stream(id) => self.streams.get(&id).map(|stream| (seat(&stream.seat), &stream.seat.clock)),
            Who::Queue(id) => self.queues.get(&id).map(|queue| (seat(&queue.seat), &queue.seat.clock)),
            Who::Lane(id, lane) => self.queues.get(&id).map(|queue| &queue.lanes[lane]).map(|of| (seat(of), &of.clock)),
            Who::Launch(id) => {
                let launch = self.launches.get(&id)?;
                Some((self.streams.get(&launch.stream)?.seat.actor, &*launch.clock))
            }
        }
    }

    /// What everything that is still to come is ordered behind.
    pub fn known_to_all(&self) -> VectorClock {
        let mut known = self.host.clone();
        self.calls.values().for_each(|call| known.meet(&call.clock));
        let busy = self.streams.values().filter(|stream| stream.busy || !stream.submitted.is_empty());
        busy.for_each(|stream| known.meet(&stream.seat.clock));
        let running = self.launches.values().filter(|launch| !launch.has_returned);
        running.for_each(|launch| known.meet(&launch.clock));
        self.queues.values().filter(|queue| queue.is_busy()).for_each(|queue| known.meet(&queue.seat.clock));
        known
    }

    /// Forgets launches that have returned and that everything still to come is ordered behind: `known` is what
    /// [`known_to_all`](Self::known_to_all) gave.
    pub fn forget_launches(&mut self, known: &VectorClock) {
        self.launches.retain(|_, launch| !launch.has_returned || !launch.clock.is_within(known));
    }

    /// Whether a launch has started and was not [forgotten](Self::forget_launches).
    pub fn knows_launch(&self, launch: LaunchId) -> bool {
        self.launches.contains_key(&launch)
    }

    fn leave(&mut self, seat: Seat) {
        let last = seat.clock.time_of(seat.actor);
        self.free.push(Gone { seat, last });
    }

    fn seat(&mut self, who: Who) -> Option<&mut Seat> {
        match who {
            Who::Call(id) => self.calls.get_mut(&id),
            Who::Stream(id) => Some(&mut self.stream(id).seat),
            Who::Queue(id) => Some(&mut self.queue(id).seat),
            Who::Lane(id, lane) => self.queue(id).lanes.get_mut(lane),
            Who::Launch(_) => None,
        }
    }

    fn stream(&mut self, id: StreamId) -> &mut Stream {
        if !self.streams.contains_key(&id) {
            let seat = self.fresh_seat();
            self.streams.insert(id, Stream { seat, ..Stream::default() });
        }
        self.streams.get_mut(&id).expect("it was inserted")
    }

    fn queue(&mut self, id: QueueId) -> &mut Queue {
        if !self.queues.contains_key(&id) {
            let seat = self.fresh_seat();
            self.queues.insert(id, Queue { seat, ..Queue::default() });
        }
        self.queues.get_mut(&id).expect("it was inserted")
    }

    /// A seat of its own.
    fn fresh_seat(&mut self) -> Seat {
        let mut seat = Seat { actor: self.actors, clock: VectorClock::default() };
        self.actors += 1;
        seat.clock.tick(seat.actor);
        seat
    }

    /// For something that begins now, by a call of the host: a seat of its own, or one of an actor that is gone and that the
    /// host is known to come after.
    fn new_seat(&mut self) -> Seat {
        let host = &self.host;
        let index = self.free.iter().rposition(|gone| host.time_of(gone.seat.actor) >= gone.last);
        let Some(index) = index else { return self.fresh_seat() };
        let mut seat = self.free.swap_remove(index).seat;
        seat.clock.tick(seat.actor);
        seat
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::Range;

    use super::super::history::{Access, History, Kind};
    use super::*;

    /// What the history says of a write of one byte by `who`: the sites that it races with.
    fn write(order: &HappensBefore, history: &mut History<u32>, who: Who, site: u32) -> Vec<u32> {
        let (actor, clock) = order.now(who).unwrap();
        let access = Access { actor, time: clock.time_of(actor), kind: Kind::Write, site };
        let mut found = Vec::new();
        history.access(0..1, access, clock, |conflict| found.push(conflict.earlier.site));
        found
    }

    #[test]
    fn host_calls_are_ordered_unless_they_overlap() {
        let (mut order, mut history) = (HappensBefore::default(), History::default());
        order.call_begins(1);
        assert_eq!(write(&order, &mut history, Who::Call(1), 1), []);
        order.call_returns(1);
        order.call_begins(2);
        order.call_begins(3);
        assert_eq!(write(&order, &mut history, Who::Call(2), 2), []);
        assert_eq!(write(&order, &mut history, Who::Call(3), 3), [2]);
        order.call_returns(2);
        order.call_returns(3);
        order.call_begins(4);
        assert_eq!(write(&order, &mut history, Who::Call(4), 4), []);
        order.call_returns(4);
        assert!(order.actors <= 2, "numbers of calls that have returned are used again");
    }

    /// A launch on stream 1 that queues a task on each of `queues`, by call 1.
    fn launched(order: &mut HappensBefore, launch: LaunchId, queues: &[QueueId]) {
        order.call_begins(launch);
        order.submits(launch, 1);
        order.call_returns(launch);
        order.operation_begins(1);
        order.launch_starts(launch, 1);
        order.kernel_calls(launch, 1);
        queues.iter().for_each(|queue| order.rung(*queue, 1));
    }

    #[test]
    fn host_comes_after_tasks_only_by_a_notify_and_a_synchronise() {
        for (notify, synchronise, expected) in [(true, true, vec![]), (false, true, vec![1]), (true, false, vec![1])] {
            let (mut order, mut history) = (HappensBefore::default(), History::default());
            launched(&mut order, 10, &[5]);
            order.task_begins(5, Some((10, Some(1))));
            assert_eq!(write(&order, &mut history, Who::Queue(5), 1), []);
            order.advances(5, 1);
            if notify {
                order.records(Who::Queue(5), 7);
            }
            order.launch_returns(10);
            order.operation_ends(1);
            order.operation_begins(1);
            order.takes(Who::Stream(1), 7, false);
            order.operation_ends(1);
            order.call_begins(11);
            if synchronise {
                order.joins(Who::Call(11), Who::Stream(1));
            }
            assert_eq!(write(&order, &mut history, Who::Call(11), 2), expected, "{notify} {synchronise}");
        }
    }

    #[test]
    fn kernel_that_has_seen_a_queue_drain_orders_what_it_queues_afterwards() {
        for (observes, expected) in [(true, vec![]), (false, vec![1])] {
            let (mut order, mut history) = (HappensBefore::default(), History::default());
            launched(&mut order, 10, &[5]);
            order.task_begins(5, Some((10, Some(1))));
            write(&order, &mut history, Who::Queue(5), 1);
            order.advances(5, 1);
            order.kernel_calls(10, 2);
            if observes {
                order.observes(10, 5);
            }
            order.kernel_calls(10, 3);
            order.task_begins(6, Some((10, Some(3))));
            assert_eq!(write(&order, &mut history, Who::Queue(6), 2), expected);
            // What was queued before the kernel saw the queue drain is not ordered behind it.
            order.task_begins(7, Some((10, Some(2))));
            assert_eq!(write(&order, &mut history, Who::Queue(7), 3), [1, 2]);
        }
    }

    /// Case 303.
    #[test]
    fn queue_that_a_kernel_uses_late_is_not_behind_the_calls_of_the_host_before_that() {
        let (mut order, mut history) = (HappensBefore::default(), History::default());
        order.queue_added(5);
        launched(&mut order, 10, &[]);
        order.call_begins(11);
        assert_eq!(write(&order, &mut history, Who::Call(11), 1), []);
        order.call_returns(11);
        for (queue, expected) in [(5, vec![1]), (6, vec![1, 2])] {
            order.rung(queue, 1);
            order.task_begins(queue, Some((10, Some(1))));
            assert_eq!(write(&order, &mut history, Who::Queue(queue), queue as u32 - 3), expected, "queue {queue}");
        }
    }

    #[test]
    fn launches_order_by_their_stream_and_by_locks() {
        let (mut order, mut history) = (HappensBefore::default(), History::default());
        launched(&mut order, 10, &[]);
        write(&order, &mut history, Who::Launch(10), 1);
        order.launch_returns(10);
        order.operation_ends(1);
        launched(&mut order, 11, &[]);
        assert_eq!(write(&order, &mut history, Who::Launch(11), 2), []);
        order.call_begins(1);
        order.submits(1, 2);
        order.call_returns(1);
        order.operation_begins(2);
        order.launch_starts(12, 2);
        assert_eq!(write(&order, &mut history, Who::Launch(12), 3), [2]);
        order.releases(12, 0);
        order.acquires(11, 0);
        assert_eq!(write(&order, &mut history, Who::Launch(11), 4), []);
        assert_eq!(write(&order, &mut history, Who::Launch(12), 5), [4]);
    }

    #[test]
    fn queues_and_streams_that_are_gone_leave_no_actor_behind() {
        let mut order = HappensBefore::default();
        for round in 0..1000 {
            let (call, stream, queue) = (10 * round, 3 + round, 5);
            order.call_begins(call);
            order.queue_added(queue);
            order.submits(call, stream);
            order.call_returns(call);
            order.operation_begins(stream);
            order.launch_starts(round, stream);
            order.task_begins(queue, Some((round, Some(1))));
            order.records(Who::Queue(queue), 1);
            order.launch_returns(round);
            order.takes(Who::Stream(stream), 1, false);
            order.operation_ends(stream);
            order.call_begins(call + 1);
            order.joins(Who::Call(call + 1), Who::Stream(stream));
            order.queue_removed(call + 1, queue);
            order.call_returns(call + 1);
            order.stream_removed(stream);
        }
        assert_eq!((order.actors, order.free.len()), (3, 3));
    }

    /// What a stream has done that nothing has waited for is not lost when the stream is gone.
    #[test]
    fn stream_that_was_not_synchronised_keeps_its_actor() {
        let (mut order, mut history) = (HappensBefore::default(), History::default());
        launched(&mut order, 10, &[]);
        write(&order, &mut history, Who::Stream(1), 1);
        order.launch_returns(10);
        order.operation_ends(1);
        order.stream_removed(1);
        for call in [11, 12] {
            order.call_begins(call);
            assert_eq!(write(&order, &mut history, Who::Call(call), call as u32)[0], 1, "call {call}");
            order.call_returns(call);
        }
    }

    #[test]
    fn launches_that_are_synchronised_leave_nothing_behind() {
        let (mut order, mut history) = (HappensBefore::default(), History::default());
        for launch in 0..1000 {
            launched(&mut order, launch, &[5, 6]);
            for queue in [5, 6] {
                order.task_begins(queue, Some((launch, Some(1))));
                let (actor, clock) = order.now(Who::Queue(queue)).unwrap();
                let access = Access { actor, time: clock.time_of(actor), kind: Kind::Read, site: 0 };
                let start = launch * 100 + queue;
                history.access(start..start + 1, access, clock, |_| panic!("reads do not conflict"));
                order.records(Who::Queue(queue), queue);
                order.advances(queue, 1);
            }
            order.launch_returns(launch);
            for notify in [5, 6] {
                order.takes(Who::Stream(1), notify, false);
            }
            order.operation_ends(1);
            order.call_begins(1000 + launch);
            order.joins(Who::Call(1000 + launch), Who::Stream(1));
            order.call_returns(1000 + launch);
        }
        let known = order.known_to_all();
        history.sweep(&known);
        order.forget_launches(&known);
        assert_eq!((history.len(), order.actors, order.launches.len()), (0, 4, 0));
    }

    /// A task of a random graph.
    #[derive(Clone, Debug)]
    enum Task {
        Access(Range<u64>, Kind),
        Record(NotifyId),
        Wait(NotifyId),
    }

    /// Queues of tasks; each notify is recorded once and waited for once, by another queue.
    fn graph(random: &mut fastrand::Rng) -> Vec<Vec<Task>> {
        let mut queues = vec![Vec::new(); random.usize(2..6)];
        let mut notify = 0;
        for _ in 0..random.usize(4..40) {
            let queue = random.usize(0..queues.len());
            if random.u8(0..3) == 0 {
                let other = (queue + random.usize(1..queues.len())) % queues.len();
                // Appended in one order to both: the graph has no cycle.
                queues[queue].push(Task::Record(notify));
                queues[other].push(Task::Wait(notify));
                notify += 1;
            } else {
                let start = random.u64(0..24);
                let kind = if random.bool() { Kind::Read } else { Kind::Write };
                queues[queue].push(Task::Access(start..start + random.u64(1..8), kind));
            }
        }
        queues
    }

    type Races = BTreeSet<(u64, usize, usize, Kind, Kind)>;

    /// Pairs of accesses that no path through the graph joins, byte by byte.
    fn races_by_reachability(queues: &[Vec<Task>]) -> Races {
        let nodes: Vec<_> =
            (0..queues.len()).flat_map(|queue| (0..queues[queue].len()).map(move |at| (queue, at))).collect();
        let task = |(queue, at): (usize, usize)| &queues[queue][at];
        let is_edge = |from: (usize, usize), to: (usize, usize)| {
            (from.0 == to.0 && from.1 + 1 == to.1)
                || matches!((task(from), task(to)), (Task::Record(a), Task::Wait(b)) if a == b)
        };
        let count = nodes.len();
        let mut reach = vec![vec![false; count]; count];
        for from in 0..count {
            for to in 0..count {
                reach[from][to] = is_edge(nodes[from], nodes[to]);
            }
        }
        for via in 0..count {
            for from in 0..count {
                for to in 0..count {
                    reach[from][to] |= reach[from][via] && reach[via][to];
                }
            }
        }
        let mut races = Races::new();
        for a in 0..count {
            for b in a + 1..count {
                let (Task::Access(ours, kind), Task::Access(theirs, other)) = (task(nodes[a]), task(nodes[b])) else {
                    continue;
                };
                if reach[a][b] || reach[b][a] || nodes[a].0 == nodes[b].0 || (*kind, *other) == (Kind::Read, Kind::Read)
                {
                    continue;
                }
                for byte in ours.start.max(theirs.start)..ours.end.min(theirs.end) {
                    races.insert((byte, nodes[a].0, nodes[b].0, *kind, *other));
                }
            }
        }
        races
    }

    /// What the clocks say, when the tasks run in a random order that the graph allows.
    fn races_by_clocks(queues: &[Vec<Task>], random: &mut fastrand::Rng) -> Races {
        let (mut order, mut history, mut races) = (HappensBefore::default(), History::default(), Races::new());
        launched(&mut order, 1, &[]);
        for (queue, tasks) in queues.iter().enumerate() {
            order.rung(queue as u64, tasks.len() as u32);
        }
        let (mut next, mut set) = (vec![0; queues.len()], BTreeSet::new());
        loop {
            let ready = |queue: &usize| match queues[*queue].get(next[*queue]) {
                Some(Task::Wait(notify)) => set.contains(notify),
                task => task.is_some(),
            };
            let ready: Vec<_> = (0..queues.len()).filter(ready).collect();
            let Some(queue) = random.choice(ready) else { break };
            let who = Who::Queue(queue as u64);
            order.task_begins(queue as u64, Some((1, Some(1))));
            match &queues[queue][next[queue]] {
                Task::Record(notify) => {
                    order.records(who, *notify);
                    set.insert(*notify);
                }
                Task::Wait(notify) => order.takes(who, *notify, false),
                Task::Access(range, kind) => {
                    let (actor, clock) = order.now(who).unwrap();
                    let access = Access { actor, time: clock.time_of(actor), kind: *kind, site: queue };
                    history.access(range.clone(), access, clock, |conflict| {
                        let earlier = conflict.earlier;
                        let pair = if earlier.site < queue {
                            (earlier.site, queue, earlier.kind, *kind)
                        } else {
                            (queue, earlier.site, *kind, earlier.kind)
                        };
                        races.extend(conflict.range.map(|byte| (byte, pair.0, pair.1, pair.2, pair.3)));
                    });
                }
            }
            next[queue] += 1;
            order.advances(queue as u64, next[queue] as u32);
            if random.u8(0..8) == 0 {
                history.sweep(&order.known_to_all());
            }
        }
        assert!(next.iter().zip(queues).all(|(next, tasks)| *next == tasks.len()), "the graph has no cycle");
        races
    }

    /// `HCOMM_RACE_GRAPHS` says how many.
    #[test]
    fn random_graphs_have_the_races_that_no_path_joins() {
        let graphs = std::env::var("HCOMM_RACE_GRAPHS").map_or(2000, |text| text.parse().expect("a number"));
        let mut racy = 0;
        for seed in 0..graphs {
            let mut random = fastrand::Rng::with_seed(seed);
            let queues = graph(&mut random);
            let expected = races_by_reachability(&queues);
            racy += usize::from(!expected.is_empty());
            assert_eq!(races_by_clocks(&queues, &mut random), expected, "seed {seed}: {queues:?}");
        }
        assert!(racy >= graphs as usize / 4, "{racy} of {graphs} graphs have a race");
    }
}
