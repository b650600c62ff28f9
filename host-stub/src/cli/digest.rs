//! SHA-256 of bytes that come in pieces.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::failure::Failure;

/// Bytes of a file that are in memory at a time.
pub const PIECE: usize = 4 << 20;

/// A buffer for a piece.
///
/// # Errors
/// No memory for it, with the system's reason.
pub fn piece() -> Result<Vec<u8>, Failure> {
    let mut piece = Vec::new();
    piece.try_reserve_exact(PIECE).map_err(|_| {
        Failure::Device(format!("no memory for a buffer of {PIECE} bytes: {}", io::Error::from(Errno::NOMEM)))
    })?;
    piece.resize(PIECE, 0);
    Ok(piece)
}

/// Digest as 64 hexadecimal digits.
pub fn hex(hasher: Sha256) -> String {
    use std::fmt::Write;
    hasher.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String does not fail");
        text
    })
}

/// Digest of what a file holds from its start on.
pub fn of_file(file: &mut File, piece: &mut [u8]) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = Sha256::new();
    loop {
        match file.read(piece)? {
            0 => return Ok(hex(hasher)),
            len => hasher.update(&piece[..len]),
        }
    }
}
