//! Communicators by name: a kernel locks the one that it works for, so that no other kernel works for it at the same time.

use core::ffi::CStr;

#[cfg(not(feature = "extern-abi"))]
use crate::context::on_core;
use crate::error::Error;
#[cfg(not(feature = "extern-abi"))]
use crate::spec::record::EntryPoint;

/// Locks the communicator called `name`, until [`release`] or the end of the kernel.
///
/// # Errors
/// [`Error::UnknownComm`], [`Error::CommLocked`] if it is locked, also by the caller; [`Error::NoCore`] outside a kernel.
pub fn acquire(name: &CStr) -> Result<(), Error> {
    #[cfg(not(feature = "extern-abi"))]
    return on_core(|core, io| {
        let note = core.room_for_note(io)?;
        let place = core.device().comms().acquire(core.owner(), name.to_bytes())?;
        note.write(io, EntryPoint::ACQUIRE_COMM, place);
        Ok(())
    });
    // SAFETY: a text that ends with a zero byte.
    #[cfg(feature = "extern-abi")]
    crate::abi::result(unsafe { crate::abi::HcommAcquireComm(name.as_ptr()) })
}

/// Unlocks the communicator called `name`.
///
/// # Errors
/// [`Error::UnknownComm`], [`Error::CommNotLocked`] if the caller has not locked it, [`Error::NoCore`].
pub fn release(name: &CStr) -> Result<(), Error> {
    #[cfg(not(feature = "extern-abi"))]
    return on_core(|core, io| {
        let note = core.room_for_note(io)?;
        let before = |place| note.write(io, EntryPoint::RELEASE_COMM, place);
        core.device().comms().release(core.owner(), name.to_bytes(), before)
    });
    // SAFETY: a text that ends with a zero byte.
    #[cfg(feature = "extern-abi")]
    crate::abi::result(unsafe { crate::abi::HcommReleaseComm(name.as_ptr()) })
}
