//! Files that a user names: opened without waiting, regular ones alone, and read up to a limit.
#![forbid(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FsWord, OFlags};

/// `f_type` of /proc, whose files have the type of regular files; a read of some waits without limit (proc(5)).
const PROC_MAGIC: FsWord = 0x9fa0;

/// Opens a regular file to read it. Never waits for another process, as the open of a FIFO does.
///
/// # Errors
/// The system's error, or `InvalidInput` for anything but a regular file. A file of /proc does not count as regular.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    let system = rustix::fs::fstatfs(&file)?;
    if !file.metadata()?.is_file() || system.f_type == PROC_MAGIC {
        return Err(not_regular());
    }
    Ok(file)
}

/// Whether `path` can be opened by [`open_regular`], without keeping it open.
///
/// # Errors
/// As [`open_regular`].
pub fn check_regular(path: &Path) -> io::Result<()> {
    open_regular(path).map(drop)
}

/// Reads a whole file of at most `limit` bytes.
///
/// # Errors
/// As [`open_regular`]; `FileTooLarge`, with both sizes; no memory for it.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let len = file.metadata()?.len();
    let too_large =
        |len| io::Error::new(ErrorKind::FileTooLarge, format!("it has {len} bytes, and at most {limit} are read"));
    if len > limit {
        return Err(too_large(len));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len as usize)?;
    // The file may grow meanwhile, or have no size, like a file of /sys.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => not_regular(),
        _ => error,
    })?;
    if bytes.len() as u64 > limit { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}

fn not_regular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "not a regular file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let folder = std::env::temp_dir().join(format!("hcomm-file-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let fifo = folder.join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for path in [&*fifo, &folder, Path::new("/dev/zero"), Path::new("/proc/self/status")] {
            let error = read(path, 100).unwrap_err();
            assert_eq!(error.to_string(), "not a regular file", "{}", path.display());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn file_is_read_up_to_the_limit_and_not_beyond() {
        let path = std::env::temp_dir().join(format!("hcomm-limit-{}", std::process::id()));
        std::fs::write(&path, [7; 100]).unwrap();
        assert_eq!(read(&path, 100).unwrap(), [7; 100]);
        assert_eq!(read(&path, 99).unwrap_err().to_string(), "it has 100 bytes, and at most 99 are read");
        // Larger than all memory, without taking any.
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let text = format!("it has {} bytes, and at most 99 are read", 1_u64 << 40);
        assert_eq!(read(&path, 99).unwrap_err().to_string(), text);
        std::fs::remove_file(&path).unwrap();
    }
}
