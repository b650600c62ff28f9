//! `collective`: one collective over several simulated devices, for sizes that grow by a factor, one row a size.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use host_stub::collective::{Buffers, Call, Collective, Mesh, channel_config, values};
use host_stub::{Checks, Cluster, CommOptions, DeviceOptions, Error};
use serde::Serialize;

use super::failure::Failure;
use super::number;
use super::output::Output;
use super::session::CpuArg;

#[derive(Debug, clap::Args)]
pub struct CollectiveArgs {
    /// all_gather, reduce_scatter, all_reduce, all_reduce_ring, all_to_all or broadcast.
    #[arg(value_parser = collective)]
    name: Collective,
    /// Devices, each a rank: 2 to 16.
    #[arg(long, value_name = "N", default_value = "2", value_parser = number::u32)]
    ranks: u32,
    /// Bytes of the larger of input and output, as MIN:MAX:FACTOR or one number; K, M and G are powers of 1024.
    #[arg(long, value_name = "SIZES", default_value = "8:1M:4", value_parser = Sizes::parse)]
    sizes: Sizes,
    /// Element type: int8, int16, int32, fp16, fp32, bf16, ..
    #[arg(long, value_name = "TYPE", default_value = "fp32", value_parser = data_type)]
    dtype: DataType,
    /// Operator of those that reduce: sum, max or min.
    #[arg(long, value_name = "OP", default_value = "sum", value_parser = reduce_op)]
    op: ReduceOp,
    /// Rank that gives, of a broadcast.
    #[arg(long, value_name = "RANK", default_value = "0", value_parser = number::u32)]
    root: u32,
    /// Input and output share memory.
    #[arg(long)]
    in_place: bool,
    /// Bytes of each communicator's buffer.
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = bytes)]
    ccl_buffer: u64,
    /// AI CPU that runs the kernels. The image has no kernels of collectives but all_gather.
    #[arg(long, value_enum, default_value_t = CpuArg::Native)]
    cpu: CpuArg,
    /// Checks to make, as for `run`.
    #[arg(long = "check", value_name = "LIST", allow_hyphen_values = true)]
    checks: Option<Checks>,
    /// Seed of the random input. By default a new one for each run; it is printed.
    #[arg(long, value_name = "N", value_parser = number::u64)]
    seed: Option<u64>,
}

/// Sizes of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    min: u64,
    max: u64,
    factor: u64,
}

impl Sizes {
    fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<_> = text.split(':').collect();
        let sizes = match parts[..] {
            [size] => Self { min: bytes(size)?, max: bytes(size)?, factor: 2 },
            [min, max] => Self { min: bytes(min)?, max: bytes(max)?, factor: 2 },
            [min, max, factor] => Self { min: bytes(min)?, max: bytes(max)?, factor: number::u64(factor)? },
            _ => return Err("must be MIN:MAX:FACTOR".into()),
        };
        match sizes {
            Self { min: 0, .. } => Err("at least 1 byte is needed".into()),
            Self { min, max, .. } if min > max => Err(format!("from {min} to {max} is no size")),
            Self { factor: 0 | 1, .. } => Err("a factor is at least 2".into()),
            sizes => Ok(sizes),
        }
    }

    fn iter(self) -> impl Iterator<Item = u64> {
        std::iter::successors(Some(self.min), move |size| size.checked_mul(self.factor))
            .take_while(move |size| *size <= self.max)
    }
}

/// A number of bytes, also with K, M or G behind it.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    number::positive(digits)?.checked_mul(1 << shift).ok_or_else(|| format!("{text} is above 64 bits"))
}

fn collective(name: &str) -> Result<Collective, String> {
    let known = || Collective::ALL.map(Collective::name).join(", ");
    Collective::from_name(name).ok_or_else(|| format!("must be one of {}", known()))
}

fn data_type(name: &str) -> Result<DataType, String> {
    let has_values = |data_type: &DataType| values::element(*data_type, 1).is_some();
    DataType::from_name(name).filter(has_values).ok_or_else(|| "no element type of this name can be checked".into())
}

fn reduce_op(name: &str) -> Result<ReduceOp, String> {
    let is_computed = |op: &ReduceOp| values::reduce(*op, 1, 1).is_some();
    ReduceOp::from_name(name).filter(is_computed).ok_or_else(|| "must be sum, max or min".into())
}

