//! Decoder of descriptors, by byte offset from a table of its own: Ascend950 here, the others in `decode910`.
//!
//! Source: docs/spec.md, "Ascend950 descriptors". The builders in `hcomm_aicpu::spec` are not used here, so that one
//! mistake cannot be made in both places.

use hcomm_aicpu::spec::soc::Soc;

#[cfg(test)]
mod every_bit;
mod header;
pub(super) mod layout;
mod notify;
pub(super) mod task;
pub mod ub;
mod ub_doorbell;

pub use self::task::{Action, DecodeError, Effect, Field, Jetty, SQE_LEN, Task, Until, type_name};

use self::header::{HEADER, TYPE_NOTIFY_RECORD, TYPE_NOTIFY_WAIT, TYPE_SDMA, TYPE_UBDMA, TYPE_WRITE_VALUE};
use self::layout::Rule::{Any, Only, Reserved};
use self::layout::{Layout, Spec, extract, find, spec, word64, write_value};
use self::task::sdma_opcode;
use super::decode910;

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

const WRITE_VALUE: &[Spec] = &write_value(Any, 1, 0, Any);

static SDMA_LAYOUT: Layout = Layout::new(HEADER, SDMA);
static WRITE_LAYOUT: Layout = Layout::new(HEADER, WRITE_VALUE);

/// Every field of a descriptor of `soc`, in the order of its bytes, whatever it holds.
///
/// # Errors
/// [`DecodeError::UnknownType`]: there is no table for the type.
pub fn fields(soc: Soc, sqe: &[u8; SQE_LEN]) -> Result<Vec<Field>, DecodeError> {
    match soc {
        Soc::Ascend950 => layout(sqe).map(|layout| layout.list(sqe)),
        Soc::Ascend910B | Soc::Ascend910_93 => decode910::fields(sqe),
    }
}

/// The task of a descriptor of `soc`.
///
/// # Errors
/// [`DecodeError`]: the first field that is not supported, header first.
pub fn decode(soc: Soc, sqe: &[u8; SQE_LEN]) -> Result<Task, DecodeError> {
    match soc {
        Soc::Ascend950 => decode950(sqe),
        Soc::Ascend910B | Soc::Ascend910_93 => decode910::decode(sqe),
    }
}

/// Task id of a descriptor of any type.
pub fn task_id(soc: Soc, sqe: &[u8; SQE_LEN]) -> u32 {
    match soc {
        Soc::Ascend950 => (word64(sqe, 0) >> 32) as u32,
        Soc::Ascend910B | Soc::Ascend910_93 => decode910::task_id(sqe),
    }
}

fn decode950(sqe: &[u8; SQE_LEN]) -> Result<Task, DecodeError> {
    let action = match sqe[0] & 0x3f {
        TYPE_SDMA => {
            SDMA_LAYOUT.check(sqe)?;
            let opcode = sdma_opcode(sqe)?;
            Action::Sdma { src: word64(sqe, 32), dst: word64(sqe, 40), len: word64(sqe, 48) as u32, opcode }
        }
        TYPE_NOTIFY_RECORD | TYPE_NOTIFY_WAIT => notify::decode(sqe)?,
        TYPE_WRITE_VALUE => {
            const ADDR_LOW: &Spec = find(WRITE_VALUE, "addr_low");
            const ADDR_HIGH: &Spec = find(WRITE_VALUE, "addr_high");
            const VALUE: &Spec = find(WRITE_VALUE, "value0");
            WRITE_LAYOUT.check(sqe)?;
            let addr = extract(sqe, ADDR_LOW) | extract(sqe, ADDR_HIGH) << 32;
            Action::WriteValue { addr, value: extract(sqe, VALUE) as u32 }
        }
        TYPE_UBDMA => ub_doorbell::decode(sqe)?,
        value => return Err(DecodeError::UnknownType { value }),
    };
    Ok(Task { task_id: task_id(Soc::Ascend950, sqe), action })
}

fn layout(sqe: &[u8; SQE_LEN]) -> Result<&'static Layout, DecodeError> {
    match sqe[0] & 0x3f {
        TYPE_SDMA => Ok(&SDMA_LAYOUT),
        TYPE_NOTIFY_RECORD | TYPE_NOTIFY_WAIT => Ok(&notify::LAYOUT),
        TYPE_WRITE_VALUE => Ok(&WRITE_LAYOUT),
        TYPE_UBDMA => Ok(&ub_doorbell::LAYOUT),
        value => Err(DecodeError::UnknownType { value }),
    }
}

#[cfg(test)]
mod tests {
    use super::notify::NOTIFY;
    use super::ub_doorbell::UB_DOORBELL;
    use super::*;

    /// Golden descriptor: task 0x10005, 1 MiB from 0x12c1_8000_0000 to 0x12c0_c000_0000.
    const COPY: &str = "0b00000005000100000000000000fe00000f000000000000000000000000000000000080c1120000000000c0c0120000\
                        00001000000000000000000000000000";

    fn bytes(hex: &str) -> [u8; SQE_LEN] {
        std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
    }

