//! Check of what the code of kernels itself accesses: bytes outside every allocation of the user, and freed ones.
//!
//! An observer of the event stream. What the code reads before it was written, and what races with it, [`init_check`] and
//! [`race`] find.
//!
//! [`init_check`]: super::init_check
//! [`race`]: super::race

use std::collections::BTreeMap;
use std::sync::Arc;

use super::findings::{Findings, Receiver};
use super::own_report::StrayAccess;
use super::report::{CallPlace, RacyAllocation};
use crate::alloc::{AccessError, Kind};
use crate::event::{Event, Observer, Range, SiteId, What};
use crate::stream::StreamId;

/// Launches whose kernels are known.
const LAUNCHES: usize = 1024;

/// The observer.
pub struct OwnCheck {
    /// User allocations: length, and where they were made, by first byte.
    allocations: BTreeMap<u64, (u64, SiteId)>,
    /// Stream and kernel of the last launches.
    launches: BTreeMap<u64, (StreamId, Arc<str>)>,
    findings: Arc<Findings>,
}

impl OwnCheck {
    /// A check that puts what it finds into `findings`.
    pub fn new(findings: Arc<Findings>) -> Self {
        Self { allocations: BTreeMap::new(), launches: BTreeMap::new(), findings }
    }

    fn stray(&self, launch: u64, range: Range, writes: bool, site: SiteId, error: AccessError) {
        let of = self.launches.get(&launch);
        let block = self.allocations.range(..=range.addr).next_back();
        let before = block.map(|(addr, (len, site))| RacyAllocation {
            range: Range { addr: *addr, len: *len },
            place: CallPlace::of_site(*site),
        });
        let kernel = of.map(|(_, kernel)| Arc::clone(kernel));
        let place = CallPlace::of_site(site);
        let receiver = of.map(|(stream_id, _)| Receiver::Stream(*stream_id));
        self.findings.add(StrayAccess { launch, kernel, writes, place, range, error, before, count: 1 }, receiver);
    }
}

impl Observer for OwnCheck {
    fn on(&mut self, event: &Event) {
        match event.what {
            What::Alloc { range, kind: Kind::User, site, .. } => {
                self.allocations.insert(range.addr, (range.len, site));
            }
            What::Free { range, .. } => {
                self.allocations.remove(&range.addr);
            }
            What::LaunchStarted { origin, stream_id, ref kernel } => {
                self.launches.insert(origin.launch, (stream_id, Arc::clone(kernel)));
                if self.launches.len() > LAUNCHES {
                    self.launches.pop_first();
                }
            }
            What::OwnAccess { origin, range, writes, site, refused: Some(ref error), .. } => {
                self.stray(origin.launch, range, writes, site, error.clone());
            }
            _ => {}
        }
    }
}
