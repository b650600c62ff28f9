//! Accesses of HBM by the program's own loads and stores, as the plugin of the emulator sees them: for the check `core` of the
//! host. The program itself does not know of it.
//!
//! Each virtual processor has a ring of its own. The plugin writes accesses and `head`, the host writes `tail`. A full ring stops
//! the processor until the host has read: no access is dropped. Neighbouring accesses are one: the last [`OPEN`] of a ring may
//! still grow, by a new `end`, also after the host has read them; so the host looks at those that it read last once more. An
//! access grows only if no later one of the other kind touches the new bytes, and the processor has made
//! no call and got no launch in between.

/// Distance between the rings of two processors, in bytes.
pub const OWN_ACCESS_STRIDE: u64 = 0x8_0000;
/// Accesses that a ring has room for.
pub const OWN_ACCESSES: usize = 8190;
/// The last accesses of a ring that may still grow. The plugin leaves as many places free, so that the host can look at them again.
pub const OPEN: usize = 8;
/// Version of this format.
pub const OWN_ACCESS_VERSION: u32 = 1;

/// [`OwnAccess::flags`]: it writes. Without this bit it reads.
pub const WRITES: u64 = 1;

/// Neighbouring accesses of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct OwnAccess {
    /// First byte.
    pub start: u64,
    /// One past the last byte. May grow.
    pub end: u64,
    /// Address of the instruction that made the first of these accesses.
    pub pc: u64,
    /// Address of the call instruction that the processor has executed last before it; 0 if there was none.
    pub caller: u64,
    /// Records of calls ([`record`](super::record)) that the processor had written by then: the `seq` of the last one.
    pub calls: u64,
    /// [`WRITES`] or 0.
    pub flags: u64,
}
const _: () = assert!(size_of::<OwnAccess>() == 64);

/// Ring of one processor.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct OwnAccessRing {
    /// Written by the plugin, last: accesses ever put in. Access *n*, from 0, lies in slot `n % OWN_ACCESSES`.
    pub head: u64,
    /// Written by the plugin when it is loaded: [`OWN_ACCESS_VERSION`].
    pub version: u64,
    /// Blocks of code that the plugin has looked at. In the ring of processor 0 alone.
    pub blocks: u64,
    /// Not 0 once the program has an instruction whose accesses the plugin can't see (`dc zva`). In the ring of processor 0 alone.
    pub has_unseen: u64,
    _pad: [u64; 4],
    /// Written by the host, last: accesses ever taken out.
    pub tail: u64,
    _pad2: [u64; 7],
    /// The accesses.
    pub slots: [OwnAccess; OWN_ACCESSES],
}
const _: () = assert!(size_of::<OwnAccessRing>() as u64 == OWN_ACCESS_STRIDE);
