//! File and line of the calls that a timeline names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hcomm_sim::event::{Places, SiteId, Sites};

/// Texts of the places of a device, each looked for once.
pub(crate) struct Lines {
    sites: Arc<Sites>,
    places: Box<dyn Places>,
    texts: Mutex<HashMap<SiteId, Option<Arc<str>>>>,
}

impl Lines {
    /// `places` knows the places that `sites` holds.
    pub(crate) fn new(sites: Arc<Sites>, places: Box<dyn Places>) -> Self {
        Self { sites, places, texts: Mutex::default() }
    }

    /// Text of a place; `None`: it is not known.
    pub(crate) fn text(&self, id: SiteId) -> Option<Arc<str>> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let text = || self.sites.get(id).map(|site| self.places.text(&site).into());
        texts.entry(id).or_insert_with(text).clone()
    }
}
