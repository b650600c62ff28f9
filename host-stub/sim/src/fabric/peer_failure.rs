//! What a device tells its peers when it has failed or closed.

use std::sync::Arc;

/// A device that has failed or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFailure {
    /// Slot of the device.
    pub device: u32,
    /// Rank and error of the device that has failed first, if this one only follows.
    pub first: Option<(u32, Arc<str>)>,
    /// Its error; `None`: it was closed.
    pub error: Option<Arc<str>>,
    /// Only a launch has failed there: its records will not come, those of a later launch may.
    pub is_launch: bool,
}

impl PeerFailure {
    /// Whether it was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.error.is_none()
    }

    /// What has happened to it.
    pub fn text(&self) -> &str {
        self.error.as_deref().unwrap_or("its device was closed")
    }
}
