//! What the host keeps of a thread of a card.
#![forbid(unsafe_code)]

use super::acl::StreamHandle;

/// A thread.
pub struct KnownThread {
    /// With a queue; `None`: of the host.
    pub queue: Option<StreamHandle>,
    /// Its stream.
    pub stream_id: u32,
    /// Its queue; 0 without one.
    pub sq_id: u32,
    /// Its place in the library's table.
    pub slot: u32,
    /// Notify ids.
    pub notifies: Vec<u32>,
}
