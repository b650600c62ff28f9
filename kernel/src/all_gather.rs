//! All-gather over a full mesh of channels: one write to each peer, each on a thread of its own.

use core::ptr::with_exposed_provenance;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::ChannelHandle;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::{Channel, Error, Thread};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Control, kernel, queued};

/// Notifies of each end of a channel that the collectives of this crate use.
pub const CHANNEL_NOTIFIES: u32 = 2;
/// Of a channel: the peer's buffer may be written.
const READY: u32 = 0;
/// Of a channel: the peer has written.
const WRITTEN: u32 = 1;

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

/// Parameters of [`all_gather`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AllGatherParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `rank_size - 1` entries of [`MeshPeer`] in device memory, 8-byte aligned. The host keeps them until the launch has
    /// ended.
    pub peers: DeviceAddr,
    /// Own rank.
    pub rank: u64,
    /// Ranks, at least 2.
    pub rank_size: u64,
    /// What this rank gives: `len` bytes.
    pub user_in: DeviceAddr,
    /// What all ranks have given, in the order of the ranks: `rank_size * len` bytes. `user_in` may be the own part of it.
    pub user_out: DeviceAddr,
    /// Buffer that the peers write into.
    pub ccl_buf: DeviceAddr,
    /// Bytes of it, at least `rank_size`.
    pub ccl_buf_size: u64,
    /// Bytes of one rank.
    pub len: u64,
    /// Control pair of the launch; on the first peer's thread.
    pub control: Control,
}
const _: () = assert!(size_of::<AllGatherParams>() == 96);

impl KernelParams for AllGatherParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"ALGA");
    const VERSION: u32 = 1;
}

/// What serves one peer.
#[derive(Clone, Copy)]
struct Link {
    channel: Channel,
    thread: Thread,
    ccl_buf: DeviceAddr,
    /// Notify of the main thread by which this one says that it is done; of the main thread itself none.
    done: u32,
}

kernel! {
    /// Gathers `len` bytes of each rank at all ranks.
    ///
    /// Round by round, each a slice of the buffer for each rank: copy the own part into the own slice; for each peer: tell it
    /// that the buffer is free, wait for the same, write the own slice to the peer's buffer, tell it, wait for the same; copy
    /// all slices out. A rank writes `(rank_size - 1) * len` bytes to its peers and copies `(rank_size + 1) * len`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a buffer of less than a byte for each rank, and those of the calls.
    pub fn all_gather(params: &AllGatherParams) -> Result<(), Error> {
        let slice = params.ccl_buf_size / params.rank_size.max(1);
        if params.len > 0 && slice == 0 {
            return Err(Error::TooLarge { len: params.len, limit: 0 });
        }
        let main = link(params, 0)?.thread;
        params.control.in_step(&main, || {
            let mut done = 0;
            while done < params.len {
                let len = slice.min(params.len - done);
                round(params, &main, slice, done, len)?;
                done += len;
            }
            Ok(())
        })
    }
}

/// Peer `index` of the list.
fn link(params: &AllGatherParams, index: u64) -> Result<Link, Error> {
    let list = with_exposed_provenance::<MeshPeer>(params.peers.0 as usize);
    // SAFETY: the host owes `rank_size - 1` aligned entries that stay readable (`AllGatherParams::peers`), at least one.
    let MeshPeer { channel, thread, ccl_buf, .. } = unsafe { list.add(index as usize).read() };
    let done = (index as u32).wrapping_sub(1);
    let (channel, thread) = (Channel::from_handle(ChannelHandle(channel))?, queued::thread(thread)?);
    Ok(Link { channel, thread, ccl_buf, done })
}

fn at(addr: DeviceAddr, offset: u64) -> DeviceAddr {
    DeviceAddr(addr.0.wrapping_add(offset))
}

/// `len` bytes of each rank, from byte `done` of its part on.
fn round(params: &AllGatherParams, main: &Thread, slice: u64, done: u64, len: u64) -> Result<(), Error> {
    let own = at(params.ccl_buf, params.rank * slice);
    let peers = params.rank_size - 1;
    queued::copy(main, own, at(params.user_in, done), len)?;
    for index in 1..peers {
        queued::record(main, link(params, index)?.thread.peer(), 0)?;
    }
    for index in 0..peers {
        let Link { channel, thread, ccl_buf, done, .. } = link(params, index)?;
        if index != 0 {
            queued::wait(&thread, 0)?;
        }
        channel.notify_record(&thread, READY)?;
        channel.notify_wait_default(&thread, READY)?;
        channel.write(&thread, at(ccl_buf, params.rank * slice), own, len)?;
        channel.notify_record(&thread, WRITTEN)?;
        channel.notify_wait_default(&thread, WRITTEN)?;
        if index != 0 {
            queued::record(&thread, main.peer(), done)?;
        }
    }
    for index in 1..peers {
        queued::wait(main, link(params, index)?.done)?;
    }
    for rank in 0..params.rank_size {
        queued::copy(main, at(params.user_out, rank * params.len + done), at(params.ccl_buf, rank * slice), len)?;
    }
    Ok(())
}
