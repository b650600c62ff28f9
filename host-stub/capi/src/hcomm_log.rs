//! `hcomm_log_line` of `include/hcomm/hcomm_log.h`, which formats the lines: natively they are lines of the process's log.

use std::ffi::{CStr, c_char};

use log::Level;

use super::call::{self, hccl};
use super::error::CallError;
use host_stub::backend::log::TARGET;
use host_stub::backend::native::in_kernel;

/// The level with this number.
fn level_of(number: i32) -> Option<Level> {
    usize::try_from(number).ok().and_then(|number| Level::iter().nth(number.checked_sub(1)?))
}

/// Logs a line of a kernel, or of the host: 0, or 2 for a null `text`, 1 for a level that is none.
///
/// # Safety
/// `text` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hcomm_log_line(level: i32, text: *const c_char) -> i32 {
    let log = || {
        call::not_null([(text.cast(), "text")])?;
        let must = "must be from 1, an error, to 5, trace";
        let level = level_of(level).ok_or(CallError::OutOfRange { what: "level", value: level.into(), must })?;
        // SAFETY: the caller owes a string.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        log::log!(target: TARGET, level, "{text}");
        Ok(())
    };
    if in_kernel() {
        log().map_or_else(|error: CallError| error.hccl_code(), |()| 0)
    } else {
        hccl("hcomm_log_line", log)
    }
}
