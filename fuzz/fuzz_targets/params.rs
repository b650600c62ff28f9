//! Fuzz target of launch parameters, see `checks/params.rs`.
#![no_main]

#[path = "../checks/params.rs"]
mod params;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    params::check(bytes);
});
