//! Notify registers: what tasks of one queue set, and those of another wait for.

use std::collections::HashMap;

use super::decode::{Effect, Until};
use super::event::NotifyUser;
pub use super::ids::{Leftover, NoSuchNotify, NotifyName, Owner};
use super::ids::{QueueGeneration, StreamId};
use super::vector_clock::{ActorId, VectorClock};

/// Notifies of a device: an id has 17 bits.
pub const MAX_NOTIFY_IDS: u32 = 1 << 17;

/// Who has recorded a notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedBy {
    /// An operation of a stream.
    Stream {
        /// The stream.
        id: StreamId,
        /// Launches of the stream that had ended by then.
        launches_ended: u64,
    },
    /// A task of a queue.
    Task {
        /// Queue.
        queue: QueueGeneration,
        /// Its place among the tasks of that queue, from 1.
        task: u64,
        /// When its doorbell was observed, in the scheduler's count of doorbells.
        rung_at: u64,
    },
    /// A transfer of another device.
    Peer {
        /// Slot of that device.
        device: u32,
    },
}

/// Records of the one-bit form that no wait has taken.
#[derive(Clone, Copy, Debug)]
struct Untaken {
    by: RecordedBy,
    count: u32,
}

/// Entries of [`Register::untaken`]; later records are added to the last one.
const UNTAKEN_MAX: usize = 16;

#[derive(Debug)]
struct Register {
    owner: Owner,
    /// The one bit (bit 0), or the count.
    value: u32,
    /// Records of the one bit that no wait has taken, also those that found it set, oldest first.
    untaken: Vec<Untaken>,
    /// Who has last recorded the one bit while it was set: that record releases no wait.
    doubled_by: Option<NotifyUser>,
    /// Last record of a count form.
    counted_by: Option<RecordedBy>,
    /// What has happened before the records that are in `value`.
    before: VectorClock,
    /// Queues that look again after the next record, in the order in which they came.
    waiting: Vec<u32>,
}

impl Register {
    fn is_clean(&self) -> bool {
        self.value == 0 && self.untaken.is_empty()
    }

    fn add_untaken(&mut self, by: RecordedBy) {
        let is_full = self.untaken.len() == UNTAKEN_MAX;
        match self.untaken.last_mut() {
            Some(last) if is_full || last.by == by => {
                *last = Untaken { by, count: last.count.saturating_add(1) };
            }
            _ => self.untaken.push(Untaken { by, count: 1 }),
        }
    }

    fn take_oldest(&mut self) {
        if let Some(first) = self.untaken.first_mut() {
            first.count -= 1;
            if first.count == 0 {
                self.untaken.remove(0);
            }
        }
    }

    /// Takes away the records that `is_left` names. Gives what was there before, if any was.
    fn take_left(&mut self, id: u32, is_left: impl Fn(&RecordedBy) -> bool) -> Option<Leftover> {
        let (notify, value) = (NotifyName { id, owner: Some(self.owner) }, self.value);
        let untaken: u32 = self.untaken.extract_if(.., |untaken| is_left(&untaken.by)).map(|left| left.count).sum();
        if untaken != 0 && self.untaken.is_empty() {
            self.value &= !1;
            self.doubled_by = None;
        }
        let is_counted = self.value != 0 && self.counted_by.as_ref().is_some_and(&is_left);
        if is_counted {
            (self.value, self.counted_by) = (0, None);
        }
        (untaken != 0 || is_counted).then_some(Leftover { notify, value, untaken })
    }
}

/// All notifies of a device.
#[derive(Debug, Default)]
pub struct NotifyTable {
    registers: HashMap<u32, Register>,
    /// Notifies of threads that are set, or have records that no wait has taken.
    unclean: Vec<u32>,
}

impl NotifyTable {
    /// Gives `id` to `owner`.
    pub fn add(&mut self, id: u32, owner: Owner) {
        self.remove(id);
        let register = Register {
            owner,
            value: 0,
            untaken: Vec::new(),
            doubled_by: None,
            counted_by: None,
            before: VectorClock::default(),
            waiting: Vec::new(),
        };
        self.registers.insert(id, register);
    }

