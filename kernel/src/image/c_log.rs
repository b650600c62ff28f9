//! Log lines and failed assertions of kernels in C and C++: `hcomm_log_line` of `hcomm/hcomm_log.h`, and what `assert` calls.
//! What no kernel calls is not linked.

use core::ffi::c_char;
use core::slice;
use core::str;

use super::fault;

/// Bytes of the longest line, as `HCOMM_LOG_MAX` says.
const LINE_MAX: usize = 255;

/// Start of a C string, with at most `limit` bytes, as far as it is UTF-8.
///
/// # Safety
/// `text` is a string, which lives as long as the result is used, or has `limit` bytes.
unsafe fn start<'a>(text: *const c_char, limit: usize) -> &'a str {
    // SAFETY: the caller owes the bytes; no earlier one is the end.
    let len = (0..limit).find(|at| unsafe { text.add(*at).read() } == 0).unwrap_or(limit);
    // SAFETY: the bytes that were read just now.
    let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), len) };
    str::from_utf8(bytes).unwrap_or_else(|error| {
        // SAFETY: that many bytes are UTF-8, says the check.
        unsafe { str::from_utf8_unchecked(&bytes[..error.valid_up_to()]) }
    })
}

/// Logs a line: 0, or 1 for a level that is none, 2 for a null `text`. It ends before a byte that is not UTF-8.
///
/// # Safety
/// `text` is null or a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn hcomm_log_line(level: i32, text: *const c_char) -> i32 {
    if text.is_null() {
        return 2;
    }
    // SAFETY: the caller owes a string.
    let text = unsafe { start(text, LINE_MAX) };
    match level {
        1 => defmt::error!("{=str}", text),
        2 => defmt::warn!("{=str}", text),
        3 => defmt::info!("{=str}", text),
        4 => defmt::debug!("{=str}", text),
        5 => defmt::trace!("{=str}", text),
        _ => return 1,
    }
    0
}

/// What `assert` of <assert.h> calls.
///
/// # Safety
/// All three texts are strings; `function` may be null.
#[unsafe(no_mangle)]
unsafe extern "C" fn __assert_fail(
    assertion: *const c_char,
    file: *const c_char,
    line: u32,
    _function: *const c_char,
) -> ! {
    // SAFETY: the caller owes strings; a report has less room than these limits.
    let (assertion, file) = unsafe { (start(assertion, 384), start(file, 128)) };
    fault::report_assertion(assertion, file, line)
}
