//! Init check: uses of bytes that were never written.
//!
//! An observer of the event stream. A copy between ranges of the device carries the state of its bytes along; a reduce and a copy
//! to the host use them.

use std::collections::BTreeMap;
use std::ops;
use std::sync::Arc;

use super::channels::DOORBELL;
use super::contents::left_in;
use super::findings::{Findings, Receiver};
use super::init::{Certainty, Contents, Init, Left};
use super::init_report::{Reader, UninitialisedRead};
use super::joint::JointCheck;
use super::report::{CallPlace, RacyAllocation};
use crate::alloc::Kind;
use crate::event::{Event, Observer, Queuer, Range, SiteId, TaskPlace, What};
use crate::stream::StreamId;

/// Launches whose kernels are known: those whose tasks begin later are of no name.
const LAUNCHES: usize = 1024;

/// What a device brings to the check.
pub struct InitMember<C> {
    /// Where what is found about it goes.
    pub findings: Arc<Findings>,
    /// Addresses of its memory.
    pub hbm: ops::Range<u64>,
    /// What its bytes tell.
    pub contents: C,
}

/// The devices, by slot.
struct Members<C>(BTreeMap<usize, InitMember<C>>);

impl<C: Contents> Contents for Members<C> {
    fn untouched(&self, range: ops::Range<u64>, left: Left) -> Vec<(ops::Range<u64>, Certainty)> {
        let of = self.0.values().find(|member| member.hbm.contains(&range.start));
        of.map_or_else(Vec::new, |member| member.contents.untouched(range, left))
    }
}

/// What the check keeps of all devices that are joined: transfers carry bytes from one to another.
pub struct InitCheck<C> {
    init: Init,
    members: Members<C>,
    /// Device of the event that is looked at.
    device: usize,
    /// User allocations: length, and where they were made, by first byte.
    allocations: BTreeMap<u64, (u64, SiteId)>,
    /// Stream and kernel of the last launches of each device.
    launches: BTreeMap<(usize, u64), (StreamId, Arc<str>)>,
    /// Who has queued the doorbell at the head of a queue.
    doorbells: BTreeMap<(usize, u32), Queuer>,
}

impl<C> Default for InitCheck<C> {
    fn default() -> Self {
        let (init, members) = (Init::default(), Members(BTreeMap::new()));
        let (allocations, launches, doorbells) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { init, members, device: 0, allocations, launches, doorbells }
    }
}

fn bytes(range: Range) -> ops::Range<u64> {
    // A task with a range that ends above 2^64 fails by itself.
    range.addr..range.addr.saturating_add(range.len)
}

impl<C: Contents> InitCheck<C> {
    fn used(&mut self, range: Range, reader: &Reader, site: SiteId, receiver: Option<Receiver>) {
        if self.init.is_written(bytes(range)) {
            return;
        }
        for found in self.init.used(bytes(range), &self.members) {
            let block = self.allocations.range(..=found.range.start).next_back();
            let allocation = block.map(|(addr, (len, site))| RacyAllocation {
                range: Range { addr: *addr, len: *len },
                place: CallPlace::of_site(*site),
            });
            let (reader, place) = (reader.clone(), CallPlace::of_site(site));
            if let Some(member) = self.members.0.get(&self.device) {
                member.findings.add(UninitialisedRead { reader, place, found, allocation, count: 1 }, receiver);
            }
        }
    }

    /// A copy or reduce between two ranges of the device.
    fn transfer(
        &mut self,
        reads: [Range; 2],
        writes: Range,
        reader: impl FnOnce() -> Reader,
        site: SiteId,
        receiver: Option<Receiver>,
    ) {
        let [src, operand] = reads;
        if operand.len != 0 {
            let reader = reader();
            self.used(src, &reader, site, receiver);
            self.used(operand, &reader, site, receiver);
        }
        if src.len == 0 || operand.len != 0 || self.init.is_written(bytes(src)) {
            self.written(writes);
        } else {
            self.init.copied(writes.addr, bytes(src), &self.members);
        }
    }

