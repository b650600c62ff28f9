//! A whole call on a channel: looks both handles up, waits for room in the work ring, writes entries, queues their doorbell.

use super::state::{Bound, ChannelState, Channels, Entry, Place, StagedChannels};
use super::work::{Cursor, Transfers};
use crate::context::Core;
use crate::error::Error;
use crate::port::Platform;
use crate::spec::channel::ChannelHandle;
use crate::spec::record::EntryPoint;
use crate::spec::thread::ThreadHandle;
use crate::spec::ub::Order;
use crate::sq::{self, EntryWriter, Wait};
use crate::sync::MutexGuard;
use crate::task::UbDoorbellTask;

/// What a call names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) thread: ThreadHandle,
    pub(crate) channel: ChannelHandle,
}

/// Looks both handles up. The state of the channel is then that of `ends.channel`, and its thread is `ends.thread`.
///
/// # Errors
/// In this order: [`Error::NullChannel`], [`Error::BadChannel`], [`Error::NullThread`], [`Error::BadHandle`],
/// [`Error::WrongEngine`], [`Error::OtherComm`]; a descriptor that holds what it can't.
pub(crate) fn enter(core: &Core<'_>, ends: Ends) -> Result<Bound, Error> {
    let Ends { thread, channel } = ends;
    if channel.0 == 0 {
        return Err(Error::NullChannel);
    }
    let device = core.device();
    let descriptor = device.channels().descriptor(channel)?;
    if thread.0 == 0 {
        return Err(Error::NullThread);
    }
    let of_thread = core.table().queue_place(thread)?;
    if of_thread.comm != descriptor.comm {
        return Err(Error::OtherComm { channel, thread });
    }
    let (queues, soc) = (device.queues(), device.soc());
    let mut state = queues.channels.at(Channels::index(channel)).lock();
    let bound = state.bind(channel, &descriptor, soc, sq::max_notify_id(soc))?;
    state.set_thread(thread);
    Ok(bound)
}

/// Orders the channel's next transfer behind everything before. Nothing is queued.
pub(crate) fn fence(core: &Core<'_>, ends: Ends) {
    let mut state = core.device().queues().channels.at(Channels::index(ends.channel)).lock();
    if state.bound(ends.channel).is_some() {
        state.set_fence();
    }
}

/// Queues transfers of a call, each of which is checked first. `bound` is what [`enter`] gave.
///
/// # Errors
/// Those of the transfers, before anything is written; those of the queue; [`Error::WorkRingFull`].
pub(crate) fn submit<P: Platform>(
    io: &P,
    core: &Core<'_>,
    ends: Ends,
    bound: &Bound,
    transfers: &dyn Transfers,
    is_batch: bool,
    entry: EntryPoint,
) -> Result<(), Error> {
    let queues = core.device().queues();
    let mut cursor = Cursor::new(transfers, bound, is_batch)?;
    let consumes_fence = cursor.consumes_fence();
    let mut wait = Wait::NONE;
    while !cursor.is_done() {
        let wanted = cursor.blocks().min(bound.depth.blocks().into()) as u32;
        make_room(io, core, ends, bound, wanted, &mut wait)?;
        let channels = &queues.channels;
        let mut writer = Writer {
            io,
            channels,
            ends,
            cursor,
            wanted,
            consumes_fence,
            blocks: 0,
            place: None,
            busy: None,
            state: None,
        };
        if sq::submit_doorbell(io, queues, core.queues(), ends.thread, entry, &mut writer)? {
            (cursor, wait) = (writer.cursor, Wait::NONE);
        } else if let Some((queue, batch)) = writer.busy {
            sq::publish_staged(io, queues, core.queues(), queue, batch)?;
        }
        // Otherwise another core has taken the room, or the channel is gone: the next look for room tells.
    }
    Ok(())
}

/// Waits until `wanted` blocks of the channel's ring are free.
fn make_room<P: Platform>(
    io: &P,
    core: &Core<'_>,
    ends: Ends,
    bound: &Bound,
    wanted: u32,
    wait: &mut Wait,
) -> Result<(), Error> {
    let queues = core.device().queues();
    let slot = queues.channels.at(Channels::index(ends.channel));
    loop {
        let stager = {
            let state = slot.lock();
            if state.bound(ends.channel).is_none() {
                return Err(Error::BadChannel(ends.channel));
            }
            if state.free() >= wanted {
                return Ok(());
            }
            state.stager()
        };
        // What is staged will never be consumed unless it is rung for, and then nor will this call go on.
        if let Some((queue, batch)) = stager {
            sq::publish_staged(io, queues, core.queues(), queue, batch)?;
        }
        let place = slot.lock().last();
        if place == Place::NONE || sq::has_passed(io, queues, place)? {
            // Another core may have published since: then its doorbell is the one to wait for.
            slot.lock().consumed(place);
            continue;
        }
        core.queues().ring_staged(io, queues);
        let timeout_us = core.queues().sq_full_timeout_us();
        if !wait.pause(io, timeout_us) {
            let (index, depth) = (slot.lock().index().into(), bound.depth.blocks());
            let jetty = bound.jetty_id.into();
            return Err(Error::WorkRingFull { jetty, index, wanted, depth, timeout_us });
        }
    }
}

/// Writes the entries of one doorbell.
struct Writer<'c, P> {
    io: &'c P,
    channels: &'c Channels,
    ends: Ends,
    cursor: Cursor<'c>,
    wanted: u32,
    consumes_fence: bool,
    blocks: u32,
    place: Option<(Place, u32)>,
    /// Queue and batch of doorbells that are staged elsewhere and must be published first.
    busy: Option<(usize, u32)>,
    state: Option<MutexGuard<'c, ChannelState>>,
}

impl<P: Platform> EntryWriter for Writer<'_, P> {
    fn write(&mut self, staged: &mut StagedChannels, place: Place, batch: u32) -> Option<UbDoorbellTask> {
        let own = Channels::index(self.ends.channel);
        let mut state = self.channels.at(own).lock();
        let bound = *state.bound(self.ends.channel)?;
        self.busy = state.stager().filter(|stager| *stager != (place.queue.into(), batch));
        if self.busy.is_some() || state.free() < self.wanted {
            return None;
        }
        if !self.cursor.has_started() {
            self.cursor.is_fenced = self.consumes_fence && state.has_fence();
        }
        state.set_thread(self.ends.thread);
        if batch != 0 {
            state.link(own, staged, place.queue, batch);
        }
        let mut ahead = self.cursor;
        let mut next = ahead.next();
        while let Some(Entry { work, order }) = next {
            self.cursor = ahead;
            next = ahead.next();
            let blocks = self.blocks + work.blocks();
            let is_cut = next.is_some_and(|next| blocks + next.work.blocks() > self.wanted);
            let order = if is_cut { Order::LAST } else { order };
            let index = state.index().wrapping_add(self.blocks as u16);
            bound.write_entry(self.io, index, &Entry { work, order });
            self.blocks = blocks;
            if is_cut {
                break;
            }
        }
        self.place = Some((place, batch));
        let producer_index = state.index().wrapping_add(self.blocks as u16);
        self.state = Some(state);
        Some(UbDoorbellTask { jetty: bound.jetty, producer_index })
    }

    fn committed(&mut self) {
        if let (Some(mut state), Some((place, batch))) = (self.state.take(), self.place) {
            state.open();
            let end = state.index().wrapping_add(self.blocks as u16);
            state.commit(end, self.blocks, place, batch);
            state.close(self.consumes_fence);
        }
    }
}
