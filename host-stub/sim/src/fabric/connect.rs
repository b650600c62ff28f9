//! The channel table of a device: makes and releases ends of channels.
//!
//! An end is made in two steps, as the two devices of a channel may belong to different threads: [`Channels::prepare`] gives
//! an [`Offer`], plain data that is handed to the peer; [`Channels::complete`] takes the peer's.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::{
    CHANNEL_SIZE, ChannelDescriptor, ChannelHandle, ChannelTag, MAX_CHANNEL_NOTIFIES, MAX_CHANNELS, MAX_WORK_DEPTH,
    NOTIFY_SIZE_910, NOTIFY_SIZE_950, Protocol, notify_addr, notify_phys_910,
};
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::ub::{BLOCK_SIZE, MAX_SLICE};
use zerocopy::IntoBytes;

use crate::alloc::{AllocError, Kind};
use crate::decode::Jetty;
use crate::event::{ChannelName, HostThread, What};
use crate::ids::Owner;
use crate::inbox::Command;
use crate::memory::Memory;
use crate::shared::Shared;
use crate::threads::{ThreadError, Threads};

use super::end::ChannelEnd;
use super::member::{Export, Port, Token, eid_of};

/// Function of the jetties of channels.
const FUNCTION: u8 = 1;

/// Why an end of a channel is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// All slots of the table are in use.
    #[error("all {MAX_CHANNELS} channels of the device are in use")]
    NoChannels,
    /// Too many notifies.
    #[error("{0} notifies of a channel: at most {MAX_CHANNEL_NOTIFIES}")]
    Notifies(u32),
    /// The two ends differ.
    #[error("{own} notifies at rank {rank}, {peer} at rank {peer_rank}: both ends of a channel have as many")]
    NotifyCounts {
        /// Of the own end.
        own: u32,
        /// Own rank.
        rank: u32,
        /// Of the peer's.
        peer: u32,
        /// Rank of the peer.
        peer_rank: u32,
    },
    /// Not a depth of a work ring.
    #[error("work ring of {0} blocks: must be a power of two from 2 to {MAX_WORK_DEPTH}")]
    Depth(u32),
    /// Not a size of an entry.
    #[error("entries of up to {0} bytes: must be a multiple of 4 up to {MAX_SLICE}")]
    Slice(u32),
    /// No room for the ring.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// No notifies.
    #[error(transparent)]
    Thread(#[from] ThreadError),
}

/// What an end is made from.
#[derive(Clone, Copy, Debug)]
pub struct EndSpec {
    /// Number of the communicator on its device, as its threads have it.
    pub comm: u64,
    /// Rank of this end.
    pub rank: u32,
    /// Rank of the peer.
    pub peer_rank: u32,
    /// Slot of the peer's device.
    pub peer_device: u32,
    /// Notifies of each end.
    pub notify_count: u32,
    /// Blocks of the work ring.
    pub depth: u32,
    /// Most bytes of an entry.
    pub max_slice: u32,
    /// Producer index of the first entry.
    pub producer_index: u16,
    /// Address and bytes of what the peer may write and read.
    pub memory: (DeviceAddr, u64),
}

/// What the peer needs to know of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Slot of its device.
    pub device: u32,
    /// Tells that device from those that had the slot before.
    pub generation: u32,
    /// Its rank.
    pub rank: u32,
    /// Memory that it exchanges.
    pub memory: (DeviceAddr, u64),
    /// Right to use that memory.
    pub memory_token: Token,
    /// Id of its notify 0, and how many it has.
    pub notifies: (u32, u32),
    /// Right to record them.
    pub notify_token: Token,
}

/// An end that waits for the peer's offer.
#[derive(Debug)]
pub struct Prepared {
    spec: EndSpec,
    slot: usize,
    ring: DeviceAddr,
    offer: Offer,
}

impl Prepared {
    /// What the peer needs.
    pub fn offer(&self) -> Offer {
        self.offer
    }
}

/// The table, as the host keeps it.
struct Table {
    /// Generation of the last channel of each slot, 0 before the first.
    generations: Vec<u16>,
    /// Slots in use.
    used: Vec<bool>,
    live: HashMap<usize, Prepared>,
}

/// The channels of a device.
pub struct Channels<M> {
    shared: Arc<Shared<M>>,
    base: DeviceAddr,
    port: Port<M>,
    table: Mutex<Table>,
}

