//! Folders of tests.

use std::path::PathBuf;

/// A folder of its own for a test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder. `test` tells the folders of one test program apart.
    ///
    /// # Panics
    /// If there is one of this name.
    pub fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("host-stub-{test}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    /// Path of a file in it, as an argument.
    ///
    /// # Panics
    /// If the folder for temporary files has a name that is not UTF-8.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the folder is ours");
    }
}
