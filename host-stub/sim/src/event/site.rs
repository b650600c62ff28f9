//! Places in programs that events name: lists of return addresses, each kept once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

/// Most places of a device that are told apart; later ones are [`SiteId::UNKNOWN`].
const MAX_SITES: usize = 1 << 16;

/// Whose addresses they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Program {
    /// This process: the host, and kernels on its threads.
    Process,
    /// The program that an emulated processor runs.
    Image,
}

/// A place: return addresses, innermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Whose addresses.
    pub program: Program,
    /// The addresses. The first ones may lie in the library that was called.
    pub frames: SmallVec<[u64; 12]>,
}

/// Number of a place in [`Sites`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(u32);

impl SiteId {
    /// The place is not known.
    pub const UNKNOWN: Self = Self(0);

    /// As a number that is not 0 if the place is known.
    pub fn to_bits(self) -> u64 {
        self.0.into()
    }

    /// What [`to_bits`](Self::to_bits) gave.
    pub fn from_bits(bits: u64) -> Self {
        u32::try_from(bits).map_or(Self::UNKNOWN, Self)
    }
}

#[derive(Debug, Default)]
struct State {
    ids: HashMap<Site, SiteId>,
    /// The place with number *n* + 1.
    sites: Vec<Site>,
    /// The place that was asked for last: a loop asks for the same again and again.
    last: SiteId,
}

/// All places that the events of a device have named.
#[derive(Debug, Default)]
pub struct Sites(Mutex<State>);

impl Sites {
    /// Number of the place with these return addresses, of which those from the first 0 on do not count.
    pub fn id(&self, program: Program, frames: &[u64]) -> SiteId {
        let frames = frames.split(|frame| *frame == 0).next().unwrap_or_default();
        if frames.is_empty() {
            return SiteId::UNKNOWN;
        }
        let mut state = self.lock();
        if let Some(last) = state.get(state.last)
            && last.program == program
            && last.frames[..] == *frames
        {
            return state.last;
        }
        let site = Site { program, frames: SmallVec::from_slice(frames) };
        let id = match state.ids.get(&site) {
            Some(id) => *id,
            None if state.sites.len() == MAX_SITES => SiteId::UNKNOWN,
            None => {
                state.sites.push(site.clone());
                let id = SiteId(state.sites.len() as u32);
                state.ids.insert(site, id);
                id
            }
        };
        state.last = id;
        id
    }

    /// The place with this number; `None` if it is not known.
    pub fn get(&self, id: SiteId) -> Option<Site> {
        self.lock().get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn get(&self, id: SiteId) -> Option<&Site> {
        self.sites.get((id.0 as usize).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_of_addresses_has_one_number() {
        let sites = Sites::default();
        let first = sites.id(Program::Process, &[7, 8, 0, 9]);
        assert_eq!(sites.id(Program::Process, &[7, 8]), first);
        let others = [(Program::Image, &[7, 8][..]), (Program::Process, &[7]), (Program::Process, &[7, 8, 9])];
        let mut ids: Vec<_> = others.iter().map(|(program, frames)| sites.id(*program, frames)).collect();
        ids.push(first);
        assert_eq!(sites.id(Program::Image, &[7, 8]), ids[0]);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4);
        let site = sites.get(first).unwrap();
        assert_eq!((site.program, &site.frames[..]), (Program::Process, &[7, 8][..]));
    }

    #[test]
    fn no_address_is_no_place() {
        let sites = Sites::default();
        assert_eq!([sites.id(Program::Process, &[]), sites.id(Program::Image, &[0, 5])], [SiteId::UNKNOWN; 2]);
        assert_eq!(sites.get(SiteId::UNKNOWN), None);
    }
}
