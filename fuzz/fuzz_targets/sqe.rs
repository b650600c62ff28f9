//! Fuzz target of the decoder of descriptors, see `checks/sqe.rs`.
#![no_main]

#[path = "../checks/sqe.rs"]
mod sqe;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    sqe::check(bytes);
});
