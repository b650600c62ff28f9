//! `sqe encode` and `sqe decode`: task descriptors as hexadecimal digits.

mod ub;

use std::io::{self, Write};

use clap::Subcommand;
use hcomm_aicpu::copy::{Chunk, Chunks};
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp, SdmaReduce};
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::stars910::{self, LinkType, Stamp};
use hcomm_aicpu::spec::{DeviceAddr, SQE_SIZE, Sqe, stars950};
use host_stub::sim::decode::{self, DecodeError, Field};
use serde::{Serialize, Serializer};
use zerocopy::IntoBytes;

use super::failure::Failure;
use super::number;
use super::output::Output;
use super::session;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print descriptors, or blocks of work entries, one line of 128 hexadecimal digits each. Only the widths of the
    /// fields are checked.
    Encode {
        #[command(subcommand)]
        task: Task,
    },
    /// Print every field of the work entries of a UB channel by name.
    DecodeUb(ub::DecodeArgs),
    /// Print every field of a descriptor by name.
    Decode {
        /// SoC whose format the descriptor has.
        #[arg(long)]
        soc: String,
        /// The descriptor: 128 hexadecimal digits.
        hex: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// SDMA copy, or reduce with `--reduce`.
    Copy(CopyArgs),
    /// Write of a 32-bit value.
    WriteValue(WriteValueArgs),
    /// Doorbell of a UB channel.
    UbDoorbell(ub::DoorbellArgs),
    /// Work entries of a write over a UB channel.
    UbWrite(ub::WriteArgs),
    /// Work entries of a write that also sets a notify of the peer.
    UbWriteWithNotify(ub::WriteWithNotifyArgs),
    /// Work entries of a read over a UB channel.
    UbRead(ub::WriteArgs),
    /// Work entry of a record of a notify of the peer.
    UbRecord(ub::RecordArgs),
}

#[derive(Debug, clap::Args)]
pub struct WriteValueArgs {
    /// SoC whose format to encode: ascend950.
    #[arg(long)]
    soc: String,
    /// Task id, 32 bits.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    task_id: u32,
    /// Address that is written, 49 bits.
    #[arg(long, value_name = "ADDR", value_parser = number::u64)]
    addr: u64,
    /// The value.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    value: u32,
}

#[derive(Debug, clap::Args)]
pub struct CopyArgs {
    /// SoC whose format to encode.
    #[arg(long)]
    soc: String,
    /// Stream of the queue. An ascend950 descriptor does not carry it, the others hold 16 bits.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    stream_id: u32,
    /// Task id of the first descriptor: 32 bits on ascend950, 16 on the others.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    task_id: u32,
    /// Address of the first byte read.
    #[arg(long, value_name = "ADDR", value_parser = number::u64)]
    src: u64,
    /// Address of the first byte written.
    #[arg(long, value_name = "ADDR", value_parser = number::u64)]
    dst: u64,
    /// Bytes. Up to 0xffffffff they make one descriptor, above that one for each chunk of 4 GiB - 2 MiB, up to address 2^64.
    #[arg(long, value_name = "BYTES", value_parser = number::u64)]
    len: u64,
    /// Reduce into the destination: sum, max or min of int8, int16, int32, fp16, fp32 or bf16.
    #[arg(long, value_name = "OP,TYPE")]
    reduce: Option<String>,
    /// How both ends are linked: 0 on chip (the default), 4 SIO, and so on. Not on ascend950.
    #[arg(long, value_name = "N", value_parser = number::u8)]
    link_type: Option<u8>,
    /// QoS, 4 bits, where both ends are not near (then it is always 6). Not on ascend950.
    #[arg(long, value_name = "N", value_parser = number::u8)]
    qos: Option<u8>,
}

pub fn run(command: Command, output: Output) -> Result<(), Failure> {
    match command {
        Command::Encode { task } => encode(&task, output),
        Command::DecodeUb(args) => ub::decode(&args, output),
        Command::Decode { soc, hex } => decode_fields(&soc, &hex, output),
    }
}

fn encode(task: &Task, output: Output) -> Result<(), Failure> {
    match task {
        Task::Copy(args) => encode_copy(args, output),
        Task::WriteValue(args) => encode_one(write_value(args)?, output),
        Task::UbDoorbell(args) => encode_one(ub::encode_doorbell(args)?, output),
        Task::UbWrite(args) => ub::encode_write(args, output),
        Task::UbWriteWithNotify(args) => ub::encode_write_with_notify(args, output),
        Task::UbRead(args) => ub::encode_read(args, output),
        Task::UbRecord(args) => ub::encode_record(args, output),
    }
}

fn write_value(args: &WriteValueArgs) -> Result<(Soc, Sqe), Failure> {
    let soc = soc(&args.soc)?;
    if soc != Soc::Ascend950 {
        return Err(Failure::Unsupported(format!("write value of {} is not supported: must be ascend950", args.soc)));
    }
    let write = stars950::WriteValue::new(DeviceAddr(args.addr), args.value);
    let write = write.map_err(|error| Failure::Usage(format!("--addr: {error}")))?;
    Ok((soc, write.build(args.task_id)))
}

