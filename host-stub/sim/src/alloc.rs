//! Allocator of HBM: exact sizes, a free page between allocations, and an answer why an access is wrong.

use std::collections::{BTreeMap, VecDeque};

use hcomm_aicpu::spec::runner::HBM_STEP;

use crate::event::site::Place;
use crate::message::debug_is_the_message;

/// Page of the device, in bytes. Allocations start on one, so that a free page lies between any two.
pub const PAGE: u64 = 4096;
/// Freed ranges of the user that are remembered, to tell "freed" from "never allocated": more than those that rest.
const REMEMBERED: usize = 8192;
/// Most freed ranges that rest.
const RESTING_MAX: usize = 4096;
/// Part of HBM that may rest: one byte in so many.
const RESTING_PART: u64 = 8;
/// Allocations from this size on give their memory back as soon as they are freed.
const LARGE: u64 = 64 << 10;
/// Memory of smaller ones that is kept for the next allocations.
const KEPT: u64 = 8 << 20;

/// What an allocation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Buffers of the user, and the communicator's.
    User,
    /// Ring of a hardware queue.
    Ring,
    /// Table of thread descriptors.
    ThreadTable,
    /// Table of communicators.
    CommTable,
    /// Table of channel descriptors.
    ChannelTable,
    /// Work ring of a channel.
    WorkRing,
    /// Notify ids of a thread.
    Notify,
    /// Parameters of a launch.
    Args,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "a user buffer",
            Self::Ring => "the ring of a queue",
            Self::ThreadTable => "the thread table",
            Self::CommTable => "the table of communicators",
            Self::ChannelTable => "the channel table",
            Self::WorkRing => "the work ring of a channel",
            Self::Notify => "a notify table",
            Self::Args => "launch parameters",
        }
    }
}

/// Why a range may not be accessed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// End of the range is above 2^64.
    #[error("{addr:#x} + {len} bytes is past the end of the address space")]
    Overflow {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
    },
    /// In the first page of HBM, which is never mapped.
    #[error("{addr:#x} is in the page at the start of hbm that is never mapped")]
    FirstPage {
        /// First byte.
        addr: u64,
    },
    /// Not an address of this device.
    #[error("{addr:#x} is not in hbm, which is {base:#x}..{end:#x}")]
    OutsideHbm {
        /// First byte.
        addr: u64,
        /// Start of HBM.
        base: u64,
        /// End of HBM.
        end: u64,
    },
    /// In no allocation, past or present.
    #[error("{addr:#x} was never allocated")]
    NeverAllocated {
        /// First byte.
        addr: u64,
    },
    /// In an allocation that has been freed.
    #[error("{addr:#x} is in {start:#x}..{end:#x}, which was freed{place} {}", when_text(*.launches))]
    Freed {
        /// First byte.
        addr: u64,
        /// Start of the freed range.
        start: u64,
        /// End of the freed range.
        end: u64,
        /// Launches that had been queued on the device by then.
        launches: u64,
        /// Where the program has freed it.
        place: Place,
    },
    /// Starts inside an allocation and ends outside.
    #[error("{addr:#x} + {len} bytes leaves its allocation {start:#x}..{end:#x}")]
    LeavesAllocation {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
        /// Start of the allocation.
        start: u64,
        /// End of the allocation.
        end: u64,
    },
    /// The allocation is the device's own.
    #[error("{addr:#x} is in {}, which only the device may touch", kind.name())]
    Reserved {
        /// First byte.
        addr: u64,
        /// What is there.
        kind: Kind,
    },
}
debug_is_the_message!(AccessError);

/// When an allocation was freed.
fn when_text(launches: u64) -> String {
    match launches {
        0 => "before the first launch was queued".to_owned(),
        launches => format!("after launch {launches} was queued"),
    }
}

/// Why there is no allocation.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AllocError {
    /// A size of 0.
    #[error("an allocation of 0 bytes")]
    Zero,
    /// No gap is large enough.
    #[error("no room for {len} bytes: the largest free range of hbm has {largest}")]
    OutOfMemory {
        /// Bytes asked for.
        len: u64,
        /// Bytes of the largest gap.
        largest: u64,
    },
}
debug_is_the_message!(AllocError);

