//! How long a launch takes, and opening a device: medians of single measurements.

use std::time::{Duration, Instant};

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::EmptyParams;
use host_stub::{Checks, Cpu, Device, DeviceOptions, Error, Kernel, Stream};

use crate::row::Row;

/// Until everything sleeps.
const IDLE: Duration = Duration::from_millis(20);

fn options(cpu: Cpu) -> DeviceOptions {
    DeviceOptions { cpu, checks: Some(Checks::NONE), ..DeviceOptions::default() }
}

fn launch(stream: &Stream, kernel: &Kernel) -> Result<(), Error> {
    stream.launch_and_drain(kernel, &EmptyParams { header: EmptyParams::HEADER })?;
    stream.synchronize()
}

/// Median of `count` runs, in seconds; `pause` lies between them.
fn median(count: usize, pause: Duration, mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        std::thread::sleep(pause);
        let started = Instant::now();
        run()?;
        times.push(started.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[count / 2])
}

/// All rows of latency.
///
/// # Errors
/// A device that does not open, or a launch that fails.
pub fn measure() -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for (cpu, resident, idle) in [
        (Cpu::Native, "launch_native", "launch_idle_native"),
        (Cpu::Qemu, "launch_qemu", "launch_idle_qemu"),
        (Cpu::Linux, "launch_linux", "launch_idle_linux"),
    ] {
        let device = Device::open(options(cpu))?;
        let (stream, kernel) = (Stream::new(&device), device.load_kernel("empty")?);
        launch(&stream, &kernel)?;
        rows.push(Row::new(resident, median(2001, Duration::ZERO, || launch(&stream, &kernel))? * 1e6));
        rows.push(Row::new(idle, median(101, IDLE, || launch(&stream, &kernel))? * 1e6));
    }
    for (cpu, id) in [(Cpu::Qemu, "open_qemu"), (Cpu::Linux, "open_linux")] {
        let opened = || {
            let device = Device::open(options(cpu))?;
            launch(&Stream::new(&device), &device.load_kernel("empty")?)
        };
        rows.push(Row::new(id, median(11, IDLE, opened)? * 1e3));
    }
    Ok(rows)
}
