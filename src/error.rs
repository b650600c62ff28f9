//! What a call can answer.

use zerocopy::{FromBytes, Immutable, KnownLayout, TryFromBytes};

use crate::spec::DeviceAddr;
use crate::spec::channel::{ChannelHandle, Protocol};
use crate::spec::code;
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::params::ParamsError;
use crate::spec::soc::Soc;
use crate::spec::thread::{Engine, ThreadHandle};

/// A ring stayed full for longer than the caller waits. It is as it was before the call but for what `queued_len` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
#[error(
    "sq {sq_id} full for {timeout_us} us: head {head}, tail {tail}, {wanted} entries wanted, {queued_len} bytes queued"
)]
pub struct QueueFull {
    /// The queue.
    pub sq_id: u32,
    /// Entry that the device fetches next.
    pub head: u32,
    /// Entry that we fill next.
    pub tail: u32,
    /// Free entries that the call needs.
    pub wanted: u32,
    /// Bytes that the call had queued before: not 0 only for a call of more chunks than the ring has entries.
    pub queued_len: u64,
    /// Limit of the wait in microseconds.
    pub timeout_us: u64,
}

impl QueueFull {
    /// Of no queue.
    pub(crate) const NONE: Self = Self { sq_id: 0, head: 0, tail: 0, wanted: 0, queued_len: 0, timeout_us: 0 };
}

/// What a queue or its descriptor reports, in [`Error::BadQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, Immutable, KnownLayout)]
#[repr(u32)]
pub enum QueueField {
    /// Entries of the ring.
    Depth,
    /// Where the ring is.
    RingAddress,
    /// Entry that the device fetches next.
    Head,
    /// Where the registers are: the platform has none there for this queue.
    Registers,
    /// What the queue may do.
    Status,
}

impl QueueField {
    const fn name(self) -> &'static str {
        match self {
            Self::Depth => "depth",
            Self::RingAddress => "ring address",
            Self::Head => "head",
            Self::Registers => "registers",
            Self::Status => "status",
        }
    }
}

/// Field of a channel descriptor, in [`Error::BadChannelField`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, Immutable, KnownLayout)]
#[repr(u32)]
pub enum ChannelField {
    /// Blocks of the work ring.
    Depth,
    /// Where the work ring is.
    RingAddress,
    /// Sending end.
    Jetty,
    /// Transport path number.
    Path,
    /// Most bytes of one entry.
    MaxSlice,
    /// Token of the peer's memory or notifies.
    Token,
    /// Notifies of an end.
    Notifies,
}

impl ChannelField {
    const fn name(self) -> &'static str {
        match self {
            Self::Depth => "depth of the work ring",
            Self::RingAddress => "work ring at",
            Self::Jetty => "jetty",
            Self::Path => "path",
            Self::MaxSlice => "largest entry",
            Self::Token => "token id",
            Self::Notifies => "notify id",
        }
    }
}

/// Operation of a channel, in [`Error::ChannelOperation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, Immutable, KnownLayout)]
#[repr(u32)]
pub enum ChannelOperation {
    /// A write or read.
    Transfer,
    /// A write with notify, also a reducing one.
    WithNotify,
    /// Record of or wait for a notify.
    Notify,
    /// A batch of transfers.
    Batch,
    /// A fence.
    Fence,
}

impl ChannelOperation {
    const fn name(self) -> &'static str {
        match self {
            Self::Transfer => "a transfer",
            Self::WithNotify => "a write with notify",
            Self::Notify => "a notify",
            Self::Batch => "a batch of transfers",
            Self::Fence => "a fence",
        }
    }
}

