//! Functions of the C library on memory and strings, for kernels in C and C++. `memcpy`, `memmove`, `memset`, `memcmp` and
//! `strlen` are those of Rust's `compiler_builtins`. What needs a heap, a process or a locale is not here.
//!
//! Each symbol is weak: a kernel that brings a function of its own gets that one. What no kernel calls is not linked.
//! Source: ISO C11 §7.24; POSIX.1-2017 for `stpcpy` and `strnlen`.

use core::arch::global_asm;
use core::ptr;

/// Makes C symbols that jump to functions of this file. Rust has no weak symbols of its own.
macro_rules! weak {
    ($($symbol:literal = $function:path),+ $(,)?) => {
        $(global_asm!(
            concat!(".section .text.", $symbol, ", \"ax\", %progbits"),
            concat!(".weak ", $symbol),
            concat!(".type ", $symbol, ", %function"),
            concat!($symbol, ":"),
            "b {function}",
            concat!(".size ", $symbol, ", . - ", $symbol),
            ".text",
            function = sym $function,
        );)+
    };
}

weak! {
    "memchr" = memchr,
    "stpcpy" = stpcpy,
    "strcat" = strcat,
    "strchr" = strchr,
    "strcmp" = strcmp,
    "strcpy" = strcpy,
    "strcspn" = strcspn,
    "strncat" = strncat,
    "strncmp" = strncmp,
    "strncpy" = strncpy,
    "strnlen" = strnlen,
    "strpbrk" = strpbrk,
    "strrchr" = strrchr,
    "strspn" = strspn,
    "strstr" = strstr,
    "__cxa_pure_virtual" = pure_virtual,
}

/// Byte `at` of a string.
///
/// # Safety
/// The string has that byte: its end, a zero byte, is not before it.
unsafe fn byte(s: *const u8, at: usize) -> u8 {
    // SAFETY: the caller owes it.
    unsafe { s.add(at).read() }
}

/// Bytes of a string before its end, at most `limit`.
///
/// # Safety
/// `s` is a string, or has `limit` bytes.
unsafe extern "C" fn strnlen(s: *const u8, limit: usize) -> usize {
    // SAFETY: no earlier byte is the end.
    (0..limit).find(|at| unsafe { byte(s, *at) } == 0).unwrap_or(limit)
}

/// Bytes of a string before its end.
///
/// # Safety
/// `s` is a string.
unsafe fn length(s: *const u8) -> usize {
    // SAFETY: the caller owes a string.
    unsafe { strnlen(s, usize::MAX) }
}

/// # Safety
/// `s` has `len` bytes, or the byte before.
unsafe extern "C" fn memchr(s: *const u8, wanted: i32, len: usize) -> *const u8 {
    // SAFETY: below `len`, and no earlier byte is the wanted one.
    let found = (0..len).find(|at| unsafe { byte(s, *at) } == wanted as u8);
    found.map_or(ptr::null(), |at| s.wrapping_add(at))
}

