//! The ring of one processor, as its only writer sees it.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hcomm_aicpu::spec::own_access::{
    Extent, OPEN, OWN_ACCESS_STRIDE, OWN_ACCESSES, OwnAccess, OwnAccessRing, UNIT, UNITS, WRITES,
};

/// Words of a ring.
pub const WORDS: usize = OWN_ACCESS_STRIDE as usize / 8;
/// How often a processor that waits for room looks for it.
const ROOM_POLL: Duration = Duration::from_micros(50);
/// Bytes of code that belong together: accesses of instructions that are this far apart may become one entry, such as those of one
/// loop that the compiler has unrolled.
const NEAR: u64 = 256;

/// An entry that may still grow.
#[derive(Clone, Copy)]
struct Open {
    start: u64,
    origin: u64,
    extent: Extent,
    pc: u64,
    flags: u64,
}

/// Of no bytes and no kind.
const NONE: Open = Open { start: u64::MAX, origin: 0, extent: Extent { len: 0, units: 0 }, pc: 0, flags: u64::MAX };

impl Open {
    /// One past the last byte of those without a gap.
    fn end(&self) -> u64 {
        self.origin + self.extent.len
    }

    /// The units from `addr` to `end`, if these are whole units not far behind the end.
    fn units(&self, addr: u64, end: u64) -> Option<u32> {
        let (from, to) = (addr.checked_sub(self.end())?, end - self.end());
        if !(from | to | self.end()).is_multiple_of(UNIT) || to > UNIT * u64::from(UNITS) {
            return None;
        }
        let below = |bytes: u64| 1_u32.unbounded_shl((bytes / UNIT) as u32).wrapping_sub(1);
        Some(below(to) & !below(from))
    }
}

/// Writer of a ring.
pub struct Writer<'m> {
    ring: &'m [AtomicU64; WORDS],
    /// Records of calls that the processor has written: `head` of their ring.
    calls: &'m AtomicU64,
    /// Launches that the host has given to the processor.
    launches: &'m AtomicU64,
    /// Entries that were put in.
    head: u64,
    /// `tail` as it was read last.
    tail: u64,
    /// `calls` and `launches` at the entries that may still grow.
    epoch: (u64, u64),
    /// The last entries: entry *n* in place `n % OPEN`.
    open: [Open; OPEN],
    /// The call that was executed last.
    caller: u64,
}

impl<'m> Writer<'m> {
    /// Writer of a ring that is all zero. `calls`: the number of call records that the processor has written; `launches`: of
    /// launches that it was given.
    pub fn new(ring: &'m [AtomicU64; WORDS], calls: &'m AtomicU64, launches: &'m AtomicU64) -> Self {
        Self { ring, calls, launches, head: 0, tail: 0, epoch: (0, 0), open: [NONE; OPEN], caller: 0 }
    }

    /// The processor executes a call at `pc`.
    pub fn call(&mut self, pc: u64) {
        self.caller = pc;
    }

    /// The processor has made an access of `len` bytes by the instruction at `pc`.
    pub fn access(&mut self, addr: u64, len: u64, pc: u64, writes: bool) {
        let (end, flags) = (addr + len, if writes { WRITES } else { 0 });
        // Written by the processor of this thread, so that it is what the program has come to.
        let epoch = (self.calls.load(Ordering::Relaxed), self.launches.load(Ordering::Relaxed));
        if epoch != self.epoch {
            self.epoch = epoch;
            self.open = [NONE; OPEN];
        }
        // From the last one back: an entry does not grow past a later one of the other kind that touches the same bytes.
        for back in 1..=OPEN as u64 {
            let number = self.head.wrapping_sub(back);
            let open = &mut self.open[number as usize % OPEN];
            if open.flags != flags {
                if open.start < end && addr < open.origin + open.extent.reach() {
                    break;
                }
                continue;
            }
            if open.start <= addr && end <= open.end() {
                return;
            }
            if open.pc.abs_diff(pc) >= NEAR {
                continue;
            }
            if open.end() == addr && open.extent.units == 0 {
                open.extent.len += len;
            } else if let Some(units) = open.units(addr, end) {
                open.extent = open.extent.with_units(units);
            } else if end == open.start {
                open.start = addr;
                self.slot_word(number, offset_of!(OwnAccess, start)).store(addr, Ordering::Release);
                return;
            } else {
                continue;
            }
            let word = open.extent.to_word();
            self.slot_word(number, offset_of!(OwnAccess, extent)).store(word, Ordering::Release);
            return;
        }
        let extent = Extent { len, units: 0 };
        self.put(Open { start: addr, origin: addr, extent, pc, flags });
    }

