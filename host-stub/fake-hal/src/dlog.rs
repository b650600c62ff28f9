//! The scheduler's log: lines on standard error.
#![allow(non_snake_case, reason = "names of the log's functions")]

use std::ffi::{CStr, c_char};

/// Only lines of this module are there.
const MODULE: i32 = 3;

/// Takes a fourth argument where the log takes any number: on Linux for AArch64 and x86-64 it lies in the same register.
#[unsafe(no_mangle)]
extern "C" fn DlogRecord(module: i32, level: i32, format: *const c_char, text: *const c_char) {
    // SAFETY: the log's contract: a format that ends with a zero byte.
    let format = unsafe { CStr::from_ptr(format) };
    if format != c"%s" {
        eprintln!("[dlog {module} {level}] a format other than %s: {format:?}");
        return;
    }
    // SAFETY: the format takes one text that ends with a zero byte.
    let text = unsafe { CStr::from_ptr(text) };
    eprintln!("[dlog {module} {level}] {}", text.to_string_lossy());
}

/// Whether lines of this level are kept: all but those for debugging.
#[unsafe(no_mangle)]
extern "C" fn CheckLogLevel(module: i32, level: i32) -> i32 {
    i32::from(module == MODULE && level > 0)
}
