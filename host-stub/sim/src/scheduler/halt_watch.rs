//! Whether nothing can go on although a host waits, and who counts the threads that could change that.

use std::time::Duration;

use crate::deadlock::{Deadlock, Halt};
use crate::hosts::HostThreads;

/// What is known of a halt.
pub(crate) struct HaltWatch {
    halt: Option<Halt>,
    /// The last deadlock that there was a warning of.
    warned_of: Option<Deadlock>,
    hosts: Box<dyn HostThreads>,
}

impl HaltWatch {
    /// There is none. `hosts` counts threads.
    pub(crate) fn new(hosts: Box<dyn HostThreads>) -> Self {
        Self { halt: None, warned_of: None, hosts }
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.halt.is_some()
    }

    /// When to look again.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        self.halt.map(|halt| halt.look_at)
    }

    /// The halt that there is; `first` if it begins.
    pub(crate) fn get_or_begin(&mut self, first: Halt) -> Halt {
        *self.halt.get_or_insert(first)
    }

    /// The halt goes on, with what is known of it now.
    pub(crate) fn keep(&mut self, halt: Halt) {
        self.halt = Some(halt);
    }

    /// Something may go on again.
    pub(crate) fn end(&mut self) {
        if self.halt.take().is_some_and(|halt| halt.is_published) {
            self.hosts.go_on();
        }
    }

    /// Threads of the process that could still act, as [`HostThreads::free`].
    pub(crate) fn free_threads(&self, blocked: u32) -> Option<u32> {
        self.hosts.free(blocked)
    }

    /// Notes that there is a warning of a deadlock. Whether it is another one than the last time.
    pub(crate) fn warn_of(&mut self, deadlock: &Deadlock) -> bool {
        let is_new = self.warned_of.as_ref() != Some(deadlock);
        self.warned_of = Some(deadlock.clone());
        is_new
    }
}
