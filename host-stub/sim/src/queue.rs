//! One hardware queue: its ring, the tail that was rung, the head.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use hcomm_aicpu::spec::map::{QUEUE_REGS_SIZE, regs_phys};
use hcomm_aicpu::spec::queue::{DOORBELL_OFFSET, Doorbell, HEAD_OFFSET, QueueStatus, SQ_REGS_STRIDE, STATUS_OFFSET};
use hcomm_aicpu::spec::thread::MAX_THREADS;

use super::error::{DoorbellError, QueueName};
use super::ids::QueueGeneration;
use super::memory::Memory;
use super::stall::Stall;
use super::stream::StreamId;
use super::vector_clock::VectorClock;

/// Hardware queues of a device: one for each thread.
pub const MAX_QUEUES: u32 = MAX_THREADS as u32;
const _: () = assert!(MAX_QUEUES as u64 * SQ_REGS_STRIDE <= QUEUE_REGS_SIZE);

/// What a queue is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Stream whose tasks it holds.
    pub stream_id: u32,
    /// Number of the queue.
    pub sq_id: u32,
    /// First entry of the ring.
    pub base: u64,
    /// Entries of the ring.
    pub depth: u32,
}

impl QueueConfig {
    /// Name for messages.
    pub fn name(&self) -> QueueName {
        QueueName { stream_id: Some(self.stream_id), sq_id: self.sq_id }
    }
}

/// The registers of one queue. They lie in the device's memory, where the image reads and writes them too.
#[derive(Clone, Copy)]
pub struct Registers<'m, M> {
    memory: &'m M,
    phys: u64,
}

impl<'m, M: Memory> Registers<'m, M> {
    /// Registers of queue `sq_id`, which is below [`MAX_QUEUES`].
    pub fn of(memory: &'m M, sq_id: u32) -> Self {
        Self { memory, phys: regs_phys(sq_id) }
    }

    /// The doorbell as it was rung last. Acquire: the slots that it publishes are visible after it.
    pub fn doorbell(&self) -> Doorbell {
        Doorbell::from_bits(self.memory.word64(self.phys + DOORBELL_OFFSET as u64).load(Ordering::Acquire))
    }

    /// Stores a new tail and counts it. For the processor that runs kernels.
    pub fn ring(&self, tail: u32) {
        let word = self.memory.word64(self.phys + DOORBELL_OFFSET as u64);
        let next = |bits| {
            let doorbell = Doorbell::from_bits(bits);
            Some(doorbell.with_tail(tail).with_count(doorbell.count().wrapping_add(1)).into_bits())
        };
        // Release pairs with the acquire of `doorbell`. SeqCst: ordered before the look at the scheduler's sleep flag.
        let _ = word.fetch_update(Ordering::SeqCst, Ordering::Relaxed, next);
    }

    /// Sets the doorbell word to "nothing rung".
    pub fn reset(&self) {
        self.memory.word64(self.phys + DOORBELL_OFFSET as u64).store(0, Ordering::Relaxed);
        self.set_head(0);
    }

    /// Next entry that the scheduler will fetch.
    pub fn head(&self) -> u32 {
        self.memory.word32(self.phys + HEAD_OFFSET as u64).load(Ordering::Acquire)
    }

    /// Publishes the head. Release: what the tasks before it wrote is visible to every reader of it.
    pub fn set_head(&self, head: u32) {
        self.memory.word32(self.phys + HEAD_OFFSET as u64).store(head, Ordering::Release);
    }

    /// What the queue may do.
    pub fn status(&self) -> QueueStatus {
        QueueStatus(self.memory.word64(self.phys + STATUS_OFFSET as u64).load(Ordering::Acquire))
    }

    /// Enables the queue for a thread of `generation`, with status words that no earlier thread's queue had.
    pub fn enable(&self, generation: u16) {
        self.store_status(QueueStatus::ENABLED.with_generation(generation));
    }

    /// Tells the device what the queue may do from now on.
    pub fn set_state(&self, state: QueueStatus) {
        self.store_status(state.with_epoch(self.status().epoch()));
    }

    /// Tells the device that head and tail restart, and enables the queue; after 2^40 resets it stays as it is, without a
    /// thread that could use it.
    pub fn reset_epoch(&self) {
        let status =
            self.status().after_reset().map_or(QueueStatus::FREE, |status| status.with_state(QueueStatus::ENABLED));
        self.store_status(status);
    }

    fn store_status(&self, status: QueueStatus) {
        self.memory.word64(self.phys + STATUS_OFFSET as u64).store(status.0, Ordering::Release);
    }
}

