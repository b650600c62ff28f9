//! The turns of one device of a run.

use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::hosts;
use super::seat::{Awaited, NEVER, Status};
use crate::deterministic::{Gone, HostWait, NoTurn, Turn};
use crate::event::{Access, AccessKind, Actor, Object};
use crate::ids::StreamId;

/// Times that a kernel reads the clock, with no other call between, after which it counts as a loop.
const CLOCK_LOOP: u32 = 16;
/// First pause of a kernel that reads the clock in a loop, and of one whose wait ends by time again and again: they double.
const PAUSE_NS: u64 = 1_000_000;
/// Times that a pause is doubled.
const DOUBLED: u32 = 20;

/// The part of an engine that belongs to one device.
pub struct DeviceTurn {
    engine: Arc<Engine>,
    device: u32,
}

impl DeviceTurn {
    /// For the device with this number in the run.
    pub fn new(engine: Arc<Engine>, device: u32) -> Self {
        Self { engine, device }
    }

    fn actor(&self, core: usize) -> Actor {
        Actor::Core { device: self.device, core }
    }

    /// Does something with the seat of a core.
    fn with_core<R>(&self, core: usize, change: impl FnOnce(&mut super::seat::Seat) -> R) -> R {
        let mut state = self.engine.lock();
        let seat = self.engine.seat_of(&mut state, self.actor(core));
        change(&mut state.seats[seat])
    }

    fn seat(&self, core: usize) -> usize {
        self.engine.seat_of(&mut self.engine.lock(), self.actor(core))
    }

    fn core_passes(&self, core: usize, status: Status) -> Result<(), Gone> {
        self.engine.pass(self.seat(core), status).map_err(|_| Gone)
    }

    /// A kernel has ended a call, or itself: those that wait for a lock look again.
    fn call_ended(&self, core: usize) {
        self.engine.wake(|what| matches!(what, Awaited::Call { device, core: waiting } if *device == self.device && *waiting != core));
    }
}

impl Turn for DeviceTurn {
    fn now(&self) -> Duration {
        self.engine.now()
    }

    fn add_core(&self, core: usize) {
        self.with_core(core, |seat| {
            (seat.status, seat.expelled, seat.looked) = (Status::Ready, false, None);
            (seat.polls, seat.clock_reads, seat.in_call) = (0, 0, false);
        });
    }

    fn begin_core(&self, core: usize) -> Result<(), Gone> {
        let seat = self.seat(core);
        self.engine.wait_for_turn(self.engine.lock(), seat).map_err(|_| Gone)?;
        self.touch(Access::new(Object::Kernel(core), AccessKind::Await));
        Ok(())
    }

    fn yield_core(&self, core: usize) -> Result<(), Gone> {
        // Inside of a call: only its start is a choice.
        let is_over = self.engine.lock().closed;
        if is_over || self.with_core(core, |seat| seat.expelled) { Err(Gone) } else { Ok(()) }
    }

    fn enter_call(&self, core: usize) -> Result<(), Gone> {
        let was_in_call = self.with_core(core, |seat| {
            (seat.looked, seat.polls, seat.clock_reads) = (None, 0, 0);
            std::mem::replace(&mut seat.in_call, true)
        });
        if was_in_call {
            if !self.engine.has_touched() {
                self.touch(Access::new(Object::Calls, AccessKind::Write));
            }
            self.call_ended(core);
        }
        self.core_passes(core, Status::Ready)
    }

    fn core_looks(&self, core: usize, sq_id: u32, object: Object) {
        self.with_core(core, |seat| seat.looked = Some(sq_id));
        self.touch(Access::new(object, AccessKind::Read));
    }

    fn clock(&self, core: usize) -> Result<Duration, Gone> {
        let now = self.engine.now_ns();
        let reads = self.with_core(core, |seat| {
            seat.clock_reads += 1;
            seat.clock_reads
        });
        if let Some(over) = reads.checked_sub(CLOCK_LOOP) {
            self.engine.note_clock();
            let until = now.saturating_add(PAUSE_NS << over.min(DOUBLED));
            self.core_passes(core, Status::Waiting { what: Awaited::Time, until })?;
        } else {
            self.yield_core(core)?;
        }
        Ok(self.now())
    }

