//! Notices when a thread begins to use this library, and when it ends: the devices that it has set count it no longer, and no rank
//! waits for it.
//!
//! By a key of thread-specific data of the C library, and not by a thread-local of Rust: the destructor of a key runs again for
//! a thread that calls [`watch`] in the destructor of another key, which is later than all of Rust's.

use std::ffi::{c_int, c_uint, c_void};
use std::panic::catch_unwind;
use std::sync::OnceLock;

use super::process::process;
use super::this_thread::{is_known_in, set_known_in, thread_number};
use super::{owner, ranks};

unsafe extern "C" {
    /// POSIX. Makes a key; `destructor` is called with the value of each thread that ends, unless it is null.
    fn pthread_key_create(key: *mut c_uint, destructor: unsafe extern "C" fn(*mut c_void)) -> c_int;
    /// POSIX. Sets the calling thread's value of a key.
    fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
}

/// The calling thread uses this library. In a process without a free key the end of threads is not noticed.
pub fn watch() {
    let process = std::process::id();
    if is_known_in(process) {
        return;
    }
    set_known_in(process);
    ranks::thread_begins();
    static KEY: OnceLock<Option<c_uint>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` can be written. The destructor stays mapped: libhcomm_sim is linked to stay (`-z nodelete`).
        let code = unsafe { pthread_key_create(&raw mut key, at_end) };
        (code == 0).then_some(key)
    });
    if let Some(key) = *key {
        // Counted from 1, since null means that there is no value. If there is no memory for it, the end is not noticed.
        let value = std::ptr::without_provenance(thread_number() as usize + 1);
        // SAFETY: the key was made above and is never deleted.
        let _ = unsafe { pthread_setspecific(key, value) };
    }
}

/// # Safety
/// No requirement: the value is a number, not an address.
unsafe extern "C" fn at_end(value: *mut c_void) {
    let thread = value.addr() as u64 - 1;
    // Nothing may unwind into the C library; a panic has printed its message.
    let _ = catch_unwind(|| thread_ended(thread));
    // A call in the destructor of a later key counts it again.
    set_known_in(0);
}

/// A thread has ended. Devices that it has set and not reset stay open, but it no longer counts when other threads reset them.
fn thread_ended(thread: u64) {
    // In a forked child the threads are not those that have set the devices, and the state may be locked.
    let Ok(_in_use) = owner::enter() else { return };
    let mut process = process();
    let users = process.devices.values_mut().flat_map(|open| &mut open.users);
    users.filter(|user| user.thread == thread).for_each(|user| user.has_ended = true);
    drop(process);
    ranks::thread_ended(thread);
}
