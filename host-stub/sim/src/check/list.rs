//! Which checks a device makes: the one list that options, command line and environment take.

use std::fmt;
use std::str::FromStr;

use crate::message::debug_is_the_message;

/// Environment variable with the list of checks, for programs that do not choose them.
pub const CHECK_VAR: &str = "HCOMM_SIM_CHECK";

/// A check of what a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// Accesses to the same bytes that nothing orders ([`race`](super::race)).
    Race,
    /// Bytes that were used and never written ([`init`](super::init)).
    Init,
    /// Freed ranges rest before they are used again; allocations that nothing has freed are listed when the device closes.
    Free,
    /// Calls that were refused and whose code the kernel has ignored ([`calls`](super::calls)).
    Calls,
    /// What a kernel leaves behind when the host synchronises: tasks that nothing orders, records that nothing waits for, a
    /// batch that is open.
    Sync,
    /// What the kernel's own code reads and writes.
    Core,
}

impl Check {
    /// Every check.
    pub const ALL: [Self; 6] = [Self::Race, Self::Init, Self::Free, Self::Calls, Self::Sync, Self::Core];

    /// Its name in a list.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::Init => "init",
            Self::Free => "free",
            Self::Calls => "calls",
            Self::Sync => "sync",
            Self::Core => "core",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.name() == name)
    }
}

/// What is done with a finding of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The check is not made.
    Off,
    /// A finding is a warning in the log.
    Warn,
    /// A call returns the finding as an error.
    Error,
}

/// The checks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// By place in [`Check::ALL`].
    levels: [Level; 6],
    /// `core` is part of `all`: it is left out where it can't be made.
    core_is_optional: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Checks {
    /// No check.
    pub const NONE: Self = Self { levels: [Level::Off; 6], core_is_optional: false };
    /// Every check that the AI CPU can make.
    pub const ALL: Self = Self { levels: [Level::Error; 6], core_is_optional: true };
    /// Without a list: all but `core`.
    pub const DEFAULT: Self = Self::ALL.without(Check::Core);

    /// Adds a check whose findings are errors.
    pub const fn with(self, check: Check) -> Self {
        self.with_level(check, Level::Error)
    }

    /// Removes a check.
    pub const fn without(self, check: Check) -> Self {
        self.with_level(check, Level::Off)
    }

    /// Makes findings of a check warnings.
    pub const fn warning(self, check: Check) -> Self {
        self.with_level(check, Level::Warn)
    }

    /// Sets what is done with the findings of a check.
    pub const fn with_level(mut self, check: Check, level: Level) -> Self {
        self.levels[check as usize] = level;
        if matches!(check, Check::Core) {
            self.core_is_optional = false;
        }
        self
    }

    /// What is done with the findings of a check.
    pub const fn level(self, check: Check) -> Level {
        self.levels[check as usize]
    }

    /// Whether a check is made.
    pub const fn is_on(self, check: Check) -> bool {
        !matches!(self.level(check), Level::Off)
    }

    /// Whether `core` is in the list by `all` alone, so that it is left out where it can't be made.
    pub const fn core_is_optional(self) -> bool {
        self.core_is_optional
    }

    /// The checks that an AI CPU makes which can't make `core`.
    ///
    /// # Errors
    /// [`CoreUnavailable`]: the list names `core`.
    pub fn without_core(self) -> Result<Self, CoreUnavailable> {
        if self.is_on(Check::Core) && !self.core_is_optional {
            return Err(CoreUnavailable);
        }
        Ok(self.without(Check::Core))
    }
}

impl fmt::Display for Checks {
    /// As a list that gives the same checks, but for whether `core` may be left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = Check::ALL.into_iter().filter_map(|check| match self.level(check) {
            Level::Off => None,
            Level::Warn => Some(format!("warn:{}", check.name())),
            Level::Error => Some(check.name().to_owned()),
        });
        let items: Vec<_> = std::iter::once("none".to_owned()).chain(items).collect();
        f.write_str(&if items.len() == 1 { "none".to_owned() } else { items.join(",") })
    }
}

/// A list names `core`, which the AI CPU can't make.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the check core can't be made on this ai cpu: remove it from the list (all leaves it out where it can't be made)"
)]
pub struct CoreUnavailable;
debug_is_the_message!(CoreUnavailable);

/// A list of checks that can't be read.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a check: race, init, free, calls, sync, core, all and none are, separated by commas; -race removes race, \
     warn:race makes its findings warnings"
)]
pub struct BadCheck(String);
debug_is_the_message!(BadCheck);

impl FromStr for Checks {
    type Err = BadCheck;

    /// Reads a list from left to right. A list whose first item changes something (`-race`, `warn:race`) starts from
    /// [`Checks::DEFAULT`], every other one from [`Checks::NONE`].
    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let mut checks = if list.trim_start().starts_with('-') || list.trim_start().starts_with("warn:") {
            Self::DEFAULT
        } else {
            Self::NONE
        };
        for item in list.split(',').map(str::trim) {
            let bad = || BadCheck(item.to_owned());
            let check = |name: &str| Check::from_name(name).ok_or_else(bad);
            checks = match item {
                "all" => Self::ALL,
                "none" => Self::NONE,
                _ => match (item.strip_prefix('-'), item.strip_prefix("warn:")) {
                    (Some(name), _) => checks.without(check(name)?),
                    (None, Some(name)) => checks.warning(check(name)?),
                    (None, None) => checks.with(check(item)?),
                },
            };
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
            ("race", Checks::NONE.with(Check::Race)),
            ("all", Checks::ALL),
            ("none", Checks::NONE),
            ("all,-race", Checks::ALL.without(Check::Race)),
            ("none, race", Checks::NONE.with(Check::Race)),
            ("race,none", Checks::NONE),
            ("init,core", Checks::NONE.with(Check::Init).with(Check::Core)),
            ("-sync", Checks::DEFAULT.without(Check::Sync)),
            (" warn:init , race", Checks::DEFAULT.warning(Check::Init)),
            ("race,init,free,calls,sync", Checks::DEFAULT),
            ("all,warn:calls,-free", Checks::ALL.warning(Check::Calls).without(Check::Free)),
        ] {
            assert_eq!(list.parse(), Ok(expected), "{list}");
        }
        let bad =
            ["", "races", "race,,all", "Race", "-", "-all", "warn:", "warn:none", "warn:-race", "--race", "strict"];
        for list in bad {
            let item = if list.contains(',') { "" } else { list };
            assert_eq!(list.parse::<Checks>(), Err(BadCheck(item.to_owned())), "{list}");
        }
    }

    #[test]
    fn text_of_a_list_gives_the_same_checks() {
        for list in ["none", "race", "all,-race", "-sync", "warn:init,race", "free,warn:calls"] {
            let checks: Checks = list.parse().unwrap();
            let checks = checks.without_core().unwrap();
            assert_eq!(checks.to_string().parse(), Ok(checks), "{list}");
        }
    }

    /// Case 320.
    #[test]
    fn core_is_refused_where_it_is_named_and_left_out_of_all() {
        let all = Checks::ALL.without(Check::Core);
        for (list, expected) in [
            ("all", Ok(all)),
            ("all,-core", Ok(all)),
            ("none", Ok(Checks::NONE)),
            ("-race", Ok(Checks::DEFAULT.without(Check::Race))),
            ("core", Err(CoreUnavailable)),
            ("warn:core", Err(CoreUnavailable)),
            ("all,core", Err(CoreUnavailable)),
            ("core,all", Ok(all)),
        ] {
            assert_eq!(list.parse::<Checks>().unwrap().without_core(), expected, "{list}");
        }
    }
}
