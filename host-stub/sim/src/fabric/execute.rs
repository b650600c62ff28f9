//! What a scheduler does with the entries of a doorbell.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hcomm_aicpu::spec::channel::{NOTIFY_SIZE_910, NOTIFY_WINDOW_PHYS_910, NOTIFY_WINDOW_PHYS_STRIDE_910};

use super::end::ChannelEnd;
use super::member::{Export, Peer, Port, Token, covers};
use super::peer_failure::PeerFailure;
use super::status::{Status, TransferError, Why};
use crate::decode::ub::{self, Entry, Place, Work};
use crate::decode::{Effect, Jetty};
use crate::error::TaskError;
use crate::event::{Access, AccessKind, NotifyUser, Object, Range, RecordId, TaskPlace, What};
use crate::execute::place;
use crate::inbox::Command;
use crate::memory::{Memory, OutsideHbm};
use crate::notify::RecordedBy;
use crate::reduce::{Element, Operator, Reduce};
use crate::scheduler::Scheduler;
use crate::vector_clock::VectorClock;

/// Of two producer indices, the later one is at most so far ahead.
const AHEAD_MAX: u16 = 1 << 15;

type Failed = (Status, Why);

impl<M: Memory> Scheduler<M> {
    pub(crate) fn add_channel(&mut self, mut end: ChannelEnd) {
        // It may have failed before this end was there to be told.
        end.failure = self.port.as_ref().and_then(|port| port.failure_of(end.peer, end.peer_generation));
        self.channels.insert(end.jetty, end);
    }

    pub(crate) fn remove_channels(&mut self, jetties: &[Jetty]) {
        self.channels.retain(|jetty, _| !jetties.contains(jetty));
    }

    /// Starts the entries of `jetty` before `producer_index`, and waits for their end.
    pub(crate) fn ring_channel(&mut self, sq_id: u32, jetty: Jetty, producer_index: u16) -> Result<(), TaskError> {
        let end = self.channels.get(&jetty).cloned().ok_or(TaskError::NoChannel { jetty })?;
        let Some(task) = self.queues.get(sq_id).map(place) else { return Ok(()) };
        self.shared.events.tell(|| What::ChannelRung { task, channel: end.name });
        let blocks = producer_index.wrapping_sub(end.consumed);
        if blocks == 0 || blocks > AHEAD_MAX {
            // The doorbell of another queue has started these entries: doorbells of a jetty are cumulative.
            log::warn!(
                "sq {sq_id}: doorbell of {jetty} at producer index {producer_index} starts no entry: those before {} \
                 are started",
                end.consumed
            );
            self.task_done(sq_id);
            return Ok(());
        }
        self.shared.turn.touch(Access::new(Object::Channels, AccessKind::Write));
        let result = self.run_entries(task, &end, producer_index);
        // What failed, and what stands behind it, never runs.
        if let Some(end) = self.channels.get_mut(&jetty) {
            end.consumed = producer_index;
        }
        result?;
        self.task_done(sq_id);
        Ok(())
    }

    /// A doorbell is dropped with its queue: its entries never run.
    pub(crate) fn flush_channel(&mut self, jetty: Jetty, producer_index: u16) {
        if let Some(end) = self.channels.get_mut(&jetty)
            && producer_index.wrapping_sub(end.consumed) <= AHEAD_MAX
        {
            end.consumed = producer_index;
        }
    }

    /// The AI CPU has started again: its rings are empty and begin as they did first.
    pub(crate) fn restart_channels(&mut self) {
        for end in self.channels.values_mut() {
            end.consumed = end.start;
            // Another device may start again too, but a closed one does not come back.
            end.failure = end.failure.take().filter(PeerFailure::is_closed);
        }
        if let Some(port) = &self.port {
            port.restarted();
        }
    }