    /// Frees `id`. Gives the records of a thread's notify that no wait has taken.
    pub fn remove(&mut self, id: u32) -> Option<Leftover> {
        let mut register = self.registers.remove(&id)?;
        self.unclean.retain(|unclean| *unclean != id);
        if register.owner == Owner::Host { None } else { register.take_left(id, |_| true) }
    }

    /// Value of `id`: 0 = not set, and of one that is not allocated.
    pub fn value(&self, id: u32) -> u32 {
        self.registers.get(&id).map_or(0, |register| register.value)
    }

    /// Notes that `by` records `id`, which releases no wait if the one bit is set.
    pub fn note_double(&mut self, id: u32, by: NotifyUser) {
        if let Some(register) = self.registers.get_mut(&id).filter(|register| register.value & 1 != 0) {
            register.doubled_by = Some(by);
        }
    }

    /// Who has last recorded `id` while it was set, since records were last taken away.
    pub fn doubled_by(&self, id: u32) -> Option<NotifyUser> {
        self.registers.get(&id)?.doubled_by
    }

    /// Name of `id` for messages.
    pub fn name(&self, id: u32) -> NotifyName {
        NotifyName { id, owner: self.registers.get(&id).map(|register| register.owner) }
    }

    fn register(&mut self, id: u32) -> Result<&mut Register, NoSuchNotify> {
        self.registers.get_mut(&id).ok_or(NoSuchNotify(id))
    }

    /// Records. Gives the queues that wait for the notify and have to look again.
    ///
    /// # Errors
    /// [`NoSuchNotify`].
    pub fn record(
        &mut self,
        id: u32,
        effect: Effect,
        by: RecordedBy,
        before: &VectorClock,
    ) -> Result<Vec<u32>, NoSuchNotify> {
        let register = self.register(id)?;
        if register.value == 0 {
            register.before.copy_from(before);
        } else {
            register.before.join(before);
        }
        let was_clean = register.is_clean();
        match effect {
            Effect::Set => {
                register.value |= 1;
                register.add_untaken(by);
            }
            Effect::SetBits(bits) => {
                register.value |= bits;
                register.counted_by = Some(by);
            }
            Effect::Write(value) => {
                register.value = value;
                register.counted_by = Some(by);
            }
        }
        let waiting = std::mem::take(&mut register.waiting);
        if was_clean && !register.is_clean() && register.owner != Owner::Host {
            self.unclean.push(id);
        }
        Ok(waiting)
    }

    /// Whether [`take`](Self::take) would end a wait, or fail.
    pub fn can_take(&self, id: u32, until: Until) -> bool {
        let Some(register) = self.registers.get(&id) else { return true };
        match until {
            Until::Set => register.value & 1 != 0,
            Until::AnyOf(bits) => register.value & bits != 0,
            Until::Equal(value) => register.value == value,
        }
    }

    /// Ends a wait if what it waits for is there, which is cleared: gives what has happened before.
    ///
    /// # Errors
    /// [`NoSuchNotify`].
    pub fn take(&mut self, id: u32, until: Until) -> Result<Option<&VectorClock>, NoSuchNotify> {
        let register = self.registers.get_mut(&id).ok_or(NoSuchNotify(id))?;
        let cleared = match until {
            Until::Set if register.value & 1 != 0 => register.value & !1,
            Until::AnyOf(bits) if register.value & bits != 0 => register.value & !bits,
            Until::Equal(value) if register.value == value => 0,
            _ => return Ok(None),
        };
        register.value = cleared;
        if until == Until::Set {
            register.take_oldest();
        }
        if register.is_clean()
            && let Some(place) = self.unclean.iter().position(|unclean| *unclean == id)
        {
            self.unclean.swap_remove(place);
        }
        Ok(Some(&register.before))
    }

