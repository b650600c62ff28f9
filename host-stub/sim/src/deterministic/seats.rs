//! Deterministic mode: kernels, scheduler and host waits take turns, a [`Chooser`] picks whose turn is next, time is virtual.
//!
//! Each actor has a seat. Only the holder of the turn runs; the others wait for their turn, for a time, or to be
//! woken. The device stands still while no host thread is inside a call that waits, so that one host thread that does the
//! same calls twice sees the same twice. Calls of several host threads come in the order that the operating system picks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Gone, HostWait, NoTurn, Turn};
use crate::cost::CostModel;
use crate::event::access::Object;
use crate::event::chooser::{Actor, Chooser};
use crate::ids::StreamId;

/// What a turn takes, so that a kernel that only looks at the clock sees it go on.
const TURN_NS: u64 = 100;
/// Turns without progress after which time advances to the next deadline: an actor polls for something that only time changes.
const IDLE_TURNS: u32 = 10_000;
/// First and longest leap of that kind.
const LEAP_NS: (u64, u64) = (1_000_000, 1_000_000_000);
/// `alone_until` of a holder that others wait beside.
const NOT_ALONE: u64 = 0;
/// A deadline that is never reached.
const NEVER: u64 = u64::MAX;

/// Seat of the scheduler. Those of the cores follow.
const STARS: usize = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Takes no part.
    Absent,
    /// Can go on.
    Ready,
    /// Can go on at this virtual time, or when woken.
    Waiting(u64),
}

struct Seat {
    status: Status,
    /// Never comes back.
    expelled: bool,
    /// Waits for the scheduler to achieve something, whatever that is.
    wants_step: bool,
    /// Taken away by the watchdog; not reported yet.
    stuck: bool,
    called: Arc<Condvar>,
}

impl Seat {
    fn new(status: Status) -> Self {
        Self { status, expelled: false, wants_step: false, stuck: false, called: Arc::default() }
    }
}

struct State {
    chooser: Box<dyn Chooser>,
    seats: Vec<Seat>,
    holder: Option<usize>,
    /// Turns that were given, for the watchdog.
    turns: u64,
    /// Host threads inside a call.
    hosts: u32,
    leap_ns: u64,
    closed: bool,
}

impl State {
    fn can_go_on(&self, index: usize, now: u64) -> bool {
        match self.seats[index].status {
            Status::Absent => false,
            Status::Ready => true,
            Status::Waiting(deadline) => deadline <= now,
        }
    }

    /// Earliest deadline of an actor that is not over.
    fn next_deadline(&self, now: u64) -> u64 {
        let deadline = |seat: &Seat| if let Status::Waiting(deadline) = seat.status { deadline } else { NEVER };
        self.seats.iter().map(deadline).filter(|deadline| *deadline > now).min().unwrap_or(NEVER)
    }
}

/// The seats of one device.
pub struct Seats {
    state: Mutex<State>,
    /// Virtual time. Written by the holder alone, or under the lock while there is none.
    now_ns: AtomicU64,
    /// Up to this time only the holder can run: its turns need no lock.
    alone_until: AtomicU64,
    /// Turns since something was last achieved.
    idle: AtomicU32,
    cores: usize,
    watchdog: Duration,
    /// What a turn takes, without a cost model.
    turn_ns: u64,
    costs: Option<CostModel>,
}

impl Seats {
    /// Seats for the scheduler and `cores` cores. A core that keeps the turn for as long as `watchdog` of real time loses its seat.
    pub fn new(chooser: Box<dyn Chooser>, cores: usize, watchdog: Duration) -> Self {
        let mut seats = vec![Seat::new(Status::Ready)];
        seats.resize_with(1 + cores, || Seat::new(Status::Absent));
        let state = State { chooser, seats, holder: None, turns: 0, hosts: 0, leap_ns: LEAP_NS.0, closed: false };
        Self {
            state: Mutex::new(state),
            now_ns: AtomicU64::new(0),
            alone_until: AtomicU64::new(NOT_ALONE),
            idle: AtomicU32::new(0),
            cores,
            watchdog,
            turn_ns: TURN_NS,
            costs: None,
        }
    }

