//! What names a schedule: the token that a failing run prints, and by which it is repeated.
//!
//! `s1.r.SEED.OPTIONS` (random), `s1.p.SEED.DEPTH.STEPS.OPTIONS` (PCT), `s1.d.DECISIONS.OPTIONS` (a list of decisions, one
//! letter each, `(n)` from 36 on), numbers in hexadecimal; `s1` is the version of the choice points, and `.i` behind it all says
//! that the schedule is not exact. `@FILE` names a file with a token.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::decisions::Replay;
use super::pct::Pct;
use super::random::Uniform;
use crate::event::Chooser;

/// Version of the choice points: what a decision is about. Another one gives other schedules for the same token.
pub const VERSION: u32 = 1;
/// Bytes of a token that are printed; a longer one is kept in a file.
pub const PRINTED_MAX: usize = 4096;
/// Decisions that are one letter.
const LETTERS: u32 = 36;

/// What decides in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Uniform random choices.
    Random {
        /// Their seed.
        seed: u64,
    },
    /// Random priorities.
    Pct {
        /// Their seed.
        seed: u64,
        /// Depth of the bugs that are looked for.
        depth: u32,
        /// Steps that a schedule is expected to have.
        steps: u64,
    },
    /// Decisions that were made before, of choices between two or more.
    Decisions(Vec<u32>),
}

impl Plan {
    /// What decides as the plan says.
    pub fn chooser(&self) -> Box<dyn Chooser> {
        match self {
            Self::Random { seed } => Box::new(Uniform::new(*seed)),
            Self::Pct { seed, depth, steps } => Box::new(Pct::new(*seed, *depth, *steps)),
            Self::Decisions(decisions) => Box::new(Replay::new(decisions.clone())),
        }
    }
}

/// A schedule, and what it was seen with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What decides.
    pub plan: Plan,
    /// Hash of the options of the devices.
    pub options: u64,
    /// Another run may differ: a thread has waited outside of the library, or was not started by the run.
    pub is_inexact: bool,
}

/// Why a text names no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Of another version of the choice points.
    #[error(
        "the token has version {0} of the choice points, and this library has version {VERSION}: its schedule can't be repeated here; explore again"
    )]
    Version(String),
    /// Not a token.
    #[error("{text:?} is no token of a schedule: {why}")]
    Malformed {
        /// The text, or its start.
        text: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The file of a token.
    #[error("{}: {why}", path.display())]
    File {
        /// Its name.
        path: PathBuf,
        /// Why it can't be read.
        why: String,
    },
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        match text.strip_prefix('@') {
            Some(path) => read(Path::new(path)),
            None => parse(text),
        }
    }
}

fn read(path: &Path) -> Result<Token, TokenError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| TokenError::File { path: path.to_owned(), why: error.to_string() })?;
    parse(text.trim())
}

fn parse(text: &str) -> Result<Token, TokenError> {
    let malformed = |why| TokenError::Malformed { text: text.chars().take(80).collect(), why };
    let mut fields: Vec<&str> = text.split('.').collect();
    let version = fields[0].strip_prefix('s').filter(|version| version.parse::<u32>().is_ok());
    let version = version.ok_or(malformed("it does not begin with the letter s and a version"))?;
    if version.parse() != Ok(VERSION) {
        return Err(TokenError::Version(version.to_owned()));
    }
    let is_inexact = fields.last() == Some(&"i");
    if is_inexact {
        fields.pop();
    }
    let hex = |field: &str| u64::from_str_radix(field, 16).map_err(|_| malformed("a field is no hexadecimal number"));
    let (plan, options) = match fields[1..] {
        ["r", seed, options] => (Plan::Random { seed: hex(seed)? }, options),
        ["p", seed, depth, steps, options] => {
            let depth = u32::try_from(hex(depth)?).ok().filter(|depth| (1..=64).contains(depth));
            let depth = depth.ok_or(malformed("the depth is not from 1 to 64"))?;
            (Plan::Pct { seed: hex(seed)?, depth, steps: hex(steps)? }, options)
        }
        ["d", decisions, options] => {
            let decisions = decisions_of(decisions).ok_or(malformed("the decisions are not letters and (n)"))?;
            (Plan::Decisions(decisions), options)
        }
        _ => return Err(malformed("it has other fields than a random, pct or decision token")),
    };
    Ok(Token { plan, options: hex(options)?, is_inexact })
}

