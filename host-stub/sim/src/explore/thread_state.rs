//! Whether a thread of the process sleeps, as the kernel tells.

use std::path::{Path, PathBuf};

/// Folder of the calling thread in /proc; `None`: there is no /proc.
pub(super) fn own_folder() -> Option<PathBuf> {
    Some(Path::new("/proc").join(std::fs::read_link("/proc/thread-self").ok()?))
}

/// Whether the thread with this folder does not want to run. One that has ended does not.
pub(super) fn sleeps(folder: &Path) -> bool {
    let Ok(stat) = std::fs::read_to_string(folder.join("stat")) else { return true };
    // The name of the program, in parentheses, may hold anything.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
    state != Some("R")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "reads /proc")]
    fn own_thread_runs_and_one_that_waits_sleeps() {
        assert!(!sleeps(&own_folder().unwrap()));
        let ((tell, told), (go, wait)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                tell.send(own_folder().unwrap()).unwrap();
                let _ = wait.recv();
            });
            let folder = told.recv().unwrap();
            while !sleeps(&folder) {
                std::thread::yield_now();
            }
            drop(go);
        });
    }
}
