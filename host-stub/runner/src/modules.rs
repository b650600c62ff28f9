//! Which code lies where: a table in the low part, from which the host makes function and line of an address.

use std::ffi::{CStr, c_int, c_void};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use hcomm_aicpu::spec::runner::{MODULES_PHYS, MODULES_SIZE, ModuleTable};

use crate::memory;

/// Adds what has been loaded since the last call. The caller holds the lock of the libraries.
pub fn update() {
    let mut lines = String::new();
    // SAFETY: `add` gets the pointer to `lines`, which lives for the call, as its last argument.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut lines).cast()) };
    let table = memory::low::<ModuleTable>(MODULES_PHYS);
    let room = MODULES_SIZE as usize - size_of::<ModuleTable>();
    let text = memory::low::<u8>(MODULES_PHYS + size_of::<ModuleTable>() as u64);
    // What does not fit is left out: addresses there have no name.
    let len = lines.as_bytes()[..lines.len().min(room)].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // SAFETY: an aligned word of the table, which stays mapped; this process is its only writer, under the lock.
    let count = unsafe { AtomicU64::from_ptr(&raw mut (*table).len) };
    let known = count.load(Ordering::Relaxed) as usize;
    // No library is unloaded and the linker lists them in the order of loading, so what was there before stays as it is; it is written
    // again with the same bytes.
    if len < known {
        return;
    }
    // SAFETY: `len` bytes fit behind the head of the table (checked).
    unsafe { lines.as_ptr().copy_to_nonoverlapping(text, len) };
    // Pairs with the acquire load of the host.
    count.store(len as u64, Ordering::Release);
}

/// Adds the lines of one library.
unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _size: libc::size_t, lines: *mut c_void) -> c_int {
    // SAFETY: the C library hands over a description that it holds during the call, and `update` its text.
    let (info, lines) = unsafe { (&*info, &mut *lines.cast::<String>()) };
    // SAFETY: a text of the C library, or null.
    let path = unsafe { info.dlpi_name.as_ref().map(|path| CStr::from_ptr(path)) };
    let path = path.map(CStr::to_string_lossy).filter(|path| !path.is_empty()).unwrap_or("hcomm-runner".into());
    for index in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: the description has that many program headers.
        let header = unsafe { &*info.dlpi_phdr.add(index) };
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0 {
            let start = info.dlpi_addr + header.p_vaddr;
            // Writing to a string can't fail.
            let _ = writeln!(lines, "{:x} {start:x} {:x} {path}", info.dlpi_addr, start + header.p_memsz);
        }
    }
    0
}
