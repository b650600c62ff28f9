//! The simulated device: memory, hardware queues, task scheduler, SDMA engines.
//!
//! It reads descriptors by byte offset from its own table ([`decode`]) and never calls the code that builds them.

pub mod alloc;
pub mod baton;
pub mod decode;
pub mod engine;
pub mod error;
pub mod fault;
pub mod hold;
pub mod inbox;
pub mod memory;
pub mod queue;
pub mod recovery;
pub mod scheduler;
#[cfg(test)]
mod scheduler_tests;
pub mod shared;
pub mod stream;
pub mod trace;

pub use stream::{HostCopy, KernelLaunch, LaunchStats, Op, StreamId, StreamShared};
