//! The AI CPU: runs kernels, takes launches and reports their end.

pub mod callers;
pub mod core_plugin;
pub mod linux;
pub mod log;
mod mailbox;
mod modules;
pub mod native;
pub mod places;
pub mod process;
pub mod qemu;
mod refusals;
mod report;
mod runner;
mod spawn;
mod symbols;

use hcomm_aicpu::spec::DeviceAddr;

/// Addresses of the tables that the host writes and the AI CPU reads.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// Thread descriptors.
    pub threads: DeviceAddr,
    /// Communicators.
    pub comms: DeviceAddr,
    /// Channel descriptors.
    pub channels: DeviceAddr,
}
