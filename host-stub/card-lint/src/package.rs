//! What is checked of the tar.gz that brings libraries to a device.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::{Entry, HASHES, ROOT, hash_of, hashes, inside, unpack};
use crate::report::{Check, Sink};

/// Mode of libraries and of the folder.
const MODE: u32 = 0o750;

const WHY_FOUND: &str = "the loader looks in /usr/lib64/aicpu_kernels/<n>/aicpu_kernels_device and nowhere else: a \
                         launch ends with 11002";
const WHY_UNPACK: &str = "the device does not unpack the package, and a launch ends with 11002";

/// Libraries of a package, by the path inside it.
pub type Libraries = BTreeMap<String, Vec<u8>>;

/// Checks layout, modes and hashes of a package, and returns its libraries by file name.
pub fn check(file: &str, data: &[u8], sink: &mut Sink) -> Libraries {
    let entries = match unpack(data) {
        Ok(entries) => entries,
        Err(error) => {
            sink.error(Check::Layout, file, error, WHY_UNPACK);
            return Libraries::new();
        }
    };
    let mut files = BTreeMap::new();
    for (path, entry) in &entries {
        check_entry(path, entry, sink);
        match inside(path) {
            Some("") | None if path.trim_end_matches('/') == ROOT => {}
            Some(name) if entry.kind.is_file() => {
                if files.insert(name.to_owned(), entry).is_some() {
                    let message = "is there twice".to_owned();
                    sink.error_or_warning(Check::Layout, path, message, "which of them is unpacked last is not told");
                }
            }
            Some(_) => {}
            None => {
                let message = format!("lies outside {ROOT}/");
                sink.error(Check::Layout, path, message, WHY_FOUND);
            }
        }
    }
    check_hashes(file, &files, sink);
    let is_library = |name: &str, entry: &Entry| entry.data.starts_with(b"\x7fELF") || name.ends_with(".so");
    let libraries = files.iter().filter(|(name, entry)| is_library(name, entry));
    let libraries: Libraries = libraries.map(|(name, entry)| (name.clone(), entry.data.clone())).collect();
    if libraries.is_empty() {
        sink.error(Check::Layout, file, format!("has no library in {ROOT}/"), WHY_FOUND);
    }
    for name in libraries.keys().filter(|name| name.contains('/')) {
        sink.error(Check::Layout, name, format!("lies in a folder below {ROOT}/"), WHY_FOUND);
    }
    libraries
}

fn check_entry(path: &str, entry: &Entry, sink: &mut Sink) {
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        let message = "is a path that leads out of the folder that it is unpacked in".to_owned();
        sink.error(Check::Layout, path, message, "the device refuses it, or overwrites a file that is not ours");
    }
    if !entry.kind.is_file() && !entry.kind.is_dir() {
        let message = format!("is neither file nor folder ({:?})", entry.kind);
        sink.error_or_warning(Check::Layout, path, message, "whether a link is unpacked, and where to, is not known");
        return;
    }
    let is_library = entry.kind.is_dir() || entry.data.starts_with(b"\x7fELF") || path.ends_with(".so");
    if is_library && entry.mode & 0o400 == 0 {
        let message = format!("has mode {:o}: the owner can't read it", entry.mode);
        sink.error(Check::Modes, path, message, "the scheduler's user can't open it: a launch ends with 11002");
    } else if is_library && entry.mode != MODE {
        let message = format!("has mode {:o}, not {MODE:o}", entry.mode);
        let why = "the scheduler's user opens it through its group, and users of the device must not change it";
        sink.own(Check::Modes, path, message, why);
    }
}

fn check_hashes(package: &str, files: &BTreeMap<String, &Entry>, sink: &mut Sink) {
    let why = "the list is what the device is told about the files: one that differs is not the one that was meant";
    let Some(list) = files.get(HASHES) else {
        sink.error_or_warning(Check::Hashes, package, format!("has no {ROOT}/{HASHES}"), why);
        return;
    };
    let text = String::from_utf8_lossy(&list.data);
    let mut listed = BTreeSet::new();
    for (number, line) in hashes(&text) {
        let (name, hash) = match line {
            Ok(pair) => pair,
            Err(line) => {
                let message = format!("line {number} is not file=<64 hexadecimal digits>: {line}");
                sink.error(Check::Hashes, HASHES, message, why);
                continue;
            }
        };
        listed.insert(name.to_owned());
        match files.get(name) {
            None => {
                let message = format!("line {number} names {name}, which is not in the package");
                sink.error_or_warning(Check::Hashes, HASHES, message, why);
            }
            Some(entry) => {
                let found = hash_of(&entry.data);
                if !found.eq_ignore_ascii_case(hash) {
                    let message = format!("line {number}: SHA-256 of {name} is {found}, not {hash}");
                    sink.error(Check::Hashes, HASHES, message, why);
                }
            }
        }
    }
    for name in files.keys().filter(|name| *name != HASHES && !listed.contains(*name)) {
        let message = format!("has no line for {name}");
        sink.error_or_warning(Check::Hashes, HASHES, message, why);
    }
}
