//! The device's own state of one channel: where its work ring is, what of it was written, published and consumed.
//!
//! Locks are taken in the order queue, channel. Entries are written and their doorbell is published under both, so the doorbell
//! with the highest producer index is the one that was published last: once the head of its queue has passed it, the ring is
//! consumed up to there.

use core::num::NonZeroU32;

use super::table::Slot;
use crate::error::{ChannelField, ChannelOperation, Error};
use crate::port::Platform;
use crate::spec::channel::{ChannelDescriptor, ChannelHandle, MAX_CHANNEL_NOTIFIES, MAX_WORK_DEPTH, Protocol};
use crate::spec::queue::QueueStatus;
use crate::spec::soc::Soc;
use crate::spec::thread::ThreadHandle;
use crate::spec::ub::{self, BLOCK_SIZE, Block, Eid, Jetty, Local, PathNumber, Peer, Remote, TokenId, WorkDepth};
use crate::spec::{DeviceAddr, Sqe};
use crate::sync::{Mutex, MutexGuard, const_fn, lock_cold};

/// Channels whose state a device keeps. Loom follows each lock: few are enough for it.
#[cfg(loom)]
pub(crate) const CHANNELS: usize = 2;
/// Channels whose state a device keeps.
#[cfg(not(loom))]
pub(crate) const CHANNELS: usize = crate::spec::channel::MAX_CHANNELS;

/// Where a doorbell descriptor went: queue, its status word then, and place in the order of everything that was ever put
/// into its ring. Places of published descriptors are never used twice under one status word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Index of the queue's state.
    pub(crate) queue: u16,
    /// Status word under which it was published.
    pub(crate) enabled: QueueStatus,
    /// Lap of the ring in the high half, slot in the low half.
    pub(crate) position: u64,
}

impl Place {
    /// Of a channel without a doorbell.
    pub(crate) const NONE: Self = Self { queue: 0, enabled: QueueStatus::FREE, position: 0 };
}

/// What of a descriptor calls need, checked and in the types of the builders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) protocol: Protocol,
    ring: DeviceAddr,
    pub(crate) depth: WorkDepth,
    pub(crate) jetty: Jetty,
    pub(crate) jetty_id: u16,
    pub(crate) max_slice: NonZeroU32,
    local_token_id: u32,
    remote: DeviceAddr,
    remote_len: u64,
    /// Exchanged memory of the peer.
    memory: ub::Region,
    /// Its notifies, as a write with one names them, and as a record does.
    notify: Remote,
    registers: ub::Region,
    notify_size: u32,
    pub(crate) peer_notify_count: u32,
    notify_id: u32,
    pub(crate) notify_count: u32,
}

