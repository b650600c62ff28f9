//! A child that is stopped between `fork` and `exec`. A program of its own: it changes what `fork` does in all of it.

use std::time::{Duration, Instant};

use host_stub::{Device, DeviceOptions, Error};

/// Runs in each child of this process before anything else of it.
extern "C" fn stop() {
    // SAFETY: a plain system call.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Case 143.
#[test]
fn child_that_is_stopped_before_it_becomes_qemu_is_an_error_and_is_ended() {
    // SAFETY: `stop` makes a system call alone.
    assert_eq!(unsafe { libc::pthread_atfork(None, None, Some(stop)) }, 0);
    let started = Instant::now();
    for _ in 0..2 {
        match Device::open(DeviceOptions::default()) {
            Err(Error::Boot(text)) => assert!(text.contains("not started within 10s: process "), "{text}"),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("the child was not stopped"),
        }
    }
    assert!(started.elapsed() < Duration::from_secs(200), "{:?}", started.elapsed());
    // No child is left, not even one that waits to be reaped.
    // SAFETY: the call writes no status.
    let left = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!((left, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::ECHILD)));
}
