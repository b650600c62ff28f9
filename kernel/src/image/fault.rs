//! Reports of what a core cannot go on after: exceptions, panics, failed assertions, a bad boot block. Numbers only; names and lines are the
//! host's business.

use core::arch::asm;
use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicU32, Ordering};

use cortex_a::registers::{ELR_EL1, ESR_EL1, FAR_EL1, Readable, SP_EL0, SPSR_EL1};
use hcomm_aicpu::spec::mailbox::{BACKTRACE_LEN, FAULT_STRIDE, FaultKind, FaultRecord};
use hcomm_aicpu::spec::map::FAULT_PHYS;

use super::{cpu, frames, mailbox, wake};

/// Vectors below this one are exceptions of code on SP_EL0, which is all that runs but the reports themselves.
const FIRST_VECTOR_OF_SP_EL1: u64 = 4;

/// How many reports this core has begun. A second one means that the first failed on the way.
static REPORTS: AtomicU32 = AtomicU32::new(0);

/// Longest start of `text` that has at most `limit` bytes and ends with a whole character.
fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Text cut where it does not fit.
struct Cut<const N: usize>(heapless::String<N>);

impl<const N: usize> Write for Cut<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fitting = cut(text, N - self.0.len());
        self.0.push_str(fitting).map_err(|_| fmt::Error)?;
        // The rest of a text that was cut must not be followed by later pieces that happen to fit.
        if fitting.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// The record of this core, being filled.
struct Report {
    record: *mut FaultRecord,
}

macro_rules! set {
    ($report:expr, $($field:ident = $value:expr),+ $(,)?) => {
        // SAFETY: `record` is this core's own record, which is mapped and which nothing else writes.
        $(unsafe { (&raw mut (*$report.record).$field).write_volatile($value) };)+
    };
}

impl Report {
    /// `None` if the core has failed twice while it reported: then there is nothing left to try.
    fn begin() -> Option<Self> {
        // No read-modify-write is needed: the counter is this core's own.
        let reports = REPORTS.load(Ordering::Relaxed);
        REPORTS.store(reports + 1, Ordering::Relaxed);
        let record = (FAULT_PHYS + cpu::core_id() * FAULT_STRIDE) as *mut FaultRecord;
        (reports < 2).then_some(Self { record })
    }

    /// The first report of the core: the only one for which its stack is trusted.
    fn is_first(&self) -> bool {
        REPORTS.load(Ordering::Relaxed) == 1
    }

    /// Return addresses, see [`frames::walk`].
    fn set_backtrace(&self, lr: Option<u64>, fp: u64) {
        let mut addrs = [0; BACKTRACE_LEN];
        frames::walk(fp, &mut addrs);
        if let Some(lr) = lr {
            frames::put_before(lr, &mut addrs);
        }
        set!(self, backtrace = addrs);
    }

    fn set_message(&self, text: impl fmt::Display) {
        let mut message = Cut(heapless::String::<384>::new());
        // An error ends the text early, and what is there by then is what the record can hold.
        let _ = write!(message, "{text}");
        let message = message.0.as_bytes();
        let mut bytes = [0; 384];
        bytes[..message.len()].copy_from_slice(message);
        set!(self, message = bytes, message_len = message.len() as u32);
    }

    fn set_file(&self, file: &str, line: u32) {
        let file = cut(file, 128).as_bytes();
        let mut bytes = [0; 128];
        bytes[..file.len()].copy_from_slice(file);
        set!(self, file = bytes, file_len = file.len() as u32, line = line);
    }

    /// Makes the record visible.
    fn publish(self, kind: FaultKind) {
        set!(self, seq = mailbox::running());
        // SAFETY: as in `set!`; the field is one aligned 32-bit word.
        let word = unsafe { AtomicU32::from_ptr((&raw mut (*self.record).kind).cast()) };
        // Pairs with the acquire load of the host: who sees a kind sees the whole record.
        word.store(kind.0, Ordering::Release);
    }
}

/// Stops the core; it never runs again.
fn park() -> ! {
    wake::disable();
    loop {
        cortex_a::asm::wfi();
    }
}

/// Stack pointer of the caller.
#[inline(always)]
fn stack_pointer() -> u64 {
    let sp;
    // SAFETY: reads one register.
    unsafe { asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}

/// Where all exception vectors end. Frame pointer, link register and stack pointer are those of the interrupted code; the
/// stack pointer only if it ran on SP_EL1.
pub extern "C" fn exception(vector: u64, fp: u64, lr: u64, sp: u64) -> ! {
    if let Some(report) = Report::begin() {
        set!(
            report,
            vector = vector as u32,
            esr = ESR_EL1.get(),
            far = FAR_EL1.get(),
            elr = ELR_EL1.get(),
            spsr = SPSR_EL1.get(),
            sp = if vector < FIRST_VECTOR_OF_SP_EL1 { SP_EL0.get() } else { sp },
        );
        if report.is_first() {
            report.set_backtrace(Some(lr), fp);
        }
        report.publish(FaultKind::EXCEPTION);
    }
    park()
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if let Some(report) = Report::begin() {
        set!(report, sp = stack_pointer());
        if report.is_first() {
            if let Some(location) = info.location() {
                report.set_file(location.file(), location.line());
            }
            report.set_backtrace(None, cpu::frame_pointer());
            report.set_message(info.message());
        }
        report.publish(FaultKind::PANIC);
    }
    park()
}

/// Reports that an assertion of a kernel in C or C++ does not hold.
pub fn report_assertion(assertion: &str, file: &str, line: u32) -> ! {
    if let Some(report) = Report::begin() {
        set!(report, sp = stack_pointer());
        if report.is_first() {
            report.set_file(file, line);
            report.set_backtrace(None, cpu::frame_pointer());
            report.set_message(format_args!("assertion failed: {assertion}"));
        }
        report.publish(FaultKind::PANIC);
    }
    park()
}

/// Reports that the boot block is not one for this image.
pub fn report_boot(error: &impl fmt::Display) -> ! {
    if let Some(report) = Report::begin() {
        report.set_message(error);
        report.publish(FaultKind::BOOT);
    }
    park()
}
