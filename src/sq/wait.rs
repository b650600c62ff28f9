//! A wait for the device: longer pauses each time, and a limit by the clock.

use embedded_hal::delay::DelayNs;

use crate::error::QueueFull;
use crate::port::Platform;

use super::ring::Ring;

/// First and longest pause between two looks at the head of a full ring.
const PAUSE_NS: (u32, u32) = (1_000, 1_000_000);

/// A wait for the device that ends.
pub(crate) struct Wait {
    since_us: u64,
    /// `None`: waits for as long as it takes.
    timeout_us: Option<u64>,
    pause_ns: u32,
}

impl Wait {
    /// A wait that begins now.
    #[cold]
    pub(crate) fn new<P: Platform>(port: &P, timeout_us: Option<u64>) -> Self {
        Self { since_us: port.now_us(), timeout_us, pause_ns: PAUSE_NS.0 }
    }

    /// Pauses, for twice as long each time up to the cap. `false`, without a pause: the limit is over.
    #[cold]
    pub(crate) fn pause<P: Platform>(&mut self, port: &P) -> bool {
        if self.timeout_us.is_some_and(|limit| port.now_us().saturating_sub(self.since_us) >= limit) {
            return false;
        }
        port.delay().delay_ns(self.pause_ns);
        self.pause_ns = self.pause_ns.saturating_mul(2).min(PAUSE_NS.1);
        true
    }

    /// What the caller answers when the limit is over: `wanted` entries were not free.
    #[cold]
    pub(crate) fn over(&self, ring: Ring, head: u32, tail: u32, wanted: u32, queued_len: u64) -> QueueFull {
        let (sq_id, timeout_us) = (ring.queue.sq_id(), self.timeout_us.unwrap_or(0));
        QueueFull { sq_id, head, tail, wanted, queued_len, timeout_us }
    }
}
