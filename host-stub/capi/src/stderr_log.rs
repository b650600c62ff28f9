//! Log of a C program: to standard error, if `HCOMM_SIM_LOG` is set.
#![forbid(unsafe_code)]

use std::io::{self, Write};

use log::{LevelFilter, Log, Metadata, Record};

use host_stub::signals::without_write_signals;

/// Environment variable with the least important level that is shown: error, warn, info, debug or trace.
const LOG_VAR: &str = "HCOMM_SIM_LOG";

struct StderrLog;

impl Log for StderrLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // If standard error is full or closed, the line is dropped.
            let level = record.level().as_str().to_lowercase();
            let place = host_stub::log_place().map_or_else(String::new, |place| format!("[{place}] "));
            let write = || writeln!(io::stderr(), "hcomm-sim {level}: {place}{}", record.args());
            let _ = without_write_signals(write);
        }
    }

    fn flush(&self) {}
}

/// Starts the log, if `HCOMM_SIM_LOG` is set and the program has no logger. Calls after the first change nothing.
pub fn start() {
    let Some(value) = std::env::var_os(LOG_VAR) else { return };
    let level = value.to_str().and_then(|value| value.parse::<LevelFilter>().ok());
    if log::set_logger(&StderrLog).is_ok() {
        log::set_max_level(level.unwrap_or(LevelFilter::Error));
        if level.is_none() {
            log::error!("{LOG_VAR} is {value:?}: must be off, error, warn, info, debug or trace");
        }
    }
}
