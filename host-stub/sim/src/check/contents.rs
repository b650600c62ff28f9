//! What the bytes of device memory tell about whether they were ever written.

use std::ops::Range;
use std::sync::Arc;

use super::init::{Certainty, Contents, Left, PATTERN, PERIOD};
use crate::memory::{Memory, OutsideHbm};

/// Allocations up to this length are filled with [`PATTERN`]; longer ones are zeros without memory.
pub const FILLED_LEN: u64 = 1 << 20;
/// Bytes that are compared at a time: a store of the program's own code makes all of them count as written.
const CHUNK: u64 = 64;
/// Bytes of a page, the smallest part of memory that may be a hole.
const PAGE: u64 = 4096;
/// Fewer bytes than these may hold the pattern by chance.
const CERTAIN_LEN: u64 = 4;

/// What an allocation of `len` bytes is left with.
pub fn left_in(len: u64) -> Left {
    if len <= FILLED_LEN { Left::Fill { phase: 0 } } else { Left::Zeros }
}

/// Fills a new allocation, or makes a hole of it, whatever was there before.
///
/// # Errors
/// [`OutsideHbm`].
pub fn fill(memory: &impl Memory, addr: u64, len: u64) -> Result<(), OutsideHbm> {
    if left_in(len) == Left::Zeros {
        memory.discard(addr, len);
        return Ok(());
    }
    let bytes: [u8; CHUNK as usize] = std::array::from_fn(|index| pattern(addr + index as u64));
    for done in (0..len).step_by(CHUNK as usize) {
        memory.write_hbm(addr + done, &bytes[..(len - done).min(CHUNK) as usize])?;
    }
    Ok(())
}

fn pattern(at: u64) -> u8 {
    PATTERN[(at % PERIOD) as usize]
}

/// The memory of a device.
pub struct HbmContents<M> {
    /// The memory.
    pub memory: Arc<M>,
    /// Every writer is known, kernels' own code too (check `core`): nothing needs to look at the bytes.
    pub has_every_writer: bool,
}

impl<M: Memory> HbmContents<M> {
    /// Calls `look` with parts of `range` of at most `part` bytes, cut at multiples of it, and with their bytes; joins those for
    /// which it gives the same.
    fn parts(
        &self,
        range: Range<u64>,
        part: u64,
        mut look: impl FnMut(u64, &[u8]) -> Option<Certainty>,
    ) -> Vec<(Range<u64>, Certainty)> {
        let mut found: Vec<(Range<u64>, Certainty)> = Vec::new();
        let mut bytes = vec![0; part as usize];
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at - at % part + part);
            let bytes = &mut bytes[..(end - at) as usize];
            let certainty = self.memory.read_hbm(at, bytes).ok().and_then(|()| look(at, bytes));
            push(&mut found, at..end, certainty);
            at = end;
        }
        found
    }
}

fn push(found: &mut Vec<(Range<u64>, Certainty)>, range: Range<u64>, certainty: Option<Certainty>) {
    let Some(certainty) = certainty else { return };
    match found.last_mut() {
        Some((last, of_last)) if last.end == range.start && *of_last == certainty => last.end = range.end,
        _ => found.push((range, certainty)),
    }
}

impl<M: Memory> Contents for HbmContents<M> {
    fn untouched(&self, range: Range<u64>, left: Left) -> Vec<(Range<u64>, Certainty)> {
        if self.has_every_writer {
            return vec![(range, Certainty::Certain)];
        }
        if let Left::Fill { phase } = left {
            let is_left = |at: u64, bytes: &[u8]| {
                let expected = (at + u64::from(phase)..).map(pattern);
                bytes.iter().zip(expected).all(|(byte, expected)| *byte == expected).then_some(Certainty::Certain)
            };
            let mut found = self.parts(range, CHUNK, is_left);
            for (range, certainty) in &mut found {
                if range.end - range.start < CERTAIN_LEN {
                    *certainty = Certainty::Possible;
                }
            }
            return found;
        }
        // A look at the bytes of a hole would give it memory.
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let data = self.memory.first_data(at, range.end - at).unwrap_or(range.end..range.end);
            push(&mut found, at..data.start, (at < data.start).then_some(Certainty::Certain));
            let zeros = |_, bytes: &[u8]| bytes.iter().all(|byte| *byte == 0).then_some(Certainty::Possible);
            for (range, certainty) in self.parts(data.clone(), PAGE, zeros) {
                push(&mut found, range, Some(certainty));
            }
            at = data.end;
        }
        found
    }
}
