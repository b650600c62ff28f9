//! What is known to have happened before: for each queue, how many of its tasks.

/// One use of a queue slot, unique in its device: a queue that is acquired again has another number.
pub type QueueLife = u64;

/// How many tasks of each queue have happened before some point of a queue or stream (a vector clock).
///
/// A record hands what its queue knows to the notify, and a wait takes it over: so it tells what notifies order, not what
/// happened to run first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before(Vec<(QueueLife, u64)>);

impl Before {
    /// Adds that the first `tasks` tasks of `queue` have happened.
    pub fn note(&mut self, queue: QueueLife, tasks: u64) {
        match self.0.binary_search_by_key(&queue, |entry| entry.0) {
            Ok(index) => self.0[index].1 = self.0[index].1.max(tasks),
            Err(index) => self.0.insert(index, (queue, tasks)),
        }
    }

    /// Adds all that `other` knows.
    pub fn join(&mut self, other: &Self) {
        for (queue, tasks) in &other.0 {
            self.note(*queue, *tasks);
        }
    }

    /// Becomes what `other` is, in the memory that it has.
    pub fn set(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    /// Tasks of `queue` that have happened.
    pub fn tasks_of(&self, queue: QueueLife) -> u64 {
        self.0.binary_search_by_key(&queue, |entry| entry.0).map_or(0, |index| self.0[index].1)
    }

    /// Forgets a queue that is gone.
    pub fn forget(&mut self, queue: QueueLife) {
        self.0.retain(|entry| entry.0 != queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_to_the_larger_of_each() {
        let (mut left, mut right) = (Before::default(), Before::default());
        left.note(3, 5);
        left.note(1, 2);
        right.note(3, 4);
        right.note(2, 9);
        left.join(&right);
        assert_eq!([1, 2, 3, 4].map(|queue| left.tasks_of(queue)), [2, 9, 5, 0]);
        left.forget(2);
        assert_eq!(left.tasks_of(2), 0);
    }
}
