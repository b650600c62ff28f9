//! Types and numbers of `include/acl/acl_base.h`, which is generated from this file.
#![expect(
    dead_code,
    reason = "types that only the header needs: an enum of C may hold any number, so none is one here"
)]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

/// Result of a function: 0 = done, anything else is one of ACL_ERROR_*.
pub type aclError = c_int;
/// A stream; null means the default stream of the calling thread's device.
pub type aclrtStream = *mut c_void;
/// A notify: one operation of a stream sets it, another one waits for it and clears it.
pub type aclrtNotify = *mut c_void;
/// An event: a place that a stream reaches.
pub type aclrtEvent = *mut c_void;
/// A loaded kernel binary.
pub type aclrtBinHandle = *mut c_void;
/// A kernel of a binary.
pub type aclrtFuncHandle = *mut c_void;
/// Arguments of a launch.
pub type aclrtArgsHandle = *mut c_void;
/// One argument among those of a launch.
pub type aclrtParamHandle = *mut c_void;

/// Flag of aclrtCreateNotify: for the host.
pub const ACL_NOTIFY_DEFAULT: u32 = 0;
/// Flag of aclrtCreateNotify: for kernels; streams can use it, too.
pub const ACL_NOTIFY_DEVICE_USE_ONLY: u32 = 1;

/// Flag of aclrtCreateStreamWithConfig: launches are to be fast. Makes no difference here.
pub const ACL_STREAM_FAST_LAUNCH: u32 = 0x1;
/// Flag of aclrtCreateStreamWithConfig: a synchronise is to be fast. Makes no difference here.
pub const ACL_STREAM_FAST_SYNC: u32 = 0x2;
/// Flag of aclrtCreateStreamWithConfig: a stream of models. Not simulated.
pub const ACL_STREAM_PERSISTENT: u32 = 0x4;
/// Flag of aclrtCreateStreamWithConfig: a deep queue. Makes no difference here.
pub const ACL_STREAM_HUGE: u32 = 0x8;
/// Flag of aclrtCreateStreamWithConfig: a stream that the AI CPU schedules. Not simulated.
pub const ACL_STREAM_CPU_SCHEDULE: u32 = 0x10;
/// Flag of aclrtCreateStreamWithConfig: a stream that only the device drives. Not simulated: kernels have the queues of threads.
pub const ACL_STREAM_DEVICE_USE_ONLY: u32 = 0x20;

/// Flag of aclrtCreateEventWithFlag: for waits of streams.
pub const ACL_EVENT_SYNC: u32 = 0x1;
/// Flag of aclrtCreateEventWithFlag: for queries.
pub const ACL_EVENT_CAPTURE_STREAM_PROGRESS: u32 = 0x2;
/// Flag of aclrtCreateEventWithFlag: for times. Every event has a time here.
pub const ACL_EVENT_TIME_LINE: u32 = 0x8;

/// Whether the last record of an event was reached.
#[repr(C)]
pub enum aclrtEventRecordedStatus {
    /// Not recorded, or not reached.
    ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
    /// Reached.
    ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
}
pub use aclrtEventRecordedStatus::{ACL_EVENT_RECORDED_STATUS_COMPLETE, ACL_EVENT_RECORDED_STATUS_NOT_READY};

/// How device memory is allocated. Any number is accepted: the simulated device has one kind of memory. Only
/// ACL_MEM_ACCESS_USER_SPACE_READONLY is refused.
#[repr(C)]
pub enum aclrtMemMallocPolicy {
    ACL_MEM_MALLOC_HUGE_FIRST = 0,
    ACL_MEM_MALLOC_HUGE_ONLY = 1,
    ACL_MEM_MALLOC_NORMAL_ONLY = 2,
    ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
    ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
    ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
    ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
    ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
    ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
    ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
    ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000,
}
pub use aclrtMemMallocPolicy::ACL_MEM_ACCESS_USER_SPACE_READONLY;

/// Direction of a copy. Only a hint: the addresses decide the direction.
#[repr(C)]
pub enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST = 0,
    ACL_MEMCPY_HOST_TO_DEVICE = 1,
    ACL_MEMCPY_DEVICE_TO_HOST = 2,
    ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
    ACL_MEMCPY_DEFAULT = 4,
    ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
    ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
    ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7,
}

/// Kind of device memory that aclrtGetMemInfo is asked for. The simulated device has HBM of one kind, and no DDR.
#[repr(C)]
pub enum aclrtMemAttr {
    ACL_DDR_MEM = 0,
    ACL_HBM_MEM = 1,
    ACL_DDR_MEM_HUGE = 2,
    ACL_DDR_MEM_NORMAL = 3,
    ACL_HBM_MEM_HUGE = 4,
    ACL_HBM_MEM_NORMAL = 5,
    ACL_DDR_MEM_P2P_HUGE = 6,
    ACL_DDR_MEM_P2P_NORMAL = 7,
    ACL_HBM_MEM_P2P_HUGE = 8,
    ACL_HBM_MEM_P2P_NORMAL = 9,
}

/// Whose last error is asked for.
#[repr(C)]
pub enum aclrtLastErrLevel {
    /// The calling thread's.
    ACL_RT_THREAD_LEVEL = 0,
}

/// What an attribute of an allocation is.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum aclrtMallocAttrType {
    ACL_RT_MEM_ATTR_RSV = 0,
    ACL_RT_MEM_ATTR_MODULE_ID = 1,
    ACL_RT_MEM_ATTR_DEVICE_ID = 2,
    ACL_RT_MEM_ATTR_VA_FLAG = 3,
}