    /// Time follows `costs`, and a turn takes none.
    pub fn with_costs(self, costs: CostModel) -> Self {
        Self { turn_ns: 0, costs: Some(costs), ..self }
    }

    /// The kernel on `core` does what takes as long as `cost` says; without a model, one turn.
    fn spend(&self, core: usize, cost: fn(&CostModel) -> u64) -> Result<(), Gone> {
        match &self.costs {
            None => self.yield_core(core),
            Some(costs) => match cost(costs) {
                0 => self.yield_core(core),
                ns => self.delay(core, u32::try_from(ns).unwrap_or(u32::MAX)),
            },
        }
    }

    /// The scheduler's first turn.
    ///
    /// # Errors
    /// [`Gone`].
    pub fn begin_scheduler(&self) -> Result<(), Gone> {
        self.wait_for_turn(self.lock(), STARS).map_err(|_| Gone)
    }

    /// The scheduler has achieved something and can go on.
    ///
    /// # Errors
    /// [`Gone`].
    pub fn scheduler_worked(&self) -> Result<(), Gone> {
        let mut state = self.lock();
        self.progress(&mut state);
        for seat in state.seats.iter_mut().filter(|seat| seat.wants_step) {
            (seat.status, seat.wants_step) = (Status::Ready, false);
        }
        drop(state);
        self.pass(STARS, Status::Ready).map_err(|_| Gone)
    }

    /// The scheduler has nothing to do until it is woken, or this much time is over.
    ///
    /// # Errors
    /// [`Gone`].
    pub fn scheduler_waits(&self, limit: Option<Duration>) -> Result<(), Gone> {
        let deadline = self.deadline(limit);
        self.pass(STARS, Status::Waiting(deadline)).map_err(|_| Gone)
    }