/// Why an address was not freed.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FreeError {
    /// Not the first byte of an allocation.
    #[error("{0:#x} is not the start of an allocation")]
    NotAnAllocation(u64),
    /// Freed before.
    #[error("{0:#x} has been freed already")]
    Twice(u64),
    /// The device's own.
    #[error("{0:#x} is {name}, which is not the caller's to free", name = .1.name())]
    Reserved(u64, Kind),
}
debug_is_the_message!(FreeError);

#[derive(Clone, Debug)]
struct Block {
    len: u64,
    kind: Kind,
    /// Where the program has allocated it.
    place: Place,
}

/// A range that the user has freed and not been given again.
#[derive(Clone, Debug)]
struct Freed {
    start: u64,
    end: u64,
    launches: u64,
    place: Place,
}

/// Ranges that the user has freed and not been given again, the newest [`REMEMBERED`] of them. They do not overlap.
#[derive(Debug, Default)]
struct FreedRanges {
    /// By first byte, each with its number.
    ranges: BTreeMap<u64, (u64, Freed)>,
    /// First bytes by number, which says how old a range is.
    order: BTreeMap<u64, u64>,
    next: u64,
}

impl FreedRanges {
    fn add(&mut self, freed: Freed) {
        if self.order.len() >= REMEMBERED
            && let Some((_, start)) = self.order.pop_first()
        {
            self.ranges.remove(&start);
        }
        self.next += 1;
        self.order.insert(self.next, freed.start);
        self.ranges.insert(freed.start, (self.next, freed));
    }

    /// Takes `start..end` out: what lies before and behind it stays.
    fn forget(&mut self, start: u64, end: u64) {
        while let Some((&first, (_, freed))) = self.ranges.range(..end).next_back()
            && freed.end > start
        {
            let Some((number, freed)) = self.ranges.remove(&first) else { return };
            self.order.remove(&number);
            let before = Freed { end: freed.end.min(start), ..freed.clone() };
            let behind = Freed { start: freed.start.max(end), ..freed };
            for rest in [before, behind] {
                if rest.start < rest.end {
                    self.add(rest);
                }
            }
        }
    }

    /// The range that `addr` lies in.
    fn at(&self, addr: u64) -> Option<&Freed> {
        self.ranges.range(..=addr).next_back().map(|(_, (_, freed))| freed).filter(|freed| addr < freed.end)
    }

    fn starts_at(&self, addr: u64) -> bool {
        self.ranges.contains_key(&addr)
    }
}

/// Allocations of one device.
#[derive(Debug)]
pub struct Allocator {
    base: u64,
    end: u64,
    live: BTreeMap<u64, Block>,
    /// Free ranges by start, in whole pages. Neighbours are always merged.
    free: BTreeMap<u64, u64>,
    freed: FreedRanges,
    /// Ranges of the user that were freed and are not used again yet, oldest first: start and size. Their memory has been given
    /// back.
    resting: VecDeque<(u64, u64)>,
    resting_bytes: u64,
    /// Most of them; 0: freed ranges do not rest.
    resting_limit: u64,
    /// Of those that were freed now: their memory is to be given back.
    rests_now: Vec<(u64, u64)>,
    /// Free ranges whose memory may be in use, by start.
    kept: BTreeMap<u64, u64>,
    kept_bytes: u64,
    /// One of them was a large allocation.
    has_large: bool,
    launches: u64,
    /// Steps that have ever held an allocation, a bit for each.
    steps: Vec<u64>,
}

impl Allocator {
    /// An allocator of HBM `base..base + size`, whose first page is never given out.
    pub fn new(base: u64, size: u64) -> Self {
        // The page behind an allocation is part of what it takes; the last one must be followed by one too.
        let free = BTreeMap::from([(base + PAGE, size - PAGE)]);
        Self {
            base,
            end: base + size,
            live: BTreeMap::new(),
            free,
            freed: FreedRanges::default(),
            resting: VecDeque::new(),
            resting_bytes: 0,
            resting_limit: 0,
            rests_now: Vec::new(),
            kept: BTreeMap::new(),
            kept_bytes: 0,
            has_large: false,
            launches: 0,
            steps: vec![0; size.div_ceil(64 * HBM_STEP) as usize],
        }
    }

