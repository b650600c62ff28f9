//! `compare`: two algorithms for one job beside each other, with the time of a cost model.

use std::io::{self, Write};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::{
    Control, LOCAL_REDUCE_NOTIFIES, LOCAL_REDUCE_THREADS, LocalReduceParams, STAGED_COPY_INPUT_NOTIFIES,
    STAGED_COPY_OUTPUT_NOTIFIES, StagedCopyParams,
};
use host_stub::sim::event::What;
use host_stub::{Comm, ControlPair, Device, DeviceBuffer, DeviceOptions, Error, Model, Stream};
use serde::Serialize;

use super::failure::Failure;
use super::number;
use super::output::Output;
use super::session;

/// Largest `--len`: all buffers have room in a device.
const LEN_MAX: u64 = 64 << 20;
/// Bytes of an element of the reduce.
const ELEMENT: u64 = 4;
/// What is said beside the figures.
const NOTE: &str = "model time: computed from assumptions, not the time of a card";

#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Cost model: a TOML file (docs/model.md), or stock.
    #[arg(long, value_name = "FILE", default_value = host_stub::model::STOCK, value_parser = session::model)]
    model: Model,
    /// Bytes of a slice of the reduce, and of the copy; a multiple of 4.
    #[arg(long, value_name = "BYTES", default_value = "1048576", value_parser = len)]
    len: u64,
    /// Slices of the reduce.
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u64).range(1..=64))]
    slices: u64,
    /// Threads of the tree.
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u64).range(2..=LOCAL_REDUCE_THREADS as u64))]
    threads: u64,
    /// Bytes of the buffer that the copy goes through.
    #[arg(long, value_name = "BYTES", default_value = "262144", value_parser = number::positive)]
    buffer: u64,
}

/// A number of bytes that is a multiple of an element.
fn len(text: &str) -> Result<u64, String> {
    match number::positive(text)? {
        len if len > LEN_MAX => Err(format!("above {LEN_MAX} bytes")),
        len if !len.is_multiple_of(ELEMENT) => Err(format!("not a multiple of {ELEMENT} bytes")),
        len => Ok(len),
    }
}

#[derive(Serialize)]
struct Answer {
    model: String,
    note: &'static str,
    jobs: Vec<Job>,
}

#[derive(Serialize)]
struct Job {
    job: String,
    algorithms: Vec<Measured>,
}

/// What an algorithm took.
#[derive(Serialize)]
struct Measured {
    algorithm: String,
    model_ns: u64,
    /// Bytes that transfers have written.
    bytes_moved: u64,
    /// Those of the control pair among them.
    tasks: u64,
    doorbells: u64,
}

pub fn run(args: &CompareArgs, output: Output) -> Result<(), Failure> {
    let CompareArgs { len, slices, threads, buffer, .. } = *args;
    let answer = Answer {
        model: args.model.name.clone(),
        note: NOTE,
        jobs: vec![
            Job {
                job: format!("reduce {slices} slices of {len} bytes"),
                algorithms: vec![reduce(args, "chain", 1)?, reduce(args, "tree", threads)?],
            },
            Job {
                job: format!("copy {len} bytes through {buffer}"),
                algorithms: vec![staged_copy(args, false)?, staged_copy(args, true)?],
            },
        ],
    };
    output.answer(&answer, |out| report(&answer, out))
}

/// A device whose time is that of the model.
struct Bench {
    stream: Stream,
    comm: Comm,
    device: Device,
}

impl Bench {
    fn open(model: &Model) -> Result<Self, Error> {
        let device = Device::open(DeviceOptions { model: Some(model.clone()), ..DeviceOptions::native() })?;
        let comm = Comm::new(&device)?;
        Ok(Self { stream: Stream::new(&device), comm, device })
    }

    /// A buffer whose words are all `word`.
    fn buffer(&self, len: u64, word: i32) -> Result<DeviceBuffer, Error> {
        let buffer = self.device.malloc(len)?;
        let bytes: Vec<u8> = word.to_le_bytes().into_iter().cycle().take(len as usize).collect();
        self.device.copy_in(buffer.addr(), &bytes)?;
        Ok(buffer)
    }

    fn threads(&self, count: u64, notifies: u32) -> Result<Vec<ThreadHandle>, Error> {
        self.comm.acquire_threads(Engine::AICPU_TS, count as u32, notifies)
    }