    /// A host thread takes part, for as long as it keeps what this gives, and waits for its first turn.
    fn enter(&self) -> HostTurn<'_> {
        let mut state = self.lock();
        let first = self.cores + 1;
        let free = (first..state.seats.len()).find(|index| state.seats[*index].status == Status::Absent);
        let seat = free.unwrap_or_else(|| {
            state.seats.push(Seat::new(Status::Absent));
            state.seats.len() - 1
        });
        state.seats[seat].status = Status::Ready;
        state.hosts += 1;
        self.alone_until.store(NOT_ALONE, Ordering::Relaxed);
        if state.holder.is_none() {
            self.pick(&mut state);
        }
        // If the device closes, every wait of the host says so.
        let _ = self.wait_for_turn(state, seat);
        HostTurn { seats: self, seat }
    }

    fn deadline(&self, limit: Option<Duration>) -> u64 {
        let ns = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(NEVER);
        limit.map_or(NEVER, |limit| self.now_ns.load(Ordering::Relaxed).saturating_add(ns(limit)))
    }

    fn progress(&self, state: &mut State) {
        self.idle.store(0, Ordering::Relaxed);
        state.leap_ns = LEAP_NS.0;
    }

    fn wake(&self, seats: std::ops::Range<usize>) {
        let mut state = self.lock();
        let range = seats.start..seats.end.min(state.seats.len());
        for seat in &mut state.seats[range] {
            if matches!(seat.status, Status::Waiting(_)) {
                seat.status = Status::Ready;
            }
        }
        self.progress(&mut state);
        self.alone_until.store(NOT_ALONE, Ordering::Relaxed);
        if state.holder.is_none() {
            self.pick(&mut state);
        }
    }

    fn leave(&self, seat: usize) {
        let mut state = self.lock();
        state.seats[seat].status = Status::Absent;
        state.seats[seat].wants_step = false;
        if seat > self.cores {
            state.hosts -= 1;
        }
        self.progress(&mut state);
        if state.holder == Some(seat) {
            self.pick(&mut state);
        }
    }

    fn expel_seat(&self, state: &mut State, seat: usize) {
        state.seats[seat].status = Status::Absent;
        state.seats[seat].expelled = true;
        state.seats[seat].called.notify_all();
        self.alone_until.store(NOT_ALONE, Ordering::Relaxed);
        if state.holder == Some(seat) {
            self.pick(state);
        }
    }

    /// The holder gives the turn away and waits for its next turn.
    fn pass(&self, seat: usize, status: Status) -> Result<(), NoTurn> {
        let mut state = self.lock();
        if state.closed || state.seats[seat].expelled {
            return Err(NoTurn::Gone);
        }
        state.seats[seat].status = status;
        self.pick(&mut state);
        self.wait_for_turn(state, seat)
    }

    /// Gives the turn to one of those that can go on; lets time go on if there is none.
    fn pick(&self, state: &mut State) {
        state.holder = None;
        self.alone_until.store(NOT_ALONE, Ordering::Relaxed);
        if state.hosts == 0 || state.closed {
            return;
        }
        let mut now = self.now_ns.load(Ordering::Relaxed).saturating_add(self.turn_ns);
        let idle = self.idle.load(Ordering::Relaxed);
        self.idle.store(idle + 1, Ordering::Relaxed);
        if idle >= IDLE_TURNS {
            now = now.saturating_add(state.leap_ns).min(state.next_deadline(now));
            state.leap_ns = (state.leap_ns * 2).min(LEAP_NS.1);
            self.idle.store(0, Ordering::Relaxed);
        }
        if !(0..state.seats.len()).any(|seat| state.can_go_on(seat, now)) {
            match state.next_deadline(now) {
                NEVER => return,
                deadline => now = deadline,
            }
            self.idle.store(0, Ordering::Relaxed);
        }
        self.now_ns.store(now, Ordering::Relaxed);
        let seat = self.draw(state, now);
        state.seats[seat].status = Status::Ready;
        state.holder = Some(seat);
        state.turns += 1;
        if (0..state.seats.len()).filter(|seat| state.can_go_on(*seat, now)).count() == 1 {
            self.alone_until.store(state.next_deadline(now), Ordering::Relaxed);
        }
        state.seats[seat].called.notify_all();
    }

    /// Seat of the one that goes on.
    fn draw(&self, state: &mut State, now: u64) -> usize {
        let seats: Vec<usize> = (0..state.seats.len()).filter(|seat| state.can_go_on(*seat, now)).collect();
        if let [only] = seats[..] {
            return only;
        }
        let actors: Vec<Actor> = seats.iter().map(|seat| self.actor(*seat)).collect();
        seats[state.chooser.choose(&actors)]
    }

    fn actor(&self, seat: usize) -> Actor {
        match seat {
            STARS => Actor::Stars,
            seat if seat <= self.cores => Actor::Core { device: 0, core: seat - 1 },
            seat => Actor::Host(seat - self.cores - 1),
        }
    }

    fn wait_for_turn(&self, mut state: MutexGuard<'_, State>, seat: usize) -> Result<(), NoTurn> {
        let called = Arc::clone(&state.seats[seat].called);
        let progress = |state: &State| (state.turns, self.now_ns.load(Ordering::Relaxed));
        let mut seen = progress(&state);
        loop {
            if state.closed || state.seats[seat].expelled {
                return Err(NoTurn::Gone);
            }
            if state.holder == Some(seat) {
                return Ok(());
            }
            let (guard, waited) = called.wait_timeout(state, self.watchdog).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            let now = progress(&state);
            if waited.timed_out() && now == seen {
                match state.holder {
                    Some(holder) if (1..=self.cores).contains(&holder) => self.bark(&mut state, holder),
                    None if seat > self.cores => return Err(NoTurn::Deadlock),
                    // Scheduler and host calls end by themselves; the scheduler may copy many bytes.
                    _ => {}
                }
            }
            seen = now;
        }
    }

    /// Takes the seat of a core that has kept the turn for too long.
    fn bark(&self, state: &mut State, seat: usize) {
        state.seats[seat].stuck = true;
        state.seats[STARS].status = Status::Ready;
        self.expel_seat(state, seat);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn for Seats {
    /// Virtual time.
    fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    fn add_core(&self, core: usize) {
        let mut state = self.lock();
        state.seats[1 + core].status = Status::Ready;
        self.alone_until.store(NOT_ALONE, Ordering::Relaxed);
    }

    fn begin_core(&self, core: usize) -> Result<(), Gone> {
        self.wait_for_turn(self.lock(), 1 + core).map_err(|_| Gone)?;
        match &self.costs {
            None => Ok(()),
            Some(_) => self.spend(core, |costs| costs.launch_ns),
        }
    }

    fn enter_call(&self, core: usize) -> Result<(), Gone> {
        self.spend(core, |costs| costs.call_ns)
    }

    fn ring(&self, core: usize) -> Result<(), Gone> {
        self.spend(core, |costs| costs.doorbell_ns)
    }

    fn core_looks(&self, core: usize, _sq_id: u32, _object: Object) {
        if self.costs.is_some() {
            // A kernel that was given up is told so by the read.
            let _ = self.spend(core, |costs| costs.look_ns);
        }
    }

    fn clock(&self, core: usize) -> Result<Duration, Gone> {
        self.spend(core, |costs| costs.look_ns)?;
        Ok(self.now())
    }

    fn yield_core(&self, core: usize) -> Result<(), Gone> {
        // Alone, there is nothing to pick: only time goes on.
        let now = self.now_ns.load(Ordering::Relaxed) + self.turn_ns;
        let idle = self.idle.load(Ordering::Relaxed);
        if now < self.alone_until.load(Ordering::Relaxed) && idle < IDLE_TURNS {
            self.now_ns.store(now, Ordering::Relaxed);
            self.idle.store(idle + 1, Ordering::Relaxed);
            return Ok(());
        }
        self.pass(1 + core, Status::Ready).map_err(|_| Gone)
    }

    fn delay(&self, core: usize, ns: u32) -> Result<(), Gone> {
        let until = self.now_ns.load(Ordering::Relaxed).saturating_add(ns.into());
        if ns == 0 {
            return self.yield_core(core);
        }
        if until < self.alone_until.load(Ordering::Relaxed) {
            self.now_ns.store(until, Ordering::Relaxed);
            self.idle.store(0, Ordering::Relaxed);
            return Ok(());
        }
        self.pass(1 + core, Status::Waiting(until)).map_err(|_| Gone)
    }

    fn end_core(&self, core: usize) {
        self.leave(1 + core);
    }

    fn expel(&self, core: usize) {
        self.expel_seat(&mut self.lock(), 1 + core);
    }

    fn take_stuck(&self, core: usize) -> Option<Duration> {
        std::mem::take(&mut self.lock().seats[1 + core].stuck).then_some(self.watchdog)
    }

    fn wakes_scheduler(&self) -> bool {
        self.wake(STARS..STARS + 1);
        true
    }

    fn wake_hosts(&self, _stream: StreamId, _completed: u64) {
        self.wake(self.cores + 1..usize::MAX);
    }

    /// The chooser decides whether the device or the host runs next.
    fn host_passes(&self) {
        let host = self.enter();
        // A device that closes needs no turn.
        let _ = self.pass(host.seat, Status::Ready);
    }

    fn host_waits(&self, wait: HostWait, is_done: &mut dyn FnMut(Duration) -> bool) -> Result<(), NoTurn> {
        let host = self.enter();
        let until = match wait {
            HostWait::Answer(_) => None,
            HostWait::Operations { limit, .. } => Some(self.now().saturating_add(limit)),
        };
        while !is_done(Duration::ZERO) {
            match until {
                Some(until) if self.now() >= until => return Err(NoTurn::TimedOut),
                Some(_) => {}
                // Whatever the scheduler does next may be the answer.
                None => self.lock().seats[host.seat].wants_step = true,
            }
            host.wait(until)?;
        }
        Ok(())
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.alone_until.store(NOT_ALONE, Ordering::Relaxed);
        for seat in &state.seats {
            seat.called.notify_all();
        }
    }
}

/// A host thread inside a call that waits. Dropped, it takes part no more.
struct HostTurn<'s> {
    seats: &'s Seats,
    seat: usize,
}

