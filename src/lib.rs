//! Device-side copy path of Ascend communication kernels, for the AI CPU (engine `AICPU_TS`) of an Atlas 350.
//!
//! A kernel moves data by queueing tasks for the task scheduler. [`Thread::local_copy`] (in C: `HcommLocalCopyOnThread`)
//! encodes one 64-byte descriptor for each chunk, writes it into the ring of a communication thread's queue and rings the
//! doorbell; the SDMA engine moves the bytes later.
//!
//! | part | what it does |
//! |---|---|
//! | [`spec`] | formats: descriptors, registers, handles, parameters, addresses |
//! | [`port`] | what a platform gives; each program has one |
//! | [`Device`] | context of a device; runs kernels on its cores |
//! | [`Thread`] | handle to queue; the operations |
//! | [`Channel`] | handle to a channel to another device |
//! | [`copy`], [`reduce`] | checks of arguments, and the split into chunks |
//! | [`batch`] | one doorbell a queue for many calls |
//! | [`comm`] | locks of communicators |
//! | [`timeout`] | limits of waits |
//! | [`abi`] | C entry points |
//!
//! It does not touch data: an address is a number here, and whether it is device memory shows when the task runs. It
//! does not allocate, and it does not run tasks.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(
    feature = "extern-abi",
    allow(dead_code, unused_imports, reason = "what queues tasks is that of another library")
)]

#[cfg(not(feature = "extern-abi"))]
pub mod abi;
#[cfg(feature = "extern-abi")]
#[path = "extern_abi.rs"]
pub mod abi;
#[cfg(feature = "c-platform")]
pub mod c_platform;
#[cfg(not(feature = "extern-abi"))]
mod calls;
#[cfg(feature = "extern-abi")]
#[path = "extern_calls.rs"]
mod calls;
mod channel;
mod comms;
mod context;
mod error;
#[cfg(feature = "extern-abi")]
mod extern_channel;
mod handle;
mod ops;
#[cfg(all(feature = "panic-handler", not(test)))]
mod panic_handler;
pub mod port;
pub mod spec;
mod sq;
mod stop;
mod sync;
mod task;
#[cfg(test)]
mod tests;
mod thread;

pub use channel::{Channel, Transfer, TransferKind};
pub use context::{CoreBusy, Device, LaunchEnd, MAX_CORES, NOTIFY_WAIT_TIMEOUT_S, SQ_FULL_TIMEOUT_US, THREAD_STATE};
pub use error::{ChannelField, ChannelOperation, Error, QueueField, QueueFull};
pub use ops::{batch, comm, copy, reduce, timeout};
pub use thread::{Peer, Thread};
