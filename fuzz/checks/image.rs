//! Files of any bytes: the loader never panics, and an image that it accepts lies in the image's area, first instruction and
//! kernels included.

use hcomm_aicpu::spec::map::{IMAGE_PHYS, IMAGE_SIZE};
use host_stub::loader::Image;

/// What the loader made of the file: its error's name and reason, or "accepted".
pub fn check(file: &[u8]) -> String {
    match Image::parse("fuzz.elf".into(), file.to_vec()) {
        Ok(image) => {
            let mut total = 0;
            for segment in &image.segments {
                assert!(segment.bytes.len() <= file.len() && segment.bytes.len() as u64 <= segment.len);
                assert!(segment.addr >= IMAGE_PHYS && segment.len <= IMAGE_PHYS + IMAGE_SIZE - segment.addr);
                total += segment.len;
            }
            assert!(total <= IMAGE_SIZE, "{total} bytes of segments");
            let is_inside = |at: u64| image.segments.iter().any(|it| at >= it.addr && at - it.addr < it.len);
            assert!(is_inside(image.entry), "entry {:#x}", image.entry);
            for kernel in &image.kernels {
                assert!(is_inside(kernel.entry), "{kernel:?}");
                assert!(image.kernel(&kernel.name).is_ok());
            }
            "accepted".to_owned()
        }
        Err(error) => {
            let message = error.to_string();
            let (_, reason) = message.split_once("device image fuzz.elf").expect("it names the file");
            reason.trim_start_matches([' ', ':']).to_owned()
        }
    }
}
