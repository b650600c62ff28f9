//! Decoder of Ascend910B and Ascend910_93 descriptors, by byte offset from a table of its own.
//!
//! Source: docs/spec.md, "Ascend910 descriptors". As for Ascend950, the builders in `hcomm_aicpu::spec` are not used here.

use super::decode::layout::Rule::{self, Any, Only, Reserved};
use super::decode::layout::{Layout, Spec, extract, find, spec, word64, write_value};
use super::decode::task::{Action, DecodeError, Effect, Field, SQE_LEN, Task, Until, sdma_opcode};

/// Bytes 0..8, with what the type has in three of their fields.
const fn header(pre_p: u64, block_dim: u64, task_id: Rule) -> [Spec; 11] {
    [
        spec("type", 0, 0, 6, Any),
        spec("l1_lock", 0, 6, 1, Only(0)),
        spec("l1_unlock", 0, 7, 1, Only(0)),
        spec("ie", 1, 0, 2, Only(0)),
        spec("pre_p", 1, 2, 2, Only(pre_p)),
        spec("post_p", 1, 4, 2, Only(0)),
        spec("wr_cqe", 1, 6, 1, Only(0)),
        spec("reserved", 1, 7, 1, Reserved),
        spec("block_dim", 2, 0, 16, Only(block_dim)),
        spec("rt_stream_id", 4, 0, 16, Any),
        spec("task_id", 6, 0, 16, task_id),
    ]
}

const HEADER: &[Spec] = &header(0, 0, Any);
/// Of a place holder that marks a wrap of task ids.
const FLIP_HEADER: &[Spec] = &header(1, 98, Only(0));

/// Bytes 8..64 of type 11.
const SDMA: &[Spec] = &[
    spec("res1", 8, 0, 32, Reserved),
    spec("res2", 12, 0, 16, Reserved),
    spec("kernel_credit", 14, 0, 8, Any),
    spec("ptr_mode", 15, 0, 1, Only(0)),
    spec("res3", 15, 1, 7, Reserved),
    spec("opcode", 16, 0, 8, Any),
    spec("ie2", 17, 0, 1, Only(0)),
    spec("sssv", 17, 1, 1, Only(1)),
    spec("dssv", 17, 2, 1, Only(1)),
    spec("sns", 17, 3, 1, Only(1)),
    spec("dns", 17, 4, 1, Only(1)),
    spec("qos", 17, 5, 4, Any),
    spec("sro", 18, 1, 1, Only(0)),
    spec("dro", 18, 2, 1, Only(0)),
    spec("part_id", 18, 3, 8, Only(0)),
    spec("mpam", 19, 3, 5, Only(0)),
    spec("src_stream_id", 20, 0, 16, Only(0)),
    spec("src_sub_stream_id", 22, 0, 16, Only(0)),
    spec("dst_stream_id", 24, 0, 16, Only(0)),
    spec("dst_sub_stream_id", 26, 0, 16, Only(0)),
    spec("length", 28, 0, 32, Any),
    spec("src_addr", 32, 0, 64, Any),
    spec("dst_addr", 40, 0, 64, Any),
    spec("link_type", 48, 0, 8, Any),
    spec("res4", 49, 0, 24, Reserved),
    spec("res5", 52, 0, 32, Reserved),
    spec("res6", 56, 0, 64, Reserved),
];

/// Bytes 8..64 of types 6 and 7, with the credit that the type needs.
const fn notify(kernel_credit: u64, timeout: Rule) -> [Spec; 13] {
    [
        spec("notify_id", 8, 0, 13, Any),
        spec("res1", 9, 5, 19, Reserved),
        spec("res2", 12, 0, 16, Reserved),
        spec("kernel_credit", 14, 0, 8, Only(kernel_credit)),
        spec("res3", 15, 0, 8, Reserved),
        spec("timeout", 16, 0, 32, timeout),
        spec("res4", 20, 0, 32, Reserved),
        spec("res5", 24, 0, 64, Reserved),
        spec("res6", 32, 0, 64, Reserved),
        spec("res7", 40, 0, 64, Reserved),
        spec("res8", 48, 0, 64, Reserved),
        spec("res9", 56, 0, 32, Reserved),
        spec("res10", 60, 0, 32, Reserved),
    ]
}

