//! The checks of a library, row by row.

mod code;
mod hardening;
mod needs;
mod symbols;

use std::collections::BTreeSet;

use crate::elf::Library;
use crate::report::{Check, Sink};

/// Longest name of a library that the loader accepts. Source: docs/card.md, "What the loader does".
pub const MAX_LIBRARY_NAME: usize = 100;
/// Longest name of a kernel that the loader accepts.
pub const MAX_KERNEL_NAME: usize = 200;

/// What is known of the library from elsewhere.
#[derive(Debug)]
pub struct Context<'a> {
    /// Name of the file on the device.
    pub name: &'a str,
    /// Functions that a description names; `None` without one.
    pub entries: Option<&'a BTreeSet<String>>,
}

/// Checks the library that lies in `data`.
pub fn library(data: &[u8], context: &Context, sink: &mut Sink) {
    let file = context.name;
    file_name(file, sink);
    let library = match Library::parse(data) {
        Ok(library) => library,
        Err(error) => {
            let why = "the AI CPU runs AArch64 Linux: dlopen refuses the file, and every launch ends with 11002";
            sink.error(Check::Elf, file, error.to_string(), why);
            return;
        }
    };
    soname(&library, file, sink);
    symbols::exports(&library, context, sink);
    symbols::undefined(&library, file, sink);
    needs::needed(&library, file, sink);
    needs::versions(&library, file, sink);
    hardening::hardening(&library, file, sink);
    hardening::alignment(&library, file, sink);
    hardening::tls(&library, file, sink);
    code::code(&library, file, sink);
    code::outline_atomics(&library, file, sink);
}

/// Whether a name is one that the loader takes for a library.
pub fn file_name(name: &str, sink: &mut Sink) {
    if name.len() > MAX_LIBRARY_NAME {
        let message = format!("the name has {} characters, {MAX_LIBRARY_NAME} are allowed", name.len());
        sink.error(Check::Name, name, message, "the loader refuses a longer name with 11001");
    }
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    if let Some(char) = name.chars().find(|&char| !is_allowed(char)) {
        let message = format!("the name has the character {char:?}; letters, digits, '-', '_' and '.' are allowed");
        sink.error(Check::Name, name, message, "the runtime refuses to load a library of that name");
    }
}

fn soname(library: &Library, file: &str, sink: &mut Sink) {
    let why = "a second library that needs this one by name would load it twice";
    match &library.soname {
        Some(soname) if soname == file => {}
        Some(soname) => sink.own(Check::Name, file, format!("SONAME is {soname}, not the name of the file"), why),
        None => {
            sink.own(Check::Name, file, format!("no SONAME: link with -Wl,-soname,{file}"), why);
        }
    }
}
