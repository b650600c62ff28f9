//! A full mesh of channels: each rank has a channel to every other one, each served by a thread of its own.

use core::ptr::with_exposed_provenance;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::ChannelHandle;
use hcomm_aicpu::{Channel, Error, Thread};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::queued;

/// Notifies of each end of a channel that the collectives of this crate use.
pub const CHANNEL_NOTIFIES: u32 = 2;
/// Of a channel: the peer's buffer may be written.
pub(crate) const READY: u32 = 0;
/// Of a channel: the peer has written.
pub(crate) const WRITTEN: u32 = 1;

/// What a rank needs for one of its peers, in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MeshPeer {
    /// `ChannelHandle` of the channel to it, with [`CHANNEL_NOTIFIES`] notifies.
    pub channel: u64,
    /// `ThreadHandle` of the thread that serves it, with one notify. The first peer's thread is the main thread, which has one
    /// for each other peer, and then the start notify of the control pair.
    pub thread: u64,
    /// Its buffer, of as many bytes as the own one.
    pub ccl_buf: DeviceAddr,
    /// Its rank.
    pub rank: u64,
}
const _: () = assert!(size_of::<MeshPeer>() == 32);

/// What serves one peer.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) channel: Channel,
    pub(crate) thread: Thread,
    pub(crate) ccl_buf: DeviceAddr,
    /// All-gather, the one collective of the image, needs none.
    #[cfg_attr(feature = "image", expect(dead_code, reason = "of the collectives that the image lacks"))]
    pub(crate) rank: u64,
}

/// Peers of a rank, in device memory.
#[derive(Clone, Copy)]
pub(crate) struct Mesh {
    /// `count` entries of [`MeshPeer`], 8-byte aligned, at least one, which the host keeps until the launch has ended.
    pub(crate) peers: DeviceAddr,
    pub(crate) count: u64,
}

/// An address that is past the end of the space is refused by the call that it is handed to.
pub(crate) fn at(addr: DeviceAddr, offset: u64) -> DeviceAddr {
    DeviceAddr(addr.0.wrapping_add(offset))
}

impl Mesh {
    /// Peer `index` of the list.
    #[inline(never)]
    pub(crate) fn link(&self, index: u64) -> Result<Link, Error> {
        let list = with_exposed_provenance::<MeshPeer>(self.peers.0 as usize);
        // SAFETY: the host owes `count` aligned entries that stay readable (`Mesh::peers`), and callers stay below.
        let MeshPeer { channel, thread, ccl_buf, rank } = unsafe { list.add(index as usize).read() };
        let (channel, thread) = (Channel::from_handle(ChannelHandle(channel))?, queued::thread(thread)?);
        Ok(Link { channel, thread, ccl_buf, rank })
    }

    /// The thread of the first peer, which orders all others.
    pub(crate) fn main(&self) -> Result<Thread, Error> {
        Ok(self.link(0)?.thread)
    }

    /// Exchanges with every peer on its thread, behind what the main thread has queued and before what it queues afterwards: tell
    /// the peer that the own buffer is free, wait for the same, `transfer`, tell the peer, wait for the same.
    pub(crate) fn exchange(
        &self,
        main: &Thread,
        mut transfer: impl FnMut(&Link) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for index in 1..self.count {
            queued::record(main, self.link(index)?.thread.peer(), 0)?;
        }
        for index in 0..self.count {
            let link = self.link(index)?;
            let Link { channel, thread, .. } = &link;
            if index != 0 {
                queued::wait(thread, 0)?;
            }
            channel.notify_record(thread, READY)?;
            channel.notify_wait_default(thread, READY)?;
            transfer(&link)?;
            channel.notify_record(thread, WRITTEN)?;
            channel.notify_wait_default(thread, WRITTEN)?;
            if index != 0 {
                queued::record(thread, main.peer(), index as u32 - 1)?;
            }
        }
        for index in 1..self.count {
            queued::wait(main, index as u32 - 1)?;
        }
        Ok(())
    }
}
