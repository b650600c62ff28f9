//! The submission queue of a card, reached through the driver's library `libascend_hal`.
//!
//! On a card a kernel does not see registers: head, tail and doorbell of its queue are calls of the HAL, which keeps the mapping.
//! This crate is those calls, with every answer checked. It is `no_std`, needs no C library, and nothing has to be there to link
//! it: the functions are weak references, and a missing one is an error of the call that needs it.
//!
//! - [`Hal`]: the functions that the process has.
//! - [`Queue`]: opened from the host's ids once a launch; head, doorbell, failed tasks.
//! - [`CardPlatform`]: the platform of `hcomm-aicpu` over the open queues.
//! - [`barrier`]: what the processor must be told between memory and doorbell.
//!
//! It does not encode descriptors and does not decide when to ring: that is `hcomm-aicpu`'s, which also holds the lock of a queue. A [`Queue`] by itself holds no lock:
//! two threads must not ring one at a time, because the HAL orders nothing between them.
//!
//! **It has not run on hardware yet.** Layouts, numbers and order of the calls restate the driver's public headers and sources
//! (mid 2026); docs/card.md lists what only a card can tell. The tests run it against a strict stand-in of the HAL, also as AArch64
//! code.
#![no_std]

pub mod abi;
pub mod barrier;
mod error;
mod functions;
mod platform;
mod queue;

pub use error::{HalError, RingError};
pub use functions::Hal;
#[cfg(target_arch = "aarch64")]
pub use platform::Counter;
pub use platform::{CardPlatform, Clock, MAX_QUEUES, OpenError, Opened};
pub use queue::{Position, Queue, QueueIds, Restore, TaskFailure};
