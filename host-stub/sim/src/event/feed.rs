//! The way of an event from its source to the observers.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hcomm_aicpu::spec::record::{CallRecord, EntryPoint};

use super::observer::Observer;
use super::origin::{TaskOrigin, ThreadIndex};
use super::owner::TaskOwners;
use super::recorder::{Recorder, Trace};
use super::site::{Place, Program, Site, SiteId, Sites};
use super::what::{AcquiredThread, Caller, Event, HostThread, Origin, Queuer, What};
use crate::deterministic::Turn;

/// Fills a list with return addresses of the calling thread, innermost first, and leaves what it does not fill as it is.
pub type ReturnAddresses = fn(&mut [u64]);

/// Return addresses of a call in this process that are kept: those in the library itself, and some of the caller's.
const HOST_FRAMES: usize = 28;

/// Room for events that stays when a burst of them is over.
const KEPT_EVENTS: usize = 1024;

/// What the feeds of joined devices share: one order of all their events.
#[derive(Default)]
pub struct Bus {
    /// Events of host threads and kernels that no observer has seen, each with the number of its feed.
    waiting: Mutex<Vec<(u64, Event)>>,
    has_waiting: AtomicBool,
    observers: Mutex<Observers>,
    feeds: AtomicU64,
}

/// Which places are this library's.
struct LibraryPlaces {
    is_library: Box<dyn Fn(&Site) -> bool + Send + Sync>,
    known: Mutex<HashMap<SiteId, bool>>,
}

/// State of a feed that is switched on.
struct On {
    device: usize,
    /// Number of the feed on its bus.
    feed: u64,
    turn: Arc<dyn Turn>,
    bus: Arc<Bus>,
    owners: TaskOwners,
    /// Threads that the host has acquired, by queue.
    threads: Mutex<HashMap<u32, ThreadIndex>>,
    sites: Arc<Sites>,
    callers: ReturnAddresses,
    /// Which places of the image are in this library.
    library: LibraryPlaces,
    /// Calls are recorded: doorbells do not tell who queued a task.
    has_records: AtomicBool,
}

/// Who sees the events of one feed.
#[derive(Default)]
struct Readers {
    /// `None`: nothing is kept.
    recorder: Option<Recorder>,
    others: Vec<Box<dyn Observer>>,
}

/// By the number of the feed.
#[derive(Default)]
struct Observers {
    feeds: BTreeMap<u64, Readers>,
    /// Kept for its capacity.
    batch: Vec<(u64, Event)>,
}

impl Observers {
    fn on(&mut self, feed: u64, event: Event) {
        let Some(readers) = self.feeds.get_mut(&feed) else { return };
        for observer in &mut readers.others {
            observer.on(&event);
        }
        if let Some(recorder) = &mut readers.recorder {
            recorder.keep(event);
        }
    }
}

/// Where the sources of a device send their events. Switched off, an event costs one look at a flag.
pub struct Feed(Option<Box<On>>);

impl Feed {
    /// A feed that drops everything.
    pub fn off() -> Self {
        Self(None)
    }

    /// The feed of the device in slot `device` of the process, which has `queues` queues. Its events are in one order with those
    /// of the other feeds of `bus`.
    pub fn new(device: usize, turn: Arc<dyn Turn>, queues: u32, bus: &Arc<Bus>) -> Self {
        let feed = bus.feeds.fetch_add(1, Ordering::Relaxed);
        let readers = Readers { recorder: Some(Recorder::default()), others: Vec::new() };
        lock(&bus.observers).feeds.insert(feed, readers);
        Self(Some(Box::new(On {
            device,
            feed,
            turn,
            bus: Arc::clone(bus),
            owners: TaskOwners::new(queues),
            threads: Mutex::default(),
            sites: Arc::default(),
            callers: |_| {},
            library: LibraryPlaces { is_library: Box::new(|_| false), known: Mutex::default() },
            has_records: AtomicBool::new(false),
        })))
    }

