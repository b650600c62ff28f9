//! Fuzz target of the loader, see `checks/image.rs`.
#![no_main]

#[path = "../checks/image.rs"]
mod image;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    image::check(bytes);
});