    fn run_entries(&mut self, task: TaskPlace, end: &ChannelEnd, to: u16) -> Result<(), TaskError> {
        let sq_id = task.sq_id;
        let failed = |what: String, (status, why): Failed| {
            TaskError::Transfer(Box::new(TransferError { peer_rank: end.name.peer_rank, what, status, why }))
        };
        let mut outside = None;
        let memory = Arc::clone(&self.shared.memory);
        let started = ub::walk(end.depth, end.consumed, to, |slot| {
            let addr = end.ring + u64::from(slot) * ub::BLOCK_LEN as u64;
            memory.load_sqe(addr).unwrap_or_else(|_| {
                outside = Some(addr);
                [0; ub::BLOCK_LEN]
            })
        });
        if let Some(addr) = outside {
            return Err(failed("doorbell".to_owned(), (Status::LocalOperation, Why::Ring(addr))));
        }
        let started =
            started.map_err(|error| failed("doorbell".to_owned(), (Status::UnsupportedOpcode, Why::Entries(error))))?;
        if let Some(warning) = started.warning {
            log::warn!("sq {sq_id}: channel to rank {}: {warning}", end.name.peer_rank);
        }
        let before = self.before_of(sq_id);
        self.shared.counters.entries.fetch_add(started.entries.len() as u64, Ordering::Relaxed);
        for (index, entry) in &started.entries {
            self.run_entry(task, end, entry, &before)
                .map_err(|error| failed(format!("{} at producer index {index}", entry.name()), error))?;
        }
        Ok(())
    }

    /// What has happened before the end of the task at the head of a queue.
    fn before_of(&mut self, sq_id: u32) -> VectorClock {
        let Some(queue) = self.queue_mut(sq_id) else { return VectorClock::default() };
        queue.before.advance(sq_id, queue.done_total + 1);
        queue.before.clone()
    }

    fn run_entry(&self, task: TaskPlace, end: &ChannelEnd, entry: &Entry, before: &VectorClock) -> Result<(), Failed> {
        let remote_error = |why| (Status::RemoteOperation, why);
        if entry.eid != end.peer_eid {
            let text = |eid: [u8; 16]| eid.iter().map(|byte| format!("{byte:02x}")).collect();
            return Err(remote_error(Why::Eid { found: text(entry.eid), expected: text(end.peer_eid) }));
        }
        if entry.path != end.path {
            return Err(remote_error(Why::Path { found: entry.path, expected: end.path }));
        }
        let gone = || (Status::AckTimeout, Why::PeerGone("is not there".to_owned()));
        let port = self.port.as_ref().ok_or_else(gone)?;
        let peer = port.peer(end.peer, end.peer_generation).map_err(|why| (Status::AckTimeout, why))?;
        let remote = entry.remote;
        let token = Token { id: remote.token_id, value: remote.token_value };
        let tell = |transfer: Option<&Between>, record| {
            self.shared.events.tell(|| {
                let (reads, writes) = transfer.map_or_else(Default::default, Between::accesses);
                let is_strong = entry.order.place == Place::Strong;
                What::Entry { task, channel: end.name, kind: entry.name(), is_strong, reads, writes, record }
            });
        };
        match entry.work {
            Work::Record => {
                let record = port.next_record();
                tell(None, Some(record));
                self.record_at_peer(end, &peer, remote.addr, token, (record, before))
            }
            Work::Write { local, reduce, notify, .. } => {
                let transfer = Between { remote: remote.addr, local: local.addr, len: local.len, reduce, reads: false };
                let notify = notify.map(|notify| (notify, port.next_record()));
                tell(Some(&transfer), notify.map(|(_, record)| record));
                self.move_bytes(&peer, &transfer, token)?;
                match notify {
                    None => Ok(()),
                    Some((notify, record)) => {
                        let token = Token { id: notify.token_id, value: notify.token_value };
                        self.record_at_peer(end, &peer, notify.addr, token, (record, before))
                    }
                }
            }
            Work::Read { local, reduce } => {
                let transfer = Between { remote: remote.addr, local: local.addr, len: local.len, reduce, reads: true };
                tell(Some(&transfer), None);
                self.move_bytes(&peer, &transfer, token)
            }
        }
    }

    fn record_at_peer(
        &self,
        end: &ChannelEnd,
        peer: &Peer<M>,
        register: u64,
        token: Token,
        (record, before): (RecordId, &VectorClock),
    ) -> Result<(), Failed> {
        let failed = |why| (Status::RemoteOperation, why);
        let own = self.port.as_ref().map_or(u32::MAX, Port::device);
        let export = peer.token(token).map_err(failed)?;
        let id = end.notify_id(register).ok_or(failed(Why::NotifyRegister(register)))?;
        match export {
            Export::Notifies { first, count, peer } if peer == own && id >= first && id - first < count => {}
            _ => return Err(failed(Why::TokenKind(token.id, "this notify"))),
        }
        // After the bytes: they are complete once the notify is set.
        peer.shared.inbox.send(Command::PeerRecord { id, record, before: before.clone() });
        Ok(())
    }

