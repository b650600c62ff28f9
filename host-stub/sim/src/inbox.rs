//! Commands for the scheduler, and how it sleeps until the next one.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use super::decode::Jetty;
use super::deterministic::{FreeRunning, Turn};
use super::error::DoorbellError;
use super::event::RecordId;
use super::fabric::{ChannelEnd, PeerFailure};
use super::memory::OutsideHbm;
use super::notify::Owner;
use super::queue::QueueConfig;
use super::stream::{Op, StreamId, StreamShared};
use super::vector_clock::VectorClock;

/// Something that has to wait until engines, and kernels, have let go of what it changes.
#[derive(Debug)]
pub enum Recovery {
    /// Queues are reset and empty.
    Resume(Vec<u32>, SyncSender<()>),
    /// The whole device does.
    Restart(SyncSender<Result<(), String>>),
}

/// What the scheduler is told.
#[derive(Debug)]
pub enum Command {
    /// A queue belongs to a thread now.
    AddQueue(QueueConfig),
    /// Queues belong to no thread any more. Answered when no engine works on them.
    RemoveQueues(Vec<u32>, SyncSender<()>),
    /// Notifies are allocated.
    AddNotifies(Vec<(u32, Owner)>),
    /// Notifies are freed.
    RemoveNotifies(Vec<u32>),
    /// Queues are to stop; answered when they have.
    SuspendQueues(Vec<u32>, SyncSender<()>),
    /// Queues, or the device, are reset.
    Recover(Recovery),
    /// A new stream.
    AddStream(Arc<StreamShared>),
    /// Forget a stream.
    RemoveStream(StreamId),
    /// The next operation of a stream.
    Submit(StreamId, Op),
    /// A queue was rung.
    Rung(u32),
    /// A doorbell was refused.
    BadDoorbell(u32, DoorbellError),
    /// A doorbell was refused, as the fault plan says.
    Refused(u32),
    /// The kernel on a core has ended.
    CoreEnded,
    /// An engine has done the task at the head of a queue.
    Transferred {
        /// Queue.
        sq_id: u32,
        /// How it went.
        result: Result<(), OutsideHbm>,
    },
    /// An end of a channel is made.
    AddChannel(Box<ChannelEnd>),
    /// Ends of channels are released.
    RemoveChannels(Vec<Jetty>),
    /// A transfer of another device has set a notify.
    PeerRecord {
        /// The notify.
        id: u32,
        /// The record, by that device.
        record: RecordId,
        /// What has happened before.
        before: VectorClock,
    },
    /// Another device has failed or closed.
    PeerFailed(PeerFailure),
    /// End the thread.
    Stop,
}

/// Commands for the scheduler, and its wake-up.
pub struct Inbox {
    /// `None`: no scheduler takes commands any more.
    commands: Mutex<Option<Vec<Command>>>,
    pending: AtomicBool,
    sleeping: AtomicBool,
    thread: OnceLock<Thread>,
    turn: Arc<dyn Turn>,
}

/// Commands for which memory is kept.
const KEPT: usize = 1024;

impl Default for Inbox {
    /// For a scheduler that runs freely.
    fn default() -> Self {
        Self::new(Arc::new(FreeRunning::default()))
    }
}

impl Inbox {
    /// For the scheduler of a device that goes on as `turn` says.
    pub fn new(turn: Arc<dyn Turn>) -> Self {
        Self {
            commands: Mutex::new(Some(Vec::new())),
            pending: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            thread: OnceLock::new(),
            turn,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Command>>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a command over and wakes the scheduler if it sleeps. A command for a scheduler that has ended is dropped, and with
    /// it the place where its answer would go.
    pub fn send(&self, command: Command) {
        match &mut *self.lock() {
            Some(commands) => commands.push(command),
            None => return,
        }
        self.pending.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Lets the scheduler take a step, also without a command. One that is about to sleep may miss it.
    pub fn wake(&self) {
        if self.turn.wakes_scheduler() {
            return;
        }
        // Pairs with the fence of `park`: either we see `sleeping`, or the scheduler sees `pending`.
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Whether there is a command that the scheduler has not taken.
    pub fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// Names the thread that [`send`](Self::send) wakes: the caller.
    pub fn attach(&self) {
        // Called once for each device, by its scheduler thread; a second call would name the same thread.
        let _ = self.thread.set(std::thread::current());
    }

    /// Sleeps until a command is there, or `limit` is over.
    pub fn park(&self, limit: Option<Duration>) {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.pending.load(Ordering::Relaxed) {
            match limit {
                Some(limit) => std::thread::park_timeout(limit),
                None => std::thread::park(),
            }
        }
        self.sleeping.store(false, Ordering::Relaxed);
    }

    /// Moves all commands to the end of `into`.
    pub fn take(&self, into: &mut Vec<Command>) {
        if self.pending.swap(false, Ordering::Acquire)
            && let Some(commands) = &mut *self.lock()
        {
            into.append(commands);
            commands.shrink_to(KEPT);
        }
    }

    /// No thread will take commands any more. Returns those that are left.
    pub fn close(&self) -> Vec<Command> {
        self.lock().take().unwrap_or_default()
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.lock().is_none()
    }
}