    /// What the user frees rests before it is used again, so that a late use of it is seen: at most an eighth of HBM and 4096
    /// ranges, and only as long as there is other memory.
    pub fn with_rest(mut self) -> Self {
        self.resting_limit = (self.end - self.base) / RESTING_PART;
        self
    }

    /// Allocates `len` bytes, aligned to a page, and gives the address.
    ///
    /// # Errors
    /// [`AllocError`].
    pub fn allocate(&mut self, len: u64, kind: Kind) -> Result<u64, AllocError> {
        if len == 0 {
            return Err(AllocError::Zero);
        }
        let out_of_memory = |free: &BTreeMap<u64, u64>| AllocError::OutOfMemory {
            len,
            largest: free.values().map(|size| size.saturating_sub(PAGE)).max().unwrap_or(0),
        };
        let Some(extent) = extent(len) else { return Err(out_of_memory(&self.free)) };
        let find = |free: &BTreeMap<u64, u64>| {
            free.iter().find(|&(_, &size)| size >= extent).map(|(start, size)| (*start, *size))
        };
        let Some((start, size)) = find(&self.free).or_else(|| {
            self.end_rest(0, 0);
            find(&self.free)
        }) else {
            return Err(out_of_memory(&self.free));
        };
        self.free.remove(&start);
        if size > extent {
            self.free.insert(start + extent, size - extent);
        }
        self.live.insert(start, Block { len, kind, place: Place::default() });
        for step in (start - self.base) / HBM_STEP..=(start + len - 1 - self.base) / HBM_STEP {
            self.steps[(step / 64) as usize] |= 1 << (step % 64);
        }
        let again: Vec<u64> = self.kept.range(start..start + extent).map(|(start, _)| *start).collect();
        for start in again {
            self.kept_bytes -= self.kept.remove(&start).unwrap_or(0);
        }
        // What the user has again is no longer "freed". What the device takes for itself still is.
        if kind == Kind::User {
            self.freed.forget(start, start + len);
        }
        Ok(start)
    }

    /// Ends the rest of the oldest ranges until at most `count` with `bytes` bytes are left.
    fn end_rest(&mut self, count: usize, bytes: u64) {
        while self.resting.len() > count || self.resting_bytes > bytes {
            let Some((start, size)) = self.resting.pop_front() else { return };
            self.resting_bytes -= size;
            self.add_free(start, size);
        }
    }

    /// A range can be allocated.
    fn add_free(&mut self, addr: u64, extent: u64) {
        let (mut start, mut size) = (addr, extent);
        if let Some((&before, &before_size)) = self.free.range(..addr).next_back()
            && before + before_size == addr
        {
            self.free.remove(&before);
            start = before;
            size += before_size;
        }
        if let Some(after_size) = self.free.remove(&(start + size)) {
            size += after_size;
        }
        self.free.insert(start, size);
    }

    /// Counts a launch: messages tell time by them.
    pub fn note_launch(&mut self) {
        self.launches += 1;
    }

    /// Frees the user's allocation that starts at `addr` and gives its length.
    ///
    /// # Errors
    /// [`FreeError`].
    pub fn free_user(&mut self, addr: u64) -> Result<u64, FreeError> {
        match self.live.get(&addr) {
            Some(Block { kind: Kind::User, .. }) => self.free(addr),
            Some(_) if self.freed.starts_at(addr) => Err(FreeError::Twice(addr)),
            Some(block) => Err(FreeError::Reserved(addr, block.kind)),
            None => self.free(addr),
        }
    }

