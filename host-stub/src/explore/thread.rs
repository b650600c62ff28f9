//! Host threads of a test.
#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hcomm_sim::explore::hosts::{self, Started};
use hcomm_sim::explore::{Engine, hosts::join};
use hcomm_sim::panics::panic_text;

/// Threads of runs that have not been joined, with the run.
static LEFT: Mutex<Vec<(usize, std::thread::JoinHandle<()>)>> = Mutex::new(Vec::new());

fn left() -> MutexGuard<'static, Vec<(usize, std::thread::JoinHandle<()>)>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What names a run while it lives.
fn name(engine: &Arc<Engine>) -> usize {
    Arc::as_ptr(engine).addr()
}

type Slot<T> = Arc<Mutex<Option<std::thread::Result<T>>>>;

/// A thread that [`spawn`] has started. Dropped, the run still waits for it.
pub struct JoinHandle<T>(Kind<T>);

enum Kind<T> {
    /// Outside of a run.
    Plain(std::thread::JoinHandle<T>),
    /// By the turns of a run.
    InRun { engine: Arc<Engine>, number: usize, result: Slot<T> },
}

/// Starts a host thread that takes part in the run of the calling one: it is an actor. Outside of a run, it is
/// [`std::thread::spawn`].
///
/// # Panics
/// If the system has no thread.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let Some(engine) = hosts::current() else { return JoinHandle(Kind::Plain(std::thread::spawn(body))) };
    let started = Started::new(&engine);
    let (number, result) = (started.number(), Slot::<T>::default());
    let (run, slot) = (Arc::clone(&engine), Arc::clone(&result));
    let handle = std::thread::spawn(move || {
        started.begin();
        let ended = catch_unwind(AssertUnwindSafe(body));
        if let Err(payload) = &ended {
            run.fail(format!("host thread {number}: panic: {}", panic_text(&**payload)));
        }
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        hosts::leave();
    });
    left().push((name(&engine), handle));
    JoinHandle(Kind::InRun { engine, number, result })
}

impl<T> JoinHandle<T> {
    /// Waits for the end of the thread. Gives its result.
    ///
    /// # Errors
    /// The thread has panicked, or does not end in this schedule.
    pub fn join(self) -> Result<T, Box<dyn Any + Send>> {
        match self.0 {
            Kind::Plain(handle) => handle.join(),
            Kind::InRun { engine, number, result } => {
                let joined = join(&engine, number);
                let ended = result.lock().unwrap_or_else(PoisonError::into_inner).take();
                match (joined, ended) {
                    (_, Some(ended)) => ended,
                    (_, None) => Err(Box::new(format!("host thread {number} does not end: nothing can go on"))),
                }
            }
        }
    }
}

/// Waits for the threads of a run that has ended.
pub(super) fn join_left(engine: &Arc<Engine>) {
    let own: Vec<_> = left().extract_if(.., |(run, _)| *run == name(engine)).collect();
    for (_, handle) in own {
        // Its panic was caught.
        let _ = handle.join();
    }
}
