//! Which devices are joined, and what each lets others use.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::peer_failure::PeerFailure;
use super::status::Why;
use crate::check::contents::HbmContents;
use crate::check::init_check::InitCheck;
use crate::check::joint::Joint;
use crate::check::race::RaceCheck;
use crate::deadlock::Node;
use crate::event::{Bus, RecordId};
use crate::inbox::Command;
use crate::shared::Shared;

/// What names a device in the UB network: server 0, the slot, die 0, port 0.
pub fn eid_of(device: u32) -> [u8; 16] {
    let mut eid = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    eid[8..12].copy_from_slice(&device.to_be_bytes());
    // Never all zero behind the prefix.
    eid[15] = 1;
    eid
}

/// Right to use something of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its id: 20 bits.
    pub id: u32,
    /// Its value.
    pub value: u32,
}

/// What a token gives the right to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// Bytes of HBM.
    Memory {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
    },
    /// Notifies whose ids follow each other, for one device.
    Notifies {
        /// Lowest id.
        first: u32,
        /// How many.
        count: u32,
        /// Slot of the device that may record them.
        peer: u32,
    },
}

/// One device, as the others see it.
struct Member<M> {
    /// Tells it from the devices that had the slot before.
    generation: u32,
    shared: Weak<Shared<M>>,
    exports: Mutex<HashMap<u32, (u32, Export)>>,
    next_token: AtomicU32,
    /// Nothing goes on there, unless a command has come since.
    at_rest: AtomicBool,
    /// Its rank, once it has a channel.
    rank: AtomicU32,
    /// Others want to know what it waits for.
    asked: AtomicBool,
    /// It asks others.
    asking: Mutex<bool>,
    /// What it has answered.
    waits: Mutex<Vec<Node>>,
    /// Records that it has sent to others.
    records: AtomicU64,
    /// Why it has failed or closed.
    gone: Mutex<Option<PeerFailure>>,
}

/// Devices of one machine.
pub struct Fabric<M> {
    members: Mutex<BTreeMap<u32, Arc<Member<M>>>>,
    /// Orders the events of all devices.
    pub bus: Arc<Bus>,
    /// Races among all devices.
    pub race: Arc<Mutex<Joint<RaceCheck>>>,
    /// Bytes of all devices that were never written.
    pub init: Arc<Mutex<Joint<InitCheck<HbmContents<M>>>>>,
    /// Devices that have ever joined.
    joined: AtomicU32,
}

