//! The AI CPU: who runs kernels, and how a launch gets there and back.

pub mod log;
pub mod native;
mod process;
pub mod qemu;
mod refusals;
mod report;
mod spawn;
mod symbols;

use hcomm_aicpu::spec::DeviceAddr;

/// Where the tables are that the host writes and the AI CPU reads.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// Thread descriptors.
    pub threads: DeviceAddr,
    /// Communicators.
    pub comms: DeviceAddr,
}
