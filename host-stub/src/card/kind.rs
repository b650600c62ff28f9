//! Which device a program runs on.
#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

/// Environment variable that names the device, for programs that do not choose it.
pub const DEVICE_VAR: &str = "HCOMM_DEVICE";

/// The device that a [`Device`](crate::Device) is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// The simulated device.
    #[default]
    Sim,
    /// The simulated device behind a stand-in of a card's runtime and driver: for tests of what runs on a card.
    FakeCard,
    /// A card, by the number that the runtime gives it. Not yet run on hardware.
    Card(u16),
}

/// Not the name of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("device {0:?} ({DEVICE_VAR}): must be sim, fake-card or card:N with N from 0 to 65535")]
pub struct BadDeviceKind(String);

impl DeviceKind {
    /// The one that the environment names; [`Sim`](Self::Sim) without it.
    ///
    /// # Errors
    /// [`BadDeviceKind`].
    pub fn of_environment() -> Result<Self, BadDeviceKind> {
        match std::env::var_os(DEVICE_VAR).filter(|value| !value.is_empty()) {
            Some(value) => value.to_string_lossy().parse(),
            None => Ok(Self::Sim),
        }
    }

    /// Whether its runtime is one of a card, or the stand-in of one.
    pub fn is_card(self) -> bool {
        self != Self::Sim
    }
}

impl FromStr for DeviceKind {
    type Err = BadDeviceKind;

    fn from_str(text: &str) -> Result<Self, BadDeviceKind> {
        let bad = || BadDeviceKind(text.to_owned());
        match text {
            "sim" => Ok(Self::Sim),
            "fake-card" => Ok(Self::FakeCard),
            _ => {
                let number = text.strip_prefix("card:").ok_or_else(bad)?;
                let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
                number.parse().ok().filter(|_| is_number).map(Self::Card).ok_or_else(bad)
            }
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim => f.write_str("sim"),
            Self::FakeCard => f.write_str("fake-card"),
            Self::Card(number) => write!(f, "card:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        for name in ["sim", "fake-card", "card:0", "card:65535"] {
            assert_eq!(name.parse::<DeviceKind>().unwrap().to_string(), name);
        }
        for name in ["", "card", "card:", "card:-1", "card:+1", "card:65536", "Sim", "card:0x1"] {
            let error = name.parse::<DeviceKind>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("device {name:?} (HCOMM_DEVICE): must be ")), "{error}");
        }
    }
}