    /// Keeps no events: only observers see them.
    pub fn without_recorder(self) -> Self {
        self.with_readers(|readers| readers.recorder = None);
        self
    }

    /// Finds out by `callers` where the host calls from.
    pub fn with_callers(mut self, callers: ReturnAddresses) -> Self {
        if let Some(on) = &mut self.0 {
            on.callers = callers;
        }
        self
    }

    /// Finds out by `is_library` whether a place in a program is this library's.
    pub fn with_library(mut self, is_library: impl Fn(&Site) -> bool + Send + Sync + 'static) -> Self {
        if let Some(on) = &mut self.0 {
            on.library.is_library = Box::new(is_library);
        }
        self
    }

    /// Whether a place is this library's. Each is looked up once.
    pub fn is_library(&self, site: SiteId) -> bool {
        let Some(on) = &self.0 else { return true };
        let mut known = lock(&on.library.known);
        *known.entry(site).or_insert_with(|| on.sites.get(site).is_none_or(|site| (on.library.is_library)(&site)))
    }

    /// The places that events name; `None` if the feed is switched off.
    pub fn sites(&self) -> Option<Arc<Sites>> {
        Some(Arc::clone(&self.0.as_ref()?.sites))
    }

    /// Where the calling thread of this process has called from.
    pub fn site(&self) -> SiteId {
        let Some(on) = &self.0 else { return SiteId::UNKNOWN };
        let mut frames = [0; HOST_FRAMES];
        (on.callers)(&mut frames);
        on.sites.id(Program::Process, &frames)
    }

    /// The place with this number, as errors name it.
    pub fn place(&self, id: SiteId) -> Place {
        self.0.as_ref().map_or_else(Place::default, |on| Place::new(&on.sites, id))
    }

