//! Fault record of a core as text: what happened, where, and the calls that led there.
#![forbid(unsafe_code)]

use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::Ordering;

use hcomm_aicpu::spec::mailbox::{BACKTRACE_LEN, FaultKind, FaultRecord};
use hcomm_aicpu::spec::map::{IMAGE_PHYS, IMAGE_SIZE};

use super::symbols::{Locate, Place, Symbols};
use hcomm_mapping::SharedMemory;
use hcomm_sim::memory::Memory;

/// Functions that a message names.
const PLACES: usize = 10;
/// Prefixes of the functions that a panic calls before it is reported.
const MACHINERY: [&str; 4] = ["core::panicking::", "__rustc::", "rust_begin_unwind", "hcomm_image::image::fault::"];

/// Exception class: ESR_EL1, bits 26..32.
mod class {
    pub const UNKNOWN: u64 = 0x00;
    pub const FP: u64 = 0x07;
    pub const ILLEGAL_STATE: u64 = 0x0e;
    pub const INSTRUCTION_ABORT: u64 = 0x21;
    pub const PC_ALIGNMENT: u64 = 0x22;
    pub const DATA_ABORT: u64 = 0x25;
    pub const SP_ALIGNMENT: u64 = 0x26;
    pub const BREAKPOINT: u64 = 0x3c;
}

/// A record in shared memory, at the address `phys`.
pub struct Record<'m> {
    pub memory: &'m SharedMemory,
    pub phys: u64,
}

impl Record<'_> {
    pub fn word64(&self, offset: usize) -> u64 {
        self.memory.word64(self.phys + offset as u64).load(Ordering::Relaxed)
    }

    pub fn word32(&self, offset: usize) -> u32 {
        self.memory.word32(self.phys + offset as u64).load(Ordering::Relaxed)
    }

    /// The text at `offset`; the word at `len` has its length in bytes, which is not trusted to be at most `max`.
    pub fn text(&self, offset: usize, len: usize, max: usize) -> String {
        let mut bytes = vec![0; (self.word32(len) as usize).min(max)];
        self.memory.read_low(self.phys + offset as u64, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Addresses of the calls on the stack, innermost first.
    pub fn callers(&self) -> impl Iterator<Item = u64> {
        let words = (0..BACKTRACE_LEN).map(|index| self.word64(offset_of!(FaultRecord, backtrace) + index * 8));
        // A return address is behind the call.
        words.take_while(|addr| *addr != 0).map(|addr| addr - 1)
    }
}

/// Text of the fault record at `phys`, whose `kind` has been read.
pub fn fault_text(memory: &SharedMemory, phys: u64, kind: FaultKind, symbols: &Symbols<'_>) -> String {
    let record = Record { memory, phys };
    let message = record.text(offset_of!(FaultRecord, message), offset_of!(FaultRecord, message_len), 384);
    match kind {
        FaultKind::EXCEPTION => {
            let (esr, far) = (record.word64(offset_of!(FaultRecord, esr)), record.word64(offset_of!(FaultRecord, far)));
            let (elr, sp) = (record.word64(offset_of!(FaultRecord, elr)), record.word64(offset_of!(FaultRecord, sp)));
            let what = exception(esr, far, sp, symbols);
            let way = way(symbols, elr, record.callers());
            format!("{what}, {way} [elr {elr:#x}, esr {esr:#x}, far {far:#x}, sp {sp:#x}]")
        }
        FaultKind::PANIC => {
            let file = record.text(offset_of!(FaultRecord, file), offset_of!(FaultRecord, file_len), 128);
            let line = record.word32(offset_of!(FaultRecord, line));
            let mut callers = record.callers();
            let way = callers.next().map_or(String::new(), |first| format!(", {}", way(symbols, first, callers)));
            format!("panic: {message}, at {file}:{line}{way}")
        }
        FaultKind::BOOT => format!("the image refuses its boot block: {message}"),
        FaultKind(other) => format!("fault of unknown kind {other}"),
    }
}

/// Place of a core without a fault, from its program counter and frame pointer.
pub fn running_text(memory: &SharedMemory, pc: u64, fp: u64, symbols: &Symbols<'_>) -> String {
    let callers = callers(symbols.stack(), fp, |addr| memory.word64(addr).load(Ordering::Relaxed));
    format!("{} [pc {pc:#x}]", way(symbols, pc, callers))
}

/// Addresses of the calls on a stack, innermost first. Neither the stack's symbols nor the frame pointer are trusted.
fn callers(stack: Range<u64>, mut fp: u64, word: impl Fn(u64) -> u64) -> Vec<u64> {
    let (low, high) = (IMAGE_PHYS, IMAGE_PHYS + IMAGE_SIZE);
    let (mut floor, end) = (stack.start.clamp(low, high), stack.end.clamp(low, high));
    let mut callers = Vec::new();
    // A frame is {frame pointer of the caller, return address}; it counts only on the stack and above the last one.
    while callers.len() < BACKTRACE_LEN && fp.is_multiple_of(16) && (floor..end.saturating_sub(15)).contains(&fp) {
        let (next, addr) = (word(fp), word(fp + 8));
        if addr == 0 {
            break;
        }
        callers.push(addr - 1);
        (floor, fp) = (fp + 16, next);
    }
    callers
}

/// "in f (file:line), called by g (file:line), ...": the function at `at` and the calls that led there, without the panic
/// machinery, and without a stale link register: one that lies in the function that `at` is in.
pub fn way(symbols: &impl Locate, at: u64, callers: impl IntoIterator<Item = u64>) -> String {
    let mut callers = callers.into_iter().peekable();
    let symbol = symbols.symbol(at);
    callers.next_if(|addr| symbol != 0 && symbols.symbol(*addr) == symbol);
    let all = [at].into_iter().chain(callers).flat_map(|addr| symbols.places(addr));
    let mut places: Vec<Place> = Vec::new();
    for place in all {
        let is_machinery = MACHINERY.iter().any(|prefix| place.function.starts_with(prefix)) || place.is_library();
        // A recursion is named once.
        if !is_machinery && places.last() != Some(&place) {
            places.push(place);
        }
        if places.len() == PLACES {
            break;
        }
    }
    if places.is_empty() {
        places.extend(symbols.places(at).into_iter().next());
    }
    let mut text = String::new();
    for (index, place) in places.iter().enumerate() {
        let link = if index == 0 { "in " } else { ", called by " };
        text.push_str(&format!("{link}{place}"));
    }
    text
}

/// Kind and address of an exception.
fn exception(esr: u64, far: u64, sp: u64, symbols: &Symbols<'_>) -> String {
    match esr >> 26 & 0x3f {
        class::UNKNOWN => "undefined instruction".to_owned(),
        class::FP => "floating point while it is off".to_owned(),
        class::ILLEGAL_STATE => "illegal execution state".to_owned(),
        class::INSTRUCTION_ABORT => format!("instruction abort: {} at {far:#x}", status(esr)),
        class::PC_ALIGNMENT => format!("unaligned program counter {far:#x}"),
        class::SP_ALIGNMENT => "unaligned stack pointer".to_owned(),
        class::BREAKPOINT => format!("breakpoint {:#x}", esr & 0xffff),
        class::DATA_ABORT if symbols.is_stack_overflow(far, sp) => {
            let Range { start, end } = symbols.stack();
            format!(
                "stack overflow: {} at {far:#x}, {} B below the stack of {} B",
                access(esr),
                start - far,
                end - start
            )
        }
        class::DATA_ABORT => format!("data abort: {} at {far:#x}, {}", access(esr), status(esr)),
        other => format!("exception of class {other:#x}"),
    }
}

fn access(esr: u64) -> &'static str {
    if esr & 1 << 6 != 0 { "write" } else { "read" }
}

