//! Refused calls of the image: forwarded to the `log` crate as text.
#![forbid(unsafe_code)]

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use hcomm_aicpu::Error;
use hcomm_aicpu::spec::code;
use hcomm_aicpu::spec::mailbox::{REFUSAL_FRAMES, REFUSAL_STRIDE, REFUSALS, Refusal, RefusalRing};
use hcomm_aicpu::spec::map::{IMAGE_PHYS, IMAGE_SIZE, REFUSAL_PHYS};
use zerocopy::TryFromBytes;

use super::log::TARGET;
use hcomm_mapping::SharedMemory;
use hcomm_sim::cpu::Refused;
use hcomm_sim::memory::Memory;

/// Refusals that can be read: the slot of the oldest one in the ring is where the core may be writing the next.
const HELD: u64 = REFUSALS as u64 - 1;
/// Longest name that is shown.
const NAME_LEN: u64 = 128;

/// Reader of the refusals of one core.
pub struct RefusalReader {
    memory: Arc<SharedMemory>,
    phys: u64,
    /// Refusals that were seen.
    seen: u64,
    /// Refusals that were read and not yet taken.
    refused: Vec<Refused>,
}

impl RefusalReader {
    /// Reader of the refusals of `core`.
    pub fn new(memory: &Arc<SharedMemory>, core: u64) -> Self {
        Self { memory: Arc::clone(memory), phys: REFUSAL_PHYS + core * REFUSAL_STRIDE, seen: 0, refused: Vec::new() }
    }

    /// Forwards what has come since the last call.
    pub fn drain(&mut self) {
        let head = self.head();
        let new = head.wrapping_sub(self.seen);
        // The image's count is not trusted: it may be lower than before, or lower than what a ring holds.
        let shown = new.min(HELD).min(head);
        let mut missed = new - shown;
        for number in head - shown..head {
            let refused = self.refusal(number);
            // Pairs with the release fence of the core. The core may have overwritten the record while it was read.
            fence(Ordering::Acquire);
            if self.head().wrapping_sub(number) <= HELD {
                log::warn!(target: TARGET, "{}", refused.text);
                self.refused.push(refused);
            } else {
                missed += 1;
            }
        }
        if missed != 0 {
            log::warn!(target: TARGET, "{missed} more refused calls");
        }
        self.seen = head;
    }

    /// Takes what [`drain`](Self::drain) has read.
    pub fn take(&mut self) -> Vec<Refused> {
        std::mem::take(&mut self.refused)
    }

    fn head(&self) -> u64 {
        // Acquire pairs with the core's release store: the refusals below it are there.
        self.memory.word64(self.phys + offset_of!(RefusalRing, head) as u64).load(Ordering::Acquire)
    }

    fn refusal(&self, number: u64) -> Refused {
        let slot = offset_of!(RefusalRing, slots) + number as usize % REFUSALS * size_of::<Refusal>();
        let word = |offset: usize| self.memory.word64(self.phys + (slot + offset) as u64).load(Ordering::Relaxed);
        let (who, who_len) = (word(offset_of!(Refusal, who)), word(offset_of!(Refusal, who_len)));
        let mut error = [0; size_of::<Error>()];
        self.memory.read_low(self.phys + (slot + offset_of!(Refusal, error)) as u64, &mut error);
        let frame = |index| word(offset_of!(Refusal, frames) + index * size_of::<u64>());
        let frames = (1..REFUSAL_FRAMES).map(frame).take_while(|frame| *frame != 0).collect();
        let name = self.name(who, who_len);
        let (code, text) = match Error::try_read_from_bytes(&error) {
            Ok(error) => (error.code(), format!("{name}: {error}")),
            // The image is not trusted to be built from the same sources.
            Err(_) => (code::HCCL_E_INTERNAL, format!("{name}: refused, unknown reason ({error:x?})")),
        };
        Refused { code, text, frames }
    }

    fn name(&self, addr: u64, len: u64) -> String {
        if !(IMAGE_PHYS..=IMAGE_PHYS + IMAGE_SIZE - NAME_LEN).contains(&addr) {
            return format!("name at {addr:#x}");
        }
        let mut bytes = vec![0; len.min(NAME_LEN) as usize];
        self.memory.read_low(addr, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
