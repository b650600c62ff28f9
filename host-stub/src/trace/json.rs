//! Chrome trace events.

use std::fmt::Write as _;
use std::io::{self, Write};

use hcomm_sim::timeline::model::{Timeline, Value};

use super::schema::{SCHEMA, SCHEMA_VERSION, ends};

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    push_escaped(&mut quoted, text);
    quoted.push('"');
    quoted
}

fn push_escaped(line: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            // Never the end of a script in a page.
            '<' => line.push_str("\\u003c"),
            c if c < ' ' => drop(write!(line, "\\u{:04x}", c as u32)),
            c => line.push(c),
        }
    }
}

/// Nanoseconds, shown as microseconds with three digits behind the point: the unit of the format.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Number(number) if *number < 1 << 53 => number.to_string(),
        other => quoted(&other.to_string()),
    }
}

pub(super) fn write(timelines: &[Timeline], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{{\"schema\":{},\"version\":{SCHEMA_VERSION},\"displayTimeUnit\":\"ns\",", quoted(SCHEMA))?;
    let clocks = timelines.iter().map(|timeline| quoted(timeline.clock.name()));
    let lost: u64 = timelines.iter().map(|timeline| timeline.lost).sum();
    writeln!(out, "\"clocks\":[{}],\"lost\":{lost},\"traceEvents\":[", clocks.collect::<Vec<_>>().join(","))?;
    let mut events = Events { out, line: String::new(), is_first: true };
    let mut arrows = 0;
    for (pid, timeline) in (1..).zip(timelines) {
        events.device(pid, timeline)?;
        arrows = events.arrows(pid, timeline, arrows)?;
    }
    writeln!(events.out, "\n]}}")
}

struct Events<'o> {
    out: &'o mut dyn Write,
    line: String,
    is_first: bool,
}

impl Events<'_> {
    fn push(&mut self) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.is_first) { "" } else { ",\n" };
        self.out.write_all(comma.as_bytes())?;
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }

    fn set(&mut self, text: std::fmt::Arguments<'_>) {
        // A string takes all that is written to it.
        let _ = self.line.write_fmt(text);
    }

    fn device(&mut self, pid: usize, timeline: &Timeline) -> io::Result<()> {
        let name = quoted(&format!("device {}", timeline.device));
        self.set(format_args!(r#"{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":{name}}}}}"#));
        self.push()?;
        for (place, id) in timeline.order().into_iter().enumerate() {
            let (tid, track) = (id + 1, &timeline.tracks[id as usize]);
            let (kind, name) = (track.kind.name(), quoted(&track.name));
            self.set(format_args!(
                r#"{{"ph":"M","name":"thread_name","pid":{pid},"tid":{tid},"args":{{"name":{name},"kind":"{kind}"}}}}"#
            ));
            self.push()?;
            self.set(format_args!(
                r#"{{"ph":"M","name":"thread_sort_index","pid":{pid},"tid":{tid},"args":{{"sort_index":{place}}}}}"#
            ));
            self.push()?;
        }
        for slice in &timeline.slices {
            // The format has no slices without a duration that arrows could end at.
            let (start, length) = (Micros(slice.start_ns), Micros((slice.end_ns - slice.start_ns).max(1)));
            let (tid, kind) = (slice.track + 1, slice.kind.name());
            self.set(format_args!(r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{start},"dur":{length},"cat":"{kind}","#));
            self.line.push_str("\"name\":\"");
            push_escaped(&mut self.line, &slice.name);
            self.line.push_str("\",\"args\":{");
            for (at, (name, detail)) in slice.details.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                match detail {
                    Value::Number(number) if *number < 1 << 53 => {
                        self.set(format_args!("{comma}\"{name}\":{number}"));
                    }
                    other => self.set(format_args!("{comma}\"{name}\":{}", quoted(&other.to_string()))),
                }
            }
            match &slice.finding {
                None => self.line.push_str("}}"),
                Some(finding) => {
                    let comma = if slice.details.is_empty() { "" } else { "," };
                    let finding = quoted(finding);
                    self.set(format_args!("{comma}\"finding\":{finding}}},\"cname\":\"terrible\"}}"));
                }
            }
            self.push()?;
        }
        for (at, text) in &timeline.errors {
            let (at, text) = (Micros(*at), quoted(text));
            self.set(format_args!(
                r#"{{"ph":"i","s":"p","pid":{pid},"tid":0,"ts":{at},"cat":"error","name":"error","args":{{"text":{text}}}}}"#
            ));
            self.push()?;
        }
        Ok(())
    }

    /// Arrows are numbered over all devices, from `number` on. Gives the number of the next one.
    fn arrows(&mut self, pid: usize, timeline: &Timeline, mut number: u64) -> io::Result<u64> {
        for arrow in &timeline.arrows {
            let (kind, (from, to)) = (arrow.kind.name(), ends(timeline, arrow));
            for (phase, slice, at) in [("\"s\"", arrow.from, from), ("\"f\",\"bp\":\"e\"", arrow.to, to)] {
                let (tid, at) = (timeline.slices[slice as usize].track + 1, Micros(at));
                self.set(format_args!(
                    r#"{{"ph":{phase},"id":{number},"pid":{pid},"tid":{tid},"ts":{at},"cat":"{kind}","name":"{kind}"}}"#
                ));
                self.push()?;
            }
            number += 1;
        }
        Ok(number)
    }
}
