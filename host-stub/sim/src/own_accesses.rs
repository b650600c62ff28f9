//! Reader of the accesses by the program's own code, see [`spec::own_access`](hcomm_aicpu::spec::own_access).

use std::mem::offset_of;
use std::sync::atomic::Ordering;

use hcomm_aicpu::spec::map::OWN_ACCESS_PHYS;
use hcomm_aicpu::spec::own_access::{OPEN, OWN_ACCESS_STRIDE, OWN_ACCESSES, OwnAccess, OwnAccessRing};

use super::memory::Memory;

/// Physical address of the ring of `core`.
pub fn ring_phys(core: usize) -> u64 {
    OWN_ACCESS_PHYS + core as u64 * OWN_ACCESS_STRIDE
}

/// The one reader of a core's ring. The core waits while its ring is full.
#[derive(Clone, Copy, Debug)]
pub struct OwnAccessReader {
    phys: u64,
    /// Accesses that were taken.
    tail: u64,
    /// What was taken of the last ones: access *n* in place `n % OPEN`. They may have grown since.
    last: [OwnAccess; OPEN],
}

impl OwnAccessReader {
    /// Reader of a ring that is all zero.
    pub fn new(core: usize) -> Self {
        Self { phys: ring_phys(core), tail: 0, last: [OwnAccess::default(); OPEN] }
    }

    /// Takes what the core has accessed before it wrote the record of a call with a larger `seq` than `calls`: first what the last
    /// ones that were taken have grown by, then the new ones.
    pub fn take<M: Memory>(&mut self, memory: &M, calls: u64, mut each: impl FnMut(OwnAccess)) {
        // Acquire pairs with the release store of the writer: the accesses are there.
        let head = self.word(memory, offset_of!(OwnAccessRing, head));
        if head.wrapping_sub(self.tail) > OWN_ACCESSES as u64 {
            log::warn!("ring of own accesses: head {head} behind tail {}; they are skipped", self.tail);
            return self.take_up_to(memory, head);
        }
        for number in self.tail.saturating_sub(OPEN as u64)..self.tail {
            let end = self.word(memory, slot(number) + offset_of!(OwnAccess, end));
            let last = &mut self.last[number as usize % OPEN];
            if end > last.end {
                each(OwnAccess { start: last.end, end, ..*last });
                last.end = end;
            }
        }
        let mut tail = self.tail;
        while tail != head {
            let access = self.read(memory, tail);
            if access.calls > calls {
                break;
            }
            self.last[tail as usize % OPEN] = access;
            each(access);
            tail += 1;
        }
        if tail != self.tail {
            self.take_up_to(memory, tail);
        }
    }

    /// Drops what is there: it belongs to no kernel.
    pub fn skip<M: Memory>(&mut self, memory: &M) {
        self.take(memory, u64::MAX, |_| {});
    }

    /// Accesses that were not taken.
    pub fn waiting<M: Memory>(&self, memory: &M) -> u64 {
        self.word(memory, offset_of!(OwnAccessRing, head)).wrapping_sub(self.tail)
    }

    fn read<M: Memory>(&self, memory: &M, number: u64) -> OwnAccess {
        let load = |offset| self.word(memory, slot(number) + offset);
        OwnAccess {
            start: load(offset_of!(OwnAccess, start)),
            end: load(offset_of!(OwnAccess, end)),
            pc: load(offset_of!(OwnAccess, pc)),
            caller: load(offset_of!(OwnAccess, caller)),
            calls: load(offset_of!(OwnAccess, calls)),
            flags: load(offset_of!(OwnAccess, flags)),
        }
    }

    fn word<M: Memory>(&self, memory: &M, offset: usize) -> u64 {
        memory.word64(self.phys + offset as u64).load(Ordering::Acquire)
    }

    fn take_up_to<M: Memory>(&mut self, memory: &M, tail: u64) {
        self.tail = tail;
        // Release pairs with the acquire of the writer: it writes over an access only after we have read it.
        memory.word64(self.phys + offset_of!(OwnAccessRing, tail) as u64).store(tail, Ordering::Release);
    }
}

/// Where access `number` lies in its ring.
fn slot(number: u64) -> usize {
    offset_of!(OwnAccessRing, slots) + (number % OWN_ACCESSES as u64) as usize * size_of::<OwnAccess>()
}
