//! The event stream of a device: what happened, when, and by whom. Everything that looks back at a run reads this.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::map::HBM_STRIDE;

use super::baton::Baton;
use super::error::{DeviceError, DoorbellError};
use super::stream::StreamId;

/// Most events that are kept; later ones are only counted.
const CAPACITY: usize = 1 << 20;

/// Who caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// A call of the host.
    Host,
    /// The kernel on this core.
    Core(usize),
    /// The task scheduler.
    Stars,
    /// An SDMA engine.
    Sdma,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Core(core) => write!(f, "core {core}"),
            Self::Stars => f.write_str("stars"),
            Self::Sdma => f.write_str("sdma"),
        }
    }
}

/// The launch whose kernel rang for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Number of the launch, in the order in which they started, from 1.
    pub launch: u64,
    /// Core that it ran on.
    pub core: usize,
}

/// A task in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPlace {
    /// Stream of the queue.
    pub stream_id: u32,
    /// Queue.
    pub sq_id: u32,
    /// Slot of the ring.
    pub slot: u32,
    /// Its number.
    pub task_id: u32,
}

/// What a task works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRange {
    /// First byte written.
    pub dst: u64,
    /// First byte read.
    pub src: u64,
    /// Bytes.
    pub len: u32,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The host queued a launch on a stream.
    LaunchQueued {
        /// Stream.
        stream_id: StreamId,
        /// Kernel.
        kernel: Arc<str>,
    },
    /// A kernel was started.
    LaunchStarted {
        /// Launch and core.
        origin: Origin,
        /// Stream.
        stream_id: StreamId,
        /// Kernel.
        kernel: Arc<str>,
    },
    /// A kernel has returned; its tasks may still run.
    KernelReturned {
        /// Launch.
        launch: u64,
        /// What it returned.
        code: u32,
    },
    /// A kernel has returned and every queue that it rang is empty.
    LaunchEnded {
        /// Launch.
        launch: u64,
    },
    /// A doorbell was rung.
    Doorbell {
        /// Queue.
        sq_id: u32,
        /// One past the last entry that may run.
        tail: u32,
    },
    /// A doorbell was not taken.
    DoorbellRefused {
        /// Queue.
        sq_id: u32,
        /// Tail that it came with.
        tail: u32,
        /// Why.
        error: DoorbellError,
    },
    /// A task was fetched, and is carried out from now on.
    TaskStarted {
        /// Where it lay.
        task: TaskPlace,
        /// Kind, by name.
        kind: &'static str,
        /// What it works on.
        range: TaskRange,
        /// Who queued it; `None` if that can't be told.
        origin: Option<Origin>,
    },
    /// A task was carried out.
    TaskEnded {
        /// Where it lay.
        task: TaskPlace,
    },
    /// A queue has a new head.
    HeadPublished {
        /// Queue.
        sq_id: u32,
        /// Next entry that is fetched.
        head: u32,
    },
    /// The device reported an error.
    Error(DeviceError),
}

impl fmt::Display for TaskPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {} sq {} slot {} task {:#x}", self.stream_id, self.sq_id, self.slot, self.task_id)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LaunchQueued { stream_id, kernel } => write!(f, "launch queued: stream {stream_id} kernel {kernel}"),
            Self::LaunchStarted { origin: Origin { launch, core }, stream_id, kernel } => {
                write!(f, "launch {launch} started: stream {stream_id} kernel {kernel} core {core}")
            }
            Self::KernelReturned { launch, code } => write!(f, "launch {launch} kernel returned: code {code}"),
            Self::LaunchEnded { launch } => write!(f, "launch {launch} ended"),
            Self::Doorbell { sq_id, tail } => write!(f, "doorbell: sq {sq_id} tail {tail}"),
            Self::DoorbellRefused { sq_id, tail, error } => {
                write!(f, "doorbell refused: sq {sq_id} tail {tail}: {error}")
            }
            Self::TaskStarted { task, kind, range: TaskRange { dst, src, len }, origin } => {
                write!(f, "task started: {task} {kind} dst {dst:#x} src {src:#x} len {len}")?;
                match origin {
                    Some(Origin { launch, core }) => write!(f, " by launch {launch} core {core}"),
                    None => Ok(()),
                }
            }
            Self::TaskEnded { task } => write!(f, "task ended: {task}"),
            Self::HeadPublished { sq_id, head } => write!(f, "head published: sq {sq_id} head {head}"),
            Self::Error(error) => write!(f, "error: {error}"),
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, since the device was opened.
    pub time: Duration,
    /// By whom.
    pub who: Who,
    /// What.
    pub what: What,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, who, what } = self;
        write!(f, "{}.{:09} {who}: {what}", time.as_secs(), time.subsec_nanos())
    }
}

/// What a device has recorded. Its text has one line for each event, with addresses of HBM as offsets from its start: so it
/// does not depend on the slot of the process that the device got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// First address of HBM.
    pub hbm_base: u64,
    /// Events, in the order in which they were recorded.
    pub events: Vec<Event>,
    /// Events after those, for which there was no room.
    pub lost: u64,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            writeln!(f, "{}", with_offsets(&event.to_string(), self.hbm_base))?;
        }
        match self.lost {
            0 => Ok(()),
            lost => writeln!(f, "{lost} events lost"),
        }
    }
}

