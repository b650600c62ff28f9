//! What a scheduler does with the entries of a doorbell.

use std::sync::Arc;

use super::end::ChannelEnd;
use super::member::{Export, Peer, Port, Token, covers};
use super::status::{Status, TransferError, Why};
use crate::decode::ub::{self, Entry, Work};
use crate::decode::{Effect, Jetty};
use crate::error::TaskError;
use crate::event::NotifyUser;
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
    pub(crate) fn add_channel(&mut self, end: ChannelEnd) {
        self.channels.insert(end.jetty, end);
    }

    pub(crate) fn remove_channels(&mut self, jetties: &[Jetty]) {
        self.channels.retain(|jetty, _| !jetties.contains(jetty));
    }

    /// Starts the entries of `jetty` before `producer_index`, and waits for their end.
    pub(crate) fn ring_channel(&mut self, sq_id: u32, jetty: Jetty, producer_index: u16) -> Result<(), TaskError> {
        let end = self.channels.get(&jetty).cloned().ok_or(TaskError::NoChannel { jetty })?;
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
        let result = self.run_entries(sq_id, &end, producer_index);
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
        self.channels.values_mut().for_each(|end| end.consumed = end.start);
        self.failed_peers.clear();
        if let Some(port) = &self.port {
            port.restarted();
        }
    }

    fn run_entries(&mut self, sq_id: u32, end: &ChannelEnd, to: u16) -> Result<(), TaskError> {
        let failed = |what: String, (status, why): Failed| {
            TaskError::Transfer(Box::new(TransferError { peer_rank: end.peer_rank, what, status, why }))
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
            log::warn!("sq {sq_id}: channel to rank {}: {warning}", end.peer_rank);
        }
        let before = self.before_of(sq_id);
        for (index, entry) in &started.entries {
            self.run_entry(end, entry, &before)
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

    fn run_entry(&self, end: &ChannelEnd, entry: &Entry, before: &VectorClock) -> Result<(), Failed> {
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
        let peer = port.peer(end.peer).map_err(|why| (Status::AckTimeout, why))?;
        let remote = entry.remote;
        let token = Token { id: remote.token_id, value: remote.token_value };
        match entry.work {
            Work::Record => self.record_at_peer(end, &peer, remote.addr, token, before),
            Work::Write { local, reduce, notify, .. } => {
                let transfer = Between { remote: remote.addr, local: local.addr, len: local.len, reduce, reads: false };
                self.move_bytes(&peer, &transfer, token)?;
                match notify {
                    None => Ok(()),
                    Some(notify) => {
                        let token = Token { id: notify.token_id, value: notify.token_value };
                        self.record_at_peer(end, &peer, notify.addr, token, before)
                    }
                }
            }
            Work::Read { local, reduce } => {
                let transfer = Between { remote: remote.addr, local: local.addr, len: local.len, reduce, reads: true };
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
        before: &VectorClock,
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
        peer.shared.inbox.send(Command::PeerRecord { id, device: own, before: before.clone() });
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

    /// A peer has recorded a notify of this device.
    pub(crate) fn peer_record(&mut self, id: u32, device: u32, before: &VectorClock) {
        let own = self.port.as_ref().map_or(0, Port::device);
        let before = before.handed_over(device, own);
        let by = RecordedBy::Peer { device };
        if let Err(error) = self.record(id, Effect::Set, by, NotifyUser::Peer { device }, &before) {
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
            let peer_rank = end.map_or(peer.device, |end| end.peer_rank);
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
        let (here, there) = (&*own.memory, &*peer.shared.memory);
        let result = match remote == src {
            true => Self::between(here, dst, there, src, len, reduce),
            false => Self::between(there, dst, here, src, len, reduce),
        };
        Some(result.map_err(|OutsideHbm { addr, .. }| TaskError::Slot { addr }))
    }

    /// Records the notify of another device whose register has this physical address: Ascend910B, Ascend910_93.
    pub(crate) fn remote_record(&mut self, sq_id: u32, register: u64) -> Result<(), TaskError> {
        use hcomm_aicpu::spec::channel::{NOTIFY_SIZE_910, NOTIFY_WINDOW_PHYS_910, NOTIFY_WINDOW_PHYS_STRIDE_910};
        let none = TaskError::NoOtherChip { addr: register };
        let before = self.before_of(sq_id);
        let (Some(port), Some(offset)) = (&self.port, register.checked_sub(NOTIFY_WINDOW_PHYS_910)) else {
            return Err(none);
        };
        let (device, offset) = (offset / NOTIFY_WINDOW_PHYS_STRIDE_910, offset % NOTIFY_WINDOW_PHYS_STRIDE_910);
        let id = (offset / u64::from(NOTIFY_SIZE_910)) as u32;
        let Ok(peer) = port.peer(device as u32) else { return Err(none) };
        if !offset.is_multiple_of(NOTIFY_SIZE_910.into()) || !peer.exports_notify(id, port.device()) {
            return Err(none);
        }
        peer.shared.inbox.send(Command::PeerRecord { id, device: port.device(), before });
        self.task_done(sq_id);
        Ok(())
    }
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
