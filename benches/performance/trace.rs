//! Timelines: how fast a file of a million events is written, and a page of 20,000 tasks.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hcomm_kernel::ListedCopy;
use hcomm_testkit::{Folder, Rig, at};
use host_stub::sim::timeline::model::Timeline;
use host_stub::trace::TraceFormat;
use host_stub::{Cpu, DeviceOptions};

use crate::row::Row;

const TASKS: usize = 20_000;
const EVENTS: usize = 1_000_000;
/// A browser that has not opened the page by then is stopped.
const BROWSER_LIMIT: Duration = Duration::from_secs(60);

/// Counts what is written.
struct Counter<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn timeline() -> Result<Timeline, Box<dyn Error>> {
    let rig = Rig::with_options(DeviceOptions { cpu: Cpu::Native, record: true, ..DeviceOptions::default() });
    let thread = rig.thread(2048).0;
    let buffer = rig.buffer(&[1; 128]);
    let copy = ListedCopy { thread, dst: at(&buffer, 64), src: at(&buffer, 0), len: 64 };
    rig.copy_list(&vec![copy; TASKS], false)?;
    Ok(rig.device.timeline())
}

/// Time that a headless browser takes for a page, if there is one: from its start to its end.
fn opened(path: &str) -> Option<f64> {
    let browsers = ["chromium-headless-shell", "chromium", "google-chrome"];
    for browser in browsers {
        let mut command = Command::new(browser);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]).arg(format!("file://{path}"));
        let started = Instant::now();
        let Ok(mut child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else { continue };
        while started.elapsed() < BROWSER_LIMIT {
            match child.try_wait() {
                Ok(Some(status)) => return status.success().then(|| started.elapsed().as_secs_f64()),
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Err(_) => break,
            }
        }
        // It may have ended just now.
        let _ = child.kill();
        let _ = child.wait();
    }
    println!("no headless browser: the page is not opened");
    None
}

/// All rows of timelines.
///
/// # Errors
/// A device that does not open, or a file that can't be written.
pub fn measure() -> Result<Vec<Row>, Box<dyn Error>> {
    let (folder, one) = (Folder::new("bench_trace"), timeline()?);
    let events = one.slices.len() + 2 * one.arrows.len();
    let many = vec![one.clone(); EVENTS.div_ceil(events)];
    let started = Instant::now();
    let mut out = BufWriter::new(File::create(folder.path("t.json"))?);
    TraceFormat::Json.write(&many, &mut out)?;
    out.flush()?;
    let events_in_file = (events * many.len()) as f64;
    let seconds = started.elapsed().as_secs_f64() * EVENTS as f64 / events_in_file;

    let page = folder.path("t.html");
    let mut out = Counter { out: BufWriter::new(File::create(&page)?), bytes: 0 };
    TraceFormat::Html.write(&[one], &mut out)?;
    out.flush()?;
    let mut rows =
        vec![Row::new("trace_million", seconds), Row::new("trace_page", out.bytes as f64 / f64::from(1 << 20))];
    rows.extend(opened(&page).map(|seconds| Row::new("trace_page_open", seconds)));
    Ok(rows)
}
