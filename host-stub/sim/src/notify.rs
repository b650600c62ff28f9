//! Notify registers: what tasks of one queue set, and those of another wait for.

use std::collections::HashMap;

use super::decode::{Effect, Until};
use super::order::Before;
use super::stream::StreamId;

/// Notifies of a device: an id has 17 bits.
pub const MAX_NOTIFY_IDS: u32 = 1 << 17;

/// Whose a notify is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A thread's.
    Thread {
        /// Stream of the thread.
        stream_id: StreamId,
        /// Index within the thread.
        index: u32,
    },
    /// Made by itself, for streams of the host.
    Host,
}

/// A notify, in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifyName {
    /// Its id.
    pub id: u32,
    /// Whose it is; `None`: nobody's.
    pub owner: Option<Owner>,
}

impl std::fmt::Display for NotifyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "notify {}", self.id)?;
        match self.owner {
            Some(Owner::Thread { stream_id, index }) => {
                write!(f, " (index {index} of the thread of stream {stream_id})")
            }
            Some(Owner::Host) => write!(f, " (of the host)"),
            None => write!(f, " (of nobody)"),
        }
    }
}

/// The id belongs to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("notify {0} belongs to no thread and to no host")]
pub struct NoSuchNotify(pub u32);

#[derive(Debug)]
struct Register {
    owner: Owner,
    /// The one bit (bit 0), or the count.
    value: u32,
    /// Records of the one bit that no wait has taken, also those that found it set.
    untaken: u32,
    /// What has happened before the records that are in `value`.
    before: Before,
    /// Queues that look again after the next record, in the order in which they came.
    waiting: Vec<u32>,
}

/// A notify that is left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The notify.
    pub notify: NotifyName,
    /// Its bit or count.
    pub value: u32,
    /// Records that no wait has taken; 0 for the count forms.
    pub untaken: u32,
}

/// All notifies of a device.
#[derive(Debug, Default)]
pub struct NotifyTable(HashMap<u32, Register>);

impl NotifyTable {
    /// Gives `id` to `owner`.
    pub fn add(&mut self, id: u32, owner: Owner) {
        let register = Register { owner, value: 0, untaken: 0, before: Before::default(), waiting: Vec::new() };
        self.0.insert(id, register);
    }

    /// `id` is nobody's any more.
    pub fn remove(&mut self, id: u32) {
        self.0.remove(&id);
    }

    /// Name of `id` for messages.
    pub fn name(&self, id: u32) -> NotifyName {
        NotifyName { id, owner: self.0.get(&id).map(|register| register.owner) }
    }

    fn register(&mut self, id: u32) -> Result<&mut Register, NoSuchNotify> {
        self.0.get_mut(&id).ok_or(NoSuchNotify(id))
    }

    /// Records. Gives the queues that wait for the notify and have to look again.
    ///
    /// # Errors
    /// [`NoSuchNotify`].
    pub fn record(&mut self, id: u32, effect: Effect, before: &Before) -> Result<Vec<u32>, NoSuchNotify> {
        let register = self.register(id)?;
        if register.value == 0 {
            register.before.set(before);
        } else {
            register.before.join(before);
        }
        match effect {
            Effect::Set => {
                register.value |= 1;
                register.untaken = register.untaken.saturating_add(1);
            }
            Effect::SetBits(bits) => register.value |= bits,
            Effect::Write(value) => register.value = value,
        }
        Ok(std::mem::take(&mut register.waiting))
    }

    /// Ends a wait if what it waits for is there, which is cleared: gives what has happened before.
    ///
    /// # Errors
    /// [`NoSuchNotify`].
    pub fn take(&mut self, id: u32, until: Until) -> Result<Option<&Before>, NoSuchNotify> {
        let register = self.register(id)?;
        let cleared = match until {
            Until::Set if register.value & 1 != 0 => register.value & !1,
            Until::AnyOf(bits) if register.value & bits != 0 => register.value & !bits,
            Until::Equal(value) if register.value == value => 0,
            _ => return Ok(None),
        };
        register.value = cleared;
        if until == Until::Set {
            register.untaken = register.untaken.saturating_sub(1);
        }
        Ok(Some(&register.before))
    }