/// Fault status code of an abort: bits 0..6.
fn status(esr: u64) -> String {
    let level = esr & 3;
    match esr & 0x3f {
        0x00..0x04 => format!("address size fault, level {level}"),
        0x04..0x08 => format!("translation fault, level {level}"),
        0x08..0x0c => format!("access flag fault, level {level}"),
        0x0c..0x10 => format!("permission fault, level {level}"),
        0x10 => "external abort".to_owned(),
        0x21 => "alignment fault".to_owned(),
        other => format!("fault status {other:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 104.
    #[test]
    fn frames_are_read_inside_the_image_alone() {
        let end = IMAGE_PHYS + IMAGE_SIZE;
        let read = |addr: u64| {
            assert!((IMAGE_PHYS..=end - 8).contains(&addr) && addr.is_multiple_of(8), "{addr:#x}");
            // The caller's frame is the next one; each return address is that of the frame.
            if addr.is_multiple_of(16) { addr + 16 } else { addr }
        };
        let reversed = Range { start: u64::MAX, end: 0 };
        for stack in [0..u64::MAX, reversed, 0..0, IMAGE_PHYS..end, end..u64::MAX, 0..IMAGE_PHYS] {
            for fp in [0, 8, IMAGE_PHYS - 16, IMAGE_PHYS, end - 32, end - 16, end, u64::MAX - 15, u64::MAX] {
                callers(stack.clone(), fp, read);
            }
        }
        assert_eq!(callers(0..u64::MAX, end - 32, read), [end - 25, end - 9]);
    }

    #[test]
    fn syndromes_have_names() {
        let symbols = Symbols::default();
        let text = |esr| exception(esr, 0x10, 0, &symbols);
        assert_eq!(text(0x9600_0006), "data abort: read at 0x10, translation fault, level 2");
        assert_eq!(text(0x9600_004f), "data abort: write at 0x10, permission fault, level 3");
        assert_eq!(text(0x9600_0061), "data abort: write at 0x10, alignment fault");
        assert_eq!(text(0x8600_0007), "instruction abort: translation fault, level 3 at 0x10");
        assert_eq!(text(0x0200_0000), "undefined instruction");
        assert_eq!(text(0xf200_0001), "breakpoint 0x1");
        assert_eq!(text(0x5600_0000), "exception of class 0x15");
    }
}