    const RECORD_BITS: &str = "0600000007000000050000400200fe00010000000000000000000000000000000000000000000000000000000000\
                               000000000000000000000000000000000000";
    const WAIT_ONE: &str = "0700000001000400010000800100ff00000000000000000001000000000000000000000000000000000000000000\
                            000000000000000000000000000000000000";
    const WRITE: &str = "0800000000000500000000000000fe00001000000000208000000000000000000100000000000000000000000000\
                         000000000000000000000000000000000000";

    fn action(hex: &str) -> Result<Action, DecodeError> {
        decode950(&bytes(hex)).map(|task| task.action)
    }

    #[test]
    fn golden_copy_decodes() {
        let action = Action::Sdma { src: 0x12c1_8000_0000, dst: 0x12c0_c000_0000, len: 1 << 20, opcode: 0 };
        assert_eq!(decode950(&bytes(COPY)), Ok(Task { task_id: 65541, action }));
    }

    /// Rows of the golden descriptors: bytes 0..32 (the rest is zero), task id, action.
    #[test]
    fn golden_notifies_decode() {
        let record = |id, effect| Action::Record { id, effect };
        let wait = |id, until, timeout_s| Action::Wait { id, until, timeout_s };
        let rows = [
            ("0600000001000300000000000000fe00", 196609, record(0, Effect::Set)),
            ("0600000002000300010000000000fe00", 196610, record(1, Effect::Set)),
            ("0600000004000300ffff01000000fe00", 196612, record(131071, Effect::Set)),
            ("0700000001000400010000800100ff00000000000000000001000000", 262145, wait(1, Until::Set, 1)),
            ("0700000002000400ff1f00800100ff0000000000000000002c070000", 262146, wait(8191, Until::Set, 1836)),
            ("0700000003000400ffff01800100ff00000000000000000047070000", 262147, wait(131071, Until::Set, 1863)),
            ("0700000005000400ffff01800100ff000000000000000000bc430000", 262149, wait(131071, Until::Set, 17340)),
            ("0600000007000000050000400200fe0001000000", 7, record(5, Effect::SetBits(1))),
            ("0700000008000000050000c00300ff000100000020000000", 8, wait(5, Until::AnyOf(1), 0)),
            ("0600000009000000050000400200fe000100000008000000", 9, record(5, Effect::Write(1))),
            ("070000000a000000050000c00300ff000100000001000000", 10, wait(5, Until::Equal(1), 0)),
            ("0600000007000000050000400200fe00ffffffff", 7, record(5, Effect::SetBits(u32::MAX))),
            ("0700000008000000050000c00300ff00ffffffff20000000", 8, wait(5, Until::AnyOf(u32::MAX), 0)),
            ("0600000009000000050000400200fe00ffffffff08000000", 9, record(5, Effect::Write(u32::MAX))),
            ("070000000a000000050000c00300ff00ffffffff01000000", 10, wait(5, Until::Equal(u32::MAX), 0)),
        ];
        for (hex, task_id, action) in rows {
            assert_eq!(decode950(&bytes(&format!("{hex:0<128}"))), Ok(Task { task_id, action }), "{hex}");
        }
    }

    #[test]
    fn golden_writes_decode() {
        let rows = [
            ("0800000000000500000000000000fe000010000000002080000000000000000001", 0x1000, 1),
            ("0800000002000500000000000000fe00ffffffffffff21800000000000000000ffffffff", 0x1_ffff_ffff_ffff, u32::MAX),
            (
                "0800000003000500000000000000fe0078563412000021800000000000000000785634120000",
                0x1_0000_1234_5678,
                0x1234_5678,
            ),
        ];
        for (hex, addr, value) in rows {
            assert_eq!(action(&format!("{hex:0<128}")), Ok(Action::WriteValue { addr, value }), "{hex}");
        }
        // The 64-bit form rings doorbells of network cards.
        let db = "0800000006000100000000000000fe00400000c0c012308000000000000000008877665544332211";
        let expected = DecodeError::Unsupported { name: "awsize", byte: 22, value: 3, supported: 2 };
        assert_eq!(action(&format!("{db:0<128}")), Err(expected));
    }

    #[test]
    fn golden_doorbells_decode() {
        let rows = [
            ("0900000001000600030000000000fe00ffff00feffff0080", Jetty { die: 1, function: 127, id: 65535 }, 65535),
            ("0900000001000600030000000000fe000004000611000000", Jetty { die: 0, function: 3, id: 1024 }, 17),
            ("0900000001000600030000000000fe001200002401000080", Jetty { die: 1, function: 18, id: 18 }, 1),
        ];
        for (hex, jetty, producer_index) in rows {
            let task = Task { task_id: 393_217, action: Action::UbDoorbell { jetty, producer_index } };
            assert_eq!(decode950(&bytes(&format!("{hex:0<128}"))), Ok(task), "{hex}");
        }
    }

