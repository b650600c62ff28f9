//! The table of `make bench`, and the same as JSON.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use serde::Serialize;

use crate::row::{Better, Row, Target};

/// One line.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    id: String,
    what: String,
    unit: String,
    target: Option<f64>,
    value: Option<f64>,
    /// Above 1 is better than the target.
    ratio: Option<f64>,
    /// What `make test` asserts.
    limit: Option<f64>,
    /// `pass`, `short`, `over the limit`, `not measured`, or nothing if there is no target.
    verdict: &'static str,
}

/// Every row of docs/performance.toml, with what was measured.
pub fn lines(targets: &[Target], rows: &[Row]) -> Vec<Line> {
    let line = |target: &Target| {
        let value = rows.iter().find(|row| row.id == target.id).map(|row| row.value);
        let ratio = value.zip(target.target).map(|(value, goal)| match target.better {
            Better::Less => goal / value.max(1e-9),
            Better::More => value / goal,
        });
        let met = value.zip(target.target).map(|(value, goal)| match target.better {
            Better::Less => value <= goal,
            Better::More => value >= goal,
        });
        let verdict = match (value, met) {
            (None, _) => "not measured",
            (Some(value), _) if !target.holds(value) => "over the limit",
            (_, Some(true)) => "pass",
            (_, Some(false)) => "short",
            (_, None) => "",
        };
        let Target { id, what, unit, target, limit, .. } = target.clone();
        Line { id, what, unit, target, value, ratio, limit, verdict }
    };
    targets.iter().map(line).collect()
}

/// A number with as many digits as it deserves.
fn number(value: f64) -> String {
    match value.abs() {
        10_000.0.. => {
            let digits = format!("{value:.0}");
            let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
            groups.join(",")
        }
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// Rows of the README.
const SHORT: [&str; 12] = [
    "copy_eager",
    "copy_batch",
    "copy_16gib",
    "thread_state",
    "image_size",
    "big_copy_native",
    "big_copy_qemu",
    "small_native_eager",
    "small_qemu_eager",
    "launch_native",
    "launch_qemu",
    "open_qemu",
];

/// The lines of the README.
pub fn short(lines: &[Line]) -> Vec<Line> {
    lines.iter().filter(|line| SHORT.contains(&&*line.id)).cloned().collect()
}

/// Puts `text` between the marks of a document.
///
/// # Errors
/// The document can't be read or written, or has no marks.
pub fn insert(path: &Path, text: &str) -> io::Result<()> {
    const MARKS: [&str; 2] = ["<!-- table -->\n", "<!-- end -->\n"];
    let document = fs::read_to_string(path)?;
    let parts = document.split_once(MARKS[0]).and_then(|(head, rest)| Some((head, rest.split_once(MARKS[1])?.1)));
    let Some((head, tail)) = parts else {
        return Err(io::Error::other(format!("{} has no marks for the table", path.display())));
    };
    fs::write(path, format!("{head}{}{text}{}{tail}", MARKS[0], MARKS[1]))
}

/// What the times were measured on.
pub fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let command = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(command).arg("--version").output();
    let rustc = output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    format!("{}, {cores} cores, load {load} at the end; {rustc}.\n", model.unwrap_or("unknown processor"))
}

/// The table as Markdown, which can be read as it is.
pub fn text(lines: &[Line]) -> String {
    let cells = |line: &Line| {
        let optional =
            |value: Option<f64>, bound: &str| value.map_or(String::new(), |value| bound.to_owned() + &number(value));
        let ratio = match line.ratio {
            Some(ratio) if ratio > 1000.0 => "> 1000".to_owned(),
            ratio => ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
        };
        let target = optional(line.target, "");
        [line.what.clone(), target, optional(line.value, ""), line.unit.clone(), ratio, line.verdict.to_owned()]
    };
    let head = ["what", "target", "value", "unit", "ratio", ""].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(lines.iter().map(cells)).collect();
    let width: [usize; 6] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut out = String::new();
    for (index, row) in rows.iter().enumerate() {
        let [what, target, value, unit, ratio, verdict] = row;
        let [w0, w1, w2, w3, w4, w5] = width;
        // A string takes any text.
        let _ =
            writeln!(out, "| {what:w0$} | {target:>w1$} | {value:>w2$} | {unit:w3$} | {ratio:>w4$} | {verdict:w5$} |");
        if index == 0 {
            let [d0, d1, d2, d3, d4, d5] = width.map(|width| "-".repeat(width.saturating_sub(1)));
            let _ = writeln!(out, "|-{d0}--|-{d1}-:|-{d2}-:|-{d3}--|-{d4}-:|-{d5}--|");
        }
    }
    out
}