    /// Adds an observer, which sees what is sent from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.with_readers(|readers| readers.others.push(observer));
    }

    fn with_readers(&self, change: impl FnOnce(&mut Readers)) {
        let Some(on) = &self.0 else { return };
        if let Some(readers) = lock(&on.bus.observers).feeds.get_mut(&on.feed) {
            change(readers);
        }
    }

    /// Whether anything reads the events.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Sends an event of a host thread or a kernel. The scheduler hands it to the observers before its own next event.
    pub fn send(&self, what: impl FnOnce() -> What) {
        let Some(on) = &self.0 else { return };
        let mut waiting = lock(&on.bus.waiting);
        // The clock is read under the lock: times never go back.
        waiting.push((on.feed, Event { at: on.turn.now(), device: on.device, what: what() }));
        // Release: pairs with the swap in `deliver`.
        on.bus.has_waiting.store(true, Ordering::Release);
    }

    /// Sends an event of the scheduler, after everything that others have sent before.
    pub fn tell(&self, what: impl FnOnce() -> What) {
        let Some(on) = &self.0 else { return };
        let mut observers = lock(&on.bus.observers);
        on.bus.deliver(&mut observers);
        observers.on(on.feed, Event { at: on.turn.now(), device: on.device, what: what() });
    }

    /// Hands what is waiting to the observers. Called by the scheduler, and by a host thread that asks for a result.
    pub fn flush(&self) {
        let Some(on) = &self.0 else { return };
        on.bus.deliver(&mut lock(&on.bus.observers));
    }

    /// What was recorded so far, on a device whose HBM starts at `hbm_base`.
    pub fn trace(&self, hbm_base: u64) -> Trace {
        let Some(on) = &self.0 else { return Trace { hbm_base, ..Trace::default() } };
        let mut observers = lock(&on.bus.observers);
        on.bus.deliver(&mut observers);
        let recorder = observers.feeds.get(&on.feed).and_then(|readers| readers.recorder.as_ref());
        recorder.map_or(Trace { hbm_base, ..Trace::default() }, |recorder| recorder.trace(hbm_base))
    }

    /// Where a program on an emulated processor has called from, by its return addresses.
    pub fn site_in_image(&self, frames: &[u64]) -> SiteId {
        self.0.as_ref().map_or(SiteId::UNKNOWN, |on| on.sites.id(Program::Image, frames))
    }

    /// Where the instruction at `pc` of an AArch64 program is, which it has come to after a call at `caller` (0: none).
    pub fn site_of_instruction(&self, pc: u64, caller: u64) -> SiteId {
        // As return addresses: behind the instruction.
        const INSTRUCTION: u64 = 4;
        self.site_in_image(&[pc + INSTRUCTION, if caller == 0 { 0 } else { caller + INSTRUCTION }])
    }

    /// Sends what a record says that the kernel of `origin` has written about a call from `site`; `depth` is that of its queue.
    pub fn call(&self, origin: Origin, record: &CallRecord, depth: u32, site: SiteId) {
        let Some(on) = &self.0 else { return };
        on.has_records.store(true, Ordering::Relaxed);
        let CallRecord { seq, entry, sq_id, first, count, .. } = *record;
        match entry {
            EntryPoint::ACQUIRE_COMM => return self.send(|| What::CommAcquired { origin, comm: first }),
            EntryPoint::RELEASE_COMM => return self.send(|| What::CommReleased { origin, comm: first }),
            _ if !on.owners.has(sq_id) => return log::warn!("record of a call on queue {sq_id}, which does not exist"),
            EntryPoint::SYNCHRONIZE | EntryPoint::JOIN if count == 0 => {
                return self.send(|| What::Observed { origin, entry, sq_id, head: first });
            }
            _ => {}
        }
        on.owners.set(sq_id, first, count, depth, Some(Queuer { origin, call: Some(seq), site }));
        self.send(|| What::Call { origin, seq, entry, sq_id, first, count, site });
    }

    /// `by` has rung for `count` tasks from slot `first` on. Where calls are not recorded, that is who queued them.
    pub fn rung(&self, sq_id: u32, first: u32, count: u32, depth: u32, by: Option<Origin>) {
        let Some(on) = &self.0 else { return };
        if !on.has_records.load(Ordering::Relaxed) {
            on.owners.set(
                sq_id,
                first,
                count,
                depth,
                by.map(|origin| Queuer { origin, call: None, site: SiteId::UNKNOWN }),
            );
        }
    }

    /// A call of the calling host thread, which returns when this is dropped.
    pub fn host_call(&self) -> HostCall<'_> {
        HostCall(self)
    }

    /// Who queued the task in `slot`.
    pub fn owner(&self, sq_id: u32, slot: u32) -> Option<Queuer> {
        self.0.as_ref()?.owners.get(sq_id, slot)
    }

    /// Who queued the task in `slot`, as an error names it.
    pub fn task_origin(&self, sq_id: u32, slot: u32) -> TaskOrigin {
        let Some(on) = &self.0 else { return TaskOrigin::default() };
        let queuer = on.owners.get(sq_id, slot);
        TaskOrigin {
            launch: queuer.map(|queuer| queuer.origin.launch),
            place: self.place(queuer.map_or(SiteId::UNKNOWN, |queuer| queuer.site)),
            thread: lock(&on.threads).get(&sq_id).cloned(),
        }
    }

    /// The calling host thread has acquired `threads` by one call, at `caller`.
    pub fn threads_acquired(&self, threads: impl ExactSizeIterator<Item = AcquiredThread>, caller: Caller) {
        let Some(on) = &self.0 else { return };
        let (line, place) = match caller {
            Caller::Source(line) => (Some(line), Place::default()),
            Caller::Site(site) => (None, self.place(site)),
            Caller::Unknown => (None, Place::default()),
        };
        let threads: Arc<[_]> = threads.collect();
        let indices = threads.iter().enumerate().map(|(index, thread)| {
            (thread.sq_id, ThreadIndex { index, count: threads.len(), line, place: place.clone() })
        });
        lock(&on.threads).extend(indices);
        self.send(|| What::ThreadsAcquired { host: HostThread::current(), threads, caller });
    }

    /// Queue `sq_id` has no tasks: a new one, or one that was reset.
    pub fn forget_owners(&self, sq_id: u32) {
        if let Some(on) = &self.0 {
            on.owners.clear(sq_id);
        }
    }
}