    fn move_bytes(&self, peer: &Peer<M>, transfer: &Between, token: Token) -> Result<(), Failed> {
        let Between { remote, local, len, .. } = *transfer;
        let remote_error = |why| (Status::RemoteOperation, why);
        match peer.token(token).map_err(remote_error)? {
            Export::Memory { addr, len: size } if covers(addr, size, remote, len.into()) => {}
            Export::Memory { .. } => return Err(remote_error(Why::RemoteRange { addr: remote, len })),
            Export::Notifies { .. } => return Err(remote_error(Why::TokenKind(token.id, "memory"))),
        }
        if len == 0 {
            return Ok(());
        }
        let reduce = transfer.reduce.map(reduce_of);
        if let Some(size) = reduce.map(Reduce::element_len).filter(|size| !len.is_multiple_of(*size)) {
            return Err((Status::LocalOperation, Why::CutElement { len, size }));
        }
        let checked = self.shared.lock_alloc().check_user(local, len.into());
        checked.map_err(|error| (Status::LocalOperation, Why::Local(error)))?;
        let checked = peer.shared.lock_alloc().check_user(remote, len.into());
        checked.map_err(|error| remote_error(Why::Remote(error)))?;
        let (local_range, remote_range) =
            (Range { addr: local, len: len.into() }, Range { addr: remote, len: len.into() });
        match transfer.reads {
            true => self.touch_bytes(&[remote_range], local_range),
            false => self.touch_bytes(&[local_range], remote_range),
        }
        let (own, other) = (&*self.shared.memory, &*peer.shared.memory);
        let result = match transfer.reads {
            true => Self::between(own, local, other, remote, len, reduce),
            false => Self::between(other, remote, own, local, len, reduce),
        };
        result.map_err(|OutsideHbm { addr, .. }| (Status::LocalOperation, Why::Ring(addr)))
    }

    fn between(to: &M, dst: u64, from: &M, src: u64, len: u32, reduce: Option<Reduce>) -> Result<(), OutsideHbm> {
        match reduce {
            None => to.copy_from(dst, from, src, len.into()),
            Some(reduce) => to.reduce_from(dst, from, src, len.into(), reduce),
        }
    }

    /// Notifies of the peer that the entries of a doorbell would record which was not carried out: the device, and the notify.
    pub(crate) fn records_of_doorbell(&self, jetty: Jetty, producer_index: u16) -> Vec<(u32, u32)> {
        let Some(end) = self.channels.get(&jetty) else { return Vec::new() };
        let block = |slot| self.shared.memory.load_sqe(end.ring + u64::from(slot) * ub::BLOCK_LEN as u64);
        let started =
            ub::walk(end.depth, end.consumed, producer_index, |slot| block(slot).unwrap_or([0; ub::BLOCK_LEN]));
        let register = |entry: &Entry| match entry.work {
            Work::Record => Some(entry.remote.addr),
            Work::Write { notify, .. } => notify.map(|notify| notify.addr),
            Work::Read { .. } => None,
        };
        let entries = started.map_or_else(|_| Vec::new(), |started| started.entries);
        entries.iter().filter_map(|(_, entry)| Some((end.peer, end.notify_id(register(entry)?)?))).collect()
    }

    /// A peer has recorded a notify of this device.
    pub(crate) fn peer_record(&mut self, id: u32, record: RecordId, before: &VectorClock) {
        let device = record.device;
        let own = self.port.as_ref().map_or(0, Port::device);
        let before = before.handed_over(device, own);
        let by = RecordedBy::Peer { device };
        if let Err(error) = self.record(id, Effect::Set, by, NotifyUser::Peer { device, record }, &before) {
            // The channel was released meanwhile.
            log::warn!("record by device {device}: {error}");
        }
    }

