//! Types of `include/hccl/hccl_types.h`, which is generated from this file.
#![expect(
    dead_code,
    reason = "an enum of C may hold any number: the types are for the header, results are numbers here"
)]

use std::ffi::c_void;

use hcomm_aicpu::spec::code;

/// A communicator.
pub type HcclComm = *mut c_void;

/// Bytes of HcclRootInfo.
pub const HCCL_ROOT_INFO_BYTES: usize = 4108;
/// Most bytes of a communicator's name, its zero byte included.
pub const COMM_NAME_MAX_LENGTH: usize = 128;

/// Names a communicator to be; opaque.
#[repr(C)]
pub struct HcclRootInfo {
    pub internal: [std::ffi::c_char; HCCL_ROOT_INFO_BYTES],
}
const _: () = assert!(size_of::<HcclRootInfo>() == 4108);

/// Result of a function.
#[repr(C)]
pub enum HcclResult {
    HCCL_SUCCESS = 0,
    HCCL_E_PARA = 1,
    HCCL_E_PTR = 2,
    HCCL_E_MEMORY = 3,
    HCCL_E_INTERNAL = 4,
    HCCL_E_NOT_SUPPORT = 5,
    HCCL_E_NOT_FOUND = 6,
    HCCL_E_UNAVAIL = 7,
    HCCL_E_SYSCALL = 8,
    HCCL_E_TIMEOUT = 9,
    HCCL_E_OPEN_FILE_FAILURE = 10,
    HCCL_E_TCP_CONNECT = 11,
    HCCL_E_ROCE_CONNECT = 12,
    HCCL_E_TCP_TRANSFER = 13,
    HCCL_E_ROCE_TRANSFER = 14,
    HCCL_E_RUNTIME = 15,
    HCCL_E_DRV = 16,
    HCCL_E_PROFILING = 17,
    HCCL_E_CCE = 18,
    HCCL_E_NETWORK = 19,
    HCCL_E_AGAIN = 20,
    HCCL_E_REMOTE = 21,
    HCCL_E_SUSPENDING = 22,
    HCCL_E_OPRETRY_FAIL = 23,
    HCCL_E_OOM = 24,
    HCCL_E_IN_STATUS = 1041,
    HCCL_E_RESERVED = 1042,
}

const _: () = {
    use HcclResult::*;
    assert!(HCCL_SUCCESS as i32 == code::HCCL_SUCCESS && HCCL_E_PARA as i32 == code::HCCL_E_PARA);
    assert!(HCCL_E_PTR as i32 == code::HCCL_E_PTR && HCCL_E_MEMORY as i32 == code::HCCL_E_MEMORY);
    assert!(HCCL_E_INTERNAL as i32 == code::HCCL_E_INTERNAL && HCCL_E_NOT_SUPPORT as i32 == code::HCCL_E_NOT_SUPPORT);
    assert!(HCCL_E_NOT_FOUND as i32 == code::HCCL_E_NOT_FOUND && HCCL_E_UNAVAIL as i32 == code::HCCL_E_UNAVAIL);
    assert!(HCCL_E_SYSCALL as i32 == code::HCCL_E_SYSCALL && HCCL_E_TIMEOUT as i32 == code::HCCL_E_TIMEOUT);
    assert!(HCCL_E_OPEN_FILE_FAILURE as i32 == code::HCCL_E_OPEN_FILE_FAILURE);
    assert!(HCCL_E_RUNTIME as i32 == code::HCCL_E_RUNTIME && HCCL_E_DRV as i32 == code::HCCL_E_DRV);
    assert!(HCCL_E_AGAIN as i32 == code::HCCL_E_AGAIN && HCCL_E_SUSPENDING as i32 == code::HCCL_E_SUSPENDING);
};