fn decisions_of(text: &str) -> Option<Vec<u32>> {
    let (mut decisions, mut rest) = (Vec::new(), text);
    while let Some(letter) = rest.chars().next() {
        if letter == '(' {
            let (number, after) = rest[1..].split_once(')')?;
            decisions.push(number.parse().ok()?);
            rest = after;
        } else {
            decisions.push(letter.to_digit(LETTERS)?);
            rest = &rest[1..];
        }
    }
    Some(decisions)
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s{VERSION}.")?;
        match &self.plan {
            Plan::Random { seed } => write!(f, "r.{seed:x}")?,
            Plan::Pct { seed, depth, steps } => write!(f, "p.{seed:x}.{depth:x}.{steps:x}")?,
            Plan::Decisions(decisions) => {
                write!(f, "d.")?;
                // What is behind the list is decided by 0.
                let used = decisions.iter().rposition(|decision| *decision != 0).map_or(0, |last| last + 1);
                for decision in &decisions[..used] {
                    match char::from_digit(*decision, LETTERS) {
                        Some(letter) => write!(f, "{letter}")?,
                        None => write!(f, "({decision})")?,
                    }
                }
            }
        }
        write!(f, ".{:x}", self.options)?;
        if self.is_inexact { write!(f, ".i") } else { Ok(()) }
    }
}

impl Token {
    /// The text to print. One that is longer than [`PRINTED_MAX`] is kept in a file of `folder`, which the text names then.
    pub fn print(&self, folder: &Path) -> String {
        let text = self.to_string();
        if text.len() <= PRINTED_MAX {
            return text;
        }
        let hash = text.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        let path = folder.join(format!("hcomm-schedule-{hash:016x}.token"));
        match std::fs::write(&path, &text) {
            Ok(()) => format!("@{}", path.display()),
            // Better long than lost.
            Err(_) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_its_text() {
        let plans = [
            (Plan::Random { seed: 42 }, "s1.r.2a.ff"),
            (Plan::Pct { seed: 1, depth: 3, steps: 200 }, "s1.p.1.3.c8.ff"),
            (Plan::Decisions(vec![0, 1, 35, 36, 2, 0, 0]), "s1.d.01z(36)2.ff"),
            (Plan::Decisions(vec![]), "s1.d..ff"),
        ];
        for (plan, text) in plans {
            let token = Token { plan, options: 255, is_inexact: false };
            assert_eq!(token.to_string(), text);
            let inexact = Token { is_inexact: true, ..token.clone() };
            let read: Token = inexact.to_string().parse().unwrap();
            assert_eq!((read.to_string(), read.is_inexact), (format!("{text}.i"), true));
            assert_eq!(text.parse::<Token>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_versions_and_texts_are_refused() {
        let refused = |text: &str| text.parse::<Token>().unwrap_err().to_string();
        assert!(refused("s2.r.2a.ff").contains("version 2 of the choice points, and this library has version 1"));
        for text in
            ["", "42", "s", "s1", "s1.r.2a", "s1.r.x.ff", "s1.d.0!.ff", "s1.d.(1.ff", "s1.p.1.0.8.ff", "@/no/file"]
        {
            assert!(text.parse::<Token>().is_err(), "{text}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "writes a file")]
    fn long_token_is_kept_in_a_file() {
        let token = Token { plan: Plan::Decisions(vec![1; 5000]), options: 1, is_inexact: false };
        let text = token.print(&std::env::temp_dir());
        let path = text.strip_prefix('@').expect("a file").to_owned();
        assert_eq!(text.parse(), Ok(token));
        std::fs::remove_file(path).unwrap();
    }
}
