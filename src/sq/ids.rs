//! Task ids. Ascend950: 32 bits, unique among everything that a device has queued, handed to queues in blocks. Ascend910B and
//! Ascend910_93: 16 bits, counted by each queue.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Ids of a block.
const BLOCK_LEN: u32 = 1024;
/// Blocks before ids start again at 0.
const BLOCKS: u64 = (1 << 32) / BLOCK_LEN as u64;

/// Hands out blocks of ids to the queues of a device.
#[derive(Debug)]
pub(crate) struct IdAllocator {
    /// Blocks ever handed out.
    taken: AtomicU64,
}

impl IdAllocator {
    pub(crate) const fn new() -> Self {
        Self::after(0)
    }

    /// An allocator that has handed out `taken` blocks.
    pub(crate) const fn after(taken: u64) -> Self {
        Self { taken: AtomicU64::new(taken) }
    }

    /// Takes the next block. After 2^32 ids blocks come again, but for those that a queue still draws from.
    fn take<H: Holds>(&self, queues: &[H]) -> (u64, u32) {
        loop {
            let taken = self.taken.fetch_add(1, Ordering::Relaxed);
            let block = (taken % BLOCKS) as u32;
            if taken < BLOCKS || !queues.iter().any(|queue| queue.held().is(block)) {
                return (taken, block);
            }
        }
    }

    /// Undoes takes that followed each other. If another core has taken a block since, those ids are skipped.
    fn untake(&self, takes: Range<u64>) {
        // A failure is that other core's take; nothing depends on which of the two happened.
        let _ = self.taken.compare_exchange(takes.end, takes.start, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The block that a queue draws from, readable by the other queues' cores: its number + 1, or 0. All zero at first, so that
/// the table of queues takes no room in the image file.
#[derive(Debug)]
pub(crate) struct HeldBlock(AtomicU32);

impl HeldBlock {
    pub(crate) const fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The queue draws from no block.
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn set(&self, block: u32) {
        self.0.store(block + 1, Ordering::Relaxed);
    }

    fn is(&self, block: u32) -> bool {
        self.0.load(Ordering::Relaxed) == block + 1
    }
}

/// Ids left to one queue: the next one, from which on the rest of its block is the queue's. At the start of a block nothing
/// is left: taking a block includes taking its first id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdRange(u32);

impl IdRange {
    pub(crate) const EMPTY: Self = Self(0);

    /// The next id and what is left after it; `None` if a new block is needed.
    #[inline]
    pub(crate) fn split_first(self) -> Option<(u32, Self)> {
        if self.left() == 0 { None } else { Some(self.take(1)) }
    }

    /// How many ids are left.
    #[inline]
    pub(crate) fn left(self) -> u32 {
        self.0.wrapping_neg() % BLOCK_LEN
    }

    /// The first of the next `count` ids, of which there are as many left, and what is left after them.
    #[inline]
    pub(crate) fn take(self, count: u32) -> (u32, Self) {
        debug_assert!(count <= self.left(), "{count} ids of {}", self.left());
        // The last block of all ends with 2^32.
        (self.0, Self(self.0.wrapping_add(count)))
    }
}

/// What draws from blocks: a queue.
pub(crate) trait Holds {
    /// Its mark.
    fn held(&self) -> &HeldBlock;
}

impl Holds for HeldBlock {
    fn held(&self) -> &HeldBlock {
        self
    }
}

/// Draws ids for one group of entries. Unless it is [kept](Self::keep), all ids are put back when it is dropped.
pub(crate) struct IdDraw<'a, H: Holds> {
    ids: &'a IdAllocator,
    queues: &'a [H],
    mine: &'a HeldBlock,
    range: IdRange,
    mine_before: u32,
    /// The latest takes that followed each other directly, to be undone; none: 0..0.
    takes: Range<u64>,
}

impl<'a, H: Holds> IdDraw<'a, H> {
    /// Draws from `range` first. `mine` is the mark of the queue, which is one of `queues`.
    #[inline]
    pub(crate) fn new(ids: &'a IdAllocator, queues: &'a [H], mine: &'a HeldBlock, range: IdRange) -> Self {
        Self { ids, queues, mine, range, mine_before: mine.0.load(Ordering::Relaxed), takes: 0..0 }
    }

    /// The next id.
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        let (id, range) = self.range.split_first().unwrap_or_else(|| self.take_block());
        self.range = range;
        id
    }

    #[cold]
    #[inline(never)]
    fn take_block(&mut self) -> (u32, IdRange) {
        let (taken, block) = self.ids.take(self.queues);
        self.mine.set(block);
        // A block that another core has taken in between is not ours to put back, and nor is what was before it.
        if self.takes.end != taken {
            self.takes.start = taken;
        }
        self.takes.end = taken + 1;
        (block * BLOCK_LEN, IdRange(block * BLOCK_LEN + 1))
    }

    /// The ids drawn are used. Gives what is left after them.
    #[inline]
    pub(crate) fn keep(self) -> IdRange {
        let range = self.range;
        core::mem::forget(self);
        range
    }
}

impl<H: Holds> Drop for IdDraw<'_, H> {
    #[inline]
    fn drop(&mut self) {
        if !self.takes.is_empty() {
            self.ids.untake(self.takes.clone());
            self.mine.0.store(self.mine_before, Ordering::Relaxed);
        }
    }
}

