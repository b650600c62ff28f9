//! Doorbells of channels: work entries are written, and the descriptor that starts them is queued, under the locks of both.

use super::batch::BatchId;
use super::slots::{Fast, Slots};
use super::{Call, CoreQueues, Progress, Queues, refresh};
use crate::channel::state::{Bound, Channels, Entry, Place, StagedChannels, Work};
use crate::error::Error;
use crate::port::Platform;
use crate::spec::channel::ChannelHandle;
use crate::spec::record::EntryPoint;
use crate::spec::thread::ThreadHandle;
use crate::spec::ub::Order;
use crate::stop::Stop;
use crate::task::UbDoorbellTask;

/// Where the fast path gets its entry.
pub(crate) trait EntrySource {
    /// Blocks of the entry.
    const BLOCKS: u32;
    /// The one entry of the call; `None`: the slow path must look.
    fn work(self, bound: &Bound) -> Option<Work>;
}

/// The fast path for one entry on a channel that `thread` has used last.
#[inline(always)]
pub(crate) fn try_entry<P: Platform, S: EntrySource>(
    io: &P,
    queues: &Queues,
    core: &CoreQueues,
    thread: ThreadHandle,
    handle: ChannelHandle,
    source: S,
) -> Fast {
    let index = Queues::index(thread);
    let Some(mut state) = queues.at(index).try_lock().filter(|state| state.has_straight(thread, 1)) else {
        return Fast::NotTaken;
    };
    let batch = core.batch.current();
    // Channels that have staged doorbells in this batch must know that they still are.
    if batch != BatchId::NONE && !state.staged_channels.is_open() {
        return Fast::NotTaken;
    }
    let Some(mut channel) = queues.channels.at(Channels::index(handle)).try_lock() else { return Fast::NotTaken };
    let Some(bound) = channel.fast(handle, thread, batch.number(), S::BLOCKS) else { return Fast::NotTaken };
    let Some(work) = source.work(bound) else { return Fast::NotTaken };
    let Some(mut slots) = Slots::reserve(io, batch, &mut state, false) else { return Fast::NotTaken };
    // Read once: as far as the compiler knows, the entry might be written over it.
    let (first, enabled) = (channel.index(), slots.state().enabled);
    bound.write_entry(io, first, &Entry { work, order: Order::LAST });
    let end = first.wrapping_add(S::BLOCKS as u16);
    let task = UbDoorbellTask { jetty: bound.jetty, producer_index: end };
    let (lap, sq_id) = (slots.state().lap, slots.state().ring.queue.sq_id());
    let place = Place { queue: index as u16, enabled, position: u64::from(lap) << 32 | u64::from(slots.tail()) };
    slots.push(|| task);
    if slots.commit().is_err() {
        return Fast::Refused { sq_id };
    }
    channel.commit_fast(end, S::BLOCKS, place, batch.number());
    Fast::Queued
}

/// Writes the entries of one doorbell, in the slow path.
pub(crate) trait EntryWriter {
    /// Called with the queue locked. Locks the channel, writes entries, and gives the doorbell; `None`: nothing is queued. The
    /// doorbell will be at `place`; `batch` stages it unless that is 0. `staged` is the queue's list of channels.
    fn write(&mut self, staged: &mut StagedChannels, place: Place, batch: u32) -> Option<UbDoorbellTask>;
    /// The doorbell is published or staged: `write` counts.
    fn committed(&mut self);
}

/// Queues the doorbell of `writer` on the queue of `thread`, waiting for room there. Gives whether it had one.
///
/// # Errors
/// As [`submit`](super::submit).
#[cold]
#[inline(never)]
pub(crate) fn submit_doorbell<P: Platform>(
    io: &P,
    queues: &Queues,
    core: &CoreQueues,
    thread: ThreadHandle,
    entry: EntryPoint,
    writer: &mut dyn EntryWriter,
) -> Result<bool, Error> {
    let call = Call { io, queues, core, handle: thread, entry };
    let batch = core.batch.current();
    let (record, mut progress) = (call.room_for_record()?, Progress::NONE);
    let (mut state, _) = refresh(&call, 1, 0, &mut progress).map_err(|stop| stop.error(&progress.full))?;
    state.publish_others(io, batch)?;
    queues.channels.settle(&mut state.staged_channels);
    let place = Place { queue: Queues::index(thread) as u16, enabled: state.enabled, position: state.position() };
    let Some(task) = writer.write(&mut state.staged_channels, place, batch.number()) else { return Ok(false) };
    let mut slots = Slots::drawn(io, batch, queues.ids_of(thread), &mut state);
    let first = slots.tail();
    slots.push(|| task);
    if let Some(ring) = record {
        let state = slots.state();
        ring.write(io, entry, state.ring.queue.sq_id(), state.enabled, first, 1);
    }
    let is_first = slots.commit()?;
    writer.committed();
    drop(state);
    if is_first {
        core.note(thread);
    }
    Ok(true)
}

/// Whether the device has taken the doorbell at `place`, which was published; also if its queue was reset since, which takes
/// its entries too.
///
/// # Errors
/// A register that can't be read, or a head that can't be.
#[cold]
#[inline(never)]
pub(crate) fn has_passed<P: Platform>(io: &P, queues: &Queues, place: Place) -> Result<bool, Stop> {
    let mut state = queues.at(place.queue.into()).lock_slow();
    let epoch = place.enabled.epoch();
    if state.enabled.epoch() != epoch || state.status(io)?.epoch() != epoch {
        return Ok(true);
    }
    state.read_head(io)?;
    Ok(state.head_position() > place.position)
}

/// Rings for what `batch` has staged on the queue with this index: a channel's next doorbell starts its entries anyway.
///
/// # Errors
/// That of the queue, if the batch is that of `core`; the end of another core's batch reports its own.
#[cold]
#[inline(never)]
pub(crate) fn publish_staged<P: Platform>(
    io: &P,
    queues: &Queues,
    core: &CoreQueues,
    queue: usize,
    batch: u32,
) -> Result<(), Stop> {
    let batch = BatchId::of_number(batch);
    let result = queues.at(queue).publish(io, &queues.channels, batch);
    if batch == core.batch.id() {
        return core.batch.keep_failure(result);
    }
    Ok(())
}
