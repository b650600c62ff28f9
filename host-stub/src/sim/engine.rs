//! SDMA engines: workers that move the bytes of large tasks, so that the scheduler goes on with the other queues.
#![forbid(unsafe_code)]

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::inbox::{Command, Inbox};
use super::memory::{Memory, OutsideHbm};
use super::reduce::Reduce;

/// Transfers below this many bytes are cheaper than handing them to another thread.
pub const INLINE_LEN: u32 = 256 << 10;

/// One copy or reduce.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// First byte written.
    pub dst: u64,
    /// First byte read.
    pub src: u64,
    /// Bytes.
    pub len: u32,
    /// `None`: a copy.
    pub reduce: Option<Reduce>,
}

impl Transfer {
    /// Moves the bytes.
    ///
    /// # Errors
    /// [`OutsideHbm`].
    pub fn run<M: Memory>(&self, memory: &M) -> Result<(), OutsideHbm> {
        let Self { dst, src, len, reduce } = *self;
        match reduce {
            None => memory.copy(dst, src, len.into()),
            Some(reduce) => memory.reduce(dst, src, len.into(), reduce),
        }
    }
}

/// One transfer for a worker.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Queue that waits for it.
    pub sq_id: u32,
    /// What to do.
    pub transfer: Transfer,
}

/// The workers of a device. They end when it is dropped.
pub struct EnginePool {
    jobs: Option<Sender<Job>>,
    workers: Vec<JoinHandle<()>>,
}

impl EnginePool {
    /// As many workers as there are processors. Each reports to `inbox` what it has done.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn new<M: Memory>(memory: &Arc<M>, inbox: &Arc<Inbox>) -> std::io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let (sender, receiver) = channel::<Job>();
        let receiver = Arc::new(Mutex::new(receiver));
        let worker = |index| {
            let (memory, inbox, receiver) = (Arc::clone(memory), Arc::clone(inbox), Arc::clone(&receiver));
            std::thread::Builder::new().name(format!("sdma-{index}")).spawn(move || {
                loop {
                    // The lock is held while waiting: one worker waits for a job, the others for the lock.
                    let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { return };
                    let result = job.transfer.run(&*memory);
                    inbox.send(Command::Transferred { sq_id: job.sq_id, result });
                }
            })
        };
        let workers = (0..count).map(worker).collect::<Result<_, _>>()?;
        Ok(Self { jobs: Some(sender), workers })
    }

    /// Hands a transfer to a worker.
    pub fn submit(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            jobs.send(job).expect("workers live as long as the pool");
        }
    }
}

impl Drop for EnginePool {
    fn drop(&mut self) {
        self.jobs = None;
        for worker in self.workers.drain(..) {
            // A worker that panicked has nothing more to say than its panic message.
            let _ = worker.join();
        }
    }
}
