//! Libraries, and versions of them, that must be on the device.

use super::symbols::VENDOR_LIBRARY;
use crate::elf::Library;
use crate::report::{Check, Sink};

/// What our libraries may need.
const ALLOWED: [&str; 3] = ["libascend_hal.so", "libc.so.6", VENDOR_LIBRARY];

/// Newest version of glibc that may be asked for: the first one for AArch64.
const GLIBC: [u32; 2] = [2, 17];

/// Each needed library must be one that devices have.
pub fn needed(library: &Library, file: &str, sink: &mut Sink) {
    for needed in library.needed.iter().filter(|needed| !ALLOWED.contains(&needed.as_str())) {
        let message = format!("{needed} is needed; only {} are allowed", ALLOWED.join(", "));
        sink.own(Check::Needed, file, message, "dlopen fails with 11002 where the device does not have it");
    }
}

/// No version may be newer than every card has.
pub fn versions(library: &Library, file: &str, sink: &mut Sink) {
    for version in &library.versions {
        let Some(number) = version.name.strip_prefix("GLIBC_") else { continue };
        let message = match parse(number) {
            Some(found) if found <= GLIBC.to_vec() => continue,
            Some(_) => format!("{} of {} is needed, newer than GLIBC_2.17", version.name, version.library),
            None => format!("{} of {} is needed, which is not a public version", version.name, version.library),
        };
        let why = "the C library of the card may be older (2.28 on EulerOS SP8 is likely, not certain): dlopen then \
                   fails with 11002";
        sink.error_or_warning(Check::Versions, file, message, why);
    }
}

fn parse(number: &str) -> Option<Vec<u32>> {
    number.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_part_by_part() {
        let allowed = |number: &str| parse(number).is_some_and(|found| found <= GLIBC.to_vec());
        assert!(allowed("2.17") && allowed("2.4") && allowed("2"));
        assert!(!allowed("2.17.1") && !allowed("2.34") && !allowed("3.0") && !allowed("PRIVATE"));
    }
}
