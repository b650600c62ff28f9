//! The entries that one doorbell starts.

use super::{BLOCK_LEN, Entry, EntryError, block_count, decode};
use crate::message::debug_is_the_message;

/// What one doorbell starts, in the order of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Producer index of the first block of each entry, and the entry.
    pub entries: Vec<(u16, Entry)>,
    /// What is not documented about it.
    pub warning: Option<Warning>,
}

/// A doorbell of which no document says what comes of it.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// It rings for nothing.
    #[error("doorbell at producer index {index} starts no entry: what the hardware does is not documented")]
    NothingNew {
        /// Where the ring ended before.
        index: u16,
    },
    /// Its descriptor ends with the last completion, or with the first.
    #[error(
        "{count} entries of one doorbell report a completion, not only the last: what the hardware does is not documented"
    )]
    Completions {
        /// How many do.
        count: usize,
    },
    /// Its descriptor has no end.
    #[error("last entry of the doorbell, at producer index {index}, reports no completion: the descriptor has no end")]
    NoCompletion {
        /// First block of the entry.
        index: u16,
    },
}
debug_is_the_message!(Warning);

/// Why what a doorbell starts is not carried out.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// Entries have been overwritten before they were started.
    #[error("doorbell starts {blocks} blocks of a ring of {depth}")]
    Overrun {
        /// From the last producer index to the new one.
        blocks: u16,
        /// Blocks of the ring.
        depth: u32,
    },
    /// By itself.
    #[error("entry at producer index {index}: {error}")]
    Entry {
        /// First block.
        index: u16,
        /// What is wrong.
        error: EntryError,
    },
    /// For its place.
    #[error("entry at producer index {index} of a ring of {depth} blocks has owner bit {owner}", owner = u8::from(*.owner))]
    Owner {
        /// First block.
        index: u16,
        /// Blocks of the ring.
        depth: u32,
        /// What it has.
        owner: bool,
    },
}
debug_is_the_message!(WalkError);

/// Decodes the entries from producer index `from` up to `to`, over the end of the ring and of the index. `block` gives the
/// block of a slot, `0..depth`.
///
/// # Errors
/// [`WalkError`]: the first entry that is wrong.
pub fn walk(
    depth: u32,
    from: u16,
    to: u16,
    mut block: impl FnMut(u32) -> [u8; BLOCK_LEN],
) -> Result<Started, WalkError> {
    let blocks = to.wrapping_sub(from);
    if u32::from(blocks) > depth {
        return Err(WalkError::Overrun { blocks, depth });
    }
    let mut entries = Vec::new();
    let mut index = from;
    while index != to {
        let left = to.wrapping_sub(index);
        let first = block(u32::from(index) % depth);
        let count = block_count(&first) as u16;
        let second = (count == 2 && left >= 2).then(|| block(u32::from(index.wrapping_add(1)) % depth));
        let entry = decode(&first, second.as_ref()).map_err(|error| WalkError::Entry { index, error })?;
        if entry.owner != (u32::from(index) == depth - 1) {
            return Err(WalkError::Owner { index, depth, owner: entry.owner });
        }
        entries.push((index, entry));
        index = index.wrapping_add(count);
    }
    let warning = warning(from, &entries);
    Ok(Started { entries, warning })
}

fn warning(from: u16, entries: &[(u16, Entry)]) -> Option<Warning> {
    let Some(&(index, last)) = entries.last() else { return Some(Warning::NothingNew { index: from }) };
    let count = entries.iter().filter(|(_, entry)| entry.order.cqe).count();
    match count {
        _ if !last.order.cqe => Some(Warning::NoCompletion { index }),
        1 => None,
        count => Some(Warning::Completions { count }),
    }
}
