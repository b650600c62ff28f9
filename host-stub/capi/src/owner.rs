//! Which process the state of this library belongs to.
//!
//! A forked child has a copy of the memory and none of the threads: a lock that another thread held stays locked, and device
//! and schedulers are the parent's. So while the parent had a device open, or was inside a call, every call of the child is
//! refused before it touches anything. A child that was forked when nothing was in use starts with a state of its own.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::error::CallError;

/// Id of the process that the state belongs to; 0: no call has been made.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Calls that are under way and devices that are open.
static IN_USE: AtomicU64 = AtomicU64::new(0);

/// Something of the state is in use until this is dropped.
pub struct InUse(());

impl InUse {
    /// Counts a device that is open, or a call that is under way.
    pub fn new() -> Self {
        // SeqCst here and below: the cost is small compared to the guarded calls, and a fork copies one moment of both.
        IN_USE.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        IN_USE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Starts a call.
///
/// # Errors
/// [`CallError::Forked`]: the state was in use by another process when this one was forked from it.
pub fn enter() -> Result<InUse, CallError> {
    let pid = std::process::id();
    loop {
        let owner = OWNER.load(Ordering::SeqCst);
        if owner == pid {
            return Ok(InUse::new());
        }
        if owner != 0 && IN_USE.load(Ordering::SeqCst) != 0 {
            // Another thread of this process may have taken the state over just now.
            if OWNER.load(Ordering::SeqCst) == pid {
                continue;
            }
            return Err(CallError::Forked { owner });
        }
        // Of several threads one takes it over; all of them then find it theirs.
        let _ = OWNER.compare_exchange(owner, pid, Ordering::SeqCst, Ordering::SeqCst);
    }
}
