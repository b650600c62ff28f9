//! Golden descriptors of Ascend950, and what is refused of them.

use hcomm_aicpu::spec::soc::Soc;

use super::layout::Rule::{Any, Only};
use super::layout::{Spec, extract};
use super::stars950::{HEADER, NOTIFY, SDMA, WRITE_VALUE};
use super::task::{Action, DecodeError, Effect, Field, Jetty, SQE_LEN, Task, Until};
use super::ub_doorbell::UB_DOORBELL;
use super::{decode, fields};

fn decode950(sqe: &[u8; SQE_LEN]) -> Result<Task, DecodeError> {
    decode(Soc::Ascend950, sqe)
}

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
