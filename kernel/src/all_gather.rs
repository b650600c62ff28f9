//! All-gather over a full mesh of channels: one write to each peer, each on a thread of its own.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::{Error, Thread};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::mesh::{Mesh, at};
use crate::{Control, kernel, queued};

/// Parameters of [`all_gather`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AllGatherParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `rank_size - 1` entries of [`MeshPeer`](crate::MeshPeer) in device memory, 8-byte aligned. The host keeps them until the launch has
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
        let mesh = Mesh { peers: params.peers, count: params.rank_size.wrapping_sub(1) };
        let main = mesh.main()?;
        params.control.in_step(&main, || {
            let mut done = 0;
            while done < params.len {
                let len = slice.min(params.len - done);
                round(params, &mesh, &main, slice, done, len)?;
                done += len;
            }
            Ok(())
        })
    }
}

/// `len` bytes of each rank, from byte `done` of its part on.
fn round(params: &AllGatherParams, mesh: &Mesh, main: &Thread, slice: u64, done: u64, len: u64) -> Result<(), Error> {
    let own = at(params.ccl_buf, params.rank * slice);
    queued::copy(main, own, at(params.user_in, done), len)?;
    mesh.exchange(main, |link| link.channel.write(&link.thread, at(link.ccl_buf, params.rank * slice), own, len))?;
    for rank in 0..params.rank_size {
        queued::copy(main, at(params.user_out, rank * params.len + done), at(params.ccl_buf, rank * slice), len)?;
    }
    Ok(())
}
