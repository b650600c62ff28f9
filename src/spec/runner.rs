//! What host process and Linux runner share besides [`mailbox`](super::mailbox): the runner loads kernels from shared libraries
//! into a process of its own and serves the mailboxes as the image does.
//!
//! The runner maps the first [`LOW_MAPPED`] bytes of the shared file where it likes: the addresses of [`map`](super::map) are
//! names of places in the file. HBM it maps at its device address, in steps of [`HBM_STEP`] bytes that the host asks for.

use super::mailbox::MAX_CORES;
use super::map::{HBM_MAX, IMAGE_PHYS};

/// Bytes of the low part that the runner maps: up to the register blocks.
pub const LOW_MAPPED: u64 = 32 << 20;

/// Names of kernels ([`KernelName`]), written by the host. There is no image where they lie.
pub const KERNELS_PHYS: u64 = IMAGE_PHYS;
/// Bytes for them.
pub const KERNELS_SIZE: u64 = 1 << 20;
/// Texts that refusals name, written by the runner.
pub const NAMES_PHYS: u64 = KERNELS_PHYS + KERNELS_SIZE;
/// Bytes for them.
pub const NAMES_SIZE: u64 = 512 << 10;
/// [`ModuleTable`].
pub const MODULES_PHYS: u64 = NAMES_PHYS + NAMES_SIZE;
/// Bytes of it.
pub const MODULES_SIZE: u64 = 512 << 10;

/// Bytes of HBM that are mapped together.
pub const HBM_STEP: u64 = 64 << 20;
/// 64-bit words of the map of HBM.
pub const HBM_STEP_WORDS: usize = (HBM_MAX / HBM_STEP / 64) as usize;
/// Map of HBM, written by the host before a launch: bit *n* of word *n / 64* asks for step *n*. A bit that is set stays set.
pub const HBM_STEPS_PHYS: u64 = 0x4100_3000;

/// Number of the ring of refusals and of the fault record that threads without a core share: kernels make such threads.
pub const NO_CORE: u64 = MAX_CORES as u64;

/// First byte of a line of the runner's output that is a line of the log: `LEVEL CORE MICROSECONDS TEXT` follow it, with levels
/// from 1, an error, to 5.
pub const LOG_MARK: u8 = 0x1e;
/// Most bytes of the text of such a line. With what comes before it, a pipe takes it whole.
pub const LOG_LINE_MAX: usize = 255;

/// What tells a file from another one that has its path later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct FileId {
    /// Device.
    pub dev: u64,
    /// Number of the file on its device.
    pub ino: u64,
    /// Bytes.
    pub size: u64,
    /// Time of the last change, seconds.
    pub mtime_s: i64,
    /// And nanoseconds.
    pub mtime_ns: i64,
}

/// A kernel that can be launched: `entry` of a [`HostMailbox`](super::mailbox::HostMailbox) is the address of one. Behind it lie
/// the path of the library and the name of the function, without zero bytes. The next one starts at a multiple of 64.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct KernelName {
    /// The library, as the host has read it.
    pub file: FileId,
    /// Bytes of its path.
    pub path_len: u32,
    /// Bytes of the name of the function.
    pub name_len: u32,
}
const _: () = assert!(size_of::<KernelName>() == 64);

/// Head of the table of loaded libraries: one line of text for each part of a library that holds code, `BASE START END PATH`
/// with hexadecimal numbers, ended by a line feed. Written by the runner alone. Written last: `len`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct ModuleTable {
    /// Bytes of text behind this head.
    pub len: u64,
}
