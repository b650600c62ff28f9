//! Decoder of Ascend950 descriptors, by byte offset from a table of its own.
//!
//! Source: docs/spec.md, "Ascend950 descriptors". The builders in `hcomm_aicpu::spec` are not used here, so that one
//! mistake can't be made twice alike.
#![forbid(unsafe_code)]

/// Bytes of a descriptor.
pub const SQE_LEN: usize = 64;

/// Where a field is, and what it may hold.
struct Spec {
    name: &'static str,
    byte: usize,
    /// First bit, counted from bit 0 of `byte`.
    bit: u32,
    width: u32,
    rule: Rule,
}

/// What the simulated device accepts in a field.
#[derive(Clone, Copy)]
enum Rule {
    /// Anything.
    Any,
    /// Reserved: zero.
    Reserved,
    /// A feature of the hardware that is not simulated: only this value.
    Only(u64),
}

use Rule::{Any, Only, Reserved};

const fn spec(name: &'static str, byte: usize, bit: u32, width: u32, rule: Rule) -> Spec {
    Spec { name, byte, bit, width, rule }
}

/// Bytes 0..8, the same for every type.
const HEADER: &[Spec] = &[
    spec("type", 0, 0, 6, Any),
    spec("lock", 0, 6, 1, Only(0)),
    spec("unlock", 0, 7, 1, Only(0)),
    spec("ie", 1, 0, 1, Only(0)),
    spec("pre_p", 1, 1, 1, Only(0)),
    spec("post_p", 1, 2, 1, Only(0)),
    spec("wr_cqe", 1, 3, 1, Only(0)),
    spec("ptr_mode", 1, 4, 1, Only(0)),
    spec("rtt_mode", 1, 5, 1, Only(0)),
    spec("head_update", 1, 6, 1, Only(0)),
    spec("reserved", 1, 7, 1, Reserved),
    spec("num_blocks", 2, 0, 16, Only(0)),
    // One 32-bit task id lies across the fields that the hardware names stream id and task id.
    spec("rt_stream_id", 4, 0, 16, Any),
    spec("task_id", 6, 0, 16, Any),
];

/// Bytes 8..64 of type 11.
const SDMA: &[Spec] = &[
    spec("res1", 8, 0, 32, Reserved),
    spec("res2", 12, 0, 16, Reserved),
    spec("kernel_credit", 14, 0, 8, Any),
    spec("res3", 15, 0, 8, Reserved),
    spec("opcode", 16, 0, 8, Any),
    spec("sssv", 17, 0, 1, Only(1)),
    spec("dssv", 17, 1, 1, Only(1)),
    spec("sns", 17, 2, 1, Only(1)),
    spec("dns", 17, 3, 1, Only(1)),
    spec("sro", 17, 4, 1, Only(0)),
    spec("dro", 17, 5, 1, Only(0)),
    spec("stride", 17, 6, 2, Only(0)),
    spec("ie2", 18, 0, 1, Only(0)),
    spec("comp_en", 18, 1, 1, Only(0)),
    spec("res4", 18, 2, 14, Reserved),
    spec("sqe_id", 20, 0, 16, Only(0)),
    spec("part_id", 22, 0, 8, Only(0)),
    spec("mpamns", 23, 0, 1, Only(0)),
    spec("pmg", 23, 1, 2, Only(0)),
    spec("qos", 23, 3, 4, Only(0)),
    spec("d2d_offset_flag", 23, 7, 1, Only(0)),
    spec("src_stream_id", 24, 0, 16, Only(0)),
    spec("src_sub_stream_id", 26, 0, 16, Only(0)),
    spec("dst_stream_id", 28, 0, 16, Only(0)),
    spec("dst_sub_stream_id", 30, 0, 16, Only(0)),
    spec("src_addr", 32, 0, 64, Any),
    spec("dst_addr", 40, 0, 64, Any),
    spec("length_move", 48, 0, 32, Any),
    spec("src_offset_low", 52, 0, 32, Only(0)),
    spec("dst_offset_low", 56, 0, 32, Only(0)),
    spec("src_offset_high", 60, 0, 16, Only(0)),
    spec("dst_offset_high", 62, 0, 16, Only(0)),
];

const TYPE_SDMA: u8 = 11;

/// Names of the types, by number. Only SDMA is carried out.
const TYPES: [&str; 22] = [
    "aic",
    "aiv",
    "fusion",
    "place_holder",
    "aicpu_h",
    "aicpu_d",
    "notify_record",
    "notify_wait",
    "write_value",
    "ubdma",
    "asyncdma",
    "sdma",
    "vpc",
    "jpege",
    "jpegd",
    "cmo",
    "",
    "",
    "",
    "",
    "cond",
    "end",
];

