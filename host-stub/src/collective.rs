//! Collectives over the ranks of a cluster: what each rank's kernel needs, and what must come out.
//!
//! The kernels are those of `hcomm-kernel`. A [`Mesh`] holds threads, streams and lists of peers; it launches a collective on every
//! rank from one thread of the host.
//!
//! ```
//! use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
//! use host_stub::Cluster;
//! use host_stub::collective::{Call, Collective, Mesh, channel_config};
//!
//! # fn main() -> Result<(), host_stub::Error> {
//! let mut cluster = Cluster::open(2)?;
//! cluster.connect(&channel_config())?;
//! let mesh = Mesh::new(&cluster)?;
//! let call = Call { count: 3, data_type: DataType::INT8, op: ReduceOp::SUM, root: 0, in_place: false };
//! let buffers: Vec<_> = (0..2).map(|rank| mesh.buffers(Collective::AllReduce, &call, rank)).collect::<Result<_, _>>()?;
//! for (rank, input) in [[1, 2, 3], [10, 20, 30]].iter().enumerate() {
//!     cluster.device(rank).copy_in(buffers[rank].user_in, input)?;
//! }
//! mesh.run(Collective::AllReduce, &call, &buffers).map_err(|(_, error)| error)?;
//! let mut out = [0; 3];
//! cluster.device(1).copy_out(buffers[1].user_out, &mut out)?;
//! assert_eq!(out, [11, 22, 33]);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod values;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::{AllGatherParams, CHANNEL_NOTIFIES, CollectiveParams, MeshPeer};
use zerocopy::IntoBytes;

use crate::buffer::DeviceBuffer;
use crate::channel::ChannelConfig;
use crate::cluster::Cluster;
use crate::comm::Comm;
use crate::control::ControlPair;
use crate::error::Error;
use crate::launch::Stream;

/// A collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Every rank gets the inputs of all.
    AllGather,
    /// Rank *r* gets part *r* of the reduced inputs.
    ReduceScatter,
    /// Every rank gets the reduced inputs.
    AllReduce,
    /// The same by neighbours in a ring alone.
    AllReduceRing,
    /// Rank *r* gets part *r* of every input.
    AllToAll,
    /// Every rank gets the input of the root.
    Broadcast,
}

impl Collective {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::AllGather, Self::ReduceScatter, Self::AllReduce, Self::AllReduceRing, Self::AllToAll, Self::Broadcast];

    /// Its name, which is that of the kernel.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllReduce => "all_reduce",
            Self::AllReduceRing => "all_reduce_ring",
            Self::AllToAll => "all_to_all",
            Self::Broadcast => "broadcast",
        }
    }

    /// The collective with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|collective| collective.name() == name)
    }

    /// Whether it reduces.
    pub fn reduces(self) -> bool {
        matches!(self, Self::ReduceScatter | Self::AllReduce | Self::AllReduceRing)
    }

    /// Elements of the input of a rank, and of its output.
    pub fn counts(self, ranks: u64, count: u64) -> (u64, u64) {
        match self {
            Self::AllGather => (count, ranks * count),
            Self::ReduceScatter => (ranks * count, count),
            Self::AllReduce | Self::AllReduceRing | Self::Broadcast => (count, count),
            Self::AllToAll => (ranks * count, ranks * count),
        }
    }

    /// Element at which the output of a rank begins in its input, or the other way round, if the collective is in place.
    fn in_place(self, rank: u64, count: u64) -> InPlace {
        match self {
            Self::AllGather => InPlace::InputAt(rank * count),
            Self::ReduceScatter => InPlace::OutputAt(rank * count),
            Self::AllReduce | Self::AllReduceRing | Self::AllToAll | Self::Broadcast => InPlace::OutputAt(0),
        }
    }

    /// Bytes on the busiest link of a rank for each byte of the larger of input and output.
    pub fn bus_factor(self, ranks: u64) -> f64 {
        let part = (ranks - 1) as f64 / ranks as f64;
        match self {
            Self::AllReduce | Self::AllReduceRing => 2.0 * part,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => part,
            Self::Broadcast => 1.0,
        }
    }

    /// Element `index` of the output of `rank`, made of elements of inputs: `input` gives one, by rank and index, and `reduce` joins
    /// two.
    pub fn expected<T>(
        self,
        call: &Call,
        ranks: usize,
        (rank, index): (usize, usize),
        input: impl Fn(usize, usize) -> T,
        reduce: impl Fn(T, T) -> T,
    ) -> T {
        let count = call.count as usize;
        match self {
            Self::AllGather => input(index / count, index % count),
            Self::AllToAll => input(index / count, rank * count + index % count),
            Self::Broadcast => input(call.root as usize, index),
            Self::ReduceScatter | Self::AllReduce | Self::AllReduceRing => {
                let at = if self == Self::ReduceScatter { rank * count + index } else { index };
                (1..ranks).fold(input(0, at), |sum, from| reduce(sum, input(from, at)))
            }
        }
    }
}

