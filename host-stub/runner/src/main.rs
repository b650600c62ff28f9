//! The runner's program: all that it does is in `libccl_kernel.so`, so that kernels and runner have the same device.
#![no_main]

use std::ffi::{c_char, c_int};

#[link(name = "ccl_kernel", kind = "dylib")]
unsafe extern "C" {
    /// Serves the device whose memory is the file with the number `argv[1]`.
    fn hcomm_runner_main(argc: c_int, argv: *const *const c_char) -> c_int;
}

/// What the C library calls.
#[unsafe(no_mangle)]
extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: the C library's own arguments are passed on.
    unsafe { hcomm_runner_main(argc, argv) }
}