/// Checks a doorbell, however it came. A `depth` of 0: the queue belongs to no thread.
///
/// # Errors
/// [`DoorbellError`].
pub fn check_doorbell(depth: u32, tail: u32) -> Result<(), DoorbellError> {
    match depth {
        0 => Err(DoorbellError::FreeQueue),
        _ if tail >= depth => Err(DoorbellError::BadTail { tail, depth }),
        _ => Ok(()),
    }
}

/// What every thread of the process may read of a queue without asking the scheduler.
#[derive(Debug, Default)]
pub struct QueueEntry {
    /// Entries of the ring, 0 while the queue belongs to no thread.
    pub depth: AtomicU32,
    /// Doorbells seen.
    pub doorbells: AtomicU64,
    /// Tasks carried out.
    pub tasks: AtomicU64,
    /// Entries rung by calls, see `Shared::ring`.
    pub rung: AtomicU64,
    /// Number of the doorbell that is refused, counted from 1; 0 = none.
    pub refuse_at: AtomicU64,
    /// Doorbells that the processor has rung by a call, refused ones included.
    pub rings: AtomicU64,
    /// Whether the scheduler has been told that the queue was rung, and has not yet found it empty since.
    pub noticed: AtomicBool,
}

impl QueueEntry {
    /// Counts again from 0, for another thread. Its queue is free.
    pub fn clear(&self) {
        self.doorbells.store(0, Ordering::Relaxed);
        self.tasks.store(0, Ordering::Relaxed);
        self.rung.store(0, Ordering::Relaxed);
        self.rings.store(0, Ordering::Relaxed);
        self.refuse_at.store(0, Ordering::Relaxed);
        self.noticed.store(false, Ordering::Relaxed);
    }

    /// Tasks that were carried out, and doorbells that were rung.
    pub fn counts(&self) -> (u64, u64) {
        (self.tasks.load(Ordering::Relaxed), self.doorbells.load(Ordering::Relaxed))
    }
}

/// All queues of a device.
#[derive(Debug)]
pub struct QueueTable(Box<[QueueEntry]>);

impl QueueTable {
    /// A table of `count` free queues.
    pub fn new(count: u32) -> Self {
        Self((0..count).map(|_| QueueEntry::default()).collect())
    }

    /// Queues of the device, free ones included.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Entry of queue `sq_id`, `None` if there is no such queue.
    pub fn get(&self, sq_id: u32) -> Option<&QueueEntry> {
        self.0.get(sq_id as usize)
    }
}

/// A wait at the head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueWait {
    /// Its task.
    pub task_id: u32,
    /// The notify.
    pub notify_id: u32,
    /// Its limit in seconds, 0 = no limit.
    pub timeout_s: u32,
    /// When it is over; `None`: never.
    pub deadline: Option<Duration>,
    /// It has looked and found nothing: the queue stands still until the next record.
    pub parked: bool,
}

/// A queue, as the scheduler sees it.
pub struct HwQueue {
    /// What it is made from.
    pub config: QueueConfig,
    /// Next entry to fetch.
    pub head: u32,
    /// One past the last entry that may be fetched.
    pub rung: u32,
    /// Doorbells seen, as the doorbell word counts them.
    pub count: u32,
    /// When it was rung last, in the scheduler's count of observed doorbells.
    pub last_rung: u64,
    /// When it was rung last while it was not certain by which kernel, in the same count; 0: never.
    pub last_unsure: u64,
    /// Doorbells of tasks that have not been carried out: end of their entries, in the count of `rung_total`, and when.
    pub rings: VecDeque<(u64, u64)>,
    /// Streams whose launches have queued tasks here, as far as that is certain.
    pub users: Vec<StreamId>,
    /// Task id of the entry that was fetched last.
    pub task_id: u32,
    /// Which use of its number it is.
    pub generation: QueueGeneration,
    /// Entries rung since it was made.
    pub rung_total: u64,
    /// Tasks carried out since it was made.
    pub done_total: u64,
    /// Tasks of each queue that have happened before the entry at `head`, as notifies tell.
    pub before: VectorClock,
    /// The entry at `head` is a wait that has begun.
    pub wait: Option<QueueWait>,
    /// An engine works on the entry at `head`.
    pub busy: bool,
    /// A task of it failed: nothing runs any more.
    pub stopped: bool,
    /// It is in the scheduler's list of active queues.
    pub active: bool,
    /// Its communicator is suspended: nothing runs, doorbells are ignored.
    pub suspended: bool,
    /// Launches that had been started when it was suspended.
    pub suspended_after: u64,
    /// What keeps it from its next task.
    pub hold: Stall,
}

