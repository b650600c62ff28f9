//! What makes a library that a card's AI CPU loads out of kernels (crate `hcomm-kernel`, feature `card`):
//! the queues of a card, and what stands around a kernel there.
//!
//! - [`launch()`]: what the C function of a kernel does on a card: checks the head of the launch, opens the queues, runs the kernel, reports
//!   how it ended in a status in device memory. It returns 0 or 1: the scheduler of a card gives other numbers meanings of its own.
//! - `hcomm_card_init`, `hcomm_card_report`, `hcomm_card_release`: kernels of the library itself. The first makes a thread of the host known:
//!   the ring of its queue lies at an address of this process, so that only the device can fill the thread table.
//! - `probe_a_start` to `probe_e_copy`: kernels for the first hour on a card (docs/card.md).
//!
//! Formats: [`hcomm_aicpu::spec::card`]. It is `no_std` and needs no library: functions of the driver, the log and the C library are
//! weak references. Statics live from the first launch to the end of the process, which other programs use too; so waits are bounded.
//!
//! It does not make streams, queues or notifies: the host does, by calls of the runtime, and hands their ids over.
//!
//! **It has not run on hardware yet.**
#![no_std]

mod current;
mod error;
mod guard;
mod launch;
mod line;
mod log;
mod own;
#[cfg(feature = "panic-handler")]
mod panic_handler;
mod platform;
mod probe;
mod threads;

pub use error::CardError;
pub use launch::launch;
