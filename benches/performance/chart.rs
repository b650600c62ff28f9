//! The chart of instructions per copy, as SVG, from the JSON of the table.

use std::fmt::Write;

/// Figures to compare with: the existing stack on this machine type, and what a copy can't do without. Source: issue 6 and
/// docs/performance.md.
const EXISTING: [f64; 3] = [1307.0, 438.0, 1193.0];
const FLOOR: [Option<f64>; 3] = [Some(49.0), Some(46.0), None];
const GROUPS: [(&str, &str); 3] =
    [("eager", "copy_eager"), ("batch of 100", "copy_batch"), ("16 GiB, a descriptor", "copy_16gib")];

const LEFT: f64 = 150.0;
const WIDTH: f64 = 400.0;
const BAR: f64 = 18.0;
const GROUP: f64 = 82.0;
const TOP: f64 = 58.0;

/// The chart of `json`, the array of lines that `make bench` writes.
pub fn svg(json: &serde_json::Value) -> String {
    let value = |id: &str| {
        let mut lines = json.as_array().into_iter().flatten();
        lines.find(|line| line["id"] == id).and_then(|line| line["value"].as_f64())
    };
    let height = TOP + GROUP * GROUPS.len() as f64 + 12.0;
    let mut out = String::new();
    let mut put = |text: String| {
        // A string takes any text.
        let _ = writeln!(out, "{text}");
    };
    put(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 700 {height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"13\">"
    ));
    put("<title>AArch64 instructions per copy</title>".to_owned());
    put("<style>text{fill:#24292f}.muted{fill:#6e7781}.existing{fill:#b6bcc4}.ours{fill:#0969da}.floor{fill:#1a7f37}\
         @media(prefers-color-scheme:dark){text{fill:#e6edf3}.muted{fill:#8d96a0}.existing{fill:#6e7681}.ours{fill:#4493f8}\
         .floor{fill:#3fb950}}</style>".to_owned());
    put("<text x=\"16\" y=\"24\" font-size=\"15\" font-weight=\"600\">AArch64 instructions per HcommLocalCopyOnThread</text>".to_owned());
    put("<text x=\"16\" y=\"42\" class=\"muted\">caller's loop included; less is better</text>".to_owned());
    for (index, (name, id)) in GROUPS.iter().enumerate() {
        let top = TOP + GROUP * index as f64;
        put(format!("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>", LEFT - 12.0, top + 1.5 * BAR + 5.0));
        let bars = [
            ("existing", "existing stack", Some(EXISTING[index])),
            ("ours", "hcomm-aicpu", value(id)),
            ("floor", "floor", FLOOR[index]),
        ];
        for (place, (class, label, value)) in bars.into_iter().enumerate() {
            let Some(value) = value else { continue };
            let (y, width) = (top + place as f64 * (BAR + 3.0), value / EXISTING[0] * WIDTH);
            put(format!(
                "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/>"
            ));
            put(format!(
                "<text x=\"{:.1}\" y=\"{}\" font-size=\"12\">{value:.0}<tspan class=\"muted\"> {label}</tspan></text>",
                LEFT + width + 6.0,
                y + 13.0
            ));
        }
    }
    put("</svg>".to_owned());
    out
}
