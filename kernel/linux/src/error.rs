//! Why a launch on a card could not be carried out.

use hcomm_aicpu::Error;
use hcomm_aicpu::spec::card::{CARD_NOTIFIES, CARD_THREADS};
use hcomm_aicpu::spec::code;
use hcomm_aicpu::spec::params::ParamsError;
use hcomm_aicpu::spec::soc::Soc;
use hcomm_hal::{HalError, OpenError};

/// What stands around a kernel failed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum CardError {
    /// The head of the launch is not that of this library.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// Device type that no supported chip has.
    #[error("unknown SoC device type {0}")]
    UnknownSoc(u32),
    /// Threads of two chips in one process.
    #[error("the thread is of {wanted:?}, and the library has threads of {known:?}")]
    OtherSoc {
        /// Of the threads that it has.
        known: Soc,
        /// Of the new one.
        wanted: Soc,
    },
    /// An engine whose threads a card's AI CPU does not know.
    #[error("engine {0} is not AICPU_TS (3) or CPU_TS (1)")]
    Engine(i32),
    /// More notifies than a thread can have.
    #[error("{0} notifies, at most {CARD_NOTIFIES}")]
    Notifies(u32),
    /// No slot for one more thread.
    #[error("{CARD_THREADS} threads are known already, and each of their queues is alive")]
    Full,
    /// A launch runs that may use the thread.
    #[error("thread {0:#x} is used by a launch that has not ended")]
    InUse(u64),
    /// The handle of no thread.
    #[error("{0:#x} is no handle of a live thread of this library")]
    BadThread(u64),
    /// The launch names a slot without a thread.
    #[error("slot {0} of the launch's threads has no thread")]
    EmptySlot(usize),
    /// A queue can't be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The driver's library.
    #[error(transparent)]
    Hal(#[from] HalError),
    /// More launches at a time than cores.
    #[error("all cores run kernels")]
    NoCore,
    /// The kernel has started a batch and not ended it.
    #[error("the kernel has left a batch open: its staged tasks were dropped")]
    BatchLeftOpen,
    /// The kernel has panicked.
    #[error("the kernel has panicked")]
    Panicked,
    /// A call of the device crate.
    #[error(transparent)]
    Refused(#[from] Error),
}

impl CardError {
    /// As an `HcclResult`.
    pub fn code(&self) -> i32 {
        match self {
            Self::Params(_) | Self::UnknownSoc(_) | Self::OtherSoc { .. } | Self::Notifies(_) => code::HCCL_E_PARA,
            Self::Engine(_) => code::HCCL_E_NOT_SUPPORT,
            Self::Full | Self::NoCore => code::HCCL_E_UNAVAIL,
            Self::InUse(_) => code::HCCL_E_AGAIN,
            Self::BadThread(_) | Self::EmptySlot(_) => code::HCCL_E_NOT_FOUND,
            Self::Open(_) | Self::Hal(_) => code::HCCL_E_DRV,
            Self::BatchLeftOpen | Self::Panicked => code::HCCL_E_INTERNAL,
            Self::Refused(error) => error.code(),
        }
    }
}
