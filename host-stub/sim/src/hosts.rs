//! Threads of the process that could still change what a device waits for.
//!
//! Every thread of the process counts, whether or not it has ever used this library: it may do so next. Those of the simulated
//! devices do not, nor those that wait for a device on which nothing can go on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::inbox::Inbox;

/// Counts threads for the scheduler of one device.
pub trait HostThreads: Send {
    /// Threads of the process that could still act, while `blocked` of them wait for this device, on which nothing can go on,
    /// without a limit of their own. `None`: not known.
    fn free(&self, blocked: u32) -> Option<u32>;

    /// Something may go on in this device again.
    fn go_on(&self);
}

/// Nothing is known of the threads of the process.
pub struct Unknown;

impl HostThreads for Unknown {
    fn free(&self, _blocked: u32) -> Option<u32> {
        None
    }

    fn go_on(&self) {}
}

/// What the process has of threads that are not the program's own, or that are known to wait.
struct State {
    /// Id of the process that the rest is true of.
    process: u32,
    /// Threads of the simulated devices.
    own: u32,
    /// Devices on which nothing can go on: how many threads wait for each, and where a command would show.
    stuck: BTreeMap<u64, (u32, Arc<Inbox>)>,
    next_device: u64,
}

static STATE: Mutex<State> = Mutex::new(State { process: 0, own: 0, stuck: BTreeMap::new(), next_device: 0 });

fn state() -> MutexGuard<'static, State> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if state.process != process {
        // A forked child has none of its parent's threads.
        *state = State { process, own: 0, stuck: BTreeMap::new(), next_device: state.next_device };
    }
    state
}

/// A thread of a simulated device, from its first instruction to its last.
struct Own;

impl Own {
    fn begin() -> Self {
        state().own += 1;
        Self
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let mut state = state();
        // Of a thread that has forked, the child counts none.
        state.own = state.own.saturating_sub(1);
    }
}

/// Starts a thread that belongs to a simulated device, not to the program.
///
/// # Errors
/// The system has no thread.
pub fn spawn_own<T: Send + 'static>(
    name: String,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name).spawn(move || {
        let _own = Own::begin();
        run()
    })
}

/// The threads of this process, as the device that owns this sees them.
pub struct Process {
    device: u64,
    inbox: Arc<Inbox>,
}

impl Process {
    /// For the device whose commands come through `inbox`.
    pub fn new(inbox: Arc<Inbox>) -> Self {
        let mut state = state();
        state.next_device += 1;
        Self { device: state.next_device, inbox }
    }
}

impl HostThreads for Process {
    fn free(&self, blocked: u32) -> Option<u32> {
        // Held to the end: no thread of a device begins or ends its part, and no stuck device says that it goes on.
        let mut state = state();
        state.stuck.insert(self.device, (blocked, Arc::clone(&self.inbox)));
        // A device with a command may go on: then the threads that wait for it may, too.
        let waiting: u32 = state.stuck.values().filter(|(_, inbox)| !inbox.is_pending()).map(|(count, _)| count).sum();
        Some(threads_of_process()?.saturating_sub(state.own + waiting))
    }

    fn go_on(&self) {
        state().stuck.remove(&self.device);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.go_on();
    }
}

/// Live threads of the process, as the kernel counts them. `None`: there is no /proc, or it has another form.
fn threads_of_process() -> Option<u32> {
    live_threads(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Live threads by the text of /proc/self/stat. A first thread that has ended before the others is still counted there, and
/// the state of the process is its state.
fn live_threads(stat: &str) -> Option<u32> {
    // The name of the program, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let first_has_ended = matches!(fields.next()?, "Z" | "X");
    let threads: u32 = fields.nth(16)?.parse().ok()?;
    Some(threads.saturating_sub(first_has_ended.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_without_a_first_one_that_has_ended() {
        let stat = |state| format!("17 (a ) 1 b) {state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 9 0 18 19");
        assert_eq!((live_threads(&stat("S")), live_threads(&stat("Z"))), (Some(9), Some(8)));
        assert_eq!((live_threads(""), live_threads("1 (x) S 1 2")), (None, None));
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads /proc")]
    fn thread_of_a_device_is_none_of_the_program() {
        let count = || threads_of_process().unwrap() - state().own;
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let before = state().own;
        let own = spawn_own("own".to_owned(), move || wait.recv()).unwrap();
        while state().own == before {
            std::thread::yield_now();
        }
        // Other tests have threads too: their number may change, but not fall below this one and the first.
        assert!(count() >= 1);
        drop(go);
        assert!(own.join().unwrap().is_err());
    }
}
