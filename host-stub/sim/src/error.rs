//! Errors of the device: they happen while it works and are reported when the host synchronises.

use std::time::Duration;

use super::alloc::AccessError;
use super::check::calls::{Refusals, refused_text};
use super::deadlock::Deadlock;
use super::decode::{DecodeError, Jetty};
use super::event::TaskOrigin;
use super::fabric::TransferError;
pub use super::ids::QueueName;
use super::ids::{Leftover, NoSuchNotify, NotifyName};
use super::message::debug_is_the_message;

/// Runtime's number: the task scheduler reported an error. Every other error of a queue or of a task has this one.
pub const RT_TS_ERROR: i32 = 507_001;
/// Runtime's number: a wait for a notify came to its limit. A deadlock is one that was seen earlier.
pub const RT_NOTIFY_TIMEOUT: i32 = 507_048;
/// Runtime's number: a kernel on the AI CPU ran out of its time.
pub const RT_AICPU_TIMEOUT: i32 = 507_017;
/// Runtime's number: a kernel on the AI CPU returned non-zero, or faulted.
pub const RT_AICPU_EXCEPTION: i32 = 507_018;

/// Why a doorbell was not taken.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DoorbellError {
    /// Belongs to no thread.
    #[error("doorbell on a free queue")]
    FreeQueue,
    /// The host has told the queue to refuse. Not an error of the device.
    #[error("the queue refuses doorbells")]
    Refused,
    /// Not a slot of the ring.
    #[error("doorbell with tail {tail}, but the ring has {depth} entries")]
    BadTail {
        /// Rung tail.
        tail: u32,
        /// Entries of the ring.
        depth: u32,
    },
}
debug_is_the_message!(DoorbellError);

/// What is wrong with a copy or reduce that the host has queued.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostTransferError {
    /// What it reads or writes.
    #[error("translation fault: {0}")]
    Access(#[from] AccessError),
    /// Source and destination share bytes, but do not start at the same one: what the result is depends on the engine.
    #[error("src and dst overlap in part")]
    Overlap,
}
debug_is_the_message!(HostTransferError);

/// What is wrong with a task.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// Its descriptor.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// What it reads.
    #[error("translation fault: src of {len} bytes: {error}")]
    Src {
        /// Bytes of the task.
        len: u32,
        /// Why.
        error: AccessError,
    },
    /// What it writes.
    #[error("translation fault: dst of {len} bytes: {error}")]
    Dst {
        /// Bytes of the task.
        len: u32,
        /// Why.
        error: AccessError,
    },
    /// Source and destination share bytes, but do not start at the same one: what is copied depends on the engine.
    #[error("src {src:#x} and dst {dst:#x} of {len} bytes overlap in part")]
    Overlap {
        /// First byte read.
        src: u64,
        /// First byte written.
        dst: u64,
        /// Bytes of the task.
        len: u32,
    },
    /// The engine failed, as the fault plan says.
    #[error("sdma error (fault plan): src {src:#x}, dst {dst:#x}, {len} bytes")]
    Engine {
        /// First byte read.
        src: u64,
        /// First byte written.
        dst: u64,
        /// Bytes of the task.
        len: u32,
    },
    /// The engine could not translate an address, as the fault plan says.
    #[error("translation fault (fault plan): src {src:#x} of {len} bytes is not mapped")]
    Translation {
        /// First byte read.
        src: u64,
        /// Bytes of the task.
        len: u32,
    },
    /// A reduce whose last element is not whole.
    #[error("reduce of {len} bytes cuts an element of {size} bytes")]
    CutElement {
        /// Bytes of the task.
        len: u32,
        /// Bytes of an element.
        size: u32,
    },
    /// A notify that is not allocated.
    #[error(transparent)]
    NoSuchNotify(#[from] NoSuchNotify),
    /// A notify of another chip.
    #[error("notify at physical address {addr:#x} is another chip's, and a simulated device has one")]
    NoOtherChip {
        /// Its register.
        addr: u64,
    },
    /// The doorbell of a jetty that no channel has.
    #[error("doorbell of {jetty}, which belongs to no channel")]
    NoChannel {
        /// The jetty.
        jetty: Jetty,
    },
    /// A transfer over a channel.
    #[error(transparent)]
    Transfer(Box<TransferError>),
    /// A wait for what only a failed peer would record.
    #[error("{notify} will not be recorded: rank {rank} has failed: {text}")]
    PeerFailed {
        /// The notify.
        notify: NotifyName,
        /// Rank that has failed first.
        rank: u32,
        /// Its error.
        text: String,
    },
    /// A wait came to its limit.
    #[error("{notify} was not recorded within {timeout_s} s")]
    WaitTimeout {
        /// The notify.
        notify: NotifyName,
        /// The limit.
        timeout_s: u32,
    },
    /// The slot itself could not be read.
    #[error("descriptor at {addr:#x} is not in hbm")]
    Slot {
        /// Address of the slot.
        addr: u64,
    },
}
debug_is_the_message!(TaskError);

