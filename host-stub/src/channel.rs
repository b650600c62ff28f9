//! Channels of a communicator: how its end of one is made.
#![forbid(unsafe_code)]

use hcomm_aicpu::spec::channel::{ChannelHandle, DEFAULT_WORK_DEPTH};
use hcomm_aicpu::spec::ub::MAX_SLICE;

use crate::comm::Comm;
use crate::device::Device;
use crate::error::Error;
pub use crate::limits::MAX_RANKS;
use hcomm_sim::fabric::{EndSpec, Offer, Prepared};

/// What both ends of a channel are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Notifies of each end, at most 64. Both ends have as many.
    pub notify_count: u32,
    /// Blocks of each end's work ring: a power of two from 2 to 32,768.
    pub depth: u32,
    /// Most bytes of a work entry, a multiple of 4 up to 256 MiB.
    pub max_slice: u32,
    /// Producer index of the first entry, for tests of its wrap.
    pub producer_index: u16,
}

impl ChannelConfig {
    /// Channels with `notify_count` notifies at each end, and rings as deep as on a card.
    pub fn new(notify_count: u32) -> Self {
        Self { notify_count, depth: DEFAULT_WORK_DEPTH, max_slice: MAX_SLICE.get(), producer_index: 0 }
    }

    /// Sets the blocks of the work rings.
    pub fn depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    /// Sets the most bytes of a work entry.
    pub fn max_slice(self, max_slice: u32) -> Self {
        Self { max_slice, ..self }
    }

    /// Sets the producer index of the first entry.
    pub fn starting_at(self, producer_index: u16) -> Self {
        Self { producer_index, ..self }
    }
}

/// Who a channel joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelRanks {
    /// Rank of this end.
    pub rank: u32,
    /// Rank of the peer.
    pub peer_rank: u32,
    /// Slot of the peer's device.
    pub peer_device: usize,
}

impl Device {
    /// Tells the device from those that had its slot before.
    pub fn generation(&self) -> u32 {
        self.0.card().map_or_else(|| self.0.channels.port().generation(), |_| 0)
    }

    /// Why the device of the same fabric in `slot` that has this generation can do nothing more for its peers: it has failed or is
    /// closed.
    pub fn peer_failure(&self, slot: u32, generation: u32) -> Option<String> {
        if self.0.card().is_some() {
            return None;
        }
        let failure = self.0.channels.port().failure_of(slot, generation)?;
        Some(failure.text().to_owned())
    }
}

impl Comm {
    /// Prepares an end of a channel. Its [offer](Prepared::offer) goes to the peer; [`complete_channel`](Self::complete_channel)
    /// takes the peer's. The cclBuf is what the peer may write and read.
    ///
    /// # Errors
    /// A number out of range, no room, a failed device.
    pub fn prepare_channel(&self, ranks: ChannelRanks, config: &ChannelConfig) -> Result<Prepared, Error> {
        let inner = self.device().0.on_sim("a channel")?;
        inner.check_alive()?;
        let spec = EndSpec {
            comm: self.id(),
            rank: ranks.rank,
            peer_rank: ranks.peer_rank,
            peer_device: ranks.peer_device as u32,
            notify_count: config.notify_count,
            depth: config.depth,
            max_slice: config.max_slice,
            producer_index: config.producer_index,
            memory: self.hccl_buffer()?,
        };
        Ok(inner.channels.prepare(&inner.threads, spec)?)
    }

    /// Makes the end of a channel, whose peer has offered `peer`. It stays until the communicator is dropped.
    ///
    /// # Errors
    /// The two ends have different numbers of notifies.
    pub fn complete_channel(&self, prepared: Prepared, peer: &Offer) -> Result<ChannelHandle, Error> {
        let inner = self.device().0.on_sim("a channel")?;
        let handle = inner.channels.complete(&inner.threads, prepared, peer)?;
        self.add_channel(handle);
        Ok(handle)
    }

    /// Gives up an end that was prepared.
    pub fn give_up_channel(&self, prepared: &Prepared) {
        let Ok(inner) = self.device().0.on_sim("a channel") else { return };
        inner.channels.give_up(&inner.threads, prepared);
    }
}
