//! Memory of the host that C code may use.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::ptr::NonNull;

use super::error::CallError;

/// Alignment of host memory.
const HOST_ALIGN: usize = 64;

/// Zeroed memory of the host that C code may read and write, freed on drop.
pub struct HostBlock {
    ptr: NonNull<u8>,
    layout: Layout,
}

// SAFETY: plain memory that belongs to no thread.
unsafe impl Send for HostBlock {}

impl HostBlock {
    /// # Errors
    /// A size of 0, or no room.
    pub fn new(size: usize) -> Result<Self, CallError> {
        let wrong = || CallError::OutOfRange { what: "size", value: size as i128, must: "must be from 1 to 2^63 - 64" };
        let layout = Layout::from_size_align(size, HOST_ALIGN).ok().filter(|_| size != 0).ok_or_else(wrong)?;
        // SAFETY: the layout has at least one byte.
        let ptr = unsafe { alloc_zeroed(layout) };
        let no_room = || CallError::Unavailable(format!("no host memory for {size} bytes"));
        Ok(Self { ptr: NonNull::new(ptr).ok_or_else(no_room)?, layout })
    }

    /// First byte.
    pub fn ptr(&self) -> *mut c_void {
        self.ptr.as_ptr().cast()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.layout.size()
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Panics
    /// They do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset <= self.len() && bytes.len() <= self.len() - offset, "{offset} + {} bytes", bytes.len());
        // SAFETY: inside the block, as was checked; the bytes of a C caller may even be in it.
        unsafe { std::ptr::copy(bytes.as_ptr(), self.ptr.as_ptr().add(offset), bytes.len()) };
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed here only.
        unsafe { dealloc(self.ptr.as_ptr(), self.layout) };
    }
}
