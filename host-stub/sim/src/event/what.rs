//! The kinds of events.

use std::cell::Cell;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hcomm_aicpu::spec::record::EntryPoint;

use super::site::SiteId;
use crate::alloc::{AccessError, Kind};
use crate::error::{DeviceError, DoorbellError};
use crate::stream::StreamId;

/// A thread of the host process, numbered from 1 in the order in which the threads first call the host API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostThread(pub u64);

impl HostThread {
    /// The calling thread.
    pub fn current() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        thread_local! {
            static NUMBER: Cell<u64> = const { Cell::new(0) };
        }
        if NUMBER.get() == 0 {
            NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        Self(NUMBER.get())
    }
}

/// Who caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// A call of the host.
    Host,
    /// The kernel on this core.
    Core(usize),
    /// The task scheduler.
    Stars,
    /// An SDMA engine.
    Sdma,
}

/// A launch, and the core that runs its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Number of the launch, in the order in which they started, from 1.
    pub launch: u64,
    /// Core that it ran on.
    pub core: usize,
}

/// Who queued a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Queuer {
    /// Launch whose kernel queued it.
    pub origin: Origin,
    /// The call: `seq` of its [`What::Call`]. `None`: the calls of this launch are not recorded, and `origin` is who rang.
    pub call: Option<u64>,
    /// Where the kernel called.
    pub site: SiteId,
}

/// A task in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskPlace {
    /// Stream of the queue.
    pub stream_id: u32,
    /// Queue.
    pub sq_id: u32,
    /// Slot of the ring.
    pub slot: u32,
    /// Number of the task.
    pub task_id: u32,
}

/// Bytes of device memory. Empty with a length of 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Range {
    /// First byte.
    pub addr: u64,
    /// Number of bytes.
    pub len: u64,
}

/// Who set or took a notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotifyUser {
    /// A task of a queue.
    Task(TaskPlace),
    /// An operation of a stream.
    Stream(StreamId),
    /// A transfer of another device.
    Peer {
        /// Slot of that device.
        device: u32,
        /// The record that it has sent.
        record: RecordId,
    },
}

/// A record on its way from one device to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId {
    /// Slot of the device that has sent it.
    pub device: u32,
    /// Its number among those of that device.
    pub number: u64,
}

/// An end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelName {
    /// Place of the channel in the table of its device.
    pub slot: u16,
    /// Rank of this end.
    pub rank: u32,
    /// Rank of the peer.
    pub peer_rank: u32,
}

/// Where a host program called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    /// A line of Rust.
    Source(&'static Location<'static>),
    /// The return addresses of the call.
    Site(SiteId),
    /// Not known.
    Unknown,
}

