//! An output file that is renamed into place when it is complete; until then an existing one is not changed.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use host_stub::signals::without_write_signals;

/// Links that are followed to the file that is written.
const LINKS_MAX: u32 = 40;

/// A file beside the output, removed on drop unless [`commit`](Self::commit) has put it into place.
pub struct Replacement {
    file: File,
    path: PathBuf,
    target: PathBuf,
    is_committed: bool,
}

impl Replacement {
    /// Makes an empty file in the folder of `target`, or of the file that it links to.
    ///
    /// # Errors
    /// The system's error, with the name of the folder.
    pub fn new(target: &Path) -> io::Result<Self> {
        let target = follow_links(target)?;
        // The bytes must not become readable by more users than before.
        let existing = std::fs::metadata(&target).ok();
        let name = format!(".host-stub-{}.part", std::process::id());
        let path = target.with_file_name(name);
        let in_folder = |error: io::Error| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            io::Error::new(error.kind(), format!("no new file in folder {}: {error}", folder.display()))
        };
        let file = File::options().read(true).write(true).create_new(true).open(&path).map_err(in_folder)?;
        let replacement = Self { file, path, target, is_committed: false };
        if let Some(existing) = existing {
            replacement.file.set_permissions(existing.permissions())?;
        }
        Ok(replacement)
    }

    /// The file, to be read.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts the file in the place of the output.
    ///
    /// # Errors
    /// The system's error; the output is not changed.
    pub fn commit(mut self) -> io::Result<()> {
        std::fs::rename(&self.path, &self.target)?;
        self.is_committed = true;
        Ok(())
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        without_write_signals(|| self.file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_committed {
            // A file that can't be removed stays, under a name that contains the process id.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether two files are the same one.
pub fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// The file that a path leads to; it need not exist.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            // Not a link, or no file.
            Err(_) => return Ok(path),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}
