//! Bytes and descriptors a second, measured by criterion, with a plain memcpy in the same run.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::{BenchOp, BenchOpsParams, CopyListParams, ListedCopy};
use host_stub::{Check, Checks, Comm, Cpu, Device, DeviceOptions, Error, Kernel, Stream, ThreadConfig};
use zerocopy::IntoBytes;

use crate::row::Row;

const BIG: u64 = 256 << 20;
const REDUCED: u64 = 64 << 20;
const SMALL: u64 = 64;
/// Small copies of one launch: several laps of the ring.
const COPIES: u64 = 20_000;
const QUEUES: usize = 4;

/// An open device with buffers of [`BIG`] bytes, all of them touched.
struct Bench {
    device: Device,
    /// The threads live as long as it.
    _comm: Comm,
    stream: Stream,
    threads: Vec<ThreadHandle>,
    kernel: Kernel,
    list: Kernel,
    dst: DeviceAddr,
    src: DeviceAddr,
}

impl Bench {
    fn open(cpu: Cpu, checks: Checks) -> Result<Self, Error> {
        let device =
            Device::open(DeviceOptions { cpu, hbm_size: 2 << 30, checks: Some(checks), ..DeviceOptions::default() })?;
        let comm = Comm::new(&device)?;
        let threads = comm.acquire_threads_with(&ThreadConfig::new(QUEUES as u32))?;
        let (kernel, list) = (device.load_kernel("bench_ops")?, device.load_kernel("copy_list")?);
        let (dst, src) = (device.allocate(BIG)?, device.allocate(BIG)?);
        for addr in [dst, src] {
            device.copy_in(addr, &vec![1; BIG as usize])?;
        }
        Ok(Self { stream: Stream::new(&device), device, _comm: comm, threads, kernel, list, dst, src })
    }

    /// `count` calls, to the end of the last task.
    fn run(&self, op: BenchOp, len: u64, count: u64, batch: u64) -> Result<(), Error> {
        let (header, thread, dst, src) = (BenchOpsParams::HEADER, self.threads[0].0, self.dst, self.src);
        let params = BenchOpsParams { header, thread, peer: thread, op, dst, src, len, count, batch };
        self.stream.launch_and_drain(&self.kernel, &params)?;
        self.stream.synchronize()
    }

    /// Copies of a part of [`BIG`] each, one on every queue.
    fn parts(&self) -> Result<(), Error> {
        let len = BIG / QUEUES as u64;
        let copy = |index: usize| {
            let at = |base: DeviceAddr| DeviceAddr(base.0 + index as u64 * len);
            ListedCopy { thread: self.threads[index].0, dst: at(self.dst), src: at(self.src), len }
        };
        let list: Vec<_> = (0..QUEUES).map(copy).collect();
        let entries = self.device.malloc(size_of_val(&list[..]) as u64)?;
        self.device.copy_in(entries.addr(), list.as_bytes())?;
        let (header, count) = (CopyListParams::HEADER, list.len() as u64);
        self.stream.launch_and_drain(&self.list, &CopyListParams { header, list: entries.addr(), count, batch: 0 })?;
        self.stream.synchronize()
    }
}

/// Where criterion keeps what it has measured.
fn home() -> PathBuf {
    hcomm_testkit::target_dir().join("criterion")
}