/// One field of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Byte that its first bit is in.
    pub byte: usize,
    /// What it holds.
    pub value: u64,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Copies `len` bytes from `src` to `dst`.
    SdmaCopy,
    /// Reduces `len` bytes of `src` into `dst`; the opcode names type and operator.
    SdmaReduce,
}

impl TaskKind {
    /// Name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::SdmaCopy => "sdma copy",
            Self::SdmaReduce => "sdma reduce",
        }
    }
}

/// A decoded task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// What it does.
    pub kind: TaskKind,
    /// Its 32-bit id.
    pub task_id: u32,
    /// First byte read.
    pub src: u64,
    /// First byte written.
    pub dst: u64,
    /// Bytes.
    pub len: u32,
    /// SDMA opcode: 0 = copy.
    pub opcode: u8,
}

/// Why a descriptor is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No simulated type.
    #[error("descriptor type {value} ({}) in byte 0 is not supported", type_name(*value))]
    UnknownType {
        /// Its number.
        value: u8,
    },
    /// A reserved field is not zero.
    #[error("reserved field {name} in byte {byte} is {value:#x}, not 0")]
    Reserved {
        /// Field.
        name: &'static str,
        /// Byte that it starts in.
        byte: usize,
        /// What it holds.
        value: u64,
    },
    /// A feature that is not simulated.
    #[error("field {name} in byte {byte} is {value:#x}: only {supported} is supported")]
    Unsupported {
        /// Field.
        name: &'static str,
        /// Byte that it starts in.
        byte: usize,
        /// What it holds.
        value: u64,
        /// What it may hold.
        supported: u64,
    },
}

/// Name of a descriptor type, `"unknown"` where there is none.
pub fn type_name(number: u8) -> &'static str {
    match TYPES.get(number as usize) {
        Some(name) if !name.is_empty() => name,
        _ => "unknown",
    }
}

/// Every field of a descriptor, in the order of its bytes, whatever it holds.
///
/// # Errors
/// [`DecodeError::UnknownType`]: there is no table for the type.
pub fn fields(sqe: &[u8; SQE_LEN]) -> Result<Vec<Field>, DecodeError> {
    let body = body(sqe)?;
    let field = |spec: &Spec| Field { name: spec.name, byte: spec.byte, value: extract(sqe, spec) };
    Ok(HEADER.iter().chain(body).map(field).collect())
}

/// The task of a descriptor.
///
/// # Errors
/// [`DecodeError`]: the first field that is not supported, header first.
pub fn decode(sqe: &[u8; SQE_LEN]) -> Result<Task, DecodeError> {
    for spec in to_check(sqe, body(sqe)?) {
        let value = extract(sqe, spec);
        match spec.rule {
            Reserved if value != 0 => {
                return Err(DecodeError::Reserved { name: spec.name, byte: spec.byte, value });
            }
            Only(supported) if value != supported => {
                return Err(DecodeError::Unsupported { name: spec.name, byte: spec.byte, value, supported });
            }
            _ => {}
        }
    }
    let opcode = sqe[16];
    Ok(Task {
        kind: if opcode == 0 { TaskKind::SdmaCopy } else { TaskKind::SdmaReduce },
        task_id: task_id(sqe),
        src: word64(sqe, 32),
        dst: word64(sqe, 40),
        len: word64(sqe, 48) as u32,
        opcode,
    })
}

/// Task id of a descriptor of any type.
pub fn task_id(sqe: &[u8; SQE_LEN]) -> u32 {
    word64(sqe, 0).wrapping_shr(32) as u32
}

/// The bits of a descriptor that its table leaves no choice about, and what they are.
struct Fixed {
    mask: [u64; SQE_LEN / 8],
    bits: [u64; SQE_LEN / 8],
}

impl Fixed {
    const fn of(tables: &[&[Spec]]) -> Self {
        let mut fixed = Self { mask: [0; SQE_LEN / 8], bits: [0; SQE_LEN / 8] };
        let mut table = 0;
        while table < tables.len() {
            let mut index = 0;
            while index < tables[table].len() {
                let spec = &tables[table][index];
                let shift = (spec.byte % 8) as u32 * 8 + spec.bit;
                let mask = (u64::MAX >> (64 - spec.width)) << shift;
                match spec.rule {
                    Any => {}
                    Reserved => fixed.mask[spec.byte / 8] |= mask,
                    Only(value) => {
                        fixed.mask[spec.byte / 8] |= mask;
                        fixed.bits[spec.byte / 8] |= value << shift;
                    }
                }
                index += 1;
            }
            table += 1;
        }
        fixed
    }

