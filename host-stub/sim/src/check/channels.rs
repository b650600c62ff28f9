//! Use of channels: doorbells of several threads on one channel, and entries of one doorbell that nothing orders.

use std::collections::BTreeMap;
use std::ops::Range;

use super::findings::Receiver;
use super::history::{Access, Conflict, History, Kind};
use super::report::Maker;
use crate::event::SiteId;
use crate::vector_clock::{ActorId, VectorClock};

/// Kind of a task that starts entries of a channel, by name.
pub const DOORBELL: &str = "ub doorbell";

/// A doorbell at the head of a queue.
#[derive(Debug, Default)]
pub struct Doorbell {
    /// Launch whose kernel queued it, among those of all devices.
    pub launch: Option<u64>,
    /// Which task of its queue.
    pub number: u64,
    /// Number of the name of the kernel.
    pub kernel: Option<u32>,
    /// Where the kernel called.
    pub site: SiteId,
    /// Whose call returns what is found about it.
    pub receiver: Option<Receiver>,
    /// Accesses of its entries, whose actors are numbered from 1.
    entries: u32,
    history: History<Maker>,
}

impl Doorbell {
    /// Of these; its entries follow.
    pub fn new(
        launch: Option<u64>,
        number: u64,
        kernel: Option<u32>,
        site: SiteId,
        receiver: Option<Receiver>,
    ) -> Self {
        Self { launch, number, kernel, site, receiver, ..Self::default() }
    }
}

/// Who rings a channel.
#[derive(Clone, Debug)]
pub struct Ringer {
    /// Actor and time of the doorbell.
    pub task: (ActorId, u64),
    /// Of the launch whose kernel has written the entries.
    pub launch: Option<(ActorId, u64)>,
    /// The doorbell.
    pub maker: Maker,
}

/// What the check keeps of channels.
#[derive(Debug, Default)]
pub struct ChannelUse {
    /// The last doorbell of each channel, by device and place in its table.
    rung: BTreeMap<(usize, u16), Ringer>,
    /// Doorbells at the heads of queues.
    doorbells: BTreeMap<u64, Doorbell>,
}

impl ChannelUse {
    /// A task begins: what stood at the head of its queue has ended. `doorbell`: it is one.
    pub fn task_begins(&mut self, queue: u64, doorbell: Option<Doorbell>) {
        match doorbell {
            Some(doorbell) => drop(self.doorbells.insert(queue, doorbell)),
            None if self.doorbells.is_empty() => {}
            None => drop(self.doorbells.remove(&queue)),
        }
    }

    /// The doorbell at the head of a queue.
    pub fn doorbell(&self, queue: u64) -> Option<&Doorbell> {
        self.doorbells.get(&queue)
    }

    /// A channel is rung by a task whose clock is `clock`, and whose kernel knew `known` at its call. Gives the last doorbell, if
    /// nothing orders the two: one of them may start entries of the other.
    pub fn rings(
        &mut self,
        channel: (usize, u16),
        ringer: Ringer,
        clock: &VectorClock,
        known: Option<&VectorClock>,
    ) -> Option<Maker> {
        let launch = ringer.launch;
        let actor = ringer.task.0;
        let last = self.rung.insert(channel, ringer)?;
        let comes_after =
            |(of, time): (ActorId, u64), actor, clock: &VectorClock| of == actor || clock.time_of(of) >= time;
        let by_tasks = comes_after(last.task, actor, clock);
        // The producer index of a ring belongs to one kernel at a time.
        let by_calls = match (last.launch, launch, known) {
            (Some(last), Some((actor, _)), Some(known)) => comes_after(last, actor, known),
            _ => true,
        };
        (!by_tasks || !by_calls).then_some(last.maker)
    }

    /// The next entry of the doorbell at the head of a queue begins.
    pub fn entry_begins(&mut self, queue: u64) -> Option<&Doorbell> {
        let doorbell = self.doorbells.get_mut(&queue)?;
        doorbell.entries += 1;
        Some(doorbell)
    }

    /// That entry accesses `range`. Gives the accesses of other entries of the doorbell that it is not ordered with: a strong one
    /// comes after all of them.
    pub fn accesses(
        &mut self,
        queue: u64,
        is_strong: bool,
        range: Range<u64>,
        kind: Kind,
        maker: Maker,
    ) -> Vec<Conflict<Maker>> {
        let mut conflicts = Vec::new();
        if let Some(doorbell) = self.doorbells.get_mut(&queue) {
            let access = Access { actor: doorbell.entries, time: 1, kind, site: maker };
            doorbell.history.access(range, access, &VectorClock::default(), |conflict| conflicts.push(conflict));
        }
        conflicts.retain(|_| !is_strong);
        conflicts
    }

    /// A device is closed, whose queues have these numbers.
    pub fn device_leaves(&mut self, device: usize, queues: &Range<u64>) {
        self.rung.retain(|(of, _), _| *of != device);
        self.doorbells.retain(|queue, _| !queues.contains(queue));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maker(number: u64) -> Maker {
        Maker::Task {
            kind: "ub doorbell",
            device: 0,
            stream_id: 1,
            sq_id: 1,
            number,
            peer: Some(1),
            launch: None,
            kernel: None,
            site: SiteId::UNKNOWN,
        }
    }

    #[test]
    fn channel_of_two_threads_needs_an_order_of_their_doorbells() {
        let ringer = |actor, number| Ringer { task: (actor, 1), launch: None, maker: maker(number) };
        let (nothing, mut knows) = (VectorClock::default(), VectorClock::default());
        knows.advance(1, 1);
        let mut channels = ChannelUse::default();
        assert_eq!(channels.rings((0, 3), ringer(1, 1), &nothing, None), None);
        assert_eq!(channels.rings((0, 3), ringer(1, 2), &nothing, None), None, "of one thread");
        assert_eq!(channels.rings((0, 4), ringer(2, 3), &nothing, None), None, "another channel");
        assert_eq!(channels.rings((0, 3), ringer(2, 3), &knows, None), None, "ordered");
        assert_eq!(channels.rings((0, 3), ringer(3, 4), &knows, None), Some(maker(3)));
    }

    #[test]
    fn relaxed_entries_of_a_doorbell_conflict_and_a_strong_one_does_not() {
        let mut channels = ChannelUse::default();
        channels.task_begins(5, Some(Doorbell::default()));
        let mut access = |is_strong, kind| {
            channels.entry_begins(5);
            channels.accesses(5, is_strong, 0..8, kind, maker(1)).len()
        };
        assert_eq!(access(false, Kind::Write), 0);
        assert_eq!(access(false, Kind::Write), 1);
        assert_eq!(access(true, Kind::Write), 0);
        channels.task_begins(5, Some(Doorbell::default()));
        channels.entry_begins(5);
        assert_eq!(channels.accesses(5, false, 0..8, Kind::Read, maker(2)), []);
    }
}
