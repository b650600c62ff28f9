//! Who goes on in an exploration: one actor at a time in the whole process, and a [`Chooser`] says which.
//!
//! Host threads and kernels have threads of their own, which wait for the turn. Queues and streams have none: the thread that
//! gives the turn away makes their steps. A step goes from one choice to the next. Time stands still while an actor can go on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::seat::{Awaited, NEVER, Seat, Status};
use super::steps::{Idle, Steps};
use super::thread_state;
use crate::deterministic::NoTurn;
use crate::event::{Access, AccessKind, Actor, Chooser, Object};

/// How long a host thread that holds the turn may sleep outside of the library.
const ARRIVES_WITHIN: Duration = Duration::from_millis(100);
/// How often a thread that waits for its turn looks at the one that holds it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a run of a schedule was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Steps of all actors.
    pub steps: u64,
    /// Actors that have made a step.
    pub actors: usize,
    /// What tells this schedule from others.
    pub hash: u64,
    /// Hash of the options of the devices that were opened.
    pub options: u64,
    /// Why the token may not repeat it; `None`: it does.
    pub inexact: Option<String>,
    /// A kernel reads the clock in a loop: its schedules are without number.
    pub reads_clock: bool,
    /// What went wrong, the first first.
    pub failures: Vec<String>,
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps after which a schedule counts as one that does not end.
    pub steps: u64,
    /// How long, in real time, a kernel may take from one call of the device to the next.
    pub watchdog: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 1_000_000, watchdog: Duration::from_secs(10) }
    }
}

pub(super) struct State {
    chooser: Box<dyn Chooser>,
    pub(super) seats: Vec<Seat>,
    pub(super) holder: Option<usize>,
    /// A thread makes the steps of queues and streams.
    stepping: bool,
    /// Turns that were given to threads, for the watchdog.
    turns: u64,
    /// Whose step is being made.
    current: Option<Actor>,
    seen: Vec<Actor>,
    /// No turns are given any more: every wait ends.
    pub(super) closed: bool,
    deadlocked: bool,
    pub(super) outcome: Outcome,
}

type Device = Arc<Mutex<Box<dyn Steps>>>;

/// Devices of the run by their number, and where the HBM of each is.
#[derive(Default)]
struct Devices {
    steps: Vec<Option<Device>>,
    hbm: Vec<std::ops::Range<u64>>,
}

/// The turns of one run, shared by all its devices.
pub struct Engine {
    state: Mutex<State>,
    devices: Mutex<Devices>,
    /// What the step that is being made has used.
    touched: Mutex<Vec<Access>>,
    now_ns: AtomicU64,
    pub(super) limits: Limits,
}

