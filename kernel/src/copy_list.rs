//! Many copies in one launch, from a list in device memory.

use core::ptr::{with_exposed_provenance, without_provenance, without_provenance_mut};

use hcomm_aicpu::abi::HcommLocalCopyOnThread;
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::code::HCCL_SUCCESS;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::{Error, batch};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::kernel;

/// One copy of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ListedCopy {
    /// `ThreadHandle` of the thread whose queue takes the copy.
    pub thread: u64,
    /// First byte written.
    pub dst: DeviceAddr,
    /// First byte read.
    pub src: DeviceAddr,
    /// Bytes to copy.
    pub len: u64,
}
const _: () = assert!(size_of::<ListedCopy>() == 32);

/// Parameters of [`copy_list`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CopyListParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `count` entries of [`ListedCopy`] in device memory, 8-byte aligned. The host keeps them until the launch has ended.
    pub list: DeviceAddr,
    /// Copies to queue.
    pub count: u64,
    /// Not 0: in one batch.
    pub batch: u64,
}
const _: () = assert!(size_of::<CopyListParams>() == 40);

impl KernelParams for CopyListParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"CPLI");
    const VERSION: u32 = 1;
}

kernel! {
    /// Queues the copies of the list in their order, through the C entry point. Returns the code of the first that is
    /// refused; those before it run, those after it are not queued.
    ///
    /// # Errors
    /// Those of [`batch::start`] and [`batch::end`].
    pub fn copy_list(params: &CopyListParams) -> Result<i32, Error> {
        if params.batch != 0 {
            batch::start()?;
        }
        let list = with_exposed_provenance::<ListedCopy>(params.list.0 as usize);
        let copy = |index| {
            // SAFETY: the host owes `count` aligned entries that stay readable (`CopyListParams::list`).
            let ListedCopy { thread, dst, src, len } = unsafe { list.add(index).read() };
            HcommLocalCopyOnThread(thread, without_provenance_mut(dst.0 as usize), without_provenance(src.0 as usize), len)
        };
        let refused = (0..params.count as usize).map(copy).find(|code| *code != HCCL_SUCCESS);
        if params.batch != 0 {
            batch::end()?;
        }
        Ok(refused.unwrap_or(HCCL_SUCCESS))
    }
}
