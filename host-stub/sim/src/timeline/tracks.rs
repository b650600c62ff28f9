//! Which tracks there are, and their names.

use std::collections::HashMap;

use super::model::{Track, TrackId, TrackKind};

/// A thread of a queue, as the call that acquired it gave it.
#[derive(Clone, Copy)]
pub(super) struct ThreadName {
    pub(super) stream_id: u32,
    /// From 1.
    pub(super) index: usize,
    pub(super) count: usize,
}

/// The tracks of a device by kind and number.
#[derive(Default)]
pub(super) struct Tracks {
    ids: HashMap<(TrackKind, u64), TrackId>,
    threads: HashMap<u32, ThreadName>,
}

impl Tracks {
    /// Queue `sq_id` belongs to a thread from now on. Its slices get a track of their own.
    pub(super) fn name_thread(&mut self, sq_id: u32, name: ThreadName) {
        self.threads.insert(sq_id, name);
        self.ids.remove(&(TrackKind::Queue, sq_id.into()));
    }

    /// The track of a number, which is added to `tracks` if it is new.
    pub(super) fn id(&mut self, tracks: &mut Vec<Track>, kind: TrackKind, number: u64) -> TrackId {
        if let Some(id) = self.ids.get(&(kind, number)) {
            return *id;
        }
        let id = tracks.len() as TrackId;
        tracks.push(Track { kind, name: self.name(kind, number), order: number });
        self.ids.insert((kind, number), id);
        id
    }

    fn name(&self, kind: TrackKind, number: u64) -> String {
        match kind {
            TrackKind::Host => format!("host thread {number}"),
            TrackKind::Stream => format!("stream {number}"),
            TrackKind::Core => format!("core {number}"),
            TrackKind::Engine => format!("SDMA lane {number}"),
            TrackKind::Queue => match self.threads.get(&(number as u32)) {
                Some(ThreadName { stream_id, index, count }) => {
                    format!("thread {index} of {count} (stream {stream_id}, sq {number})")
                }
                None => format!("sq {number}"),
            },
        }
    }
}
