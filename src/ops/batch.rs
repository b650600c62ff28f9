//! Batch mode of the core that runs the caller: tasks are staged, and each queue's doorbell is rung once, at the end.

#[cfg(not(feature = "extern-abi"))]
use crate::context::{change_core, on_core};
use crate::error::Error;

/// Starts a batch: from now on calls on this core stage their tasks. In a batch it changes nothing.
///
/// # Errors
/// [`Error::NoCore`] outside a kernel.
pub fn start() -> Result<(), Error> {
    #[cfg(not(feature = "extern-abi"))]
    return change_core(|core| core.queues().start_batch());
    #[cfg(feature = "extern-abi")]
    crate::abi::result(crate::abi::HcommBatchModeStart(core::ptr::null()))
}

/// Ends the batch: rings each queue that has staged tasks, in the order in which they were first used. Without a batch it
/// does nothing.
///
/// # Errors
/// The first failure: [`Error::DoorbellRefused`]; [`Error::Suspended`], also if a reset or a new thread in the slot has taken
/// staged tasks before; [`Error::BadHandle`] for a freed thread. The tasks of that queue are dropped, those of the others run.
pub fn end() -> Result<(), Error> {
    #[cfg(not(feature = "extern-abi"))]
    return on_core(|core, io| core.queues().end_batch(io, core.device().queues()));
    #[cfg(feature = "extern-abi")]
    crate::abi::result(crate::abi::HcommBatchModeEnd(core::ptr::null()))
}