enum InPlace {
    InputAt(u64),
    OutputAt(u64),
}

/// How a collective is called, alike by all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Elements: of the input of an all-gather, an all-reduce and a broadcast, of a part of the input of the others.
    pub count: u64,
    /// Their type.
    pub data_type: DataType,
    /// Operator of those that reduce.
    pub op: ReduceOp,
    /// Rank that gives, of a broadcast.
    pub root: u64,
    /// Input and output share memory.
    pub in_place: bool,
}

/// Input and output of a rank, in memory of its device.
pub struct Buffers {
    memory: Vec<DeviceBuffer>,
    /// First byte of the input.
    pub user_in: DeviceAddr,
    /// First byte of the output.
    pub user_out: DeviceAddr,
}

/// A rank of a mesh.
struct Rank {
    stream: Stream,
    pair: ControlPair,
    peers: DeviceBuffer,
}

/// Threads, streams and lists of peers of all ranks of a cluster.
pub struct Mesh<'c> {
    ranks: Vec<Rank>,
    cluster: &'c Cluster,
}

/// How the channels of a [`Mesh`] are made.
pub fn channel_config() -> ChannelConfig {
    ChannelConfig::new(CHANNEL_NOTIFIES)
}

impl<'c> Mesh<'c> {
    /// Of a cluster of at least two ranks, all connected as [`channel_config`] says.
    ///
    /// # Errors
    /// A rank alone, ranks that are not connected, no room on a device.
    pub fn new(cluster: &'c Cluster) -> Result<Self, Error> {
        let ranks = (0..cluster.ranks()).map(|rank| Self::rank(cluster, rank)).collect::<Result<_, _>>()?;
        Ok(Self { ranks, cluster })
    }

