//! Why a function fails, and its numbers as `aclError` and as `HcclResult`.
#![forbid(unsafe_code)]

use hcomm_aicpu::spec::code;

use super::binary_error::BinaryError;
use super::codes::{
    ACL_ERROR_API_NOT_SUPPORT, ACL_ERROR_INTERNAL_ERROR, ACL_ERROR_INVALID_PARAM, ACL_ERROR_INVALID_RESOURCE_HANDLE,
    ACL_ERROR_KERNEL_NOT_FOUND, ACL_ERROR_OP_LOAD_FAILED, ACL_ERROR_RT_CONTEXT_NULL, ACL_ERROR_RT_FAILURE,
    ACL_ERROR_RT_INVALID_DEVICEID, ACL_ERROR_RT_MEMORY_ALLOCATION, ACL_ERROR_RT_NO_NOTIFY_RESOURCE,
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
};
use hcomm_sim::alloc::AllocError;
use hcomm_sim::comm_table::CommError;
use hcomm_sim::error::RT_TS_ERROR;
use hcomm_sim::fabric::ChannelError;
use host_stub::Error;
use host_stub::loader::LoadError;
use host_stub::thread::ThreadError;

/// Why a function of the C API returns a code other than 0.
#[derive(thiserror::Error)]
pub enum CallError {
    /// A null pointer.
    #[error("{0} is null")]
    Null(&'static str),
    /// A number out of its range.
    #[error("{what} is {value}: {must}")]
    OutOfRange {
        /// Argument.
        what: &'static str,
        /// Its value.
        value: i128,
        /// What it must be.
        must: &'static str,
    },
    /// Another rule of the interface.
    #[error("{0}")]
    Invalid(String),
    /// A device number.
    #[error("there is no device {index}: the number of devices is {count}")]
    NoSuchDevice {
        /// The number.
        index: i32,
        /// Number of devices.
        count: u32,
    },
    /// No device.
    #[error("the calling thread has no device: call aclrtSetDevice first")]
    NoDevice,
    /// The calling process is a fork of the one that uses the devices.
    #[error(
        "the devices were opened by process {owner}, and this is a fork of it: a forked child can't use them \
         (fork before the first call, or start another program in the child)"
    )]
    Forked {
        /// Id of the process that uses the devices.
        owner: u32,
    },
    /// Not a handle of this kind.
    #[error("{handle:#x} is not a {kind}")]
    NoHandle {
        /// What it should be.
        kind: &'static str,
        /// The number.
        handle: u64,
    },
    /// Was a handle once.
    #[error("{kind} {handle:#x} has been destroyed")]
    Destroyed {
        /// What it was.
        kind: &'static str,
        /// The number.
        handle: u64,
    },
    /// All are in use.
    #[error("{0}")]
    Unavailable(String),
    /// Another rank has not come, or will not.
    #[error("{0}")]
    Timeout(String),
    /// Product, engine or this library does not offer it.
    #[error("{0}")]
    NotSupported(String),
    /// A rule of the runtime that has an `aclError` of its own.
    #[error("{text}")]
    Runtime {
        /// The number.
        code: i32,
        /// What is wrong.
        text: String,
    },
    /// A function of the host, called by a kernel.
    #[error("it is a function of the host: a kernel can't call it")]
    InKernel,
    /// The device.
    #[error(transparent)]
    Host(#[from] Error),
    /// A kernel binary.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// A bug.
    #[error("internal error: {0}")]
    Panic(String),
}

/// As the message.
impl std::fmt::Debug for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl CallError {
    /// As `aclError`.
    pub fn acl_code(&self) -> i32 {
        match self {
            Self::Null(_) | Self::OutOfRange { .. } | Self::Invalid(_) => ACL_ERROR_INVALID_PARAM,
            Self::NoSuchDevice { .. } => ACL_ERROR_RT_INVALID_DEVICEID,
            Self::NoDevice | Self::Forked { .. } => ACL_ERROR_RT_CONTEXT_NULL,
            Self::NoHandle { .. } | Self::Destroyed { .. } => ACL_ERROR_INVALID_RESOURCE_HANDLE,
            Self::Unavailable(_) => ACL_ERROR_RT_MEMORY_ALLOCATION,
            Self::Timeout(_) => ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
            Self::NotSupported(_) | Self::InKernel => ACL_ERROR_API_NOT_SUPPORT,
            Self::Runtime { code, .. } => *code,
            Self::Host(error) => acl_code_of(error),
            Self::Binary(error) => error.acl_code(),
            Self::Panic(_) => ACL_ERROR_INTERNAL_ERROR,
        }
    }

