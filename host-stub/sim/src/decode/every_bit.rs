//! Every bit of every kind of descriptor: which may change, and which the device refuses.
//!
//! What may change is written here by hand, by words and bits of docs/spec.md. The tables are not asked: one that takes any
//! value where only one is right does not find itself.

use hcomm_aicpu::spec::soc::Soc;

use super::{SQE_LEN, decode, fields};

/// Word, first bit in it, how many.
type Bits = (usize, u32, u32);

struct Row {
    soc: Soc,
    kind: &'static str,
    /// The leading bytes; the others are zero.
    hex: &'static str,
    /// Any value is a task.
    free: &'static [Bits],
    /// Some values are a task.
    choice: &'static [Bits],
}

const ID: Bits = (1, 0, 32);
const TYPE: Bits = (0, 0, 6);

const ROWS: [Row; 16] = [
    Row {
        soc: Soc::Ascend950,
        kind: "sdma copy",
        hex: "0b00000005000100000000000000fe00000f000000000000000000000000000000000080c1120000000000c0c01200000000100000",
        free: &[ID, (3, 16, 8), (8, 0, 32), (9, 0, 32), (10, 0, 32), (11, 0, 32), (12, 0, 32)],
        choice: &[TYPE, (4, 0, 8)],
    },
    Row {
        soc: Soc::Ascend950,
        kind: "notify record",
        hex: "0600000002000300010000000000fe00",
        free: &[ID, (2, 0, 17)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend950,
        kind: "count record, 1 to N",
        hex: "0600000007000000050000400200fe0001000000",
        free: &[ID, (2, 0, 17), (4, 0, 32)],
        // One bit of the record mode makes it the other form.
        choice: &[TYPE, (5, 3, 1)],
    },
    Row {
        soc: Soc::Ascend950,
        kind: "count record, N to 1",
        hex: "0600000009000000050000400200fe000100000008000000",
        free: &[ID, (2, 0, 17), (4, 0, 32)],
        choice: &[TYPE, (5, 3, 1)],
    },
    Row {
        soc: Soc::Ascend950,
        kind: "notify wait",
        hex: "0700000001000400010000800100ff00000000000000000001000000",
        free: &[ID, (2, 0, 17), (6, 0, 32)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend950,
        kind: "count wait, 1 to N",
        hex: "0700000008000000050000c00300ff000100000020000000",
        free: &[ID, (2, 0, 17), (4, 0, 32)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend950,
        kind: "count wait, N to 1",
        hex: "070000000a000000050000c00300ff000100000001000000",
        free: &[ID, (2, 0, 17), (4, 0, 32)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend950,
        kind: "write value",
        hex: "0800000000000500000000000000fe000010000000002080000000000000000001",
        free: &[ID, (3, 16, 8), (4, 0, 32), (5, 0, 17), (8, 0, 32)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend950,
        kind: "ub doorbell",
        hex: "0900000001000600030000000000fe000004000611",
        free: &[ID, (4, 0, 16), (4, 25, 7), (5, 0, 16), (5, 31, 1)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend910B,
        kind: "sdma copy",
        hex: "0b00000007000004000000000000f00000de000000000000000000000000200000004041c012000000002041c0120000",
        free: &[ID, (3, 16, 8), (4, 13, 4), (7, 0, 32), (8, 0, 32), (9, 0, 32), (10, 0, 32), (11, 0, 32), (12, 0, 8)],
        choice: &[TYPE, (4, 0, 8)],
    },
    Row {
        soc: Soc::Ascend910B,
        kind: "notify record",
        hex: "0600000002006500010000000000fe00",
        free: &[ID, (2, 0, 13)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend910B,
        kind: "notify wait",
        hex: "070000000200cb00ff1f00000000ff0047070000",
        free: &[ID, (2, 0, 13), (4, 0, 32)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend910B,
        kind: "record of another chip",
        hex: "0800000006002e01000000000000fe00ffffffffffff210000000000030000000100",
        free: &[ID, (4, 0, 32), (5, 0, 17)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend910B,
        kind: "place holder",
        hex: "0304620006000000000000000000fe00ffff",
        // Its task id is 0.
        free: &[(1, 0, 16), (4, 0, 16)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend910_93,
        kind: "notify record",
        hex: "0600000002006500010000000000fe00",
        free: &[ID, (2, 0, 13)],
        choice: &[TYPE],
    },
    Row {
        soc: Soc::Ascend910_93,
        kind: "notify wait",
        hex: "070000000200cb00ff1f00000000ff0047070000",
        free: &[ID, (2, 0, 13), (4, 0, 32)],
        choice: &[TYPE],
    },
];

fn bytes(hex: &str) -> [u8; SQE_LEN] {
    let hex = format!("{hex:0<128}");
    std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
}

/// Whether a bit of a descriptor is among these.
pub(super) fn is_among(bits: &[Bits], bit: u32) -> bool {
    let (word, bit) = (bit as usize / 32, bit % 32);
    bits.iter().any(|&(of, first, width)| of == word && (first..first + width).contains(&bit))
}

#[test]
fn every_bit_is_free_or_refused_as_documented() {
    for Row { soc, kind, hex, free, choice } in ROWS {
        let sqe = bytes(hex);
        assert!(decode(soc, &sqe).is_ok(), "{soc:?} {kind}");
        // Under Miri each bit takes a while.
        for bit in (0..8 * SQE_LEN as u32).step_by(if cfg!(miri) { 7 } else { 1 }) {
            let mut changed = sqe;
            changed[bit as usize / 8] ^= 1 << (bit % 8);
            if is_among(choice, bit) {
                continue;
            }
            let decoded = decode(soc, &changed);
            let at = format!("{soc:?} {kind}, word {}, bit {}: {decoded:?}", bit / 32, bit % 32);
            assert_eq!(decoded.is_ok(), is_among(free, bit), "{at}");
            // What is refused is listed all the same, and what is taken is seen.
            assert_ne!(fields(soc, &changed), fields(soc, &sqe), "{at}");
        }
    }
}

/// No other type is a task, whatever else is in the descriptor.
#[test]
fn type_of_a_descriptor_is_one_that_is_decoded() {
    for soc in Soc::ALL {
        for kind in 0..64 {
            let is_known = ROWS.iter().any(|row| {
                let is_950 = |soc| soc == Soc::Ascend950;
                is_950(row.soc) == is_950(soc) && bytes(row.hex)[0] & 0x3f == kind
            });
            for row in ROWS {
                let mut sqe = bytes(row.hex);
                sqe[0] = sqe[0] & !0x3f | kind;
                assert_eq!(fields(soc, &sqe).is_ok(), is_known, "{soc:?} type {kind}");
            }
        }
    }
}