impl Bound {
    /// # Errors
    /// [`Error::BadChannelField`], [`Error::ChannelOperation`] for a protocol that the chip does not have.
    fn new(handle: ChannelHandle, from: &ChannelDescriptor, soc: Soc, max_notify_id: u32) -> Result<Self, Error> {
        let bad = |field, value: u64| Error::BadChannelField { channel: handle, field, value };
        let protocol = from.protocol;
        let is_ub = match soc {
            Soc::Ascend950 => protocol == Protocol::UB_CTP,
            Soc::Ascend910B | Soc::Ascend910_93 => false,
        };
        let is_hccs = soc != Soc::Ascend950 && protocol == Protocol::HCCS;
        if !is_ub && !is_hccs {
            return Err(Error::ChannelOperation { operation: ChannelOperation::Transfer, protocol });
        }
        // A channel without a ring has one of the smallest depth, which no call writes to.
        let depth = if is_ub { from.depth } else { 2 };
        let bad_depth = bad(ChannelField::Depth, depth.into());
        let blocks = WorkDepth::new(depth).ok().filter(|_| depth <= MAX_WORK_DEPTH).ok_or(bad_depth)?;
        let ring_len = u64::from(depth) * BLOCK_SIZE as u64;
        let is_aligned = from.ring.0.is_multiple_of(BLOCK_SIZE as u64) && from.ring.0.checked_add(ring_len).is_some();
        if is_ub && (from.ring.is_null() || !is_aligned) {
            return Err(bad(ChannelField::RingAddress, from.ring.0));
        }
        let jetty = Jetty::new(from.jetty_die, from.jetty_function, from.jetty.into());
        let path = PathNumber::new(from.path).map_err(|error| bad(ChannelField::Path, error.0.into()))?;
        let slice = NonZeroU32::new(from.max_slice).filter(|max| *max <= ub::MAX_SLICE && max.get().is_multiple_of(4));
        let token = |id| TokenId::new(id).map_err(|error| bad(ChannelField::Token, error.0.into()));
        let peer = Peer { path, eid: Eid(from.peer_eid) };
        let (token_id, token_value) = (token(from.notify_token_id)?, from.notify_token_value);
        let notify = Remote { addr: from.peer_notify, token_id, token_value };
        let last_notify = u64::from(from.notify_id) + u64::from(from.notify_count);
        if from.notify_count > MAX_CHANNEL_NOTIFIES || last_notify > u64::from(max_notify_id) + 1 {
            return Err(bad(ChannelField::Notifies, last_notify));
        }
        if from.peer_notify_count > MAX_CHANNEL_NOTIFIES {
            return Err(bad(ChannelField::Notifies, from.peer_notify_count.into()));
        }
        Ok(Self {
            protocol,
            ring: from.ring,
            depth: blocks,
            jetty: jetty.map_err(|_| bad(ChannelField::Jetty, from.jetty.into()))?,
            jetty_id: from.jetty,
            max_slice: slice.ok_or(bad(ChannelField::MaxSlice, from.max_slice.into()))?,
            local_token_id: from.local_token_id,
            remote: from.remote,
            remote_len: from.remote_len,
            memory: ub::Region::new(peer, token(from.remote_token_id)?, from.remote_token_value),
            notify,
            registers: ub::Region::new(peer, notify.token_id, notify.token_value),
            notify_size: from.notify_size,
            peer_notify_count: from.peer_notify_count,
            notify_id: from.notify_id,
            notify_count: from.notify_count,
        })
    }

    /// Whether `len` bytes from `addr` on lie in the exchanged memory of the peer. Of `len` 0: always.
    #[inline(always)]
    pub(crate) fn has_remote(&self, addr: DeviceAddr, len: u64) -> bool {
        let offset = addr.0.wrapping_sub(self.remote.0);
        (offset <= self.remote_len) & (len <= self.remote_len.wrapping_sub(offset))
    }

    /// # Errors
    /// [`Error::RemoteRange`].
    pub(crate) fn check_remote(&self, addr: DeviceAddr, len: u64) -> Result<(), Error> {
        if len == 0 || self.has_remote(addr, len) {
            return Ok(());
        }
        Err(Error::RemoteRange { addr, len, base: self.remote, size: self.remote_len })
    }

    /// # Errors
    /// [`Error::BadPeerNotify`].
    pub(crate) fn check_peer_notify(&self, index: u32) -> Result<(), Error> {
        let count = self.peer_notify_count;
        if index < count { Ok(()) } else { Err(Error::BadPeerNotify { index, count }) }
    }

    /// Id of notify `index` of this end.
    ///
    /// # Errors
    /// [`Error::BadLocalNotify`].
    pub(crate) fn own_notify(&self, index: u32) -> Result<u32, Error> {
        let count = self.notify_count;
        if index < count { Ok(self.notify_id + index) } else { Err(Error::BadLocalNotify { index, count }) }
    }

    /// Register of notify `index` of the peer.
    #[inline(always)]
    pub(crate) fn peer_notify(&self, index: u32) -> DeviceAddr {
        DeviceAddr(self.notify.addr.0.wrapping_add(u64::from(index) * u64::from(self.notify_size)))
    }

    #[inline(always)]
    fn local(&self, addr: DeviceAddr) -> Local {
        Local { addr, token_id: self.local_token_id }
    }

