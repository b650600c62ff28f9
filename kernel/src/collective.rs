//! What the collectives over a mesh have in common: parameters, and the pieces that fit the buffer.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::{Error, Thread};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::mesh::{Mesh, at};
use crate::{Control, queued};

/// Parameters of the collectives over a mesh but all-gather. All ranks give the same `count`, `data_type`, `op`, `root` and
/// `ccl_buf_size`.
///
/// | kernel | elements of `user_in` | elements of `user_out` | in place |
/// |---|---|---|---|
/// | `reduce_scatter` | `rank_size * count` | `count` | `user_out` is the own part of `user_in` |
/// | `all_reduce`, `all_reduce_ring` | `count` | `count` | `user_out` is `user_in` |
/// | `all_to_all` | `rank_size * count` | `rank_size * count` | `user_out` is `user_in` |
/// | `broadcast` | `count`, of the root alone | `count` | `user_out` is `user_in` |
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CollectiveParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `rank_size - 1` entries of [`MeshPeer`](crate::MeshPeer) in device memory, 8-byte aligned, by rank. The host keeps them
    /// until the launch has ended.
    pub peers: DeviceAddr,
    /// Own rank.
    pub rank: u64,
    /// Ranks, at least 2.
    pub rank_size: u64,
    /// What this rank gives.
    pub user_in: DeviceAddr,
    /// What it gets.
    pub user_out: DeviceAddr,
    /// Buffer that the peers write into.
    pub ccl_buf: DeviceAddr,
    /// Bytes of it, at least an element for each rank.
    pub ccl_buf_size: u64,
    /// Elements, as in the table above.
    pub count: u64,
    /// Element type (`HcommDataType`).
    pub data_type: i32,
    /// Operator (`HcommReduceOp`) of those that reduce.
    pub op: i32,
    /// Rank that gives, of a broadcast.
    pub root: u64,
    /// Control pair of the launch; on the first peer's thread.
    pub control: Control,
}
const _: () = assert!(size_of::<CollectiveParams>() == 112);

impl KernelParams for CollectiveParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"COLL");
    const VERSION: u32 = 1;
}

/// A collective that runs.
pub(crate) struct Collective<'p> {
    pub(crate) params: &'p CollectiveParams,
    pub(crate) mesh: Mesh,
    pub(crate) main: Thread,
    /// Bytes of an element.
    pub(crate) size: u64,
    /// Bytes of the buffer for each rank: whole elements.
    pub(crate) slot: u64,
}

/// Elements `first..first + count` of each part.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl<'p> Collective<'p> {
    /// # Errors
    /// A type that is none, more bytes than an address space has, a buffer of less than an element for each rank.
    pub(crate) fn new(params: &'p CollectiveParams) -> Result<Self, Error> {
        let (data_type, op, count) = (DataType(params.data_type), ReduceOp(params.op), params.count);
        let size = data_type.size().ok_or(Error::ReduceNotSupported { op, data_type })?;
        let ranks = params.rank_size.max(1);
        count.checked_mul(size).and_then(|len| len.checked_mul(ranks)).ok_or(Error::CountTooLarge { count, size })?;
        let slot = params.ccl_buf_size / ranks / size * size;
        if count > 0 && slot == 0 {
            return Err(Error::TooLarge { len: size * ranks, limit: params.ccl_buf_size });
        }
        let mesh = Mesh { peers: params.peers, count: ranks - 1 };
        Ok(Self { params, mesh, main: mesh.main()?, size, slot })
    }

    /// Queues `round` for pieces of at most `most` elements until `count` are done, in step with the stream.
    pub(crate) fn in_pieces(&self, most: u64, mut round: impl FnMut(Piece) -> Result<(), Error>) -> Result<(), Error> {
        self.params.control.in_step(&self.main, || {
            let mut first = 0;
            while first < self.params.count {
                let count = most.min(self.params.count - first);
                round(Piece { first, count })?;
                first += count;
            }
            Ok(())
        })
    }

    /// Slot of the own buffer for what comes from a rank.
    pub(crate) fn slot_of(&self, rank: u64) -> DeviceAddr {
        at(self.params.ccl_buf, rank * self.slot)
    }

    /// Element `first` of part `part` of a buffer of `rank_size` parts.
    pub(crate) fn part(&self, buffer: DeviceAddr, part: u64, first: u64) -> DeviceAddr {
        at(buffer, (part * self.params.count + first) * self.size)
    }

    /// Element `index` of a buffer.
    pub(crate) fn element(&self, buffer: DeviceAddr, index: u64) -> DeviceAddr {
        at(buffer, index * self.size)
    }

    /// Copies on the main thread, unless source and destination are the same.
    pub(crate) fn copy(&self, dst: DeviceAddr, src: DeviceAddr, count: u64) -> Result<(), Error> {
        if dst == src { Ok(()) } else { queued::copy(&self.main, dst, src, count * self.size) }
    }

    /// Reduces on the main thread.
    pub(crate) fn reduce(&self, dst: DeviceAddr, src: DeviceAddr, count: u64) -> Result<(), Error> {
        let (data_type, op) = (DataType(self.params.data_type), ReduceOp(self.params.op));
        queued::reduce(&self.main, dst, src, count, data_type, op)
    }

    /// The ranks but the own one.
    pub(crate) fn peers(&self) -> impl Iterator<Item = u64> {
        let rank = self.params.rank;
        (0..self.params.rank_size).filter(move |peer| *peer != rank)
    }

    /// Part `part` of a piece that is cut into `rank_size` parts of about the same length: the piece of it.
    pub(crate) fn cut(&self, piece: Piece, part: u64) -> Piece {
        let ranks = self.params.rank_size;
        let (base, rest) = (piece.count / ranks, piece.count % ranks);
        let first = piece.first + part * base + part.min(rest);
        Piece { first, count: base + u64::from(part < rest) }
    }
}
