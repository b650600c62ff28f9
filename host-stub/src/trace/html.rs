//! One page that needs no network.
//!
//! The page is `page.html`, and the timeline stands in it as one JSON text. Names are numbers of a table: a file of many
//! tasks has each only once.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use hcomm_sim::timeline::model::{Clock, Timeline};

use super::json::{quoted, value};
use super::schema::{SCHEMA, SCHEMA_VERSION, ends};

const PAGE: &str = include_str!("page.html");
/// Where the data stands in the page.
const PLACE: &str = "@DATA@";

/// Texts by number.
#[derive(Default)]
struct Names<'t> {
    numbers: HashMap<&'t str, usize>,
    texts: Vec<&'t str>,
}

impl<'t> Names<'t> {
    fn number(&mut self, text: &'t str) -> usize {
        *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(text);
            self.texts.len() - 1
        })
    }
}

pub(super) fn write(timelines: &[Timeline], out: &mut dyn Write) -> io::Result<()> {
    let (before, after) = PAGE.split_once(PLACE).expect("the page has a place for its data");
    out.write_all(before.as_bytes())?;
    write!(out, "{{\"schema\":{},\"version\":{SCHEMA_VERSION},\"devices\":[", quoted(SCHEMA))?;
    let mut names = Names::default();
    for (at, timeline) in timelines.iter().enumerate() {
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        device(timeline, &mut names, out)?;
    }
    let texts = names.texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(",");
    write!(out, "],\n\"names\":[{texts}]}}")?;
    out.write_all(after.as_bytes())
}

fn device<'t>(timeline: &'t Timeline, names: &mut Names<'t>, out: &mut dyn Write) -> io::Result<()> {
    let Timeline { device, clock, lost, .. } = timeline;
    write!(
        out,
        "{{\"device\":{device},\"virtual\":{},\"clock\":\"{}\",\"lost\":{lost},\"order\":{:?},",
        *clock != Clock::Real,
        clock.name(),
        timeline.order()
    )?;
    let tracks = timeline.tracks.iter();
    let tracks = tracks.map(|track| format!("[{},{}]", quoted(track.kind.name()), quoted(&track.name)));
    write!(out, "\"tracks\":[{}],\n\"slices\":[", tracks.collect::<Vec<_>>().join(","))?;
    let mut line = String::new();
    for (at, slice) in timeline.slices.iter().enumerate() {
        let (kind, name) = (names.number(slice.kind.name()), names.number(&slice.name));
        let length = slice.end_ns - slice.start_ns;
        // A string takes all that is written to it.
        let _ = write!(line, "[{},{},{length},{kind},{name},[", slice.track, slice.start_ns);
        for (at, (name, detail)) in slice.details.iter().enumerate() {
            let _ = write!(line, "{}{},{}", if at == 0 { "" } else { "," }, names.number(name), value(detail));
        }
        line.push(']');
        if let Some(finding) = &slice.finding {
            let _ = write!(line, ",{}", names.number(finding));
        }
        line.push_str(if at + 1 == timeline.slices.len() { "]" } else { "],\n" });
        out.write_all(line.as_bytes())?;
        line.clear();
    }
    out.write_all(b"],\n\"arrows\":[")?;
    for (at, arrow) in timeline.arrows.iter().enumerate() {
        let (comma, kind, (start, end)) = (if at == 0 { "" } else { "," }, arrow.kind.name(), ends(timeline, arrow));
        write!(out, "{comma}[{},{},{start},{},{end}]", names.number(kind), arrow.from, arrow.to)?;
    }
    let errors = timeline.errors.iter().map(|(at, text)| format!("[{at},{}]", quoted(text)));
    write!(out, "],\n\"errors\":[{}]}}", errors.collect::<Vec<_>>().join(","))
}