    /// The cluster.
    pub fn cluster(&self) -> &'c Cluster {
        self.cluster
    }

    fn rank(cluster: &Cluster, rank: usize) -> Result<Rank, Error> {
        let (device, comm, ranks) = (cluster.device(rank), cluster.comm(rank), cluster.ranks());
        if ranks < 2 {
            return Err(Error::BadRankCount(ranks));
        }
        let threads = mesh_threads(comm, ranks as u32)?;
        let mut peers = Vec::new();
        for (peer, thread) in (0..ranks).filter(|peer| *peer != rank).zip(&threads) {
            let channel = cluster.channel(rank, peer).ok_or(Error::NotConnected { rank, peer })?.0;
            let ccl_buf = cluster.comm(peer).hccl_buffer()?.0;
            peers.push(MeshPeer { channel, thread: thread.0, ccl_buf, rank: peer as u64 });
        }
        let list = device.malloc(size_of_val(&peers[..]) as u64)?;
        device.copy_in(list.addr(), peers.as_bytes())?;
        let stream = Stream::new(device);
        let pair = ControlPair::new(comm, &stream, threads[0], ranks as u32 - 2)?;
        Ok(Rank { stream, pair, peers: list })
    }

    /// Memory for input and output of a rank.
    ///
    /// # Errors
    /// No room on its device.
    pub fn buffers(&self, collective: Collective, call: &Call, rank: usize) -> Result<Buffers, Error> {
        let device = self.cluster.device(rank);
        let (input, output) = collective.counts(self.ranks.len() as u64, call.count);
        let size = call.data_type.size().unwrap_or(1);
        // An allocation has at least one byte.
        let allocate = |count: u64| device.malloc((count * size).max(1));
        let at = |buffer: &DeviceBuffer, count: u64| DeviceAddr(buffer.addr().0 + count * size);
        if call.in_place {
            let memory = allocate(input.max(output))?;
            let (user_in, user_out) = match collective.in_place(rank as u64, call.count) {
                InPlace::InputAt(offset) => (at(&memory, offset), memory.addr()),
                InPlace::OutputAt(offset) => (memory.addr(), at(&memory, offset)),
            };
            return Ok(Buffers { memory: vec![memory], user_in, user_out });
        }
        let (input, output) = (allocate(input)?, allocate(output)?);
        let (user_in, user_out) = (input.addr(), output.addr());
        Ok(Buffers { memory: vec![input, output], user_in, user_out })
    }

    /// Launches the collective on a rank's stream.
    ///
    /// # Errors
    /// A failed device, no such kernel.
    pub fn launch(&self, collective: Collective, call: &Call, rank: usize, buffers: &Buffers) -> Result<(), Error> {
        let Rank { stream, pair, peers } = &self.ranks[rank];
        let kernel = self.cluster.device(rank).load_kernel(collective.name())?;
        let (ccl_buf, ccl_buf_size) = self.cluster.comm(rank).hccl_buffer()?;
        let Buffers { user_in, user_out, .. } = *buffers;
        let (peers, rank, rank_size) = (peers.addr(), rank as u64, self.ranks.len() as u64);
        let control = pair.control();
        let launched = match collective {
            Collective::AllGather => {
                let (header, len) = (AllGatherParams::HEADER, call.count * call.data_type.size().unwrap_or(1));
                let params = AllGatherParams {
                    header,
                    peers,
                    rank,
                    rank_size,
                    user_in,
                    user_out,
                    ccl_buf,
                    ccl_buf_size,
                    len,
                    control,
                };
                stream.launch_with_control(pair, &kernel, &params)
            }
            _ => {
                let params = CollectiveParams {
                    header: CollectiveParams::HEADER,
                    peers,
                    rank,
                    rank_size,
                    user_in,
                    user_out,
                    ccl_buf,
                    ccl_buf_size,
                    count: call.count,
                    data_type: call.data_type.0,
                    op: call.op.0,
                    root: call.root,
                    control,
                };
                stream.launch_with_control(pair, &kernel, &params)
            }
        };
        launched.map(drop)
    }

    /// Waits for what was launched on a rank.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn synchronize(&self, rank: usize) -> Result<(), Error> {
        self.ranks[rank].stream.synchronize()
    }

    /// Runs a collective on all ranks, whose buffers these are.
    ///
    /// # Errors
    /// The rank, and what went wrong there: that of the lowest rank, once all have ended.
    pub fn run(&self, collective: Collective, call: &Call, buffers: &[Buffers]) -> Result<(), (usize, Error)> {
        for (rank, buffers) in buffers.iter().enumerate() {
            self.launch(collective, call, rank, buffers).map_err(|error| (rank, error))?;
        }
        let results: Vec<_> = (0..self.ranks.len()).map(|rank| self.synchronize(rank)).collect();
        for (rank, result) in results.into_iter().enumerate() {
            result.map_err(|error| (rank, error))?;
        }
        Ok(())
    }
}

impl Buffers {
    /// Bytes of memory that they are.
    pub fn len(&self) -> u64 {
        self.memory.iter().map(DeviceBuffer::len).sum()
    }

    /// Whether there are none: never.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }
}

/// The thread of each peer of a rank.
fn mesh_threads(comm: &Comm, ranks: u32) -> Result<Vec<ThreadHandle>, Error> {
    let mut threads = comm.acquire_threads(Engine::AICPU_TS, 1, ranks - 1)?;
    if ranks > 2 {
        threads.extend(comm.acquire_threads(Engine::AICPU_TS, ranks - 2, 1)?);
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_names_the_inputs_that_it_is_made_of() {
        let call = Call { count: 2, data_type: DataType::INT32, op: ReduceOp::SUM, root: 1, in_place: false };
        let output = |collective: Collective, rank| {
            let count = collective.counts(3, 2).1 as usize;
            let input = |from: usize, index: usize| vec![(from, index)];
            let element = |index| collective.expected(&call, 3, (rank, index), input, |a, b| [a, b].concat());
            (0..count).map(element).collect::<Vec<_>>()
        };
        assert_eq!(output(Collective::AllGather, 0)[3], [(1, 1)]);
        assert_eq!(output(Collective::AllToAll, 2)[3], [(1, 5)]);
        assert_eq!(output(Collective::Broadcast, 2), [[(1, 0)], [(1, 1)]]);
        assert_eq!(output(Collective::AllReduce, 2)[1], [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(output(Collective::ReduceScatter, 2)[1], [(0, 5), (1, 5), (2, 5)]);
    }

    #[test]
    fn names_are_found_again() {
        assert!(
            Collective::ALL.into_iter().all(|collective| Collective::from_name(collective.name()) == Some(collective))
        );
        assert_eq!(Collective::from_name("reduce"), None);
    }
}