/// Why a call was refused. A refused call has changed nothing, but for what [`QueueFull::queued_len`] says.
///
/// The layout is fixed: the image leaves its bytes in shared memory, and the host reads them
/// ([`Refusal`](crate::spec::mailbox::Refusal)).
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error, TryFromBytes, Immutable, KnownLayout)]
#[repr(u32)]
pub enum Error {
    /// Destination is null.
    #[error("dst is null")]
    NullDst,
    /// Source is null.
    #[error("src is null")]
    NullSrc,
    /// Thread handle is 0.
    #[error("thread handle is 0")]
    NullThread,
    /// Called outside a kernel: there is no AI CPU core to look the handle up on.
    #[error("called outside a kernel: no AI CPU core runs the caller")]
    NoCore,
    /// The handle names no live thread of this device.
    #[error("thread handle {:#x} names no live thread", .0.0)]
    BadHandle(ThreadHandle),
    /// The thread belongs to another engine.
    #[error("thread handle {:#x} is of engine {}, not AICPU_TS", .handle.0, .engine.0)]
    WrongEngine {
        /// The handle.
        handle: ThreadHandle,
        /// Its thread's engine.
        engine: Engine,
    },
    /// The descriptor of the thread or a register of its queue holds a value that it can't have.
    #[error("sq {sq_id} reports {} {value}, limit {limit}", .field.name())]
    BadQueue {
        /// The queue.
        sq_id: u32,
        /// The field.
        field: QueueField,
        /// Its value.
        value: u64,
        /// What it must not exceed, or fall short of.
        limit: u64,
    },
    /// Address + length does not fit into 64 bits.
    #[error("{addr} + {len} bytes is past the end of the address space")]
    AddressOverflow {
        /// Start of the range.
        addr: DeviceAddr,
        /// Its length.
        len: u64,
    },
    /// More bytes than a buffer has.
    #[error("{len} bytes do not fit into a buffer of {limit}")]
    TooLarge {
        /// Bytes asked for.
        len: u64,
        /// Bytes that there are.
        limit: u64,
    },
    /// A reduce that the SDMA engine does not compute.
    #[error("reduce {} over {} is not supported", .op.name().unwrap_or("?"), .data_type.name().unwrap_or("?"))]
    ReduceNotSupported {
        /// Operator.
        op: ReduceOp,
        /// Element type.
        data_type: DataType,
    },
    /// More bytes than 64 bits can count.
    #[error("{count} elements of {size} bytes are more than 64 bits can count")]
    CountTooLarge {
        /// Elements.
        count: u64,
        /// Bytes of one.
        size: u64,
    },
    /// Address of elements that is not a multiple of their size.
    #[error("{addr} is not a multiple of the element size {size}")]
    Misaligned {
        /// The address.
        addr: DeviceAddr,
        /// Bytes of an element.
        size: u64,
    },
    /// The thread has no such notify.
    #[error("notify index {index}, the thread has {count}")]
    BadNotifyIndex {
        /// The index.
        index: u32,
        /// Notifies of the thread.
        count: u32,
    },
    /// The id of a notify does not fit into a descriptor.
    #[error("notify id {id} is above {limit}")]
    NotifyIdTooLarge {
        /// The id.
        id: u32,
        /// Largest that the descriptor of this SoC takes.
        limit: u32,
    },
    /// The caller's id of a notify does not fit into a descriptor.
    #[error("notify id {id} is above {limit}")]
    BadNotifyId {
        /// The id.
        id: u64,
        /// Largest that the descriptor of this SoC takes.
        limit: u32,
    },
    /// The SoC has no notifies that a kernel names by their id.
    #[error("notifies that are named by their id are not supported on {}", .0.name())]
    AclrtNotifyNotSupported(Soc),
    /// No communicator of the device has the name.
    #[error("no communicator has this name")]
    UnknownComm,
    /// A kernel has locked the communicator, perhaps the caller itself.
    #[error("the communicator is locked")]
    CommLocked,
    /// The caller has not locked the communicator.
    #[error("the communicator is not locked by this kernel")]
    CommNotLocked,
    /// A time in seconds that is negative, not a number, or 2^32 and more.
    #[error("time-out of {0} s is not within 0..2^32")]
    BadTimeout(f32),
    /// With feature `extern-abi`: an entry point of the program's library has refused the call, and has told why.
    #[error("the library that the kernel is loaded with answers {} ({})", .0, code::name(*.0))]
    Library(i32),
    /// The thread's communicator is being suspended.
    #[error("sq {sq_id} is suspended")]
    Suspended {
        /// The queue.
        sq_id: u32,
    },
    /// Ring full for too long.
    #[error(transparent)]
    QueueFull(#[from] QueueFull),
    /// The device does not take the doorbell.
    #[error("sq {sq_id} refuses the doorbell")]
    DoorbellRefused {
        /// The queue.
        sq_id: u32,
    },
    /// No parameters of a kernel.
    #[error("kernel parameters are null")]
    NullParams,
    /// Not the parameters of this kernel.
    #[error(transparent)]
    BadParams(#[from] ParamsError),
    /// The platform could not read a register of a queue.
    #[error("{} of sq {sq_id} can't be read: the platform answers {code}", .field.name())]
    QueueRead {
        /// The queue.
        sq_id: u32,
        /// The register.
        field: QueueField,
        /// The platform's code.
        code: i32,
    },
    /// Channel handle is 0.
    #[error("channel handle is 0")]
    NullChannel,
    /// The handle names no live channel of this device.
    #[error("channel handle {:#x} names no live channel", .0.0)]
    BadChannel(ChannelHandle),
    /// Thread and channel belong to different communicators.
    #[error("channel handle {:#x} and thread handle {:#x} are of different communicators", .channel.0, .thread.0)]
    OtherComm {
        /// The channel.
        channel: ChannelHandle,
        /// The thread.
        thread: ThreadHandle,
    },
    /// The descriptor of the channel holds a value that it can't have.
    #[error("channel handle {:#x} has {} {value:#x}", .channel.0, .field.name())]
    BadChannelField {
        /// The channel.
        channel: ChannelHandle,
        /// The field.
        field: ChannelField,
        /// Its value.
        value: u64,
    },
    /// A reduce that the engine of the channel does not compute.
    #[error("reduce {} over {} is not computed over a channel", .op.name().unwrap_or("?"), .data_type.name().unwrap_or("?"))]
    ChannelReduce {
        /// Operator.
        op: ReduceOp,
        /// Element type.
        data_type: DataType,
    },
    /// The end of the channel has no such notify.
    #[error("notify index {index}, this end of the channel has {count}")]
    BadLocalNotify {
        /// The index.
        index: u32,
        /// Notifies of the own end.
        count: u32,
    },
    /// The other end of the channel has no such notify.
    #[error("notify index {index}, the peer's end of the channel has {count}")]
    BadPeerNotify {
        /// The index.
        index: u32,
        /// Notifies of the peer's end.
        count: u32,
    },
    /// Bytes that the peer has not exchanged.
    #[error("{addr} + {len} bytes is not inside the memory of the peer: {base} + {size} bytes")]
    RemoteRange {
        /// First byte.
        addr: DeviceAddr,
        /// Bytes.
        len: u64,
        /// First byte of the exchanged memory.
        base: DeviceAddr,
        /// Its bytes.
        size: u64,
    },
    /// The work ring of the channel stayed full for too long.
    #[error(
        "work ring of jetty {jetty} full for {timeout_us} us: producer index {index}, {wanted} blocks wanted of {depth}"
    )]
    WorkRingFull {
        /// Sending end of the channel.
        jetty: u32,
        /// Where the next entry goes.
        index: u32,
        /// Free blocks that the call needs.
        wanted: u32,
        /// Blocks of the ring.
        depth: u32,
        /// Limit of the wait in microseconds.
        timeout_us: u64,
    },
    /// The protocol of the channel has no such operation.
    #[error("{} is not supported over protocol {}", .operation.name(), .protocol.0)]
    ChannelOperation {
        /// The operation.
        operation: ChannelOperation,
        /// Protocol of the channel.
        protocol: Protocol,
    },
    /// No transfers.
    #[error("array of transfers is null")]
    NullTransfers,
    /// A batch of nothing.
    #[error("batch of 0 transfers")]
    NoTransfers,
    /// A kind of transfer that the interface does not define.
    #[error("transfer {index} is of kind {kind}: 0 to 6 are defined")]
    BadTransferKind {
        /// Its place in the array.
        index: u32,
        /// Its kind.
        kind: i32,
    },
    /// The ring of the records of calls stayed full: the host does not read it.
    #[error("record ring full for {timeout_us} us: the host does not read it")]
    RecordsNotRead {
        /// Limit of the wait in microseconds.
        timeout_us: u64,
    },
}

