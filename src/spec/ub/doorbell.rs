//! The descriptor in a thread's queue that starts the entries of a channel, up to a producer index.

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

use crate::spec::stars950::{CREDIT_DEFAULT, Credit, SqeHeader, SqeType};
use crate::spec::{SQE_SIZE, Sqe};

/// Word 2.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct ModeWord {
    /// The descriptor rings; otherwise it carries an entry itself.
    is_doorbell: bool,
    /// How many jetties it rings for: 1 or 2.
    #[bits(2)]
    doorbells: u8,
    #[bits(29)]
    reserved: u32,
}

/// Word 4.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct JettyWord {
    jetty: u16,
    #[bits(9)]
    reserved: u16,
    #[bits(7)]
    function: u8,
}

/// Word 5.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct IndexWord {
    producer_index: u16,
    #[bits(15)]
    reserved: u16,
    #[bits(1)]
    die: u8,
}

/// A doorbell descriptor as the ring holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UbDoorbellSqe {
    header: SqeHeader,
    mode: ModeWord,
    credit: Credit,
    jetty: JettyWord,
    index: IndexWord,
    /// A second jetty: not used.
    second: [u32; 2],
    reserved: [u32; 8],
}
const _: () = assert!(size_of::<UbDoorbellSqe>() == SQE_SIZE);
const _: () = assert!(core::mem::offset_of!(UbDoorbellSqe, jetty) == 16);
const _: () = assert!(core::mem::offset_of!(UbDoorbellSqe, second) == 24);

/// The sending end of a channel in the UB hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jetty {
    /// Words 4 and 5 of its descriptors, without the producer index: [`JettyWord`], then [`IndexWord`].
    words: u64,
}

/// A number that names no jetty, and the largest that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadJetty {
    /// Die.
    #[error("die {0} is above {max}", max = Jetty::MAX_DIE)]
    Die(u8),
    /// Function.
    #[error("function {0} is above {max}", max = Jetty::MAX_FUNCTION)]
    Function(u8),
    /// Jetty.
    #[error("jetty {0} is above {max}", max = u16::MAX)]
    Id(u32),
}

impl Jetty {
    /// Number of no channel's jetty.
    pub(crate) const NONE: Self = Self::with_checked(1, Self::MAX_FUNCTION, u16::MAX);
    /// Largest die: the field has 1 bit.
    pub const MAX_DIE: u8 = 1;
    /// Largest function: the field has 7 bits.
    pub const MAX_FUNCTION: u8 = (1 << 7) - 1;

    /// The jetty with this number, of this function of a die.
    ///
    /// # Errors
    /// [`BadJetty`]: the first number that is wider than its field.
    pub const fn new(die: u8, function: u8, id: u32) -> Result<Self, BadJetty> {
        if die > Self::MAX_DIE {
            return Err(BadJetty::Die(die));
        }
        if function > Self::MAX_FUNCTION {
            return Err(BadJetty::Function(function));
        }
        if id > u16::MAX as u32 {
            return Err(BadJetty::Id(id));
        }
        Ok(Self::with_checked(die, function, id as u16))
    }

    const fn with_checked(die: u8, function: u8, id: u16) -> Self {
        // The masks are what the builders' checks come down to: without them the checks are code, and their panics are, too.
        let word = JettyWord::new().with_jetty(id).with_function(function & Self::MAX_FUNCTION);
        let index = IndexWord::new().with_die(die & Self::MAX_DIE).into_bits();
        Self { words: word.into_bits() as u64 | (index as u64) << 32 }
    }
}

/// Builder of a doorbell descriptor.
#[derive(Clone, Copy, Debug)]
pub struct UbDoorbell {
    jetty: Jetty,
    producer_index: u16,
}

impl UbDoorbell {
    /// Starts the entries of `jetty` before `producer_index`: one past the last block written, modulo 2^16.
    pub const fn new(jetty: Jetty, producer_index: u16) -> Self {
        Self { jetty, producer_index }
    }

    /// The descriptor with this task id.
    #[inline]
    pub const fn build(self, task_id: u32) -> Sqe {
        let words = self.jetty.words | (self.producer_index as u64) << 32;
        let sqe = UbDoorbellSqe {
            header: SqeHeader::new(SqeType::UBDMA, task_id),
            mode: ModeWord::new().with_is_doorbell(true).with_doorbells(1),
            credit: Credit::new().with_kernel_credit(CREDIT_DEFAULT),
            jetty: JettyWord::from_bits(words as u32),
            index: IndexWord::from_bits((words >> 32) as u32),
            second: [0; 2],
            reserved: [0; 8],
        };
        Sqe::of_words(transmute!(sqe))
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;

    use zerocopy::IntoBytes;

    use super::*;

    /// Recorded; the rest of the descriptor is zero.
    const DOORBELL: &str = "0900000001000600030000000000fe001200002401000080";

    #[test]
    fn doorbell_equals_a_recorded_one() {
        let sqe = UbDoorbell::new(Jetty::new(1, 18, 18).unwrap(), 1).build(393_217);
        let hex: String = sqe.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, format!("{DOORBELL:0<128}"));
    }

    #[test]
    fn jetty_wider_than_its_fields_is_refused() {
        assert!(Jetty::new(1, 127, 65535).is_ok());
        assert_eq!(Jetty::new(2, 0, 0), Err(BadJetty::Die(2)));
        assert_eq!(Jetty::new(0, 128, 0), Err(BadJetty::Function(128)));
        assert_eq!(Jetty::new(0, 0, 65536), Err(BadJetty::Id(65536)));
    }
}
