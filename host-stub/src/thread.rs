//! Communication threads: what a program may ask for, and what the device does with it.
#![forbid(unsafe_code)]

use std::sync::mpsc::sync_channel;

use hcomm_aicpu::spec::thread::{Engine, MAX_THREADS, ThreadHandle};

use crate::error::Error;
use crate::inner::{Inner, RECOVERY_TIMEOUT};
pub use crate::limits::{MAX_DEPTH, MAX_NOTIFIES};
use crate::options::check_depth;
use crate::product::Acquire;
use hcomm_sim::event::Caller;
use hcomm_sim::inbox::Command;
use hcomm_sim::inbox::Recovery;
use hcomm_sim::threads::ThreadSpec;
pub use hcomm_sim::threads::{QueueStatistics, ThreadError, ThreadInfo};

/// What threads are acquired with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadConfig {
    /// Engine that queues their tasks; the device's product decides which are supported.
    pub engine: Engine,
    /// Number of threads.
    pub count: u32,
    /// Notifies of each thread.
    pub notify_count: u32,
    /// Entries of each ring; `None`: what the device was opened with.
    pub depth: Option<u32>,
}

impl ThreadConfig {
    /// `count` threads of engine AICPU_TS without notifies.
    pub fn new(count: u32) -> Self {
        Self { engine: Engine::AICPU_TS, count, notify_count: 0, depth: None }
    }

    /// # Errors
    /// A number out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.count == 0 || self.count as usize > MAX_THREADS {
            return Err(Error::BadThreadCount(self.count));
        }
        if self.notify_count > MAX_NOTIFIES {
            return Err(Error::BadNotifyCount(self.notify_count));
        }
        Ok(())
    }

    /// Sets the notifies of each thread.
    pub fn notifies(self, notify_count: u32) -> Self {
        Self { notify_count, ..self }
    }

    /// Sets the entries of each ring.
    pub fn depth(self, depth: u32) -> Self {
        Self { depth: Some(depth), ..self }
    }
}

/// Acquires threads of communicator `comm`: all of them, or none. `streams` returns that many numbers of new streams; it is
/// called after all checks.
pub(crate) fn acquire(
    inner: &Inner,
    comm: u64,
    config: &ThreadConfig,
    streams: impl FnOnce(u32) -> Vec<u32>,
    caller: Caller,
) -> Result<Vec<ThreadHandle>, Error> {
    let engine = inner.options.product.engine_for(Acquire::Threads, config.engine)?;
    inner.check_alive()?;
    config.check()?;
    let depth = config.depth.unwrap_or(inner.options.queue_depth);
    check_depth(depth)?;
    let spec = ThreadSpec { comm, engine, depth, notify_count: config.notify_count };
    Ok(inner.threads.acquire(&spec, &streams(config.count), caller)?)
}

/// Acquires a thread of the host, whose tasks are operations of stream `stream_id`.
pub(crate) fn acquire_with_stream(
    inner: &Inner,
    comm: u64,
    stream_id: u32,
    notify_count: u32,
    caller: Caller,
) -> Result<ThreadHandle, Error> {
    let engine = inner.options.product.engine_for(Acquire::WithStream, Engine::CPU_TS)?;
    inner.check_alive()?;
    if notify_count > MAX_NOTIFIES {
        return Err(Error::BadNotifyCount(notify_count));
    }
    let spec = ThreadSpec { comm, engine, depth: 0, notify_count };
    Ok(inner.threads.acquire(&spec, &[stream_id], caller)?[0])
}

/// Releases threads: none of their tasks runs after this.
pub(crate) fn release(inner: &Inner, handles: &[ThreadHandle]) {
    inner.threads.release(handles, || inner.scheduler_gone());
}

/// Stops the queues of threads.
pub(crate) fn suspend(inner: &Inner, handles: &[ThreadHandle]) -> Result<(), Error> {
    let (reply, answer) = sync_channel(1);
    inner.shared.inbox.send(Command::SuspendQueues(inner.threads.queues(handles), reply));
    inner.shared.receive(&answer, RECOVERY_TIMEOUT).map_err(|_| Error::SchedulerGone)
}

/// Resets and enables the queues of threads.
pub(crate) fn resume(inner: &Inner, handles: &[ThreadHandle]) -> Result<(), Error> {
    let (reply, answer) = sync_channel(1);
    inner.shared.inbox.send(Command::Recover(Recovery::Resume(inner.threads.queues(handles), reply)));
    match inner.shared.receive(&answer, RECOVERY_TIMEOUT) {
        Ok(()) => Ok(()),
        Err(_) if inner.scheduler_gone() => Err(Error::SchedulerGone),
        Err(_) => Err(Error::Resume(RECOVERY_TIMEOUT)),
    }
}
