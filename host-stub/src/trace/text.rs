//! Lines for people and scripts.

use std::io::{self, Write};

use hcomm_sim::timeline::model::Timeline;

use super::schema::{SCHEMA, SCHEMA_VERSION, ends};

/// Nanoseconds, shown as seconds with nine digits behind the point.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

pub(super) fn write(timelines: &[Timeline], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{SCHEMA} version {SCHEMA_VERSION}")?;
    for timeline in timelines {
        let clock = timeline.clock.name();
        writeln!(out, "\ndevice {}, {clock} time in seconds, {} slices lost", timeline.device, timeline.lost)?;
        for id in timeline.order() {
            let track = &timeline.tracks[id as usize];
            writeln!(out, "track {id} {}: {}", track.kind.name(), track.name)?;
        }
        let mut slices: Vec<usize> = (0..timeline.slices.len()).collect();
        slices.sort_by_key(|id| timeline.slices[*id].start_ns);
        for id in slices {
            let slice = &timeline.slices[id];
            let (start, length) = (Seconds(slice.start_ns), Seconds(slice.end_ns - slice.start_ns));
            write!(out, "slice {id} {start} +{length} track {} {}: {}", slice.track, slice.kind.name(), slice.name)?;
            for (at, (name, value)) in slice.details.iter().enumerate() {
                write!(out, "{}{name} {value}", if at == 0 { "; " } else { ", " })?;
            }
            if let Some(finding) = &slice.finding {
                write!(out, "; FINDING {finding}")?;
            }
            writeln!(out)?;
        }
        for arrow in &timeline.arrows {
            let (from, to) = ends(timeline, arrow);
            let (from, to, kind) = (Seconds(from), Seconds(to), arrow.kind.name());
            writeln!(out, "arrow {kind}: slice {} at {from} -> slice {} at {to}", arrow.from, arrow.to)?;
        }
        for (at, text) in &timeline.errors {
            writeln!(out, "error {}: {text}", Seconds(*at))?;
        }
    }
    Ok(())
}
