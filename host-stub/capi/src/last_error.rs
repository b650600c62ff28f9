//! The last error of each thread, as `aclrtGetLastError` gives it.
#![forbid(unsafe_code)]

use std::cell::Cell;

use super::codes::{ACL_ERROR_INVALID_PARAM, ACL_SUCCESS};

/// The one level that there is: the calling thread's errors.
const ACL_RT_THREAD_LEVEL: i32 = 0;

thread_local! {
    static LAST: Cell<i32> = const { Cell::new(ACL_SUCCESS) };
}

/// Keeps the answer of a function `acl*` of the calling thread, if it is an error.
pub fn note(code: i32) {
    if code != ACL_SUCCESS {
        LAST.set(code);
    }
}

/// The last error of the calling thread, 0 if there was none; a level that there is not is an error itself.
pub fn peek(level: i32) -> i32 {
    if level == ACL_RT_THREAD_LEVEL { LAST.get() } else { ACL_ERROR_INVALID_PARAM }
}

/// As [`peek`], and forgets it.
pub fn take(level: i32) -> i32 {
    if level == ACL_RT_THREAD_LEVEL { LAST.replace(ACL_SUCCESS) } else { ACL_ERROR_INVALID_PARAM }
}