const RECORD: &[Spec] = &notify(254, Only(0));
const WAIT: &[Spec] = &notify(255, Any);

/// Bytes 8..64 of type 8, in the one form that the AI CPU queues: a record of another chip's notify.
const WRITE_VALUE: &[Spec] = &write_value(Only(254), 0, 3, Only(1));

/// Bytes 8..64 of type 3.
const FLIP: &[Spec] = &[
    spec("res1", 8, 0, 32, Reserved),
    spec("res2", 12, 0, 16, Reserved),
    spec("kernel_credit", 14, 0, 8, Only(254)),
    spec("res3", 15, 0, 8, Reserved),
    spec("flip_count", 16, 0, 16, Any),
    spec("res4", 18, 0, 16, Reserved),
    spec("res5", 20, 0, 32, Reserved),
    spec("res6", 24, 0, 64, Reserved),
    spec("res7", 32, 0, 64, Reserved),
    spec("res8", 40, 0, 64, Reserved),
    spec("res9", 48, 0, 64, Reserved),
    spec("res10", 56, 0, 64, Reserved),
];

static SDMA_LAYOUT: Layout = Layout::new(HEADER, SDMA);
static RECORD_LAYOUT: Layout = Layout::new(HEADER, RECORD);
static WAIT_LAYOUT: Layout = Layout::new(HEADER, WAIT);
static WRITE_VALUE_LAYOUT: Layout = Layout::new(HEADER, WRITE_VALUE);
static FLIP_LAYOUT: Layout = Layout::new(FLIP_HEADER, FLIP);

const LENGTH: &Spec = find(SDMA, "length");
const NOTIFY_ID: &Spec = find(RECORD, "notify_id");
const TIMEOUT: &Spec = find(WAIT, "timeout");
const ADDR_LOW: &Spec = find(WRITE_VALUE, "addr_low");
const ADDR_HIGH: &Spec = find(WRITE_VALUE, "addr_high");

const TYPE_PLACE_HOLDER: u8 = 3;
const TYPE_NOTIFY_RECORD: u8 = 6;
const TYPE_NOTIFY_WAIT: u8 = 7;
const TYPE_WRITE_VALUE: u8 = 8;
const TYPE_SDMA: u8 = 11;

/// Every field of a descriptor, in the order of its bytes, whatever it holds.
///
/// # Errors
/// [`DecodeError::UnknownType`]: there is no table for the type.
pub fn fields(sqe: &[u8; SQE_LEN]) -> Result<Vec<Field>, DecodeError> {
    layout(sqe).map(|layout| layout.list(sqe))
}

/// The task of a descriptor. Its id is the 16-bit one of its stream.
///
/// # Errors
/// [`DecodeError`]: the first field that is not supported, header first.
pub fn decode(sqe: &[u8; SQE_LEN]) -> Result<Task, DecodeError> {
    layout(sqe)?.check(sqe)?;
    let id = || extract(sqe, NOTIFY_ID) as u32;
    let action = match sqe[0] & 0x3f {
        TYPE_PLACE_HOLDER => Action::PlaceHolder,
        TYPE_NOTIFY_RECORD => Action::Record { id: id(), effect: Effect::Set },
        TYPE_NOTIFY_WAIT => Action::Wait { id: id(), until: Until::Set, timeout_s: extract(sqe, TIMEOUT) as u32 },
        TYPE_WRITE_VALUE => Action::RemoteRecord { addr: extract(sqe, ADDR_LOW) | extract(sqe, ADDR_HIGH) << 32 },
        _ => {
            let opcode = sdma_opcode(sqe)?;
            let len = extract(sqe, LENGTH) as u32;
            Action::Sdma { src: word64(sqe, 32), dst: word64(sqe, 40), len, opcode }
        }
    };
    Ok(Task { task_id: task_id(sqe), action })
}

/// Task id of a descriptor of any type.
pub fn task_id(sqe: &[u8; SQE_LEN]) -> u32 {
    u32::from(u16::from_le_bytes([sqe[6], sqe[7]]))
}

