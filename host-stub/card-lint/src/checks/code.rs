//! Instructions, and helpers of compilers, that a core or a device may not have.

use std::fmt::Write;

use crate::elf::Library;
use crate::instructions::{self, Extension};
use crate::report::{Check, Sink};

/// Places of one kind that a message names.
const SHOWN: usize = 3;

/// No instruction newer than Armv8.0-A.
pub fn code(library: &Library, file: &str, sink: &mut Sink) {
    let decoded = instructions::decode(&library.code, &library.locals);
    if !decoded.by_mapping {
        sink.note(format!(
            "{file}: stripped: without the symbols $x and $d constants can't be told from code, and every word was taken \
             for an instruction (linear sweep)"
        ));
    }
    for one in &decoded.uses {
        let mut message = format!("{} instructions of {}", one.addrs.len(), one.extension.name());
        for (index, &addr) in one.addrs.iter().take(SHOWN).enumerate() {
            let separator = if index == 0 { ": at" } else { "," };
            // Writing to a string does not fail.
            let _ = write!(message, "{separator} {addr:#x}");
            if let Some(function) = function_at(library, addr) {
                let _ = write!(message, " in {function}");
            }
        }
        if one.addrs.len() > SHOWN {
            message.push_str(", ..");
        }
        if !decoded.by_mapping {
            message.push_str(" (may be constants: the file is stripped)");
        }
        match one.extension {
            // Some cores for which the vendor's tools have a table (TaishanV110) do have them.
            Extension::Lse | Extension::Rcpc => {
                let why = "not every AI CPU is known to have them, and the vendor builds for armv8-a: an illegal \
                           instruction ends the scheduler process; compile with -march=armv8-a";
                sink.error_or_warning(Check::Code, file, message, why);
            }
            Extension::Ls64 | Extension::Sve | Extension::Sme => {
                let why = "no core that is known as an AI CPU has them: an illegal instruction ends the scheduler \
                           process; compile with -march=armv8-a";
                // In a stripped file it may be no code at all.
                if decoded.by_mapping {
                    sink.error(Check::Code, file, message, why);
                } else {
                    sink.error_or_warning(Check::Code, file, message, why);
                }
            }
        }
    }
}

/// Name of the function that an address belongs to, as far as the symbols tell.
fn function_at<'a>(library: &'a Library, addr: u64) -> Option<&'a str> {
    let before = library.locals.iter().filter(|symbol| symbol.function && symbol.addr <= addr);
    before.max_by_key(|symbol| symbol.addr).map(|symbol| symbol.name.as_str())
}

/// No helpers that choose atomics at run time.
pub fn outline_atomics(library: &Library, file: &str, sink: &mut Sink) {
    let names = library.symbols.iter().map(|symbol| &symbol.name);
    let mut names: Vec<_> =
        names.chain(library.locals.iter().map(|symbol| &symbol.name)).filter(|name| is_helper(name)).collect();
    names.sort();
    names.dedup();
    let Some(first) = names.first() else { return };
    let others = names.len() - 1;
    let rest = if others == 0 { String::new() } else { format!(" and {others} others") };
    let message = format!("has outline atomics ({first}{rest})");
    let why = "the helpers ask getauxval when the library is opened, and have LSE instructions in them; compile with \
               -mno-outline-atomics (rustc: -C target-feature=-outline-atomics)";
    sink.error_or_warning(Check::OutlineAtomics, file, message, why);
}

/// Names of libgcc and of Rust's compiler-builtins.
fn is_helper(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("__aarch64_") else { return false };
    ["cas", "swp", "ldadd", "ldclr", "ldeor", "ldset", "have_lse"].iter().any(|kind| rest.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_known_by_name() {
        for name in ["__aarch64_ldadd4_relax", "__aarch64_cas16_acq_rel", "__aarch64_have_lse_atomics"] {
            assert!(is_helper(name), "{name}");
        }
        for name in ["__aarch64_sync_cache_range", "ldadd", "aarch64_cas"] {
            assert!(!is_helper(name), "{name}");
        }
    }
}