    fn delay(&self, core: usize, ns: u32) -> Result<(), Gone> {
        let (device, now) = (self.device, self.engine.now_ns());
        let (looked, polls) = self.with_core(core, |seat| {
            seat.clock_reads = 0;
            seat.polls += 1;
            (seat.looked.take(), seat.polls)
        });
        let what = match looked {
            _ if ns == 0 => Awaited::Call { device, core },
            Some(sq_id) => Awaited::Head { device, sq_id },
            None => Awaited::Time,
        };
        let until = match what {
            Awaited::Call { .. } => NEVER,
            _ => now.saturating_add(u64::from(ns) << polls.saturating_sub(1).min(DOUBLED)),
        };
        if ns == 0 {
            self.touch(Access::new(Object::Calls, AccessKind::Write));
        }
        self.core_passes(core, Status::Waiting { what, until })
    }

    fn end_core(&self, core: usize) {
        if self.yield_core(core).is_err() {
            // It was given up: what it does is no step of the run.
            return;
        }
        self.touch(Access::new(Object::Kernel(core), AccessKind::Write));
        if self.with_core(core, |seat| seat.in_call) && !self.engine.has_touched() {
            self.touch(Access::new(Object::Calls, AccessKind::Write));
        }
        self.call_ended(core);
        self.engine.leave(self.seat(core));
    }

    fn expel(&self, core: usize) {
        self.with_core(core, |seat| {
            (seat.status, seat.expelled) = (Status::Absent, true);
            seat.called.notify_all();
        });
    }

    fn take_stuck(&self, core: usize) -> Option<Duration> {
        self.with_core(core, |seat| std::mem::take(&mut seat.stuck)).then_some(self.engine.limits.watchdog)
    }

    fn is_stuck(&self, core: usize) -> bool {
        self.with_core(core, |seat| seat.stuck)
    }

    fn wakes_scheduler(&self) -> bool {
        true
    }

    fn wake_hosts(&self, stream: StreamId, completed: u64) {
        self.engine.wake(|what| {
            matches!(what, Awaited::Stream { device, stream: awaited, place }
                if *device == self.device && *awaited == stream && *place <= completed)
        });
    }

    fn answered(&self) {
        self.touch(Access::new(Object::Answers, AccessKind::Write));
        self.engine.wake(|what| matches!(what, Awaited::Answer { device } if *device == self.device));
    }

    fn explores(&self) -> bool {
        true
    }

    fn touch(&self, access: Access) {
        self.engine.touch(self.device, access);
        if let (Object::Head(sq_id) | Object::Status(sq_id), AccessKind::Write) = (access.object, access.kind) {
            let device = self.device;
            self.engine.wake(|what| *what == Awaited::Head { device, sq_id });
        }
    }

    /// What a host does comes with the choices before it.
    fn host_passes(&self) {}

    fn host_point(&self) {
        hosts::point(&self.engine);
    }

    fn host_waits(&self, wait: HostWait, is_done: &mut dyn FnMut(Duration) -> bool) -> Result<(), NoTurn> {
        let (device, engine) = (self.device, &self.engine);
        let seat = hosts::seat(engine);
        let (what, until) = match wait {
            HostWait::Answer(_) => (Awaited::Answer { device }, NEVER),
            HostWait::Operations { limit, stream, place } => {
                let limit = u64::try_from(limit.as_nanos()).unwrap_or(NEVER);
                (Awaited::Stream { device, stream, place }, engine.now_ns().saturating_add(limit))
            }
        };
        while !is_done(Duration::ZERO) {
            if engine.now_ns() >= until {
                return Err(NoTurn::TimedOut);
            }
            engine.pass(seat, Status::Waiting { what: what.clone(), until })?;
        }
        self.touch(match wait {
            HostWait::Answer(_) => Access::new(Object::Answers, AccessKind::Await),
            HostWait::Operations { stream, place, .. } => {
                Access::of(Object::Completed(stream), place, 1, AccessKind::Await)
            }
        });
        Ok(())
    }

    fn report(&self, text: &str) {
        self.engine.fail(text.to_owned());
    }

    /// The device closes.
    fn close(&self) {
        self.engine.detach(self.device);
    }
}
