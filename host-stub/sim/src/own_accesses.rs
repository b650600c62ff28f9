//! Reader of the accesses by the program's own code, see [`spec::own_access`](hcomm_aicpu::spec::own_access).

use std::mem::offset_of;
use std::sync::atomic::Ordering;

use hcomm_aicpu::spec::map::OWN_ACCESS_PHYS;
use hcomm_aicpu::spec::own_access::{
    Extent, OPEN, OWN_ACCESS_STRIDE, OWN_ACCESSES, OwnAccess, OwnAccessRing, UNIT, UNITS, WRITES,
};

use super::memory::Memory;

/// Longest load that may be one of a kernel that polls.
const POLL_LEN: u64 = 8;

/// Physical address of the ring of `core`.
pub fn ring_phys(core: usize) -> u64 {
    OWN_ACCESS_PHYS + core as u64 * OWN_ACCESS_STRIDE
}

/// Bytes that the program's own code has accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnRange {
    /// First byte.
    pub addr: u64,
    /// Number of bytes.
    pub len: u64,
    /// It has written them.
    pub writes: bool,
    /// They belong to other bytes that were handed over before, or are handed over with them.
    pub is_part: bool,
    /// The instruction.
    pub pc: u64,
    /// The last call before it, or 0.
    pub caller: u64,
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

impl OwnRange {
    /// Whether it is one aligned load of at most 8 bytes, as a kernel polls.
    pub fn is_poll(&self) -> bool {
        let is_aligned = self.len <= POLL_LEN && self.addr.is_multiple_of(self.len.next_power_of_two());
        !self.writes && !self.is_part && is_aligned
    }
}

impl OwnAccessReader {
    /// Reader of a ring that is all zero.
    pub fn new(core: usize) -> Self {
        Self { phys: ring_phys(core), tail: 0, last: [OwnAccess::default(); OPEN] }
    }

    /// Takes what the core has accessed before it wrote the record of a call with a larger `seq` than `calls`: first what the last
    /// ones that were taken have grown by, then the new ones.
    pub fn take<M: Memory>(&mut self, memory: &M, calls: u64, mut each: impl FnMut(OwnRange)) {
        // Acquire pairs with the release store of the writer: the accesses are there.
        let head = self.word(memory, offset_of!(OwnAccessRing, head));
        if head.wrapping_sub(self.tail) > OWN_ACCESSES as u64 {
            log::warn!("ring of own accesses: head {head} behind tail {}; they are skipped", self.tail);
            return self.take_up_to(memory, head);
        }
        for number in self.tail.saturating_sub(OPEN as u64)..self.tail {
            let last = self.last[number as usize % OPEN];
            let [start, extent] = [offset_of!(OwnAccess, start), offset_of!(OwnAccess, extent)]
                .map(|offset| self.word(memory, slot(number) + offset));
            if (start, extent) != (last.start, last.extent) {
                let now = OwnAccess { start, extent, ..last };
                self.last[number as usize % OPEN] = now;
                grown(&last, &now, &mut each);
            }
        }
        let mut tail = self.tail;
        while tail != head {
            let access = self.read(memory, tail);
            if access.calls > calls {
                break;
            }
            self.last[tail as usize % OPEN] = access;
            // Of no bytes so far.
            let nothing = OwnAccess { start: access.origin, extent: 0, ..access };
            grown(&nothing, &access, &mut each);
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
            origin: load(offset_of!(OwnAccess, origin)),
            extent: load(offset_of!(OwnAccess, extent)),
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

/// Hands over what an access has grown by.
fn grown(last: &OwnAccess, now: &OwnAccess, each: &mut impl FnMut(OwnRange)) {
    let mut range = |addr: u64, end: u64, is_part: bool| {
        if addr < end {
            let (len, writes) = (end - addr, now.flags & WRITES != 0);
            each(OwnRange { addr, len, writes, is_part, pc: now.pc, caller: now.caller });
        }
    };
    let (before, after) = (Extent::from_word(last.extent), Extent::from_word(now.extent));
    let end = now.origin + after.len;
    if before.len == 0 {
        range(now.start, end, after.units != 0);
    } else {
        range(now.start, last.start, true);
        range(now.origin + before.len, end, true);
    }
    // Runs of units behind the end. What was there before is handed over again: it is the same access.
    let mut unit = 0;
    while unit < UNITS && after.units >> unit != 0 {
        let first = unit + (after.units >> unit).trailing_zeros();
        let count = (after.units >> first).trailing_ones();
        unit = first + count;
        range(end + UNIT * u64::from(first), end + UNIT * u64::from(unit), true);
    }
}

/// Where access `number` lies in its ring.
fn slot(number: u64) -> usize {
    offset_of!(OwnAccessRing, slots) + (number % OWN_ACCESSES as u64) as usize * size_of::<OwnAccess>()
}
