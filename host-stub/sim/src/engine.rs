//! SDMA engines: workers that move the bytes of large tasks, so that the scheduler goes on with the other queues.
//!
//! A large transfer is made piece by piece, and every worker that has nothing else to do takes part. Between pieces of one
//! transfer come those of the others: a long one does not hold up the short ones of other queues.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use super::hosts::spawn_own;
use super::inbox::{Command, Inbox};
use super::memory::{Memory, OutsideHbm};
use super::reduce::Reduce;

/// Transfers below this many bytes are cheaper than handing them to another thread.
pub const INLINE_LEN: u32 = 256 << 10;
/// Bytes of a piece: so many that taking it costs nothing beside them, so few that workers end together. No element of any
/// type is cut.
const PIECE_LEN: u32 = 2 << 20;

/// One copy or reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// Bytes of its pieces. Ranges that overlap in part are moved in one piece: what is read depends on what was written.
    fn piece_len(&self) -> u32 {
        let apart = self.dst.abs_diff(self.src);
        if apart == 0 || apart >= self.len.into() { PIECE_LEN } else { self.len }
    }

    /// The piece that starts `done` bytes after the first byte.
    fn piece(&self, done: u32) -> Self {
        let len = self.piece_len().min(self.len - done);
        Self { dst: self.dst + u64::from(done), src: self.src + u64::from(done), len, ..*self }
    }
}

/// One transfer for the workers.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Queue that waits for it.
    pub sq_id: u32,
    /// What to do.
    pub transfer: Transfer,
}

/// A job that workers are at.
struct Started {
    job: Job,
    /// Pieces that have not been made.
    left: AtomicU32,
    failed: OnceLock<OutsideHbm>,
}

impl Started {
    fn new(job: Job) -> Self {
        let pieces = job.transfer.len.div_ceil(job.transfer.piece_len());
        Self { job, left: AtomicU32::new(pieces), failed: OnceLock::new() }
    }

    /// A piece has been made. Gives the result of all of them after the last one.
    fn end_piece(&self, result: Result<(), OutsideHbm>) -> Option<Result<(), OutsideHbm>> {
        if let Err(error) = result {
            // The first error is kept.
            let _ = self.failed.set(error);
        }
        // Release: the bytes of this piece. Acquire: those of all others, before the end of the task is told.
        let is_last = self.left.fetch_sub(1, Ordering::AcqRel) == 1;
        is_last.then(|| self.failed.get().map_or(Ok(()), |error| Err(*error)))
    }
}

/// What workers still have to take.
#[derive(Default)]
struct Waiting {
    /// Jobs with pieces that no engine has taken, each with the bytes that were taken. The first one is next.
    jobs: VecDeque<(Arc<Started>, u32)>,
    is_closed: bool,
}

impl Waiting {
    /// Takes the next piece; its job goes behind the others.
    fn take(&mut self) -> Option<(Arc<Started>, Transfer)> {
        let (started, done) = self.jobs.pop_front()?;
        let piece = started.job.transfer.piece(done);
        let done = done + piece.len;
        if done < started.job.transfer.len {
            self.jobs.push_back((Arc::clone(&started), done));
        }
        Some((started, piece))
    }
}