impl HostTurn<'_> {
    /// Waits until something has happened that hosts wait for, or for this virtual time.
    fn wait(&self, until: Option<Duration>) -> Result<(), NoTurn> {
        let deadline = until.map_or(NEVER, |until| u64::try_from(until.as_nanos()).unwrap_or(NEVER));
        self.seats.pass(self.seat, Status::Waiting(deadline))
    }
}

impl Drop for HostTurn<'_> {
    fn drop(&mut self) {
        self.seats.leave(self.seat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Seed;

    const WATCHDOG: Duration = Duration::from_millis(50);

    /// What one run of a scheduler and two cores, each with `turns` turns, looks like: who had the turn, in order.
    fn order(seed: u64, turns: usize) -> Vec<usize> {
        let (seats, order) =
            (Seats::new(Box::new(Seed::new(seed)), 2, Duration::from_secs(60)), Mutex::new(Vec::new()));
        let note = |who| order.lock().unwrap().push(who);
        std::thread::scope(|scope| {
            for core in 0..2 {
                seats.add_core(core);
                let (seats, note) = (&seats, &note);
                scope.spawn(move || {
                    seats.begin_core(core).unwrap();
                    // The host ends it all once it has seen every turn.
                    let turn = |_| {
                        note(core);
                        seats.yield_core(core).is_ok()
                    };
                    if (0..turns).all(turn) {
                        seats.end_core(core);
                    }
                });
            }
            scope.spawn(|| {
                seats.begin_scheduler().unwrap();
                let turn = |_| {
                    note(2);
                    seats.scheduler_worked().is_ok()
                };
                assert!(!(0..turns).all(turn) || seats.scheduler_waits(None) == Err(Gone));
            });
            let host = seats.enter();
            while order.lock().unwrap().len() < 3 * turns {
                host.wait(Some(seats.now() + Duration::from_secs(1))).unwrap();
            }
            seats.close();
        });
        order.into_inner().unwrap()
    }

    #[test]
    fn seed_decides_the_order() {
        let orders: Vec<_> = (0..10).map(|seed| order(seed, 10)).collect();
        for (seed, first) in (0..).zip(&orders) {
            assert_eq!(*first, order(seed, 10), "seed {seed}");
            assert!((0..3).all(|who| first.iter().filter(|seen| **seen == who).count() == 10), "seed {seed}");
        }
        assert!(orders.iter().any(|other| *other != orders[0]));
    }

    #[test]
    fn nothing_runs_without_a_host() {
        let seats = Seats::new(Box::new(Seed::new(1)), 2, WATCHDOG);
        std::thread::scope(|scope| {
            let scheduler = scope.spawn(|| seats.begin_scheduler());
            std::thread::sleep(WATCHDOG * 3);
            assert!(!scheduler.is_finished());
            seats.close();
            assert_eq!(scheduler.join().unwrap(), Err(Gone));
        });
    }

    #[test]
    fn host_that_waits_for_nothing_hears_of_it() {
        let seats = Seats::new(Box::new(Seed::new(1)), 2, WATCHDOG);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                seats.begin_scheduler().unwrap();
                assert_eq!(seats.scheduler_waits(None), Err(Gone));
            });
            let host = seats.enter();
            assert_eq!(host.wait(None), Err(NoTurn::Deadlock));
            drop(host);
            let answer = HostWait::Answer(Duration::ZERO);
            assert_eq!(seats.host_waits(answer, &mut |_| false), Err(NoTurn::Deadlock));
            seats.close();
            assert_eq!(seats.host_waits(answer, &mut |_| false), Err(NoTurn::Gone));
        });
    }

    #[test]
    fn time_goes_to_the_earliest_deadline() {
        let seats = Seats::new(Box::new(Seed::new(1)), 2, WATCHDOG);
        let host = seats.enter();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                seats.begin_scheduler().unwrap();
                seats.scheduler_waits(Some(Duration::from_secs(5))).unwrap();
                assert_eq!(seats.now().as_secs(), 5);
                assert_eq!(seats.scheduler_waits(None), Err(Gone));
            });
            host.wait(Some(Duration::from_secs(7))).unwrap();
            assert_eq!(seats.now(), Duration::from_secs(7));
            seats.close();
        });
    }
}