fn layout(sqe: &[u8; SQE_LEN]) -> Result<&'static Layout, DecodeError> {
    match sqe[0] & 0x3f {
        TYPE_SDMA => Ok(&SDMA_LAYOUT),
        TYPE_NOTIFY_RECORD => Ok(&RECORD_LAYOUT),
        TYPE_NOTIFY_WAIT => Ok(&WAIT_LAYOUT),
        TYPE_WRITE_VALUE => Ok(&WRITE_VALUE_LAYOUT),
        TYPE_PLACE_HOLDER => Ok(&FLIP_LAYOUT),
        value => Err(DecodeError::UnknownType { value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden descriptors: kind, what is in them.
    const SDMA_COPY: &str = "0b00000007000004000000000000f00000de000000000000000000000000200000004041c012000000002041c0120000\
                             04000000000000000000000000000000";
    const UINT8_SUM: &str = "0b00000004001e00000000000000f000f0de000000000000000000000010000000000080c1120000000000c0c0120000\
                             00000000000000000000000000000000";
    const NOTIFY_WAIT: &str = "070000000200cb00ff1f00000000ff00470700000000000000000000000000000000000000000000000000000000\
                               000000000000000000000000000000000000";
    const RECORD_OF_A_PEER: &str = "0800000006002e01000000000000fe00ffffffffffff21000000000003000000010000000000000000000000\
                                    0000000000000000000000000000000000000000";
    const PLACE_HOLDER: &str = "0304620006000000000000000000fe00ffff00000000000000000000000000000000000000000000000000000000\
                                000000000000000000000000000000000000";

    fn bytes(hex: &str) -> [u8; SQE_LEN] {
        assert_eq!(hex.len(), 2 * SQE_LEN);
        std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
    }

    #[test]
    fn golden_descriptors_decode() {
        let sdma = Action::Sdma { src: 0x12c0_4140_0000, dst: 0x12c0_4120_0000, len: 2 << 20, opcode: 0 };
        assert_eq!(decode(&bytes(SDMA_COPY)), Ok(Task { task_id: 1024, action: sdma }));
        let wait = Action::Wait { id: 8191, until: Until::Set, timeout_s: 1863 };
        assert_eq!(decode(&bytes(NOTIFY_WAIT)), Ok(Task { task_id: 203, action: wait }));
        let remote = Action::RemoteRecord { addr: 0x1_ffff_ffff_ffff };
        assert_eq!(decode(&bytes(RECORD_OF_A_PEER)), Ok(Task { task_id: 302, action: remote }));
        assert_eq!(decode(&bytes(PLACE_HOLDER)), Ok(Task { task_id: 0, action: Action::PlaceHolder }));
    }

    #[test]
    fn reduce_that_the_engine_lacks_is_refused() {
        assert_eq!(decode(&bytes(UINT8_SUM)), Err(DecodeError::Opcode { value: 0xf0 }));
    }

    #[test]
    fn tables_cover_every_bit_once() {
        for tables in [[HEADER, SDMA], [HEADER, RECORD], [HEADER, WAIT], [HEADER, WRITE_VALUE], [FLIP_HEADER, FLIP]] {
            let mut seen = [0u8; SQE_LEN];
            for spec in tables.into_iter().flatten() {
                for bit in spec.bit..spec.bit + spec.width {
                    let (byte, mask) = (spec.byte + bit as usize / 8, 1 << (bit % 8));
                    assert_eq!(seen[byte] & mask, 0, "{} overlaps", spec.name);
                    seen[byte] |= mask;
                }
            }
            assert_eq!(seen, [0xff; SQE_LEN]);
        }
    }

    #[test]
    fn every_bit_that_must_not_change_is_refused() {
        for hex in [SDMA_COPY, NOTIFY_WAIT, RECORD_OF_A_PEER, PLACE_HOLDER] {
            let sqe = bytes(hex);
            for spec in layout(&sqe).unwrap().specs().filter(|spec| !matches!(spec.rule, Any)) {
                // Under Miri each bit takes a while.
                for bit in (spec.bit..spec.bit + spec.width).step_by(if cfg!(miri) { 16 } else { 1 }) {
                    let mut changed = sqe;
                    changed[spec.byte + bit as usize / 8] ^= 1 << (bit % 8);
                    let error = decode(&changed).unwrap_err().to_string();
                    assert!(error.contains(spec.name), "{error}");
                }
            }
        }
    }
}
