//! Refused calls: who refused and why, as numbers in shared memory. The host makes text of them.
//!
//! The core never waits: the oldest refusal gives way to a new one, and the host sees by the count that it has missed some.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use hcomm_aicpu::Error;
use hcomm_aicpu::spec::mailbox::{ERROR_WORDS, REFUSAL_STRIDE, REFUSALS, Refusal, RefusalRing};
use hcomm_aicpu::spec::map::REFUSAL_PHYS;

use super::{cpu, port};

/// Leaves `error` for the host. The name is one of the image, which the host can read.
pub fn note(who: &'static str, error: &Error) {
    let ring = (REFUSAL_PHYS + cpu::core_id() * REFUSAL_STRIDE) as *mut RefusalRing;
    // SAFETY: an aligned word of this core's own ring, which stays mapped; the host only reads it, atomically.
    let count = unsafe { AtomicU64::from_ptr(&raw mut (*ring).head) };
    let head = count.load(Ordering::Relaxed);
    // SAFETY: the remainder is a slot of the ring, which is mapped.
    let slot = unsafe { (&raw mut (*ring).slots).cast::<Refusal>().add(head as usize % REFUSALS) };
    // Pairs with the acquire fence of the host: who sees anything of the new refusal sees a count by which the slot is not its.
    fence(Ordering::Release);
    // SAFETY: `slot` lies in the ring of this core, which alone writes it.
    unsafe { (&raw mut (*slot).who).write_volatile(who.as_ptr() as u64) };
    // SAFETY: `slot` lies in the ring of this core, which alone writes it.
    unsafe { (&raw mut (*slot).who_len).write_volatile(who.len() as u64) };
    let from = (&raw const *error).cast::<MaybeUninit<u64>>();
    for word in 0..ERROR_WORDS {
        // SAFETY: an error has as many words, of which some may be padding that is never read.
        let bits = unsafe { from.add(word).read_volatile() };
        // SAFETY: `slot` lies in the ring of this core, which alone writes it, and has `ERROR_WORDS` words for the error.
        unsafe { (&raw mut (*slot).error).cast::<MaybeUninit<u64>>().add(word).write_volatile(bits) };
    }
    // SAFETY: `slot` lies in the ring of this core, which alone writes it, and nothing else refers to it.
    port::return_addresses(unsafe { &mut (*slot).frames });
    // Pairs with the acquire load of the host: who sees the new count sees the refusal.
    count.store(head + 1, Ordering::Release);
}