    /// Writes the blocks of an entry whose first has producer index `index`. Gives how many they are.
    #[inline(always)]
    pub(crate) fn write_entry<P: Platform>(&self, io: &P, index: u16, entry: &Entry) -> u16 {
        let Entry { work, order } = *entry;
        match work {
            Work::Write { remote, local, len, reduce, notify } => {
                let local = self.local(local);
                let Some(notify) = notify else {
                    let write = ub::Write::to(self.memory, remote, local, len);
                    let write = reduce.map_or(write, |reduce| write.reduce(reduce));
                    return self.write_block(io, index, write.build(index, self.depth, order));
                };
                let target = Remote { addr: self.peer_notify(notify), ..self.notify };
                let write = ub::WriteWithNotify::to(self.memory, remote, local, len, target);
                let write = reduce.map_or(write, |reduce| write.reduce(reduce));
                let [first, second] = write.build(index, self.depth, order);
                self.write_block(io, index, first) + self.write_block(io, index.wrapping_add(1), second)
            }
            Work::Read { remote, local, len, reduce } => {
                let read = ub::Read::from(self.memory, remote, self.local(local), len);
                let read = reduce.map_or(read, |reduce| read.reduce(reduce));
                self.write_block(io, index, read.build(index, self.depth, order))
            }
            Work::Record { notify } => {
                let record = ub::NotifyRecord::at(self.registers, self.peer_notify(notify));
                self.write_block(io, index, record.build(index, self.depth, order))
            }
        }
    }

    /// The one place that writes a block.
    #[inline(always)]
    fn write_block<P: Platform>(&self, io: &P, index: u16, Block(words): Block) -> u16 {
        let slot = u64::from(self.depth.slot(index)) * BLOCK_SIZE as u64;
        // SAFETY: `slot` is inside a ring of `depth` blocks that `Bound::new` checked and the host keeps mapped while a kernel
        // runs that has looked the channel up (`Device::set_channel_table`). The block is free: the caller has reserved it
        // within `ChannelState::free`, and holds the channel's lock until the doorbell.
        unsafe { io.write_slot(DeviceAddr(self.ring.0 + slot), &Sqe(words)) };
        1
    }
}

/// What one entry does. Addresses, lengths and indices are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Write { remote: DeviceAddr, local: DeviceAddr, len: u32, reduce: Option<ub::UbReduce>, notify: Option<u32> },
    Read { remote: DeviceAddr, local: DeviceAddr, len: u32, reduce: Option<ub::UbReduce> },
    Record { notify: u32 },
}

impl Work {
    /// Blocks of the entry.
    #[inline(always)]
    pub(crate) fn blocks(&self) -> u32 {
        if matches!(self, Self::Write { notify: Some(_), .. }) { 2 } else { 1 }
    }
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) work: Work,
    pub(crate) order: ub::Order,
}

/// See the module.
pub(crate) struct ChannelState {
    /// The channel that everything below belongs to; 0: none.
    handle: ChannelHandle,
    /// Thread of the last call, or the one that has staged doorbells: found to be of the channel's communicator.
    thread: ThreadHandle,
    /// Tag of its descriptor while it lives.
    tag: u64,
    bound: Option<Bound>,
    /// Producer index of the next block.
    index: u16,
    /// Of a channel with staged doorbells: producer index of the last one that was published.
    published: u16,
    /// Where that doorbell is.
    place: Place,
    /// Where the last doorbell is that a batch has staged.
    staged: Place,
    /// The batch that has staged doorbells, by its number; 0: none has.
    stager: u32,
    /// In the list of channels with staged doorbells of the queue in `staged`: the next one + 1, or 0.
    next: u16,
    /// Blocks that the fast path may write: those that are known to be free, unless a fence is pending.
    straight: u32,
    /// Free blocks that the fast path may not write.
    withheld: u32,
    /// The next transfer is ordered behind everything before.
    fence: bool,
}

/// What the fast path needs of a channel.
impl ChannelState {
    const NONE: Self = Self {
        handle: ChannelHandle(0),
        thread: ThreadHandle(0),
        tag: 0,
        bound: None,
        index: 0,
        published: 0,
        place: Place::NONE,
        staged: Place::NONE,
        stager: 0,
        next: 0,
        straight: 0,
        withheld: 0,
        fence: false,
    };

