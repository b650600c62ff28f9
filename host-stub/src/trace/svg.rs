//! A still picture of a short timeline, for documents.

use std::fmt::Write as _;

use hcomm_sim::timeline::model::{Clock, Slice, Timeline};

use super::schema::ends;

const WIDTH: f64 = 1000.0;
const LABELS: f64 = 250.0;
const RIGHT: f64 = 24.0;
const ROW: f64 = 30.0;
const HEAD: f64 = 34.0;
/// Width of a character, about.
const CHAR: f64 = 6.4;

const STYLE: &str = "\
.ground { fill: #ffffff; } text { font: 11px system-ui, sans-serif; fill: #1b1f24; } .faint { fill: #6a737d; }
.line { stroke: #d9dee3; } .call { fill: #7a8794; } .launch { fill: #2f6fb0; } .kernel { fill: #1f8a70; } .task { fill: #c7791e; }
.wait { fill: #c9d0d6; } .found { fill: #d3212c; } .arrow { fill: none; stroke: #5a54a4; } .tip { fill: #5a54a4; }
.on { fill: #ffffff; } .onwait { fill: #1b1f24; }
@media (prefers-color-scheme: dark) {
.ground { fill: #14181d; } text { fill: #e4e8ec; } .faint { fill: #98a2ad; } .line { stroke: #333b44; } .call { fill: #8593a1; }
.launch { fill: #5b9bdc; } .kernel { fill: #45b79a; } .task { fill: #e0a04a; } .wait { fill: #47525e; } .found { fill: #ff5b63; }
.arrow { stroke: #a9a3f0; } .tip { fill: #a9a3f0; } .on { fill: #14181d; } .onwait { fill: #e4e8ec; } }
";

/// A text between two tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

struct Picture<'t> {
    timeline: &'t Timeline,
    first_ns: u64,
    per_ns: f64,
    rows: Vec<usize>,
    svg: String,
}

impl Picture<'_> {
    fn x(&self, ns: u64) -> f64 {
        LABELS + (ns - self.first_ns) as f64 * self.per_ns
    }

    fn add(&mut self, line: std::fmt::Arguments<'_>) {
        // A string takes all that is written to it.
        let _ = writeln!(self.svg, "{line}");
    }

    /// Left edge, top, width and height of a slice. A point is a short line at the bottom of its row.
    fn place(&self, slice: &Slice) -> (f64, f64, f64, f64) {
        let (left, top) = (self.x(slice.start_ns), HEAD + self.rows[slice.track as usize] as f64 * ROW);
        match slice.end_ns == slice.start_ns {
            true => (left - 1.0, top + 18.0, 2.0, 9.0),
            false => (left, top + 4.0, (self.x(slice.end_ns) - left).max(1.5), 20.0),
        }
    }

    fn slice(&mut self, slice: &Slice) {
        let (left, top, width, height) = self.place(slice);
        let class = if slice.finding.is_some() { "found" } else { slice.kind.name() };
        let title = escaped(&slice.name);
        self.add(format_args!(
            r#"<rect class="{class}" x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" rx="2"><title>{title}</title></rect>"#
        ));
        if width > slice.name.chars().count() as f64 * CHAR + 8.0 {
            let (x, y, on) = (left + 5.0, top + 14.0, if class == "wait" { "onwait" } else { "on" });
            self.add(format_args!(r#"<text class="{on}" x="{x:.1}" y="{y:.1}">{title}</text>"#));
        }
    }
}

/// A picture with a row for each track. It has colours for light and for dark pages.
pub fn picture(timeline: &Timeline) -> String {
    let order = timeline.order();
    let mut rows = vec![0; order.len()];
    order.iter().enumerate().for_each(|(row, id)| rows[*id as usize] = row);
    let first_ns = timeline.slices.iter().map(|slice| slice.start_ns).min().unwrap_or(0);
    let last_ns = timeline.slices.iter().map(|slice| slice.end_ns).max().unwrap_or(0).max(first_ns + 1);
    let per_ns = (WIDTH - LABELS - RIGHT) / (last_ns - first_ns) as f64;
    let mut picture = Picture { timeline, first_ns, per_ns, rows, svg: String::new() };
    let height = HEAD + order.len() as f64 * ROW + 8.0;
    picture.add(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">"#
    ));
    picture.add(format_args!("<title>Timeline of a simulated device</title>\n<style>\n{STYLE}</style>"));
    picture.add(format_args!(r#"<rect class="ground" width="{WIDTH}" height="{height}"/>"#));
    let clock = match timeline.clock {
        Clock::Real => "time",
        Clock::Virtual => "virtual time",
        Clock::Model => "model time",
    };
    let length = last_ns - first_ns;
    let title = format!("device {}, {length} ns of {clock}", timeline.device);
    picture.add(format_args!(r#"<text class="faint" x="10" y="21">{title}</text>"#));
    let mut key = LABELS;
    for kind in ["call", "launch", "kernel", "task", "wait"] {
        picture.add(format_args!(r#"<rect class="{kind}" x="{key}" y="12" width="10" height="10" rx="2"/>"#));
        picture.add(format_args!(r#"<text class="faint" x="{}" y="21">{kind}</text>"#, key + 15.0));
        key += 80.0;
    }
    for (row, id) in order.iter().enumerate() {
        let (top, name) = (HEAD + row as f64 * ROW, escaped(&timeline.tracks[*id as usize].name));
        picture.add(format_args!(r#"<text x="10" y="{}">{name}</text>"#, top + 18.0));
        let y = top + ROW;
        picture.add(format_args!(r#"<line class="line" x1="0" y1="{y}" x2="{WIDTH}" y2="{y}"/>"#));
    }
    let points = |slice: &&Slice| slice.start_ns == slice.end_ns;
    timeline.slices.iter().filter(|slice| !points(slice)).for_each(|slice| picture.slice(slice));
    timeline.slices.iter().filter(points).for_each(|slice| picture.slice(slice));
    for arrow in &picture.timeline.arrows {
        let (from, to) = ends(timeline, arrow);
        let middle = |id: u32| {
            let (_, top, _, height) = picture.place(&timeline.slices[id as usize]);
            top + height / 2.0
        };
        let (x1, y1, x2, y2) = (picture.x(from), middle(arrow.from), picture.x(to), middle(arrow.to));
        let bend = ((x2 - x1).abs() / 3.0).max(10.0);
        let (c1, c2, back) = (x1 + bend, x2 - bend, x2 - 6.0);
        picture.add(format_args!(
            r#"<path class="arrow" d="M{x1:.1} {y1:.1} C{c1:.1} {y1:.1} {c2:.1} {y2:.1} {x2:.1} {y2:.1}"/>"#
        ));
        let (upper, lower) = (y2 - 3.0, y2 + 3.0);
        picture.add(format_args!(
            r#"<path class="tip" d="M{x2:.1} {y2:.1} L{back:.1} {upper:.1} L{back:.1} {lower:.1} Z"/>"#
        ));
    }
    picture.svg.push_str("</svg>\n");
    picture.svg
}