impl HwQueue {
    /// A queue with nothing rung.
    pub fn new(config: QueueConfig, generation: QueueGeneration) -> Self {
        Self {
            config,
            generation,
            head: 0,
            rung: 0,
            count: 0,
            last_rung: 0,
            last_unsure: 0,
            rings: VecDeque::new(),
            users: Vec::new(),
            rung_total: 0,
            done_total: 0,
            before: VectorClock::default(),
            wait: None,
            task_id: 0,
            busy: false,
            stopped: false,
            active: false,
            suspended: false,
            suspended_after: 0,
            hold: Stall::default(),
        }
    }

    /// When the doorbell of the task at its head was observed, in the scheduler's count of doorbells.
    pub fn rung_at(&self) -> u64 {
        self.rings.front().map_or(self.last_rung, |(_, at)| *at)
    }

    /// A launch of stream `id` has queued tasks here.
    pub fn add_user(&mut self, id: StreamId) {
        if !self.users.contains(&id) {
            self.users.push(id);
        }
    }

    /// Whether it stands still at a wait.
    pub fn is_parked(&self) -> bool {
        self.wait.is_some_and(|wait| wait.parked)
    }

    /// Whether the task at its head could go on.
    pub fn is_runnable(&self) -> bool {
        !self.busy && !self.stopped && !self.is_parked() && !self.is_empty()
    }

    /// Whether everything that was rung has been carried out.
    pub fn is_empty(&self) -> bool {
        self.head == self.rung
    }

    /// Takes the doorbell word. Gives the doorbells that are new, 0 for none.
    ///
    /// # Errors
    /// [`DoorbellError`]; the rung tail stays what it was.
    pub fn observe(&mut self, doorbell: Doorbell) -> Result<u32, DoorbellError> {
        let new = doorbell.count().wrapping_sub(self.count);
        if new == 0 {
            return Ok(0);
        }
        self.count = doorbell.count();
        if self.suspended {
            return Ok(0);
        }
        check_doorbell(self.config.depth, doorbell.tail())?;
        self.rung_total += u64::from(distance(self.rung, doorbell.tail(), self.config.depth));
        self.rung = doorbell.tail();
        Ok(new)
    }

    /// What was observed just now was doorbell number `observed` of the device. `is_sure`: it is known whose it was.
    pub(crate) fn note_rung(&mut self, observed: u64, is_sure: bool) {
        self.last_rung = observed;
        if !is_sure {
            self.last_unsure = observed;
        }
        self.rings.push_back((self.rung_total, observed));
    }

    /// Address of the entry at `head`.
    pub fn slot_addr(&self) -> u64 {
        self.config.base + u64::from(self.head) * super::decode::SQE_LEN as u64
    }

    /// The entry at `head` is done. Gives the new head, which is to be published.
    pub fn advance(&mut self) -> u32 {
        self.hold.task_ran();
        self.head = if self.head + 1 == self.config.depth { 0 } else { self.head + 1 };
        self.count_done(1);
        self.wait = None;
        self.head
    }

    /// `tasks` more tasks are over.
    pub fn count_done(&mut self, tasks: u64) {
        self.done_total += tasks;
        let done = self.done_total;
        while self.rings.front().is_some_and(|(end, _)| *end <= done) {
            self.rings.pop_front();
        }
    }
}

/// Entries from `from` up to `to` in a ring of `depth` entries.
pub fn distance(from: u32, to: u32, depth: u32) -> u32 {
    if to >= from { to - from } else { depth - from + to }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 26.
    #[test]
    fn count_of_doorbells_wraps() {
        let mut queue = HwQueue::new(QueueConfig { stream_id: 1, sq_id: 0, base: 0, depth: 8 }, 1);
        queue.count = u32::MAX - 1;
        let ring = |count: u32, tail| Doorbell::default().with_count(count).with_tail(tail);
        for (count, tail) in [(u32::MAX, 1), (0, 2), (1, 3)] {
            assert_eq!(queue.observe(ring(count, tail)), Ok(1), "count {count}");
            assert_eq!((queue.count, queue.rung), (count, tail));
        }
        assert_eq!(queue.observe(ring(1, 3)), Ok(0), "nothing new");
        assert_eq!(queue.observe(ring(3, 5)), Ok(2), "two at once");
    }
}