    /// The channel, if it is that of `handle`, alive, was last used by `thread` in the same batch or outside of any, and has
    /// `blocks` blocks for the fast path.
    #[inline(always)]
    pub(crate) fn fast(&self, handle: ChannelHandle, thread: ThreadHandle, batch: u32, blocks: u32) -> Option<&Bound> {
        // Without a branch for each.
        let differs = (self.handle.0 ^ handle.0) | (self.thread.0 ^ thread.0) | u64::from(self.stager ^ batch);
        let is_same = differs == 0;
        // A state without a channel has no blocks.
        if !(is_same & (blocks <= self.straight)) || !Slot(handle).has_tag(self.tag) {
            return None;
        }
        self.bound.as_ref()
    }

    #[inline(always)]
    pub(crate) fn index(&self) -> u16 {
        self.index
    }

    /// [`commit`](Self::commit) of a call like the one before it: what is still staged is on one queue, under one status word.
    #[inline(always)]
    pub(crate) fn commit_fast(&mut self, end: u16, blocks: u32, place: Place, batch: u32) {
        self.index = end;
        self.straight -= blocks;
        if batch == 0 {
            self.place = place;
        } else {
            self.staged.position = place.position;
        }
    }
}

/// What the slow path needs.
impl ChannelState {
    /// Counts blocks that were written, up to producer index `end`, with their doorbell at `place`, which `batch` has staged
    /// unless it is 0.
    pub(crate) fn commit(&mut self, end: u16, blocks: u32, place: Place, batch: u32) {
        if batch != 0 {
            self.staged = place;
        }
        self.commit_fast(end, blocks, place, batch);
    }

    pub(crate) fn bound(&self, handle: ChannelHandle) -> Option<&Bound> {
        self.bound.as_ref().filter(|_| self.handle == handle && Slot(handle).is_live())
    }

    /// Becomes the state of the channel of `handle`, whose descriptor this is, unless it is already.
    ///
    /// # Errors
    /// A descriptor that holds what it can't.
    pub(crate) fn bind(
        &mut self,
        handle: ChannelHandle,
        descriptor: &ChannelDescriptor,
        soc: Soc,
        max_notify_id: u32,
    ) -> Result<Bound, Error> {
        if let Some(bound) = self.bound.filter(|_| self.handle == handle) {
            return Ok(bound);
        }
        let bound = Bound::new(handle, descriptor, soc, max_notify_id)?;
        (self.handle, self.thread, self.bound) = (handle, ThreadHandle(0), Some(bound));
        self.index = descriptor.producer_index as u16;
        self.tag = Slot(handle).tag();
        // What an earlier channel of the slot has staged is not this one's to take back.
        (self.published, self.place) = (self.index, Place::NONE);
        (self.straight, self.withheld, self.fence) = (bound.depth.blocks(), 0, false);
        Ok(bound)
    }

    /// The fast path is `thread`'s from now on, unless it still is that of a thread with staged doorbells.
    pub(crate) fn set_thread(&mut self, thread: ThreadHandle) {
        if self.stager == 0 {
            self.thread = thread;
        }
    }

    pub(crate) fn set_fence(&mut self) {
        self.fence = true;
        self.withheld += core::mem::take(&mut self.straight);
    }

    pub(crate) fn has_fence(&self) -> bool {
        self.fence
    }

    /// Lets the slow path write all free blocks. Undone by a pending fence, after the call.
    pub(crate) fn open(&mut self) {
        self.straight += core::mem::take(&mut self.withheld);
    }

    /// The end of a slow call that has consumed the fence, if `is_consumed`.
    pub(crate) fn close(&mut self, is_consumed: bool) {
        self.fence &= !is_consumed;
        if self.fence {
            self.withheld += core::mem::take(&mut self.straight);
        }
    }

    pub(crate) fn free(&self) -> u32 {
        self.straight + self.withheld
    }

    /// Where the last doorbell is that was published.
    pub(crate) fn last(&self) -> Place {
        self.place
    }

    /// The queue and the number of the batch that has staged doorbells, if any has.
    pub(crate) fn stager(&self) -> Option<(usize, u32)> {
        (self.stager != 0).then_some((self.staged.queue.into(), self.stager))
    }

    /// The doorbell at `place` is known to have been consumed. Whether it is still the last one.
    pub(crate) fn consumed(&mut self, place: Place) -> bool {
        let is_last = self.place == place;
        if is_last && let Some(bound) = &self.bound {
            let staged = if self.stager == 0 { 0 } else { self.index.wrapping_sub(self.published) };
            let free = bound.depth.blocks() - u32::from(staged);
            (self.straight, self.withheld) = if self.fence { (0, free) } else { (free, 0) };
        }
        is_last
    }

