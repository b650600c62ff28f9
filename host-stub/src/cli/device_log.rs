//! The device's log on standard error.

use std::io::{self, Write};

use log::{LevelFilter, Log, Metadata, Record};

/// Target of records that come from the device.
const DEVICE: &str = "device";

struct DeviceLog;

static DEVICE_LOG: DeviceLog = DeviceLog;

/// Starts to show the device's log: everything, or warnings and errors.
pub fn show(everything: bool) {
    // Fails only if there is a logger already, which then shows the log.
    if log::set_logger(&DEVICE_LOG).is_ok() {
        log::set_max_level(if everything { LevelFilter::Trace } else { LevelFilter::Warn });
    }
}

impl Log for DeviceLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(DEVICE)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let place = host_stub::log_place().map_or_else(String::new, |place| format!("[{place}] "));
            // A closed standard error is not an error of the command.
            drop(writeln!(io::stderr(), "{}: {:5} {place}{}", record.target(), record.level(), record.args()));
        }
    }

    fn flush(&self) {}
}
