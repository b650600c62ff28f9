//! The calling thread: its number, and the number of its device.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of the next thread that asks for one.
static NEXT_THREAD: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THREAD: u64 = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
    /// Id of the process in which this thread is known to use the library; 0: in none.
    static KNOWN_IN: Cell<u32> = const { Cell::new(0) };
    /// Number of the device that this thread has set.
    static CURRENT_DEVICE: Cell<Option<i32>> = const { Cell::new(None) };
}

/// Number of the calling thread. Never used again by another one.
pub fn thread_number() -> u64 {
    THREAD.with(|number| *number)
}

/// Whether the calling thread is known to use the library in process `process`.
pub fn is_known_in(process: u32) -> bool {
    KNOWN_IN.get() == process
}

/// Notes in which process the calling thread is known to use the library; 0: in none.
pub fn set_known_in(process: u32) {
    KNOWN_IN.set(process);
}

/// Number of the calling thread's device, open or not.
pub fn current_index() -> Option<i32> {
    CURRENT_DEVICE.get()
}

/// Sets the number of the calling thread's device.
pub fn set_current_index(index: Option<i32>) {
    CURRENT_DEVICE.set(index);
}