const _: () = assert!(size_of::<Error>() == 8 * crate::spec::mailbox::ERROR_WORDS);

impl Error {
    /// The code that the C API answers.
    pub const fn code(&self) -> i32 {
        match self {
            Self::NullDst | Self::NullSrc | Self::NullThread | Self::NullChannel | Self::NullTransfers => {
                code::HCCL_E_PTR
            }
            Self::BadLocalNotify { .. } | Self::BadPeerNotify { .. } | Self::NullParams => code::HCCL_E_PTR,
            Self::BadChannel(_) | Self::OtherComm { .. } => code::HCCL_E_NOT_FOUND,
            Self::ChannelReduce { .. } | Self::NoTransfers => code::HCCL_E_PARA,
            Self::RemoteRange { .. } => code::HCCL_E_INTERNAL,
            Self::WorkRingFull { .. } => code::HCCL_E_TIMEOUT,
            Self::ChannelOperation { .. } | Self::BadTransferKind { .. } => code::HCCL_E_NOT_SUPPORT,
            Self::BadChannelField { .. } => code::HCCL_E_DRV,
            Self::BadNotifyIndex { .. } | Self::UnknownComm => code::HCCL_E_PTR,
            Self::CommLocked => code::HCCL_E_AGAIN,
            Self::CommNotLocked => code::HCCL_E_NOT_FOUND,
            Self::ReduceNotSupported { .. } | Self::AclrtNotifyNotSupported(_) => code::HCCL_E_NOT_SUPPORT,
            Self::BadHandle(_) | Self::WrongEngine { .. } => code::HCCL_E_NOT_FOUND,
            Self::NoCore if cfg!(feature = "own-threads") => code::HCCL_E_NOT_SUPPORT,
            Self::NoCore => code::HCCL_E_UNAVAIL,
            // No image calls another library, and without this row the codes are a table.
            Self::Library(_) if cfg!(target_os = "none") => code::HCCL_E_INTERNAL,
            Self::Library(code) => *code,
            Self::AddressOverflow { .. } | Self::TooLarge { .. } | Self::BadParams(_) => code::HCCL_E_PARA,
            Self::CountTooLarge { .. } | Self::Misaligned { .. } | Self::BadTimeout(_) => code::HCCL_E_PARA,
            Self::BadNotifyId { .. } => code::HCCL_E_PARA,
            Self::Suspended { .. } => code::HCCL_E_SUSPENDING,
            Self::QueueFull(_) | Self::RecordsNotRead { .. } => code::HCCL_E_TIMEOUT,
            Self::DoorbellRefused { .. } | Self::BadQueue { .. } | Self::NotifyIdTooLarge { .. } => code::HCCL_E_DRV,
            Self::QueueRead { .. } => code::HCCL_E_DRV,
        }
    }
}