impl Engine {
    /// A run in which `chooser` decides.
    pub fn new(chooser: Box<dyn Chooser>, limits: Limits) -> Arc<Self> {
        let outcome = Outcome { hash: HASH_START, options: HASH_START, ..Outcome::default() };
        let state = State {
            chooser,
            seats: Vec::new(),
            holder: None,
            stepping: false,
            turns: 0,
            current: None,
            seen: Vec::new(),
            closed: false,
            deadlocked: false,
            outcome,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            devices: Mutex::default(),
            touched: Mutex::default(),
            now_ns: AtomicU64::new(0),
            limits,
        })
    }

    /// Time of the run.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Number for a device whose HBM is at these addresses.
    pub fn add_device(&self, hbm: std::ops::Range<u64>) -> u32 {
        let mut devices = lock(&self.devices);
        devices.steps.push(None);
        devices.hbm.push(hbm);
        devices.hbm.len() as u32 - 1
    }

    /// A device was opened with these options.
    pub fn note_options(&self, text: &str) {
        let options = &mut self.lock().outcome.options;
        *options = text.bytes().fold(*options, |hash, byte| mix_in(hash, byte.into()));
    }

    /// The scheduler of a device.
    pub fn attach(&self, device: u32, steps: Box<dyn Steps>) {
        lock(&self.devices).steps[device as usize] = Some(Arc::new(Mutex::new(steps)));
    }

    /// A device closes: its kernels get no turn any more.
    pub(super) fn detach(&self, device: u32) {
        let steps = {
            let mut devices = lock(&self.devices);
            // Its addresses may belong to another device next.
            devices.hbm[device as usize] = 0..0;
            devices.steps[device as usize].take()
        };
        let mut state = self.lock();
        let is_core = |seat: &&mut Seat| matches!(seat.actor, Actor::Core { device: own, .. } if own == device);
        for seat in state.seats.iter_mut().filter(is_core) {
            (seat.expelled, seat.status) = (true, Status::Absent);
            seat.called.notify_all();
        }
        drop(state);
        if let Some(steps) = steps {
            lock(&steps).close(self.now());
        }
    }

    /// The step that is being made uses this, of a device.
    pub(super) fn touch(&self, device: u32, access: Access) {
        let access = match access.object {
            Object::Memory => self.in_memory(access),
            _ => Access { device, ..access },
        };
        lock(&self.touched).push(access);
    }

    /// By device and offset: a device may be at other addresses in the next run.
    fn in_memory(&self, access: Access) -> Access {
        let devices = lock(&self.devices);
        let (addr, end) = access.parts;
        match devices.hbm.iter().position(|hbm| hbm.contains(&addr)) {
            Some(device) => {
                let base = devices.hbm[device].start;
                Access { device: device as u32, parts: (addr - base, end - base), ..access }
            }
            None => access,
        }
    }

    /// Whether the step that is being made has used anything so far.
    pub(super) fn has_touched(&self) -> bool {
        !lock(&self.touched).is_empty()
    }

    /// Something went wrong.
    pub fn fail(&self, text: String) {
        self.lock().outcome.failures.push(text);
    }

    /// The token may not repeat the run.
    pub fn set_inexact(&self, why: String) {
        self.lock().outcome.inexact.get_or_insert(why);
    }

    /// What the run was like so far.
    pub fn outcome(&self) -> Outcome {
        let state = self.lock();
        Outcome { actors: state.seen.len(), ..state.outcome.clone() }
    }

    /// No turns are given any more: every wait ends, and threads run as they like.
    pub fn close(&self) {
        let mut state = self.lock();
        self.end(&mut state);
    }

    fn end(&self, state: &mut State) {
        state.closed = true;
        state.seats.iter().for_each(|seat| seat.called.notify_all());
    }

    /// Lets those go on that wait for what `is_over` names.
    pub(super) fn wake(&self, is_over: impl Fn(&Awaited) -> bool) {
        let mut state = self.lock();
        for seat in &mut state.seats {
            if matches!(&seat.status, Status::Waiting { what, .. } if is_over(what)) {
                seat.status = Status::Ready;
            }
        }
    }

    /// A seat for an actor, which it had before or which is new.
    pub(super) fn seat_of(&self, state: &mut State, actor: Actor) -> usize {
        state.seats.iter().position(|seat| seat.actor == actor).unwrap_or_else(|| {
            state.seats.push(Seat::new(actor));
            state.seats.len() - 1
        })
    }

    /// The holder of the turn gives it away, and waits for its next one.
    pub(super) fn pass(&self, seat: usize, status: Status) -> Result<(), NoTurn> {
        let mut state = self.lock();
        if state.closed || state.seats[seat].expelled {
            return Err(self.why_over(&state));
        }
        state.seats[seat].status = status;
        let state = if state.holder == Some(seat) { self.give(state) } else { state };
        self.wait_for_turn(state, seat)
    }

    /// The holder of the turn gives it away for good, or until it comes again.
    pub(super) fn leave(&self, seat: usize) {
        let mut state = self.lock();
        state.seats[seat].status = Status::Absent;
        if state.holder == Some(seat) && !state.closed {
            drop(self.give(state));
        }
    }

    fn why_over(&self, state: &State) -> NoTurn {
        if state.deadlocked { NoTurn::Deadlock } else { NoTurn::Gone }
    }

    /// Gives the turn to one of those that can go on, after the steps of queues and streams that are chosen before.
    fn give<'e>(&'e self, mut state: MutexGuard<'e, State>) -> MutexGuard<'e, State> {
        state.holder = None;
        if state.stepping {
            return state;
        }
        state.stepping = true;
        while !state.closed {
            drop(state);
            let devices: Vec<Device> = lock(&self.devices).steps.iter().flatten().cloned().collect();
            let now = self.now();
            while devices.iter().fold(false, |worked, device| worked | lock(device).settle(now)) {}
            let mut ready = Vec::new();
            devices.iter().for_each(|device| lock(device).ready(now, &mut ready));
            let touched = std::mem::take(&mut *lock(&self.touched));
            state = self.lock();
            if state.current.take().is_some() {
                state.chooser.ran(&touched);
            }
            let ns = self.now_ns();
            ready.extend(state.seats.iter().filter(|seat| seat.can_go_on(ns)).map(|seat| seat.actor));
            ready.sort_unstable();
            if ready.is_empty() {
                if !state.seats.iter().any(|seat| matches!(seat.actor, Actor::Host(_)) && seat.status != Status::Absent)
                {
                    break;
                }
                drop(state);
                let until = self.rest(&devices, now);
                state = self.lock();
                lock(&self.touched).clear();
                match until {
                    Idle::Until(until) if !self.let_time_pass(&mut state, until) => break,
                    _ => continue,
                }
            }
            let actor = self.choose(&mut state, &ready);
            match actor {
                Actor::Queue { device, .. } | Actor::Stream { device, .. } => {
                    drop(state);
                    let steps = lock(&self.devices).steps[device as usize].clone();
                    if let Some(steps) = steps {
                        lock(&steps).run(actor, now);
                    }
                    state = self.lock();
                }
                _ => {
                    let seat = self.seat_of(&mut state, actor);
                    state.seats[seat].status = Status::Ready;
                    state.holder = Some(seat);
                    state.turns += 1;
                    state.seats[seat].called.notify_all();
                    break;
                }
            }
        }
        state.stepping = false;
        state
    }

    fn choose(&self, state: &mut State, ready: &[Actor]) -> Actor {
        let actor = ready[state.chooser.choose(ready)];
        if !state.seen.contains(&actor) {
            state.seen.push(actor);
        }
        state.current = Some(actor);
        state.outcome.steps += 1;
        state.outcome.hash = mix(state.outcome.hash, actor);
        if state.outcome.steps == self.limits.steps {
            let text = format!("the schedule has not ended within {} steps", self.limits.steps);
            state.outcome.failures.push(text);
            self.end(state);
        }
        actor
    }

    /// Lets every device see that nothing can go on. The earliest time at which one of them looks again.
    fn rest(&self, devices: &[Device], now: Duration) -> Idle {
        let mut earliest: Option<Duration> = None;
        for device in devices {
            match lock(device).idle(now) {
                Idle::Worked => return Idle::Worked,
                Idle::Until(until) => earliest = earliest.into_iter().chain(until).min(),
            }
        }
        Idle::Until(earliest)
    }

    /// Lets time go to the next deadline. `false`: there is none, but a thread that waits outside of the library may come back.
    fn let_time_pass(&self, state: &mut State, until: Option<Duration>) -> bool {
        let ns = until.map_or(NEVER, |until| u64::try_from(until.as_nanos()).unwrap_or(NEVER));
        let next = state.seats.iter().map(Seat::until).chain([ns]).min().unwrap_or(NEVER);
        if next == NEVER {
            if state.seats.iter().any(|seat| seat.status == Status::Away) {
                return false;
            }
            let waiting = state.seats.iter().filter_map(Seat::describe).collect::<Vec<_>>().join("; ");
            state.outcome.failures.push(format!("deadlock: nothing can go on: {waiting}"));
            state.deadlocked = true;
            self.end(state);
            return true;
        }
        self.now_ns.fetch_max(next, Ordering::Relaxed);
        state.chooser.time_passed();
        true
    }

    /// Waits for the turn.
    pub(super) fn wait_for_turn<'e>(&'e self, mut state: MutexGuard<'e, State>, seat: usize) -> Result<(), NoTurn> {
        let called = Arc::clone(&state.seats[seat].called);
        let mut seen = (state.turns, Instant::now());
        loop {
            if state.closed || state.seats[seat].expelled {
                return Err(self.why_over(&state));
            }
            if state.holder == Some(seat) {
                return Ok(());
            }
            if state.holder.is_none() && !state.stepping {
                // The first one, or the holder has gone away.
                state = self.give(state);
                continue;
            }
            let (guard, waited) = called.wait_timeout(state, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if seen.0 != state.turns {
                seen = (state.turns, Instant::now());
            } else if waited.timed_out()
                && let Some(holder) = state.holder
            {
                state = self.look_at_holder(state, holder, seen.1.elapsed());
            }
        }
    }

    /// Takes the turn from a holder that has kept it for too long.
    fn look_at_holder<'e>(
        &'e self,
        mut state: MutexGuard<'e, State>,
        holder: usize,
        kept: Duration,
    ) -> MutexGuard<'e, State> {
        let seat = &mut state.seats[holder];
        match seat.actor {
            Actor::Core { .. } if kept >= self.limits.watchdog => {
                (seat.stuck, seat.expelled, seat.status) = (true, true, Status::Absent);
            }
            Actor::Host(number)
                if kept >= ARRIVES_WITHIN && seat.thread.as_deref().is_some_and(thread_state::sleeps) =>
            {
                seat.status = Status::Away;
                let why = format!("host thread {number} has waited outside of the library for {ARRIVES_WITHIN:?}");
                state.outcome.inexact.get_or_insert(why);
            }
            _ => return state,
        }
        self.give(state)
    }

    /// A host thread changes or uses a lock, condition or barrier, or another thread.
    pub(super) fn touch_own(&self, object: Object, kind: AccessKind) {
        self.touch(0, Access::new(object, kind));
    }

    /// A kernel reads the clock in a loop.
    pub(super) fn note_clock(&self) {
        self.lock().outcome.reads_clock = true;
    }
}

/// FNV-1a.
const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

fn mix(hash: u64, actor: Actor) -> u64 {
    let (kind, device, number) = match actor {
        Actor::Queue { device, sq_id } => (1, device, sq_id as usize),
        Actor::Stream { device, id } => (2, device, id as usize),
        Actor::Core { device, core } => (3, device, core),
        Actor::Host(number) => (4, 0, number),
        Actor::Stars | Actor::Transfer(_) | Actor::Streams => (0, 0, 0),
    };
    [kind, u64::from(device), number as u64].iter().fold(hash, |hash, part| mix_in(hash, *part))
}

fn mix_in(hash: u64, part: u64) -> u64 {
    (hash ^ part).wrapping_mul(0x0000_0100_0000_01b3)
}

pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seat {
    pub(super) fn new(actor: Actor) -> Self {
        Self {
            actor,
            status: Status::Absent,
            thread: None,
            expelled: false,
            stuck: false,
            looked: None,
            polls: 0,
            in_call: false,
            clock_reads: 0,
            called: Arc::new(Condvar::new()),
        }
    }
}
