//! Why a call on a card failed.
#![forbid(unsafe_code)]

use hcomm_aicpu::spec::card::{CARD_NOTIFIES, CARD_VERSION, CardEnd, CardState, CardStatus, CardTask};

/// A call of the host API on a device that is a card, or the stand-in of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// A library of the runtime can't be loaded.
    #[error("library {name} can't be loaded: {reason}")]
    MissingLibrary {
        /// Its name or path.
        name: String,
        /// What the loader says.
        reason: String,
    },
    /// A library of the runtime lacks a function.
    #[error("library {library} has no function {symbol}")]
    MissingSymbol {
        /// Name or path of the library.
        library: String,
        /// The function.
        symbol: &'static str,
    },
    /// A file that `make card-package` makes is not there.
    #[error("{path} is not there: {hint}")]
    MissingFile {
        /// Its path.
        path: String,
        /// What to do.
        hint: String,
    },
    /// What only the simulated device does.
    #[error("{0} works on the simulated device alone (--device sim), not on a card")]
    NotOnCard(&'static str),
    /// A function of the runtime has returned an error.
    #[error("{call} has returned {code}")]
    Call {
        /// The function.
        call: &'static str,
        /// Its result.
        code: i32,
    },
    /// A number of the runtime that does not fit where it has to go.
    #[error("{what} is {value}: must be at most {max}")]
    BadId {
        /// What it is.
        what: &'static str,
        /// The number.
        value: u64,
        /// The limit.
        max: u64,
    },
    /// A chip that the library does not know.
    #[error("chip {0:?} is not supported: must be Ascend950, Ascend910_93 or Ascend910B")]
    UnknownChip(String),
    /// More notifies than a thread can have on a card.
    #[error("{0} notifies a thread: must be at most {CARD_NOTIFIES} on a card")]
    Notifies(u32),
    /// Not the handle of a live thread.
    #[error("{0:#x} is no handle of a live thread of this device")]
    BadThread(u64),
    /// A notify index of a thread.
    #[error("notify {index}: the thread has {count}")]
    BadNotify {
        /// The index.
        index: u32,
        /// Notifies of the thread.
        count: u32,
    },
    /// The id of no notify of this device.
    #[error("notify id {0} is not allocated")]
    NoNotify(u32),
    /// The name of a communicator.
    #[error("communicator {0:?}: the name is empty, or that of another communicator of the device")]
    BadComm(String),
    /// A range that is not inside one live allocation.
    #[error("{len} bytes at {addr:#x} are not inside one allocation of this device")]
    Range {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
    },
    /// The package has no such kernel.
    #[error("no kernel {name} in {description}")]
    NoKernel {
        /// The name.
        name: String,
        /// The description that was read.
        description: String,
    },
    /// A kernel has failed: what its status says.
    #[error("{0}")]
    Kernel(Box<FailedKernel>),
    /// Operations of a stream have failed, and the status of no kernel says why.
    #[error("stream {stream_id} has failed: aclrtSynchronizeStreamWithTimeout has returned {code}{}", task_text(.task))]
    Stream {
        /// The stream.
        stream_id: u32,
        /// Result of the runtime.
        code: i32,
        /// The first failed task that the completion queues have told.
        task: CardTask,
    },
}

impl CardError {
    /// Whether a part that is not there is the reason.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::MissingLibrary { .. } | Self::MissingSymbol { .. } | Self::MissingFile { .. } | Self::NotOnCard(_)
        )
    }

    /// The runtime's number, where there is one.
    pub fn runtime_code(&self) -> Option<i32> {
        match self {
            Self::Call { code, .. } | Self::Stream { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// What the status of a kernel says that has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel {kernel} has failed on the card: {}{}{}", self.why(), task_text(&self.task), self.end_text())]
pub struct FailedKernel {
    /// Its name.
    pub kernel: String,
    /// How it stands.
    pub state: CardState,
    /// Its result, an `HcclResult`.
    pub code: i32,
    /// Version of the device's library.
    pub version: u32,
    /// First refused call.
    pub reason: String,
    /// What became of the end notify.
    pub end: CardEnd,
    /// First failed task.
    pub task: CardTask,
}

impl FailedKernel {
    /// From the status that the library has written.
    pub(crate) fn new(kernel: &str, status: &CardStatus) -> Self {
        let CardStatus { state, version, code, end, task, .. } = *status;
        let (kernel, reason) = (kernel.to_owned(), status.reason().to_owned());
        Self { kernel, state, code, version, reason, end, task }
    }

    fn why(&self) -> String {
        match self.state {
            CardState::VERSION => {
                format!("the library of the card has version {}, this program {CARD_VERSION}", self.version)
            }
            CardState::PENDING => "it has written no status".to_owned(),
            _ if self.reason.is_empty() => format!("code {}", self.code),
            _ => format!("code {}, {}", self.code, self.reason),
        }
    }

    fn end_text(&self) -> &'static str {
        match self.end {
            CardEnd::NONE => " (no end notify)",
            _ => "",
        }
    }
}

/// A failed task, if there is one.
fn task_text(task: &CardTask) -> String {
    let CardTask { thread, task, kind, code, sqe_type } = *task;
    match thread {
        0 => String::new(),
        _ => format!("; task {task:#x} of thread {thread:#x} failed: kind {kind}, code {code:#x}, type {sqe_type}"),
    }
}