/// One size. Bandwidths are those of the simulation on this machine, and say nothing of a device.
#[derive(Serialize)]
struct Row {
    /// Bytes of the larger of input and output.
    bytes: u64,
    /// Elements, as the kernel counts them.
    count: u64,
    /// Of all ranks.
    tasks: u64,
    doorbells: u64,
    entries: u64,
    host_time_us: f64,
    simulation_algbw_gb_s: f64,
    simulation_busbw_gb_s: f64,
    wrong: u64,
}

#[derive(Serialize)]
struct Answer {
    collective: &'static str,
    cpu: CpuArg,
    ranks: u32,
    data_type: &'static str,
    op: Option<&'static str>,
    in_place: bool,
    ccl_buffer: u64,
    #[serde(serialize_with = "super::session::hex")]
    seed: u64,
    rows: Vec<Row>,
}

pub fn run(args: &CollectiveArgs, output: Output) -> Result<(), Failure> {
    super::device_log::show(false);
    if args.ranks < 2 {
        return Err(Failure::Usage(format!("--ranks {}: a collective has at least 2", args.ranks)));
    }
    if args.root >= args.ranks {
        return Err(Failure::Usage(format!("--root {}: the ranks are 0 to {}", args.root, args.ranks - 1)));
    }
    let options = DeviceOptions { cpu: args.cpu.into(), checks: args.checks, ..DeviceOptions::default() };
    let comm = CommOptions { ccl_buffer: Some(args.ccl_buffer) };
    let mut cluster = Cluster::with_options(args.ranks as usize, &options, comm).map_err(|error| match error {
        Error::BadRankCount(_) | Error::Alloc(_) => Failure::Usage(error.to_string()),
        error => error.into(),
    })?;
    cluster.connect(&channel_config())?;
    let sweep = Sweep { args, seed: args.seed.unwrap_or_else(|| fastrand::u64(..)), mesh: Mesh::new(&cluster)? };
    let rows = args.sizes.iter().map(|size| sweep.row(size)).collect::<Result<_, _>>()?;
    let answer = Answer {
        collective: args.name.name(),
        cpu: args.cpu,
        ranks: args.ranks,
        data_type: args.dtype.name().unwrap_or("?"),
        op: args.name.reduces().then(|| args.op.name()).flatten(),
        in_place: args.in_place,
        ccl_buffer: args.ccl_buffer,
        seed: sweep.seed,
        rows,
    };
    output.answer(&answer, |out| report(&answer, out))?;
    if answer.rows.iter().any(|row| row.wrong != 0) { Err(Failure::Reported) } else { Ok(()) }
}

struct Sweep<'c> {
    args: &'c CollectiveArgs,
    seed: u64,
    mesh: Mesh<'c>,
}

/// Numbers of a rank: small enough for an exact sum over all ranks in every type.
fn number_of(seed: u64, rank: usize, index: usize) -> u32 {
    let mixed = (seed ^ (rank as u64) << 48 ^ index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as u32 % (values::EXACT / 16)
}

impl Sweep<'_> {
    fn row(&self, size: u64) -> Result<Row, Failure> {
        let CollectiveArgs { name, dtype, op, root, in_place, .. } = *self.args;
        let (ranks, element) = (self.mesh.cluster().ranks(), dtype.size().unwrap_or(1));
        // The larger side has so many elements for each one of `count`.
        let (input, output) = name.counts(ranks as u64, 1);
        let count = (size / element / input.max(output)).max(1);
        let call = Call { count, data_type: dtype, op, root: root.into(), in_place };
        let buffers = self.fill(&call)?;
        let before = self.counts();
        let start = Instant::now();
        self.mesh.run(name, &call, &buffers).map_err(|(rank, error)| rank_failed(rank, error))?;
        let time = start.elapsed();
        let after = self.counts();
        let wrong = self.wrong(&call, &buffers)?;
        let bytes = count * element * input.max(output);
        let algbw = bandwidth(bytes, time);
        Ok(Row {
            bytes,
            count,
            tasks: after[0] - before[0],
            doorbells: after[1] - before[1],
            entries: after[2] - before[2],
            host_time_us: time.as_secs_f64() * 1e6,
            simulation_algbw_gb_s: algbw,
            simulation_busbw_gb_s: algbw * name.bus_factor(ranks as u64),
            wrong,
        })
    }

    fn counts(&self) -> [u64; 3] {
        let cluster = self.mesh.cluster();
        (0..cluster.ranks())
            .map(|rank| cluster.device(rank).statistics())
            .fold([0; 3], |sum, of| [sum[0] + of.tasks, sum[1] + of.doorbells, sum[2] + of.entries])
    }

    /// Memory of all ranks, with random inputs.
    fn fill(&self, call: &Call) -> Result<Vec<Buffers>, Failure> {
        let (name, cluster) = (self.args.name, self.mesh.cluster());
        let (input, _) = name.counts(cluster.ranks() as u64, call.count);
        let fill = |rank: usize| {
            let buffers = self.mesh.buffers(name, call, rank).map_err(|error| rank_failed(rank, error))?;
            let numbers = (0..input as usize).map(|index| number_of(self.seed, rank, index));
            let bytes: Vec<u8> = numbers.flat_map(|number| element(call.data_type, number)).collect();
            cluster.device(rank).copy_in(buffers.user_in, &bytes).map_err(|error| rank_failed(rank, error))?;
            Ok(buffers)
        };
        (0..cluster.ranks()).map(fill).collect()
    }

    /// Elements of all outputs that are not what they should be.
    fn wrong(&self, call: &Call, buffers: &[Buffers]) -> Result<u64, Failure> {
        let (name, ranks) = (self.args.name, buffers.len());
        let (_, count) = name.counts(ranks as u64, call.count);
        let size = call.data_type.size().unwrap_or(1) as usize;
        let mut wrong = 0;
        for (rank, of) in buffers.iter().enumerate() {
            let mut bytes = vec![0; count as usize * size];
            let device = self.mesh.cluster().device(rank);
            device.copy_out(of.user_out, &mut bytes).map_err(|error| rank_failed(rank, error))?;
            let input = |from, index| number_of(self.seed, from, index);
            let reduce = |a, b| values::reduce(call.op, a, b).unwrap_or(0);
            wrong += bytes
                .chunks_exact(size)
                .enumerate()
                .filter(|(index, found)| {
                    let expected = name.expected(call, ranks, (rank, *index), input, reduce);
                    **found != element(call.data_type, expected)[..]
                })
                .count() as u64;
        }
        Ok(wrong)
    }
}

