//! What an open device costs while it does nothing: processor time and resident memory, of this process and of the AI CPU's.

use std::fs;
use std::time::Duration;

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::{BenchOp, BenchOpsParams};
use host_stub::{Comm, Cpu, Device, DeviceOptions, Error, Stream, ThreadConfig};

use crate::row::Row;

/// How long nothing is done.
const IDLE: Duration = Duration::from_secs(3);
/// Clock ticks of /proc a second: the same on every architecture of Linux.
const TICKS: f64 = 100.0;
const MIB: f64 = (1 << 20) as f64;

/// The fields of /proc/PID/stat behind the name, which may hold anything.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// Processor time so far, in seconds.
fn busy(pid: u32) -> f64 {
    let stat = stat(pid).expect("the process runs");
    let field = |index: usize| stat[index].parse::<f64>().expect("a number");
    (field(11) + field(12)) / TICKS
}

/// Resident bytes.
fn resident(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of every process");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}

/// Resident MiB of this process.
pub fn resident_mib() -> f64 {
    resident(std::process::id()) / MIB
}

/// The one child of this process: QEMU, or the runner.
fn child() -> u32 {
    let me = std::process::id().to_string();
    let pids =
        fs::read_dir("/proc").expect("procfs").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut children = pids.filter(|pid| stat(*pid).is_some_and(|stat| stat[1] == me && stat[0] != "Z"));
    children.next().expect("the AI CPU runs")
}

/// Share of a core that `pids` use while nothing is done, in percent.
fn idle(pids: &[u32]) -> f64 {
    // What has been going on ends first.
    std::thread::sleep(Duration::from_millis(200));
    let total = || pids.iter().copied().map(busy).sum::<f64>();
    let before = total();
    std::thread::sleep(IDLE);
    (total() - before) / IDLE.as_secs_f64() * 100.0
}

/// A device with 64 threads, each of which has copied something.
fn with_threads(device: &Device) -> Result<(Comm, Stream), Error> {
    let (comm, stream) = (Comm::new(device)?, Stream::new(device));
    for thread in comm.acquire_threads_with(&ThreadConfig::new(64).notifies(1))? {
        copies(device, &stream, thread.0, 1)?;
    }
    Ok((comm, stream))
}

fn copies(device: &Device, stream: &Stream, thread: u64, count: u64) -> Result<(), Error> {
    let buffer = device.malloc(128)?;
    let (header, src) = (BenchOpsParams::HEADER, buffer.addr());
    let dst = hcomm_aicpu::spec::DeviceAddr(src.0 + 64);
    let params = BenchOpsParams { header, thread, peer: thread, op: BenchOp::COPY, dst, src, len: 64, count, batch: 0 };
    stream.launch_and_drain(&device.load_kernel("bench_ops")?, &params)?;
    stream.synchronize()
}

/// All rows of what idleness costs. Called first: what this process has used before stays resident.
///
/// # Errors
/// A device that does not open, or a launch that fails.
pub fn measure() -> Result<Vec<Row>, Error> {
    let me = std::process::id();
    let mut rows = Vec::new();
    {
        let device = Device::open(DeviceOptions { cpu: Cpu::Qemu, ..DeviceOptions::default() })?;
        let qemu = child();
        let started = resident(qemu);
        let _held = with_threads(&device)?;
        rows.push(Row::new("idle_qemu", idle(&[me, qemu])));
        rows.push(Row::new("rss_host", resident(me) / MIB));
        rows.push(Row::new("rss_qemu", (resident(qemu) - started).max(0.0) / MIB));
    }
    {
        let device = Device::open(DeviceOptions { cpu: Cpu::Linux, ..DeviceOptions::default() })?;
        let _held = with_threads(&device)?;
        let runner = child();
        rows.push(Row::new("idle_linux", idle(&[me, runner])));
        rows.push(Row::new("rss_linux", resident(runner) / MIB));
    }
    let device = Device::open(DeviceOptions::native())?;
    let (comm, stream) = with_threads(&device)?;
    rows.push(Row::new("idle_native", idle(&[me])));
    let thread = comm.acquire_threads_with(&ThreadConfig::new(1))?[0];
    copies(&device, &stream, thread.0, 10)?;
    let before = resident(me);
    copies(&device, &stream, thread.0, 1_000_000)?;
    rows.push(Row::new("rss_growth", (resident(me) - before).max(0.0) / MIB));
    Ok(rows)
}
