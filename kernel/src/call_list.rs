//! Calls of C entry points from a list in device memory. Tests build any kernel from it.

use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut, without_provenance, without_provenance_mut};

use hcomm_aicpu::abi;
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::code::{HCCL_E_NOT_SUPPORT, HCCL_SUCCESS};
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::kernel;

/// One call of the list: a function by number and its arguments in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Call {
    /// One of the numbers of [`Call`].
    pub function: u64,
    /// Its arguments; the others are not read.
    pub args: [u64; 6],
}
const _: () = assert!(size_of::<Call>() == 56);

impl Call {
    /// `HcommLocalCopyOnThread`.
    pub const LOCAL_COPY: u64 = 1;
    /// `HcommLocalReduceOnThread`.
    pub const LOCAL_REDUCE: u64 = 2;
    /// `HcommThreadNotifyRecordOnThread`.
    pub const NOTIFY_RECORD: u64 = 3;
    /// `HcommThreadNotifyWaitOnThread`.
    pub const NOTIFY_WAIT: u64 = 4;
    /// `HcommThreadNotifyWaitOnThreadWithDefaultTimeout`.
    pub const NOTIFY_WAIT_DEFAULT: u64 = 5;
    /// `HcommBatchModeStart`.
    pub const BATCH_START: u64 = 6;
    /// `HcommBatchModeEnd`.
    pub const BATCH_END: u64 = 7;
    /// `HcommThreadSynchronize`.
    pub const SYNCHRONIZE: u64 = 8;
    /// `HcommThreadJoin`.
    pub const JOIN: u64 = 9;
    /// `HcommSetNotifyWaitTimeOut`; the argument is the bits of the number.
    pub const SET_NOTIFY_WAIT_TIMEOUT: u64 = 10;
    /// `HcommThreadResAcquireTimeOut`; the argument is the bits of the number.
    pub const SET_SQ_FULL_TIMEOUT: u64 = 11;
    /// `HcommAcquireComm`; the argument is the address of a name in device memory.
    pub const ACQUIRE_COMM: u64 = 12;
    /// `HcommReleaseComm`, as above.
    pub const RELEASE_COMM: u64 = 13;
    /// `HcommAclrtNotifyRecordOnThread`.
    pub const ACLRT_NOTIFY_RECORD: u64 = 14;
    /// `HcommAclrtNotifyWaitOnThread`.
    pub const ACLRT_NOTIFY_WAIT: u64 = 15;

    /// Not a function of the library: the kernel panics.
    pub const PANIC: u64 = 16;

    /// Calls the function and returns its code; 5 for an unknown number.
    fn run(&self) -> i32 {
        let [a, b, c, d, e, f] = self.args;
        let dst = without_provenance_mut(b as usize);
        let src = without_provenance(c as usize);
        match self.function {
            Self::LOCAL_COPY => abi::HcommLocalCopyOnThread(a, dst, src, d),
            Self::LOCAL_REDUCE => abi::HcommLocalReduceOnThread(a, dst, src, d, e as i32, f as i32),
            Self::NOTIFY_RECORD => abi::HcommThreadNotifyRecordOnThread(a, b, c as u32),
            Self::NOTIFY_WAIT => abi::HcommThreadNotifyWaitOnThread(a, b as u32, c as u32),
            Self::NOTIFY_WAIT_DEFAULT => abi::HcommThreadNotifyWaitOnThreadWithDefaultTimeout(a, b as u32),
            Self::BATCH_START => abi::HcommBatchModeStart(core::ptr::null()),
            Self::BATCH_END => abi::HcommBatchModeEnd(core::ptr::null()),
            Self::SYNCHRONIZE => abi::HcommThreadSynchronize(a),
            Self::JOIN => abi::HcommThreadJoin(a, b as u32),
            Self::SET_NOTIFY_WAIT_TIMEOUT => abi::HcommSetNotifyWaitTimeOut(f32::from_bits(a as u32)),
            Self::SET_SQ_FULL_TIMEOUT => abi::HcommThreadResAcquireTimeOut(f32::from_bits(a as u32)),
            // SAFETY: the host owes null or a name that ends with a zero byte (`CallListParams::list`).
            Self::ACQUIRE_COMM => unsafe { abi::HcommAcquireComm(with_exposed_provenance(a as usize)) },
            // SAFETY: as above.
            Self::RELEASE_COMM => unsafe { abi::HcommReleaseComm(with_exposed_provenance(a as usize)) },
            Self::ACLRT_NOTIFY_RECORD => abi::HcommAclrtNotifyRecordOnThread(a, b),
            Self::ACLRT_NOTIFY_WAIT => abi::HcommAclrtNotifyWaitOnThread(a, b, c as u32),
            Self::PANIC => panic!("call {:#x} of a list", Self::PANIC),
            _ => HCCL_E_NOT_SUPPORT,
        }
    }
}

/// Parameters of [`call_list`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CallListParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `count` entries of [`Call`] in device memory, 8-byte aligned. The host keeps them, and the names that they refer to,
    /// until the launch has ended.
    pub list: DeviceAddr,
    /// Calls.
    pub count: u64,
    /// `count` words of 32 bits in device memory, 4-byte aligned, for the codes of the calls; null: the first code that is not
    /// 0 ends the kernel.
    pub codes: DeviceAddr,
}
const _: () = assert!(size_of::<CallListParams>() == 40);

impl KernelParams for CallListParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"CALL");
    const VERSION: u32 = 1;
}

kernel! {
    /// Makes the calls of the list in their order. Returns 0 and writes their codes. Without room for codes it stops at
    /// the first code that is not 0 and returns it.
    ///
    /// # Errors
    /// None: refusals are codes.
    pub fn call_list(params: &CallListParams) -> Result<i32, hcomm_aicpu::Error> {
        let list = with_exposed_provenance::<Call>(params.list.0 as usize);
        let codes = with_exposed_provenance_mut::<i32>(params.codes.0 as usize);
        for index in 0..params.count as usize {
            // SAFETY: the host owes `count` aligned entries that stay readable (`CallListParams::list`).
            let code = unsafe { list.add(index).read() }.run();
            if !codes.is_null() {
                // SAFETY: the host owes `count` aligned words that are ours to write (`CallListParams::codes`).
                unsafe { codes.add(index).write_volatile(code) };
            } else if code != HCCL_SUCCESS {
                return Ok(code);
            }
        }
        Ok(HCCL_SUCCESS)
    }
}
