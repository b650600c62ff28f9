//! The tar.gz that brings libraries to a device.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use tar::{Archive, EntryType};

use crate::report::{Check, Sink};

/// Folder that everything in a package lies in, and that the loader looks in.
pub const ROOT: &str = "aicpu_kernels_device";
/// List of the hashes of a package's files.
const HASHES: &str = "bin_hash.cfg";
/// Mode of libraries and of the folder.
const MODE: u32 = 0o750;
/// First bytes of a gzip stream.
pub const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Length of the signature in front of a signed package.
pub const SIGNATURE_LEN: usize = 8448;

/// Most bytes that a package may unpack to: so that a damaged or hostile one does not fill the memory.
pub const MAX_UNPACKED: u64 = 512 << 20;

const WHY_FOUND: &str = "the loader looks in /usr/lib64/aicpu_kernels/<n>/aicpu_kernels_device and nowhere else: a \
                         launch ends with 11002";
const WHY_UNPACK: &str = "the device does not unpack the package, and a launch ends with 11002";

/// A file of the package.
#[derive(Debug)]
struct Entry {
    kind: EntryType,
    mode: u32,
    data: Vec<u8>,
}

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
        let name =
            path.strip_prefix(ROOT).and_then(|rest| rest.strip_prefix('/')).map(|name| name.trim_end_matches('/'));
        match name {
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

fn unpack(data: &[u8]) -> Result<Vec<(String, Entry)>, String> {
    // One byte more tells a package at the limit from one above it.
    let mut unpacked = Vec::new();
    GzDecoder::new(data)
        .take(MAX_UNPACKED + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| format!("is no whole gzip stream: {error}"))?;
    if unpacked.len() as u64 > MAX_UNPACKED {
        return Err(format!("unpacks to more than {MAX_UNPACKED} bytes"));
    }
    let damaged = |error: std::io::Error| format!("is no whole tar archive: {error}");
    let mut entries = Vec::new();
    for entry in Archive::new(&unpacked[..]).entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = without_dot(&path).to_owned();
        if path.is_empty() {
            continue;
        }
        let header = entry.header();
        let (kind, mode) = (header.entry_type(), header.mode().map_err(damaged)? & 0o7777);
        let mut data = Vec::new();
        entry.read_to_end(&mut data).map_err(damaged)?;
        if data.len() as u64 != entry.size() {
            return Err(format!("is no whole tar archive: {path} is cut off"));
        }
        entries.push((path, Entry { kind, mode, data }));
    }
    Ok(entries)
}

/// A path without the `./` that `tar -C folder .` puts before each, and in front of nothing for the folder itself.
fn without_dot(mut path: &str) -> &str {
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    if path == "." { "" } else { path }
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
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = index + 1;
        let parts = line.split_once('=').map(|(name, hash)| (name.trim(), hash.trim()));
        let Some((name, hash)) =
            parts.filter(|(_, hash)| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
        else {
            let message = format!("line {number} is not file=<64 hexadecimal digits>: {line}");
            sink.error(Check::Hashes, HASHES, message, why);
            continue;
        };
        listed.insert(name.to_owned());
        match files.get(name) {
            None => {
                let message = format!("line {number} names {name}, which is not in the package");
                sink.error_or_warning(Check::Hashes, HASHES, message, why);
            }
            Some(entry) => {
                let found = hex(&Sha256::digest(&entry.data));
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