    fn put(&mut self, open: Open) {
        let Open { start, origin, extent, pc, flags } = open;
        self.wait_for_room();
        let word = |offset| self.slot_word(self.head, offset);
        word(offset_of!(OwnAccess, start)).store(start, Ordering::Relaxed);
        word(offset_of!(OwnAccess, origin)).store(origin, Ordering::Relaxed);
        word(offset_of!(OwnAccess, extent)).store(extent.to_word(), Ordering::Relaxed);
        word(offset_of!(OwnAccess, pc)).store(pc, Ordering::Relaxed);
        word(offset_of!(OwnAccess, caller)).store(self.caller, Ordering::Relaxed);
        word(offset_of!(OwnAccess, calls)).store(self.epoch.0, Ordering::Relaxed);
        word(offset_of!(OwnAccess, flags)).store(flags, Ordering::Relaxed);
        self.open[self.head as usize % OPEN] = open;
        self.head += 1;
        // Release pairs with the acquire of the host: the entry is there.
        self.word(offset_of!(OwnAccessRing, head)).store(self.head, Ordering::Release);
    }

    /// Waits until the host has read enough: the processor stands still.
    fn wait_for_room(&mut self) {
        while self.head - self.tail >= (OWN_ACCESSES - OPEN) as u64 {
            // Acquire pairs with the release of the host: it has read what is written over now.
            self.tail = self.word(offset_of!(OwnAccessRing, tail)).load(Ordering::Acquire);
            if self.head - self.tail >= (OWN_ACCESSES - OPEN) as u64 {
                std::thread::sleep(ROOM_POLL);
            }
        }
    }