    /// Queue `sq_id` looks again after the next record.
    pub fn wait(&mut self, id: u32, sq_id: u32) {
        if let Some(register) = self.registers.get_mut(&id)
            && !register.waiting.contains(&sq_id)
        {
            register.waiting.push(sq_id);
        }
    }

    /// A queue is gone, and its number may be used again.
    pub fn forget_queue(&mut self, queue: ActorId) {
        self.registers.values_mut().for_each(|register| register.before.forget(queue));
    }

    /// Resets all: no records, no waiting queues.
    pub fn clear(&mut self) {
        for register in self.registers.values_mut() {
            (register.value, register.counted_by) = (0, None);
            register.untaken.clear();
            register.doubled_by = None;
            register.waiting.clear();
        }
        self.unclean.clear();
    }

    /// Takes away records of notifies of threads that no wait has taken, by id: those for which `is_left` holds, which is
    /// asked with the stream of the notify's thread and who has recorded. Other records stay.
    pub fn take_leftovers(&mut self, is_left: impl Fn(StreamId, &RecordedBy) -> bool) -> Vec<Leftover> {
        let mut leftovers = Vec::new();
        let registers = &mut self.registers;
        self.unclean.retain(|id| {
            let Some(register) = registers.get_mut(id) else { return false };
            let Owner::Thread { stream_id, .. } = register.owner else { return false };
            leftovers.extend(register.take_left(*id, |by| is_left(stream_id, by)));
            !register.is_clean()
        });
        leftovers.sort_by_key(|leftover| leftover.notify.id);
        leftovers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: u32 = 5;
    const BY: RecordedBy = RecordedBy::Stream { id: 9, launches_ended: 0 };

    fn table() -> NotifyTable {
        let mut table = NotifyTable::default();
        table.add(ID, Owner::Thread { stream_id: 7, index: 1 });
        table
    }

    fn record(table: &mut NotifyTable, effect: Effect) -> Vec<u32> {
        table.record(ID, effect, BY, &VectorClock::default()).unwrap()
    }

    fn left(table: &mut NotifyTable) -> Vec<Leftover> {
        table.take_leftovers(|_, _| true)
    }

    fn takes(table: &mut NotifyTable, until: Until) -> bool {
        table.take(ID, until).unwrap().is_some()
    }

    #[test]
    fn wait_takes_one_record_and_clears() {
        let mut table = table();
        assert!(!takes(&mut table, Until::Set));
        record(&mut table, Effect::Set);
        assert!(takes(&mut table, Until::Set));
        assert!(!takes(&mut table, Until::Set));
        assert_eq!(left(&mut table), []);
    }

    /// Case 178.
    #[test]
    fn notify_that_was_never_recorded_ends_no_wait() {
        for until in [Until::Set, Until::AnyOf(1), Until::AnyOf(u32::MAX), Until::Equal(1), Until::Equal(u32::MAX)] {
            assert!(!takes(&mut table(), until), "{until:?}");
        }
        // Nor does one that was recorded and taken.
        let mut table = table();
        record(&mut table, Effect::Write(2));
        assert!(takes(&mut table, Until::Equal(2)));
        assert!(!takes(&mut table, Until::Equal(2)) && !takes(&mut table, Until::AnyOf(2)));
    }

    #[test]
    fn record_on_a_set_notify_is_left_over() {
        let mut table = table();
        record(&mut table, Effect::Set);
        record(&mut table, Effect::Set);
        assert!(takes(&mut table, Until::Set));
        let notify = NotifyName { id: ID, owner: Some(Owner::Thread { stream_id: 7, index: 1 }) };
        assert_eq!(left(&mut table), [Leftover { notify, value: 0, untaken: 1 }]);
        assert_eq!(left(&mut table), []);
        assert_eq!(notify.to_string(), "notify 5 (index 1 of the thread of stream 7)");
    }

    #[test]
    fn records_of_others_stay_set() {
        let other = RecordedBy::Task { queue: 3, task: 1, rung_at: 8 };
        let mut table = table();
        record(&mut table, Effect::Set);
        table.record(ID, Effect::Set, other, &VectorClock::default()).unwrap();
        let notify = table.name(ID);
        let by_stream_9 = |_, by: &RecordedBy| *by == BY;
        assert_eq!(table.take_leftovers(by_stream_9), [Leftover { notify, value: 1, untaken: 1 }]);
        assert_eq!(table.take_leftovers(by_stream_9), []);
        assert!(takes(&mut table, Until::Set));
        assert!(!takes(&mut table, Until::Set));
        record(&mut table, Effect::Write(3));
        assert_eq!(table.take_leftovers(|_, by| *by == other), []);
        assert_eq!(table.remove(ID), Some(Leftover { notify, value: 3, untaken: 0 }));
    }

    #[test]
    fn records_without_limit_take_no_memory_without_limit() {
        let mut table = table();
        for task in 0..10_000 {
            let by = RecordedBy::Task { queue: 3, task, rung_at: task };
            table.record(ID, Effect::Set, by, &VectorClock::default()).unwrap();
        }
        assert!(table.registers[&ID].untaken.len() <= UNTAKEN_MAX);
        assert_eq!(left(&mut table)[0].untaken, 10_000);
    }

    #[test]
    fn one_record_releases_a_wait_for_each_of_its_bits() {
        let mut table = table();
        record(&mut table, Effect::SetBits(0b101));
        assert!(!takes(&mut table, Until::AnyOf(0b010)));
        assert!(takes(&mut table, Until::AnyOf(0b001)));
        assert!(!takes(&mut table, Until::AnyOf(0b001)));
        assert!(takes(&mut table, Until::AnyOf(0b110)));
        assert_eq!(left(&mut table), []);
    }

    #[test]
    fn many_records_release_a_wait_once_the_value_is_there() {
        let mut table = table();
        record(&mut table, Effect::Write(1));
        assert!(!takes(&mut table, Until::Equal(2)));
        record(&mut table, Effect::Write(2));
        assert!(takes(&mut table, Until::Equal(2)));
        assert_eq!(left(&mut table), []);
        record(&mut table, Effect::Write(3));
        assert_eq!(left(&mut table)[0].value, 3);
    }

    #[test]
    fn record_wakes_each_waiting_queue_once() {
        let mut table = table();
        for sq_id in [4, 2, 4] {
            table.wait(ID, sq_id);
        }
        assert_eq!(record(&mut table, Effect::Set), [4, 2]);
        assert_eq!(record(&mut table, Effect::Set), Vec::<u32>::new());
    }

    #[test]
    fn what_came_before_earlier_records_does_not_stick() {
        let mut table = table();
        let (mut first, mut second) = (VectorClock::default(), VectorClock::default());
        first.advance(1, 10);
        second.advance(2, 20);
        table.record(ID, Effect::Set, BY, &first).unwrap();
        assert_eq!(table.take(ID, Until::Set).unwrap(), Some(&first));
        table.record(ID, Effect::Set, BY, &second).unwrap();
        assert_eq!(table.take(ID, Until::Set).unwrap(), Some(&second));
    }

    /// Case 280.
    #[test]
    fn record_says_nothing_of_a_later_queue_of_the_same_number() {
        let mut table = table();
        let mut before = VectorClock::default();
        before.advance(1, 10);
        before.advance(2, 20);
        table.record(ID, Effect::Set, BY, &before).unwrap();
        table.forget_queue(1);
        let known = table.take(ID, Until::Set).unwrap().unwrap();
        assert_eq!([known.time_of(1), known.time_of(2)], [0, 20]);
    }

    #[test]
    fn unallocated_id_is_refused() {
        let mut table = table();
        table.remove(ID);
        assert_eq!(table.record(ID, Effect::Set, BY, &VectorClock::default()), Err(NoSuchNotify(ID)));
        assert_eq!(table.take(ID, Until::Set), Err(NoSuchNotify(ID)));
    }
}
