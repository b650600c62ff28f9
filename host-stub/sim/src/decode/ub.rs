//! Decoder of the work entries of a UB channel, by byte offset from a table of its own.
//!
//! Source: docs/spec.md, "UB work entries". As for descriptors, the builders in `hcomm_aicpu::spec` are not used here.

mod walk;

use crate::message::debug_is_the_message;

pub use walk::{Started, WalkError, Warning, walk};

use super::layout::Rule::{self, Any, Only, Reserved};
use super::layout::{Layout, Spec, extract, find, spec, word64};
use super::task::{DecodeError, Field};

/// Bytes of a block. An entry has one or two.
pub const BLOCK_LEN: usize = 64;
/// Most bytes that one entry moves.
pub const MAX_LEN: u32 = 256 << 20;

/// Bytes 0..48, with what the form has in three of their fields.
const fn head(inline: u64, inline_len: u64, reduces: Rule) -> [Spec; 28] {
    [
        spec("block_index", 0, 0, 16, Only(0)),
        spec("place_order", 2, 0, 2, Any),
        spec("comp_order", 2, 2, 1, Any),
        spec("fence", 2, 3, 1, Any),
        spec("solicited_event", 2, 4, 1, Only(1)),
        spec("cqe", 2, 5, 1, Any),
        spec("inline", 2, 6, 1, Only(inline)),
        spec("udf_valid", 2, 7, 1, reduces),
        spec("res1", 3, 0, 4, Reserved),
        spec("token_enable", 3, 4, 1, Only(1)),
        spec("rmt_jetty_type", 3, 5, 2, Only(1)),
        spec("owner", 3, 7, 1, Any),
        spec("target_hint", 4, 0, 8, Only(0)),
        spec("opcode", 5, 0, 8, Any),
        spec("res2", 6, 0, 6, Reserved),
        spec("inline_len", 6, 6, 10, Only(inline_len)),
        spec("path", 8, 0, 24, Any),
        spec("sge_num", 11, 0, 8, Only(1)),
        spec("rmt_token_id", 12, 0, 20, Any),
        spec("res3", 14, 4, 12, Reserved),
        spec("rmt_eid_low", 16, 0, 64, Any),
        spec("rmt_eid_high", 24, 0, 64, Any),
        spec("rmt_token_value", 32, 0, 32, Any),
        spec("udf_type", 36, 0, 8, Only(0)),
        spec("reduce_type", 37, 0, 4, Any),
        spec("reduce_op", 37, 4, 4, Any),
        spec("res4", 38, 0, 16, Reserved),
        spec("rmt_addr", 40, 0, 64, Any),
    ]
}

/// Of a write and a read.
const HEAD: &[Spec] = &head(0, 0, Any);
/// Of a record.
const RECORD_HEAD: &[Spec] = &head(1, 4, Only(0));

/// Bytes 48..64 of a write and a read.
const TRANSFER: &[Spec] =
    &[spec("length", 48, 0, 32, Any), spec("local_token_id", 52, 0, 32, Any), spec("local_addr", 56, 0, 64, Any)];

/// Bytes 48..64 of a record: the data, which is always 1.
const RECORD: &[Spec] =
    &[spec("data", 48, 0, 32, Only(1)), spec("res5", 52, 0, 32, Reserved), spec("res6", 56, 0, 64, Reserved)];

/// Bytes 48..64 of a write with notify.
const NOTIFY: &[Spec] = &[
    spec("notify_token_id", 48, 0, 20, Any),
    spec("res5", 50, 4, 12, Reserved),
    spec("notify_token_value", 52, 0, 32, Any),
    spec("notify_addr", 56, 0, 64, Any),
];

/// The second block of a write with notify. Its second half is not defined, and not looked at.
const SECOND: &[Spec] = &[
    spec("notify_data", 0, 0, 64, Only(1)),
    spec("res6", 8, 0, 64, Reserved),
    spec("length", 16, 0, 32, Any),
    spec("local_token_id", 20, 0, 32, Any),
    spec("local_addr", 24, 0, 64, Any),
    spec("undefined0", 32, 0, 64, Any),
    spec("undefined1", 40, 0, 64, Any),
    spec("undefined2", 48, 0, 64, Any),
    spec("undefined3", 56, 0, 64, Any),
];

static TRANSFER_LAYOUT: Layout = Layout::new(HEAD, TRANSFER);
static RECORD_LAYOUT: Layout = Layout::new(RECORD_HEAD, RECORD);
static NOTIFY_LAYOUT: Layout = Layout::new(HEAD, NOTIFY);
static SECOND_LAYOUT: Layout = Layout::new(&[], SECOND);

const OPCODE_WRITE: u8 = 3;
const OPCODE_WRITE_WITH_NOTIFY: u8 = 5;
const OPCODE_READ: u8 = 6;

