//! Numbers of `aclError`.
#![forbid(unsafe_code)]

/// `aclError` of functions that can't fail otherwise.
pub const ACL_SUCCESS: i32 = 0;
/// An argument is wrong.
pub const ACL_ERROR_INVALID_PARAM: i32 = 100_000;
/// `aclFinalize` without `aclInit`.
pub const ACL_ERROR_UNINITIALIZE: i32 = 100_001;
/// `aclInit` twice.
pub const ACL_ERROR_REPEAT_INITIALIZE: i32 = 100_002;
/// The file is not there or can't be read.
pub const ACL_ERROR_INVALID_FILE: i32 = 100_003;
/// The file is not JSON.
pub const ACL_ERROR_PARSE_FILE: i32 = 100_006;
/// The file lacks a key.
pub const ACL_ERROR_FILE_MISSING_ATTR: i32 = 100_007;
/// The value of a key is wrong.
pub const ACL_ERROR_FILE_ATTR_INVALID: i32 = 100_008;
/// No operator of this name.
pub const ACL_ERROR_OP_NOT_FOUND: i32 = 100_024;
/// The library with the kernel can't be loaded.
pub const ACL_ERROR_OP_LOAD_FAILED: i32 = 100_025;
/// The library has no such function.
pub const ACL_ERROR_KERNEL_NOT_FOUND: i32 = 100_029;
/// There is no device with this number.
pub const ACL_ERROR_RT_INVALID_DEVICEID: i32 = 107_001;
/// The calling thread has no device.
pub const ACL_ERROR_RT_CONTEXT_NULL: i32 = 107_002;
/// Known, but not supported.
pub const ACL_ERROR_API_NOT_SUPPORT: i32 = 200_001;
/// No live object has this handle.
pub const ACL_ERROR_INVALID_RESOURCE_HANDLE: i32 = 200_005;
/// No device memory.
pub const ACL_ERROR_RT_MEMORY_ALLOCATION: i32 = 207_001;
/// No notify is free.
pub const ACL_ERROR_RT_NO_NOTIFY_RESOURCE: i32 = 207_009;
/// A bug of this library.
pub const ACL_ERROR_INTERNAL_ERROR: i32 = 500_000;
/// The simulated device could not be opened.
pub const ACL_ERROR_RT_FAILURE: i32 = 500_003;
/// The library with the kernel is not there.
pub const ACL_ERROR_RT_AICPU_INFO_LOAD_ERROR: i32 = 507_902;
/// The stream was not done in time.
pub const ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: i32 = 507_046;