    /// As `HcclResult`.
    pub fn hccl_code(&self) -> i32 {
        match self {
            Self::Null(_) => code::HCCL_E_PTR,
            Self::OutOfRange { .. } | Self::Invalid(_) | Self::NoSuchDevice { .. } => code::HCCL_E_PARA,
            Self::NoHandle { .. } | Self::Destroyed { .. } => code::HCCL_E_NOT_FOUND,
            Self::Unavailable(_) => code::HCCL_E_UNAVAIL,
            Self::Timeout(_) => code::HCCL_E_TIMEOUT,
            Self::NotSupported(_) | Self::InKernel => code::HCCL_E_NOT_SUPPORT,
            Self::NoDevice | Self::Forked { .. } | Self::Runtime { .. } => code::HCCL_E_RUNTIME,
            Self::Host(error) => hccl_code_of(error),
            Self::Binary(_) => code::HCCL_E_OPEN_FILE_FAILURE,
            Self::Panic(_) => code::HCCL_E_INTERNAL,
        }
    }
}

fn acl_code_of(error: &Error) -> i32 {
    match error {
        // Every later call returns the first error of a device, not its consequences.
        Error::Device(error) | Error::AlreadyFailed(error) => error.runtime_code(),
        Error::Race(_) | Error::Uninitialised(_) | Error::EarlyTask(_) | Error::StrayAccess(_) => RT_TS_ERROR,
        Error::Alloc(AllocError::OutOfMemory { .. }) => ACL_ERROR_RT_MEMORY_ALLOCATION,
        Error::Alloc(AllocError::Zero) | Error::Free(_) | Error::Access(_) | Error::OutsideHbm(_) => {
            ACL_ERROR_INVALID_PARAM
        }
        Error::Thread(ThreadError::NoNotifies { .. }) => ACL_ERROR_RT_NO_NOTIFY_RESOURCE,
        Error::Timeout { .. } => ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
        Error::Load(LoadError::NoSuchKernel { .. }) => ACL_ERROR_KERNEL_NOT_FOUND,
        Error::WrongCpu(_) | Error::Load(LoadError::Library { .. }) => ACL_ERROR_OP_LOAD_FAILED,
        Error::BadLaunchEnd(_)
        | Error::BadChecks(_)
        | Error::BadPort(_)
        | Error::DebuggerNeedsQemu
        | Error::Model(_)
        | Error::ModelNeedsNative
        | Error::ModelOfOneDevice
        | Error::ModelNotExplored => ACL_ERROR_INVALID_PARAM,
        _ => ACL_ERROR_RT_FAILURE,
    }
}

fn hccl_code_of(error: &Error) -> i32 {
    match error {
        Error::Alloc(_) => code::HCCL_E_MEMORY,
        Error::Access(_) | Error::OutsideHbm(_) | Error::Free(_) => code::HCCL_E_PARA,
        Error::BadThreadCount(_) | Error::BadNotifyCount(_) | Error::BadDepth(_) => code::HCCL_E_PARA,
        Error::BadBuffSize(_) | Error::ZeroCclBuffer => code::HCCL_E_PARA,
        Error::BadLaunchEnd(_)
        | Error::BadChecks(_)
        | Error::BadPort(_)
        | Error::DebuggerNeedsQemu
        | Error::Model(_)
        | Error::ModelNeedsNative
        | Error::ModelOfOneDevice
        | Error::ModelNotExplored => code::HCCL_E_PARA,
        Error::Comm(CommError::BadName(_) | CommError::NameTaken(_)) => code::HCCL_E_PARA,
        Error::Refused(refusal) => refusal.code(),
        Error::Argument(error) => error.code(),
        Error::Thread(error) | Error::Channel(ChannelError::Thread(error)) => match error {
            ThreadError::NoThreads { .. } | ThreadError::NoNotifies { .. } => code::HCCL_E_UNAVAIL,
            ThreadError::BadThread { .. } => code::HCCL_E_NOT_FOUND,
            // As in a kernel.
            ThreadError::BadNotifyIndex { .. } => code::HCCL_E_PTR,
            ThreadError::Alloc(_) => code::HCCL_E_MEMORY,
        },
        Error::Channel(ChannelError::NoChannels) => code::HCCL_E_UNAVAIL,
        Error::Channel(ChannelError::Alloc(_)) => code::HCCL_E_MEMORY,
        Error::Channel(_) => code::HCCL_E_PARA,
        _ => code::HCCL_E_RUNTIME,
    }
}
