//! Work entries of a UB channel and the descriptor that rings for them.

use std::num::NonZeroU32;

use clap::ValueEnum;
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::ub::{
    Block, Eid, Jetty, Local, MAX_SLICE, NotifyRecord, Order, PathNumber, Peer, Read, Remote, Sequence, Slice, Slices,
    TokenId, UbDoorbell, UbReduce, WorkDepth, Write, WriteWithNotify,
};
use hcomm_aicpu::spec::{DeviceAddr, Sqe};
use host_stub::sim::decode::Field;
use host_stub::sim::decode::ub::{self, EntryError, WalkError};
use serde::{Serialize, Serializer};

use super::{Hex, by_name, check_range, parse_hex, parse_reduce, refused, soc, soc_name, write_fields};
use crate::cli::failure::Failure;
use crate::cli::number;
use crate::cli::output::Output;

#[derive(Debug, clap::Args)]
pub struct DoorbellArgs {
    /// SoC whose format to encode: ascend950.
    #[arg(long)]
    soc: String,
    /// Task id, 32 bits.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    task_id: u32,
    /// Die of the jetty, 1 bit.
    #[arg(long, value_name = "N", value_parser = number::u8)]
    die: u8,
    /// Function of the jetty, 7 bits.
    #[arg(long, value_name = "N", value_parser = number::u8)]
    func: u8,
    /// Number of the jetty, 16 bits.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    jetty: u32,
    /// Producer index: one past the last block to start, 16 bits.
    #[arg(long, value_name = "N", value_parser = number::u16)]
    pi: u16,
}

/// Place of an operation in a batch, which decides its order bits.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Position {
    /// Not in a batch, with a doorbell of its own.
    Alone,
    /// Not in a batch, the first after a fence.
    AfterFence,
    /// In a batch, not its last operation.
    InBatch,
    /// Last operation of a batch.
    EndOfBatch,
}

impl From<Position> for Sequence {
    fn from(position: Position) -> Self {
        match position {
            Position::Alone => Self::Alone,
            Position::AfterFence => Self::AfterFence,
            Position::InBatch => Self::InBatch,
            Position::EndOfBatch => Self::EndOfBatch,
        }
    }
}

/// The channel that an entry belongs to, and its place there.
#[derive(Debug, clap::Args)]
struct Channel {
    /// SoC whose format to encode: ascend950.
    #[arg(long)]
    soc: String,
    /// Producer index of the first block, 16 bits.
    #[arg(long, value_name = "N", value_parser = number::u16)]
    pi: u16,
    /// Blocks of the work ring: a power of two up to 65536.
    #[arg(long, value_name = "N", value_parser = number::u32, default_value_t = DEFAULT_DEPTH)]
    depth: u32,
    /// Transport path number, 24 bits.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    path: u32,
    /// Endpoint of the peer: 32 hexadecimal digits.
    #[arg(long, value_name = "HEX")]
    eid: String,
    /// Place of the operation in a batch.
    #[arg(long, value_enum, default_value = "alone")]
    order: Position,
}

/// Blocks of a work ring unless a channel asks for another number.
const DEFAULT_DEPTH: u32 = 32_768;

/// The bytes that an operation moves.
#[derive(Debug, clap::Args)]
struct Range {
    /// Address of the first byte here.
    #[arg(long, value_name = "ADDR", value_parser = number::u64)]
    local: u64,
    /// Id of the token of the memory here, 32 bits.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    local_token_id: u32,
    /// Address of the first byte at the peer.
    #[arg(long, value_name = "ADDR", value_parser = number::u64)]
    remote: u64,
    /// Id of the token of the peer's memory, 20 bits.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    remote_token_id: u32,
    /// Value of the token of the peer's memory.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    remote_token_value: u32,
    /// Bytes. One entry moves at most `--max`; 0 makes none.
    #[arg(long, value_name = "BYTES", value_parser = number::u64)]
    len: u64,
    /// Most bytes of an entry, up to 256 MiB.
    #[arg(long, value_name = "BYTES", value_parser = number::u32, default_value_t = MAX_SLICE.get())]
    max: u32,
    /// Reduce: sum, max or min of int8, int16, int32, uint8, uint16, uint32, fp16, fp32 or bf16.
    #[arg(long, value_name = "OP,TYPE")]
    reduce: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Notify {
    /// Address of the peer's notify.
    #[arg(long, value_name = "ADDR", value_parser = number::u64)]
    notify_addr: u64,
    /// Id of the token of the notify, 20 bits.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    notify_token_id: u32,
    /// Value of the token of the notify.
    #[arg(long, value_name = "N", value_parser = number::u32)]
    notify_token_value: u32,
}

#[derive(Debug, clap::Args)]
pub struct WriteArgs {
    #[command(flatten)]
    channel: Channel,
    #[command(flatten)]
    range: Range,
}

#[derive(Debug, clap::Args)]
pub struct WriteWithNotifyArgs {
    #[command(flatten)]
    channel: Channel,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    notify: Notify,
}

#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    #[command(flatten)]
    channel: Channel,
    #[command(flatten)]
    notify: Notify,
    /// Index of the notify in its channel. Index 1 is ordered like the last operation of a batch at every place.
    #[arg(long, value_name = "N", value_parser = number::u32, default_value_t = 0)]
    notify_index: u32,
}