/// Task ids of an Ascend910B or Ascend910_93: 16 bits, counted by each queue. After 65535 they start again, and a place holder takes the 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlippingId(u64);

impl FlippingId {
    pub(crate) const FIRST: Self = Self(0);

    /// Entries of a whole round of ids.
    const ROUND: u64 = 1 << 16;

    /// After `entries` entries.
    #[cfg(all(test, not(loom)))]
    pub(crate) const fn after(entries: u64) -> Self {
        Self(entries)
    }

    /// Takes the place holder, if it is next: gives how many times ids have started again, modulo 2^16.
    #[inline]
    pub(crate) fn take_flip(&mut self) -> Option<u16> {
        let serial = self.0;
        if serial == 0 || !serial.is_multiple_of(Self::ROUND) {
            return None;
        }
        self.0 += 1;
        Some((serial / Self::ROUND) as u16)
    }

    /// The id of the next task, before which there is no place holder.
    #[inline]
    pub(crate) fn take_id(&mut self) -> u16 {
        let serial = self.0;
        self.0 += 1;
        serial as u16
    }

    /// Entries that `tasks` tasks take from here on, place holders included.
    pub(crate) fn entries_for(self, tasks: u64) -> u64 {
        // In every round but the first, the 0 is not a task's.
        let tasks_until = |serial: u64| serial - serial.saturating_sub(1) / Self::ROUND;
        let last = tasks_until(self.0).saturating_add(tasks);
        let is_first_round = last <= Self::ROUND;
        let until = if is_first_round { last } else { last.saturating_add((last - 2) / (Self::ROUND - 1)) };
        if tasks == 0 { 0 } else { until - self.0 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn draw(ids: &IdAllocator, held: &[HeldBlock], mine: usize, range: &mut IdRange, count: usize) -> Vec<u32> {
        let mut draw = IdDraw::new(ids, held, &held[mine], *range);
        let drawn = (0..count).map(|_| draw.next()).collect();
        *range = draw.keep();
        drawn
    }

    #[test]
    fn ids_of_two_queues_come_from_different_blocks() {
        let (ids, held) = (IdAllocator::new(), [HeldBlock::none(), HeldBlock::none()]);
        let (mut first, mut second) = (IdRange::EMPTY, IdRange::EMPTY);
        assert_eq!(draw(&ids, &held, 0, &mut first, 2), [0, 1]);
        assert_eq!(draw(&ids, &held, 1, &mut second, 2), [1024, 1025]);
        assert_eq!(draw(&ids, &held, 0, &mut first, 1023).last(), Some(&2048), "block 2 follows block 0");
    }

    /// Case 26.
    #[test]
    fn a_block_in_use_is_passed_over_after_the_wrap() {
        let (ids, held) = (IdAllocator::new(), [HeldBlock::none(), HeldBlock::none()]);
        let (mut first, mut second) = (IdRange::EMPTY, IdRange::EMPTY);
        assert_eq!(draw(&ids, &held, 0, &mut first, 1), [0]);
        let ids = IdAllocator::after(BLOCKS - 1);
        assert_eq!(draw(&ids, &held, 1, &mut second, 1024).last(), Some(&u32::MAX));
        assert_eq!(draw(&ids, &held, 1, &mut second, 1), [1024], "block 0 is still held by the first queue");
    }

    #[test]
    fn dropped_draw_leaves_no_trace() {
        let (ids, held) = (IdAllocator::new(), [HeldBlock::none()]);
        let mut range = IdRange::EMPTY;
        draw(&ids, &held, 0, &mut range, 1000);
        let mut refused = IdDraw::new(&ids, &held, &held[0], range);
        (0..3000).for_each(|_| _ = refused.next());
        drop(refused);
        assert!(held[0].is(0), "the block of the ids that are left");
        assert_eq!(draw(&ids, &held, 0, &mut range, 25).last(), Some(&1024));
    }

    #[test]
    fn dropped_draw_skips_ids_when_another_core_took_a_block_meanwhile() {
        let (ids, held) = (IdAllocator::new(), [HeldBlock::none(), HeldBlock::none()]);
        let (mut first, mut second) = (IdRange::EMPTY, IdRange::EMPTY);
        let mut refused = IdDraw::new(&ids, &held, &held[0], first);
        refused.next();
        draw(&ids, &held, 1, &mut second, 1);
        drop(refused);
        assert_eq!(draw(&ids, &held, 0, &mut first, 1), [2048]);
    }

    #[test]
    fn dropped_draw_puts_no_block_back_that_another_core_took_in_between() {
        let (ids, held) = (IdAllocator::new(), [HeldBlock::none(), HeldBlock::none()]);
        let (mut first, mut second) = (IdRange::EMPTY, IdRange::EMPTY);
        let mut refused = IdDraw::new(&ids, &held, &held[0], first);
        refused.next();
        assert_eq!(draw(&ids, &held, 1, &mut second, 1), [1024]);
        (0..BLOCK_LEN).for_each(|_| _ = refused.next());
        drop(refused);
        assert_eq!(draw(&ids, &held, 0, &mut first, 1025).last(), Some(&3072), "block 1 is the second queue's");
        assert_eq!(draw(&ids, &held, 1, &mut second, 1), [1025]);
    }

    #[test]
    fn flipping_ids_leave_the_zero_of_each_later_round_to_a_place_holder() {
        let mut id = FlippingId(65535);
        assert_eq!((id.take_flip(), id.take_id()), (None, 65535));
        assert_eq!((id.take_flip(), id.take_flip(), id.take_id()), (Some(1), None, 1));
        let mut id = FlippingId::FIRST;
        assert_eq!((id.take_flip(), id.take_id()), (None, 0));
        assert_eq!(FlippingId(65536 << 16).take_flip(), Some(0), "the count of flips has 16 bits");
    }

    #[test]
    fn entries_of_flipping_ids_equal_those_drawn_one_by_one() {
        for start in [0, 1, 65534, 65535, 65536, 65537, 131_070, 131_071, 131_072, 131_073] {
            let all = [0, 1, 2, 3, 65534, 65535, 65536, 131_069, 131_070, 131_071, 200_000];
            // Miri takes too long for the big ones.
            for tasks in all.into_iter().filter(|tasks| !cfg!(miri) || *tasks <= 3) {
                let mut id = FlippingId(start);
                for _ in 0..tasks {
                    let _ = id.take_flip();
                    id.take_id();
                }
                assert_eq!(FlippingId(start).entries_for(tasks), id.0 - start, "{tasks} tasks from {start}");
            }
        }
        assert!(FlippingId::FIRST.entries_for(u64::MAX / 2) > u64::MAX / 2);
    }
}
