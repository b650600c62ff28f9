//! Refused calls: who refused and why, as numbers in shared memory. The host makes text of them.
//!
//! A core never waits: the oldest refusal gives way to a new one, and the host sees by the count that it has missed some.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use hcomm_aicpu::Error;
use hcomm_aicpu::spec::mailbox::{ERROR_WORDS, REFUSAL_STRIDE, REFUSALS, Refusal, RefusalRing};
use hcomm_aicpu::spec::map::REFUSAL_PHYS;
use hcomm_aicpu::spec::runner::{NAMES_PHYS, NAMES_SIZE};

use crate::{core, fault, memory};

/// Names that the host can read: where each is in this process, and its copy in the low part. Its lock is also that of all
/// rings: threads without a core share one.
static NAMES: Mutex<Names> = Mutex::new(Names { copies: Vec::new(), used: 0 });

struct Names {
    /// Address and length of the original, address of the copy.
    copies: Vec<(usize, usize, u64)>,
    /// Bytes of the area that hold copies.
    used: u64,
}

impl Names {
    /// Address of a copy in the low part; 0 if there is no room for one.
    fn copy(&mut self, name: &'static str) -> u64 {
        let original = (name.as_ptr() as usize, name.len());
        if let Some((.., copy)) = self.copies.iter().find(|(ptr, len, _)| (*ptr, *len) == original) {
            return *copy;
        }
        if name.len() as u64 > NAMES_SIZE - self.used {
            return 0;
        }
        let copy = NAMES_PHYS + self.used;
        // SAFETY: the area has room for the name (checked); no other code writes it, and the host reads it after `note` has
        // published a refusal that names it.
        unsafe { name.as_ptr().copy_to_nonoverlapping(memory::low::<u8>(copy), name.len()) };
        self.used += name.len() as u64;
        self.copies.push((original.0, original.1, copy));
        copy
    }
}

/// Leaves `error` for the host, in the ring of the core that runs the caller.
pub fn note(who: &'static str, error: &Error) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let copy = names.copy(who);
    let ring = memory::low::<RefusalRing>(REFUSAL_PHYS + core::of_this_thread() * REFUSAL_STRIDE);
    // SAFETY: an aligned word of a ring, which stays mapped; the host only reads it, and the lock is held.
    let count = unsafe { AtomicU64::from_ptr(&raw mut (*ring).head) };
    let head = count.load(Ordering::Relaxed);
    // SAFETY: the remainder is a slot of the ring, which is mapped.
    let slot = unsafe { (&raw mut (*ring).slots).cast::<Refusal>().add(head as usize % REFUSALS) };
    // Pairs with the acquire fence of the host: who sees anything of the new refusal sees a count by which the slot is not its.
    fence(Ordering::Release);
    // SAFETY: `slot` lies in a ring that is written under the lock alone.
    unsafe {
        (&raw mut (*slot).who).write_volatile(copy);
        (&raw mut (*slot).who_len).write_volatile(who.len() as u64);
    }
    let from = (&raw const *error).cast::<MaybeUninit<u64>>();
    for word in 0..ERROR_WORDS {
        // SAFETY: an error has as many words, of which some may be padding that is never read; the slot has as many for it.
        unsafe {
            let bits = from.add(word).read_volatile();
            (&raw mut (*slot).error).cast::<MaybeUninit<u64>>().add(word).write_volatile(bits);
        }
    }
    // SAFETY: as above; nothing else refers to the slot.
    fault::return_addresses(unsafe { &mut (*slot).frames });
    // Pairs with the acquire load of the host: who sees the new count sees the refusal.
    count.store(head + 1, Ordering::Release);
}