/// The channel of an operation, checked.
#[derive(Clone, Copy)]
struct Place {
    peer: Peer,
    depth: WorkDepth,
    /// Producer index of the first block.
    index: u16,
}

/// The bytes that an operation moves, checked.
struct Moved {
    slices: Slices,
    remote: Remote,
    local_token_id: u32,
    reduce: Option<UbReduce>,
}

impl Channel {
    fn place(&self) -> Result<Place, Failure> {
        ascend950(&self.soc)?;
        let is_digits = self.eid.len() == 32 && self.eid.bytes().all(|byte| byte.is_ascii_hexdigit());
        let eid = u128::from_str_radix(&self.eid, 16).ok().filter(|_| is_digits);
        let eid = eid.ok_or_else(|| Failure::Usage(format!("--eid {:?} is not 32 hexadecimal digits", self.eid)))?;
        let path = PathNumber::new(self.path).map_err(|error| usage("--path", error))?;
        let depth = WorkDepth::new(self.depth).map_err(|error| usage("--depth", error))?;
        Ok(Place { peer: Peer { path, eid: Eid(eid.to_be_bytes()) }, depth, index: self.pi })
    }
}

impl Range {
    fn moved(&self, order: Position) -> Result<Moved, Failure> {
        check_range("--local", self.local, self.len)?;
        check_range("--remote", self.remote, self.len)?;
        let max = NonZeroU32::new(self.max).filter(|max| *max <= MAX_SLICE);
        let max = max.ok_or_else(|| Failure::Usage(format!("--max {} is not 1 to {MAX_SLICE}", self.max)))?;
        let (remote, local) = (DeviceAddr(self.remote), DeviceAddr(self.local));
        Ok(Moved {
            slices: Slices::new(remote, local, self.len, max, order.into()),
            remote: memory("--remote-token-id", self.remote, self.remote_token_id, self.remote_token_value)?,
            local_token_id: self.local_token_id,
            reduce: self.reduce.as_deref().map(reduce).transpose()?,
        })
    }
}

impl Moved {
    /// Both ends of a slice.
    fn ends(&self, slice: &Slice) -> (Remote, Local) {
        let local = Local { addr: slice.local, token_id: self.local_token_id };
        (Remote { addr: slice.remote, ..self.remote }, local)
    }
}

impl Notify {
    fn target(&self) -> Result<Remote, Failure> {
        memory("--notify-token-id", self.notify_addr, self.notify_token_id, self.notify_token_value)
    }
}

fn usage(option: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{option}: {error}"))
}

fn memory(option: &str, addr: u64, token_id: u32, token_value: u32) -> Result<Remote, Failure> {
    let token_id = TokenId::new(token_id).map_err(|error| usage(option, error))?;
    Ok(Remote { addr: DeviceAddr(addr), token_id, token_value })
}

/// # Errors
/// Another SoC: UB is a network of Ascend950.
fn ascend950(name: &str) -> Result<Soc, Failure> {
    match soc(name)? {
        Soc::Ascend950 => Ok(Soc::Ascend950),
        Soc::Ascend910B | Soc::Ascend910_93 => {
            Err(Failure::Unsupported(format!("{name} has no UB channels: must be ascend950")))
        }
    }
}

fn reduce(text: &str) -> Result<UbReduce, Failure> {
    let (op, data_type) = parse_reduce(text)?;
    UbReduce::new(op, data_type).ok_or_else(|| {
        Failure::Unsupported(format!(
            "the UB engine does not compute {text}: it computes sum, max and min of int8, int16, int32, uint8, uint16, \
             uint32, fp16, fp32 and bf16"
        ))
    })
}