impl Drop for On {
    fn drop(&mut self) {
        let readers = lock(&self.bus.observers).feeds.remove(&self.feed);
        drop(readers);
    }
}

impl Bus {
    fn deliver(&self, observers: &mut Observers) {
        if !self.has_waiting.swap(false, Ordering::Acquire) {
            return;
        }
        let mut batch = std::mem::take(&mut observers.batch);
        std::mem::swap(&mut batch, &mut *lock(&self.waiting));
        for (feed, event) in batch.drain(..) {
            observers.on(feed, event);
        }
        // Kept for its capacity, within limits: hosts may have queued very many operations at once.
        batch.shrink_to(KEPT_EVENTS);
        observers.batch = batch;
    }
}

/// A call of a host thread that sends events.
pub struct HostCall<'a>(&'a Feed);

impl Drop for HostCall<'_> {
    fn drop(&mut self) {
        self.0.send(|| What::HostReturned { host: HostThread::current() });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::FreeRunning;

    fn feed() -> Feed {
        Feed::new(3, Arc::new(FreeRunning::default()), 2, &Arc::default())
    }

    #[test]
    fn switched_off_it_does_not_even_ask() {
        Feed::off().send(|| unreachable!("nothing is recorded"));
        Feed::off().tell(|| unreachable!("nothing is recorded"));
        assert_eq!(Feed::off().trace(5), Trace { hbm_base: 5, ..Trace::default() });
    }

    #[test]
    fn scheduler_tells_after_what_others_have_sent() {
        struct Heads(Arc<Mutex<Vec<u32>>>);
        impl Observer for Heads {
            fn on(&mut self, event: &Event) {
                if let What::HeadPublished { head, .. } = event.what {
                    self.0.lock().unwrap().push(head);
                }
            }
        }
        let seen = Arc::<Mutex<Vec<u32>>>::default();
        let mut feed = feed();
        feed.observe(Box::new(Heads(Arc::clone(&seen))));
        let head = |head| move || What::HeadPublished { sq_id: 0, head };
        feed.send(head(1));
        feed.send(head(2));
        assert_eq!(*seen.lock().unwrap(), [], "the sources do not run observers");
        feed.tell(head(3));
        feed.send(head(4));
        assert_eq!(*seen.lock().unwrap(), [1, 2, 3]);
        feed.flush();
        assert_eq!(*seen.lock().unwrap(), [1, 2, 3, 4]);
        let trace = feed.trace(0);
        assert_eq!((trace.events.len(), trace.lost), (4, 0));
        assert!(trace.events.iter().all(|event| event.device == 3));
        assert!(trace.events.is_sorted_by_key(|event| event.at));
    }

    #[test]
    fn nothing_is_lost_and_the_order_of_each_source_is_kept() {
        let feed = feed();
        std::thread::scope(|scope| {
            for sq_id in 0..3 {
                let feed = &feed;
                scope.spawn(move || {
                    (0..500).for_each(|head| feed.send(|| What::HeadPublished { sq_id, head }));
                });
            }
            for head in 0..500 {
                feed.tell(|| What::HeadPublished { sq_id: 3, head });
            }
        });
        let mut next = [0; 4];
        for event in feed.trace(0).events {
            let What::HeadPublished { sq_id, head } = event.what else { unreachable!() };
            assert_eq!(head, next[sq_id as usize]);
            next[sq_id as usize] += 1;
        }
        assert_eq!(next, [500; 4]);
    }
}
