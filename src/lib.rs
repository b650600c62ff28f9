//! Device-side copy path of Ascend communication kernels, for the AI CPU (engine `AICPU_TS`) of an Atlas 350.
//!
//! A kernel moves data by queueing tasks for the task scheduler. [`Thread::local_copy`] (in C: `HcommLocalCopyOnThread`)
//! encodes one 64-byte descriptor for each chunk, writes it into the ring of a communication thread's queue and rings the
//! doorbell; the SDMA engine moves the bytes later.
//!
//! | part | what it does |
//! |---|---|
//! | [`spec`] | formats: descriptors, registers, handles, parameters, addresses |
//! | [`port`] | what the platform gives; each program defines it once |
//! | [`Device`], [`Core`] | context of a device and of a core |
//! | [`Thread`] | handle to queue; the operations |
//! | [`copy`] | the split into chunks |
//! | [`batch`] | one doorbell a queue for many calls |
//! | [`comm`] | locks of communicators |
//! | [`timeout`] | limits of waits |
//! | [`abi`] | C entry points |
//!
//! It does not touch data: an address is a number here, and whether it is device memory shows when the task runs. It
//! does not allocate, and it does not run tasks.
#![cfg_attr(not(test), no_std)]

pub mod abi;
mod aclrt_notify;
pub mod batch;
#[cfg(feature = "c-platform")]
pub mod c_platform;
pub mod comm;
pub mod copy;
mod device;
mod encode;
mod error;
#[cfg(all(test, loom))]
mod loom_tests;
mod notify;
#[cfg(all(feature = "panic-handler", not(test)))]
mod panic_handler;
pub mod port;
mod queue;
mod reduce;
pub mod regs;
mod ring;
mod short;
pub mod spec;
mod sync;
mod task_id;
#[cfg(all(test, not(loom)))]
mod test_port;
#[cfg(all(test, not(loom)))]
mod test_rig;
mod thread;
pub mod timeout;
mod wait;
#[cfg(all(test, not(loom)))]
mod walk_tests;
mod work;

pub use device::{Core, Device, LaunchEnd, NOTIFY_WAIT_TIMEOUT_S, SQ_FULL_TIMEOUT_US};
pub use error::{Error, QueueField, QueueFull};
pub use thread::{Peer, Thread};
