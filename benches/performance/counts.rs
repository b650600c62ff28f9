//! Exact instruction counts of the release image: QEMU counts each instruction that a launch executes.

use std::sync::Arc;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::{BenchOp, BenchOpsParams, CopyListParams, ListedCopy};
use host_stub::{
    ChannelConfig, ChannelRanks, Checks, Comm, Device, DeviceOptions, Error, LaunchStats, Stream, ThreadConfig,
};
use zerocopy::IntoBytes;

use crate::row::Row;

/// Both ranges of the largest copy, and room for the rest. None of it is touched.
const HBM: u64 = 34 << 30;
/// Depth of the rings: what a device executes between two reads of the head changes how often a call reads it, so that only
/// counts of a ring that does not wrap are the same on a busy machine. The one that wraps is the count over a million copies.
const DEPTH: u32 = 65_536;
const CALLS: u64 = 1000;
const BATCH: u64 = 100;
/// Most bytes of one descriptor: 4 GiB - 2 MiB.
const CHUNK: u64 = (4 << 30) - (2 << 20);

/// A device that counts instructions.
struct Counter {
    device: Device,
    /// The threads live as long as it.
    comm: Comm,
    stream: Stream,
    threads: Vec<ThreadHandle>,
    dst: DeviceAddr,
    src: DeviceAddr,
}

/// What one launch of `bench_ops` is to do.
#[derive(Clone, Copy)]
struct Run {
    op: BenchOp,
    len: u64,
    count: u64,
    batch: u64,
}

impl Counter {
    fn open() -> Result<Self, Error> {
        // No checks: records are counted alone, so no task waits for them.
        let options =
            DeviceOptions { icount: true, hbm_size: HBM, checks: Some(Checks::NONE), ..DeviceOptions::default() };
        let device = Device::open(options)?;
        let comm = Comm::new(&device)?;
        let threads = comm.acquire_threads_with(&ThreadConfig::new(64).notifies(1).depth(DEPTH))?;
        let stream = Stream::new(&device);
        let (dst, src) = (device.allocate(16 << 30)?, device.allocate(16 << 30)?);
        Ok(Self { device, comm, stream, threads, dst, src })
    }

    fn run(&self, Run { op, len, count, batch }: Run) -> Result<Arc<LaunchStats>, Error> {
        let (header, thread) = (BenchOpsParams::HEADER, self.threads[0].0);
        let (dst, src) = (self.dst, self.src);
        let params = BenchOpsParams { header, thread, peer: thread, op, dst, src, len, count, batch };
        let stats = self.stream.launch_and_drain(&self.device.load_kernel("bench_ops")?, &params)?;
        self.stream.synchronize()?;
        Ok(stats)
    }

    /// Instructions a call, all of the launch included.
    fn whole(&self, op: BenchOp, count: u64, batch: u64) -> Result<f64, Error> {
        Ok(self.run(Run { op, len: 64, count, batch })?.instructions() as f64 / count as f64)
    }

    /// Instructions a call, as the difference of two launches: what a launch costs by itself is not in it.
    fn difference(&self, op: BenchOp, len: u64, count: u64) -> Result<f64, Error> {
        let of = |count| Ok::<_, Error>(self.run(Run { op, len, count, batch: 0 })?.instructions() as f64);
        Ok((of(2 * count)? - of(count)?) / count as f64)
    }

    /// Instructions a copy of kernel `copy_list`, `copies` of them spread over `threads` queues.
    fn spread(&self, threads: usize, copies: usize, batch: bool) -> Result<(f64, u64), Error> {
        let copy = |index: usize| {
            let (dst, src) = (DeviceAddr(self.dst.0 + index as u64 * 64), self.src);
            ListedCopy { thread: self.threads[index % threads].0, dst, src, len: 64 }
        };
        let list: Vec<_> = (0..copies).map(copy).collect();
        let entries = self.device.malloc(size_of_val(&list[..]) as u64)?;
        self.device.copy_in(entries.addr(), list.as_bytes())?;
        let header = CopyListParams::HEADER;
        let params = CopyListParams { header, list: entries.addr(), count: copies as u64, batch: batch.into() };
        let stats = self.stream.launch_and_drain(&self.device.load_kernel("copy_list")?, &params)?;
        self.stream.synchronize()?;
        Ok((stats.instructions() as f64 / copies as f64, stats.doorbells()))
    }
}

/// How far the largest is above the first, in percent.
fn growth(values: &[f64]) -> f64 {
    let most = values.iter().fold(f64::MIN, |most, value| most.max(*value));
    (most / values[0] - 1.0) * 100.0
}

