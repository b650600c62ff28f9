//! Log ring: `defmt` frames for the host, one ring for each core.
//!
//! The core that logs never waits: a frame that does not fit whole is dropped and counted.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

use defmt::{Encoder, Logger, global_logger};
use hcomm_aicpu::spec::mailbox::{LOG_BYTES, LOG_STRIDE, LogRing};
use hcomm_aicpu::spec::map::LOG_PHYS;

use super::cpu;

defmt::timestamp!("{=u64:us}", cpu::now_us());

#[global_logger]
struct RingLogger;

/// The frame that is being encoded.
struct Frame {
    encoder: Encoder,
    /// Where the next byte goes: `head` of the ring once the frame is published.
    end: u64,
    /// First position that the host has not freed.
    limit: u64,
    fits: bool,
}

impl Frame {
    const fn new() -> Self {
        Self { encoder: Encoder::new(), end: 0, limit: 0, fits: true }
    }

    fn open(&mut self) {
        let head = ring_word(HEAD).load(Ordering::Relaxed);
        // Pairs with the release store of the host: the bytes below were read before they are overwritten.
        let tail = ring_word(TAIL).load(Ordering::Acquire);
        self.end = head;
        // The host is not trusted to stay within what we put in.
        self.fits = tail <= head && head - tail <= LOG_BYTES as u64;
        self.limit = tail.wrapping_add(LOG_BYTES as u64);
        self.encode(|encoder, sink| encoder.start_frame(sink));
    }

    fn close(&mut self) {
        self.encode(|encoder, sink| encoder.end_frame(sink));
        if self.fits {
            // Pairs with the acquire load of the host: who sees the new head sees the bytes of the frame.
            ring_word(HEAD).store(self.end, Ordering::Release);
        } else {
            let dropped = ring_word(DROPPED);
            dropped.store(dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    fn encode(&mut self, step: impl FnOnce(&mut Encoder, &mut dyn FnMut(&[u8]))) {
        let Self { encoder, end, limit, fits, .. } = self;
        step(encoder, &mut |bytes| {
            for &byte in bytes {
                *fits &= *end < *limit;
                if !*fits {
                    return;
                }
                // SAFETY: the remainder is below the length of `bytes` of this core's own ring, which is mapped; the host
                // does not read the position before `head` has passed it.
                unsafe {
                    (&raw mut (*ring()).bytes).cast::<u8>().add((*end % LOG_BYTES as u64) as usize).write_volatile(byte)
                };
                *end += 1;
            }
        });
    }
}

/// The ring of this core.
fn ring() -> *mut LogRing {
    (LOG_PHYS + cpu::core_id() * LOG_STRIDE) as *mut LogRing
}

const HEAD: usize = core::mem::offset_of!(LogRing, head);
const DROPPED: usize = core::mem::offset_of!(LogRing, dropped);
const TAIL: usize = core::mem::offset_of!(LogRing, tail);

/// One of the three words of this core's ring, by offset.
fn ring_word(offset: usize) -> &'static AtomicU64 {
    // SAFETY: an aligned word of the ring, which stays mapped; both sides access it atomically.
    unsafe { AtomicU64::from_ptr(ring().byte_add(offset).cast()) }
}

/// Belongs to the one running core, whose log calls do not nest: the image has no interrupt handlers, and reports of faults
/// do not log.
struct OneCore(UnsafeCell<Frame>);

// SAFETY: see `OneCore`: there is never a second user.
unsafe impl Sync for OneCore {}

static FRAME: OneCore = OneCore(UnsafeCell::new(Frame::new()));

fn with_frame(run: impl FnOnce(&mut Frame)) {
    // SAFETY: see `OneCore`; `run` is one of the three methods below, which do not log.
    run(unsafe { &mut *FRAME.0.get() });
}

// SAFETY: only one core runs, without interrupt handlers, and no `Format` of ours logs (it must not: see `OneCore`), so the
// logger is never acquired twice. No check, which would pull the panic machinery into the path of a copy.
unsafe impl Logger for RingLogger {
    fn acquire() {
        with_frame(Frame::open);
    }

    unsafe fn flush() {
        // A frame is in shared memory once it is closed; a wait for a host that is gone would not end.
    }

    unsafe fn release() {
        with_frame(Frame::close);
    }

    unsafe fn write(bytes: &[u8]) {
        with_frame(|frame| frame.encode(|encoder, sink| encoder.write(bytes, sink)));
    }
}
