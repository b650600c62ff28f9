//! Log of the device: defmt frames from a ring in shared memory, forwarded to the `log` crate.
#![forbid(unsafe_code)]

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use defmt_decoder::{DecodeError, Table};
use hcomm_aicpu::spec::mailbox::{LOG_BYTES, LOG_STRIDE, LogRing};
use hcomm_aicpu::spec::map::LOG_PHYS;

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
        Ok(Self { memory: Arc::clone(memory), table, phys, tail: 0, dropped: 0 })
    }

    /// Forwards what has come since the last call.
    pub fn drain(&mut self) {
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
                forward(table, &bytes);
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
fn forward(table: &Table, bytes: &[u8]) {
    let mut decoder = table.new_stream_decoder();
    decoder.received(bytes);
    loop {
        match decoder.decode() {
            Ok(frame) => {
                let level = frame.level().map_or("info", |level| level.as_str());
                log::log!(target: TARGET, level.parse().unwrap_or(log::Level::Info), "{}", frame.display_message());
            }
            Err(DecodeError::UnexpectedEof) => return,
            Err(DecodeError::Malformed) => log::warn!(target: TARGET, "log frame that can't be decoded"),
        }
    }
}