    fn word(&self, offset: usize) -> &'m AtomicU64 {
        &self.ring[offset / 8]
    }

    fn slot_word(&self, number: u64, offset: usize) -> &'m AtomicU64 {
        let slot = (number % OWN_ACCESSES as u64) as usize * size_of::<OwnAccess>();
        self.word(offset_of!(OwnAccessRing, slots) + slot + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Memory {
        ring: Box<[AtomicU64; WORDS]>,
        calls: AtomicU64,
        launches: AtomicU64,
    }

    impl Memory {
        fn new() -> Self {
            let ring: Vec<_> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
            Self {
                ring: ring.into_boxed_slice().try_into().unwrap(),
                calls: AtomicU64::new(0),
                launches: AtomicU64::new(0),
            }
        }

        fn writer(&self) -> Writer<'_> {
            Writer::new(&self.ring, &self.calls, &self.launches)
        }

        /// Start, end and kind of all entries.
        fn entries(&self) -> Vec<(u64, u64, char)> {
            let head = self.ring[0].load(Ordering::Relaxed);
            let entry = |number: u64| {
                let at = offset_of!(OwnAccessRing, slots) / 8 + number as usize % OWN_ACCESSES * 8;
                let [start, origin, extent, flags] =
                    [0, 1, 2, 6].map(|word| self.ring[at + word].load(Ordering::Relaxed));
                let Extent { len, units } = Extent::from_word(extent);
                assert_eq!(units, 0, "a gap is left");
                (start, origin + len, if flags == WRITES { 'w' } else { 'r' })
            };
            (0..head).map(entry).collect()
        }
    }

    #[test]
    fn streams_of_a_loop_are_one_entry_each() {
        let memory = Memory::new();
        let mut writer = memory.writer();
        for index in 0..1000 {
            writer.access(0x1000 + index * 4, 4, 100, false);
            writer.access(0x9000 + index * 4, 4, 104, false);
            writer.access(0x2_0000 + index * 4, 4, 108, true);
        }
        let expected = [(0x1000, 0x1fa0, 'r'), (0x9000, 0x9fa0, 'r'), (0x2_0000, 0x2_0fa0, 'w')];
        assert_eq!(memory.entries(), expected);
    }

    #[test]
    fn loop_that_is_unrolled_out_of_order_has_one_entry_for_each_stream() {
        let memory = Memory::new();
        let mut writer = memory.writer();
        for base in (0..0x1000).step_by(32) {
            for (offset, len) in [(4, 4), (0, 4), (8, 4), (12, 4), (24, 8), (16, 8)] {
                writer.access(0x1000 + base + offset, len, 100, false);
            }
            for (offset, len) in [(8, 8), (0, 8), (24, 8), (16, 8)] {
                writer.access(0x9000 + base + offset, len, 140, true);
            }
        }
        assert_eq!(memory.entries(), [(0x1000, 0x2000, 'r'), (0x9000, 0xa000, 'w')]);
    }

    #[test]
    fn read_of_what_was_written_stays_behind_the_write() {
        let memory = Memory::new();
        let mut writer = memory.writer();
        // Moves bytes up by one word: each but the first read is of what was written before.
        for index in 0..3 {
            writer.access(0x1000 + index * 8, 8, 100, false);
            writer.access(0x1008 + index * 8, 8, 104, true);
        }
        let (r, w) = ('r', 'w');
        let expected = [
            (0x1000, 0x1008, r),
            (0x1008, 0x1010, w),
            (0x1008, 0x1010, r),
            (0x1010, 0x1018, w),
            (0x1010, 0x1018, r),
            (0x1018, 0x1020, w),
        ];
        let found = memory.entries();
        // A write may grow in place: nothing has read behind it.
        let position = |range: (u64, u64), kind| {
            found.iter().position(|(start, end, of)| *start <= range.0 && range.1 <= *end && *of == kind).unwrap()
        };
        for index in 0..2 {
            let word = (0x1008 + index * 8, 0x1010 + index * 8);
            assert!(position(word, w) < position(word, r), "{found:x?}");
        }
        assert!(found.len() <= expected.len());
    }

    #[test]
    fn write_of_what_was_read_stays_behind_the_read() {
        let memory = Memory::new();
        let mut writer = memory.writer();
        writer.access(0x1000, 8, 100, true);
        writer.access(0x1008, 8, 104, false);
        writer.access(0x1008, 8, 100, true);
        assert_eq!(memory.entries(), [(0x1000, 0x1008, 'w'), (0x1008, 0x1010, 'r'), (0x1008, 0x1010, 'w')]);
    }

    #[test]
    fn nothing_grows_past_a_call_or_into_code_that_is_far_away() {
        let memory = Memory::new();
        let mut writer = memory.writer();
        writer.access(0x1000, 4, 100, true);
        memory.calls.store(1, Ordering::Relaxed);
        writer.access(0x1004, 4, 100, true);
        writer.access(0x1004, 4, 100, true);
        writer.access(0x1008, 4, 100 + NEAR, true);
        memory.launches.store(1, Ordering::Relaxed);
        writer.access(0x1008, 4, 100 + NEAR, true);
        writer.call(96);
        writer.access(0x3000, 4, 100, true);
        let caller = offset_of!(OwnAccessRing, slots) / 8 + 4 * 8 + offset_of!(OwnAccess, caller) / 8;
        assert_eq!(memory.ring[caller].load(Ordering::Relaxed), 96);
        let last = (0x1008, 0x100c, 'w');
        assert_eq!(memory.entries(), [(0x1000, 0x1004, 'w'), (0x1004, 0x1008, 'w'), last, last, (0x3000, 0x3004, 'w')]);
    }

    #[test]
    fn full_ring_waits_for_the_host() {
        let memory = Memory::new();
        let room = (OWN_ACCESSES - OPEN) as u64;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = memory.writer();
                for index in 0..2 * room {
                    writer.access(index * 256, 8, 100, true);
                }
            });
            let (head, tail) = (&memory.ring[0], &memory.ring[offset_of!(OwnAccessRing, tail) / 8]);
            while head.load(Ordering::Acquire) < room {
                std::thread::yield_now();
            }
            std::thread::sleep(ROOM_POLL * 4);
            assert_eq!(head.load(Ordering::Acquire), room);
            tail.store(room, Ordering::Release);
        });
        assert_eq!(memory.ring[0].load(Ordering::Relaxed), 2 * room);
    }
}