/// An entry without its place in a ring.
enum Entry {
    Write(Write, Order),
    WriteWithNotify(WriteWithNotify, Order),
    Read(Read, Order),
    Record(NotifyRecord, Order),
}

impl Entry {
    fn build(self, index: u16, depth: WorkDepth) -> Vec<Block> {
        match self {
            Self::Write(write, order) => vec![write.build(index, depth, order)],
            Self::WriteWithNotify(write, order) => write.build(index, depth, order).into(),
            Self::Read(read, order) => vec![read.build(index, depth, order)],
            Self::Record(record, order) => vec![record.build(index, depth, order)],
        }
    }
}

/// The blocks of an operation, made while they are printed: a length of 64 bits has 2^36 of them.
struct Blocks<I> {
    entries: I,
    place: Place,
}

impl<I: Iterator<Item = Entry> + Clone> Blocks<I> {
    /// Slot and digits of each.
    fn iter(&self) -> impl Iterator<Item = (u32, Hex)> {
        let Place { depth, index, .. } = self.place;
        let mut next = index;
        let blocks = self.entries.clone().flat_map(move |entry| {
            let first = next;
            let blocks = entry.build(first, depth);
            next = next.wrapping_add(blocks.len() as u16);
            (0..).zip(blocks).map(move |(offset, block)| (depth.slot(first.wrapping_add(offset)), block))
        });
        blocks.map(|(slot, block)| (slot, Hex(Sqe(block.0))))
    }
}

#[derive(Serialize)]
struct BlockAnswer {
    /// Slot of the work ring.
    slot: u32,
    hex: String,
}

impl<I: Iterator<Item = Entry> + Clone> Serialize for Blocks<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|(slot, hex)| BlockAnswer { slot, hex: hex.to_string() }))
    }
}

#[derive(Serialize)]
struct EncodeAnswer<B> {
    #[serde(serialize_with = "soc_name")]
    soc: Soc,
    blocks: B,
}

fn answer(place: Place, entries: impl Iterator<Item = Entry> + Clone, output: Output) -> Result<(), Failure> {
    let answer = EncodeAnswer { soc: Soc::Ascend950, blocks: Blocks { entries, place } };
    output.answer(&answer, |out| answer.blocks.iter().try_for_each(|(_, hex)| writeln!(out, "{hex}")))
}

pub fn encode_write(args: &WriteArgs, output: Output) -> Result<(), Failure> {
    let (place, moved) = (args.channel.place()?, args.range.moved(args.channel.order)?);
    let entries = moved.slices.clone().map(|slice| {
        let (remote, local) = moved.ends(&slice);
        let write = Write::new(place.peer, remote, local, slice.len);
        Entry::Write(moved.reduce.map_or(write, |reduce| write.reduce(reduce)), slice.order)
    });
    answer(place, entries, output)
}

pub fn encode_write_with_notify(args: &WriteWithNotifyArgs, output: Output) -> Result<(), Failure> {
    let (place, moved) = (args.channel.place()?, args.range.moved(args.channel.order)?);
    let target = args.notify.target()?;
    let entries = moved.slices.clone().map(|slice| {
        let (remote, local) = moved.ends(&slice);
        if slice.is_last {
            let write = WriteWithNotify::new(place.peer, remote, local, slice.len, target);
            return Entry::WriteWithNotify(moved.reduce.map_or(write, |reduce| write.reduce(reduce)), slice.order);
        }
        let write = Write::new(place.peer, remote, local, slice.len);
        Entry::Write(moved.reduce.map_or(write, |reduce| write.reduce(reduce)), slice.order)
    });
    // With 0 bytes there is only the notify.
    let order = Sequence::from(args.channel.order).order(true, true);
    let record = (args.range.len == 0).then_some(target);
    let record = record.into_iter().map(|target| Entry::Record(NotifyRecord::new(place.peer, target), order));
    answer(place, entries.chain(record), output)
}

pub fn encode_read(args: &WriteArgs, output: Output) -> Result<(), Failure> {
    let (place, moved) = (args.channel.place()?, args.range.moved(args.channel.order)?);
    let entries = moved.slices.clone().map(|slice| {
        let (remote, local) = moved.ends(&slice);
        let read = Read::new(place.peer, remote, local, slice.len);
        Entry::Read(moved.reduce.map_or(read, |reduce| read.reduce(reduce)), slice.order)
    });
    answer(place, entries, output)
}