    /// A copy or reduce of an Ascend910B or Ascend910_93 one side of which is in another device, and exchanged there. `None`:
    /// both are in this one.
    pub(crate) fn remote_sdma(
        &self,
        dst: u64,
        src: u64,
        len: u32,
        reduce: Option<Reduce>,
    ) -> Option<Result<(), TaskError>> {
        let (port, own) = (self.port.as_ref()?, &self.shared);
        let is_own = |addr| own.memory.contains(addr);
        let (remote, local) = match (is_own(dst), is_own(src)) {
            (true, false) => (src, dst),
            (false, true) => (dst, src),
            _ => return None,
        };
        let peer = port.find(|shared| shared.memory.contains(remote))?;
        let name = if reduce.is_some() { "sdma reduce" } else { "sdma copy" };
        let failed = |status, why| {
            let what = format!("{name} of {len} bytes");
            let end = self.channels.values().find(|end| end.peer == peer.device);
            let peer_rank = end.map_or(peer.device, |end| end.name.peer_rank);
            TaskError::Transfer(Box::new(TransferError { peer_rank, what, status, why }))
        };
        if !peer.exports(remote, len.into()) {
            return Some(Err(failed(Status::RemoteOperation, Why::RemoteRange { addr: remote, len })));
        }
        if let Err(error) = own.lock_alloc().check_user(local, len.into()) {
            return Some(Err(failed(Status::LocalOperation, Why::Local(error))));
        }
        if let Err(error) = peer.shared.lock_alloc().check_user(remote, len.into()) {
            return Some(Err(failed(Status::RemoteOperation, Why::Remote(error))));
        }
        self.touch_bytes(&[Range { addr: src, len: len.into() }], Range { addr: dst, len: len.into() });
        let (here, there) = (&*own.memory, &*peer.shared.memory);
        let result = match remote == src {
            true => Self::between(here, dst, there, src, len, reduce),
            false => Self::between(there, dst, here, src, len, reduce),
        };
        Some(result.map_err(|OutsideHbm { addr, .. }| TaskError::Slot { addr }))
    }

    /// Records the notify of another device whose register has this physical address: Ascend910B, Ascend910_93.
    pub(crate) fn remote_record(&mut self, sq_id: u32, register: u64) -> Result<(), TaskError> {
        let none = TaskError::NoOtherChip { addr: register };
        let before = self.before_of(sq_id);
        let (Some(port), Some((device, id))) = (&self.port, remote_notify(register)) else { return Err(none) };
        let Some(peer) = port.peer_now(device) else { return Err(none) };
        if !peer.exports_notify(id, port.device()) {
            return Err(none);
        }
        let record = port.next_record();
        let end = self.channels.values().find(|end| end.peer == device);
        if let (Some(end), Some(task)) = (end, self.queues.get(sq_id).map(place)) {
            let (channel, none) = (end.name, Range::default());
            let (kind, is_strong, record) = ("write value", true, Some(record));
            self.shared.events.tell(|| What::Entry {
                task,
                channel,
                kind,
                is_strong,
                reads: [none; 2],
                writes: none,
                record,
            });
        }
        peer.shared.inbox.send(Command::PeerRecord { id, record, before });
        self.task_done(sq_id);
        Ok(())
    }
}

/// Device and notify whose register has this physical address: Ascend910B, Ascend910_93.
pub fn remote_notify(register: u64) -> Option<(u32, u32)> {
    let offset = register.checked_sub(NOTIFY_WINDOW_PHYS_910)?;
    let (device, offset) = (offset / NOTIFY_WINDOW_PHYS_STRIDE_910, offset % NOTIFY_WINDOW_PHYS_STRIDE_910);
    let id = (offset / u64::from(NOTIFY_SIZE_910)) as u32;
    offset.is_multiple_of(NOTIFY_SIZE_910.into()).then_some((device as u32, id))
}

fn reduce_of(reduce: ub::Reduce) -> Reduce {
    let element = match reduce.element {
        ub::Element::Int8 => Element::Int8,
        ub::Element::Int16 => Element::Int16,
        ub::Element::Int32 => Element::Int32,
        ub::Element::Uint8 => Element::Uint8,
        ub::Element::Uint16 => Element::Uint16,
        ub::Element::Uint32 => Element::Uint32,
        ub::Element::Fp16 => Element::Fp16,
        ub::Element::Fp32 => Element::Fp32,
        ub::Element::Bf16 => Element::Bf16,
    };
    let operator = match reduce.op {
        ub::Operator::Max => Operator::Max,
        ub::Operator::Min => Operator::Min,
        ub::Operator::Sum => Operator::Sum,
    };
    Reduce::new(element, operator)
}

/// Bytes between the own device and a peer.
struct Between {
    remote: u64,
    local: u64,
    len: u32,
    reduce: Option<ub::Reduce>,
    /// From the peer.
    reads: bool,
}

impl Between {
    /// Bytes that it reads, and those that it writes.
    fn accesses(&self) -> ([Range; 2], Range) {
        let len = self.len.into();
        let (remote, local) = (Range { addr: self.remote, len }, Range { addr: self.local, len });
        let (src, dst) = if self.reads { (remote, local) } else { (local, remote) };
        ([src, if self.reduce.is_some() { dst } else { Range::default() }], dst)
    }
}