#[derive(Default)]
struct Jobs {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a piece. `None`: there will be none any more.
    fn take(&self) -> Option<(Arc<Started>, Transfer)> {
        let mut waiting = self.lock();
        while !waiting.is_closed {
            if let Some(taken) = waiting.take() {
                return Some(taken);
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

/// The workers of a device. They end when it is dropped.
pub struct EnginePool {
    jobs: Arc<Jobs>,
    workers: Vec<JoinHandle<()>>,
}

impl EnginePool {
    /// As many workers as there are processors. They report to `inbox` what they have done.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn new<M: Memory>(memory: &Arc<M>, inbox: &Arc<Inbox>) -> std::io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let mut pool = Self { jobs: Arc::default(), workers: Vec::new() };
        for index in 0..count {
            let (memory, inbox, jobs) = (Arc::clone(memory), Arc::clone(inbox), Arc::clone(&pool.jobs));
            let worker = spawn_own(format!("sdma-{index}"), move || {
                while let Some((started, piece)) = jobs.take() {
                    if let Some(result) = started.end_piece(piece.run(&*memory)) {
                        inbox.send(Command::Transferred { sq_id: started.job.sq_id, result });
                    }
                }
            });
            pool.workers.push(worker?);
        }
        Ok(pool)
    }

    /// Hands a transfer, which is not empty, to the workers.
    pub fn submit(&self, job: Job) {
        let is_whole = job.transfer.piece_len() >= job.transfer.len;
        self.jobs.lock().jobs.push_back((Arc::new(Started::new(job)), 0));
        if is_whole {
            self.jobs.changed.notify_one();
        } else {
            self.jobs.changed.notify_all();
        }
    }
}

impl Drop for EnginePool {
    fn drop(&mut self) {
        self.jobs.lock().is_closed = true;
        self.jobs.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A worker that panicked has nothing more to say than its panic message.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(dst: u64, src: u64, len: u32) -> Transfer {
        Transfer { dst, src, len, reduce: None }
    }

    fn started(sq_id: u32, transfer: Transfer) -> (Arc<Started>, u32) {
        (Arc::new(Started::new(Job { sq_id, transfer })), 0)
    }

    /// Takes all there is: queue and piece, in order.
    fn drain(waiting: &mut Waiting) -> Vec<(u32, Transfer)> {
        std::iter::from_fn(|| waiting.take()).map(|(started, piece)| (started.job.sq_id, piece)).collect()
    }

    #[test]
    fn pieces_take_turns_and_cover_every_byte_once() {
        let (far, piece) = (1 << 40, u64::from(PIECE_LEN));
        let long = copy(far + 3, 5, 2 * PIECE_LEN + 7);
        let mut waiting = Waiting::default();
        waiting.jobs.extend([started(1, long), started(2, copy(far, 0, 100))]);
        let expected = [
            (1, copy(far + 3, 5, PIECE_LEN)),
            (2, copy(far, 0, 100)),
            (1, copy(far + 3 + piece, 5 + piece, PIECE_LEN)),
            (1, copy(far + 3 + 2 * piece, 5 + 2 * piece, 7)),
        ];
        assert_eq!(drain(&mut waiting), expected);
    }

    #[test]
    fn longest_transfer_ends_at_its_last_byte() {
        let mut waiting = Waiting::default();
        waiting.jobs.push_back(started(1, copy(1 << 40, 0, u32::MAX)));
        let pieces = drain(&mut waiting);
        assert_eq!(pieces.len(), 2048);
        assert_eq!(pieces.iter().map(|(_, piece)| u64::from(piece.len)).sum::<u64>(), u64::from(u32::MAX));
    }

    #[test]
    fn ranges_that_overlap_in_part_are_one_piece() {
        let len = 3 * PIECE_LEN;
        for (dst, count) in [(0, 3), (1, 1), (u64::from(len) - 1, 1), (u64::from(len), 3)] {
            let mut waiting = Waiting::default();
            waiting.jobs.push_back(started(1, copy(dst, 0, len)));
            assert_eq!(drain(&mut waiting).len(), count, "{dst}");
        }
    }

    #[test]
    fn last_piece_gives_the_first_error() {
        let (started, _) = started(1, copy(1 << 40, 0, 3 * PIECE_LEN));
        let error = |addr| OutsideHbm { addr, len: 1 };
        assert_eq!(started.end_piece(Err(error(1))), None);
        assert_eq!(started.end_piece(Err(error(2))), None);
        assert_eq!(started.end_piece(Ok(())), Some(Err(error(1))));
    }
}
