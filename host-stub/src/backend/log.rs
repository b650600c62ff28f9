//! Log of the device: defmt frames from a ring in shared memory, forwarded to the `log` crate.
#![forbid(unsafe_code)]

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use defmt_decoder::{DecodeError, Table};
use hcomm_aicpu::spec::mailbox::{LOG_BYTES, LOG_STRIDE, LogRing};
use hcomm_aicpu::spec::map::LOG_PHYS;

use crate::log_place::{self, LogPlace, Running};
use hcomm_mapping::SharedMemory;
use hcomm_sim::memory::Memory;

/// Target of the forwarded lines.
pub const TARGET: &str = hcomm_kernel::LOG_TARGET;

/// Reader of the log of one core.
pub struct LogReader {
    memory: Arc<SharedMemory>,
    /// `None`: the image has no log.
    table: Option<Table>,
    phys: u64,
    core: usize,
    tail: u64,
    dropped: u64,
}

impl LogReader {
    /// Reader of the log of `core` of the image in `elf`.
    ///
    /// # Errors
    /// The image's table of log strings can't be read.
    pub fn new(memory: &Arc<SharedMemory>, elf: &[u8], core: u64) -> Result<Self, String> {
        let table = Table::parse(elf).map_err(|error| format!("log strings of the image: {error}"))?;
        let phys = LOG_PHYS + core * LOG_STRIDE;
        Ok(Self { memory: Arc::clone(memory), table, phys, core: core as usize, tail: 0, dropped: 0 })
    }

    /// Forwards what has come since the last call, from the launch that the core runs, if it does.
    pub fn drain(&mut self, running: Option<&Running>) {
        if self.table.is_none() {
            return;
        }
        // Acquire pairs with the core's release store: the bytes below `head` are there.
        let head = self.memory.word64(self.phys + offset_of!(LogRing, head) as u64).load(Ordering::Acquire);
        let available = head.wrapping_sub(self.tail);
        if available > LOG_BYTES as u64 {
            log::warn!(target: TARGET, "log of {available} bytes in a ring of {LOG_BYTES}: skipped");
            return self.take(head);
        }
        if available != 0 {
            let bytes = self.read(available as usize);
            self.take(head);
            if let Some(table) = &self.table {
                forward(table, &bytes, self.core, running);
            }
        }
        let dropped = self.memory.word64(self.phys + offset_of!(LogRing, dropped) as u64).load(Ordering::Relaxed);
        if dropped != self.dropped {
            log::warn!(target: TARGET, "{} log frames dropped: the ring was full", dropped.wrapping_sub(self.dropped));
            self.dropped = dropped;
        }
    }

    fn read(&self, len: usize) -> Vec<u8> {
        let bytes = self.phys + offset_of!(LogRing, bytes) as u64;
        let start = (self.tail % LOG_BYTES as u64) as usize;
        let first = len.min(LOG_BYTES - start);
        let mut out = vec![0; len];
        self.memory.read_low(bytes + start as u64, &mut out[..first]);
        self.memory.read_low(bytes, &mut out[first..]);
        out
    }

    fn take(&mut self, head: u64) {
        self.tail = head;
        // Release: the core must not overwrite bytes before they have been read.
        self.memory.word64(self.phys + offset_of!(LogRing, tail) as u64).store(head, Ordering::Release);
    }
}

/// Decodes whole frames.
fn forward(table: &Table, bytes: &[u8], core: usize, running: Option<&Running>) {
    let mut decoder = table.new_stream_decoder();
    decoder.received(bytes);
    loop {
        match decoder.decode() {
            Ok(frame) => {
                let level = frame.level().map_or("info", |level| level.as_str());
                let level = level.parse().unwrap_or(log::Level::Info);
                let at_us = frame.display_timestamp().and_then(|seconds| microseconds(&seconds.to_string()));
                let place = running.map(|running| LogPlace { running: running.clone(), core, at_us });
                log_place::during(place, || log::log!(target: TARGET, level, "{}", frame.display_message()));
            }
            Err(DecodeError::UnexpectedEof) => return,
            Err(DecodeError::Malformed) => log::warn!(target: TARGET, "log frame that can't be decoded"),
        }
    }
}

/// Microseconds of a time in seconds with six decimals.
fn microseconds(seconds: &str) -> Option<u64> {
    let (whole, part) = seconds.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 1_000_000 + part.get(..6)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_a_frame_is_read() {
        assert_eq!(microseconds("12.000345"), Some(12_000_345));
        assert_eq!((microseconds("12"), microseconds("1.5"), microseconds("x.000001")), (None, None, None));
    }
}
