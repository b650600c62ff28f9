//! Producer index of a work ring.

/// Most blocks of a ring: the index has 16 bits.
pub const MAX_WORK_DEPTH: u32 = 1 << 16;

/// Blocks of a work ring.
///
/// The index of a block counts on over the end of the ring and starts again at 0 after 2^16; its slot is the index modulo the
/// depth. So that the slots follow each other there too, the depth divides 2^16: it is a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkDepth {
    /// Blocks - 1: the bits of an index that are its slot.
    mask: u32,
}

/// The depth is not a power of two from 2 to [`MAX_WORK_DEPTH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("depth {0} of a work ring is not a power of two from 2 to {MAX_WORK_DEPTH}")]
pub struct BadWorkDepth(pub u32);

impl WorkDepth {
    /// A ring of so many blocks.
    ///
    /// # Errors
    /// [`BadWorkDepth`].
    pub const fn new(blocks: u32) -> Result<Self, BadWorkDepth> {
        if blocks < 2 || blocks > MAX_WORK_DEPTH || !blocks.is_power_of_two() {
            return Err(BadWorkDepth(blocks));
        }
        Ok(Self { mask: blocks - 1 })
    }

    /// How many blocks it has.
    pub const fn blocks(self) -> u32 {
        self.mask + 1
    }

    /// Slot of the block with this index: `0..blocks`.
    #[inline]
    pub const fn slot(self, index: u16) -> u32 {
        index as u32 & self.mask
    }

    /// Owner bit of an entry whose first block has this index: set once in 2^16 blocks, not once a lap.
    #[inline]
    pub const fn is_owner(self, index: u16) -> bool {
        index as u32 == self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_a_power_of_two_that_the_index_can_reach() {
        for blocks in [2, 4, 64, 32768, 65536] {
            assert_eq!(WorkDepth::new(blocks).map(WorkDepth::blocks), Ok(blocks));
        }
        for odd in [0, 1, 3, 48, 65535, 65537, 131_072, u32::MAX] {
            assert_eq!(WorkDepth::new(odd), Err(BadWorkDepth(odd)));
        }
    }

    #[test]
    fn slots_follow_each_other_where_the_index_wraps() {
        for blocks in [2, 64, 65536] {
            let depth = WorkDepth::new(blocks).unwrap();
            let mut index = u16::MAX - 5;
            let mut slot = depth.slot(index);
            for _ in 0..12 {
                index = index.wrapping_add(1);
                slot = if slot + 1 == blocks { 0 } else { slot + 1 };
                assert_eq!(depth.slot(index), slot, "index {index} of {blocks}");
            }
        }
    }

    #[test]
    fn owner_bit_is_set_once_in_all_indices() {
        for blocks in [2, 64, 32768, 65536] {
            let depth = WorkDepth::new(blocks).unwrap();
            let owners = (0..=u16::MAX).filter(|index| depth.is_owner(*index));
            assert_eq!(owners.map(u32::from).collect::<std::vec::Vec<_>>(), [blocks - 1]);
        }
    }
}
