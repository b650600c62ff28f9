//! Several devices of one machine, each with a communicator, driven from one thread or from many.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::Arc;

use hcomm_aicpu::spec::channel::ChannelHandle;

use crate::channel::{ChannelConfig, ChannelRanks};
use crate::comm::{Comm, CommOptions};
use crate::device::Device;
use crate::error::Error;
use crate::limits::MAX_RANKS;
use crate::options::DeviceOptions;
use hcomm_mapping::SharedMemory;
use hcomm_sim::fabric::{Fabric, Prepared};

/// Devices that are joined, in any free slots of the process; rank *n* is device *n* of the list.
pub struct Cluster {
    // Before the devices: communicators release their channels.
    comms: Vec<Comm>,
    devices: Vec<Device>,
    channels: HashMap<(usize, usize), ChannelHandle>,
}

impl Cluster {
    /// `ranks` devices whose kernels run on threads of the host.
    ///
    /// # Errors
    /// As [`with_options`](Self::with_options).
    pub fn open(ranks: usize) -> Result<Self, Error> {
        Self::with_options(ranks, &DeviceOptions::native(), CommOptions::default())
    }

    /// `ranks` devices that are opened alike, each with a communicator.
    ///
    /// # Errors
    /// [`Error::BadRankCount`], [`Error::DeterministicCluster`], and those of a device and a communicator.
    pub fn with_options(ranks: usize, options: &DeviceOptions, comm: CommOptions) -> Result<Self, Error> {
        if !(1..=MAX_RANKS).contains(&ranks) {
            return Err(Error::BadRankCount(ranks));
        }
        if options.deterministic.is_some() {
            return Err(Error::DeterministicCluster);
        }
        let fabric: Arc<Fabric<SharedMemory>> = Arc::default();
        let devices: Vec<_> =
            (0..ranks).map(|_| Device::open_in(options.clone(), &fabric)).collect::<Result<_, _>>()?;
        let comms = devices.iter().map(|device| Comm::with_options(device, comm)).collect::<Result<_, _>>()?;
        Ok(Self { comms, devices, channels: HashMap::new() })
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.devices.len()
    }

    /// The device of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn device(&self, rank: usize) -> &Device {
        &self.devices[rank]
    }

    /// The communicator of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn comm(&self, rank: usize) -> &Comm {
        &self.comms[rank]
    }

    /// Makes the channels between all ranks; those of an earlier call stay, and [`channel`](Self::channel) gives the new ones.
    ///
    /// # Errors
    /// A number out of range, no room, a failed device.
    pub fn connect(&mut self, config: &ChannelConfig) -> Result<(), Error> {
        for rank in 0..self.ranks() {
            for peer in 0..rank {
                self.connect_pair(rank, peer, [config; 2])?;
            }
        }
        Ok(())
    }

    /// Makes the channel between two ranks, whose ends are made with `configs`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); ends with different numbers of notifies.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn connect_pair(&mut self, rank: usize, peer: usize, configs: [&ChannelConfig; 2]) -> Result<(), Error> {
        let first = self.prepare(rank, peer, configs[0])?;
        let second = self.prepare(peer, rank, configs[1]).inspect_err(|_| self.comms[rank].give_up_channel(&first))?;
        let (to_first, to_second) = (second.offer(), first.offer());
        // Both, also if one fails: what was prepared is given back.
        let first = self.comms[rank].complete_channel(first, &to_first);
        let second = self.comms[peer].complete_channel(second, &to_second);
        self.channels.insert((rank, peer), first?);
        self.channels.insert((peer, rank), second?);
        Ok(())
    }

    fn prepare(&self, rank: usize, peer: usize, config: &ChannelConfig) -> Result<Prepared, Error> {
        let peer_device = self.devices[peer].slot();
        let ranks = ChannelRanks { rank: rank as u32, peer_rank: peer as u32, peer_device };
        self.comms[rank].prepare_channel(ranks, config)
    }

    /// Rank `rank`'s end of its last channel to `peer`.
    pub fn channel(&self, rank: usize, peer: usize) -> Option<ChannelHandle> {
        self.channels.get(&(rank, peer)).copied()
    }
}
