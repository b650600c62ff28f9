//! Pages of the process: mapped or not, in memory or not.

use std::ffi::{c_int, c_void};

/// Bytes that have a place in memory, or none.
pub const PAGE_LEN: u64 = 4096;

unsafe extern "C" {
    /// Which pages of a range are in memory (POSIX systems; not in rustix).
    fn mincore(addr: *mut c_void, len: usize, resident: *mut u8) -> c_int;
}

/// Sets bit 0 of `resident[i]` if page `i` from `addr` on is in memory; the other bits are not defined. `false`: not all of
/// these pages are mapped, or the system can't tell.
pub fn look(addr: u64, resident: &mut [u8]) -> bool {
    let page = std::ptr::without_provenance_mut((addr - addr % PAGE_LEN) as usize);
    // SAFETY: the call reads nothing of the pages, and writes one byte for each of them: as many as `resident` has. It fails
    // if one of them is not mapped.
    unsafe { mincore(page, resident.len() * PAGE_LEN as usize, resident.as_mut_ptr()) == 0 }
}

/// Whether anything of the process is mapped at `addr`.
pub fn is_mapped(addr: u64) -> bool {
    look(addr, &mut [0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_mapped_is_found() {
        let page = vec![1_u8; 3 * PAGE_LEN as usize];
        assert!(is_mapped(page.as_ptr() as u64 + PAGE_LEN));
        assert!(!is_mapped(0) && !is_mapped(1 << 63));
    }
}
