//! Transfers under way in a cost model: each has a start, then all share the rate of the device.

use std::time::Duration;

use crate::engine::Job;

/// Parts of a byte that progress is counted in, so that shares of many transfers are exact enough.
const PARTS: u128 = 1 << 32;

/// A transfer under way.
struct Running {
    job: Job,
    /// When it moves its first byte, in ns.
    begins: u64,
    /// Parts of bytes that are to be moved.
    left: u128,
}

/// Transfers under way on one device.
pub(crate) struct Transfers {
    start_ns: u64,
    bytes_per_us: u64,
    running: Vec<Running>,
    /// Up to when progress was counted, in ns.
    at: u64,
}

impl Transfers {
    /// None so far. `bytes_per_us` is at least 1.
    pub(crate) fn new(start_ns: u64, bytes_per_us: u64) -> Self {
        Self { start_ns, bytes_per_us: bytes_per_us.max(1), running: Vec::new(), at: 0 }
    }

    /// A transfer begins at `now`.
    pub(crate) fn begin(&mut self, job: Job, now: Duration) {
        let begins = nanos(now).saturating_add(self.start_ns);
        self.running.push(Running { job, begins, left: u128::from(job.transfer.len) * PARTS });
    }

    /// Counts progress up to `now`, and takes those that have ended, in the order of their ends.
    pub(crate) fn ended(&mut self, now: Duration) -> Vec<Job> {
        let now = nanos(now);
        let mut ended = Vec::new();
        loop {
            let next = self.next_ns().filter(|next| *next <= now);
            self.advance(next.unwrap_or(now));
            let at = self.at;
            ended.extend(self.running.extract_if(.., |one| one.begins <= at && one.left == 0).map(|one| one.job));
            if next.is_none() {
                return ended;
            }
        }
    }

    /// Takes all, whatever is left of them.
    pub(crate) fn take_all(&mut self) -> Vec<Job> {
        self.running.drain(..).map(|one| one.job).collect()
    }

    /// When the next one begins to move bytes, or ends.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.next_ns().map(Duration::from_nanos)
    }

    fn next_ns(&self) -> Option<u64> {
        let share = self.moving();
        let begins = self.running.iter().map(|one| one.begins).filter(|begins| *begins > self.at);
        let ends = self.running.iter().filter(|one| one.begins <= self.at).map(|one| {
            let ns = (one.left * 1000 * share).div_ceil(u128::from(self.bytes_per_us) * PARTS);
            self.at.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
        });
        begins.chain(ends).min()
    }

    /// Transfers that move bytes, at least 1.
    fn moving(&self) -> u128 {
        (self.running.iter().filter(|one| one.begins <= self.at).count() as u128).max(1)
    }

    /// Until `to` no transfer begins or ends.
    fn advance(&mut self, to: u64) {
        let share = self.moving();
        let moved = u128::from(to.saturating_sub(self.at)) * u128::from(self.bytes_per_us) * PARTS / (1000 * share);
        let at = self.at;
        for one in self.running.iter_mut().filter(|one| one.begins <= at) {
            one.left = one.left.saturating_sub(moved);
        }
        self.at = self.at.max(to);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Transfer;

    fn job(sq_id: u32, len: u32) -> Job {
        Job { sq_id, transfer: Transfer { dst: 0, src: 0, len, reduce: None } }
    }

    /// Queue and end in ns of each transfer.
    fn run(transfers: &mut Transfers) -> Vec<(u32, u128)> {
        let mut ended = Vec::new();
        while let Some(next) = transfers.next() {
            ended.extend(transfers.ended(next).iter().map(|job| (job.sq_id, next.as_nanos())));
        }
        ended
    }

    #[test]
    fn one_transfer_takes_its_start_and_its_bytes() {
        let mut transfers = Transfers::new(1000, 50_000);
        transfers.begin(job(1, 100_000), Duration::from_nanos(500));
        assert_eq!(run(&mut transfers), [(1, 500 + 1000 + 2000)]);
        transfers.begin(job(2, 1), Duration::from_micros(9));
        // A part of a nanosecond counts as a whole one.
        assert_eq!(run(&mut transfers), [(2, 9000 + 1000 + 1)]);
    }

    #[test]
    fn transfers_at_the_same_time_share_the_rate() {
        let mut transfers = Transfers::new(0, 1000);
        transfers.begin(job(1, 1000), Duration::ZERO);
        transfers.begin(job(2, 3000), Duration::ZERO);
        // Both have half the rate until the first one ends; the other one has moved 1000 of 3000 bytes by then.
        assert_eq!(run(&mut transfers), [(1, 2000), (2, 4000)]);
    }

    #[test]
    fn one_that_begins_later_slows_the_others_from_then_on() {
        let mut transfers = Transfers::new(100, 1000);
        transfers.begin(job(1, 1000), Duration::ZERO);
        assert!(transfers.ended(Duration::from_nanos(500)).is_empty());
        transfers.begin(job(2, 1000), Duration::from_nanos(500));
        // Alone from 100 to 600: 500 bytes. Then half the rate: 500 bytes take 1000 ns. Then the other one is alone.
        assert_eq!(run(&mut transfers), [(1, 1600), (2, 2100)]);
    }

    #[test]
    fn many_equal_transfers_end_together() {
        let mut transfers = Transfers::new(0, 50_000);
        for sq_id in 0..7 {
            transfers.begin(job(sq_id, 1 << 20), Duration::ZERO);
        }
        let ended = run(&mut transfers);
        let ns = (7_u128 << 20).div_ceil(50);
        assert_eq!(ended, (0..7).map(|sq_id| (sq_id, ns)).collect::<Vec<_>>());
    }
}