/// The argument was checked: the type has such elements.
fn element(data_type: DataType, value: u32) -> Vec<u8> {
    values::element(data_type, value).unwrap_or_default()
}

fn rank_failed(rank: usize, error: Error) -> Failure {
    match Failure::from(error) {
        Failure::Runtime(text, code) => Failure::Runtime(format!("rank {rank}: {text}"), code),
        Failure::Device(text) => Failure::Device(format!("rank {rank}: {text}")),
        other => other,
    }
}

/// In 10^9 bytes a second.
fn bandwidth(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64().max(1e-9) / 1e9
}

fn report(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    let Answer { collective, ranks, data_type, op, ccl_buffer, seed, .. } = answer;
    let op = op.map_or_else(String::new, |op| format!(", {op}"));
    writeln!(out, "# {collective} over {ranks} ranks, {data_type}{op}, cpu {}", answer.cpu.description())?;
    writeln!(
        out,
        "# ccl buffer {ccl_buffer} bytes, seed {seed:#x}{}",
        if answer.in_place { ", in place" } else { "" }
    )?;
    writeln!(out, "# host time and bandwidths are those of the simulation on this machine, not of a device")?;
    writeln!(
        out,
        "#{:>12} {:>12} {:>9} {:>9} {:>9} {:>14} {:>12} {:>12} {:>8}",
        "bytes", "count", "tasks", "doorbells", "entries", "host time (us)", "sim algbw", "sim busbw", "#wrong"
    )?;
    for row in &answer.rows {
        writeln!(
            out,
            " {:>12} {:>12} {:>9} {:>9} {:>9} {:>14.2} {:>12.5} {:>12.5} {:>8}",
            row.bytes,
            row.count,
            row.tasks,
            row.doorbells,
            row.entries,
            row.host_time_us,
            row.simulation_algbw_gb_s,
            row.simulation_busbw_gb_s,
            row.wrong
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_by_the_factor() {
        let sizes = |text| Sizes::parse(text).map(|sizes| sizes.iter().collect::<Vec<_>>());
        assert_eq!(sizes("8:64:2").unwrap(), [8, 16, 32, 64]);
        assert_eq!(sizes("1K:5K:3").unwrap(), [1024, 3072]);
        assert_eq!(sizes("64M").unwrap(), [64 << 20]);
        for bad in ["", "0:8:2", "8:4:2", "8:16:1", "1:2:3:4", "x:8:2", "8:8X:2"] {
            assert!(sizes(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn bandwidth_is_in_10_to_the_9_bytes() {
        assert_eq!(bandwidth(3_000_000_000, Duration::from_secs(2)), 1.5);
    }
}
