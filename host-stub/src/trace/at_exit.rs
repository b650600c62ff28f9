//! Something that is still to be done when the process ends: a program in C need not close its devices.

use std::panic::catch_unwind;
use std::sync::OnceLock;

static LAST: OnceLock<fn()> = OnceLock::new();

/// Calls `last` when the process ends. The first function of a process stays.
pub(super) fn register(last: fn()) {
    LAST.get_or_init(|| {
        // SAFETY: `run` takes and returns nothing and never unwinds. It stays in memory: the library is not unloaded, since the
        // threads of a device run in it. Without room for the function, files are written when devices close.
        let _ = unsafe { libc::atexit(run) };
        last
    });
}

extern "C" fn run() {
    if let Some(last) = LAST.get() {
        // Nowhere to tell of a panic that has been printed.
        let _ = catch_unwind(last);
    }
}
