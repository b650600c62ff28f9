//! The simplest kernel: one copy from the user's buffer into the communicator's.

use core::ptr::{without_provenance, without_provenance_mut};

use hcomm_aicpu::Error;
use hcomm_aicpu::abi::HcommLocalCopyOnThread;
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Control, kernel, queued};

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
    /// Control pair of the launch; on `thread`.
    pub control: Control,
}
const _: () = assert!(size_of::<LocalCopyParams>() == 72);

impl KernelParams for LocalCopyParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"LCPY");
    const VERSION: u32 = 2;
}

kernel! {
    /// Queues a copy of `len` bytes from `user_in` to `ccl_buf` on the thread, through the C entry point, and returns
    /// its code.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if `len` is above `ccl_buf_size`.
    pub fn local_copy(params: &LocalCopyParams) -> Result<i32, Error> {
        if params.len > params.ccl_buf_size {
            return Err(Error::TooLarge { len: params.len, limit: params.ccl_buf_size });
        }
        let dst = without_provenance_mut(params.ccl_buf.0 as usize);
        let src = without_provenance(params.user_in.0 as usize);
        let copy = || HcommLocalCopyOnThread(params.thread, dst, src, params.len);
        if params.control == Control::NONE {
            return Ok(copy());
        }
        let thread = queued::thread(params.thread)?;
        params.control.in_step(&thread, || Ok(copy()))
    }
}
