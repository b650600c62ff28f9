//! Start rule: what a launch transfers comes behind the wait for its start notify.
//!
//! A stream records the start notify before the launch, and a thread of the kernel waits for it. A worker thread that is not
//! ordered behind that wait may run before the operation has started.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::report::{CallPlace, Maker, RacingAccess, ThreadName};
use crate::stream::StreamId;
use crate::vector_clock::{ActorId, VectorClock};

/// Launches that are kept: of older ones nothing is expected any more.
const LAUNCHES: usize = 256;

/// A transfer that nothing orders behind the wait for a start notify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlyTask {
    /// The task.
    pub task: RacingAccess,
    /// The start notify.
    pub notify: u32,
    /// Thread that waits for it.
    pub waiter: Option<ThreadName>,
    /// How often the same call has done so.
    pub count: u64,
}

impl EarlyTask {
    /// Whether a report of this one stands for `other`, too: the same call in the program.
    pub fn is_same(&self, other: &Self) -> bool {
        self.task.is_same_call(&other.task)
    }

    /// The places that a report of it names.
    pub fn places_mut(&mut self) -> Vec<&mut CallPlace> {
        let threads = self.task.thread.iter_mut().chain(&mut self.waiter).map(|thread| &mut thread.place);
        std::iter::once(&mut self.task.place).chain(threads).collect()
    }
}

impl fmt::Display for EarlyTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, notify, waiter, .. } = self;
        write!(f, "nothing orders {task} behind the wait for the start notify {notify}")?;
        if let Some(waiter) = waiter {
            write!(f, " on {waiter}")?;
        }
        f.write_str(": let the thread wait, before its first transfer, for a notify that is recorded behind that wait")
    }
}

/// The wait for a start notify, once it is over.
#[derive(Clone, Copy, Debug)]
struct Wait {
    notify: u32,
    sq_id: u32,
    actor: ActorId,
    time: u64,
}

impl Wait {
    fn is_before(&self, clock: &VectorClock) -> bool {
        clock.time_of(self.actor) >= self.time
    }
}

/// A launch whose stream has recorded notifies for it.
#[derive(Debug, Default)]
struct Started {
    notifies: BTreeSet<u32>,
    waits: Vec<Wait>,
    /// The first transfer of each queue, as long as there is no wait that it could come behind.
    early: BTreeMap<u32, Maker>,
}

/// What is known of the starts of launches.
#[derive(Debug, Default)]
pub struct StartRule {
    /// Notifies that a stream has recorded since its last launch.
    recorded: BTreeMap<StreamId, BTreeSet<u32>>,
    launches: BTreeMap<u64, Started>,
    /// Launch that has queued the wait at the head of a queue.
    waiting: BTreeMap<u32, u64>,
}

/// A finding, before its names are known: the task, the notify, and the queue of the wait.
pub type Early = (Maker, u32, u32);

impl StartRule {
    /// A stream records a notify.
    pub fn stream_records(&mut self, stream: StreamId, notify: u32) {
        self.recorded.entry(stream).or_default().insert(notify);
    }

    /// A stream is gone.
    pub fn stream_removed(&mut self, stream: StreamId) {
        self.recorded.remove(&stream);
    }

    /// A launch starts on a stream.
    pub fn launch_starts(&mut self, launch: u64, stream: StreamId) {
        if let Some(notifies) = self.recorded.remove(&stream) {
            self.launches.insert(launch, Started { notifies, ..Started::default() });
            if self.launches.len() > LAUNCHES {
                self.launches.pop_first();
            }
        }
    }

    /// A wait that `launch` has queued is at the head of queue `sq_id`.
    pub fn wait_begins(&mut self, launch: u64, sq_id: u32) {
        if self.launches.contains_key(&launch) {
            self.waiting.insert(sq_id, launch);
        }
    }

    /// The wait at the head of queue `sq_id`, whose clock is `clock` now, has taken `notify`. Gives the transfers that have begun
    /// before, if it was the wait for a start.
    pub fn wait_ends(&mut self, sq_id: u32, notify: u32, actor: ActorId, clock: &VectorClock) -> Vec<Early> {
        let launch = self.waiting.remove(&sq_id).and_then(|launch| self.launches.get_mut(&launch));
        let Some(launch) = launch.filter(|launch| launch.notifies.contains(&notify)) else { return Vec::new() };
        launch.waits.push(Wait { notify, sq_id, actor, time: clock.time_of(actor) });
        std::mem::take(&mut launch.early).into_values().map(|maker| (maker, notify, sq_id)).collect()
    }

    /// A transfer of `launch` begins on queue `sq_id`, whose clock is `clock`. Gives the wait that it does not come behind.
    pub fn transfer_begins(&mut self, launch: u64, sq_id: u32, clock: &VectorClock, maker: Maker) -> Option<Early> {
        let launch = self.launches.get_mut(&launch)?;
        if launch.waits.is_empty() {
            launch.early.entry(sq_id).or_insert(maker);
        }
        let wait = launch.waits.iter().find(|wait| !wait.is_before(clock))?;
        Some((maker, wait.notify, wait.sq_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::SiteId;

    const START: u32 = 7;

    fn maker(number: u64) -> Maker {
        let (kind, stream_id, sq_id, launch, kernel, site) = ("sdma copy", 1, 1, Some(1), None, SiteId::UNKNOWN);
        Maker::Task { kind, device: 0, stream_id, sq_id, number, peer: None, launch, kernel, site }
    }

    fn started() -> StartRule {
        let mut rule = StartRule::default();
        rule.stream_records(3, START);
        rule.launch_starts(1, 3);
        rule
    }

    /// The clock of queue 0, which has come to 1.
    fn first() -> VectorClock {
        let mut clock = VectorClock::default();
        clock.tick(0);
        clock
    }

    /// Case 330.
    #[test]
    fn transfers_must_come_behind_the_wait_for_the_start() {
        let nothing = VectorClock::default();
        // Before the wait is over, and after it.
        let mut rule = started();
        rule.wait_begins(1, 0);
        assert_eq!(rule.transfer_begins(1, 1, &nothing, maker(1)), None);
        assert_eq!(rule.transfer_begins(1, 1, &nothing, maker(2)), None);
        assert_eq!(rule.wait_ends(0, START, 0, &first()), [(maker(1), START, 0)]);
        assert_eq!(rule.transfer_begins(1, 1, &nothing, maker(3)), Some((maker(3), START, 0)));
        assert_eq!(rule.transfer_begins(1, 1, &first(), maker(4)), None);
        assert_eq!(rule.transfer_begins(1, 0, &first(), maker(5)), None);
    }

    #[test]
    fn without_a_wait_for_the_start_there_is_no_rule() {
        let nothing = VectorClock::default();
        let mut rule = started();
        rule.wait_begins(1, 0);
        assert_eq!(rule.transfer_begins(1, 1, &nothing, maker(1)), None);
        assert_eq!(rule.wait_ends(0, START + 1, 0, &first()), []);
        // Another launch, whose stream has recorded nothing since.
        rule.launch_starts(2, 3);
        rule.wait_begins(2, 0);
        assert_eq!(rule.wait_ends(0, START, 0, &first()), []);
        assert_eq!(rule.transfer_begins(2, 1, &nothing, maker(1)), None);
    }
}