/// The SoC with this name, in upper or lower case.
fn soc(name: &str) -> Result<Soc, Failure> {
    Soc::ALL.into_iter().find(|soc| soc.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
        Failure::Unsupported(format!("soc {name} is not supported: must be ascend950, ascend910b or ascend910_93"))
    })
}

/// Name of a SoC as the command line takes it.
fn soc_name<S: Serializer>(soc: &Soc, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&soc.name().to_ascii_lowercase())
}

/// Operator and element type of `OP,TYPE`.
fn parse_reduce(text: &str) -> Result<(ReduceOp, DataType), Failure> {
    let lower = text.to_ascii_lowercase();
    let (op_name, type_name) = lower
        .split_once(',')
        .ok_or_else(|| Failure::Usage(format!("--reduce takes OP,TYPE such as sum,fp32, not {text:?}")))?;
    let op = ReduceOp::from_name(op_name)
        .ok_or_else(|| Failure::Usage(format!("{op_name:?} is not a reduce operator: must be sum, max or min")))?;
    // The interface spells it BFP16; the usual name is bf16.
    let data_type = DataType::from_name(if type_name == "bfp16" { "bf16" } else { type_name }).ok_or_else(|| {
        let known = "int8, int16, int32, fp16, fp32 or bf16";
        Failure::Usage(format!("{type_name:?} is not an element type: must be {known}"))
    })?;
    Ok((op, data_type))
}

/// The opcode byte for `OP,TYPE`.
fn reduce_opcode(text: &str) -> Result<u8, Failure> {
    let (op, data_type) = parse_reduce(text)?;
    SdmaReduce::new(op, data_type).map(|reduce| reduce.opcode).ok_or_else(|| {
        Failure::Unsupported(format!(
            "the SDMA engine does not compute {text}: \
             it computes sum, max and min of int8, int16, int32, fp16, fp32 and bf16"
        ))
    })
}

/// # Errors
/// The range goes past the end of the address space.
fn check_range(option: &str, addr: u64, len: u64) -> Result<(), Failure> {
    match addr.checked_add(len.saturating_sub(1)) {
        Some(_) => Ok(()),
        None => Err(Failure::Usage(format!("{option}: {addr:#x} + {len} bytes is past 2^64"))),
    }
}

/// A descriptor that prints as its bytes in order.
struct Hex(Sqe);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// How the descriptors of one copy are made.
#[derive(Clone, Copy)]
enum Format {
    Ascend950,
    Ascend910 { stream_id: u16, link_type: LinkType, qos: u8 },
}

impl Format {
    fn new(soc: Soc, args: &CopyArgs) -> Result<Self, Failure> {
        let usage = |what: &str| Failure::Usage(format!("{what} of {}", soc.name().to_ascii_lowercase()));
        if soc == Soc::Ascend950 {
            return match (args.link_type, args.qos) {
                (None, None) => Ok(Self::Ascend950),
                _ => Err(usage("--link-type and --qos are not in a descriptor")),
            };
        }
        let stream_id = u16::try_from(args.stream_id);
        let stream_id =
            stream_id.map_err(|_| usage(&format!("--stream-id {} does not fit 16 bits", args.stream_id)))?;
        if args.task_id > u16::MAX.into() {
            return Err(usage(&format!("--task-id {} does not fit 16 bits", args.task_id)));
        }
        let qos = args.qos.unwrap_or(0);
        if qos > 15 {
            return Err(usage(&format!("--qos {qos} does not fit 4 bits")));
        }
        Ok(Self::Ascend910 { stream_id, link_type: LinkType(args.link_type.unwrap_or(0)), qos })
    }

    fn build(self, Chunk { dst, src, len }: Chunk, opcode: u8, task_id: u32) -> Sqe {
        match self {
            Self::Ascend950 => stars950::Sdma::new(src, dst, len).with_opcode(opcode).build(task_id),
            Self::Ascend910 { stream_id, link_type, qos } => {
                let sdma = stars910::Sdma::new(src, dst, len).with_opcode(opcode).with_link(link_type, qos);
                // Ids wrap without a place holder: this is the raw encoder.
                sdma.build(Stamp { stream_id, task_id: task_id as u16 })
            }
        }
    }
}

/// The descriptors of one copy, made while they are printed: a length of 64 bits has four billion of them.
struct Descriptors<'a> {
    args: &'a CopyArgs,
    format: Format,
    opcode: u8,
}