impl<M> Default for Fabric<M> {
    fn default() -> Self {
        Self {
            members: Mutex::default(),
            bus: Arc::default(),
            race: Arc::default(),
            init: Arc::default(),
            joined: AtomicU32::new(0),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M> Fabric<M> {
    /// Whether it has no device.
    pub fn is_empty(&self) -> bool {
        lock(&self.members).is_empty()
    }

    /// Adds the device in slot `device`, which is that of `shared`.
    pub fn join(self: &Arc<Self>, device: u32, shared: &Arc<Shared<M>>) -> Port<M> {
        let member = Member {
            generation: self.joined.fetch_add(1, Ordering::Relaxed) + 1,
            shared: Arc::downgrade(shared),
            exports: Mutex::default(),
            next_token: AtomicU32::new(1),
            at_rest: AtomicBool::new(false),
            rank: AtomicU32::new(device),
            asked: AtomicBool::new(false),
            asking: Mutex::default(),
            waits: Mutex::default(),
            records: AtomicU64::new(0),
            gone: Mutex::default(),
        };
        let own = Arc::new(member);
        lock(&self.members).insert(device, Arc::clone(&own));
        Port { fabric: Arc::clone(self), own, device }
    }

    fn member(&self, device: u32) -> Option<Arc<Member<M>>> {
        lock(&self.members).get(&device).cloned()
    }

    fn others(&self, device: u32) -> Vec<(u32, Arc<Member<M>>)> {
        let members = lock(&self.members);
        members.iter().filter(|(slot, _)| **slot != device).map(|(slot, member)| (*slot, Arc::clone(member))).collect()
    }
}

/// A device's access to the fabric that it is in.
pub struct Port<M> {
    fabric: Arc<Fabric<M>>,
    own: Arc<Member<M>>,
    device: u32,
}

impl<M> Clone for Port<M> {
    fn clone(&self) -> Self {
        Self { fabric: Arc::clone(&self.fabric), own: Arc::clone(&self.own), device: self.device }
    }
}

impl<M> Port<M> {
    /// Slot of the device.
    pub fn device(&self) -> u32 {
        self.device
    }

    /// Number of the next record that the device sends.
    pub fn next_record(&self) -> RecordId {
        RecordId { device: self.device, number: self.own.records.fetch_add(1, Ordering::Relaxed) }
    }

    /// Tells the device from those that had its slot before.
    pub fn generation(&self) -> u32 {
        self.own.generation
    }

    /// Lets others use `export` by the token that this gives.
    pub fn export(&self, export: Export) -> Token {
        let id = self.own.next_token.fetch_add(1, Ordering::Relaxed) & 0xf_ffff;
        // Not a secret: it only has to differ from token to token, from device to device, and from those that had the slot before.
        let device = self.device.wrapping_mul(0x85eb_ca6b) ^ self.own.generation.wrapping_mul(0xc2b2_ae36);
        let value = (id.wrapping_mul(0x9e37_79b9) ^ device) | 1;
        lock(&self.own.exports).insert(id, (value, export));
        Token { id, value }
    }

    /// Takes the right back.
    pub fn revoke(&self, token: Token) {
        lock(&self.own.exports).remove(&token.id);
    }

    /// The device in slot `peer` that has this generation, if it is open: one that has failed still has its memory.
    ///
    /// # Errors
    /// [`Why::PeerGone`].
    pub fn peer(&self, peer: u32, generation: u32) -> Result<Peer<M>, Why> {
        let member = self.fabric.member(peer).ok_or_else(|| Why::PeerGone("is not there".to_owned()))?;
        if member.generation != generation {
            return Err(Why::PeerGone("was closed, and another one has been opened in its place".to_owned()));
        }
        if lock(&member.gone).as_ref().is_some_and(PeerFailure::is_closed) {
            return Err(Why::PeerGone("is closed".to_owned()));
        }
        let shared = member.shared.upgrade().ok_or_else(|| Why::PeerGone("is closed".to_owned()))?;
        Ok(Peer { device: peer, member, shared })
    }

    /// The device that is now in slot `peer`.
    pub fn peer_now(&self, peer: u32) -> Option<Peer<M>> {
        self.peer(peer, self.fabric.member(peer)?.generation).ok()
    }

    /// Why the device in slot `peer` that has this generation can do nothing more for others.
    pub fn failure_of(&self, peer: u32, generation: u32) -> Option<PeerFailure> {
        let member = self.fabric.member(peer).filter(|member| member.generation == generation);
        match member {
            Some(member) => lock(&member.gone).clone(),
            None => Some(PeerFailure { device: peer, first: None, error: None, is_launch: false }),
        }
    }

    /// The device whose HBM `contains` says the address is in.
    pub fn find(&self, contains: impl Fn(&Shared<M>) -> bool) -> Option<Peer<M>> {
        self.fabric.others(self.device).into_iter().find_map(|(device, member)| {
            let shared = member.shared.upgrade()?;
            contains(&shared).then_some(Peer { device, member, shared })
        })
    }

    /// Tells whether anything goes on in the own device.
    pub fn set_at_rest(&self, at_rest: bool) {
        self.own.at_rest.store(at_rest, Ordering::Release);
    }

    /// Whether nothing goes on in any other device, and no command waits there.
    pub fn others_at_rest(&self) -> bool {
        self.fabric.others(self.device).iter().all(|(_, member)| match member.shared.upgrade() {
            Some(shared) => member.at_rest.load(Ordering::Acquire) && !shared.inbox.is_pending(),
            None => true,
        })
    }

    /// Rank of the own device, as far as is known: before it has a channel, its slot.
    pub fn rank(&self) -> u32 {
        self.own.rank.load(Ordering::Relaxed)
    }

    pub(super) fn set_rank(&self, rank: u32) {
        self.own.rank.store(rank, Ordering::Relaxed);
    }

    /// Whether others want to know what the own device waits for.
    pub(crate) fn is_asked(&self) -> bool {
        self.own.asked.load(Ordering::Acquire)
    }

    /// Tells them.
    pub(crate) fn answer(&self, waits: Vec<Node>) {
        *lock(&self.own.waits) = waits;
        self.own.asked.store(false, Ordering::Release);
    }

    /// Asks all others what they wait for, again until they have answered. Whether all have, since the last time that this was
    /// true.
    pub(crate) fn asks_others(&self) -> bool {
        let others = self.fabric.others(self.device);
        let alive = others.iter().filter_map(|(_, member)| Some((member, member.shared.upgrade()?)));
        let alive: Vec<_> = alive.filter(|(_, shared)| !shared.inbox.is_closed()).collect();
        let mut asking = lock(&self.own.asking);
        if !std::mem::replace(&mut *asking, true) {
            alive.iter().for_each(|(member, _)| member.asked.store(true, Ordering::Release));
        }
        let open = alive.iter().filter(|(member, _)| member.asked.load(Ordering::Acquire));
        let open = open.map(|(_, shared)| shared.inbox.wake()).count();
        if open == 0 {
            *asking = false;
        }
        open == 0
    }

    /// What the others have answered last.
    pub(crate) fn answers(&self) -> Vec<Node> {
        let others = self.fabric.others(self.device);
        others.iter().flat_map(|(_, member)| lock(&member.waits).clone()).collect()
    }

    /// Tells all others that the own device has failed or closed. Only the first failure counts.
    pub fn fail(&self, failure: &PeerFailure) {
        let mut gone = lock(&self.own.gone);
        if gone.is_some() {
            return;
        }
        *gone = Some(failure.clone());
        drop(gone);
        self.tell(failure);
    }

    /// Tells all others what has failed in the own device.
    pub fn tell(&self, failure: &PeerFailure) {
        for (_, member) in self.fabric.others(self.device) {
            if let Some(shared) = member.shared.upgrade() {
                shared.inbox.send(Command::PeerFailed(failure.clone()));
            }
        }
    }

    /// The own device works again.
    pub fn restarted(&self) {
        *lock(&self.own.gone) = None;
    }

    /// Takes the own device out.
    pub fn leave(&self) {
        let mut members = lock(&self.fabric.members);
        if members.get(&self.device).is_some_and(|member| Arc::ptr_eq(member, &self.own)) {
            members.remove(&self.device);
        }
    }
}

/// Another device, held open.
pub struct Peer<M> {
    /// Its slot.
    pub device: u32,
    member: Arc<Member<M>>,
    /// Its parts.
    pub shared: Arc<Shared<M>>,
}

impl<M> Peer<M> {
    /// What a token gives the right to use.
    ///
    /// # Errors
    /// [`Why::TokenId`], [`Why::TokenValue`].
    pub fn token(&self, token: Token) -> Result<Export, Why> {
        match lock(&self.member.exports).get(&token.id) {
            None => Err(Why::TokenId(token.id)),
            Some((value, _)) if *value != token.value => Err(Why::TokenValue { id: token.id, value: token.value }),
            Some((_, export)) => Ok(*export),
        }
    }

    /// Whether bytes are exchanged by any token.
    pub fn exports(&self, addr: u64, len: u64) -> bool {
        let covers = |export: &Export| matches!(*export, Export::Memory { addr: base, len: size } if covers(base, size, addr, len));
        lock(&self.member.exports).values().any(|(_, export)| covers(export))
    }

    /// Whether a notify is for the device in slot `by`.
    pub fn exports_notify(&self, id: u32, by: u32) -> bool {
        let is_in = |export: &Export| matches!(*export, Export::Notifies { first, count, peer } if peer == by && id >= first && id - first < count);
        lock(&self.member.exports).values().any(|(_, export)| is_in(export))
    }
}

/// Whether `len` bytes at `addr` lie in `size` bytes at `base`.
pub(super) fn covers(base: u64, size: u64, addr: u64, len: u64) -> bool {
    addr.checked_sub(base).is_some_and(|offset| offset <= size && len <= size - offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eids_of_devices_differ() {
        let eids: std::collections::HashSet<_> = (0..64).map(eid_of).collect();
        assert_eq!(eids.len(), 64);
    }

    #[test]
    fn range_is_inside_to_its_last_byte() {
        for (addr, len, expected) in
            [(100, 10, true), (100, 11, false), (99, 1, false), (110, 0, true), (110, 1, false), (u64::MAX, 2, false)]
        {
            assert_eq!(covers(100, 10, addr, len), expected, "{addr} + {len}");
        }
    }
}
