//! Codes of a reduce by the UB engine. They are not those of SDMA, and there are three types more.

use crate::spec::data_type::{DataType, ReduceOp};

/// What the UB engine does with elements of a type by an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UbReduce {
    type_code: u8,
    op_code: u8,
    size_log2: u8,
}

/// Type and operator code of a pair that is not computed.
const NOT_COMPUTED: u8 = 0xff;

/// Code and binary logarithm of the bytes of an element. Index: the number in `HcommDataType`.
const TYPES: [(u8, u8); 12] = {
    const NONE: (u8, u8) = (NOT_COMPUTED, 0);
    //  int8    int16   int32   fp16    fp32    int64 uint64 uint8  uint16  uint32  fp64  bf16
    [(0, 0), (1, 1), (2, 2), (6, 1), (7, 2), NONE, NONE, (3, 0), (4, 1), (5, 2), NONE, (8, 1)]
};

/// Index: the number in `HcommReduceOp`.
//                        sum  prod         max min
const OPS: [u8; 4] = [10, NOT_COMPUTED, 8, 9];

impl UbReduce {
    /// `None` where the engine does not compute it: 64-bit and wider elements, 8-bit floats, the product.
    #[inline]
    pub fn new(op: ReduceOp, data_type: DataType) -> Option<Self> {
        let (type_code, size_log2) = *TYPES.get(data_type.0 as usize)?;
        let op_code = *OPS.get(op.0 as usize)?;
        let is_computed = type_code != NOT_COMPUTED && op_code != NOT_COMPUTED;
        is_computed.then_some(Self { type_code, op_code, size_log2 })
    }

    /// Type code of an entry, 4 bits.
    pub const fn type_code(self) -> u8 {
        self.type_code
    }

    /// Operator code of an entry, 4 bits.
    pub const fn op_code(self) -> u8 {
        self.op_code
    }

    /// Binary logarithm of the bytes of an element.
    pub const fn size_log2(self) -> u8 {
        self.size_log2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_every_pair() {
        let types = [
            ("int8", 0),
            ("int16", 1),
            ("int32", 2),
            ("uint8", 3),
            ("uint16", 4),
            ("uint32", 5),
            ("fp16", 6),
            ("fp32", 7),
            ("bf16", 8),
        ];
        let mut computed = 0;
        for number in 0..=255 {
            for op in 0..=255 {
                computed += usize::from(UbReduce::new(ReduceOp(op), DataType(number)).is_some());
            }
        }
        assert_eq!(computed, 3 * types.len());
        for (type_name, type_code) in types {
            for (op_name, op_code) in [("max", 8), ("min", 9), ("sum", 10)] {
                let data_type = DataType::from_name(type_name).unwrap();
                let reduce = UbReduce::new(ReduceOp::from_name(op_name).unwrap(), data_type).unwrap();
                assert_eq!((reduce.type_code(), reduce.op_code()), (type_code, op_code), "{op_name} {type_name}");
                assert_eq!(Some(1 << reduce.size_log2()), data_type.size(), "{type_name}");
            }
        }
    }

    #[test]
    fn numbers_outside_the_interface_have_no_codes() {
        for odd in [-1, 12, 13, 18, i32::MIN, i32::MAX] {
            assert_eq!(UbReduce::new(ReduceOp::SUM, DataType(odd)), None, "type {odd}");
        }
        for odd in [-1, 4, i32::MIN, i32::MAX] {
            assert_eq!(UbReduce::new(ReduceOp(odd), DataType::FP32), None, "operator {odd}");
        }
    }
}
