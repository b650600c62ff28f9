//! The simulated device: memory, hardware queues, task scheduler, SDMA engines.
//!
//! It reads descriptors by byte offset from its own table ([`decode`]) and never calls the code that builds them. Memory and
//! AI CPU are traits ([`memory::Memory`], [`cpu::Cpu`]), which the crates above implement.
#![forbid(unsafe_code)]

pub mod alloc;
pub mod check;
pub mod comm_table;
pub mod cost;
pub mod cpu;
pub mod deadlock;
pub mod decode;
pub mod deterministic;
pub mod engine;
pub mod error;
pub mod event;
mod execute;
pub mod explore;
pub mod fabric;
pub mod fault;
mod halt;
mod host_stream;
pub mod host_transfer;
pub mod hosts;
pub mod ids;
pub mod inbox;
pub mod kernel;
mod leftovers;
pub mod memory;
mod message;
pub mod notify;
mod notify_ids;
mod operations;
pub mod own_accesses;
pub mod panics;
pub mod queue;
pub mod random;
pub mod records;
mod recovery;
pub mod reduce;
pub mod scheduler;
#[cfg(test)]
mod scheduler_tests;
pub mod shared;
pub mod stall;
pub mod stream;
pub mod stream_event;
pub mod threads;
pub mod timeline;
pub mod vector_clock;

pub use stream::{HostTransfer, KernelLaunch, LaunchStats, Op, StreamId, StreamShared};
