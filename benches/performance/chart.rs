//! The chart of instructions per copy, as SVG, from the JSON of the table.

use std::fmt::Write;

/// Figures to compare with: the existing stack on this machine type, and what a copy can't do without. Source:
/// docs/performance.md, "Comparison, and its limits".
const EXISTING: [f64; 3] = [1307.0, 438.0, 1193.0];
const FLOOR: [Option<f64>; 3] = [Some(49.0), Some(46.0), None];
const GROUPS: [(&str, &str); 3] =
    [("eager", "copy_eager"), ("batch of 100", "copy_batch"), ("16 GiB, a descriptor", "copy_16gib")];
/// Class of a bar and its meaning.
const KINDS: [(&str, &str); 3] = [("existing", "existing stack"), ("ours", "hcomm-aicpu"), ("floor", "floor")];

/// Edge of the picture.
const MARGIN: f64 = 16.0;
/// Where bars start.
const LEFT: f64 = 160.0;
/// Length of the longest bar.
const WIDTH: f64 = 460.0;
/// Room of a number behind its bar.
const NUMBER: f64 = 36.0;
const BAR: f64 = 18.0;
const BAR_GAP: f64 = 3.0;
const GROUP_GAP: f64 = 16.0;
const TOP: f64 = 84.0;

/// Colours of a page that is light, and of one that is dark. The picture has a ground of its own: not every viewer
/// supports the second, and text must be readable on any page.
const STYLE: &str = "\
.ground { fill: #ffffff; stroke: #d0d7de }
text { fill: #24292f; font-size: 12px }
.title { font-size: 15px; font-weight: 600 }
.muted { fill: #6e7781 }
.existing { fill: #b6bcc4 }
.ours { fill: #0969da }
.floor { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
.ground { fill: #0d1117; stroke: #30363d }
text { fill: #e6edf3 }
.muted { fill: #8d96a0 }
.existing { fill: #6e7681 }
.ours { fill: #4493f8 }
.floor { fill: #3fb950 }
}";

/// The chart of `json`, the array of lines that `make bench` writes. A bar without a value is left out.
pub fn svg(json: &serde_json::Value) -> String {
    let value = |id: &str| {
        let mut lines = json.as_array().into_iter().flatten();
        // As it is written beside the bar, so that the picture says all that it is made of.
        lines.find(|line| line["id"] == id).and_then(|line| line["value"].as_f64()).map(f64::round)
    };
    let (body, height) = bars(&GROUPS.map(|(_, id)| value(id)));
    let width = LEFT + WIDTH + NUMBER + MARGIN;
    let (inner_width, inner_height) = (width - 1.0, height - 1.0);
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif">
<title>AArch64 instructions per copy</title>
<style>
{STYLE}
</style>
<rect class="ground" x="0.5" y="0.5" width="{inner_width}" height="{inner_height}" rx="6"/>
<text class="title" x="{MARGIN}" y="28">AArch64 instructions per HcommLocalCopyOnThread</text>
<text class="muted" x="{MARGIN}" y="46">caller's loop included; less is better</text>
{legend}{body}</svg>
"#,
        legend = legend()
    )
}

/// Legend of the colours.
fn legend() -> String {
    let mut out = String::new();
    for (index, (class, name)) in KINDS.into_iter().enumerate() {
        let x = LEFT + 120.0 * index as f64;
        // A string takes any text.
        let _ = writeln!(out, r#"<rect class="{class}" x="{x}" y="58" width="12" height="12" rx="2"/>"#);
        let _ = writeln!(out, r#"<text class="muted" x="{}" y="68">{name}</text>"#, x + 18.0);
    }
    out
}

/// The bars of all groups, and the height of the picture.
fn bars(ours: &[Option<f64>; 3]) -> (String, f64) {
    let mut out = String::new();
    let mut y = TOP;
    for (index, (name, _)) in GROUPS.into_iter().enumerate() {
        let values = [Some(EXISTING[index]), ours[index], FLOOR[index]];
        let bars: Vec<_> = KINDS.iter().zip(values).filter_map(|(kind, value)| Some((kind.0, value?))).collect();
        let height = bars.len() as f64 * (BAR + BAR_GAP) - BAR_GAP;
        let _ = writeln!(
            out,
            r#"<text x="{}" y="{}" text-anchor="end">{name}</text>"#,
            LEFT - 12.0,
            y + height / 2.0 + 4.0
        );
        for (class, value) in bars {
            let width = value / EXISTING[0] * WIDTH;
            let _ =
                writeln!(out, r#"<rect class="{class}" x="{LEFT}" y="{y}" width="{width:.1}" height="{BAR}" rx="2"/>"#);
            let _ = writeln!(out, r#"<text x="{:.1}" y="{}">{value:.0}</text>"#, LEFT + width + 6.0, y + 13.0);
            y += BAR + BAR_GAP;
        }
        y += GROUP_GAP - BAR_GAP;
    }
    (out, y - GROUP_GAP + MARGIN)
}
