//! Stall faults: a delay before each task, or no progress after n tasks.

use std::time::Duration;

/// State of the stall faults of one queue. A queue without faults never stalls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stall {
    /// Wait before each task.
    pub delay: Duration,
    /// Tasks that still run before the queue is dead; `None`: it does not die.
    pub runs_left: Option<u64>,
    /// When the task at the head could have run for the first time.
    pub since: Option<Duration>,
    /// It has been noted that the fault happened.
    pub is_noted: bool,
}

impl Stall {
    /// Whether the task at the head has to wait at `now`.
    pub fn keeps(&mut self, now: Duration) -> bool {
        if self.delay.is_zero() && self.runs_left.is_none() {
            return false;
        }
        let since = *self.since.get_or_insert(now);
        self.runs_left == Some(0) || now.saturating_sub(since) < self.delay
    }

    /// A task has run.
    pub fn task_ran(&mut self) {
        self.since = None;
        self.runs_left = self.runs_left.map(|left| left.saturating_sub(1));
    }

    /// Whether the task at the head has waited for `limit`.
    pub fn is_over(&self, now: Duration, limit: Duration) -> bool {
        self.since.is_some_and(|since| now.saturating_sub(since) >= limit)
    }

    /// When to look again; `None`: nothing waits.
    pub fn next_look(&self, limit: Duration) -> Option<Duration> {
        let wait = if self.runs_left == Some(0) { limit } else { self.delay.min(limit) };
        Some(self.since?.saturating_add(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn queue_without_faults_is_never_kept() {
        let mut hold = Stall::default();
        assert!(!hold.keeps(SECOND));
        assert_eq!((hold.next_look(SECOND), hold.is_over(SECOND * 9, SECOND)), (None, false));
    }

    #[test]
    fn slow_queue_waits_before_each_task() {
        let mut hold = Stall { delay: SECOND, ..Stall::default() };
        assert!(hold.keeps(SECOND * 5));
        assert_eq!(hold.next_look(SECOND * 60), Some(SECOND * 6));
        assert!(!hold.keeps(SECOND * 6));
        hold.task_ran();
        assert!(hold.keeps(SECOND * 6));
    }

    #[test]
    fn dead_queue_runs_its_last_tasks_and_is_over_after_the_limit() {
        let mut hold = Stall { runs_left: Some(1), ..Stall::default() };
        assert!(!hold.keeps(SECOND));
        hold.task_ran();
        assert!(hold.keeps(SECOND * 2));
        assert!(hold.keeps(SECOND * 1000));
        assert_eq!(hold.next_look(SECOND * 3), Some(SECOND * 5));
        assert!(!hold.is_over(SECOND * 4, SECOND * 3));
        assert!(hold.is_over(SECOND * 5, SECOND * 3));
    }
}