/// Median time of one iteration of a benchmark of this run, in seconds.
fn median(group: &str, name: &str) -> f64 {
    let path = home().join(group).join(name).join("new/estimates.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let estimates: serde_json::Value = serde_json::from_str(&text).expect("criterion writes JSON");
    estimates["median"]["point_estimate"].as_f64().expect("criterion writes a median") * 1e-9
}

fn measure_one(group: &mut BenchmarkGroup<WallTime>, name: &str, run: impl Fn() -> Result<(), Error>) {
    group.bench_function(name, |bencher| bencher.iter(|| run().expect("the device carries it out")));
}

/// All rows of throughput.
///
/// # Errors
/// A device that does not open.
pub fn measure() -> Result<Vec<Row>, Error> {
    let _ = std::fs::remove_dir_all(home());
    let mut criterion = Criterion::default()
        .without_plots()
        .output_directory(&home())
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    let mut rows = Vec::new();

    // Native last among the large ones: each is measured beside the memcpy, which is measured once.
    let (mut to, from) = (vec![1_u8; BIG as usize], vec![2_u8; BIG as usize]);
    let mut group = criterion.benchmark_group("big");
    group.throughput(Throughput::Bytes(BIG));
    group.bench_function("memcpy", |bencher| bencher.iter(|| black_box(&mut to).copy_from_slice(black_box(&from))));
    for (name, cpu) in [("native", Cpu::Native), ("qemu", Cpu::Qemu)] {
        let bench = Bench::open(cpu, Checks::NONE)?;
        measure_one(&mut group, name, || bench.run(BenchOp::COPY, BIG, 1, 0));
        if cpu == Cpu::Native {
            measure_one(&mut group, "queues", || bench.parts());
        }
    }
    group.finish();
    drop((to, from));
    let memcpy = median("big", "memcpy");
    rows.push(Row::new("memcpy", BIG as f64 / memcpy * 1e-9));
    rows.push(Row::new("big_copy_native", memcpy / median("big", "native")));
    rows.push(Row::new("big_copy_qemu", memcpy / median("big", "qemu")));
    rows.push(Row::new("engines_scaling", memcpy / median("big", "queues")));

    let mut group = criterion.benchmark_group("small");
    group.throughput(Throughput::Elements(COPIES));
    for (name, cpu) in [("native", Cpu::Native), ("qemu", Cpu::Qemu), ("linux", Cpu::Linux)] {
        let bench = Bench::open(cpu, Checks::NONE)?;
        measure_one(&mut group, &format!("{name}_eager"), || bench.run(BenchOp::COPY, SMALL, COPIES, 0));
        measure_one(&mut group, &format!("{name}_batch"), || bench.run(BenchOp::COPY, SMALL, COPIES, 100));
    }
    let bench = Bench::open(Cpu::Native, Checks::DEFAULT.with(Check::Race).with(Check::Init))?;
    measure_one(&mut group, "native_checked", || bench.run(BenchOp::COPY, SMALL, COPIES, 0));
    drop(bench);
    group.finish();
    for (id, name) in [
        ("small_native_checked", "native_checked"),
        ("small_native_eager", "native_eager"),
        ("small_native_batch", "native_batch"),
        ("small_qemu_eager", "qemu_eager"),
        ("small_qemu_batch", "qemu_batch"),
        ("small_linux_eager", "linux_eager"),
        ("small_linux_batch", "linux_batch"),
    ] {
        rows.push(Row::new(id, COPIES as f64 / median("small", name)));
    }
    rows.extend(reduce(&mut criterion)?);
    Ok(rows)
}

fn reduce(criterion: &mut Criterion) -> Result<Vec<Row>, Error> {
    let bench = Bench::open(Cpu::Native, Checks::NONE)?;
    bench.run(BenchOp::REDUCE, REDUCED, 1, 0)?;
    let count = REDUCED as usize / size_of::<f32>();
    let (mut to, from) = (vec![1_f32; count], vec![2_f32; count]);
    let mut group = criterion.benchmark_group("reduce");
    group.throughput(Throughput::Bytes(REDUCED));
    group.bench_function("loop", |bencher| {
        bencher.iter(|| black_box(&mut to).iter_mut().zip(black_box(&from)).for_each(|(to, from)| *to += from));
    });
    measure_one(&mut group, "native", || bench.run(BenchOp::REDUCE, REDUCED, 1, 0));
    group.finish();
    Ok(vec![Row::new("reduce_f32", median("reduce", "loop") / median("reduce", "native"))])
}
