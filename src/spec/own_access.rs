//! Accesses of HBM by the program's own loads and stores, as the plugin of the emulator sees them: for the check `core` of the
//! host. The program itself does not know of it.
//!
//! Each virtual processor has a ring of its own. The plugin writes accesses and `head`, the host writes `tail`. A full ring stops
//! the processor until the host has read: no access is dropped. Neighbouring accesses are one: the last [`OPEN`] of a ring may
//! still grow, at both ends, also after the host has read them; so the host looks at those that it read last once more. An
//! access grows only if no later one of the other kind touches the new bytes, and the processor has made
//! no call and got no launch in between.

/// Distance between the rings of two processors, in bytes.
pub const OWN_ACCESS_STRIDE: u64 = 0x8_0000;
/// Accesses that a ring has room for.
pub const OWN_ACCESSES: usize = 8190;
/// The last accesses of a ring that may still grow. The plugin leaves as many places free, so that the host can look at them again.
pub const OPEN: usize = 8;
/// Version of this format.
pub const OWN_ACCESS_VERSION: u32 = 2;
/// Bytes of a unit behind the end of an access ([`Extent`]).
pub const UNIT: u64 = 4;
/// Units behind the end that can be told.
pub const UNITS: u32 = 24;

/// [`OwnAccess::flags`]: it writes. Without this bit it reads.
pub const WRITES: u64 = 1;

/// How far an access reaches, in one word that changes at once: bytes from [`OwnAccess::origin`] to its end, and which of the
/// [`UNITS`] units of [`UNIT`] bytes behind the end belong to it as well. Loops access their bytes not always in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes from the origin to the end.
    pub len: u64,
    /// Bit *n*: unit *n* behind the end.
    pub units: u32,
}

impl Extent {
    const LEN_BITS: u32 = 40;

    /// As a word of the ring.
    pub const fn to_word(self) -> u64 {
        self.len | (self.units as u64) << Self::LEN_BITS
    }

    /// From a word of the ring.
    pub const fn from_word(word: u64) -> Self {
        Self { len: word & ((1 << Self::LEN_BITS) - 1), units: (word >> Self::LEN_BITS) as u32 }
    }

    /// Bytes from the origin to the end of the last unit.
    pub const fn reach(self) -> u64 {
        self.len + UNIT * (u32::BITS - self.units.leading_zeros()) as u64
    }

    /// Adds the units of `bits`, and moves the end behind those that lie at it now.
    pub const fn with_units(self, bits: u32) -> Self {
        let units = self.units | bits;
        let at_end = units.trailing_ones();
        Self { len: self.len + UNIT * at_end as u64, units: units.unbounded_shr(at_end) }
    }
}
const _: () = assert!(Extent::LEN_BITS + UNITS == u64::BITS);

/// Neighbouring accesses of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct OwnAccess {
    /// First byte. May become smaller.
    pub start: u64,
    /// First byte of the first of these accesses.
    pub origin: u64,
    /// [`Extent`]. May grow.
    pub extent: u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_moves_behind_the_units_that_lie_at_it() {
        let extent = Extent { len: 16, units: 0 };
        let ahead = extent.with_units(0b1100);
        assert_eq!((ahead, ahead.reach()), (Extent { len: 16, units: 0b1100 }, 32));
        assert_eq!(ahead.with_units(0b1), Extent { len: 20, units: 0b110 });
        assert_eq!(ahead.with_units(0b11), Extent { len: 32, units: 0 });
        let far = Extent { len: (1 << 40) - 4, units: 1 << (UNITS - 1) };
        assert_eq!(Extent::from_word(far.to_word()), far);
        assert_eq!(Extent { len: 0, units: u32::MAX }.with_units(1).units, 0);
    }
}
