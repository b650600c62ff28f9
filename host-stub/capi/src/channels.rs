//! Channels of a communicator: made together with their peers, and found again.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::error::CallError;
use super::host_block::HostBlock;
use super::objects::{Channel, CommEntry};
use super::ranks::{End, Seat};
use super::{comm, ranks, support};
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_sim::fabric::{Offer, Prepared};
use host_stub::{ChannelConfig, ChannelRanks};

/// Tag of the buffer that each communicator lets its peers use.
const BUFFER_TAG: &[u8] = b"HcclBuffer\0";

/// A channel that a program wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Rank of the peer.
    pub peer: u32,
    /// Notifies of each end.
    pub notify_count: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ends that these channels have: of several with one peer, the n-th is the n-th of each call.
fn ends(wanted: &[Wanted]) -> Vec<End> {
    let mut counts = BTreeMap::new();
    let mut number = |peer| {
        let count = counts.entry(peer).or_insert(0);
        *count += 1;
        *count - 1
    };
    wanted.iter().map(|wanted| End { peer: wanted.peer, number: number(wanted.peer) }).collect()
}

/// Handles of channels, which are made with their peers if they have not been.
///
/// # Errors
/// Unknown communicator, a peer that is none, another call of this function on the communicator, no room, ends that differ, a peer that
/// does not come. Ends that have been made by then stay.
pub fn acquire(handle: u64, wanted: &[Wanted], function: &'static str) -> Result<Vec<u64>, CallError> {
    let entry = comm::get(handle)?;
    let seat = check_peers(&entry, wanted)?;
    let _connecting = match entry.connecting.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let text =
                "another thread makes channels of this communicator: call HcclChannelAcquire one after the other";
            return Err(CallError::Invalid(text.to_owned()));
        }
    };
    let ends = ends(wanted);
    let missing: Vec<_> = {
        let made = lock(&entry.channels);
        ends.iter()
            .zip(wanted)
            .filter(|(end, _)| !made.contains_key(end))
            .map(|(end, wanted)| (*end, *wanted))
            .collect()
    };
    if !missing.is_empty() {
        make(&entry, seat, &missing, function)?;
    }
    let made = lock(&entry.channels);
    let gone = || CallError::Invalid("the communicator was destroyed meanwhile".to_owned());
    ends.iter().map(|end| made.get(end).map(|channel| channel.handle.0).ok_or_else(gone)).collect()
}

/// # Errors
/// A peer that is not another rank of the communicator.
pub fn check_peers(entry: &CommEntry, wanted: &[Wanted]) -> Result<Seat, CallError> {
    let alone = || CallError::Invalid("the communicator has one rank, and no peer for a channel".to_owned());
    let seat = entry.seat.filter(|seat| seat.size > 1).ok_or_else(alone)?;
    for Wanted { peer, .. } in wanted {
        if *peer >= seat.size || *peer == seat.rank {
            let Seat { rank, size, .. } = seat;
            let text =
                format!("remoteRank is {peer}: must be below {size}, the number of ranks, and not {rank}, the own one");
            return Err(CallError::Invalid(text));
        }
    }
    Ok(seat)
}

/// Makes ends of channels together with their peers.
fn make(entry: &CommEntry, seat: Seat, missing: &[(End, Wanted)], function: &'static str) -> Result<(), CallError> {
    let mut prepared = Vec::new();
    for (end, wanted) in missing {
        match prepare(entry, seat, wanted) {
            Ok(made) => prepared.push((*end, made)),
            Err(error) => {
                prepared.iter().for_each(|(_, made)| entry.comm.give_up_channel(made));
                return Err(error);
            }
        }
    }
    let own: Vec<_> = prepared.iter().map(|(end, made)| (*end, made.offer())).collect();
    let device = entry.device.clone();
    let (offers, mut result) =
        ranks::exchange(seat, &own, function, |place| device.peer_failure(place.slot, place.generation));
    for ((end, made), offer) in prepared.into_iter().zip(offers) {
        match offer {
            None => entry.comm.give_up_channel(&made),
            Some(offer) => result = result.and(complete(entry, end, made, &offer)),
        }
    }
    result
}

