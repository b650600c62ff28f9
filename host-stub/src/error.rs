//! Errors of the host API.

use std::time::Duration;

use hcomm_aicpu::spec::params::ParamsError;

use crate::card::error::CardError;
use crate::card::kind::BadDeviceKind;
use crate::limits;
use crate::loader::LoadError;
use crate::model::{MODEL_VAR, ModelError};
use crate::product::Refusal;
use crate::trace::file::{BadTraceFile, TRACE_VAR};
use hcomm_mapping::MemoryError;
use hcomm_sim::alloc::{AccessError, AllocError, FreeError};
use hcomm_sim::check::init_report::UninitialisedRead;
use hcomm_sim::check::list::{BadCheck, CoreUnavailable};
use hcomm_sim::check::own_report::StrayAccess;
use hcomm_sim::check::report::Race;
use hcomm_sim::check::start::EarlyTask;
use hcomm_sim::comm_table::CommError;
use hcomm_sim::error::{DeviceError, RT_TS_ERROR};
use hcomm_sim::explore::token::TokenError;
use hcomm_sim::fabric::ChannelError;
use hcomm_sim::memory::OutsideHbm;
use hcomm_sim::threads::ThreadError;

/// Why a call of the host API failed.
#[derive(thiserror::Error)]
pub enum Error {
    /// No memory for a device.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A call on a card has failed.
    #[error(transparent)]
    Card(#[from] CardError),
    /// Environment variable `HCOMM_DEVICE`.
    #[error(transparent)]
    BadDeviceKind(#[from] BadDeviceKind),
    /// No image, or no kernel of this name.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// An allocation failed.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// An end of a channel was not made.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// Not a number of ranks.
    #[error("{0} ranks: a cluster has 1 to {max}", max = limits::MAX_RANKS)]
    BadRankCount(usize),
    /// A collective over ranks that have no channel.
    #[error("rank {rank} has no channel to rank {peer}: connect the cluster first")]
    NotConnected {
        /// The rank.
        rank: usize,
        /// The other one.
        peer: usize,
    },
    /// Each device of a cluster would take turns for itself.
    #[error("deterministic mode is not supported for a cluster")]
    DeterministicCluster,
    /// A free failed.
    #[error(transparent)]
    Free(#[from] FreeError),
    /// A range that is not the caller's.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A range outside HBM.
    #[error(transparent)]
    OutsideHbm(#[from] OutsideHbm),
    /// The device reported an error.
    #[error("device error {code}: {0}", code = .0.runtime_code())]
    Device(DeviceError),
    /// Two accesses to device memory that nothing orders. The device works on.
    #[error("device error {RT_TS_ERROR}: {0}")]
    Race(Box<Race>),
    /// Bytes that were used and never written. The device works on.
    #[error("device error {RT_TS_ERROR}: {0}")]
    Uninitialised(Box<UninitialisedRead>),
    /// A transfer that nothing orders behind the wait for the start notify of its launch. The device works on.
    #[error("device error {RT_TS_ERROR}: {0}")]
    EarlyTask(Box<EarlyTask>),
    /// `HCOMM_SIM_CHECK` can't be read.
    #[error("HCOMM_SIM_CHECK: {0}")]
    BadChecks(#[source] BadCheck),
    /// The name of the trace file does not say its format.
    #[error(transparent)]
    Trace(#[from] BadTraceFile),
    /// `HCOMM_SIM_TRACE` names no trace file.
    #[error("{TRACE_VAR}: {0}")]
    BadTraceVariable(#[source] BadTraceFile),
    /// The list of checks names `core`.
    #[error(transparent)]
    CoreUnavailable(CoreUnavailable),
    /// QEMU does not take the plugin of the check `core`.
    #[error("the check core can't be made: {0}")]
    CorePlugin(String),
    /// An access of a kernel's own code to bytes that are not its own. The device works on.
    #[error("device error {RT_TS_ERROR}: {0}")]
    StrayAccess(Box<StrayAccess>),
    /// The device reported an error before this call.
    #[error("device already failed: {0}")]
    AlreadyFailed(DeviceError),
    /// A device in a forked child of the process that has opened it.
    #[error("the device was opened by process {owner}, and this is a fork of it, which can't use it")]
    Forked {
        /// Id of the process that has opened it.
        owner: u32,
    },
    /// A program or file that a CPU needs is not there.
    #[error("{what}: type `{command}`")]
    MissingTool {
        /// What is missing.
        what: String,
        /// What to type.
        command: String,
    },
    /// The device did not start.
    #[error("ai cpu does not start: {0}")]
    Boot(String),
    /// No thread of the process for the device.
    #[error("no thread for the device: {0}")]
    Spawn(std::io::Error),
    /// Work did not end in time.
    #[error("stream {stream_id}: {outstanding} operations have not completed within {timeout:?}")]
    Timeout {
        /// Stream.
        stream_id: u32,
        /// Operations that are not complete.
        outstanding: u64,
        /// The limit.
        timeout: Duration,
    },
    /// Deterministic mode: no task or thread can end the wait of a stream.
    #[error("stream {stream_id}: {outstanding} operations can never complete: the device can make no progress")]
    Deadlock {
        /// Stream.
        stream_id: u32,
        /// Operations that are not complete.
        outstanding: u64,
    },
    /// Deterministic mode on a CPU that has none.
    #[error(
        "deterministic mode is for the native cpu only: qemu and linux pick their own order; open the device with Cpu::Native"
    )]
    NotDeterministic,
    /// Exploration of schedules with another CPU.
    #[error("schedules are explored on the native cpu only: open the device with Cpu::Native")]
    NotExplored,
    /// A cost model on a CPU that has no deterministic mode.
    #[error(
        "a cost model is for deterministic mode, and that is for the native cpu only: open the device with Cpu::Native"
    )]
    ModelNeedsNative,
    /// A second device beside one, with a cost model.
    #[error("a cost model is for one device: transfers between devices have no cost in it")]
    ModelOfOneDevice,
    /// Exploration of schedules with a cost model.
    #[error(
        "schedules are not explored with a cost model: with one, time and engines decide who goes on; leave the model out \
         ({var})",
        var = MODEL_VAR
    )]
    ModelNotExplored,
    /// A cost model that can't be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// `HCOMM_SIM_SCHEDULE` names no schedule.
    #[error("HCOMM_SIM_SCHEDULE: {0}")]
    BadSchedule(TokenError),
    /// The scheduler's thread has ended, by a panic.
    #[error("the device's scheduler has ended")]
    SchedulerGone,
    /// Environment variable `HCCL_BUFFSIZE`.
    #[error("HCCL_BUFFSIZE is {0:?}: must be a whole number of MiB from 1 to {max}", max = limits::BUFFSIZE_MAX_MB)]
    BadBuffSize(String),
    /// An environment variable with a number of seconds.
    #[error("{var} is {value:?}: {must}")]
    BadLimit {
        /// The variable.
        var: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        must: &'static str,
    },
    /// Environment variable `HCOMM_SIM_END`, or `--end`.
    #[error("end of launches {0:?} (HCOMM_SIM_END): must be notify or queues")]
    BadLaunchEnd(String),
    /// HBM lies where the image has its own memory.
    #[error(
        "hbm at {0:#x} is below 0x8000000000, where the image of the cpu qemu lies: use native or linux, or HCOMM_SIM_HBM_BASE"
    )]
    BaseBelowImage(u64),
    /// Port of a debugger, `--gdb` or environment variable `HCOMM_SIM_GDB`.
    #[error("port {0:?} for a debugger (HCOMM_SIM_GDB): must be a whole number from 1 to 65535")]
    BadPort(String),
    /// A debugger is to be waited for, but not by QEMU.
    #[error("only the cpu qemu waits for a debugger (HCOMM_SIM_GDB): use it, or start this program in gdb")]
    DebuggerNeedsQemu,
    /// Size of the cclBuf.
    #[error("ccl buffer of 0 bytes: must be at least 1")]
    ZeroCclBuffer,
    /// Number of threads.
    #[error("{0} threads: must be from 1 to {max}", max = hcomm_aicpu::spec::thread::MAX_THREADS)]
    BadThreadCount(u32),
    /// Notifies of a thread.
    #[error("{0} notifies a thread: must be at most {max}", max = limits::MAX_NOTIFIES)]
    BadNotifyCount(u32),
    /// Depth of a ring.
    #[error("a ring of {0} entries: must be from {min} to {max}", min = hcomm_aicpu::spec::queue::MIN_DEPTH, max = limits::MAX_DEPTH)]
    BadDepth(u32),
    /// The product does not support the call.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An argument that a kernel's call would refuse too.
    #[error(transparent)]
    Argument(#[from] hcomm_aicpu::Error),
    /// The table of communicators takes no more, or not this name.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// Threads, or notifies of them, can't be used.
    #[error(transparent)]
    Thread(ThreadError),
    /// A notify or event was used on a stream of another device.
    #[error("a notify or event of the device in slot {device} can't be used on a stream of the device in slot {other}")]
    OtherDevice {
        /// Slot of the notify's device.
        device: usize,
        /// Slot of the stream's device.
        other: usize,
    },
    /// A control pair or a thread was used on a stream that it does not belong to.
    #[error("control pair or thread of stream {other} used on stream {stream_id}: use it on its own stream")]
    OtherStream {
        /// Stream that was used.
        stream_id: u32,
        /// Stream that it belongs to.
        other: u32,
    },
    /// A fault that a kernel on a thread of this process can't have: it would end the process.
    #[error("fault {0} is not supported on the native cpu: it would end this process; use qemu")]
    UnsupportedFault(&'static str),
    /// The device was not restarted.
    #[error("the device can't be restarted: {0}")]
    Restart(String),
    /// Suspended queues were not reset in time.
    #[error("communicator not resumed within {0:?}: a kernel still runs")]
    Resume(Duration),
    /// The parameters have the head of another type.
    #[error(transparent)]
    BadParams(#[from] ParamsError),
    /// A kernel of one CPU was launched on the other.
    #[error("kernel {0} is not for the cpu of this device")]
    WrongCpu(String),
}

/// The message: what `unwrap` and a failed assertion print.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl From<ThreadError> for Error {
    fn from(error: ThreadError) -> Self {
        match error {
            ThreadError::Alloc(error) => Self::Alloc(error),
            other => Self::Thread(other),
        }
    }
}
