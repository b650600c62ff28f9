//! Results of the runtime's functions.

pub const SUCCESS: i32 = 0;
pub const INVALID_PARAM: i32 = 100_000;
pub const UNINITIALIZE: i32 = 100_001;
pub const REPEAT_INITIALIZE: i32 = 100_002;
pub const INVALID_FILE: i32 = 100_003;
pub const PARSE_FILE: i32 = 100_006;
pub const KERNEL_NOT_FOUND: i32 = 100_029;
pub const INVALID_DEVICE: i32 = 107_001;
pub const CONTEXT_NULL: i32 = 107_002;
pub const API_NOT_SUPPORT: i32 = 200_001;
pub const INVALID_HANDLE: i32 = 200_005;
pub const MEMORY_ALLOCATION: i32 = 207_001;
pub const NO_NOTIFY: i32 = 207_009;
pub const INTERNAL: i32 = 500_000;
pub const RT_FAILURE: i32 = 500_003;
pub const AICPU_EXCEPTION: i32 = 507_018;
pub const SYNC_TIMEOUT: i32 = 507_046;

/// Codes of the loader on the AI CPU: the library can't be opened, the function is missing.
pub const LIBRARY_NOT_OPENED: i32 = 11_002;
pub const FUNCTION_MISSING: i32 = 11_003;
