//! Log lines of kernels in C and C++, for the host: lines of the runner's output with a mark before them.
//!
//! A line is written at once and is shorter than what a pipe takes whole, so lines of several threads do not mix.

use std::ffi::{CStr, c_char};
use std::io::{Cursor, Write};

use hcomm_aicpu::port::Platform;
use hcomm_aicpu::spec::runner::{LOG_LINE_MAX, LOG_MARK};

use crate::core;
use crate::platform::LINUX;

/// Room for a line: its text, and the numbers before it.
const ROOM: usize = LOG_LINE_MAX + 64;

/// Logs a line: 0, or 1 for a level that is none, 2 for a null `text`. Declared in `hcomm/hcomm_log.h`.
///
/// # Safety
/// `text` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hcomm_log_line(level: i32, text: *const c_char) -> i32 {
    if text.is_null() {
        return 2;
    }
    if !(1..=5).contains(&level) {
        return 1;
    }
    // SAFETY: the caller owes a string.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    let mut line = Cursor::new([0_u8; ROOM]);
    // There is room for the numbers, for the longest text, and for the end of the line.
    let _ = write!(line, "{}{level} {} {} ", char::from(LOG_MARK), core::of_this_thread(), LINUX.now_us());
    for byte in text.iter().take(LOG_LINE_MAX) {
        let _ = line.write_all(&[if *byte == b'\n' { b' ' } else { *byte }]);
    }
    let _ = line.write_all(b"\n");
    let len = line.position() as usize;
    // SAFETY: the bytes are this function's. A line that can't be written is dropped.
    unsafe { libc::write(libc::STDERR_FILENO, line.get_ref().as_ptr().cast(), len) };
    0
}
