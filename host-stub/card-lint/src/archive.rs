//! The tar.gz that brings libraries to a device: what is in it, and how one library is taken out.

use std::io::Read;

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use tar::{Archive, EntryType};

/// Folder that everything in a package lies in, and that the loader looks in.
pub const ROOT: &str = "aicpu_kernels_device";
/// List of the hashes of a package's files.
pub const HASHES: &str = "bin_hash.cfg";
/// First bytes of a gzip stream.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Length of the signature in front of a signed package.
const SIGNATURE_LEN: usize = 8448;

/// Most bytes that a package may unpack to: so that a damaged or hostile one does not fill the memory.
const MAX_UNPACKED: u64 = 512 << 20;

/// A file of the package.
#[derive(Debug)]
pub struct Entry {
    /// File, folder or something else.
    pub kind: EntryType,
    /// Permissions.
    pub mode: u32,
    /// Bytes of a file.
    pub data: Vec<u8>,
}

/// A package without the signature before it, and whether there was one; `None`: it is no package.
pub fn without_signature(data: &[u8]) -> Option<(&[u8], bool)> {
    if data.starts_with(&GZIP_MAGIC) {
        return Some((data, false));
    }
    data.get(SIGNATURE_LEN..).filter(|rest| rest.starts_with(&GZIP_MAGIC)).map(|rest| (rest, true))
}

/// Files and folders of a package without signature, by path.
///
/// # Errors
/// It is damaged or too large; as a message.
pub fn unpack(data: &[u8]) -> Result<Vec<(String, Entry)>, String> {
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

/// Path inside the folder of a package; `None` outside it.
pub fn inside(path: &str) -> Option<&str> {
    path.strip_prefix(ROOT).and_then(|rest| rest.strip_prefix('/')).map(|name| name.trim_end_matches('/'))
}

/// Lines of the list of hashes with their numbers, each a name and a hash; a line that is none of that as it is.
pub fn hashes(text: &str) -> impl Iterator<Item = (usize, Result<(&str, &str), &str>)> {
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(index, line)| {
        let pair = line.split_once('=').map(|(name, hash)| (name.trim(), hash.trim()));
        let is_hash = |hash: &str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        (index + 1, pair.filter(|(_, hash)| is_hash(hash)).ok_or(line))
    })
}

/// SHA-256 in hexadecimal digits.
pub fn hash_of(data: &[u8]) -> String {
    Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Takes the library called `name` out of a package: the file `aicpu_kernels_device/name`, with the hash that `bin_hash.cfg` has for it.
/// A signature before the package is passed over and not verified. `None`: the package has no such file.
///
/// # Errors
/// It is no package or a damaged one, has the file twice, has no hash for it or another one; as a message.
///
/// ```no_run
/// let package = std::fs::read("aicpu_mine.tar.gz")?;
/// let library: Option<Vec<u8>> = hcomm_card_lint::library_of_package(&package, "libmine.so")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn library_of_package(package: &[u8], name: &str) -> Result<Option<Vec<u8>>, String> {
    let (data, _) = without_signature(package).ok_or("is no package: there is no gzip stream")?;
    let (mut library, mut list) = (None, None);
    for (path, entry) in unpack(data)?.into_iter().filter(|(_, entry)| entry.kind.is_file()) {
        if inside(&path) == Some(name) {
            if library.replace(entry.data).is_some() {
                return Err(format!("has {path} twice"));
            }
        } else if inside(&path) == Some(HASHES) {
            list = Some(entry.data);
        }
    }
    let Some(library) = library else { return Ok(None) };
    let list = list.ok_or_else(|| format!("has no {ROOT}/{HASHES}"))?;
    let text = String::from_utf8_lossy(&list);
    let hash = hashes(&text).find_map(|(_, line)| line.ok().filter(|(of, _)| *of == name));
    let (_, hash) = hash.ok_or_else(|| format!("has no hash of {name} in {ROOT}/{HASHES}"))?;
    let found = hash_of(&library);
    match found.eq_ignore_ascii_case(hash) {
        true => Ok(Some(library)),
        false => Err(format!("has a {name} with SHA-256 {found}, not {hash} as {ROOT}/{HASHES} has it")),
    }
}