const PLACE: &Spec = find(HEAD, "place_order");
const COMPLETION: &Spec = find(HEAD, "comp_order");
const FENCE: &Spec = find(HEAD, "fence");
const CQE: &Spec = find(HEAD, "cqe");
const INLINE: &Spec = find(HEAD, "inline");
const REDUCES: &Spec = find(HEAD, "udf_valid");
const OWNER: &Spec = find(HEAD, "owner");
const PATH: &Spec = find(HEAD, "path");
const REMOTE_TOKEN_ID: &Spec = find(HEAD, "rmt_token_id");
const REMOTE_TOKEN_VALUE: &Spec = find(HEAD, "rmt_token_value");
const REDUCE_TYPE: &Spec = find(HEAD, "reduce_type");
const REDUCE_OP: &Spec = find(HEAD, "reduce_op");
const NOTIFY_TOKEN_ID: &Spec = find(NOTIFY, "notify_token_id");
const NOTIFY_TOKEN_VALUE: &Spec = find(NOTIFY, "notify_token_value");

/// Memory of the peer, in its own addresses, and what gives the right to use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// First byte.
    pub addr: u64,
    /// Id of the token.
    pub token_id: u32,
    /// Value of the token.
    pub token_value: u32,
}

/// Memory of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// First byte.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// Id of the token.
    pub token_id: u32,
}

/// Place of an entry among those of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Held against nothing.
    None,
    /// Held only against later strong entries.
    Relaxed,
    /// Passes no relaxed entry before it.
    Strong,
}

/// The order bits of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its place.
    pub place: Place,
    /// Its completion comes in order.
    pub completion: bool,
    /// It waits for the answers of all earlier reads.
    pub fence: bool,
    /// It reports its completion.
    pub cqe: bool,
}

/// Elements of a reduce, by their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Element {
    Int8,
    Int16,
    Int32,
    Uint8,
    Uint16,
    Uint32,
    Fp16,
    Fp32,
    Bf16,
}

/// Index: the type code of an entry.
const ELEMENTS: [Element; 9] = [
    Element::Int8,
    Element::Int16,
    Element::Int32,
    Element::Uint8,
    Element::Uint16,
    Element::Uint32,
    Element::Fp16,
    Element::Fp32,
    Element::Bf16,
];

/// Operator of a reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operator {
    Max,
    Min,
    Sum,
}

/// How an entry reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// What it reduces.
    pub element: Element,
    /// By what.
    pub op: Operator,
}

/// What an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Writes to the peer, or reduces into its memory.
    Write {
        /// The bytes.
        local: Local,
        /// `None`: a write.
        reduce: Option<Reduce>,
        /// Notify of the peer that is set after that.
        notify: Option<Remote>,
    },
    /// Reads from the peer, or reduces into the sender's memory.
    Read {
        /// Where the bytes go.
        local: Local,
        /// `None`: a read.
        reduce: Option<Reduce>,
    },
    /// Sets the notify of the peer that [`Entry::remote`] is.
    Record,
}

/// A decoded entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number of the transport path to the peer.
    pub path: u32,
    /// The peer, first byte first.
    pub eid: [u8; 16],
    /// The peer's memory.
    pub remote: Remote,
    /// Its order bits.
    pub order: Order,
    /// Its owner bit.
    pub owner: bool,
    /// What it does.
    pub work: Work,
}

impl Entry {
    /// Name in messages.
    pub fn name(&self) -> &'static str {
        match self.work {
            Work::Write { reduce: None, notify: None, .. } => "write",
            Work::Write { reduce: Some(_), notify: None, .. } => "write reduce",
            Work::Write { reduce: None, notify: Some(_), .. } => "write with notify",
            Work::Write { reduce: Some(_), notify: Some(_), .. } => "write reduce with notify",
            Work::Read { reduce: None, .. } => "read",
            Work::Read { reduce: Some(_), .. } => "read reduce",
            Work::Record => "notify record",
        }
    }
}

/// Why an entry is not carried out.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// A field by itself.
    #[error(transparent)]
    Field(#[from] DecodeError),
    /// No simulated kind.
    #[error("opcode {value} in byte 5 is not supported: write (3), write with notify (5) and read (6) are")]
    Opcode {
        /// Its number.
        value: u8,
    },
    /// A place that means nothing.
    #[error("place_order in byte 2 is 3: 0 (none), 1 (relaxed) and 2 (strong) have a meaning")]
    Place,
    /// No reduce that the engine computes.
    #[error("type code {data_type} and operator code {op} in byte 37 are no reduce that the engine computes")]
    Reduce {
        /// Type code.
        data_type: u8,
        /// Operator code.
        op: u8,
    },
    /// More than one entry moves.
    #[error("length {len} is above {MAX_LEN}, the most that one entry moves")]
    TooLong {
        /// Bytes.
        len: u32,
    },
    /// The second block is not there.
    #[error("entry of two blocks ends after its first one")]
    SecondBlock,
}
debug_is_the_message!(EntryError);

/// How many blocks the entry that begins with `first` has.
pub fn block_count(first: &[u8; BLOCK_LEN]) -> usize {
    if first[5] == OPCODE_WRITE_WITH_NOTIFY { 2 } else { 1 }
}

