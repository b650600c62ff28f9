//! Generations of the chip that differ in their descriptors.

use zerocopy::{Immutable, KnownLayout, TryFromBytes};

/// SoC of a device. The numbers are the driver's device types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, Immutable, KnownLayout)]
#[repr(u32)]
pub enum Soc {
    /// Atlas A2 (SoC string `Ascend910B`).
    Ascend910B = 2,
    /// Atlas A3 (SoC string `Ascend910_93`).
    Ascend910_93 = 4,
    /// Atlas 350 (SoC string `Ascend950`).
    Ascend950 = 6,
}

impl Soc {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ascend950, Self::Ascend910_93, Self::Ascend910B];

    /// The SoC with this device type.
    pub const fn from_device_type(number: u32) -> Option<Self> {
        match number {
            2 => Some(Self::Ascend910B),
            4 => Some(Self::Ascend910_93),
            6 => Some(Self::Ascend950),
            _ => None,
        }
    }

    /// Name as the runtime gives it (`aclrtGetSocName`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ascend910B => "Ascend910B",
            Self::Ascend910_93 => "Ascend910_93",
            Self::Ascend950 => "Ascend950",
        }
    }
}
