//! Order between the ring, which is normal memory, and the doorbell.
//!
//! The HAL rings either by a store to a device register, after a full store barrier of its own, or by a store to a word in normal
//! memory, after one that reaches the inner shareable domain only. Whether the task scheduler is inside that domain is not
//! documented, so the full one is ours to make.

/// Makes every store before it visible to every observer of the system before any store after it. Once for a group of
/// entries, before [`Queue::ring`](crate::Queue::ring).
#[inline(always)]
pub fn store() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier touches no memory and no register.
    unsafe {
        core::arch::asm!("dsb st", options(nostack, preserves_flags));
    }
    // Other processors run this against a stand-in of the HAL, which is a thread of the same process.
    #[cfg(not(target_arch = "aarch64"))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}

/// Keeps every access after it behind the loads before it. After [`Queue::head`](crate::Queue::head), before an entry that
/// the device has fetched is written again.
#[inline(always)]
pub fn load() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("dmb ishld", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::Acquire);
}
