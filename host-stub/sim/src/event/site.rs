//! Places in programs that events name: lists of return addresses, each kept once.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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

/// Finds file and line of places in programs.
pub trait Places: Send + Sync {
    /// Text of the place: file, line and function of the first frame that is not the library's, as far as they are known.
    fn text(&self, site: &Site) -> String;
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
#[derive(Default)]
pub struct Sites {
    state: Mutex<State>,
    /// Not set: no place has a text.
    places: OnceLock<Box<dyn Places>>,
}

impl fmt::Debug for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sites").field("state", &self.state).finish_non_exhaustive()
    }
}

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

    /// Finds the texts of places from now on. Once; what is set later is dropped.
    pub fn set_places(&self, places: Box<dyn Places>) {
        let _ = self.places.set(places);
    }

    fn text(&self, id: SiteId) -> Option<String> {
        let site = self.get(id)?;
        Some(self.places.get()?.text(&site))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn get(&self, id: SiteId) -> Option<&Site> {
        self.sites.get((id.0 as usize).checked_sub(1)?)
    }
}

/// A place that an error names. Its text is looked up when the error is shown.
#[derive(Clone, Default)]
pub struct Place {
    id: SiteId,
    /// `None`: the place is not known.
    sites: Option<Arc<Sites>>,
}

impl Place {
    /// The place with number `id` in `sites`.
    pub fn new(sites: &Arc<Sites>, id: SiteId) -> Self {
        Self { id, sites: (id != SiteId::UNKNOWN).then(|| Arc::clone(sites)) }
    }

    /// `what`, then the place; nothing if the place is not known.
    pub fn after(&self, what: &str) -> String {
        let text = self.to_string();
        if text.is_empty() { text } else { what.to_owned() + &text }
    }
}

/// ` at FILE:LINE (function)`, or nothing if the place is not known.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sites.as_ref().and_then(|sites| sites.text(self.id)) {
            Some(text) => write!(f, " at {text}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Place {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_shown_with_its_text_once_texts_are_known() {
        struct Frames;
        impl Places for Frames {
            fn text(&self, site: &Site) -> String {
                format!("a.c:{}", site.frames[0])
            }
        }
        let sites = Arc::new(Sites::default());
        let place = Place::new(&sites, sites.id(Program::Process, &[7]));
        assert_eq!(place.to_string(), "");
        sites.set_places(Box::new(Frames));
        assert_eq!([place, Place::new(&sites, SiteId::UNKNOWN)].map(|place| place.to_string()), [" at a.c:7", ""]);
    }

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
