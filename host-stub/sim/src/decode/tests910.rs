//! Golden descriptors of Ascend910B and Ascend910_93, and what is refused of them.

use hcomm_aicpu::spec::soc::Soc;

use super::layout::Rule::Any;
use super::stars910::{FLIP, FLIP_HEADER, HEADER, RECORD, SDMA, TABLE, WAIT, WRITE_VALUE};
use super::task::{Action, DecodeError, SQE_LEN, Task, Until};

fn decode(sqe: &[u8; SQE_LEN]) -> Result<Task, DecodeError> {
    super::decode(Soc::Ascend910B, sqe)
}

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
        for spec in TABLE.kind(&sqe).unwrap().layout.specs().filter(|spec| !matches!(spec.rule, Any)) {
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
