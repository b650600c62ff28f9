//! Host threads of a run: each is an actor, and they start and join each other by the turns of the run.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use super::engine::Engine;
use super::seat::{Awaited, NEVER, Status};
use super::thread_state;
use crate::deterministic::NoTurn;
use crate::event::{AccessKind, Actor, Object};

/// The part that a thread has in a run.
struct Part {
    engine: Weak<Engine>,
    seat: usize,
}

impl Drop for Part {
    fn drop(&mut self) {
        let Some(engine) = self.engine.upgrade() else { return };
        if let Some(number) = number_of(&engine, self.seat) {
            engine.touch_own(Object::Thread(number), AccessKind::Write);
            engine.wake(|what| *what == Awaited::Thread(number));
        }
        engine.leave(self.seat);
    }
}

thread_local! {
    /// The run that the thread takes part in.
    static PART: RefCell<Option<Part>> = const { RefCell::new(None) };
}

fn number_of(engine: &Engine, seat: usize) -> Option<usize> {
    match engine.lock().seats[seat].actor {
        Actor::Host(number) => Some(number),
        _ => None,
    }
}

/// The run that the calling thread takes part in.
pub fn current() -> Option<Arc<Engine>> {
    PART.try_with(|part| part.borrow().as_ref().and_then(|part| part.engine.upgrade())).ok().flatten()
}

/// A place for a thread that will [`enter`].
fn reserve(engine: &Arc<Engine>, status: Status) -> usize {
    let mut state = engine.lock();
    let number = state.seats.iter().filter(|seat| matches!(seat.actor, Actor::Host(_))).count();
    let seat = engine.seat_of(&mut state, Actor::Host(number));
    state.seats[seat].status = status;
    seat
}

/// The calling thread takes part in a run, until [`leave`] or its end.
fn enter(engine: &Arc<Engine>, seat: usize) {
    engine.lock().seats[seat].thread = thread_state::own_folder();
    PART.with(|part| *part.borrow_mut() = Some(Part { engine: Arc::downgrade(engine), seat }));
    // A run that is over gives no turns, and none are needed.
    let _ = engine.wait_for_turn(engine.lock(), seat);
}

/// The calling thread is the first one of a run.
pub fn enter_first(engine: &Arc<Engine>) {
    enter(engine, reserve(engine, Status::Ready));
}

/// The calling thread takes no part any more.
pub fn leave() {
    let part = PART.with(|part| part.borrow_mut().take());
    drop(part);
}

/// The seat of the calling thread, which may enter by this.
pub(super) fn seat(engine: &Arc<Engine>) -> usize {
    let own = PART.try_with(|part| {
        let part = part.borrow();
        part.as_ref().filter(|part| part.engine.as_ptr() == Arc::as_ptr(engine)).map(|part| part.seat)
    });
    match own {
        Ok(Some(seat)) => {
            come_back(engine, seat);
            seat
        }
        Ok(None) => {
            let seat = reserve(engine, Status::Ready);
            if !engine.lock().closed {
                engine.set_inexact("a thread takes part that the run has not started".to_owned());
            }
            enter(engine, seat);
            seat
        }
        // The thread ends, and its values are gone.
        Err(_) => reserve(engine, Status::Absent),
    }
}

/// A thread that was away, if it was, waits for its turn.
fn come_back(engine: &Engine, seat: usize) {
    let mut state = engine.lock();
    if state.seats[seat].status == Status::Away {
        state.seats[seat].status = Status::Ready;
        let _ = engine.wait_for_turn(state, seat);
    }
}

/// Others may go before the calling thread.
pub(super) fn point(engine: &Arc<Engine>) {
    // A run that is over gives no turns, and none are needed.
    let _ = engine.pass(seat(engine), Status::Ready);
}

/// A thread that was started and has not begun.
pub struct Started {
    engine: Arc<Engine>,
    seat: usize,
    number: usize,
}

impl Started {
    /// A thread that the calling one starts. Others may go first.
    pub fn new(engine: &Arc<Engine>) -> Self {
        let own = seat(engine);
        let seat = reserve(engine, Status::Ready);
        let number = number_of(engine, seat).expect("a seat of a host thread");
        engine.touch_own(Object::Thread(number), AccessKind::Write);
        let _ = own;
        Self { engine: Arc::clone(engine), seat, number }
    }

    /// Its number among the host threads of the run.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Called by the new thread: takes part, and waits for its turn.
    pub fn begin(self) {
        enter(&self.engine, self.seat);
        self.engine.touch_own(Object::Thread(self.number), AccessKind::Await);
    }
}

/// Whether host thread `number` takes no part any more.
fn has_ended(engine: &Engine, number: usize) -> bool {
    let state = engine.lock();
    state.seats.iter().any(|seat| seat.actor == Actor::Host(number) && seat.status == Status::Absent)
}

/// Waits until host thread `number` has ended.
///
/// # Errors
/// [`NoTurn`]: it does not, in this run.
pub fn join(engine: &Arc<Engine>, number: usize) -> Result<(), NoTurn> {
    let own = seat(engine);
    while !has_ended(engine, number) {
        engine.pass(own, Status::Waiting { what: Awaited::Thread(number), until: NEVER })?;
    }
    engine.touch_own(Object::Thread(number), AccessKind::Await);
    Ok(())
}

/// Waits until the calling thread is the only one of the run that is left.
pub fn join_all(engine: &Arc<Engine>) {
    let own = seat(engine);
    let others = || {
        let state = engine.lock();
        let is_other = |number: &usize| {
            let there = |seat: &&super::seat::Seat| seat.actor == Actor::Host(*number) && seat.status != Status::Absent;
            state.seats.iter().enumerate().any(|(place, seat)| place != own && there(&seat))
        };
        (0..state.seats.len()).find(is_other)
    };
    while let Some(number) = others() {
        if join(engine, number).is_err() {
            return;
        }
    }
}
