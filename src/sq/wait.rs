//! A wait for the device: longer pauses each time, and a limit by the clock.

use embedded_hal::delay::DelayNs;

use crate::port::Platform;

/// First and longest pause between two looks at the head of a full ring.
const PAUSE_NS: (u32, u32) = (1_000, 1_000_000);

/// A wait for the device that ends. It begins with its first pause.
pub(crate) struct Wait {
    since_us: u64,
    /// The next pause; 0: the wait has not begun.
    pause_ns: u32,
}

impl Wait {
    /// A wait that has not begun.
    pub(crate) const NONE: Self = Self { since_us: 0, pause_ns: 0 };

    /// Pauses, for twice as long each time up to the cap. `false`, without a pause: the wait has lasted for `limit_us`.
    #[cold]
    #[inline(never)]
    pub(crate) fn pause<P: Platform>(&mut self, port: &P, limit_us: u64) -> bool {
        let now_us = port.now_us();
        if self.pause_ns == 0 {
            *self = Self { since_us: now_us, pause_ns: PAUSE_NS.0 };
        }
        if now_us.saturating_sub(self.since_us) >= limit_us {
            return false;
        }
        let pause_ns = self.pause_ns;
        self.pause_ns = (pause_ns * 2).min(PAUSE_NS.1);
        port.delay().delay_ns(pause_ns);
        true
    }
}