/// # Safety
/// Both are strings, or have `limit` bytes.
unsafe extern "C" fn strncmp(a: *const u8, b: *const u8, limit: usize) -> i32 {
    for at in 0..limit {
        // SAFETY: the bytes before were equal and not the end.
        let (a, b) = unsafe { (byte(a, at), byte(b, at)) };
        if a != b || a == 0 {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}

/// # Safety
/// Both are strings.
unsafe extern "C" fn strcmp(a: *const u8, b: *const u8) -> i32 {
    // SAFETY: the caller owes strings.
    unsafe { strncmp(a, b, usize::MAX) }
}

/// # Safety
/// `src` is a string, and `dst` has room for it.
unsafe extern "C" fn stpcpy(dst: *mut u8, src: *const u8) -> *mut u8 {
    // SAFETY: the caller owes a string, room, and no overlap.
    unsafe {
        let len = length(src);
        ptr::copy_nonoverlapping(src, dst, len + 1);
        dst.add(len)
    }
}

/// # Safety
/// As [`stpcpy`].
unsafe extern "C" fn strcpy(dst: *mut u8, src: *const u8) -> *mut u8 {
    // SAFETY: the caller owes what `stpcpy` wants.
    unsafe { stpcpy(dst, src) };
    dst
}

/// # Safety
/// `src` is a string or has `len` bytes, and `dst` has room for `len` bytes.
unsafe extern "C" fn strncpy(dst: *mut u8, src: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller owes the bytes, the room, and no overlap; `copied <= len`.
    unsafe {
        let copied = strnlen(src, len);
        ptr::copy_nonoverlapping(src, dst, copied);
        ptr::write_bytes(dst.add(copied), 0, len - copied);
    }
    dst
}

/// # Safety
/// `dst` is a string with room for at most `limit` bytes of `src` and a zero byte behind it.
unsafe extern "C" fn strncat(dst: *mut u8, src: *const u8, limit: usize) -> *mut u8 {
    // SAFETY: the caller owes strings, room, and no overlap.
    unsafe {
        let (end, len) = (dst.add(length(dst)), strnlen(src, limit));
        ptr::copy_nonoverlapping(src, end, len);
        end.add(len).write(0);
    }
    dst
}

/// # Safety
/// As [`strncat`], with room for all of `src`.
unsafe extern "C" fn strcat(dst: *mut u8, src: *const u8) -> *mut u8 {
    // SAFETY: the caller owes room for the whole string.
    unsafe { strncat(dst, src, usize::MAX) }
}

/// # Safety
/// `s` is a string. Its end can be looked for, too.
unsafe extern "C" fn strchr(s: *const u8, wanted: i32) -> *const u8 {
    // SAFETY: a string has one byte more than its length.
    unsafe { memchr(s, wanted, length(s) + 1) }
}

/// # Safety
/// As [`strchr`].
unsafe extern "C" fn strrchr(s: *const u8, wanted: i32) -> *const u8 {
    // SAFETY: the caller owes a string; the range is that of its bytes and its end.
    let found = unsafe { (0..=length(s)).rev().find(|at| byte(s, *at) == wanted as u8) };
    found.map_or(ptr::null(), |at| s.wrapping_add(at))
}

/// Bytes at the start of `s` that are in `set`, or are not.
///
/// # Safety
/// Both are strings.
unsafe fn span(s: *const u8, set: *const u8, are_in: bool) -> usize {
    // SAFETY: the caller owes strings; the range is that of the bytes of `s`.
    unsafe {
        let (len, set_len) = (length(s), length(set));
        let is_in = |at: usize| !memchr(set, i32::from(byte(s, at)), set_len).is_null();
        (0..len).find(|at| is_in(*at) != are_in).unwrap_or(len)
    }
}

/// # Safety
/// Both are strings.
unsafe extern "C" fn strspn(s: *const u8, set: *const u8) -> usize {
    // SAFETY: the caller owes strings.
    unsafe { span(s, set, true) }
}

/// # Safety
/// Both are strings.
unsafe extern "C" fn strcspn(s: *const u8, set: *const u8) -> usize {
    // SAFETY: the caller owes strings.
    unsafe { span(s, set, false) }
}

/// # Safety
/// Both are strings.
unsafe extern "C" fn strpbrk(s: *const u8, set: *const u8) -> *const u8 {
    // SAFETY: the caller owes strings; a span ends inside its string or at its end.
    unsafe {
        let at = span(s, set, false);
        if byte(s, at) == 0 { ptr::null() } else { s.add(at) }
    }
}

/// # Safety
/// Both are strings.
unsafe extern "C" fn strstr(s: *const u8, wanted: *const u8) -> *const u8 {
    // SAFETY: the caller owes strings; no comparison begins behind the last place where `wanted` fits.
    unsafe {
        let (len, wanted_len) = (length(s), length(wanted));
        let Some(last) = len.checked_sub(wanted_len) else { return ptr::null() };
        let found = (0..=last).find(|at| strncmp(s.add(*at), wanted, wanted_len) == 0);
        found.map_or(ptr::null(), |at| s.add(at))
    }
}

/// What a C++ class has in place of a pure virtual function.
extern "C" fn pure_virtual() -> ! {
    panic!("a pure virtual function was called: an object was used before or after its lifetime")
}
