//! One end of a channel, as the scheduler of its device keeps it.

use super::peer_failure::PeerFailure;
use crate::decode::Jetty;
use crate::event::ChannelName;

/// What the engine knows of the sending end of a channel.
#[derive(Clone, Debug)]
pub struct ChannelEnd {
    /// Its number in doorbells.
    pub jetty: Jetty,
    /// First block of its work ring.
    pub ring: u64,
    /// Blocks of the ring.
    pub depth: u32,
    /// Producer index of the first entry.
    pub start: u16,
    /// Producer index up to which entries were started.
    pub consumed: u16,
    /// Transport path to the peer.
    pub path: u32,
    /// The peer in the UB network.
    pub peer_eid: [u8; 16],
    /// Slot of the peer's device.
    pub peer: u32,
    /// Its generation in that slot.
    pub peer_generation: u32,
    /// Ranks of this end and of the peer.
    pub name: ChannelName,
    /// Register of notify 0 of the peer's end, and bytes of a register.
    pub notify: (u64, u32),
    /// Id of that notify, and how many there are.
    pub peer_notifies: (u32, u32),
    /// Id of notify 0 of this end, and how many there are.
    pub notifies: (u32, u32),
    /// Why the peer can record none of them any more.
    pub failure: Option<PeerFailure>,
}

impl ChannelEnd {
    /// Whether a notify is one of this end.
    pub fn has_notify(&self, id: u32) -> bool {
        let (first, count) = self.notifies;
        id.checked_sub(first).is_some_and(|index| index < count)
    }

    /// Id of the peer's notify with this register.
    pub fn notify_id(&self, register: u64) -> Option<u32> {
        let (base, size) = self.notify;
        let offset = register.checked_sub(base)?;
        let index = u32::try_from(offset / u64::from(size)).ok()?;
        let (first, count) = self.peer_notifies;
        (offset.is_multiple_of(size.into()) && index < count).then_some(first + index)
    }
}
