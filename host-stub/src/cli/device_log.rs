//! The device's log on standard error.

use std::io::{self, Write};

use log::{LevelFilter, Log, Metadata, Record};

/// Target of records that come from the device.
const DEVICE: &str = "device";

struct DeviceLog;

static DEVICE_LOG: DeviceLog = DeviceLog;

/// Shows from now on what the device logs: everything, or warnings and worse.
pub fn show(everything: bool) {
    // Fails only if there is a logger already, which then shows it.
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
            // A standard error that is closed is no reason to stop.
            drop(writeln!(io::stderr(), "{}: {:5} {}", record.target(), record.level(), record.args()));
        }
    }

    fn flush(&self) {}
}