    /// Frees the allocation that starts at `addr`, of any kind, and gives its length.
    ///
    /// # Errors
    /// [`FreeError`].
    pub fn free(&mut self, addr: u64) -> Result<u64, FreeError> {
        let Some(block) = self.live.remove(&addr) else {
            let twice = self.freed.starts_at(addr);
            return Err(if twice { FreeError::Twice(addr) } else { FreeError::NotAnAllocation(addr) });
        };
        let extent = extent(block.len).expect("it was allocated");
        if block.kind == Kind::User {
            let (end, launches) = (addr + block.len, self.launches);
            self.freed.add(Freed { start: addr, end, launches, place: Place::default() });
            if extent <= self.resting_limit {
                self.resting.push_back((addr, extent));
                self.resting_bytes += extent;
                self.rests_now.push((addr, extent));
                self.end_rest(RESTING_MAX, self.resting_limit);
                return Ok(block.len);
            }
        }
        self.add_free(addr, extent);
        self.kept.insert(addr, extent);
        self.kept_bytes += extent;
        self.has_large |= extent >= LARGE;
        Ok(block.len)
    }

    /// Ranges whose memory is to be given back to the system now, after something was freed: start and bytes.
    pub fn take_unused(&mut self) -> Vec<(u64, u64)> {
        let rests_now = std::mem::take(&mut self.rests_now);
        if !self.has_large && self.kept_bytes <= KEPT {
            return rests_now;
        }
        self.has_large = false;
        let mut unused = rests_now;
        for (start, extent) in std::mem::take(&mut self.kept) {
            match unused.last_mut() {
                Some((before, len)) if *before + *len == start => *len += extent,
                _ => unused.push((start, extent)),
            }
        }
        self.kept_bytes = 0;
        unused
    }

    /// Whether `len` bytes at `addr` lie in one live user allocation. A length of 0 needs a valid first byte.
    ///
    /// # Errors
    /// [`AccessError`]: why not.
    pub fn check_user(&self, addr: u64, len: u64) -> Result<(), AccessError> {
        let Some(last) = addr.checked_add(len) else { return Err(AccessError::Overflow { addr, len }) };
        if addr < self.base || addr >= self.end {
            return Err(AccessError::OutsideHbm { addr, base: self.base, end: self.end });
        }
        if addr < self.base + PAGE {
            return Err(AccessError::FirstPage { addr });
        }
        let freed = || {
            let Freed { start, end, launches, place } = self.freed.at(addr)?.clone();
            Some(AccessError::Freed { addr, start, end, launches, place })
        };
        match self.live.range(..=addr).next_back() {
            Some((&start, block)) if addr < start + block.len => {
                if block.kind != Kind::User {
                    Err(freed().unwrap_or(AccessError::Reserved { addr, kind: block.kind }))
                } else if last > start + block.len {
                    Err(AccessError::LeavesAllocation { addr, len, start, end: start + block.len })
                } else {
                    Ok(())
                }
            }
            _ => Err(freed().unwrap_or(AccessError::NeverAllocated { addr })),
        }
    }

    /// What the live allocation that `addr` lies in is for.
    pub fn kind_at(&self, addr: u64) -> Option<Kind> {
        let (start, block) = self.live.range(..=addr).next_back()?;
        (addr < start + block.len).then_some(block.kind)
    }

    /// Steps of [`HBM_STEP`] bytes that have ever held an allocation: bit *n* of word *n / 64* is step *n*.
    pub fn steps(&self) -> &[u64] {
        &self.steps
    }

    /// Where `addr` is, in words: in which allocation, or how far from the nearest one. `None`: not in HBM.
    pub fn place(&self, addr: u64) -> Option<String> {
        if !(self.base..self.end).contains(&addr) {
            return None;
        }
        let text =
            |(start, block): (&u64, &Block)| format!("{} {start:#x}..{:#x}", block.kind.name(), start + block.len);
        let before = self.live.range(..=addr).next_back();
        if let Some(inside) = before.filter(|(start, block)| addr < **start + block.len) {
            return Some(format!("in {}", text(inside)));
        }
        let behind = before.map(|one| (addr - (one.0 + one.1.len), format!("bytes after {}", text(one))));
        let ahead = self.live.range(addr..).next().map(|one| (one.0 - addr, format!("bytes before {}", text(one))));
        let nearest = behind.into_iter().chain(ahead).min_by_key(|(bytes, _)| *bytes);
        Some(nearest.map_or("nothing is allocated".to_owned(), |(bytes, text)| format!("{bytes} {text}")))
    }