    /// Puts the channel, which has the index `own`, into the list of queue `queue`, where `batch` stages.
    pub(crate) fn link(&mut self, own: usize, list: &mut StagedChannels, queue: u16, batch: u32) {
        debug_assert!(list.is_open(), "the list was settled");
        if self.stager == 0 {
            (self.stager, self.next, self.published) = (batch, list.first, self.index);
            self.staged = Place { queue, ..Place::NONE };
            list.first = own as u16 + 1;
        }
    }

    /// What was staged has been published, or dropped with its entries. Gives the next of the list.
    fn settle(&mut self, is_published: bool) -> u16 {
        if is_published {
            // Nothing was staged under this place after a channel of the slot was replaced.
            if self.staged.enabled != QueueStatus::FREE && self.index != self.published {
                self.place = self.staged;
            }
        } else {
            let dropped = self.index.wrapping_sub(self.published);
            self.withheld += u32::from(dropped);
            self.index = self.published;
            self.close(false);
            if !self.fence {
                self.open();
            }
        }
        self.stager = 0;
        core::mem::take(&mut self.next)
    }
}

/// What became of the doorbells that the channels of a list have staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Fate {
    Staged,
    Published,
    Dropped,
}

/// The channels that have staged doorbells on a queue. The queue, which knows no channels, notes what became of the doorbells;
/// channels learn it before one of them stages or publishes again ([`Channels::settle`]).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct StagedChannels {
    /// The first one + 1, or 0. The others follow in their states.
    first: u16,
    fate: Fate,
}

impl StagedChannels {
    /// No channel has staged a doorbell.
    pub(crate) const NONE: Self = Self { first: 0, fate: Fate::Staged };

    /// Whether what was staged still is.
    #[inline(always)]
    pub(crate) fn is_open(self) -> bool {
        self.fate == Fate::Staged
    }

    /// Notes that what was staged was published, or dropped.
    #[inline(always)]
    pub(crate) fn end(&mut self, is_published: bool) {
        if self.is_open() {
            self.fate = if is_published { Fate::Published } else { Fate::Dropped };
        }
    }
}

/// The channels of a device.
#[repr(C)]
pub(crate) struct Channels {
    states: [ChannelSlot; CHANNELS],
}

/// State of one channel.
#[repr(align(64))]
pub(crate) struct ChannelSlot(Mutex<ChannelState>);

impl ChannelSlot {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(ChannelState::NONE))
        }
    }

    /// For the fast path, which leaves a channel that another core holds to the slow one.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, ChannelState>> {
        self.0.try_lock()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ChannelState> {
        lock_cold(&self.0)
    }
}

#[cfg(not(loom))]
const fn channel_slots() -> [ChannelSlot; CHANNELS] {
    [const { ChannelSlot::new() }; CHANNELS]
}

#[cfg(loom)]
fn channel_slots() -> [ChannelSlot; CHANNELS] {
    core::array::from_fn(|_| ChannelSlot::new())
}

impl Channels {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { states: channel_slots() }
        }
    }

    /// Index of the state of the channel of `handle`. Descriptors that lie side by side have different ones; any number has
    /// one.
    #[inline(always)]
    pub(crate) fn index(handle: ChannelHandle) -> usize {
        (handle.addr().0 / crate::spec::channel::CHANNEL_SIZE) as usize % CHANNELS
    }

    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> &ChannelSlot {
        &self.states[index % CHANNELS]
    }

    /// Tells the channels of a list what became of what they have staged, and empties it; unless it is still staged.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle(&self, list: &mut StagedChannels) {
        if list.is_open() {
            return;
        }
        let StagedChannels { first: mut next, fate } = core::mem::replace(list, StagedChannels::NONE);
        // No channel is in the list twice; the bound keeps it so whatever happens.
        for _ in 0..CHANNELS {
            let Some(index) = next.checked_sub(1) else { return };
            next = self.at(index.into()).lock().settle(fate == Fate::Published);
        }
    }
}
