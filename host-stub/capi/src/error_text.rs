//! What the numbers of `HcclResult` mean, as `HcclGetErrorString` gives it.
#![forbid(unsafe_code)]

use std::ffi::CStr;

/// Number, and its name with a meaning.
#[rustfmt::skip]
const TEXTS: [(i32, &CStr); 27] = [
    (0, c"HCCL_SUCCESS: done"),
    (1, c"HCCL_E_PARA: an argument is wrong"),
    (2, c"HCCL_E_PTR: a pointer is null"),
    (3, c"HCCL_E_MEMORY: memory"),
    (4, c"HCCL_E_INTERNAL: internal error"),
    (5, c"HCCL_E_NOT_SUPPORT: not supported"),
    (6, c"HCCL_E_NOT_FOUND: not found"),
    (7, c"HCCL_E_UNAVAIL: all that there are of it are in use"),
    (8, c"HCCL_E_SYSCALL: a call of the operating system failed"),
    (9, c"HCCL_E_TIMEOUT: not done in time"),
    (10, c"HCCL_E_OPEN_FILE_FAILURE: a file can not be opened"),
    (11, c"HCCL_E_TCP_CONNECT: no connection over TCP"),
    (12, c"HCCL_E_ROCE_CONNECT: no connection over RoCE"),
    (13, c"HCCL_E_TCP_TRANSFER: transfer over TCP failed"),
    (14, c"HCCL_E_ROCE_TRANSFER: transfer over RoCE failed"),
    (15, c"HCCL_E_RUNTIME: the runtime failed"),
    (16, c"HCCL_E_DRV: the driver refused"),
    (17, c"HCCL_E_PROFILING: profiling failed"),
    (18, c"HCCL_E_CCE: the compute engine failed"),
    (19, c"HCCL_E_NETWORK: the network failed"),
    (20, c"HCCL_E_AGAIN: in use: try again later"),
    (21, c"HCCL_E_REMOTE: a peer failed"),
    (22, c"HCCL_E_SUSPENDING: the communicator is being suspended"),
    (23, c"HCCL_E_OPRETRY_FAIL: the operation failed again when it was retried"),
    (24, c"HCCL_E_OOM: out of memory"),
    (1041, c"HCCL_E_IN_STATUS: the state does not allow it"),
    (1042, c"HCCL_E_RESERVED: not used"),
];

/// Name and meaning of a result.
pub fn of(code: i32) -> &'static CStr {
    TEXTS.iter().find(|(number, _)| *number == code).map_or(c"not a number of HcclResult", |(_, text)| text)
}
