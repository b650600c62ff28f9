//! Launches of kernels of the built-in library. `include/hccl/hccl_launch.h` is generated from this file.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

use super::acl_base::aclrtStream;
use super::call::{hccl, not_null};
use super::comm;
use super::error::CallError;
use super::hccl_types::HcclComm;
use super::hcomm_res_defs::{CommAbiHeader, ThreadHandle};

type HcclResult = c_int;

/// Bytes of a name in HcclKernelFuncInfo, its zero byte included.
pub const HCCL_KERNEL_NAME_MAX_LENGTH: usize = 256;

/// A kernel and its arguments.
#[repr(C)]
pub struct HcclKernelFuncInfo {
    pub soName: [c_char; HCCL_KERNEL_NAME_MAX_LENGTH],
    pub funcName: [c_char; HCCL_KERNEL_NAME_MAX_LENGTH],
    pub args: *mut c_void,
    pub argSize: u32,
}
const _: () = assert!(size_of::<HcclKernelFuncInfo>() == 528 && offset_of!(HcclKernelFuncInfo, argSize) == 520);

/// Settings of a launch.
#[repr(C)]
pub struct HcclKernelLaunchCfg {
    pub header: CommAbiHeader,
    pub timeOut: u64,
    pub reserved: [u8; 104],
}
const _: () = assert!(size_of::<HcclKernelLaunchCfg>() == 128 && offset_of!(HcclKernelLaunchCfg, timeOut) == 16);

/// An operation that a kernel belongs to.
#[repr(C)]
pub struct HcclOpDesc {
    pub header: CommAbiHeader,
    /// 1: from one rank to another.
    pub opDescType: u32,
    pub opName: [c_char; HCCL_KERNEL_NAME_MAX_LENGTH],
    pub reserved: [u8; 84],
}
const _: () = assert!(size_of::<HcclOpDesc>() == 360 && offset_of!(HcclOpDesc, opName) == 20);

/// Launches a kernel of the built-in library. Not simulated: the result is 5. aclrtLaunchKernelWithConfig launches kernels.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclAicpuKernelLaunch(
    comm: HcclComm,
    op_desc: *const HcclOpDesc,
    func_info: *const HcclKernelFuncInfo,
    aicpu_thread: ThreadHandle,
    user_stream: aclrtStream,
    cfg: *const HcclKernelLaunchCfg,
) -> HcclResult {
    let _ = (aicpu_thread, user_stream, cfg);
    hccl("HcclAicpuKernelLaunch", || {
        not_null([(comm.cast_const(), "comm"), (op_desc.cast(), "opDesc"), (func_info.cast(), "funcInfo")])?;
        comm::check(comm.addr() as u64)?;
        let text = "kernels of the built-in library: launch your own by aclrtLaunchKernelWithConfig";
        Err(CallError::NotSupported(text.to_owned()))
    })
}
