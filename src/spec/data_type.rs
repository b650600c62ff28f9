//! Element types and reduce operators of the interface, and the SDMA codes of those that the engine computes.

use zerocopy::{FromBytes, Immutable, KnownLayout};

/// Element type (`HcommDataType`). Open: any number from a caller is a valid value, known or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct DataType(pub i32);

/// Reduce operator (`HcommReduceOp`). Open, as [`DataType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct ReduceOp(pub i32);

/// One row of the element-type table.
struct TypeRow {
    name: &'static str,
    /// Bytes of an element.
    size: u64,
    /// High nibble of the SDMA opcode; `None`: the engine can't reduce this type.
    sdma: Option<u8>,
}

const fn row(name: &'static str, size: u64, sdma: Option<u8>) -> Option<TypeRow> {
    Some(TypeRow { name, size, sdma })
}

/// Index: the number in `HcommDataType`.
const TYPES: [Option<TypeRow>; 18] = [
    row("int8", 1, Some(0x00)),
    row("int16", 2, Some(0x10)),
    row("int32", 4, Some(0x20)),
    row("fp16", 2, Some(0x60)),
    row("fp32", 4, Some(0x70)),
    row("int64", 8, None),
    row("uint64", 8, None),
    row("uint8", 1, None),
    row("uint16", 2, None),
    row("uint32", 4, None),
    row("fp64", 8, None),
    row("bf16", 2, Some(0x80)),
    row("int128", 16, None),
    None,
    row("hif8", 1, None),
    row("fp8e4m3", 1, None),
    row("fp8e5m2", 1, None),
    row("fp8e8m0", 1, None),
];

/// Index: the number in `HcommReduceOp`. The second is the low nibble of the SDMA opcode.
const OPS: [(&str, Option<u8>); 4] = [("sum", Some(1)), ("prod", None), ("max", Some(2)), ("min", Some(3))];

impl DataType {
    /// 8-bit signed integer.
    pub const INT8: Self = Self(0);
    /// 16-bit signed integer.
    pub const INT16: Self = Self(1);
    /// 32-bit signed integer.
    pub const INT32: Self = Self(2);
    /// IEEE half precision.
    pub const FP16: Self = Self(3);
    /// IEEE single precision.
    pub const FP32: Self = Self(4);
    /// bfloat16.
    pub const BF16: Self = Self(11);

    fn row(self) -> Option<&'static TypeRow> {
        TYPES.get(usize::try_from(self.0).ok()?)?.as_ref()
    }

    /// Bytes of an element; `None` for a number that the interface does not define.
    pub fn size(self) -> Option<u64> {
        self.row().map(|row| row.size)
    }

    /// Lower-case name; `None` for a number that the interface does not define.
    pub fn name(self) -> Option<&'static str> {
        self.row().map(|row| row.name)
    }

    /// The type with this lower-case name.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_named = |row: &Option<TypeRow>| row.as_ref().is_some_and(|row| row.name == name);
        TYPES.iter().position(is_named).map(|index| Self(index as i32))
    }
}

impl ReduceOp {
    /// Sum.
    pub const SUM: Self = Self(0);
    /// Product: defined by the interface, not computed by the engine.
    pub const PROD: Self = Self(1);
    /// Maximum.
    pub const MAX: Self = Self(2);
    /// Minimum.
    pub const MIN: Self = Self(3);

    fn row(self) -> Option<&'static (&'static str, Option<u8>)> {
        OPS.get(usize::try_from(self.0).ok()?)
    }

    /// Lower-case name; `None` for a number that the interface does not define.
    pub fn name(self) -> Option<&'static str> {
        self.row().map(|row| row.0)
    }

    /// The operator with this lower-case name.
    pub fn from_name(name: &str) -> Option<Self> {
        OPS.iter().position(|row| row.0 == name).map(|index| Self(index as i32))
    }
}

/// What the SDMA engine does with elements of a type by an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SdmaReduce {
    /// Opcode byte of the descriptor: type code OR operator code.
    pub opcode: u8,
    /// Binary logarithm of the bytes of an element.
    pub size_log2: u8,
}

impl SdmaReduce {
    /// `None` where the engine does not compute it.
    #[inline]
    pub fn new(op: ReduceOp, data_type: DataType) -> Option<Self> {
        let (type_code, size_log2) = *SDMA_TYPES.get(data_type.0 as usize)?;
        let op_code = *SDMA_OPS.get(op.0 as usize)?;
        let is_computed = type_code != NOT_COMPUTED && op_code != NOT_COMPUTED;
        is_computed.then_some(Self { opcode: type_code | op_code, size_log2 })
    }
}

/// Is the code of no type, and of no operator.
const NOT_COMPUTED: u8 = 0xff;

/// [`TYPES`] as a reduce needs them: code and size of each.
const SDMA_TYPES: [(u8, u8); TYPES.len()] = {
    let mut types = [(NOT_COMPUTED, 0); TYPES.len()];
    let mut index = 0;
    while index < TYPES.len() {
        if let Some(TypeRow { size, sdma: Some(code), .. }) = &TYPES[index] {
            types[index] = (*code, size.trailing_zeros() as u8);
        }
        index += 1;
    }
    types
};

/// [`OPS`], likewise.
const SDMA_OPS: [u8; OPS.len()] = {
    let mut ops = [NOT_COMPUTED; OPS.len()];
    let mut index = 0;
    while index < OPS.len() {
        if let Some(code) = OPS[index].1 {
            ops[index] = code;
        }
        index += 1;
    }
    ops
};

#[cfg(test)]
mod tests {
    use super::*;

    fn opcode(op: ReduceOp, data_type: DataType) -> Option<u8> {
        SdmaReduce::new(op, data_type).map(|reduce| reduce.opcode)
    }

    #[test]
    fn opcodes_of_every_supported_pair() {
        let types = [("int8", 0x00), ("int16", 0x10), ("int32", 0x20), ("fp16", 0x60), ("fp32", 0x70), ("bf16", 0x80)];
        for (type_name, type_code) in types {
            for (op_name, op_code) in [("sum", 1), ("max", 2), ("min", 3)] {
                let data_type = DataType::from_name(type_name).unwrap();
                let op = ReduceOp::from_name(op_name).unwrap();
                assert_eq!(opcode(op, data_type), Some(type_code | op_code), "{op_name} {type_name}");
                let size = SdmaReduce::new(op, data_type).map(|reduce| 1 << reduce.size_log2);
                assert_eq!(size, data_type.size(), "{type_name}");
            }
        }
    }

    #[test]
    fn pairs_the_engine_lacks_have_no_opcode() {
        assert_eq!(opcode(ReduceOp::PROD, DataType::FP32), None);
        assert_eq!(opcode(ReduceOp::SUM, DataType::from_name("fp64").unwrap()), None);
        for odd in [-1, 13, 18, 255, i32::MIN, i32::MAX] {
            assert_eq!(opcode(ReduceOp::SUM, DataType(odd)), None, "type {odd}");
            assert_eq!(DataType(odd).size(), None, "type {odd}");
        }
        for odd in [-1, 4, 255, i32::MIN] {
            assert_eq!(opcode(ReduceOp(odd), DataType::FP32), None, "op {odd}");
        }
    }
}