    #[test]
    fn golden_rows_of_other_kinds_are_refused_by_name() {
        let cond = "1400000001000200000000800000fe0087516009800000c0";
        assert_eq!(action(&format!("{cond:0<128}")), Err(DecodeError::UnknownType { value: 20 }));
    }

    const DOORBELL: &str = "0900000001000600030000000000fe00000400061100000000000000000000000000000000000000000000000000000\
                            00000000000000000000000000000000000";

    const TABLES: [(&str, &[Spec]); 5] =
        [(COPY, SDMA), (RECORD_BITS, NOTIFY), (WAIT_ONE, NOTIFY), (WRITE, WRITE_VALUE), (DOORBELL, UB_DOORBELL)];

    #[test]
    fn fields_cover_every_bit_once() {
        for (_, table) in TABLES {
            let mut seen = [0u8; SQE_LEN];
            for spec in HEADER.iter().chain(table) {
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
    fn every_bit_that_must_not_change_is_refused_by_name() {
        for (hex, table) in TABLES {
            for spec in HEADER.iter().chain(table).filter(|spec| !matches!(spec.rule, Any)) {
                // Under Miri each bit takes a while.
                for bit in (spec.bit..spec.bit + spec.width).step_by(if cfg!(miri) { 16 } else { 1 }) {
                    let mut sqe = bytes(hex);
                    sqe[spec.byte + bit as usize / 8] ^= 1 << (bit % 8);
                    let (name, byte, value) = (spec.name, spec.byte, extract(&sqe, spec));
                    let expected = match spec.rule {
                        Only(supported) => DecodeError::Unsupported { name, byte, value, supported },
                        _ => DecodeError::Reserved { name, byte, value },
                    };
                    assert_eq!(decode950(&sqe), Err(expected));
                }
            }
        }
    }

    #[test]
    fn flags_that_make_no_known_notify_are_refused_by_name() {
        let unsupported = |name, byte, value, supported| DecodeError::Unsupported { name, byte, value, supported };
        let cases = [
            // A wait that the queue's timer may end, that does not clear, or that waits for "bigger".
            (WAIT_ONE, 14, 0x01, unsupported("kernel_credit", 14, 254, 255)),
            (WAIT_ONE, 11, 0x80, unsupported("clr_flag", 11, 0, 1)),
            (WAIT_ONE, 11, 0x40, unsupported("sub_type", 12, 1, 3)),
            (WAIT_ONE, 20, 0x02, unsupported("wait_mode", 20, 2, 0)),
            (WAIT_ONE, 20, 0x04, unsupported("record_mode", 20, 1, 0)),
            (WAIT_ONE, 16, 0x01, unsupported("cnt_value", 16, 1, 0)),
            // A record that clears, adds, has a time-out, or is of the other sub type.
            (RECORD_BITS, 11, 0x80, unsupported("clr_flag", 11, 1, 0)),
            (RECORD_BITS, 20, 0x04, unsupported("record_mode", 20, 1, 2)),
            (RECORD_BITS, 20, 0x10, unsupported("record_mode", 20, 4, 2)),
            (RECORD_BITS, 20, 0x20, unsupported("bitmap", 20, 1, 0)),
            (RECORD_BITS, 24, 0x01, unsupported("timeout", 24, 1, 0)),
            (RECORD_BITS, 12, 0x01, unsupported("sub_type", 12, 3, 2)),
        ];
        for (hex, byte, flip, error) in cases {
            let mut sqe = bytes(hex);
            sqe[byte] ^= flip;
            assert_eq!(decode950(&sqe), Err(error), "byte {byte} ^ {flip:#x}");
        }
    }

    #[test]
    fn zeroed_descriptor_is_not_a_task() {
        assert_eq!(decode950(&[0; SQE_LEN]), Err(DecodeError::UnknownType { value: 0 }));
        assert_eq!(
            DecodeError::UnknownType { value: 10 }.to_string(),
            "descriptor type 10 (asyncdma) in byte 0 is not supported"
        );
    }

    /// Case 209.
    #[test]
    fn opcode_that_the_engine_does_not_compute_is_refused() {
        for opcode in 0..=u8::MAX {
            let mut sqe = bytes(COPY);
            sqe[16] = opcode;
            let (elements, operator) = (opcode >> 4, opcode & 0xf);
            let is_known = opcode == 0 || matches!(elements, 0 | 1 | 2 | 6 | 7 | 8) && matches!(operator, 1..=3);
            let expected = if is_known { None } else { Some(DecodeError::Opcode { value: opcode }) };
            assert_eq!(decode950(&sqe).err(), expected, "{opcode:#x}");
        }
    }

    #[test]
    fn fields_are_listed_even_if_not_supported() {
        let mut sqe = bytes(COPY);
        sqe[8] = 9;
        sqe[16] = 0x71;
        let fields = fields(Soc::Ascend950, &sqe).unwrap();
        assert!(fields.contains(&Field { name: "res1", byte: 8, value: 9 }));
        assert!(fields.contains(&Field { name: "opcode", byte: 16, value: 0x71 }));
        assert!(fields.windows(2).all(|pair| pair[0].byte <= pair[1].byte));
    }
}
