//! Files of any bytes: the loader never panics, and an image that it accepts lies in the image's area, kernels included.
#![no_main]

use hcomm_aicpu::spec::map::{IMAGE_PHYS, IMAGE_SIZE};
use host_stub::loader::Image;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: Vec<u8>| {
    let len = file.len();
    match Image::parse("fuzz.elf".into(), file) {
        Ok(image) => {
            for segment in &image.segments {
                assert!(segment.bytes.len() <= len && segment.bytes.len() as u64 <= segment.len);
                assert!(segment.addr >= IMAGE_PHYS && segment.len <= IMAGE_PHYS + IMAGE_SIZE - segment.addr);
            }
            for kernel in &image.kernels {
                let inside = |addr: u64, len: u64| kernel.entry >= addr && kernel.entry - addr < len;
                assert!(image.segments.iter().any(|segment| inside(segment.addr, segment.len)), "{kernel:?}");
                assert!(image.kernel(&kernel.name).is_ok());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