pub fn encode_record(args: &RecordArgs, output: Output) -> Result<(), Failure> {
    let place = args.channel.place()?;
    let order = Sequence::from(args.channel.order).record_order(args.notify_index);
    let target = args.notify.target()?;
    let record = Some(target).into_iter();
    answer(place, record.map(|target| Entry::Record(NotifyRecord::new(place.peer, target), order)), output)
}

pub fn encode_doorbell(args: &DoorbellArgs) -> Result<(Soc, Sqe), Failure> {
    let soc = ascend950(&args.soc)?;
    let jetty = Jetty::new(args.die, args.func, args.jetty).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok((soc, UbDoorbell::new(jetty, args.pi).build(args.task_id)))
}

#[derive(Debug, clap::Args)]
pub struct DecodeArgs {
    /// SoC whose format the blocks have: ascend950.
    #[arg(long)]
    soc: String,
    /// Producer index of the first block, 16 bits.
    #[arg(long, value_name = "N", value_parser = number::u16, default_value_t = 0)]
    pi: u16,
    /// Blocks of the work ring: a power of two up to 65536.
    #[arg(long, value_name = "N", value_parser = number::u32, default_value_t = DEFAULT_DEPTH)]
    depth: u32,
    /// The blocks that one doorbell starts, in the order of the ring: 128 hexadecimal digits each.
    #[arg(required = true)]
    blocks: Vec<String>,
}

#[derive(Serialize)]
struct EntryAnswer {
    /// What the entry does.
    kind: &'static str,
    /// Slot of its first block.
    slot: u32,
    /// Name to value, in the order of the bytes.
    #[serde(serialize_with = "by_name")]
    fields: Vec<Field>,
}

#[derive(Serialize)]
struct DecodeAnswer {
    #[serde(serialize_with = "soc_name")]
    soc: Soc,
    entries: Vec<EntryAnswer>,
    /// What is not documented about a doorbell that starts all of these entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// What the device refuses: wrong data, or features that are not supported.
fn refused_entry(error: &WalkError) -> Failure {
    let text = error.to_string();
    match error {
        WalkError::Entry { error: EntryError::Field(field), .. } => match refused(field) {
            Failure::Device(_) => Failure::Device(text),
            _ => Failure::Unsupported(text),
        },
        WalkError::Entry { error: EntryError::Opcode { .. } | EntryError::Reduce { .. }, .. } => {
            Failure::Unsupported(text)
        }
        WalkError::Entry { .. } | WalkError::Owner { .. } => Failure::Device(text),
        WalkError::Overrun { .. } => Failure::Usage(text),
    }
}

pub fn decode(args: &DecodeArgs, output: Output) -> Result<(), Failure> {
    let soc = ascend950(&args.soc)?;
    let depth = WorkDepth::new(args.depth).map_err(|error| usage("--depth", error))?;
    let blocks = args.blocks.iter().map(|hex| parse_hex(hex)).collect::<Result<Vec<_>, _>>()?;
    let count = u16::try_from(blocks.len());
    let count =
        count.map_err(|_| Failure::Usage(format!("{} blocks: a doorbell starts at most 65535", blocks.len())))?;
    let block = |index: u16| blocks.get(usize::from(index.wrapping_sub(args.pi)));
    let of_slot = |slot: u32| {
        let offset = slot.wrapping_sub(depth.slot(args.pi)) & (depth.blocks() - 1);
        blocks[offset as usize]
    };
    let started = ub::walk(depth.blocks(), args.pi, args.pi.wrapping_add(count), of_slot);
    let started = started.map_err(|error| refused_entry(&error))?;
    let entries = started.entries.iter().map(|(index, entry)| {
        let first = block(*index).expect("an entry that was decoded has a block");
        let fields = ub::fields(first, block(index.wrapping_add(1))).expect("an entry that was decoded has fields");
        EntryAnswer { kind: entry.name(), slot: depth.slot(*index), fields }
    });
    let warning = started.warning.map(|warning| warning.to_string());
    let answer = DecodeAnswer { soc, entries: entries.collect(), warning };
    output.answer(&answer, |out| {
        for entry in &answer.entries {
            writeln!(out, "{:<18} {}, slot {}", "entry", entry.kind, entry.slot)?;
            write_fields(out, &entry.fields)?;
        }
        answer.warning.iter().try_for_each(|warning| writeln!(out, "{:<18} {warning}", "warning"))
    })
}
