//! Lines for the log of the scheduler process, which the host collects.

use core::ffi::c_char;
use core::mem::transmute;

use hcomm_hal::weak_address;
use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::line::Line;

/// Module under which the lines are kept: that of collective communication.
const MODULE: i32 = 3;
/// Bytes of a line: the log takes 1024, its own words included.
const LINE_MAX: usize = 960;

/// `DlogRecord`.
type RecordFn = unsafe extern "C" fn(module: i32, level: i32, format: *const c_char, ...);
/// `CheckLogLevel`.
type LevelFn = unsafe extern "C" fn(module: i32, level: i32) -> i32;

/// The log of the scheduler; nothing where the process has none.
struct Dlog;

static DLOG: Dlog = Dlog;

/// Lets lines of the crate `log` go there. Costs a compare after the first time.
pub fn install() {
    if log::max_level() == LevelFilter::Off && log::set_logger(&DLOG).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}

fn number(level: Level) -> i32 {
    match level {
        Level::Error => 3,
        Level::Warn => 2,
        Level::Info => 1,
        Level::Debug | Level::Trace => 0,
    }
}

impl Log for Dlog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // SAFETY: Option of a function pointer has the layout of an address in which 0 is None. The scheduler's log library gives the
        // name this type.
        let check = unsafe { transmute::<usize, Option<LevelFn>>(weak_address!("CheckLogLevel")) };
        // SAFETY: as above; it takes two numbers.
        check.is_none_or(|check| unsafe { check(MODULE, number(metadata.level())) } == 1)
    }

    fn log(&self, record: &Record<'_>) {
        // SAFETY: as in `enabled`.
        let log = unsafe { transmute::<usize, Option<RecordFn>>(weak_address!("DlogRecord")) };
        let Some(log) = log.filter(|_| self.enabled(record.metadata())) else { return };
        // One byte is left for the zero that ends it: the rest of the line is zero.
        let mut text = [0_u8; LINE_MAX + 1];
        let line = Line::<LINE_MAX>::new(format_args!("hcomm: {}", record.args()));
        text[..line.bytes().len()].copy_from_slice(line.bytes());
        // SAFETY: the format takes one text, which ends with a zero byte and lives until the call returns.
        unsafe { log(MODULE, number(record.level()), c"%s".as_ptr(), text.as_ptr().cast::<c_char>()) };
    }

    fn flush(&self) {}
}