impl Descriptors<'_> {
    fn iter(&self) -> impl Iterator<Item = Hex> {
        let Self { args, format, opcode } = *self;
        let (src, dst) = (DeviceAddr(args.src), DeviceAddr(args.dst));
        // What fits the field is one descriptor, also a length of 0 and one above the chunk: this is the raw encoder.
        let (whole, split_len) = match u32::try_from(args.len) {
            Ok(len) => (Some(Chunk { dst, src, len }), 0),
            Err(_) => (None, args.len),
        };
        let mut next_id = args.task_id;
        whole.into_iter().chain(Chunks::new(dst, src, split_len)).map(move |chunk| {
            let task_id = next_id;
            next_id = next_id.wrapping_add(1);
            Hex(format.build(chunk, opcode, task_id))
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
    #[serde(serialize_with = "soc_name")]
    soc: Soc,
    sqes: Descriptors<'a>,
}

#[derive(Serialize)]
struct OneAnswer {
    #[serde(serialize_with = "soc_name")]
    soc: Soc,
    sqes: [String; 1],
}

fn encode_one((soc, sqe): (Soc, Sqe), output: Output) -> Result<(), Failure> {
    let answer = OneAnswer { soc, sqes: [Hex(sqe).to_string()] };
    output.answer(&answer, |out| writeln!(out, "{}", answer.sqes[0]))
}

fn encode_copy(args: &CopyArgs, output: Output) -> Result<(), Failure> {
    let soc = soc(&args.soc)?;
    let opcode = args.reduce.as_deref().map_or(Ok(0), reduce_opcode)?;
    for (option, addr) in [("--src", args.src), ("--dst", args.dst)] {
        // A single descriptor takes any address: this is the raw encoder. Of a split copy the later addresses would wrap.
        let is_split = args.len > u32::MAX.into();
        if is_split && addr.checked_add(args.len - 1).is_none() {
            let text = format!("{option} {addr:#x} + --len {:#x} is past the end of 64-bit addresses", args.len);
            return Err(Failure::Usage(text));
        }
    }
    let answer = EncodeAnswer { soc, sqes: Descriptors { args, format: Format::new(soc, args)?, opcode } };
    output.answer(&answer, |out| answer.sqes.iter().try_for_each(|hex| writeln!(out, "{hex}")))
}

/// The bytes of 128 hexadecimal digits.
fn parse_hex(hex: &str) -> Result<[u8; SQE_SIZE], Failure> {
    if let Some((at, odd)) = hex.char_indices().find(|(_, c)| !c.is_ascii_hexdigit()) {
        return Err(Failure::Usage(format!("{odd:?} at position {at} is not a hexadecimal digit")));
    }
    let digits = hex.len();
    if digits != 2 * SQE_SIZE {
        return Err(Failure::Usage(format!("a descriptor has {} hexadecimal digits, not {digits}", 2 * SQE_SIZE)));
    }
    let mut bytes = [0; SQE_SIZE];
    for (byte, at) in bytes.iter_mut().zip((0..digits).step_by(2)) {
        *byte = u8::from_str_radix(&hex[at..at + 2], 16).expect("two hexadecimal digits");
    }
    Ok(bytes)
}

#[derive(Serialize)]
struct DecodeAnswer {
    #[serde(serialize_with = "soc_name")]
    soc: Soc,
    /// What the descriptor does.
    kind: &'static str,
    /// Both halves of the task id.
    task_id: u32,
    /// Name to value, in the order of the bytes.
    #[serde(serialize_with = "by_name")]
    fields: Vec<Field>,
}

fn by_name<S: Serializer>(fields: &[Field], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|field| (field.name, Value(field))))
}

/// Value of a field in JSON. An address has 64 bits, of which many readers of JSON keep only 53, so it is text as in `run`.
struct Value<'a>(&'a Field);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Field { name, value, .. } = self.0;
        if name.ends_with("_addr") { session::hex(value, serializer) } else { serializer.serialize_u64(*value) }
    }
}

/// A field that the device refuses: a reserved one that is set is wrong data, others are features that are not supported.
fn refused(error: &DecodeError) -> Failure {
    match error {
        DecodeError::Reserved { .. } => Failure::Device(error.to_string()),
        DecodeError::UnknownType { .. } | DecodeError::Opcode { .. } | DecodeError::Unsupported { .. } => {
            Failure::Unsupported(error.to_string())
        }
    }
}

fn decode_fields(name: &str, hex: &str, output: Output) -> Result<(), Failure> {
    let soc = soc(name)?;
    let bytes = parse_hex(hex)?;
    let fields = decode::fields(soc, &bytes).map_err(|error| refused(&error))?;
    match decode::decode(soc, &bytes) {
        Ok(task) => {
            let answer = DecodeAnswer { soc, kind: task.action.name(), task_id: task.task_id, fields };
            output.answer(&answer, |out| {
                writeln!(out, "{:<18} {}, task id {:#x}", "task", answer.kind, answer.task_id)?;
                write_fields(out, &answer.fields)
            })
        }
        Err(error) => {
            // As text, all fields are printed with the error; JSON has only the error.
            if !output.json {
                output.answer(&(), |out| write_fields(out, &fields))?;
            }
            Err(refused(&error))
        }
    }
}

fn write_fields(out: &mut dyn Write, fields: &[Field]) -> io::Result<()> {
    fields.iter().try_for_each(|field| writeln!(out, "{:<18} {:#x}", field.name, field.value))
}