fn layout(first: &[u8; BLOCK_LEN]) -> Result<&'static Layout, EntryError> {
    match first[5] {
        OPCODE_WRITE if extract(first, INLINE) == 1 => Ok(&RECORD_LAYOUT),
        OPCODE_WRITE | OPCODE_READ => Ok(&TRANSFER_LAYOUT),
        OPCODE_WRITE_WITH_NOTIFY => Ok(&NOTIFY_LAYOUT),
        value => Err(EntryError::Opcode { value }),
    }
}

/// Every field of an entry, in the order of its bytes, whatever it holds. `second` is looked at if the entry has it.
///
/// # Errors
/// [`EntryError::Opcode`]: there is no table for the opcode. [`EntryError::SecondBlock`].
pub fn fields(first: &[u8; BLOCK_LEN], second: Option<&[u8; BLOCK_LEN]>) -> Result<Vec<Field>, EntryError> {
    let mut fields = layout(first)?.list(first);
    if block_count(first) == 2 {
        let second = SECOND_LAYOUT.list(second.ok_or(EntryError::SecondBlock)?);
        fields.extend(second.into_iter().map(|field| Field { byte: field.byte + BLOCK_LEN, ..field }));
    }
    Ok(fields)
}

/// The entry that begins with `first`. `second` is looked at if the entry has it.
///
/// # Errors
/// [`EntryError`]: the first field that is not supported; each by itself before several together.
pub fn decode(first: &[u8; BLOCK_LEN], second: Option<&[u8; BLOCK_LEN]>) -> Result<Entry, EntryError> {
    layout(first)?.check(first)?;
    let field = |spec| extract(first, spec);
    let order = Order {
        place: match field(PLACE) {
            0 => Place::None,
            1 => Place::Relaxed,
            2 => Place::Strong,
            _ => return Err(EntryError::Place),
        },
        completion: field(COMPLETION) == 1,
        fence: field(FENCE) == 1,
        cqe: field(CQE) == 1,
    };
    let reduce = reduce(first)?;
    let work = match first[5] {
        OPCODE_READ => Work::Read { local: local(first, 48)?, reduce },
        OPCODE_WRITE_WITH_NOTIFY => {
            let second = second.ok_or(EntryError::SecondBlock)?;
            SECOND_LAYOUT.check(second).map_err(in_second_block)?;
            let token_value = field(NOTIFY_TOKEN_VALUE) as u32;
            let notify = Remote { addr: word64(first, 56), token_id: field(NOTIFY_TOKEN_ID) as u32, token_value };
            Work::Write { local: local(second, 16)?, reduce, notify: Some(notify) }
        }
        _ if field(INLINE) == 1 => Work::Record,
        _ => Work::Write { local: local(first, 48)?, reduce, notify: None },
    };
    let (token_id, token_value) = (field(REMOTE_TOKEN_ID) as u32, field(REMOTE_TOKEN_VALUE) as u32);
    let eid = u128::from(word64(first, 24)) << 64 | u128::from(word64(first, 16));
    Ok(Entry {
        path: field(PATH) as u32,
        eid: eid.to_be_bytes(),
        remote: Remote { addr: word64(first, 40), token_id, token_value },
        order,
        owner: field(OWNER) == 1,
        work,
    })
}

/// The same in an error as in a list of fields: bytes count from the first block.
fn in_second_block(error: DecodeError) -> DecodeError {
    match error {
        DecodeError::Reserved { name, byte, value } => DecodeError::Reserved { name, byte: byte + BLOCK_LEN, value },
        DecodeError::Unsupported { name, byte, value, supported } => {
            DecodeError::Unsupported { name, byte: byte + BLOCK_LEN, value, supported }
        }
        other => other,
    }
}

/// What word 9 says: nothing may be in it unless the entry reduces.
fn reduce(first: &[u8; BLOCK_LEN]) -> Result<Option<Reduce>, EntryError> {
    let (data_type, op) = (extract(first, REDUCE_TYPE) as u8, extract(first, REDUCE_OP) as u8);
    if extract(first, REDUCES) == 0 {
        let unused = [(REDUCE_TYPE, data_type), (REDUCE_OP, op)];
        return match unused.into_iter().find(|(_, code)| *code != 0) {
            None => Ok(None),
            Some((Spec { name, byte, .. }, code)) => {
                Err(DecodeError::Unsupported { name, byte: *byte, value: code.into(), supported: 0 }.into())
            }
        };
    }
    let wrong = EntryError::Reduce { data_type, op };
    let element = *ELEMENTS.get(usize::from(data_type)).ok_or(wrong)?;
    let op = match op {
        8 => Operator::Max,
        9 => Operator::Min,
        10 => Operator::Sum,
        _ => return Err(wrong),
    };
    Ok(Some(Reduce { element, op }))
}

/// Length, token id and address from `byte` on.
fn local(block: &[u8; BLOCK_LEN], byte: usize) -> Result<Local, EntryError> {
    let word = word64(block, byte);
    let (len, token_id) = (word as u32, (word >> 32) as u32);
    if len > MAX_LEN {
        return Err(EntryError::TooLong { len });
    }
    Ok(Local { addr: word64(block, byte + 8), len, token_id })
}

#[cfg(test)]
mod tests;
