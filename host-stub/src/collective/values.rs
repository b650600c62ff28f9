//! Small numbers in every element type: sums of a few of them are exact, in whatever order they are made.
#![forbid(unsafe_code)]

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};

/// Numbers below this are exact in every type.
pub const EXACT: u32 = 128;

/// `value` as an element, least significant byte first; `None` for a number that the interface does not define as a type, and for
/// types of less than a byte or with fewer bits than [`EXACT`] needs.
///
/// # Panics
/// If `value` is not below [`EXACT`].
pub fn element(data_type: DataType, value: u32) -> Option<Vec<u8>> {
    assert!(value < EXACT, "{value}: must be below {EXACT}");
    let float = value as f32;
    match (data_type.name()?, data_type.size()?) {
        ("fp16", _) => Some(half(value).to_le_bytes().to_vec()),
        ("bf16", _) => Some(((float.to_bits() >> 16) as u16).to_le_bytes().to_vec()),
        ("fp32", _) => Some(float.to_le_bytes().to_vec()),
        ("fp64", _) => Some(f64::from(value).to_le_bytes().to_vec()),
        (name, size) if name.starts_with("int") || name.starts_with("uint") => {
            Some(u128::from(value).to_le_bytes()[..size as usize].to_vec())
        }
        _ => None,
    }
}

/// IEEE half precision: exact up to 2048.
fn half(value: u32) -> u16 {
    let Some(exponent) = value.checked_ilog2() else { return 0 };
    (((exponent + 15) << 10) | ((value << (10 - exponent)) & 0x3ff)) as u16
}

/// Two numbers reduced; `None` for an operator that the engines do not compute.
pub fn reduce(op: ReduceOp, a: u32, b: u32) -> Option<u32> {
    match op {
        ReduceOp::SUM => Some(a + b),
        ReduceOp::MAX => Some(a.max(b)),
        ReduceOp::MIN => Some(a.min(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_own_bytes_for_a_number() {
        let bytes = |data_type| element(data_type, 48).unwrap();
        assert_eq!(bytes(DataType::INT8), [48]);
        assert_eq!(bytes(DataType::INT32), [48, 0, 0, 0]);
        assert_eq!(bytes(DataType::FP32), 48f32.to_le_bytes());
        // 1.5 * 2^5.
        assert_eq!(bytes(DataType::FP16), (0x5200u16).to_le_bytes());
        assert_eq!(bytes(DataType::BF16), (0x4240u16).to_le_bytes());
        assert_eq!([half(0), half(1), half(3)], [0, 0x3c00, 0x4200]);
        assert_eq!(element(DataType(-1), 1), None);
    }
}
