//! The simplest kernel: one copy from the user's buffer into the communicator's.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_aicpu::{Error, Thread};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::kernel;

/// Parameters of [`local_copy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LocalCopyParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `ThreadHandle` of the thread whose queue takes the copy.
    pub thread: u64,
    /// First byte read.
    pub user_in: DeviceAddr,
    /// First byte written.
    pub ccl_buf: DeviceAddr,
    /// Bytes of `ccl_buf`.
    pub ccl_buf_size: u64,
    /// Bytes to copy.
    pub len: u64,
}
const _: () = assert!(size_of::<LocalCopyParams>() == 56);

impl KernelParams for LocalCopyParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"LCPY");
    const VERSION: u32 = 1;
}

kernel! {
    /// Queues a copy of `len` bytes from `user_in` to `ccl_buf` on the thread.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if `len` is above `ccl_buf_size`; those of [`Thread::from_handle`] and [`Thread::local_copy`].
    pub fn local_copy(params: &LocalCopyParams) -> Result<(), Error> {
        if params.len > params.ccl_buf_size {
            return Err(Error::TooLarge { len: params.len, limit: params.ccl_buf_size });
        }
        Thread::from_handle(ThreadHandle(params.thread))?.local_copy(params.ccl_buf, params.user_in, params.len)
    }
}