/// `text` with each hexadecimal number that lies in the terabyte from `base` on as an offset from there.
fn with_offsets(text: &str, base: u64) -> String {
    let mut parts = text.split("0x");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        let offset = u64::from_str_radix(&part[..end], 16).ok().and_then(|addr| addr.checked_sub(base));
        match offset.filter(|offset| *offset < HBM_STRIDE) {
            Some(offset) => shown += &format!("hbm+{offset:#x}{}", &part[end..]),
            None => shown += &format!("0x{part}"),
        }
    }
    shown
}

/// The time of a device.
#[derive(Clone)]
pub enum Clock {
    /// That of the host, since this instant.
    Real(Instant),
    /// That of the baton.
    Virtual(Arc<Baton>),
}

impl Clock {
    /// Time since the device was opened.
    pub fn now(&self) -> Duration {
        match self {
            Self::Real(started) => started.elapsed(),
            Self::Virtual(baton) => baton.now(),
        }
    }
}

/// Doorbells of one queue whose tasks have not all been fetched: the tail of each, and who rang.
type Rings = VecDeque<(u32, Option<Origin>)>;

/// Where a device records its events. Switched off it costs one look at a flag.
pub struct Recorder {
    on: Option<Clock>,
    events: Mutex<Vec<Event>>,
    lost: AtomicU64,
    rings: Vec<Mutex<Rings>>,
}

impl Recorder {
    /// A recorder that records nothing.
    pub fn off() -> Self {
        Self { on: None, events: Mutex::default(), lost: AtomicU64::new(0), rings: Vec::new() }
    }

    /// A recorder for a device with `queues` queues.
    pub fn new(clock: Clock, queues: u32) -> Self {
        Self { on: Some(clock), rings: (0..queues).map(|_| Mutex::default()).collect(), ..Self::off() }
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// Records what `what` says, if anything is recorded.
    pub fn record(&self, who: Who, what: impl FnOnce() -> What) {
        let Some(clock) = &self.on else { return };
        let mut events = lock(&self.events);
        if events.len() >= CAPACITY {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The clock is read under the lock: times never go back.
        events.push(Event { time: clock.now(), who, what: what() });
    }

    /// What was recorded so far, on a device whose HBM starts at `hbm_base`.
    pub fn trace(&self, hbm_base: u64) -> Trace {
        Trace { hbm_base, events: lock(&self.events).clone(), lost: self.lost.load(Ordering::Relaxed) }
    }

    /// `origin` rings queue `sq_id` up to `tail`.
    pub fn rung(&self, sq_id: u32, tail: u32, origin: Option<Origin>) {
        if let Some(rings) = self.rings.get(sq_id as usize) {
            lock(rings).push_back((tail, origin));
        }
    }

    /// Who rang for the entry at `slot`, which is fetched now. Entries are asked for in the order of the queue.
    pub fn origin(&self, sq_id: u32, slot: u32) -> Option<Origin> {
        let mut rings = lock(self.rings.get(sq_id as usize)?);
        // A doorbell whose tail is this slot ended before it.
        while rings.front().is_some_and(|(tail, _)| *tail == slot) {
            rings.pop_front();
        }
        rings.front()?.1
    }

    /// Queue `sq_id` begins anew.
    pub fn forget_rings(&self, sq_id: u32) {
        if let Some(rings) = self.rings.get(sq_id as usize) {
            lock(rings).clear();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder() -> Recorder {
        Recorder::new(Clock::Real(Instant::now()), 2)
    }

    #[test]
    fn every_task_has_the_doorbell_that_covers_it() {
        let recorder = recorder();
        let origin = |core| Some(Origin { launch: 1, core });
        // Depth 4. The second doorbell brings nothing new; the third wraps.
        for (tail, core) in [(2, 0), (2, 1), (1, 1)] {
            recorder.rung(1, tail, origin(core));
        }
        let origins = [0, 1, 2, 3, 0].map(|slot| recorder.origin(1, slot));
        assert_eq!(origins, [origin(0), origin(0), origin(1), origin(1), origin(1)]);
        assert_eq!(recorder.origin(1, 1), None, "never rung for");
        assert_eq!(recorder.origin(7, 1), None, "no such queue");
    }

    #[test]
    fn switched_off_it_does_not_even_ask() {
        Recorder::off().record(Who::Host, || unreachable!("nothing is recorded"));
    }

    #[test]
    fn text_has_a_line_for_each_event() {
        let task = TaskPlace { stream_id: 3, sq_id: 1, slot: 0, task_id: 1024 };
        let base = 0x12c0_0000_0000;
        let range = TaskRange { dst: base + 0x2000, src: 0x1000, len: 16 };
        let origin = Some(Origin { launch: 2, core: 1 });
        let time = Duration::new(1, 5);
        let events = vec![
            Event { time, who: Who::Core(1), what: What::Doorbell { sq_id: 1, tail: 1 } },
            Event { time, who: Who::Sdma, what: What::TaskStarted { task, kind: "sdma copy", range, origin } },
        ];
        let text = "1.000000005 core 1: doorbell: sq 1 tail 1\n\
                    1.000000005 sdma: task started: stream 3 sq 1 slot 0 task 0x400 sdma copy dst hbm+0x2000 \
                    src 0x1000 len 16 by launch 2 core 1\n7 events lost\n";
        assert_eq!(Trace { hbm_base: base, events, lost: 7 }.to_string(), text);
    }
}
