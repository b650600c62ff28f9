//! Channels to other devices: look-up of handles, and the safe interface.

mod table;

pub(crate) use table::ChannelPlace;

use crate::context::on_core;
use crate::error::Error;
use crate::spec::channel::ChannelHandle;

/// A live channel of the device that runs the caller.
///
/// Says that the handle was good when it was looked up. Should the host free the channel afterwards, calls answer
/// [`Error::BadChannel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel(ChannelHandle);

impl Channel {
    /// Looks `handle` up in the channel table. Nothing outside the table is read, whatever the number.
    ///
    /// # Errors
    /// [`Error::NullChannel`], [`Error::NoCore`] outside a kernel, [`Error::BadChannel`] for a malformed, foreign or stale
    /// handle.
    pub fn from_handle(handle: ChannelHandle) -> Result<Self, Error> {
        if handle.0 == 0 {
            return Err(Error::NullChannel);
        }
        on_core(|core, _| {
            core.device().channels().descriptor(handle)?;
            Ok(Self(handle))
        })
    }

    /// The handle that the channel was looked up by.
    pub fn handle(&self) -> ChannelHandle {
        self.0
    }
}