/// A thread that the host has acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AcquiredThread {
    /// Its handle.
    pub handle: u64,
    /// Stream of its queue.
    pub stream_id: StreamId,
    /// Its queue.
    pub sq_id: u32,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Device memory was allocated.
    Alloc {
        /// By which thread.
        host: HostThread,
        /// The bytes.
        range: Range,
        /// What for.
        kind: Kind,
        /// Where the host program called.
        site: SiteId,
    },
    /// Device memory was freed.
    Free {
        /// By which thread; `None`: by the device itself, such as the parameters of a launch that has ended.
        host: Option<HostThread>,
        /// The bytes.
        range: Range,
        /// Where the host program called.
        site: SiteId,
    },
    /// The host is about to read or write device memory. It has done so when its call returns ([`What::HostReturned`]).
    HostCopy {
        /// Which thread.
        host: HostThread,
        /// Bytes of the device that it reads.
        reads: Range,
        /// Bytes of the device that it writes.
        writes: Range,
        /// Where the host program called.
        site: SiteId,
    },
    /// The host acquired threads, all by one call.
    ThreadsAcquired {
        /// Which thread of the host.
        host: HostThread,
        /// The threads, in the order of the handles that the call gave.
        threads: Arc<[AcquiredThread]>,
        /// Where the host program called.
        caller: Caller,
    },
    /// The host gave threads back. No task of them runs any more.
    ThreadsReleased {
        /// Which thread of the host.
        host: HostThread,
        /// Their handles.
        threads: Arc<[u64]>,
    },
    /// The call of the host that sent the events of this thread since its last return has returned.
    HostReturned {
        /// Which thread.
        host: HostThread,
    },
    /// The host added an operation to a stream.
    Submitted {
        /// Which thread.
        host: HostThread,
        /// Stream.
        stream_id: StreamId,
        /// Kind of operation, by name.
        operation: &'static str,
        /// Where the host program called.
        site: SiteId,
    },
    /// A stream copies or reduces device memory, as the host has asked.
    StreamTransfer {
        /// Stream.
        stream_id: StreamId,
        /// Bytes that it reads: source, and destination if it is a reduce.
        reads: [Range; 2],
        /// Bytes that it writes.
        writes: Range,
    },
    /// The oldest operation of a stream has ended.
    OperationEnded {
        /// Stream.
        stream_id: StreamId,
    },
    /// The host has learned that all operations of a stream had ended.
    Synchronized {
        /// Which thread.
        host: HostThread,
        /// Stream.
        stream_id: StreamId,
        /// The call returns an error of an operation.
        failed: bool,
    },
    /// A stream has reached the record of an event.
    EventRecorded {
        /// Stream.
        stream_id: StreamId,
        /// Number of the event.
        event: u32,
    },
    /// A stream goes on after an event that it waited for.
    EventAwaited {
        /// Stream.
        stream_id: StreamId,
        /// Number of the event.
        event: u32,
    },
    /// The host has learned that an event was recorded.
    EventObserved {
        /// Which thread.
        host: HostThread,
        /// Number of the event.
        event: u32,
    },
    /// The host destroyed an event.
    EventDestroyed {
        /// Which thread.
        host: HostThread,
        /// Number of the event.
        event: u32,
    },
    /// The host queued a launch on a stream.
    LaunchQueued {
        /// Which thread.
        host: HostThread,
        /// Stream.
        stream_id: StreamId,
        /// Kernel.
        kernel: Arc<str>,
    },
    /// A kernel was started.
    LaunchStarted {
        /// Launch and core.
        origin: Origin,
        /// Stream.
        stream_id: StreamId,
        /// Kernel.
        kernel: Arc<str>,
    },
    /// A kernel has returned; its tasks may still run.
    LaunchReturned {
        /// Launch and core.
        origin: Origin,
        /// Code that the kernel returned.
        code: u32,
    },
    /// A launch has completed: its kernel has returned, and what it queued is done if the launch asked for that.
    LaunchEnded {
        /// Launch.
        launch: u64,
        /// Every task that its kernel queued has been carried out before.
        drained: bool,
    },
    /// A kernel called the device library, which wrote slots of a ring. The tasks in them are the call's until a later call
    /// writes the same slots.
    Call {
        /// Launch and core.
        origin: Origin,
        /// Number of the call on its core.
        seq: u64,
        /// Function.
        entry: EntryPoint,
        /// Queue.
        sq_id: u32,
        /// First slot.
        first: u32,
        /// Number of slots, which may go round the end of the ring.
        count: u32,
        /// Where the kernel called.
        site: SiteId,
    },
    /// A kernel has locked a communicator.
    CommAcquired {
        /// Launch and core.
        origin: Origin,
        /// Place of the communicator in the device's table.
        comm: u32,
    },
    /// A kernel is about to unlock a communicator.
    CommReleased {
        /// Launch and core.
        origin: Origin,
        /// Place of the communicator in the device's table.
        comm: u32,
    },
    /// A call of a kernel was refused.
    CallRefused {
        /// Launch and core; `None` if it is not known which launch ran.
        origin: Option<Origin>,
        /// Code that the call gave.
        code: i32,
        /// Function and reason.
        text: Arc<str>,
        /// Where the kernel called.
        site: SiteId,
    },
    /// A kernel has learned that the device had carried out every task of a queue before slot `head`.
    Observed {
        /// Launch and core.
        origin: Origin,
        /// Function that has told it.
        entry: EntryPoint,
        /// Queue.
        sq_id: u32,
        /// The first slot that had not run.
        head: u32,
    },
    /// A kernel's own code has read or written HBM. Only where the check `core` is made.
    OwnAccess {
        /// Launch and core.
        origin: Origin,
        /// The bytes: neighbouring accesses are one.
        range: Range,
        /// It has written them.
        writes: bool,
        /// It is one aligned load of at most 8 bytes, as a kernel polls.
        is_poll: bool,
        /// The instruction; behind it the last call before it.
        site: SiteId,
        /// Why these bytes are not the kernel's to access.
        refused: Option<AccessError>,
    },
    /// A doorbell was rung.
    Doorbell {
        /// Who rang; `None` if several kernels ran that could have.
        by: Option<Origin>,
        /// Queue.
        sq_id: u32,
        /// One past the last entry that may run.
        tail: u32,
    },
    /// A doorbell was refused.
    DoorbellRefused {
        /// Who rang.
        by: Origin,
        /// Queue.
        sq_id: u32,
        /// Tail that it came with.
        tail: u32,
        /// Why.
        error: DoorbellError,
    },
    /// A task was fetched, and is carried out from now on.
    TaskBegan {
        /// Its place.
        task: TaskPlace,
        /// Kind, by name.
        kind: &'static str,
        /// Who queued it; `None` if that is not known.
        by: Option<Queuer>,
        /// Bytes that it reads: source, and destination if it is a reduce.
        reads: [Range; 2],
        /// Bytes that it writes.
        writes: Range,
    },
    /// An end of a channel was made.
    ChannelMade {
        /// The end.
        channel: ChannelName,
    },
    /// A doorbell starts entries of a channel. The task has begun before.
    ChannelRung {
        /// The task.
        task: TaskPlace,
        /// The channel.
        channel: ChannelName,
    },
    /// An entry that the doorbell at the head of a queue has started, or a record of another device's notify, is carried out.
    Entry {
        /// The task.
        task: TaskPlace,
        /// The channel.
        channel: ChannelName,
        /// Kind of entry, by name.
        kind: &'static str,
        /// It passes no entry before it.
        is_strong: bool,
        /// Bytes that it reads: source, and destination if it is a reduce.
        reads: [Range; 2],
        /// Bytes that it writes.
        writes: Range,
        /// The record that it sends after that.
        record: Option<RecordId>,
    },
    /// A task was carried out.
    TaskEnded {
        /// Its place.
        task: TaskPlace,
    },
    /// Tasks that were rung and will not run.
    TasksDropped {
        /// Queue.
        sq_id: u32,
        /// Slot of the first.
        first: u32,
        /// Number of tasks.
        count: u32,
        /// What happened to the queue.
        reason: &'static str,
    },
    /// A queue stands still: its tasks that had not begun were dropped, and it takes no others.
    QueueSuspended {
        /// Queue.
        sq_id: u32,
    },
    /// Every operation of a stream has ended, also those that had not begun: the device has failed or was restarted.
    StreamReset {
        /// Stream.
        stream_id: StreamId,
    },
    /// A stream that the host has destroyed is empty, and gone.
    StreamRemoved {
        /// Stream.
        stream_id: StreamId,
    },
    /// A queue is empty again and starts at slot 0.
    QueueReset {
        /// Queue.
        sq_id: u32,
    },
    /// A queue has a new head.
    HeadPublished {
        /// Queue.
        sq_id: u32,
        /// Next entry that is fetched.
        head: u32,
    },
    /// A notify was set. Setting one that is set already is an event too: its value stays as it is.
    NotifySet {
        /// The notify.
        id: u32,
        /// By whom.
        by: NotifyUser,
        /// Value before.
        from: u32,
        /// Value afterwards.
        to: u32,
    },
    /// A wait took a notify.
    NotifyTaken {
        /// The notify.
        id: u32,
        /// By whom.
        by: NotifyUser,
        /// Value afterwards: not 0 if it took some of the bits.
        to: u32,
    },
    /// The device reported an error.
    Error(DeviceError),
    /// A check has found something that a launch or a stream has left, and the device goes on; or a kernel has returned a code.
    Found(DeviceError),
}

