//! SHA-256 of bytes that come in pieces.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Bytes of a file that are in memory at a time.
pub const PIECE: usize = 4 << 20;

/// Digest as 64 hexadecimal digits.
pub fn hex(hasher: Sha256) -> String {
    use std::fmt::Write;
    hasher.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String does not fail");
        text
    })
}

/// Digest of what a file holds now.
pub fn of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(hasher)),
            len => hasher.update(&piece[..len]),
        }
    }
}