/// An error of the device. The first one of a device is kept.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// A task failed; its queue has stopped.
    #[error("{queue}, task {task_id:#x} in slot {slot}: {error}{origin}")]
    Task {
        /// Queue.
        queue: QueueName,
        /// Task.
        task_id: u32,
        /// Slot of the ring.
        slot: u32,
        /// Why.
        error: TaskError,
        /// Who queued it.
        origin: Box<TaskOrigin>,
    },
    /// A doorbell was wrong; its queue has stopped.
    #[error("{queue}: {error}")]
    Doorbell {
        /// Queue.
        queue: QueueName,
        /// Why.
        error: DoorbellError,
    },
    /// An operation of a stream failed.
    #[error("stream {stream_id}: {error}")]
    Stream {
        /// Stream.
        stream_id: u32,
        /// Why.
        error: TaskError,
    },
    /// Nothing can go on.
    #[error("{0}")]
    Deadlock(Deadlock),
    /// A kernel has queued work that nothing orders before the end of its stream.
    #[error(
        "stream {stream_id}: kernel {kernel} has queued {tasks} tasks on {queue} that no notify orders before the end of the stream: {}",
        unordered_text(.left.as_ref(), *.others)
    )]
    UnorderedWork {
        /// Stream of the launch.
        stream_id: u32,
        /// Kernel.
        kernel: String,
        /// Queue.
        queue: QueueName,
        /// Its tasks that the stream has not waited for.
        tasks: u64,
        /// A notify that was recorded and not waited for: the one with the lowest id.
        left: Option<Leftover>,
        /// How many others.
        others: usize,
    },
    /// A notify is set at the end of an operation and no task waits for it.
    #[error("stream {stream_id}: {} at the end{}", leftover_text(.first), others_text(*.others))]
    NotifyLeftSet {
        /// Stream that was synchronised.
        stream_id: u32,
        /// The one with the lowest id.
        first: Leftover,
        /// How many others.
        others: usize,
    },
    /// A kernel has started a batch and not ended it: the tasks of the batch were dropped.
    #[error("stream {stream_id}: kernel {kernel} has left its batch open, so that the tasks of the batch never ran")]
    BatchLeftOpen {
        /// Stream of the launch.
        stream_id: u32,
        /// Kernel.
        kernel: String,
    },
    /// A copy or reduce that the host has queued.
    #[error("stream {stream_id}: {transfer}: {error}")]
    HostTransfer {
        /// Stream.
        stream_id: u32,
        /// What was asked for.
        transfer: String,
        /// Why.
        error: HostTransferError,
    },
    /// A task was not done in time; its queue has stopped.
    #[error(
        "{queue}, task {task_id:#x} in slot {slot}: not done within {timeout:?} (head {slot}, tail {tail}){origin}"
    )]
    Stalled {
        /// Queue.
        queue: QueueName,
        /// Task.
        task_id: u32,
        /// Slot of the ring: the head.
        slot: u32,
        /// One past the last entry that was rung.
        tail: u32,
        /// The limit.
        timeout: Duration,
        /// Who queued it.
        origin: Box<TaskOrigin>,
    },
    /// A queue was taken away before it had run everything that a launch rang. The device itself is well.
    #[error("{queue}: {dropped} tasks were dropped, its thread was {reason}")]
    Dropped {
        /// Queue.
        queue: QueueName,
        /// Tasks.
        dropped: u32,
        /// What happened to the thread.
        reason: &'static str,
    },
    /// A kernel returned a code.
    #[error(
        "stream {stream_id}: kernel {kernel} returned {code} ({}){}",
        hcomm_aicpu::spec::code::name(*code as i32),
        refused_text(.refused)
    )]
    KernelCode {
        /// Stream of the launch.
        stream_id: u32,
        /// Kernel.
        kernel: String,
        /// What it returned.
        code: u32,
        /// Its calls that were refused.
        refused: Box<Refusals>,
    },
    /// A kernel returned 0 although calls of it were refused.
    #[error(
        "stream {stream_id}: kernel {kernel} returned 0 although calls of it were refused, so that their tasks never ran: \
         {refused}; return the code of a call that fails"
    )]
    RefusalIgnored {
        /// Stream of the launch.
        stream_id: u32,
        /// Kernel.
        kernel: String,
        /// The calls.
        refused: Box<Refusals>,
    },
    /// A kernel panicked or caused an exception.
    #[error("stream {stream_id}: kernel {kernel} faulted: {text}{}", refused_text(.refused))]
    KernelFault {
        /// Stream of the launch.
        stream_id: u32,
        /// Kernel.
        kernel: String,
        /// What the processor reported.
        text: String,
        /// Its calls that were refused.
        refused: Box<Refusals>,
    },
    /// A kernel did not return in time.
    #[error(
        "stream {stream_id}: kernel {kernel} has not returned within {timeout:?}{}{}",
        at(place.as_deref()),
        refused_text(.refused)
    )]
    KernelTimeout {
        /// Stream of the launch.
        stream_id: u32,
        /// Kernel.
        kernel: String,
        /// Limit of the launch.
        timeout: Duration,
        /// Where it is, if the processor can tell.
        place: Option<String>,
        /// Its calls that were refused.
        refused: Box<Refusals>,
    },
    /// A kernel ended because another one on the same processor did.
    #[error("stream {stream_id}: kernel {kernel} ended with {what}, by {by}")]
    KernelEnded {
        /// Stream of the launch.
        stream_id: u32,
        /// Kernel.
        kernel: String,
        /// What both ran in.
        what: &'static str,
        /// The error of the other one.
        by: String,
    },
    /// The AI CPU is gone.
    #[error("ai cpu: {0}")]
    Cpu(String),
    /// The scheduler has panicked.
    #[error("the simulated device has a bug and has stopped: its scheduler panicked: {0}")]
    Crashed(String),
    /// The device was restarted with work outstanding.
    #[error("device restarted")]
    Restarted,
    /// The device has been closed with work outstanding.
    #[error("device closed")]
    Closed,
}

