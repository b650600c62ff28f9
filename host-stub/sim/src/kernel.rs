//! Where a kernel is.

use std::ffi::c_void;

/// A kernel of this process: takes the address of its parameters and returns its code.
pub type KernelFn = extern "C-unwind" fn(args: *const c_void) -> u32;

/// Where a kernel is.
#[derive(Clone, Copy, Debug)]
pub enum KernelEntry {
    /// A function of this process.
    Native(KernelFn),
    /// An address of the image.
    Image(u64),
    /// A function of a library of the Linux CPU: place of its name in the low part of memory.
    Library(u64),
}