fn prepare(entry: &CommEntry, seat: Seat, wanted: &Wanted) -> Result<Prepared, CallError> {
    let place = ranks::place_of(seat, wanted.peer)?;
    let ranks = ChannelRanks { rank: seat.rank, peer_rank: wanted.peer, peer_device: place.slot as usize };
    Ok(entry.comm.prepare_channel(ranks, &ChannelConfig::new(wanted.notify_count))?)
}

fn complete(entry: &CommEntry, end: End, prepared: Prepared, offer: &Offer) -> Result<(), CallError> {
    let handle = entry.comm.complete_channel(prepared, offer)?;
    lock(&entry.channels).insert(end, Channel { handle, remote: offer.memory, mems: None });
    Ok(())
}

/// Handles of the channels that have been made, 0 for the others.
///
/// # Errors
/// Unknown communicator, a peer that is none.
pub fn query(handle: u64, wanted: &[Wanted]) -> Result<Vec<u64>, CallError> {
    let entry = comm::get(handle)?;
    support::channel_query(entry.device.options().product)?;
    check_peers(&entry, wanted)?;
    let made = lock(&entry.channels);
    let find = |end: &End| made.get(end).map_or(0, |channel| channel.handle.0);
    Ok(ends(wanted).iter().map(find).collect())
}

/// Calls `use_it` with a channel of a communicator.
fn with_channel<T>(
    handle: u64,
    channel: u64,
    use_it: impl FnOnce(&mut Channel) -> Result<T, CallError>,
) -> Result<T, CallError> {
    let entry: Arc<CommEntry> = comm::get(handle)?;
    if channel == 0 {
        return Err(CallError::Null("channel"));
    }
    let mut made = lock(&entry.channels);
    let found = made.values_mut().find(|made| made.handle.0 == channel);
    use_it(found.ok_or(CallError::NoHandle { kind: "channel of this communicator", handle: channel })?)
}

/// Address and bytes of the buffer of the peer of a channel.
///
/// # Errors
/// Unknown communicator or channel.
pub fn remote_buffer(handle: u64, channel: u64) -> Result<(u64, u64), CallError> {
    with_channel(handle, channel, |channel| Ok((channel.remote.0.0, channel.remote.1)))
}

/// What the peer of a channel lets others use, which is one range: where its `CommMem` is, and where the pointer to its tag is. Both
/// stay until the communicator is destroyed.
///
/// # Errors
/// Unknown communicator or channel; no memory.
pub fn remote_mem(handle: u64, channel: u64) -> Result<(*mut c_void, *mut c_void), CallError> {
    with_channel(handle, channel, |channel| {
        let block = match &mut channel.mems {
            Some(block) => block,
            none => none.insert(describe(channel.remote)?),
        };
        Ok((block.ptr(), block.ptr().wrapping_byte_add(TAGS_AT)))
    })
}

/// Offset of the pointer to the tag, behind the `CommMem`.
const TAGS_AT: usize = 24;
/// Offset of the tag.
const TAG_AT: usize = 32;

/// `CommMem` of device memory, pointer to its tag, tag.
fn describe((addr, len): (DeviceAddr, u64)) -> Result<HostBlock, CallError> {
    let block = HostBlock::new(TAG_AT + BUFFER_TAG.len())?;
    // The type of device memory is 0, as the block is.
    block.write(8, &addr.0.to_ne_bytes());
    block.write(16, &len.to_ne_bytes());
    block.write(TAGS_AT, &(block.ptr().expose_provenance() + TAG_AT).to_ne_bytes());
    block.write(TAG_AT, BUFFER_TAG);
    Ok(block)
}