/// The message: what `unwrap` and a failed assertion print.
impl std::fmt::Debug for DeviceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// End of a message: where a kernel is.
fn at(place: Option<&str>) -> String {
    place.map_or(String::new(), |place| format!(": {place}"))
}

impl DeviceError {
    /// Whether a kernel of another stream than this one has failed.
    pub(crate) fn is_of_kernel_beside(&self, id: u32) -> bool {
        match self {
            Self::KernelFault { stream_id, .. } | Self::KernelTimeout { stream_id, .. } => *stream_id != id,
            _ => false,
        }
    }

    /// The runtime's number for it (507xxx). A wait that ends without its notify is 507048, in time or not; whatever else
    /// goes wrong in a queue, 507001;
    /// a kernel that is too slow is 507017; one that ends in any way but with 0, and an AI CPU that is gone, 507018.
    pub fn runtime_code(&self) -> i32 {
        match self {
            Self::Task { error: TaskError::WaitTimeout { .. } | TaskError::PeerFailed { .. }, .. } => RT_NOTIFY_TIMEOUT,
            Self::Task { error: TaskError::Transfer(error), .. } => error.status.runtime_code(),
            Self::Stream { error: TaskError::WaitTimeout { .. }, .. } | Self::Deadlock(_) => RT_NOTIFY_TIMEOUT,
            Self::Task { .. }
            | Self::Stream { .. }
            | Self::HostTransfer { .. }
            | Self::Doorbell { .. }
            | Self::UnorderedWork { .. }
            | Self::NotifyLeftSet { .. }
            | Self::Stalled { .. }
            | Self::Dropped { .. }
            | Self::Crashed(_)
            | Self::Restarted
            | Self::Closed => RT_TS_ERROR,
            Self::KernelTimeout { .. } => RT_AICPU_TIMEOUT,
            Self::KernelCode { .. } | Self::KernelFault { .. } | Self::Cpu(_) => RT_AICPU_EXCEPTION,
            Self::BatchLeftOpen { .. } | Self::RefusalIgnored { .. } | Self::KernelEnded { .. } => RT_AICPU_EXCEPTION,
        }
    }
}

/// What is left of a notify.
pub(super) fn leftover_text(leftover: &Leftover) -> String {
    let Leftover { notify, value, untaken } = leftover;
    match (untaken, value) {
        (0, value) => format!("{notify} is {value:#x}"),
        (1, _) => format!("{notify} was recorded once more than it was waited for"),
        (untaken, _) => format!("{notify} was recorded {untaken} times more than it was waited for"),
    }
}

/// Why work is not ordered before the end of its stream, and what to do.
fn unordered_text(left: Option<&Leftover>, others: usize) -> String {
    match left {
        Some(left) => format!("{}{}: add the wait that is missing", leftover_text(left), others_text(others)),
        None => "record the end notify of the launch behind them and let the stream wait for it (control pair); a launch without \
                 a control pair drains instead (HCOMM_SIM_END=queues, --end queues, Stream::launch_and_drain), or runs with -sync in the list of checks"
            .to_owned(),
    }
}

fn others_text(count: usize) -> String {
    if count == 0 { String::new() } else { format!("; the same holds for {count} other notifies") }
}
