//! Marks of what the checks have found: both slices that a finding is about.

use std::sync::Arc;

use super::model::{About, Slice, Timeline};
use crate::check::report::{Maker, Race};

/// Marks the two accesses of a race. An access that has no slice any more is not marked; the text is always kept.
pub fn mark(timeline: &mut Timeline, race: &Race) {
    let text: Arc<str> = race.to_string().into();
    let device = timeline.device;
    for access in [&race.first, &race.second].into_iter().filter(|access| access.maker.device() == device) {
        let about = match access.maker {
            Maker::Task { sq_id, number, .. } => About::Task { sq_id, number },
            Maker::StreamTransfer { stream_id, .. } => About::Stream(stream_id),
            // Not a slice of its own: it is somewhere in its kernel.
            Maker::Own { .. } => continue,
            Maker::HostCopy { host, .. } | Maker::Free { host, .. } => About::Host(host),
        };
        let is_it = |slice: &Slice| slice.about == about && moves_bytes(slice, about);
        // The last one: a queue that is acquired again restarts its count.
        let Some(begin) = timeline.slices.iter().rfind(|slice| is_it(slice)).map(|slice| slice.start_ns) else {
            continue;
        };
        // A task has a slice on its queue and one on its engine.
        for slice in timeline.slices.iter_mut().filter(|slice| slice.start_ns == begin && is_it(slice)) {
            slice.finding.get_or_insert_with(|| Arc::clone(&text));
        }
    }
    timeline.errors.push((timeline.slices.iter().map(|slice| slice.end_ns).max().unwrap_or(0), text));
}

/// Whether a slice may be an access to device memory.
fn moves_bytes(slice: &Slice, about: About) -> bool {
    match about {
        About::Task { .. } | About::Nothing => true,
        About::Stream(_) | About::Host(_) => {
            &*slice.name == "free" || slice.details.iter().any(|(name, _)| matches!(*name, "source" | "destination"))
        }
    }
}