    /// Bytes that are not allocated. No single allocation may get all of them: gaps count as far as they reach.
    pub fn free_bytes(&self) -> u64 {
        self.free.values().sum::<u64>() + self.resting_bytes
    }

    /// Allocations that the user has not freed: first byte, length, and where the program has made them.
    pub fn of_user(&self) -> impl Iterator<Item = (u64, u64, &Place)> {
        let of_user = self.live.iter().filter(|(_, block)| block.kind == Kind::User);
        of_user.map(|(addr, block)| (*addr, block.len, &block.place))
    }

    /// The live allocation that starts at `addr` was made at `place`.
    pub fn made_at(&mut self, addr: u64, place: Place) {
        if let Some(block) = self.live.get_mut(&addr) {
            block.place = place;
        }
    }

    /// The range of the user that starts at `addr` was freed at `place`.
    pub fn freed_at(&mut self, addr: u64, place: Place) {
        if let Some((_, freed)) = self.freed.ranges.get_mut(&addr) {
            freed.place = place;
        }
    }

    /// Live allocations.
    pub fn live(&self) -> usize {
        self.live.len()
    }
}

/// What `len` bytes take: whole pages, and the free page behind them.
fn extent(len: u64) -> Option<u64> {
    len.checked_next_multiple_of(PAGE)?.checked_add(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x12c0_0000_0000;

    fn allocator() -> Allocator {
        Allocator::new(BASE, 1 << 20)
    }

    #[test]
    fn a_free_page_lies_between_allocations() {
        let mut alloc = allocator();
        let first = alloc.allocate(1, Kind::User).unwrap();
        let second = alloc.allocate(4096, Kind::User).unwrap();
        let third = alloc.allocate(4097, Kind::User).unwrap();
        assert_eq!((first, second, third), (BASE + 0x1000, BASE + 0x3000, BASE + 0x5000));
    }

    /// Case 344.
    #[test]
    fn an_address_is_told_by_the_nearest_allocation() {
        let mut alloc = Allocator::new(BASE, 1 << 30);
        let place = |alloc: &Allocator, addr| alloc.place(addr).unwrap();
        assert_eq!((alloc.place(BASE - 1), alloc.place(BASE + (1 << 30))), (None, None));
        assert_eq!(place(&alloc, BASE), "nothing is allocated");
        let (first, second) = (alloc.allocate(100, Kind::User).unwrap(), alloc.allocate(64, Kind::Ring).unwrap());
        let names = (
            format!("a user buffer {first:#x}..{:#x}", first + 100),
            format!("the ring of a queue {second:#x}..{:#x}", second + 64),
        );
        assert_eq!(place(&alloc, first + 99), format!("in {}", names.0));
        assert_eq!(place(&alloc, first + 100), format!("0 bytes after {}", names.0));
        assert_eq!(place(&alloc, second - 8), format!("8 bytes before {}", names.1));
        assert_eq!(place(&alloc, BASE), format!("4096 bytes before {}", names.0));
    }

    #[test]
    fn steps_stay_once_they_have_held_an_allocation() {
        let mut alloc = Allocator::new(BASE, 8 << 30);
        assert_eq!(alloc.steps(), [0, 0]);
        let first = alloc.allocate(1, Kind::User).unwrap();
        assert_eq!(alloc.steps(), [1, 0]);
        let second = alloc.allocate(2 * HBM_STEP, Kind::User).unwrap();
        assert_eq!(alloc.steps(), [7, 0]);
        alloc.free(first).unwrap();
        alloc.free(second).unwrap();
        assert_eq!(alloc.steps(), [7, 0]);
    }

    #[test]
    fn ranges_are_checked_to_the_byte() {
        let mut alloc = allocator();
        let addr = alloc.allocate(100, Kind::User).unwrap();
        let (start, end) = (addr, addr + 100);
        assert_eq!(alloc.check_user(addr, 100), Ok(()));
        assert_eq!(alloc.check_user(addr + 99, 1), Ok(()));
        let leaves = AccessError::LeavesAllocation { addr, len: 101, start, end };
        assert_eq!(alloc.check_user(addr, 101), Err(leaves));
        assert_eq!(alloc.check_user(end, 1), Err(AccessError::NeverAllocated { addr: end }));
        assert_eq!(alloc.check_user(addr - 1, 1), Err(AccessError::FirstPage { addr: addr - 1 }));
        assert_eq!(alloc.check_user(u64::MAX, 2), Err(AccessError::Overflow { addr: u64::MAX, len: 2 }));
        let outside = AccessError::OutsideHbm { addr: 0, base: BASE, end: BASE + (1 << 20) };
        assert_eq!(alloc.check_user(0, 1), Err(outside));
    }

    #[test]
    fn freed_and_reserved_have_their_own_answer() {
        let mut alloc = allocator();
        let ring = alloc.allocate(64, Kind::Ring).unwrap();
        let addr = alloc.allocate(100, Kind::User).unwrap();
        assert_eq!(alloc.check_user(ring, 1), Err(AccessError::Reserved { addr: ring, kind: Kind::Ring }));
        assert_eq!(alloc.free_user(ring), Err(FreeError::Reserved(ring, Kind::Ring)));
        assert_eq!(alloc.free_user(addr + 1), Err(FreeError::NotAnAllocation(addr + 1)));
        assert_eq!(alloc.free_user(addr), Ok(100));
        assert_eq!(alloc.free_user(addr), Err(FreeError::Twice(addr)));
        let freed =
            AccessError::Freed { addr: addr + 7, start: addr, end: addr + 100, launches: 0, place: Place::default() };
        assert_eq!(alloc.check_user(addr + 7, 1), Err(freed));
    }

    /// Case 107.
    #[test]
    fn freed_memory_is_told_as_freed_whatever_the_device_puts_there() {
        let mut alloc = allocator();
        let addr = alloc.allocate(3 * PAGE, Kind::User).unwrap();
        alloc.note_launch();
        alloc.free_user(addr).unwrap();
        // Miri takes too long for more.
        for _ in 0..if cfg!(miri) { 4 } else { 2 * REMEMBERED } {
            let args = alloc.allocate(64, Kind::Args).unwrap();
            assert_eq!(args, addr);
            let freed =
                AccessError::Freed { addr, start: addr, end: addr + 3 * PAGE, launches: 1, place: Place::default() };
            assert_eq!(alloc.check_user(addr, 8), Err(freed.clone()));
            assert!(freed.to_string().ends_with(", which was freed after launch 1 was queued"), "{freed}");
            assert_eq!(alloc.free_user(addr), Err(FreeError::Twice(addr)));
            alloc.free(args).unwrap();
        }
        // The user's next allocation takes a part of it; the rest stays freed.
        assert_eq!(alloc.allocate(PAGE, Kind::User), Ok(addr));
        assert_eq!(alloc.check_user(addr, PAGE), Ok(()));
        let at = addr + 2 * PAGE;
        let freed = AccessError::Freed {
            addr: at,
            start: addr + PAGE,
            end: addr + 3 * PAGE,
            launches: 1,
            place: Place::default(),
        };
        assert_eq!(alloc.check_user(at, 1), Err(freed));
    }

    /// Case 102.
    #[test]
    #[cfg_attr(miri, ignore = "makes 10,000 allocations, which takes minutes there")]
    fn memory_of_many_small_allocations_is_given_back() {
        let mut alloc = Allocator::new(BASE, 1 << 30);
        let args: Vec<u64> = (0..10_000).map(|_| alloc.allocate(64, Kind::Args).unwrap()).collect();
        let mut given_back = 0;
        for addr in args {
            alloc.free(addr).unwrap();
            let unused = alloc.take_unused();
            assert!(unused.len() <= 1, "neighbours are one range: {unused:?}");
            given_back += unused.iter().map(|(_, len)| len).sum::<u64>();
        }
        assert!(alloc.kept_bytes <= KEPT && given_back + alloc.kept_bytes == 10_000 * 2 * PAGE, "{given_back}");
        // The same page again and again is no reason to give anything back.
        for _ in 0..10_000 {
            let addr = alloc.allocate(64, Kind::Args).unwrap();
            alloc.free(addr).unwrap();
            assert_eq!(alloc.take_unused(), []);
        }
        let large = alloc.allocate(LARGE, Kind::User).unwrap();
        alloc.free(large).unwrap();
        assert!(alloc.take_unused().iter().any(|(start, len)| *start <= large && large + LARGE <= start + len));
    }

    /// Case 322.
    #[test]
    fn freed_ranges_rest_before_they_are_used_again() {
        let mut alloc = allocator().with_rest();
        let first = alloc.allocate(100, Kind::User).unwrap();
        let before = alloc.free_bytes();
        alloc.free_user(first).unwrap();
        assert_eq!(alloc.take_unused(), [(first, 2 * PAGE)], "its pages are given back at once");
        assert_eq!(alloc.free_bytes(), before + 2 * PAGE, "it counts as free");
        let second = alloc.allocate(100, Kind::User).unwrap();
        assert_ne!(first, second);
        let freed =
            AccessError::Freed { addr: first, start: first, end: first + 100, launches: 0, place: Place::default() };
        assert_eq!(alloc.check_user(first, 1), Err(freed));
        assert_eq!(alloc.free_user(first), Err(FreeError::Twice(first)));
        // An eighth of 1 MiB are 32 pages: the 17th range of two pages ends the rest of the oldest one.
        for _ in 0..16 {
            let addr = alloc.allocate(100, Kind::User).unwrap();
            assert_ne!(addr, first);
            alloc.free_user(addr).unwrap();
        }
        assert_eq!(alloc.allocate(100, Kind::User), Ok(first));
        assert_eq!(alloc.check_user(first, 100), Ok(()));
    }

    #[test]
    fn rest_ends_before_an_allocation_fails() {
        let mut alloc = allocator().with_rest();
        let blocks: Vec<_> = std::iter::from_fn(|| alloc.allocate(PAGE, Kind::User).ok()).collect();
        assert_eq!(blocks.len(), 127);
        let addr = blocks[3];
        alloc.free_user(addr).unwrap();
        assert_eq!(alloc.allocate(PAGE, Kind::User), Ok(addr));
        // What is longer than all that may rest does not rest.
        let mut alloc = allocator().with_rest();
        let addr = alloc.allocate(1 << 19, Kind::User).unwrap();
        alloc.free_user(addr).unwrap();
        assert_eq!(alloc.allocate(1 << 19, Kind::User), Ok(addr));
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes 10,000 allocations, which takes minutes there")]
    fn number_of_ranges_that_rest_or_are_remembered_is_limited() {
        let mut alloc = Allocator::new(BASE, 1 << 32).with_rest();
        let blocks: Vec<_> = (0..10_000).map(|_| alloc.allocate(8, Kind::User).unwrap()).collect();
        for addr in &blocks {
            alloc.free_user(*addr).unwrap();
        }
        assert_eq!(alloc.resting.len(), RESTING_MAX);
        assert_eq!((alloc.freed.ranges.len(), alloc.freed.order.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(alloc.of_user().count(), 0);
        let is_known = |addr: u64| matches!(alloc.check_user(addr, 1), Err(AccessError::Freed { .. }));
        assert!(is_known(blocks[9_999]) && is_known(blocks[10_000 - REMEMBERED]) && !is_known(blocks[0]));
    }

    #[test]
    fn freed_ranges_merge_and_are_used_again() {
        let mut alloc = allocator();
        let largest = (1 << 20) - 2 * PAGE;
        let blocks: Vec<_> = (0..8).map(|_| alloc.allocate(4096, Kind::User).unwrap()).collect();
        for index in [1, 3, 2, 0, 7, 5, 6, 4] {
            alloc.free(blocks[index]).unwrap();
        }
        assert_eq!(alloc.allocate(largest + 1, Kind::User), Err(AllocError::OutOfMemory { len: largest + 1, largest }));
        let addr = alloc.allocate(largest, Kind::User).unwrap();
        assert_eq!((addr, alloc.check_user(addr, largest)), (BASE + PAGE, Ok(())));
        assert_eq!(alloc.allocate(u64::MAX, Kind::User), Err(AllocError::OutOfMemory { len: u64::MAX, largest: 0 }));
        assert_eq!(alloc.allocate(0, Kind::User), Err(AllocError::Zero));
    }
}
