//! Arithmetic of a reduce, by SDMA or over a channel: `dst[i] = op(dst[i], src[i])`.
//!
//! The rules of the hardware for odd values are not public. Those here are chosen to be reproducible: the bits of a result
//! depend on the values alone, not on their order, on the host's processor, or on the shape of a tree of reduces.
//!
//! | | rule |
//! |---|---|
//! | integer sum | wraps around, so that it is associative: every order of a reduction gives the same result |
//! | float sum | exact sum, rounded once to nearest even; subnormals are kept |
//! | max, min | IEEE 754-2019 `maximum` and `minimum`: -0 is below +0, and a NaN wins |
//! | NaN | whatever NaNs go in, the positive quiet NaN without payload comes out |

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Bytes that are computed at a time: both operands, and the next ones, stay in the first-level cache.
pub const BLOCK_LEN: usize = 2048;

/// Aligned bytes of one operand.
#[repr(align(64))]
pub struct Block(pub [u8; BLOCK_LEN]);

/// Element type of a reduce.
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

/// Operator of a reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operator {
    Sum,
    Max,
    Min,
}

/// Element type and operator of a reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduce {
    element: Element,
    operator: Operator,
}

impl Reduce {
    /// What an opcode byte asks for: type in the high half, operator in the low. `None`: the engine does not compute it.
    pub fn from_opcode(opcode: u8) -> Option<Self> {
        let element = match opcode >> 4 {
            0 => Element::Int8,
            1 => Element::Int16,
            2 => Element::Int32,
            6 => Element::Fp16,
            7 => Element::Fp32,
            8 => Element::Bf16,
            _ => return None,
        };
        let operator = match opcode & 0xf {
            1 => Operator::Sum,
            2 => Operator::Max,
            3 => Operator::Min,
            _ => return None,
        };
        Some(Self { element, operator })
    }

    /// Elements of this type, by this operator.
    pub fn new(element: Element, operator: Operator) -> Self {
        Self { element, operator }
    }

    /// Bytes of an element.
    pub fn element_len(self) -> u32 {
        match self.element {
            Element::Int8 | Element::Uint8 => 1,
            Element::Int16 | Element::Uint16 | Element::Fp16 | Element::Bf16 => 2,
            Element::Int32 | Element::Uint32 | Element::Fp32 => 4,
        }
    }

    /// Reduces the first `len` bytes of `src` into those of `dst`.
    ///
    /// # Panics
    /// If `len` is above [`BLOCK_LEN`] or cuts an element.
    pub fn apply(self, dst: &mut Block, src: &Block, len: usize) {
        let (dst, src) = (&mut dst.0[..len], &src.0[..len]);
        match self.element {
            Element::Int8 => self.integers(elements_mut::<i8>(dst), elements(src), i8::wrapping_add),
            Element::Int16 => self.integers(elements_mut::<i16>(dst), elements(src), i16::wrapping_add),
            Element::Int32 => self.integers(elements_mut::<i32>(dst), elements(src), i32::wrapping_add),
            Element::Uint8 => self.integers(elements_mut::<u8>(dst), elements(src), u8::wrapping_add),
            Element::Uint16 => self.integers(elements_mut::<u16>(dst), elements(src), u16::wrapping_add),
            Element::Uint32 => self.integers(elements_mut::<u32>(dst), elements(src), u32::wrapping_add),
            Element::Fp32 => self.singles(elements_mut(dst), elements(src)),
            Element::Fp16 => {
                let dst = elements_mut::<u16>(dst).reinterpret_cast_mut::<f16>();
                self.halves(dst, elements::<u16>(src).reinterpret_cast());
            }
            Element::Bf16 => {
                let dst = elements_mut::<u16>(dst).reinterpret_cast_mut::<bf16>();
                self.halves(dst, elements::<u16>(src).reinterpret_cast());
            }
        }
    }

    fn integers<T: Copy + Ord>(self, dst: &mut [T], src: &[T], sum: impl Fn(T, T) -> T) {
        match self.operator {
            Operator::Sum => each(dst, src, sum),
            Operator::Max => each(dst, src, T::max),
            Operator::Min => each(dst, src, T::min),
        }
    }

