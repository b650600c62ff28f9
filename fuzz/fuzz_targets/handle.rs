//! Fuzz target of thread handles, see `checks/handle.rs`.
#![no_main]

#[path = "../checks/handle.rs"]
mod handle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    handle::check(bytes);
});
