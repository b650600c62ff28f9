//! The arguments that the host gives: `name=number`, each once.

use std::ops::Range;

/// Where memory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Open file with the device's memory.
    pub memory: i32,
    /// Addresses of HBM, as the program has them.
    pub hbm: Range<u64>,
}

impl Options {
    /// Reads the arguments.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let (mut memory, mut base, mut size) = (None, None, None);
        for argument in arguments {
            let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{argument}: {error}"));
            match argument.split_once('=') {
                Some(("memory", file)) => memory = Some(number(file)?),
                Some(("hbm", addr)) => base = Some(number(addr)?),
                Some(("size", bytes)) => size = Some(number(bytes)?),
                _ => return Err(format!("{argument} is not one of memory=, hbm=, size=")),
            }
        }
        let (Some(memory), Some(base), Some(size)) = (memory, base, size) else {
            return Err("memory=, hbm= and size= are needed".to_owned());
        };
        let memory = i32::try_from(memory).map_err(|_| format!("memory={memory} is no file"))?;
        let end = base.checked_add(size).ok_or_else(|| format!("hbm={base} with size={size} ends above 2^64"))?;
        Ok(Self { memory, hbm: base..end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_arguments_are_needed_and_no_other_is_taken() {
        let good = ["memory=5", "hbm=4096", "size=100"];
        assert_eq!(Options::read(good), Ok(Options { memory: 5, hbm: 4096..4196 }));
        for bad in [&good[..2], &["memory=5", "hbm=x", "size=1"], &["cores=2"], &["memory=5", "hbm=1", "size=-1"]] {
            assert!(Options::read(bad.iter().copied()).is_err(), "{bad:?}");
        }
        assert!(Options::read(["memory=5000000000", "hbm=1", "size=1"]).is_err());
        assert!(Options::read(["memory=5", "hbm=18446744073709551615", "size=1"]).is_err());
    }
}