    /// Launches a kernel, waits for it, and checks that each word of `dst` is `word`.
    fn measure<P: KernelParams>(
        &self,
        algorithm: String,
        kernel: &str,
        pair: &ControlPair,
        params: &P,
        dst: &DeviceBuffer,
        word: i32,
    ) -> Result<Measured, Failure> {
        let kernel = self.device.load_kernel(kernel)?;
        let moved = self.bytes_moved();
        let started = self.device.now();
        let stats = self.stream.launch_with_control(pair, &kernel, params)?;
        self.stream.synchronize()?;
        let model_ns = (self.device.now() - started).as_nanos() as u64;
        let mut bytes = vec![0; dst.len() as usize];
        self.device.copy_out(dst.addr(), &mut bytes)?;
        if let Some(at) = bytes.chunks(ELEMENT as usize).position(|found| found != word.to_le_bytes()) {
            return Err(Failure::Device(format!("{algorithm}: word {at} of the result is not {word}")));
        }
        let (tasks, doorbells) = (stats.tasks(), stats.doorbells());
        Ok(Measured { algorithm, model_ns, bytes_moved: self.bytes_moved() - moved, tasks, doorbells })
    }

    /// Bytes that tasks have written so far.
    fn bytes_moved(&self) -> u64 {
        let trace = self.device.trace();
        let written = trace.events.iter().map(|event| match &event.what {
            What::TaskBegan { writes, .. } => writes.len,
            _ => 0,
        });
        written.sum()
    }
}

fn reduce(args: &CompareArgs, name: &str, threads: u64) -> Result<Measured, Failure> {
    let bench = Bench::open(&args.model)?;
    let handles = bench.threads(threads, LOCAL_REDUCE_NOTIFIES + 1)?;
    let pair = ControlPair::new(&bench.comm, &bench.stream, handles[0], LOCAL_REDUCE_NOTIFIES)?;
    let src = bench.buffer(args.len * args.slices, 3)?;
    let dst = bench.buffer(args.len, 0)?;
    let scratch = bench.buffer(args.len * threads, 0)?;
    let mut all = [0; LOCAL_REDUCE_THREADS];
    all.iter_mut().zip(&handles).for_each(|(slot, handle)| *slot = handle.0);
    let params = LocalReduceParams {
        header: LocalReduceParams::HEADER,
        threads: all,
        thread_count: threads,
        src: src.addr(),
        slice_count: args.slices,
        dst: dst.addr(),
        scratch: scratch.addr(),
        count: args.len / ELEMENT,
        data_type: DataType::INT32.0,
        op: ReduceOp::SUM.0,
        control: pair.control(),
    };
    let word = 3 * args.slices as i32;
    bench.measure(format!("{name}, {}", count(threads)), "local_reduce", &pair, &params, &dst, word)
}

/// `apart`: a thread for each direction.
fn staged_copy(args: &CompareArgs, apart: bool) -> Result<Measured, Failure> {
    let bench = Bench::open(&args.model)?;
    let input = bench.threads(1, STAGED_COPY_INPUT_NOTIFIES + 1)?[0];
    let output = if apart { bench.threads(1, STAGED_COPY_OUTPUT_NOTIFIES)?[0] } else { input };
    let pair = ControlPair::new(&bench.comm, &bench.stream, input, STAGED_COPY_INPUT_NOTIFIES)?;
    let (src, dst, between) =
        (bench.buffer(args.len, 5)?, bench.buffer(args.len, 0)?, bench.device.malloc(args.buffer)?);
    let control: Control = pair.control();
    let params = StagedCopyParams {
        header: StagedCopyParams::HEADER,
        input: input.0,
        output: output.0,
        user_in: src.addr(),
        user_out: dst.addr(),
        ccl_buf: DeviceAddr(between.addr().0),
        ccl_buf_size: args.buffer,
        len: args.len,
        control,
    };
    bench.measure(count(if apart { 2 } else { 1 }), "staged_copy", &pair, &params, &dst, 5)
}

fn count(threads: u64) -> String {
    format!("{threads} {}", if threads == 1 { "thread" } else { "threads" })
}

fn report(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "model {}; {}", answer.model, answer.note)?;
    for Job { job, algorithms } in &answer.jobs {
        writeln!(out, "\n{job:<44} {:>14} {:>12} {:>6} {:>10}", "model time", "bytes moved", "tasks", "doorbells")?;
        for Measured { algorithm, model_ns, bytes_moved, tasks, doorbells } in algorithms {
            let time = session::microseconds(*model_ns);
            writeln!(out, "  {algorithm:<42} {time:>14} {bytes_moved:>12} {tasks:>6} {doorbells:>10}")?;
        }
    }
    Ok(())
}