impl What {
    /// Who caused it.
    pub fn who(&self) -> Who {
        match self {
            Self::Alloc { .. }
            | Self::Free { host: Some(_), .. }
            | Self::HostCopy { .. }
            | Self::ThreadsAcquired { .. }
            | Self::ThreadsReleased { .. }
            | Self::HostReturned { .. }
            | Self::Submitted { .. }
            | Self::Synchronized { .. }
            | Self::EventObserved { .. }
            | Self::EventDestroyed { .. }
            | Self::LaunchQueued { .. }
            | Self::ChannelMade { .. } => Who::Host,
            Self::LaunchReturned { origin, .. }
            | Self::Call { origin, .. }
            | Self::Observed { origin, .. }
            | Self::CommAcquired { origin, .. }
            | Self::CommReleased { origin, .. }
            | Self::OwnAccess { origin, .. }
            | Self::CallRefused { origin: Some(origin), .. }
            | Self::Doorbell { by: Some(origin), .. }
            | Self::DoorbellRefused { by: origin, .. } => Who::Core(origin.core),
            Self::TaskBegan { .. } | Self::Entry { .. } | Self::TaskEnded { .. } => Who::Sdma,
            Self::Free { host: None, .. }
            | Self::StreamTransfer { .. }
            | Self::OperationEnded { .. }
            | Self::EventRecorded { .. }
            | Self::EventAwaited { .. }
            | Self::LaunchStarted { .. }
            | Self::LaunchEnded { .. }
            | Self::CallRefused { origin: None, .. }
            | Self::Doorbell { by: None, .. }
            | Self::ChannelRung { .. }
            | Self::TasksDropped { .. }
            | Self::QueueSuspended { .. }
            | Self::StreamReset { .. }
            | Self::StreamRemoved { .. }
            | Self::QueueReset { .. }
            | Self::HeadPublished { .. }
            | Self::NotifySet { .. }
            | Self::NotifyTaken { .. }
            | Self::Error(_)
            | Self::Found(_) => Who::Stars,
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, since the device was opened.
    pub at: Duration,
    /// Slot of the device in the process.
    pub device: usize,
    /// What happened.
    pub what: What,
}
