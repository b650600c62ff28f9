//! What all formats have in common. docs/trace.md describes it.

use hcomm_sim::timeline::model::{Arrow, Timeline};

/// Name of the schema, as the files have it.
pub const SCHEMA: &str = "hcomm-sim-trace";
/// Version of the schema.
pub const SCHEMA_VERSION: u32 = 1;

/// Begin and end of an arrow, inside its slices: a point at the end of a slice counts as being behind it.
pub(super) fn ends(timeline: &Timeline, arrow: &Arrow) -> (u64, u64) {
    let inside = |slice: u32, at: u64| {
        let slice = &timeline.slices[slice as usize];
        at.clamp(slice.start_ns, slice.end_ns.saturating_sub(1).max(slice.start_ns))
    };
    (inside(arrow.from, arrow.from_ns), inside(arrow.to, arrow.to_ns))
}
