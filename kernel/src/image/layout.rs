//! Addresses that `link.ld` gives.

use core::ffi::c_void;
use core::ops::Range;

// Only the addresses of these mean anything.
unsafe extern "C" {
    static __text_start: c_void;
    static __text_end: c_void;
    static __rodata_start: c_void;
    static __rodata_end: c_void;
    static __init_array_start: c_void;
    static __init_array_end: c_void;
    static __data_start: c_void;
    static __bss_end: c_void;
    static __stack_bottom: c_void;
    static __stack_top: c_void;
    static __exception_stack_bottom: c_void;
    static __exception_stack_top: c_void;
}

macro_rules! range {
    ($(#[$doc:meta])* $name:ident, $start:ident, $end:ident) => {
        $(#[$doc])*
        #[inline]
        pub fn $name() -> Range<u64> {
            (&raw const $start) as u64..(&raw const $end) as u64
        }
    };
}

range!(/// Code.
    text, __text_start, __text_end);
range!(/// Constants and the table of kernels.
    rodata, __rodata_start, __rodata_end);
range!(/// Addresses of the constructors of static objects, 8 bytes each. Part of the constants.
    constructors, __init_array_start, __init_array_end);
range!(/// Variables.
    data, __data_start, __bss_end);
range!(/// Stack of kernels and launch loop.
    stack, __stack_bottom, __stack_top);
range!(/// Stack of exceptions.
    exception_stack, __exception_stack_bottom, __exception_stack_top);
