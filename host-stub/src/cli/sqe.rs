//! `sqe encode` and `sqe decode`: task descriptors as hexadecimal digits.

use std::str::FromStr;

use clap::Subcommand;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp, sdma_opcode};
use hcomm_aicpu::spec::stars950::Sdma;
use hcomm_aicpu::spec::{DeviceAddr, Sqe};
use serde::{Serialize, Serializer};
use zerocopy::IntoBytes;

use super::failure::Failure;
use super::number;
use super::output::Output;

/// A copy whose length does not fit the 32-bit field is split into chunks of this size: each keeps the alignment of the
/// first, and whole elements.
const MAX_CHUNK: u64 = (4 << 30) - (2 << 20);

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print descriptors, one line of 128 hexadecimal digits each. Nothing but the widths of the fields is checked.
    Encode {
        #[command(subcommand)]
        task: Task,
    },
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// SDMA copy, or reduce with `--reduce`.
    Copy(CopyArgs),
}

#[derive(Debug, clap::Args)]
pub struct CopyArgs {
    /// SoC whose format to encode.
    #[arg(long)]
    soc: String,
    /// Stream of the queue. An ascend950 descriptor does not carry it.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    stream_id: u32,
    /// Task id of the first descriptor.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    task_id: u32,
    /// Address of the first byte read.
    #[arg(long, value_name = "ADDR", value_parser = number::u64)]
    src: u64,
    /// Address of the first byte written.
    #[arg(long, value_name = "ADDR", value_parser = number::u64)]
    dst: u64,
    /// Bytes. Up to 0xffffffff they make one descriptor, above that one for each chunk of 4 GiB - 2 MiB.
    #[arg(long, value_name = "BYTES", value_parser = number::u64)]
    len: u64,
    /// Reduce into the destination: sum, max or min of int8, int16, int32, fp16, fp32 or bf16.
    #[arg(long, value_name = "OP,TYPE")]
    reduce: Option<String>,
}

pub fn run(command: Command, output: Output) -> Result<(), Failure> {
    match command {
        Command::Encode { task: Task::Copy(args) } => encode_copy(&args, output),
    }
}

/// Formats that can be encoded and decoded.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Soc {
    Ascend950,
}

impl FromStr for Soc {
    type Err = Failure;

    fn from_str(name: &str) -> Result<Self, Failure> {
        if name.eq_ignore_ascii_case("ascend950") {
            Ok(Self::Ascend950)
        } else {
            Err(Failure::Unsupported(format!("soc {name} is not supported: ascend950 is")))
        }
    }
}

/// The opcode byte for `OP,TYPE`.
fn reduce_opcode(text: &str) -> Result<u8, Failure> {
    let lower = text.to_ascii_lowercase();
    let (op_name, type_name) = lower
        .split_once(',')
        .ok_or_else(|| Failure::Usage(format!("--reduce takes OP,TYPE such as sum,fp32, not {text:?}")))?;
    let op = ReduceOp::from_name(op_name)
        .ok_or_else(|| Failure::Usage(format!("{op_name:?} is no reduce operator: sum, max and min are")))?;
    // The interface spells it BFP16, everybody else bf16.
    let data_type = DataType::from_name(if type_name == "bfp16" { "bf16" } else { type_name }).ok_or_else(|| {
        let known = "int8, int16, int32, fp16, fp32 and bf16";
        Failure::Usage(format!("{type_name:?} is no element type: {known} are"))
    })?;
    sdma_opcode(op, data_type).ok_or_else(|| {
        Failure::Unsupported(format!(
            "the SDMA engine does not compute {op_name} of {type_name}: \
             it computes sum, max and min of int8, int16, int32, fp16, fp32 and bf16"
        ))
    })
}

/// Length of each descriptor of a copy of `len` bytes.
fn chunk_lens(len: u64) -> impl Iterator<Item = u32> {
    let chunk = if len <= u64::from(u32::MAX) { u64::from(u32::MAX) } else { MAX_CHUNK };
    // One descriptor also for a length of 0: this is the raw encoder.
    let count = len.div_ceil(chunk).max(1);
    (0..count).map(move |index| {
        let left = len - index * chunk;
        u32::try_from(left.min(chunk)).expect("a chunk fits 32 bits")
    })
}

/// A descriptor that prints as its bytes in order.
struct Hex(Sqe);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The descriptors of one copy, made while they are printed: a length of 64 bits has four billion of them.
struct Descriptors<'a> {
    args: &'a CopyArgs,
    opcode: u8,
}

impl Descriptors<'_> {
    fn iter(&self) -> impl Iterator<Item = Hex> {
        let Self { args, opcode } = *self;
        let mut offset = 0u64;
        chunk_lens(args.len).zip(0u32..).map(move |(len, index)| {
            // Nothing is checked, so that addresses and ids may wrap.
            let src = DeviceAddr(args.src.wrapping_add(offset));
            let dst = DeviceAddr(args.dst.wrapping_add(offset));
            offset += u64::from(len);
            Hex(Sdma::new(src, dst, len).with_opcode(opcode).build(args.task_id.wrapping_add(index)))
        })
    }
}

impl Serialize for Descriptors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|hex| hex.to_string()))
    }
}

#[derive(Serialize)]
struct EncodeAnswer<'a> {
    soc: Soc,
    sqes: Descriptors<'a>,
}

fn encode_copy(args: &CopyArgs, output: Output) -> Result<(), Failure> {
    let soc = args.soc.parse()?;
    let opcode = args.reduce.as_deref().map_or(Ok(0), reduce_opcode)?;
    let answer = EncodeAnswer { soc, sqes: Descriptors { args, opcode } };
    output.answer(&answer, |out| answer.sqes.iter().try_for_each(|hex| writeln!(out, "{hex}")))
}
