//! Log lines of kernels in libhcomm_kernels.so: formatted here, without heap, and handed to the runner.

use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};

/// Most bytes of a line, as `HCOMM_LOG_MAX` of `hcomm/hcomm_log.h` says.
const LINE_MAX: usize = 255;
/// End of a line that was cut.
const CUT: &[u8] = b"...";

unsafe extern "C" {
    /// Of the library that the runner has: logs a line.
    fn hcomm_log_line(level: i32, text: *const c_char) -> i32;
}

/// A line that is being formatted, and a zero byte.
struct Line {
    bytes: [u8; LINE_MAX + 1],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.len == LINE_MAX {
                self.bytes[LINE_MAX - CUT.len()..LINE_MAX].copy_from_slice(CUT);
                return Err(fmt::Error);
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
        Ok(())
    }
}

/// Logs a line; `level` is the name of one.
pub fn log_line(level: &str, text: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; LINE_MAX + 1], len: 0 };
    // A line that does not fit is cut, and says so.
    let _ = line.write_fmt(text);
    let number = ["error", "warn", "info", "debug", "trace"].iter().position(|name| *name == level);
    let (Some(number), Ok(text)) = (number, CStr::from_bytes_until_nul(&line.bytes)) else { return };
    // SAFETY: a string that lives until the call returns.
    unsafe { hcomm_log_line(number as i32 + 1, text.as_ptr()) };
}
