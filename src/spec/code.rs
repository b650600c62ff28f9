//! Result codes of the C API (`HcclResult`, as `int32_t`). Source: device-side interface, enum `HcclResult`.

/// Done.
pub const HCCL_SUCCESS: i32 = 0;
/// A value is out of range.
pub const HCCL_E_PARA: i32 = 1;
/// A pointer or handle is null.
pub const HCCL_E_PTR: i32 = 2;
/// Out of memory, or memory is in the wrong state.
pub const HCCL_E_MEMORY: i32 = 3;
/// An invariant of the callee is broken.
pub const HCCL_E_INTERNAL: i32 = 4;
/// Known, but not supported by this product, engine or build.
pub const HCCL_E_NOT_SUPPORT: i32 = 5;
/// A handle or name does not exist (any more).
pub const HCCL_E_NOT_FOUND: i32 = 6;
/// A resource has run out.
pub const HCCL_E_UNAVAIL: i32 = 7;
/// A system call failed.
pub const HCCL_E_SYSCALL: i32 = 8;
/// A wait came to its limit.
pub const HCCL_E_TIMEOUT: i32 = 9;
/// A file could not be opened.
pub const HCCL_E_OPEN_FILE_FAILURE: i32 = 10;
/// The runtime reported an error.
pub const HCCL_E_RUNTIME: i32 = 15;
/// The driver (queue, doorbell) reported an error.
pub const HCCL_E_DRV: i32 = 16;
/// Try again later.
pub const HCCL_E_AGAIN: i32 = 20;
/// The communicator is suspended.
pub const HCCL_E_SUSPENDING: i32 = 22;

/// Name of a result code as the interface spells it, `"unknown"` for numbers that it does not define.
pub const fn name(code: i32) -> &'static str {
    match code {
        HCCL_SUCCESS => "HCCL_SUCCESS",
        HCCL_E_PARA => "HCCL_E_PARA",
        HCCL_E_PTR => "HCCL_E_PTR",
        HCCL_E_MEMORY => "HCCL_E_MEMORY",
        HCCL_E_INTERNAL => "HCCL_E_INTERNAL",
        HCCL_E_NOT_SUPPORT => "HCCL_E_NOT_SUPPORT",
        HCCL_E_NOT_FOUND => "HCCL_E_NOT_FOUND",
        HCCL_E_UNAVAIL => "HCCL_E_UNAVAIL",
        HCCL_E_SYSCALL => "HCCL_E_SYSCALL",
        HCCL_E_TIMEOUT => "HCCL_E_TIMEOUT",
        HCCL_E_OPEN_FILE_FAILURE => "HCCL_E_OPEN_FILE_FAILURE",
        HCCL_E_RUNTIME => "HCCL_E_RUNTIME",
        HCCL_E_DRV => "HCCL_E_DRV",
        HCCL_E_AGAIN => "HCCL_E_AGAIN",
        HCCL_E_SUSPENDING => "HCCL_E_SUSPENDING",
        _ => "unknown",
    }
}
