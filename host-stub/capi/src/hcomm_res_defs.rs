//! Types of `include/hcomm/hcomm_res_defs.h`, which is generated from this file.
#![expect(
    dead_code,
    reason = "an enum of C may hold any number: the types are for the header, arguments are numbers here"
)]

use std::ffi::c_void;
use std::mem::{MaybeUninit, offset_of};

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::thread::Engine;

/// A communication thread.
pub type ThreadHandle = u64;
/// A channel between two ranks.
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

/// First bytes of a structure that may grow.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CommAbiHeader {
    pub version: u32,
    pub magicWord: u32,
    /// Bytes of the whole structure.
    pub size: u32,
    pub reserved: u32,
}

/// How two ranks are linked.
#[repr(C)]
pub enum CommProtocol {
    COMM_PROTOCOL_RESERVED = -1,
    COMM_PROTOCOL_HCCS = 0,
    COMM_PROTOCOL_ROCE = 1,
    COMM_PROTOCOL_PCIE = 2,
    COMM_PROTOCOL_SIO = 3,
    COMM_PROTOCOL_UB_CTP = 4,
    COMM_PROTOCOL_UBC_TP = 5,
    COMM_PROTOCOL_UB_MEM = 6,
    COMM_PROTOCOL_UBOE = 7,
    COMM_PROTOCOL_HCCS_ONLY = 8,
    COMM_PROTOCOL_UB_RTP = 9,
}

/// Kind of an address of an endpoint.
#[repr(C)]
pub enum CommAddrType {
    COMM_ADDR_TYPE_RESERVED = -1,
    COMM_ADDR_TYPE_IP_V4 = 0,
    COMM_ADDR_TYPE_IP_V6 = 1,
    COMM_ADDR_TYPE_ID = 2,
    COMM_ADDR_TYPE_EID = 3,
}

/// Where an endpoint is.
#[repr(C)]
pub enum EndpointLocType {
    ENDPOINT_LOC_TYPE_RESERVED = -1,
    ENDPOINT_LOC_TYPE_DEVICE = 0,
    ENDPOINT_LOC_TYPE_HOST = 1,
}

/// Kind of memory.
#[repr(C)]
pub enum CommMemType {
    COMM_MEM_TYPE_INVALID = -1,
    COMM_MEM_TYPE_DEVICE = 0,
    COMM_MEM_TYPE_HOST = 1,
}

/// A range of memory.
#[repr(C)]
pub struct CommMem {
    pub r#type: MaybeUninit<CommMemType>,
    pub addr: *mut c_void,
    pub size: u64,
}
const _: () = assert!(size_of::<CommMem>() == 24 && offset_of!(CommMem, addr) == 8);

/// Address of an endpoint, as its type says.
#[derive(Clone, Copy)]
#[repr(C)]
pub union CommAddrValue {
    /// IPv4 or IPv6, in network order.
    pub ip: [u32; 4],
    pub id: u32,
    pub eid: [u8; 16],
    pub raws: [u8; 36],
}

/// Address of an endpoint.
#[repr(C)]
pub struct CommAddr {
    pub r#type: MaybeUninit<CommAddrType>,
    pub value: CommAddrValue,
}
const _: () = assert!(size_of::<CommAddr>() == 40 && offset_of!(CommAddr, value) == 4);

/// An endpoint on a device.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct EndpointLocDevice {
    pub devPhyId: u32,
    pub superDevId: u32,
    pub serverIdx: u32,
    pub superPodIdx: u32,
}

/// An endpoint on a host.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct EndpointLocHost {
    pub id: u32,
}

/// Place of an endpoint, as its type says.
#[derive(Clone, Copy)]
#[repr(C)]
pub union EndpointLocValue {
    pub device: EndpointLocDevice,
    pub host: EndpointLocHost,
    pub raws: [u8; 60],
}

/// Place of an endpoint.
#[repr(C)]
pub struct EndpointLoc {
    pub locType: MaybeUninit<EndpointLocType>,
    pub value: EndpointLocValue,
}
const _: () = assert!(size_of::<EndpointLoc>() == 64 && offset_of!(EndpointLoc, value) == 4);

/// One end of a link.
#[repr(C)]
pub struct EndpointDesc {
    pub protocol: MaybeUninit<CommProtocol>,
    pub commAddr: CommAddr,
    pub loc: EndpointLoc,
    pub raws: [u8; 52],
}
const _: () = assert!(size_of::<EndpointDesc>() == 160 && align_of::<EndpointDesc>() == 4);
const _: () = assert!(offset_of!(EndpointDesc, commAddr) == 4 && offset_of!(EndpointDesc, loc) == 44);
const _: () = assert!(offset_of!(EndpointDesc, raws) == 108);

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
