//! Writes that return an error where a signal would end the process.

use std::mem::MaybeUninit;
use std::ptr;

/// Signals of a write: the reader of a pipe is gone, or a file has reached the limit of file sizes (RLIMIT_FSIZE).
const OF_WRITES: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Runs `write` so that a closed pipe is the error `EPIPE` and a file at its size limit `EFBIG`, no matter how the
/// process handles the signals SIGPIPE and SIGXFSZ.
pub fn without_write_signals<R>(write: impl FnOnce() -> R) -> R {
    let set = signals(&OF_WRITES);
    let before = mask(libc::SIG_BLOCK, &set);
    // A signal that is pending already is the program's; the system does not keep two of one kind.
    let ours: Vec<_> = OF_WRITES.into_iter().filter(|signal| !is_pending(*signal)).collect();
    let result = write();
    let ours = signals(&ours);
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: reads the set and the time, writes nothing. Both signals are sent to the thread that writes, which blocks
    // them: each is taken here. The call fails when none is left.
    while unsafe { libc::sigtimedwait(&ours, ptr::null_mut(), &now) } > 0 {}
    mask(libc::SIG_SETMASK, &before);
    result
}

fn signals(list: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set, the others change it. The signals exist, so none fails.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in list {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Changes the signals that the calling thread blocks; returns those before.
fn mask(how: libc::c_int, set: &libc::sigset_t) -> libc::sigset_t {
    let mut before = signals(&[]);
    // SAFETY: both sets are initialised, and `how` is one of the three that there are.
    unsafe { libc::pthread_sigmask(how, set, &mut before) };
    before
}

fn is_pending(signal: libc::c_int) -> bool {
    let mut pending = signals(&[]);
    // SAFETY: both calls use an initialised set and a signal that exists.
    unsafe { libc::sigpending(&mut pending) == 0 && libc::sigismember(&pending, signal) == 1 }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write};

    use super::*;

    /// Case 148.
    #[test]
    fn closed_pipe_is_an_error_and_no_signal() {
        // SAFETY: the default action for SIGPIPE, which test programs ignore. No other test of this program relies on it.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (reader, mut writer) = std::io::pipe().unwrap();
        drop(reader);
        for _ in 0..3 {
            let error = without_write_signals(|| writer.write_all(b"text")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
        assert!(!is_pending(libc::SIGPIPE));
    }
}