    fn matches(&self, sqe: &[u8; SQE_LEN]) -> bool {
        let wrong = |index: usize| (word64(sqe, 8 * index) & self.mask[index]) ^ self.bits[index];
        (0..SQE_LEN / 8).fold(0, |all, index| all | wrong(index)) == 0
    }
}

const SDMA_FIXED: Fixed = Fixed::of(&[HEADER, SDMA]);

/// The fields whose rules must be looked at: none of a copy in which every fixed bit is right, which eight compares tell.
fn to_check(sqe: &[u8; SQE_LEN], body: &'static [Spec]) -> impl Iterator<Item = &'static Spec> {
    let right = sqe[0] & 0x3f == TYPE_SDMA && SDMA_FIXED.matches(sqe);
    let tables: [&[Spec]; 2] = if right { [&[], &[]] } else { [HEADER, body] };
    tables.into_iter().flatten()
}

fn body(sqe: &[u8; SQE_LEN]) -> Result<&'static [Spec], DecodeError> {
    match sqe[0] & 0x3f {
        TYPE_SDMA => Ok(SDMA),
        value => Err(DecodeError::UnknownType { value }),
    }
}

/// Value of a field, which never crosses an aligned 64-bit word.
fn extract(sqe: &[u8; SQE_LEN], spec: &Spec) -> u64 {
    let shift = (spec.byte % 8) as u32 * 8 + spec.bit;
    let mask = u64::MAX >> (64 - spec.width);
    (word64(sqe, spec.byte / 8 * 8) >> shift) & mask
}

fn word64(sqe: &[u8; SQE_LEN], byte: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&sqe[byte..byte + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden descriptor: task 0x10005, 1 MiB from 0x12c1_8000_0000 to 0x12c0_c000_0000.
    const COPY: &str = "0b00000005000100000000000000fe00000f000000000000000000000000000000000080c1120000000000c0c0120000\
                        00001000000000000000000000000000";

    fn bytes(hex: &str) -> [u8; SQE_LEN] {
        std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
    }

    #[test]
    fn golden_copy_decodes() {
        let expected = Task {
            kind: TaskKind::SdmaCopy,
            task_id: 65541,
            src: 0x12c1_8000_0000,
            dst: 0x12c0_c000_0000,
            len: 1 << 20,
            opcode: 0,
        };
        assert_eq!(decode(&bytes(COPY)), Ok(expected));
    }

    #[test]
    fn fields_cover_every_bit_once() {
        let mut seen = [0u8; SQE_LEN];
        for spec in HEADER.iter().chain(SDMA) {
            for bit in spec.bit..spec.bit + spec.width {
                let (byte, mask) = (spec.byte + bit as usize / 8, 1 << (bit % 8));
                assert_eq!(seen[byte] & mask, 0, "{} overlaps", spec.name);
                seen[byte] |= mask;
            }
        }
        assert_eq!(seen, [0xff; SQE_LEN]);
    }

    #[test]
    fn every_bit_that_must_not_change_is_refused_by_name() {
        for spec in HEADER.iter().chain(SDMA).filter(|spec| !matches!(spec.rule, Any)) {
            for bit in spec.bit..spec.bit + spec.width {
                let mut sqe = bytes(COPY);
                sqe[spec.byte + bit as usize / 8] ^= 1 << (bit % 8);
                let value = extract(&sqe, spec);
                let expected = match spec.rule {
                    Only(supported) => DecodeError::Unsupported { name: spec.name, byte: spec.byte, value, supported },
                    _ => DecodeError::Reserved { name: spec.name, byte: spec.byte, value },
                };
                assert_eq!(decode(&sqe), Err(expected));
            }
        }
    }

    #[test]
    fn zeroed_descriptor_is_not_a_task() {
        assert_eq!(decode(&[0; SQE_LEN]), Err(DecodeError::UnknownType { value: 0 }));
        assert_eq!(
            DecodeError::UnknownType { value: 7 }.to_string(),
            "descriptor type 7 (notify_wait) in byte 0 is not supported"
        );
    }

    #[test]
    fn fields_are_listed_even_if_not_supported() {
        let mut sqe = bytes(COPY);
        sqe[8] = 9;
        sqe[16] = 0x71;
        let fields = fields(&sqe).unwrap();
        assert!(fields.contains(&Field { name: "res1", byte: 8, value: 9 }));
        assert!(fields.contains(&Field { name: "opcode", byte: 16, value: 0x71 }));
        assert!(fields.windows(2).all(|pair| pair[0].byte <= pair[1].byte));
    }
}
