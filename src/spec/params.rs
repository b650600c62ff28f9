//! Head of the parameters that the host hands to a kernel: lets the kernel refuse bytes that are not its own.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// First 16 bytes of every parameter struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(8))]
pub struct ParamsHeader {
    /// [`KernelParams::MAGIC`] of the struct.
    pub magic: u32,
    /// [`KernelParams::VERSION`] of the struct.
    pub version: u32,
    /// Bytes of the struct, this head included.
    pub size: u64,
}
const _: () = assert!(size_of::<ParamsHeader>() == 16);

/// A `repr(C)` struct that starts with a [`ParamsHeader`] and can be handed to a kernel as bytes.
pub trait KernelParams: FromBytes + IntoBytes + Immutable + KnownLayout + Sized {
    /// Tells one struct from another.
    const MAGIC: u32;
    /// Counts changes of the layout.
    const VERSION: u32;
    /// The head that [`check`] accepts for this struct.
    const HEADER: ParamsHeader =
        ParamsHeader { magic: Self::MAGIC, version: Self::VERSION, size: size_of::<Self>() as u64 };
}

/// Why parameters were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, TryFromBytes, Immutable, KnownLayout)]
#[repr(u32)]
pub enum ParamsError {
    /// Other struct.
    #[error("kernel parameters have magic {found:#010x}, not {expected:#010x}")]
    BadMagic {
        /// In the bytes.
        found: u32,
        /// Of the struct.
        expected: u32,
    },
    /// Other version of the struct.
    #[error("kernel parameters have version {found}, not {expected}")]
    BadVersion {
        /// In the bytes.
        found: u32,
        /// Of the struct.
        expected: u32,
    },
    /// Other size.
    #[error("kernel parameters have {found} bytes, not {expected}")]
    BadSize {
        /// In the bytes, or their length.
        found: u64,
        /// Of the struct.
        expected: u64,
    },
}

/// Checks that `header` is the head of a `P`.
///
/// # Errors
/// The first of magic, version and size that differs.
pub fn check<P: KernelParams>(header: &ParamsHeader) -> Result<(), ParamsError> {
    let expected = P::HEADER;
    if header.magic != expected.magic {
        return Err(ParamsError::BadMagic { found: header.magic, expected: expected.magic });
    }
    if header.version != expected.version {
        return Err(ParamsError::BadVersion { found: header.version, expected: expected.version });
    }
    if header.size != expected.size {
        return Err(ParamsError::BadSize { found: header.size, expected: expected.size });
    }
    Ok(())
}
