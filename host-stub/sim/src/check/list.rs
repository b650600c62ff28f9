//! Which checks a device makes: the list that options and environment take.

use std::str::FromStr;

/// Environment variable with the list of checks, for programs that do not choose them.
pub const CHECK_VAR: &str = "HCOMM_SIM_CHECK";

/// The checks of a device. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Accesses to the same bytes that nothing orders ([`race`](super::race)).
    pub race: bool,
}

impl Checks {
    /// No check.
    pub const NONE: Self = Self { race: false };
    /// Every check.
    pub const ALL: Self = Self { race: true };
}

/// A list of checks that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a check: race, all and none are, separated by commas; -race leaves one out")]
pub struct BadCheck(String);

impl FromStr for Checks {
    type Err = BadCheck;

    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let mut checks = Self::NONE;
        for name in list.split(',').map(str::trim) {
            match name {
                "all" => checks = Self::ALL,
                "none" => checks = Self::NONE,
                "race" => checks.race = true,
                "-race" => checks.race = false,
                _ => return Err(BadCheck(name.to_owned())),
            }
        }
        Ok(checks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_read_from_left_to_right() {
        for (list, expected) in [
            ("race", Checks::ALL),
            ("all", Checks::ALL),
            ("none", Checks::NONE),
            ("all,-race", Checks::NONE),
            ("none, race", Checks::ALL),
        ] {
            assert_eq!(list.parse(), Ok(expected), "{list}");
        }
        for (list, bad) in [("", ""), ("races", "races"), ("race,,all", ""), ("Race", "Race")] {
            assert_eq!(list.parse::<Checks>(), Err(BadCheck(bad.to_owned())), "{list}");
        }
    }
}