    fn written(&mut self, range: Range) {
        if range.len != 0 && !self.init.is_written(bytes(range)) {
            self.init.written(bytes(range));
        }
    }

    fn task_began(
        &mut self,
        task: TaskPlace,
        kind: &'static str,
        by: Option<Queuer>,
        reads: [Range; 2],
        writes: Range,
    ) {
        if writes.len == 0 || self.init.is_empty() {
            return;
        }
        let launch = by.and_then(|by| self.launches.get(&(self.device, by.origin.launch))).cloned();
        let receiver = launch.as_ref().map(|(stream_id, _)| Receiver::Stream(*stream_id));
        let site = by.map_or(SiteId::UNKNOWN, |by| by.site);
        let reader = || Reader::Task { kind, task, kernel: launch.map(|(_, kernel)| kernel) };
        self.transfer(reads, writes, reader, site, receiver);
    }
}

impl<C: Contents + Send> Observer for InitCheck<C> {
    fn on(&mut self, event: &Event) {
        self.device = event.device;
        match event.what {
            What::Alloc { range, kind: Kind::User, site, .. } => {
                self.allocations.insert(range.addr, (range.len, site));
                self.init.allocated(bytes(range), left_in(range.len));
            }
            What::Free { range, .. } => {
                self.allocations.remove(&range.addr);
                self.init.written(bytes(range));
            }
            What::HostCopy { host, reads, writes, site } if writes.len == 0 => {
                self.used(reads, &Reader::HostCopy { host }, site, Some(Receiver::Host(host)));
            }
            What::HostCopy { host, reads, writes, site } => {
                self.transfer([reads, Range::default()], writes, || Reader::HostCopy { host }, site, None);
            }
            What::StreamTransfer { stream_id, reads, writes } => {
                let receiver = Some(Receiver::Stream(stream_id));
                let reader = || Reader::StreamTransfer { stream_id };
                self.transfer(reads, writes, reader, SiteId::UNKNOWN, receiver);
            }
            What::LaunchStarted { origin, stream_id, ref kernel } => {
                self.launches.insert((event.device, origin.launch), (stream_id, Arc::clone(kernel)));
                let of_device = (event.device, 0)..=(event.device, u64::MAX);
                if self.launches.range(of_device.clone()).count() > LAUNCHES {
                    let oldest = self.launches.range(of_device).next().map(|(launch, _)| *launch);
                    oldest.and_then(|oldest| self.launches.remove(&oldest));
                }
            }
            What::TaskBegan { task, by: Some(by), kind: DOORBELL, .. } => {
                self.doorbells.insert((event.device, task.sq_id), by);
            }
            What::OwnAccess { range, writes: true, .. } => self.written(range),
            What::OwnAccess { origin, range, site, .. } => {
                let launch = self.launches.get(&(event.device, origin.launch));
                let receiver = launch.map(|(stream_id, _)| Receiver::Stream(*stream_id));
                let kernel = launch.map(|(_, kernel)| Arc::clone(kernel));
                self.used(range, &Reader::Own { launch: origin.launch, kernel }, site, receiver);
            }
            What::TaskBegan { task, kind, by, reads, writes } => self.task_began(task, kind, by, reads, writes),
            What::Entry { task, kind, reads, writes, .. } => {
                let by = self.doorbells.get(&(event.device, task.sq_id)).copied();
                self.task_began(task, kind, by, reads, writes);
            }
            _ => {}
        }
    }
}

impl<C: Contents + Send> JointCheck for InitCheck<C> {
    type Member = InitMember<C>;

    fn join(&mut self, device: usize, member: InitMember<C>) {
        self.members.0.insert(device, member);
    }

    fn leave(&mut self, device: usize) {
        let Some(InitMember { hbm, .. }) = self.members.0.remove(&device) else { return };
        self.allocations.retain(|addr, _| !hbm.contains(addr));
        self.launches.retain(|(of, _), _| *of != device);
        self.doorbells.retain(|(of, _), _| *of != device);
        self.init.written(hbm);
    }
}