/// Counts of one copy.
///
/// # Errors
/// No image, no QEMU, or a launch that failed.
pub fn measure_copies() -> Result<Vec<Row>, Error> {
    let counter = Counter::open()?;
    let mut rows = Vec::new();
    let mut add = |id, value| rows.push(Row::new(id, value));
    add("loop", counter.whole(BenchOp::NOTHING, CALLS, 0)?);
    add("copy_eager", counter.whole(BenchOp::COPY, CALLS, 0)?);
    add("copy_eager_difference", counter.difference(BenchOp::COPY, 64, CALLS / 2)?);
    add("copy_safe", counter.whole(BenchOp::COPY_SAFE, CALLS, 0)?);
    // Several batches: the launch itself is not what is measured.
    add("copy_batch", counter.whole(BenchOp::COPY, 10 * BATCH, BATCH)?);

    let large = counter.run(Run { op: BenchOp::COPY, len: 16 << 30, count: 20, batch: 0 })?;
    add("copy_16gib", large.instructions() as f64 / large.tasks() as f64);
    add("copy_16gib_descriptors", large.tasks() as f64 / 20.0);
    Ok(rows)
}

/// All counts of copies: of one, and how they grow.
///
/// # Errors
/// As [`measure_copies`].
pub fn measure() -> Result<Vec<Row>, Error> {
    let mut rows = measure_copies()?;
    let counter = Counter::open()?;
    let mut add = |id, value| rows.push(Row::new(id, value));

    let eager = counter.run(Run { op: BenchOp::COPY, len: 64, count: CALLS, batch: 0 })?;
    add("doorbells_eager", eager.doorbells() as f64 / CALLS as f64);
    let (_, doorbells) = counter.spread(64, 1280, true)?;
    add("doorbells_batch", doorbells as f64 / 64.0);

    let mut by_count = Vec::new();
    for count in [10, 100, 1000] {
        by_count.push(counter.difference(BenchOp::COPY, 64, count)?);
    }
    let mut million = 0;
    for _ in 0..500 {
        million += counter.run(Run { op: BenchOp::COPY, len: 64, count: 2000, batch: 0 })?.instructions();
    }
    by_count.push(million as f64 / 1e6);
    add("flat_count", growth(&by_count));

    let mut by_threads = Vec::new();
    for threads in [1, 8, 64] {
        by_threads.push(counter.spread(threads, 1280, false)?.0);
    }
    add("flat_threads", growth(&by_threads));
    let mut by_threads = Vec::new();
    for threads in [1, 8, 64] {
        // A queue costs something at the end of a batch, so each has as many copies.
        by_threads.push(counter.spread(threads, threads * BATCH as usize, true)?.0);
    }
    add("flat_threads_batch", growth(&by_threads));

    let counter = Counter::open()?;
    let mut by_len = Vec::new();
    for len in [256, 64 << 10, 16 << 20, 1 << 30, CHUNK] {
        by_len.push(counter.difference(BenchOp::COPY, len, 20)?);
    }
    by_len.push(counter.difference(BenchOp::COPY, 4 << 30, 20)? / 2.0);
    add("flat_len", growth(&by_len));
    Ok(rows)
}

/// Counts of calls on a channel, both ends of which are on the one device.
///
/// # Errors
/// As [`measure_copies`].
pub fn measure_channels() -> Result<Vec<Row>, Error> {
    let counter = Counter::open()?;
    let ranks = ChannelRanks { rank: 0, peer_rank: 0, peer_device: counter.device.slot() };
    let config = ChannelConfig::new(1);
    let ends = [counter.comm.prepare_channel(ranks, &config)?, counter.comm.prepare_channel(ranks, &config)?];
    let offers = [ends[1].offer(), ends[0].offer()];
    let [first, second] = ends;
    let channel = counter.comm.complete_channel(first, &offers[0])?;
    counter.comm.complete_channel(second, &offers[1])?;
    let (thread, (dst, _)) = (counter.threads[0].0, counter.comm.hccl_buffer()?);
    let count = |op, count: u64, batch| -> Result<f64, Error> {
        let (header, src, peer) = (BenchOpsParams::HEADER, counter.src, channel.0);
        let params = BenchOpsParams { header, thread, peer, op, dst, src, len: 64, count, batch };
        let stats = counter.stream.launch_and_drain(&counter.device.load_kernel("bench_ops")?, &params)?;
        counter.stream.synchronize()?;
        Ok(stats.instructions() as f64 / count as f64)
    };
    let mut rows = Vec::new();
    let mut add = |id, value| rows.push(Row::new(id, value));
    add("channel_write", count(BenchOp::WRITE, CALLS, 0)?);
    add("channel_write_batch", count(BenchOp::WRITE, 10 * BATCH, BATCH)?);
    add("channel_record", count(BenchOp::CHANNEL_RECORD, CALLS, 0)?);
    Ok(rows)
}

/// Counts of the tasks that order and reduce.
///
/// # Errors
/// As [`measure_copies`].
pub fn measure_sync() -> Result<Vec<Row>, Error> {
    let counter = Counter::open()?;
    let mut rows = Vec::new();
    let mut add = |id, value| rows.push(Row::new(id, value));
    add("reduce", counter.whole(BenchOp::REDUCE, CALLS, 0)?);
    let record = counter.whole(BenchOp::NOTIFY_RECORD, CALLS, 0)?;
    add("notify_record", record);
    // The loop and the launch are in both, and belong to a wait as to a record.
    let empty_loop = counter.whole(BenchOp::NOTHING, CALLS, 0)?;
    add("notify_wait", counter.whole(BenchOp::NOTIFY_RECORD_WAIT, CALLS / 2, 0)? - record + empty_loop);
    Ok(rows)
}
