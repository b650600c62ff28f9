//! Buffers in device memory.
#![forbid(unsafe_code)]

use hcomm_aicpu::spec::DeviceAddr;

use crate::error::Error;
use crate::handle::Handle;

/// An allocation in HBM, freed on drop.
pub struct DeviceBuffer {
    device: Handle,
    addr: DeviceAddr,
    len: u64,
}

impl DeviceBuffer {
    pub(crate) fn new(device: Handle, addr: DeviceAddr, len: u64) -> Self {
        Self { device, addr, len }
    }

    /// First byte.
    pub fn addr(&self) -> DeviceAddr {
        self.addr
    }

    /// Address of the byte at `offset`. Not checked: it may lie outside.
    pub fn at(&self, offset: u64) -> DeviceAddr {
        DeviceAddr(self.addr.0.wrapping_add(offset))
    }

    /// Bytes, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a buffer of no bytes can't be made")]
    pub fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        // What the checks find is left for the next call that returns findings.
        match self.device.free_unchecked(self.addr) {
            // The caller can read the address of a buffer and may have freed it already: not an error here.
            Ok(()) | Err(Error::Free(_) | Error::Forked { .. }) => {}
            Err(error) => log::warn!("buffer {}: {error}", self.addr),
        }
    }
}
