//! Who may run, and what time it is: kernels, scheduler and host threads ask a [`Turn`] before they go on.
//!
//! [`FreeRunning`] lets everybody run at once, in the time of the host. In deterministic mode [`seats`] lets one run at a time,
//! and so does the engine of an [exploration](crate::explore).

pub mod seats;

use std::time::{Duration, Instant};

use crate::event::access::{Access, Object};
use crate::ids::StreamId;

/// How often a host that waits looks whether the device still works.
const WAIT_SLICE: Duration = Duration::from_secs(1);
/// Delays from this length on sleep, below they spin.
const SLEEP_NS: u32 = 50_000;

/// Not the caller's turn any more, ever: the device closes, or the seat was taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Why a host's wait ended without what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTurn {
    /// The device closes.
    Gone,
    /// Nothing could go on, and no other host thread has changed that for as long as the watchdog waits.
    Deadlock,
    /// The limit of the wait is over.
    TimedOut,
}

/// What a host thread waits for, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostWait {
    /// An answer of the scheduler. Limit in real time; in deterministic mode it has none but that something goes on.
    Answer(Duration),
    /// Operations of a stream.
    Operations {
        /// In the time of the device.
        limit: Duration,
        /// The stream.
        stream: StreamId,
        /// Place of the last one.
        place: u64,
    },
}

/// Decides who may run, and knows the time of the device. A method that is an actor's turn returns when the actor may go on.
pub trait Turn: Send + Sync {
    /// Time since the device was opened.
    fn now(&self) -> Duration;

    /// A kernel starts on `core`: from now on it gets turns.
    fn add_core(&self, core: usize);

    /// First turn of the kernel on `core`.
    ///
    /// # Errors
    /// [`Gone`].
    fn begin_core(&self, core: usize) -> Result<(), Gone>;

    /// The kernel on `core` lets others go before it.
    ///
    /// # Errors
    /// [`Gone`].
    fn yield_core(&self, core: usize) -> Result<(), Gone>;

    /// The kernel on `core` waits for `ns` nanoseconds.
    ///
    /// # Errors
    /// [`Gone`].
    fn delay(&self, core: usize, ns: u32) -> Result<(), Gone>;

    /// The kernel on `core` has ended.
    fn end_core(&self, core: usize);

    /// The kernel on `core` gets no turn any more.
    fn expel(&self, core: usize);

    /// If `core` was expelled since it kept its turn for too long: the limit. Says so once.
    fn take_stuck(&self, core: usize) -> Option<Duration>;

    /// Whether [`take_stuck`](Self::take_stuck) would tell of `core`.
    fn is_stuck(&self, core: usize) -> bool {
        let _ = core;
        false
    }

    /// There is something to do for the scheduler. Whether it hears of it by this; otherwise its thread has to be woken.
    fn wakes_scheduler(&self) -> bool;

    /// So many operations of a stream have completed.
    fn wake_hosts(&self, stream: StreamId, completed: u64);

    /// The scheduler has answered a host thread.
    fn answered(&self) {}

    /// Whether schedules are explored: what each step uses is to be told.
    fn explores(&self) -> bool {
        false
    }

    /// The step that is being made uses this.
    fn touch(&self, access: Access) {
        let _ = access;
    }

    /// The kernel on `core` enters a call: others may go before it.
    ///
    /// # Errors
    /// [`Gone`].
    fn enter_call(&self, core: usize) -> Result<(), Gone> {
        self.yield_core(core)
    }

    /// The kernel on `core` is about to ring a doorbell.
    ///
    /// # Errors
    /// [`Gone`].
    fn ring(&self, core: usize) -> Result<(), Gone> {
        self.yield_core(core)
    }

    /// The kernel on `core` looks at the head of a queue, or at its status: what it waits for next is a change of those.
    fn core_looks(&self, core: usize, sq_id: u32, object: Object) {
        let _ = (core, sq_id, object);
    }

    /// The kernel on `core` reads the clock.
    ///
    /// # Errors
    /// [`Gone`].
    fn clock(&self, core: usize) -> Result<Duration, Gone> {
        self.yield_core(core)?;
        Ok(self.now())
    }

    /// The calling host thread is about to do what others can see: they may go before it.
    fn host_point(&self) {}

    /// The device has failed, or a check has found something.
    fn report(&self, text: &str) {
        let _ = text;
    }

    /// The calling host thread lets the device go before it.
    fn host_passes(&self);

    /// The calling host thread waits until `is_done` says so, which is asked again and again and may take as long as it is told.
    ///
    /// # Errors
    /// [`NoTurn`].
    fn host_waits(&self, wait: HostWait, is_done: &mut dyn FnMut(Duration) -> bool) -> Result<(), NoTurn>;

    /// Ends it: every wait for a turn returns.
    fn close(&self);
}

/// Everybody runs at once, in real time.
#[derive(Debug)]
pub struct FreeRunning {
    started: Instant,
}

impl Default for FreeRunning {
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Turn for FreeRunning {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn add_core(&self, _core: usize) {}

    fn begin_core(&self, _core: usize) -> Result<(), Gone> {
        Ok(())
    }

    fn yield_core(&self, _core: usize) -> Result<(), Gone> {
        Ok(())
    }

    fn delay(&self, _core: usize, ns: u32) -> Result<(), Gone> {
        pause(ns);
        Ok(())
    }

    fn end_core(&self, _core: usize) {}

    fn expel(&self, _core: usize) {}

    fn take_stuck(&self, _core: usize) -> Option<Duration> {
        None
    }

    fn wakes_scheduler(&self) -> bool {
        false
    }

    fn wake_hosts(&self, _stream: StreamId, _completed: u64) {}

    fn host_passes(&self) {}

    fn host_waits(&self, wait: HostWait, is_done: &mut dyn FnMut(Duration) -> bool) -> Result<(), NoTurn> {
        let (HostWait::Answer(limit) | HostWait::Operations { limit, .. }) = wait;
        let started = Instant::now();
        loop {
            let left = limit.saturating_sub(started.elapsed());
            if is_done(left.min(WAIT_SLICE)) {
                return Ok(());
            }
            if left <= WAIT_SLICE {
                return Err(NoTurn::TimedOut);
            }
        }
    }

    fn close(&self) {}
}

/// Waits for `ns` nanoseconds of real time.
pub fn pause(ns: u32) {
    let limit = Duration::from_nanos(ns.into());
    if ns >= SLEEP_NS {
        return std::thread::sleep(limit);
    }
    let started = Instant::now();
    while started.elapsed() < limit {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_running_host_waits_until_it_is_done_or_its_limit_is_over() {
        let turn = FreeRunning::default();
        let mut asked = Vec::new();
        let waited = turn.host_waits(HostWait::Answer(Duration::from_secs(90)), &mut |slice| {
            asked.push(slice);
            asked.len() == 2
        });
        assert_eq!((waited, asked), (Ok(()), vec![WAIT_SLICE; 2]));
        let waited =
            turn.host_waits(HostWait::Operations { limit: Duration::ZERO, stream: 1, place: 1 }, &mut |slice| {
                assert_eq!(slice, Duration::ZERO);
                false
            });
        assert_eq!(waited, Err(NoTurn::TimedOut));
        assert_eq!((turn.yield_core(0), turn.take_stuck(0), turn.wakes_scheduler()), (Ok(()), None, false));
    }
}
