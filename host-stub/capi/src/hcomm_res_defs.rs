//! Types of `include/hcomm/hcomm_res_defs.h`, which is generated from this file.
#![expect(
    dead_code,
    reason = "an enum of C may hold any number: the types are for the header, arguments are numbers here"
)]

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::thread::Engine;

/// A communication thread.
pub type ThreadHandle = u64;
/// A channel between two ranks. No function makes one yet: kernels declare the type in structures of their own.
pub type ChannelHandle = u64;

/// Who queues the tasks of a thread, and who carries them out.
#[repr(C)]
pub enum CommEngine {
    COMM_ENGINE_RESERVED = -1,
    COMM_ENGINE_CPU = 0,
    COMM_ENGINE_CPU_TS = 1,
    COMM_ENGINE_AICPU = 2,
    COMM_ENGINE_AICPU_TS = 3,
    COMM_ENGINE_AIV = 4,
    COMM_ENGINE_CCU = 5,
}
const _: () = assert!(CommEngine::COMM_ENGINE_CPU_TS as i32 == Engine::CPU_TS.0);
const _: () = assert!(CommEngine::COMM_ENGINE_AICPU_TS as i32 == Engine::AICPU_TS.0);

/// Type of an element.
#[repr(C)]
pub enum HcommDataType {
    HCOMM_DATA_TYPE_INT8 = 0,
    HCOMM_DATA_TYPE_INT16 = 1,
    HCOMM_DATA_TYPE_INT32 = 2,
    HCOMM_DATA_TYPE_FP16 = 3,
    HCOMM_DATA_TYPE_FP32 = 4,
    HCOMM_DATA_TYPE_INT64 = 5,
    HCOMM_DATA_TYPE_UINT64 = 6,
    HCOMM_DATA_TYPE_UINT8 = 7,
    HCOMM_DATA_TYPE_UINT16 = 8,
    HCOMM_DATA_TYPE_UINT32 = 9,
    HCOMM_DATA_TYPE_FP64 = 10,
    HCOMM_DATA_TYPE_BFP16 = 11,
    HCOMM_DATA_TYPE_INT128 = 12,
    HCOMM_DATA_TYPE_HIF8 = 14,
    HCOMM_DATA_TYPE_FP8E4M3 = 15,
    HCOMM_DATA_TYPE_FP8E5M2 = 16,
    HCOMM_DATA_TYPE_FP8E8M0 = 17,
    HCOMM_DATA_TYPE_RESERVED = 255,
}

/// Operator of a reduction.
#[repr(C)]
pub enum HcommReduceOp {
    HCOMM_REDUCE_SUM = 0,
    HCOMM_REDUCE_PROD = 1,
    HCOMM_REDUCE_MAX = 2,
    HCOMM_REDUCE_MIN = 3,
    HCOMM_REDUCE_RESERVED = 255,
}

const _: () = assert!(HcommDataType::HCOMM_DATA_TYPE_INT32 as i32 == DataType::INT32.0);
const _: () = assert!(HcommDataType::HCOMM_DATA_TYPE_BFP16 as i32 == DataType::BF16.0);
const _: () = assert!(HcommReduceOp::HCOMM_REDUCE_MIN as i32 == ReduceOp::MIN.0);