    /// Queue `sq_id` looks again after the next record.
    pub fn wait(&mut self, id: u32, sq_id: u32) {
        if let Some(register) = self.0.get_mut(&id)
            && !register.waiting.contains(&sq_id)
        {
            register.waiting.push(sq_id);
        }
    }

    /// All are as new: nothing is recorded, nobody waits.
    pub fn clear(&mut self) {
        for register in self.0.values_mut() {
            (register.value, register.untaken) = (0, 0);
            register.waiting.clear();
        }
    }

    /// Notifies of threads with records that nobody has taken, by id. All are cleared: the next operation must not be
    /// released by them.
    pub fn clear_leftovers(&mut self) -> Vec<Leftover> {
        let mut leftovers = Vec::new();
        for (id, register) in &mut self.0 {
            if matches!(register.owner, Owner::Host) || (register.value == 0 && register.untaken == 0) {
                continue;
            }
            let notify = NotifyName { id: *id, owner: Some(register.owner) };
            leftovers.push(Leftover { notify, value: register.value, untaken: register.untaken });
            (register.value, register.untaken) = (0, 0);
        }
        leftovers.sort_by_key(|leftover| leftover.notify.id);
        leftovers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: u32 = 5;

    fn table() -> NotifyTable {
        let mut table = NotifyTable::default();
        table.add(ID, Owner::Thread { stream_id: 7, index: 1 });
        table
    }

    fn record(table: &mut NotifyTable, effect: Effect) -> Vec<u32> {
        table.record(ID, effect, &Before::default()).unwrap()
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
        assert_eq!(table.clear_leftovers(), []);
    }

    #[test]
    fn record_on_a_set_notify_is_left_over() {
        let mut table = table();
        record(&mut table, Effect::Set);
        record(&mut table, Effect::Set);
        assert!(takes(&mut table, Until::Set));
        let notify = NotifyName { id: ID, owner: Some(Owner::Thread { stream_id: 7, index: 1 }) };
        assert_eq!(table.clear_leftovers(), [Leftover { notify, value: 0, untaken: 1 }]);
        assert_eq!(table.clear_leftovers(), []);
        assert_eq!(notify.to_string(), "notify 5 (index 1 of the thread of stream 7)");
    }

    #[test]
    fn one_record_releases_a_wait_for_each_of_its_bits() {
        let mut table = table();
        record(&mut table, Effect::SetBits(0b101));
        assert!(!takes(&mut table, Until::AnyOf(0b010)));
        assert!(takes(&mut table, Until::AnyOf(0b001)));
        assert!(!takes(&mut table, Until::AnyOf(0b001)));
        assert!(takes(&mut table, Until::AnyOf(0b110)));
        assert_eq!(table.clear_leftovers(), []);
    }

    #[test]
    fn many_records_release_a_wait_once_the_value_is_there() {
        let mut table = table();
        record(&mut table, Effect::Write(1));
        assert!(!takes(&mut table, Until::Equal(2)));
        record(&mut table, Effect::Write(2));
        assert!(takes(&mut table, Until::Equal(2)));
        assert_eq!(table.clear_leftovers(), []);
        record(&mut table, Effect::Write(3));
        assert_eq!(table.clear_leftovers()[0].value, 3);
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
        let (mut first, mut second) = (Before::default(), Before::default());
        first.note(1, 10);
        second.note(2, 20);
        table.record(ID, Effect::Set, &first).unwrap();
        assert_eq!(table.take(ID, Until::Set).unwrap(), Some(&first));
        table.record(ID, Effect::Set, &second).unwrap();
        assert_eq!(table.take(ID, Until::Set).unwrap(), Some(&second));
    }

    #[test]
    fn id_of_nobody_is_refused() {
        let mut table = table();
        table.remove(ID);
        assert_eq!(table.record(ID, Effect::Set, &Before::default()), Err(NoSuchNotify(ID)));
        assert_eq!(table.take(ID, Until::Set), Err(NoSuchNotify(ID)));
    }
}