    fn singles(self, dst: &mut [f32], src: &[f32]) {
        match self.operator {
            Operator::Sum => each(dst, src, |a, b| canonical(a + b)),
            Operator::Max => each(dst, src, maximum),
            Operator::Min => each(dst, src, minimum),
        }
    }

    /// Computes in single precision. That rounds a sum twice, which is the same as once: 24 bits of significand are at least
    /// 2p + 2 for the 11 bits of fp16 and the 8 of bf16.
    fn halves<T>(self, dst: &mut [T], src: &[T])
    where
        [T]: HalfFloatSliceExt,
    {
        let (mut left, mut right) = ([0.0; BLOCK_LEN / 2], [0.0; BLOCK_LEN / 2]);
        let (left, right) = (&mut left[..dst.len()], &mut right[..src.len()]);
        dst.convert_to_f32_slice(left);
        src.convert_to_f32_slice(right);
        self.singles(left, right);
        dst.convert_from_f32_slice(left);
    }
}

fn elements<T: FromBytes + Immutable>(bytes: &[u8]) -> &[T] {
    <[T]>::ref_from_bytes(bytes).expect("blocks are aligned, and no element is cut")
}

fn elements_mut<T: FromBytes + IntoBytes>(bytes: &mut [u8]) -> &mut [T] {
    <[T]>::mut_from_bytes(bytes).expect("blocks are aligned, and no element is cut")
}

/// Without branches in `op` this becomes vector code.
fn each<T: Copy>(dst: &mut [T], src: &[T], op: impl Fn(T, T) -> T) {
    for (dst, src) in dst.iter_mut().zip(src) {
        *dst = op(*dst, *src);
    }
}

/// The quiet NaN for any NaN. Its upper half is that of fp16 and bf16 too.
fn canonical(value: f32) -> f32 {
    if value.is_nan() { f32::from_bits(0x7fc0_0000) } else { value }
}

fn maximum(a: f32, b: f32) -> f32 {
    // Equal values differ at most in the sign of a zero.
    let equal = f32::from_bits(a.to_bits() & b.to_bits());
    let larger = if a > b { a } else { b };
    let value = if a == b { equal } else { larger };
    if a.is_nan() { canonical(a) } else { canonical(value) }
}