/// Value of an attribute of an allocation.
#[derive(Clone, Copy)]
#[repr(C)]
pub union aclrtMallocAttrValue {
    pub moduleId: u16,
    pub deviceId: u32,
    pub vaFlag: u32,
    pub rsv: [u8; 8],
}

/// Attribute of an allocation.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct aclrtMallocAttribute {
    pub attr: MaybeUninit<aclrtMallocAttrType>,
    pub value: aclrtMallocAttrValue,
}

/// Attributes of an allocation.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct aclrtMallocConfig {
    pub attrs: *mut aclrtMallocAttribute,
    pub numAttrs: usize,
}

/// What an option of loading a binary is.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum aclrtBinaryLoadOptionType {
    ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD = 1,
    ACL_RT_BINARY_LOAD_OPT_MAGIC = 2,
    ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE = 3,
}

/// Value of an option of loading a binary.
#[derive(Clone, Copy)]
#[repr(C)]
pub union aclrtBinaryLoadOptionValue {
    pub isLazyLoad: u32,
    pub magic: u32,
    pub cpuKernelMode: i32,
    pub rsv: [u32; 4],
}

/// Option of loading a binary.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct aclrtBinaryLoadOption {
    pub r#type: MaybeUninit<aclrtBinaryLoadOptionType>,
    pub value: aclrtBinaryLoadOptionValue,
}

/// Options of loading a binary.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct aclrtBinaryLoadOptions {
    pub options: *mut aclrtBinaryLoadOption,
    pub numOpt: usize,
}

/// What an attribute of a launch is.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum aclrtLaunchKernelAttrId {
    ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT = 7,
}

/// Value of an attribute of a launch.
#[derive(Clone, Copy)]
#[repr(C)]
pub union aclrtLaunchKernelAttrValue {
    /// Seconds that the kernel may take; 0 = the device's default.
    pub timeout: u16,
    pub rsv: [u32; 4],
}

/// Attribute of a launch.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct aclrtLaunchKernelAttr {
    pub id: MaybeUninit<aclrtLaunchKernelAttrId>,
    pub value: aclrtLaunchKernelAttrValue,
}

/// Attributes of a launch.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct aclrtLaunchKernelCfg {
    pub attrs: *mut aclrtLaunchKernelAttr,
    pub numAttrs: usize,
}

/// Place of a pointer among the arguments of a launch. None are supported.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct aclrtPlaceHolderInfo {
    pub addrOffset: u32,
    pub dataOffset: u32,
}

pub const ACL_RT_MEM_ATTR_MODULE_ID: i32 = aclrtMallocAttrType::ACL_RT_MEM_ATTR_MODULE_ID as i32;
pub const ACL_RT_MEM_ATTR_DEVICE_ID: i32 = aclrtMallocAttrType::ACL_RT_MEM_ATTR_DEVICE_ID as i32;
pub const ACL_RT_MEM_ATTR_VA_FLAG: i32 = aclrtMallocAttrType::ACL_RT_MEM_ATTR_VA_FLAG as i32;
pub const LAZY_LOAD: i32 = aclrtBinaryLoadOptionType::ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD as i32;
pub const MAGIC: i32 = aclrtBinaryLoadOptionType::ACL_RT_BINARY_LOAD_OPT_MAGIC as i32;
pub const CPU_KERNEL_MODE: i32 = aclrtBinaryLoadOptionType::ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE as i32;
pub const TIMEOUT: i32 = aclrtLaunchKernelAttrId::ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT as i32;

/// The number in an enum field that C has written; any value is possible.
pub fn number<T>(field: MaybeUninit<T>) -> i32 {
    const { assert!(size_of::<T>() == size_of::<i32>()) };
    // SAFETY: as large as an `i32` (checked above), which any bits are; the field was read from the caller's memory.
    unsafe { field.as_ptr().cast::<i32>().read() }
}

const _: () = assert!(size_of::<aclrtMallocAttrValue>() == 8 && align_of::<aclrtMallocAttrValue>() == 4);
const _: () = assert!(size_of::<aclrtMallocAttribute>() == 12 && align_of::<aclrtMallocAttribute>() == 4);
const _: () = assert!(std::mem::offset_of!(aclrtMallocAttribute, value) == 4);
const _: () = assert!(size_of::<aclrtMallocConfig>() == 16);
const _: () = assert!(std::mem::offset_of!(aclrtMallocConfig, numAttrs) == 8);
const _: () = assert!(size_of::<aclrtBinaryLoadOption>() == 20);
const _: () = assert!(std::mem::offset_of!(aclrtBinaryLoadOption, value) == 4);
const _: () = assert!(size_of::<aclrtBinaryLoadOptions>() == 16);
const _: () = assert!(std::mem::offset_of!(aclrtBinaryLoadOptions, numOpt) == 8);
const _: () = assert!(size_of::<aclrtLaunchKernelAttr>() == 20);
const _: () = assert!(std::mem::offset_of!(aclrtLaunchKernelAttr, value) == 4);
const _: () = assert!(size_of::<aclrtLaunchKernelCfg>() == 16);
const _: () = assert!(std::mem::offset_of!(aclrtLaunchKernelCfg, numAttrs) == 8);