impl<M: Memory> Channels<M> {
    /// No channels, in a table of [`MAX_CHANNELS`] descriptors at `base` of HBM.
    pub fn new(shared: &Arc<Shared<M>>, base: DeviceAddr, port: Port<M>) -> Self {
        let table = Table { generations: vec![0; MAX_CHANNELS], used: vec![false; MAX_CHANNELS], live: HashMap::new() };
        Self { shared: Arc::clone(shared), base, port, table: Mutex::new(table) }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Access to the fabric that the device is in.
    pub fn port(&self) -> &Port<M> {
        &self.port
    }

    fn is_ub(&self) -> bool {
        self.shared.soc == Soc::Ascend950
    }

    /// Takes a slot, a work ring and notifies for an end, whose notifies `threads` numbers. Nothing is published yet.
    ///
    /// # Errors
    /// A number out of range, no slot, no notify, no memory.
    pub fn prepare(&self, threads: &Threads<M>, spec: EndSpec) -> Result<Prepared, ChannelError> {
        if spec.notify_count > MAX_CHANNEL_NOTIFIES {
            return Err(ChannelError::Notifies(spec.notify_count));
        }
        if !spec.depth.is_power_of_two() || !(2..=MAX_WORK_DEPTH).contains(&spec.depth) {
            return Err(ChannelError::Depth(spec.depth));
        }
        if spec.max_slice == 0 || spec.max_slice > MAX_SLICE.get() || !spec.max_slice.is_multiple_of(4) {
            return Err(ChannelError::Slice(spec.max_slice));
        }
        let slot = self.take_slot()?;
        let result = self.prepare_in(threads, spec, slot);
        if result.is_err() {
            self.table().used[slot] = false;
        }
        result
    }

    /// A slot whose last generation is used up is not handed out again.
    fn take_slot(&self) -> Result<usize, ChannelError> {
        let mut table = self.table();
        let is_free = |slot: &usize| !table.used[*slot] && table.generations[*slot] < u16::MAX;
        let slot = (0..MAX_CHANNELS).find(is_free).ok_or(ChannelError::NoChannels)?;
        table.used[slot] = true;
        Ok(slot)
    }

    fn prepare_in(&self, threads: &Threads<M>, spec: EndSpec, slot: usize) -> Result<Prepared, ChannelError> {
        let peer = spec.peer_device;
        let owner = |index| Owner::Channel { peer, peer_rank: spec.peer_rank, index };
        let first = threads.add_channel_notifies(spec.notify_count, owner)?;
        let ring = match self.is_ub() {
            true => self.shared.allocate(u64::from(spec.depth) * BLOCK_SIZE as u64, Kind::WorkRing),
            false => Ok(0),
        };
        let ring = ring.inspect_err(|_| threads.remove_channel_notifies(first, spec.notify_count))?;
        let (DeviceAddr(addr), len) = spec.memory;
        let notify_token = self.port.export(Export::Notifies { first, count: spec.notify_count, peer });
        let offer = Offer {
            device: self.port.device(),
            generation: self.port.generation(),
            rank: spec.rank,
            memory: spec.memory,
            memory_token: self.port.export(Export::Memory { addr, len }),
            notifies: (first, spec.notify_count),
            notify_token,
        };
        Ok(Prepared { spec, slot, ring: DeviceAddr(ring), offer })
    }

    /// Publishes an end whose peer has made `peer`.
    ///
    /// # Errors
    /// [`ChannelError::NotifyCounts`]: the end is given up.
    ///
    /// # Panics
    /// If the table is not in HBM.
    pub fn complete(
        &self,
        threads: &Threads<M>,
        prepared: Prepared,
        peer: &Offer,
    ) -> Result<ChannelHandle, ChannelError> {
        let (own, count) = (prepared.spec.notify_count, peer.notifies.1);
        if own != count {
            let (rank, peer_rank) = (prepared.spec.rank, peer.rank);
            self.give_up(threads, &prepared);
            return Err(ChannelError::NotifyCounts { own, rank, peer: count, peer_rank });
        }
        let mut table = self.table();
        let slot = prepared.slot;
        let generation = table.generations[slot] + 1;
        table.generations[slot] = generation;
        let descriptor = self.descriptor(&prepared, peer, generation);
        let end = self.end(&descriptor, peer);
        self.port.set_rank(end.name.rank);
        self.shared.events.send(|| What::ChannelMade { channel: end.name });
        self.shared.inbox.send(Command::AddChannel(Box::new(end)));
        let addr = self.addr(slot);
        let (memory, after) = (&*self.shared.memory, offset_of!(ChannelDescriptor, comm));
        let bytes = &descriptor.as_bytes()[after..];
        memory.write_hbm(addr.0 + after as u64, bytes).expect("the table is in hbm");
        // Pairs with the device's acquire read of the tag: a device that sees it live sees the rest.
        memory.publish_hbm_word(addr.0, descriptor.tag.to_bits()).expect("the table is in hbm");
        table.live.insert(slot, prepared);
        Ok(ChannelHandle::new(addr, generation))
    }

    fn descriptor(&self, prepared: &Prepared, peer: &Offer, generation: u16) -> ChannelDescriptor {
        let Prepared { spec, slot, ring, offer } = prepared;
        let device = self.port.device();
        let (first, count) = peer.notifies;
        let (protocol, notify_size, peer_notify) = match self.is_ub() {
            true => (Protocol::UB_CTP, NOTIFY_SIZE_950, notify_addr(peer.device, first, NOTIFY_SIZE_950)),
            false => (Protocol::HCCS, NOTIFY_SIZE_910, notify_phys_910(peer.device, first)),
        };
        ChannelDescriptor {
            tag: ChannelTag::live(generation),
            comm: spec.comm,
            protocol,
            device,
            peer_device: peer.device,
            rank: spec.rank,
            peer_rank: peer.rank,
            notify_size,
            ring: *ring,
            depth: spec.depth,
            producer_index: spec.producer_index.into(),
            jetty: *slot as u16,
            jetty_function: FUNCTION,
            jetty_die: 0,
            path: peer.device + 1,
            eid: eid_of(device),
            peer_eid: eid_of(peer.device),
            max_slice: spec.max_slice,
            local_token_id: offer.memory_token.id,
            remote: peer.memory.0,
            remote_len: peer.memory.1,
            remote_token_id: peer.memory_token.id,
            remote_token_value: peer.memory_token.value,
            notify_token_id: peer.notify_token.id,
            notify_token_value: peer.notify_token.value,
            peer_notify,
            notify_id: offer.notifies.0,
            notify_count: offer.notifies.1,
            peer_notify_id: first,
            peer_notify_count: count,
            reserved: [0; 12],
        }
    }

    fn end(&self, descriptor: &ChannelDescriptor, peer: &Offer) -> ChannelEnd {
        let start = descriptor.producer_index as u16;
        ChannelEnd {
            jetty: jetty(descriptor.jetty),
            ring: descriptor.ring.0,
            depth: descriptor.depth,
            start,
            consumed: start,
            path: descriptor.path,
            peer_eid: descriptor.peer_eid,
            peer: descriptor.peer_device,
            name: ChannelName { slot: descriptor.jetty, rank: descriptor.rank, peer_rank: descriptor.peer_rank },
            peer_generation: peer.generation,
            notify: (descriptor.peer_notify.0, descriptor.notify_size),
            peer_notifies: (descriptor.peer_notify_id, descriptor.peer_notify_count),
            notifies: (descriptor.notify_id, descriptor.notify_count),
            failure: None,
        }
    }

    fn addr(&self, slot: usize) -> DeviceAddr {
        DeviceAddr(self.base.0 + slot as u64 * CHANNEL_SIZE)
    }

    /// Gives back what [`prepare`](Self::prepare) has taken.
    pub fn give_up(&self, threads: &Threads<M>, prepared: &Prepared) {
        let Prepared { spec, slot, ring, offer } = prepared;
        self.port.revoke(offer.memory_token);
        self.port.revoke(offer.notify_token);
        threads.remove_channel_notifies(offer.notifies.0, spec.notify_count);
        if !ring.is_null() {
            self.shared.free_own(ring.0, Some(HostThread::current()));
        }
        self.table().used[*slot] = false;
    }

    /// Releases ends. No kernel may use them any more: the threads of their communicator are released before, or it runs no
    /// kernel.
    ///
    /// # Panics
    /// If the table is not in HBM.
    pub fn release(&self, threads: &Threads<M>, handles: &[ChannelHandle]) {
        let released: Vec<Prepared> = handles.iter().filter_map(|handle| self.take_live(*handle)).collect();
        let jetties = released.iter().map(|end| jetty(end.slot as u16)).collect();
        self.shared.inbox.send(Command::RemoveChannels(jetties));
        for end in &released {
            self.give_up(threads, end);
        }
    }

    fn take_live(&self, handle: ChannelHandle) -> Option<Prepared> {
        let mut table = self.table();
        let offset = handle.addr().0.checked_sub(self.base.0).filter(|offset| offset.is_multiple_of(CHANNEL_SIZE))?;
        let slot = usize::try_from(offset / CHANNEL_SIZE).ok()?;
        if table.generations.get(slot) != Some(&handle.generation()) {
            return None;
        }
        let end = table.live.remove(&slot)?;
        self.shared.memory.publish_hbm_word(handle.addr().0, 0).expect("the table is in hbm");
        Some(end)
    }
}

fn jetty(slot: u16) -> Jetty {
    Jetty { die: 0, function: FUNCTION, id: slot }
}
