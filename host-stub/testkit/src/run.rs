//! Where a test finds files, and how long it waits.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a test waits for what must happen. A machine with ten times as many busy threads as processors needs no more.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How long nothing can go on in a test that brings a deadlock about.
pub const DEADLOCK_LIMIT: Duration = Duration::from_millis(200);

/// Waits until `is_done`, at most [`LIMIT`]; says whether it is.
pub fn wait_until(mut is_done: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !is_done() {
        if started.elapsed() > LIMIT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Folder of the repository, with docs, headers and scripts.
pub fn root() -> PathBuf {
    // Cargo runs tests in the folder of their package, which may have been copied since they were built.
    let start = std::env::current_dir().unwrap_or_default();
    let has_docs = |folder: &&Path| folder.join("docs/abi.txt").is_file();
    let built_in = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    start.ancestors().find(has_docs).unwrap_or(built_in).to_owned()
}

/// Target folder that this program is in: the one above `debug/deps`.
///
/// # Panics
/// If the program is in no target folder of cargo.
pub fn target_dir() -> PathBuf {
    let program = std::env::current_exe().expect("a program has a path");
    // Cargo marks the folders that it makes.
    let is_target = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    let found = program.ancestors().find(is_target);
    found.unwrap_or_else(|| panic!("{} is in no target folder of cargo", program.display())).to_owned()
}
