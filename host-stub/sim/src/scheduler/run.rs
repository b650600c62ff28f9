//! The loop of the scheduler's thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::Progress;
use super::state::Scheduler;
use crate::deterministic::Turn;
use crate::deterministic::seats::Seats;
use crate::inbox::Inbox;
use crate::memory::Memory;
use crate::panics::panic_text;

/// How long the scheduler looks for work before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// How long it sleeps while something has to be polled, besides what the system adds (50 us unless told otherwise). An emulated
/// core sleeps after 100 us without a launch: the host should hear before of the end of the last one.
const NAP: Duration = Duration::from_micros(5);

/// The scheduler's thread in deterministic mode: one step a turn.
pub fn run_by_turns<M: Memory>(scheduler: Scheduler<M>, seats: &Seats) {
    until_panic(scheduler, |scheduler| step_by_turns(scheduler, seats));
}

/// The scheduler's thread: steps until it is told to stop, and sleeps when there is nothing to do.
pub fn run<M: Memory>(scheduler: Scheduler<M>, inbox: &Inbox) {
    until_panic(scheduler, |scheduler| step_and_sleep(scheduler, inbox));
}

/// Runs a scheduler. If it panics, its device has failed, and no call waits for it.
fn until_panic<M: Memory>(mut scheduler: Scheduler<M>, run: impl FnOnce(&mut Scheduler<M>)) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(|| run(&mut scheduler))) else { return };
    let text = panic_text(&*payload);
    // What is half done does not matter: no task runs any more, and all that is read is what is outstanding.
    if catch_unwind(AssertUnwindSafe(|| scheduler.crash(text.to_owned()))).is_err() {
        log::error!("the scheduler could not end what is outstanding");
    }
}

fn step_by_turns<M: Memory>(scheduler: &mut Scheduler<M>, seats: &Seats) {
    let _close = CloseAtEnd(seats);
    // Seats that are closed give no turns, and none are needed for what is left: to stop.
    let mut turn = seats.begin_scheduler();
    loop {
        let progress = scheduler.step(seats.now());
        if progress == Progress::Stopped {
            return;
        }
        if turn.is_err() {
            // The host is about to say `Stop`.
            std::thread::yield_now();
            continue;
        }
        turn = match progress {
            Progress::Waiting(limit) => seats.scheduler_waits(Some(limit)),
            Progress::Idle => seats.scheduler_waits(None),
            _ => seats.scheduler_worked(),
        };
    }
}

/// Tells everyone who waits for a turn that the scheduler has ended, also by a panic.
struct CloseAtEnd<'s>(&'s Seats);

impl Drop for CloseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn step_and_sleep<M: Memory>(scheduler: &mut Scheduler<M>, inbox: &Inbox) {
    inbox.attach();
    let started = Instant::now();
    let mut quiet_since = None;
    loop {
        let now = started.elapsed();
        let progress = scheduler.step(now);
        match progress {
            Progress::Stopped => return,
            Progress::Worked => {
                quiet_since = None;
                continue;
            }
            _ => {}
        }
        if scheduler.take_woken() {
            // On a machine with few processors it may be queued behind this thread, and would sit out the time below.
            std::thread::yield_now();
            continue;
        }
        if now.saturating_sub(*quiet_since.get_or_insert(now)) < SPIN {
            std::hint::spin_loop();
            continue;
        }
        match progress {
            Progress::Polling => inbox.park(Some(NAP)),
            Progress::Waiting(limit) => inbox.park(Some(limit)),
            _ => inbox.park(None),
        }
    }
}