fn minimum(a: f32, b: f32) -> f32 {
    let equal = f32::from_bits(a.to_bits() | b.to_bits());
    let smaller = if a < b { a } else { b };
    let value = if a == b { equal } else { smaller };
    if a.is_nan() { canonical(a) } else { canonical(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value of a small float in units of its smallest subnormal: an integer that is exact, for a reference that shares
    /// nothing with the code above. `None`: infinite or NaN.
    fn exact(bits: u16, fraction_bits: u32) -> Option<i128> {
        let exponent_bits = 15 - fraction_bits;
        let exponent = u32::from(bits) >> fraction_bits & ((1 << exponent_bits) - 1);
        let fraction = i128::from(bits & ((1 << fraction_bits) - 1));
        if exponent == (1 << exponent_bits) - 1 {
            return None;
        }
        let magnitude = match exponent {
            0 => fraction,
            // Exponents of bf16 go up to 254: what does not fit into 128 bits is not among the values of the test.
            _ => (fraction + (1 << fraction_bits)).checked_shl(exponent - 1).filter(|_| exponent < 110)?,
        };
        Some(if bits >> 15 == 1 { -magnitude } else { magnitude })
    }

    /// The float nearest to `value` units, ties to even; above the largest, infinity.
    fn round(value: i128, fraction_bits: u32, negative_zero: bool) -> u16 {
        let sign = if value < 0 || (value == 0 && negative_zero) { 0x8000 } else { 0 };
        let magnitude = value.unsigned_abs();
        let len = 128 - magnitude.leading_zeros();
        let excess = len.saturating_sub(fraction_bits + 1);
        let mut kept = magnitude >> excess;
        let rest = magnitude & ((1 << excess) - 1);
        let half = if excess == 0 { 0 } else { 1u128 << (excess - 1) };
        if excess > 0 && (rest > half || (rest == half && kept & 1 == 1)) {
            kept += 1;
        }
        // A carry out of the significand runs into the exponent, as it should.
        let bits = u128::from(excess) * (1 << fraction_bits) + kept;
        let infinity = ((1u128 << (15 - fraction_bits)) - 1) << fraction_bits;
        sign | bits.min(infinity) as u16
    }

    fn is_nan(bits: u16, fraction_bits: u32) -> bool {
        bits & 0x7fff > infinity(fraction_bits)
    }

    fn infinity(fraction_bits: u32) -> u16 {
        0x7fff >> fraction_bits << fraction_bits
    }

    /// A key that orders everything but NaN, -0 below +0.
    fn key(bits: u16) -> i32 {
        if bits >> 15 == 1 { -1 - i32::from(bits & 0x7fff) } else { i32::from(bits) }
    }

    fn reference(a: u16, b: u16, operator: u8, fraction_bits: u32) -> u16 {
        let nan = 0x7fff >> (fraction_bits - 1) << (fraction_bits - 1);
        if is_nan(a, fraction_bits) || is_nan(b, fraction_bits) {
            return nan;
        }
        match operator {
            1 => match (exact(a, fraction_bits), exact(b, fraction_bits)) {
                (Some(left), Some(right)) => round(left + right, fraction_bits, a == 0x8000 && b == 0x8000),
                (None, Some(_)) => a,
                (Some(_), None) => b,
                (None, None) if a == b => a,
                (None, None) => nan,
            },
            2 => std::cmp::max_by_key(a, b, |bits| key(*bits)),
            _ => std::cmp::min_by_key(a, b, |bits| key(*bits)),
        }
    }

    fn reduce(opcode: u8, dst: &[u8], src: &[u8]) -> Vec<u8> {
        let reduce = Reduce::from_opcode(opcode).unwrap();
        let mut out = Vec::new();
        for (dst, src) in dst.chunks(BLOCK_LEN).zip(src.chunks(BLOCK_LEN)) {
            let (mut left, mut right) = (Block([0; BLOCK_LEN]), Block([0; BLOCK_LEN]));
            left.0[..dst.len()].copy_from_slice(dst);
            right.0[..src.len()].copy_from_slice(src);
            reduce.apply(&mut left, &right, dst.len());
            out.extend_from_slice(&left.0[..dst.len()]);
        }
        out
    }

    fn random(count: usize) -> impl Iterator<Item = u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state ^ state >> 29
        })
        .take(count)
    }

    /// Every pair of `values`, under each operator.
    fn halves_equal_the_reference(type_code: u8, fraction_bits: u32, values: &[u16]) {
        let pairs: Vec<_> = values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))).collect();
        let dst: Vec<u8> = pairs.iter().flat_map(|(a, _)| a.to_le_bytes()).collect();
        let src: Vec<u8> = pairs.iter().flat_map(|(_, b)| b.to_le_bytes()).collect();
        for operator in 1..=3 {
            let out = reduce(type_code | operator, &dst, &src);
            for ((a, b), out) in pairs.iter().zip(out.chunks_exact(2)) {
                let out = u16::from_le_bytes([out[0], out[1]]);
                let expected = reference(*a, *b, operator, fraction_bits);
                assert_eq!(out, expected, "{a:#06x} and {b:#06x}, operator {operator}: {out:#06x} != {expected:#06x}");
            }
        }
    }

    /// Both signs of: zeros, subnormals, every power of two and its neighbours, odd fractions, largest, infinity, NaNs.
    fn interesting(fraction_bits: u32, exponents: impl Iterator<Item = u16>) -> Vec<u16> {
        let infinity = infinity(fraction_bits);
        let powers = exponents.flat_map(|exponent| {
            let power = exponent << fraction_bits;
            [power.wrapping_sub(1) & 0x7fff, power, power + 1, power + (1 << (fraction_bits - 1)), power + 5]
        });
        let ends = [0, 1, 2, 3, infinity, infinity + 1, infinity | 1 << (fraction_bits - 1), 0x7fff];
        let positive: Vec<u16> = ends.into_iter().chain(powers).collect();
        positive.iter().flat_map(|bits| [*bits, bits | 0x8000]).collect()
    }

    #[test]
    fn fp16_pairs_equal_the_reference() {
        let mut values = interesting(10, 1..31);
        values.push(0x7bff);
        values.extend(random(400).map(|word| word as u16));
        halves_equal_the_reference(0x60, 10, &values);
    }

    #[test]
    fn bf16_pairs_equal_the_reference() {
        // Exponents whose exact sum fits into the reference, and by themselves those at the top.
        let mut values = interesting(7, 1..100);
        values.extend(random(300).map(|word| word as u16).filter(|bits| bits >> 7 & 0xff < 100));
        halves_equal_the_reference(0x80, 7, &values);
        for (a, b, sum) in [(0x7f7f, 0x7f7f, 0x7f80), (0x7f7f, 0x7600, 0x7f7f), (0x7f00, 0x7f00, 0x7f80)] {
            assert_eq!(reduce(0x81, &u16::to_le_bytes(a), &u16::to_le_bytes(b)), u16::to_le_bytes(sum));
        }
    }

    /// Sum of two finite singles, rounded to nearest even, in integers alone.
    fn single_sum(a: u32, b: u32) -> u32 {
        // Significand with its sign, in units of 2 to the power of an exponent that is 1 for the smallest numbers.
        let parts = |bits: u32| {
            let (exponent, fraction) = (bits >> 23 & 0xff, i128::from(bits & 0x7f_ffff));
            let magnitude = if exponent == 0 { fraction } else { fraction + (1 << 23) };
            (if bits >> 31 == 1 { -magnitude } else { magnitude }, exponent.max(1))
        };
        let (mut large, mut small) = (parts(a), parts(b));
        if large.1 < small.1 {
            (large, small) = (small, large);
        }
        let shift = large.1 - small.1;
        // So far below that it can only break a tie: any value of its sign does, 80 bits below.
        let (units, exponent) = match shift {
            0..=80 => ((large.0 << shift) + small.0, small.1),
            _ => ((large.0 << 80) + small.0.signum(), large.1 - 80),
        };
        if units == 0 {
            return a & b & (1 << 31);
        }
        let (magnitude, len) = (units.unsigned_abs(), 128 - units.unsigned_abs().leading_zeros());
        let excess = len.saturating_sub(24);
        let up = 24u32.saturating_sub(len).min(exponent - 1);
        let (mut kept, rest) = (magnitude >> excess << up, magnitude & ((1 << excess) - 1));
        let half = if excess == 0 { 0 } else { 1 << (excess - 1) };
        if excess > 0 && (rest > half || (rest == half && kept & 1 == 1)) {
            kept += 1;
        }
        // The leading bit of the significand, and a carry out of it, add to the exponent.
        let bits = u128::from(exponent + excess - up - 1) * (1 << 23) + kept;
        let sign = if units < 0 { 1 << 31 } else { 0 };
        sign | bits.min(0x7f80_0000) as u32
    }

    fn single_reference(a: u32, b: u32, operator: u8) -> u32 {
        let (infinity, magnitude) = (0x7f80_0000, |bits: u32| bits & 0x7fff_ffff);
        // Orders everything but NaN, -0 below +0.
        let key =
            |bits: &u32| i64::from(magnitude(*bits)) * if bits >> 31 == 1 { -1 } else { 1 } - i64::from(bits >> 31);
        let is_infinite = |bits: u32| magnitude(bits) == infinity;
        match operator {
            _ if magnitude(a) > infinity || magnitude(b) > infinity => 0x7fc0_0000,
            1 if is_infinite(a) && is_infinite(b) && a != b => 0x7fc0_0000,
            1 if is_infinite(a) => a,
            1 if is_infinite(b) => b,
            1 => single_sum(a, b),
            2 => std::cmp::max_by_key(a, b, key),
            _ => std::cmp::min_by_key(a, b, key),
        }
    }

    #[test]
    fn fp32_pairs_equal_the_reference() {
        let odd =
            [0, 1, 2, 0x7f_ffff, 0x80_0000, 0x80_0001, 0x7f80_0000, 0x7f80_0001, 0x7fc0_1234, 0x7f7f_ffff, 0x3f80_0000];
        let odd: Vec<u32> = odd.into_iter().flat_map(|bits| [bits, bits | 1 << 31]).collect();
        let words: Vec<u32> = random(20_000).map(|word| word as u32).collect();
        let mut pairs: Vec<(u32, u32)> = odd.iter().flat_map(|a| words.iter().chain(&odd).map(|b| (*a, *b))).collect();
        pairs.extend(words.iter().zip(words.iter().rev()).map(|(a, b)| (*a, *b)));
        // Near each other, so that sums lose, keep and tie their last bits.
        pairs.extend(words.iter().zip(words.iter().rev()).map(|(a, b)| {
            let exponent = (a >> 23 & 0xff).saturating_sub(b & 31).max(b & 1);
            (*a, (b & 0x807f_ffff) | (exponent << 23))
        }));
        let dst: Vec<u8> = pairs.iter().flat_map(|(a, _)| a.to_le_bytes()).collect();
        let src: Vec<u8> = pairs.iter().flat_map(|(_, b)| b.to_le_bytes()).collect();
        for operator in 1..=3 {
            let out = reduce(0x70 | operator, &dst, &src);
            for ((a, b), out) in pairs.iter().zip(out.chunks_exact(4)) {
                let (out, expected) = (u32::from_le_bytes(out.try_into().unwrap()), single_reference(*a, *b, operator));
                assert_eq!(
                    out, expected,
                    "{a:#010x} and {b:#010x}, operator {operator}: {out:#010x} != {expected:#010x}"
                );
            }
        }
    }

    #[test]
    fn int8_pairs_wrap() {
        let pairs: Vec<(i8, i8)> = (i8::MIN..=i8::MAX).flat_map(|a| (i8::MIN..=i8::MAX).map(move |b| (a, b))).collect();
        let dst: Vec<u8> = pairs.iter().map(|(a, _)| *a as u8).collect();
        let src: Vec<u8> = pairs.iter().map(|(_, b)| *b as u8).collect();
        let expect = |of: fn(i16, i16) -> i16| -> Vec<u8> {
            pairs.iter().map(|(a, b)| of(i16::from(*a), i16::from(*b)) as u8).collect()
        };
        assert!(reduce(0x01, &dst, &src) == expect(|a, b| a + b));
        assert!(reduce(0x02, &dst, &src) == expect(|a, b| if a > b { a } else { b }));
        assert!(reduce(0x03, &dst, &src) == expect(|a, b| if a < b { a } else { b }));
    }

    #[test]
    fn wider_integers_wrap_and_compare_signed() {
        let words: Vec<u64> = random(5000).collect();
        let dst: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let src: Vec<u8> = words.iter().rev().flat_map(|word| word.to_le_bytes()).collect();
        for (index, operator) in [(0, 1), (1, 2), (2, 3)] {
            let of = |a: i64, b: i64| [a + b, a.max(b), a.min(b)][index];
            let i16s = |bytes: &[u8]| i64::from(i16::from_le_bytes([bytes[0], bytes[1]]));
            let expected: Vec<u8> = dst
                .chunks(2)
                .zip(src.chunks(2))
                .flat_map(|(a, b)| (of(i16s(a), i16s(b)) as i16).to_le_bytes())
                .collect();
            assert!(reduce(0x10 | operator, &dst, &src) == expected, "int16, operator {operator}");
            let i32s = |bytes: &[u8]| i64::from(i32::from_le_bytes(bytes.try_into().unwrap()));
            let expected: Vec<u8> = dst
                .chunks(4)
                .zip(src.chunks(4))
                .flat_map(|(a, b)| (of(i32s(a), i32s(b)) as i32).to_le_bytes())
                .collect();
            assert!(reduce(0x20 | operator, &dst, &src) == expected, "int32, operator {operator}");
        }
    }

    #[test]
    fn opcodes_of_the_table_and_no_others() {
        let known: Vec<u8> = (0..=255).filter(|opcode| Reduce::from_opcode(*opcode).is_some()).collect();
        let table = [0x00, 0x10, 0x20, 0x60, 0x70, 0x80].into_iter().flat_map(|code| (1..=3).map(move |op| code | op));
        assert_eq!(known, table.collect::<Vec<u8>>());
    }
}
