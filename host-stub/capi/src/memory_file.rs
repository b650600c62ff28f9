//! Files without a name, for libraries that are bytes in memory: the dynamic linker loads files alone.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::fs::MemfdFlags;
use sha2::{Digest, Sha256};

/// First number of a file that is not the program's standard input, output or error output.
const FIRST_FREE: i32 = 3;

/// Files by the hash of their bytes. They stay open: a library is never unloaded, the dynamic linker knows it by its path, and so that
/// path must not become another file's.
static FILES: Mutex<Option<HashMap<[u8; 32], OwnedFd>>> = Mutex::new(None);

/// Path of a file with these bytes, which other processes of the user can open, too. The same bytes have one file in a process.
///
/// # Errors
/// The system has no file for them.
pub fn path_of(bytes: &[u8], name: &str) -> io::Result<PathBuf> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let files = files.get_or_insert_default();
    let file = match files.entry(Sha256::digest(bytes).into()) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(free) => {
            let made = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?;
            // The program may have closed its standard files.
            let mut file = File::from(rustix::io::fcntl_dupfd_cloexec(made, FIRST_FREE)?);
            file.write_all(bytes)?;
            free.insert(file.into())
        }
    };
    // A forked child has its own number.
    Ok(PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())))
}
