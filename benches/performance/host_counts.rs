//! Instructions that the simulated device itself spends on a task, counted by callgrind on the native CPU.

use std::path::Path;
use std::process::Command;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::{BenchOp, BenchOpsParams};
use host_stub::{Checks, Comm, Device, DeviceOptions, Error, Stream, ThreadConfig};

use crate::row::Row;

/// Tells this program that callgrind watches it.
const COPIES_VAR: &str = "BENCH_CALLGRIND_COPIES";
/// The checks that the device makes meanwhile, as a list.
const CHECKS_VAR: &str = "BENCH_CALLGRIND_CHECKS";
const COPIES: u64 = 2000;

/// What callgrind looks at: so many copies, and nothing else. Whether this is such a run.
///
/// # Errors
/// A device that does not open, or a launch that fails.
pub fn run_watched() -> Result<bool, Error> {
    let Some(count) = std::env::var(COPIES_VAR).ok().and_then(|count| count.parse().ok()) else { return Ok(false) };
    let checks = std::env::var(CHECKS_VAR).ok().and_then(|list| list.parse().ok()).unwrap_or(Checks::NONE);
    let device = Device::open(DeviceOptions { checks: Some(checks), ..DeviceOptions::native() })?;
    let (comm, stream, buffer) = (Comm::new(&device)?, Stream::new(&device), device.malloc(128)?);
    device.copy_in(buffer.addr(), &[1; 128])?;
    let thread = comm.acquire_threads_with(&ThreadConfig::new(1))?[0].0;
    let (header, src) = (BenchOpsParams::HEADER, buffer.addr());
    let dst = DeviceAddr(src.0 + 64);
    let params = BenchOpsParams { header, thread, peer: thread, op: BenchOp::COPY, dst, src, len: 64, count, batch: 0 };
    stream.launch_and_drain(&device.load_kernel("bench_ops")?, &params)?;
    stream.synchronize()?;
    Ok(true)
}

/// Instructions inside the functions that match `pattern`, with all that they call.
fn collected(pattern: &str, copies: u64, checks: &str) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", &format!("--toggle-collect={pattern}")])
        .arg(std::env::current_exe().ok()?)
        .env(COPIES_VAR, copies.to_string())
        .env(CHECKS_VAR, checks)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "valgrind: {text}");
    text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

/// Rows of the host side: none where valgrind is not installed.
pub fn measure() -> Vec<Row> {
    if !["/usr/bin/valgrind", "/usr/local/bin/valgrind"].iter().any(|path| Path::new(path).exists()) {
        eprintln!("valgrind is not installed: instructions of the host side are not measured");
        return Vec::new();
    }
    let (call, task) = ("*HcommLocalCopyOnThread*", "*Scheduler*step_queue*");
    let patterns = [
        ("host_call", call, "none"),
        ("host_task", task, "none"),
        ("host_call_checked", call, "race,init,free,calls"),
        ("host_task_checked", task, "race,init,free,calls"),
    ];
    let rows = patterns.into_iter().filter_map(|(id, pattern, checks)| {
        let (few, many) = (collected(pattern, COPIES, checks)?, collected(pattern, 2 * COPIES, checks)?);
        // A function that was inlined counts nothing.
        (many > few).then(|| Row::new(id, (many - few) as f64 / COPIES as f64))
    });
    rows.collect()
}
