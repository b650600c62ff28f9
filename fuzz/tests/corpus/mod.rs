//! Reads what a fuzz run starts from.

use std::collections::BTreeMap;
use std::path::Path;

/// The inputs of a target by their names.
pub fn read(target: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())).collect()
}
