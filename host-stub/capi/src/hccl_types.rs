//! Types of `include/hccl/hccl_types.h`, which is generated from this file.
#![expect(
    dead_code,
    reason = "an enum of C may hold any number: the types are for the header, results are numbers here"
)]

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

use hcomm_aicpu::spec::code;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};

/// A communicator.
pub type HcclComm = *mut c_void;

/// Bytes of HcclRootInfo.
pub const HCCL_ROOT_INFO_BYTES: usize = 4108;
/// Most bytes of a communicator's name, its zero byte included.
pub const COMM_NAME_MAX_LENGTH: usize = 128;

/// Names a communicator to be; opaque.
#[repr(C)]
pub struct HcclRootInfo {
    pub internal: [c_char; HCCL_ROOT_INFO_BYTES],
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

/// Type of an element. The numbers are those of HcommDataType.
#[repr(C)]
pub enum HcclDataType {
    HCCL_DATA_TYPE_INT8 = 0,
    HCCL_DATA_TYPE_INT16 = 1,
    HCCL_DATA_TYPE_INT32 = 2,
    HCCL_DATA_TYPE_FP16 = 3,
    HCCL_DATA_TYPE_FP32 = 4,
    HCCL_DATA_TYPE_INT64 = 5,
    HCCL_DATA_TYPE_UINT64 = 6,
    HCCL_DATA_TYPE_UINT8 = 7,
    HCCL_DATA_TYPE_UINT16 = 8,
    HCCL_DATA_TYPE_UINT32 = 9,
    HCCL_DATA_TYPE_FP64 = 10,
    HCCL_DATA_TYPE_BFP16 = 11,
    HCCL_DATA_TYPE_INT128 = 12,
    HCCL_DATA_TYPE_HIF8 = 14,
    HCCL_DATA_TYPE_FP8E4M3 = 15,
    HCCL_DATA_TYPE_FP8E5M2 = 16,
    HCCL_DATA_TYPE_FP8E8M0 = 17,
    HCCL_DATA_TYPE_RESERVED = 255,
}

/// Operator of a reduction. The numbers are those of HcommReduceOp.
#[repr(C)]
pub enum HcclReduceOp {
    HCCL_REDUCE_SUM = 0,
    HCCL_REDUCE_PROD = 1,
    HCCL_REDUCE_MAX = 2,
    HCCL_REDUCE_MIN = 3,
    HCCL_REDUCE_RESERVED = 255,
}

const _: () = assert!(HcclDataType::HCCL_DATA_TYPE_BFP16 as i32 == DataType::BF16.0);
const _: () = assert!(HcclReduceOp::HCCL_REDUCE_MIN as i32 == ReduceOp::MIN.0);

/// Kind of a collective operation. Programs pass it to their kernels; nothing here takes it.
#[repr(C)]
pub enum HcclCMDType {
    HCCL_CMD_INVALID = 0,
    HCCL_CMD_BROADCAST = 1,
    HCCL_CMD_ALLREDUCE = 2,
    HCCL_CMD_REDUCE = 3,
    HCCL_CMD_SEND = 4,
    HCCL_CMD_RECEIVE = 5,
    HCCL_CMD_ALLGATHER = 6,
    HCCL_CMD_REDUCE_SCATTER = 7,
    HCCL_CMD_ALLTOALLV = 8,
    HCCL_CMD_ALLTOALLVC = 9,
    HCCL_CMD_ALLTOALL = 10,
    HCCL_CMD_GATHER = 11,
    HCCL_CMD_SCATTER = 12,
    HCCL_CMD_BATCH_SEND_RECV = 13,
    HCCL_CMD_BATCH_PUT = 14,
    HCCL_CMD_BATCH_GET = 15,
    HCCL_CMD_ALLGATHER_V = 16,
    HCCL_CMD_REDUCE_SCATTER_V = 17,
    HCCL_CMD_BATCH_WRITE = 18,
    HCCL_CMD_HALF_ALLTOALLV = 20,
    HCCL_CMD_ALL = 21,
    HCCL_CMD_FINALIZE = 100,
    HCCL_CMD_INTER_GROUP_SYNC = 101,
    HCCL_CMD_INIT = 102,
    HCCL_CMD_BARRIER = 103,
    HCCL_CMD_MAX = 104,
}

/// Bytes before the first setting of HcclCommConfig.
pub const HCCL_COMM_CONFIG_INFO_BYTES: usize = 24;
/// Second word of those bytes.
pub const HCCL_COMM_CONFIG_MAGIC_WORD: u32 = 0xf0f0_f0f0;
/// Third word of them: the settings that there are.
pub const HCCL_COMM_CONFIG_VERSION: u32 = 11;
/// Most bytes of a device's name, its zero byte included.
pub const UDI_MAX_LENGTH: usize = 128;
/// Most bytes of a buffer's name, its zero byte included.
pub const BUFFER_NAME_MAX_LENGTH: usize = 128;
/// Most bytes of the text that chooses algorithms, its zero byte included.
pub const HCCL_COMM_ALGO_MAX_LENGTH: usize = 1600;
/// Most bytes of the text that switches retries on, its zero byte included.
pub const HCCL_COMM_RETRY_ENABLE_MAX_LENGTH: usize = 50;
/// Most bytes of the text with the limits of retries, its zero byte included.
pub const HCCL_COMM_RETRY_PARAMS_MAX_LENGTH: usize = 128;

/// Settings of a communicator. HcclCommConfigInit sets each to "not set".
#[repr(C)]
pub struct HcclCommConfig {
    /// Size, magic word and version.
    pub reserved: [c_char; HCCL_COMM_CONFIG_INFO_BYTES],
    /// Half of the buffer, in MB; HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET: as HCCL_BUFFSIZE says.
    pub hcclBufferSize: u32,
    pub hcclDeterministic: u32,
    pub hcclCommName: [c_char; COMM_NAME_MAX_LENGTH],
    pub hcclUdi: [c_char; UDI_MAX_LENGTH],
    pub hcclOpExpansionMode: u32,
    pub hcclRdmaTrafficClass: u32,
    pub hcclRdmaServiceLevel: u32,
    pub hcclWorldRankID: u32,
    pub hcclJobID: u64,
    pub aclGraphZeroCopyEnable: u8,
    /// Seconds.
    pub hcclExecTimeOut: i32,
    pub hcclAlgo: [c_char; HCCL_COMM_ALGO_MAX_LENGTH],
    pub hcclRetryEnable: [c_char; HCCL_COMM_RETRY_ENABLE_MAX_LENGTH],
    pub hcclRetryParams: [c_char; HCCL_COMM_RETRY_PARAMS_MAX_LENGTH],
    pub hcclBufferName: [c_char; BUFFER_NAME_MAX_LENGTH],
    pub hcclQos: u32,
    /// GiB.
    pub hcclSymWinMaxMemSizePerRank: u64,
    pub hcclChannelSqDepth: u32,
}
const _: () = assert!(size_of::<HcclCommConfig>() == 2248 && align_of::<HcclCommConfig>() == 8);
const _: () = assert!(offset_of!(HcclCommConfig, hcclUdi) == 160 && offset_of!(HcclCommConfig, hcclJobID) == 304);
const _: () =
    assert!(offset_of!(HcclCommConfig, hcclExecTimeOut) == 316 && offset_of!(HcclCommConfig, hcclAlgo) == 320);
const _: () =
    assert!(offset_of!(HcclCommConfig, hcclRetryEnable) == 1920 && offset_of!(HcclCommConfig, hcclQos) == 2228);
const _: () = assert!(offset_of!(HcclCommConfig, hcclChannelSqDepth) == 2240);
