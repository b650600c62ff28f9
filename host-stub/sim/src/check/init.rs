//! Which bytes of the allocations were never written.
//!
//! Bytes that the device or its functions write count as written. Stores of the program's own code are not seen: whether a
//! byte really still holds what the allocation left there, its contents tell ([`Contents`]).

use std::ops::Range;

use super::ranges::RangeMap;

/// Bytes after which the fill pattern repeats.
pub const PERIOD: u64 = 16;
/// The fill pattern: byte `a % PERIOD` of it lies at address `a`.
pub const PATTERN: [u8; PERIOD as usize] =
    [0xb6, 0x5d, 0xe3, 0x8f, 0xd4, 0x73, 0xa9, 0xce, 0x9b, 0x67, 0xf2, 0x85, 0xdc, 0x71, 0xba, 0xed];

/// What memory that was never written holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The fill pattern: at address `a` its byte `(a + phase) % PERIOD`.
    Fill {
        /// 0 in an allocation; a copy by another distance than a multiple of the period shifts it.
        phase: u8,
    },
    /// Zeros: the allocation is too large to be filled.
    Zeros,
}

/// How sure it is that bytes were never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// All of them hold what the allocation left there, and nothing else is likely to have written just that.
    Certain,
    /// They are zeros in a page that was touched: the program's own code may have written them.
    Possible,
}

/// What the bytes of the memory tell.
pub trait Contents {
    /// The parts of `range` that still hold `left`, in order of address. Other bytes were written.
    fn untouched(&self, range: Range<u64>, left: Left) -> Vec<(Range<u64>, Certainty)>;
}

/// Bytes that were never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unwritten {
    left: Left,
    is_carried: bool,
}

/// A read of bytes that were never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uninitialised {
    /// The bytes.
    pub range: Range<u64>,
    /// A task has copied them there from memory that was never written. `false`: nothing has touched them since allocation.
    pub is_carried: bool,
    /// How sure it is.
    pub certainty: Certainty,
}

/// The bytes of all allocations that were never written.
#[derive(Clone, Debug, Default)]
pub struct Init {
    unwritten: RangeMap<Unwritten>,
}

impl Init {
    /// An allocation was made, which holds `left`.
    pub fn allocated(&mut self, range: Range<u64>, left: Left) {
        self.unwritten.set(range, Unwritten { left, is_carried: false });
    }

    /// Something was written, or given back.
    pub fn written(&mut self, range: Range<u64>) {
        self.unwritten.clear(range);
    }

    /// Whether every byte of `range` is written, as far as is known. Fast where all is.
    pub fn is_written(&self, range: Range<u64>) -> bool {
        self.unwritten.is_empty() || self.unwritten.pieces(range).next().is_none()
    }

    /// A copy between two ranges of the device carries the state along; it reads nothing that matters yet. Called before the
    /// bytes move.
    pub fn copied(&mut self, dst: u64, src: Range<u64>, contents: &impl Contents) {
        if self.unwritten.is_empty() {
            return;
        }
        let dst_range = dst..dst + (src.end - src.start);
        let carried: Vec<_> = self.unwritten.pieces(src.clone()).map(|(range, state)| (range, *state)).collect();
        self.unwritten.clear(dst_range);
        for (range, Unwritten { left: was_left, .. }) in carried {
            let left = match was_left {
                Left::Zeros => Left::Zeros,
                Left::Fill { phase } => {
                    let shift = src.start.wrapping_sub(dst) % PERIOD;
                    Left::Fill { phase: ((u64::from(phase) + shift) % PERIOD) as u8 }
                }
            };
            for (range, _) in contents.untouched(range, was_left) {
                let to = dst + (range.start - src.start);
                self.unwritten.set(to..to + (range.end - range.start), Unwritten { left, is_carried: true });
            }
        }
    }

    /// Something reads `range` and uses its bytes, which count as written from now on. Gives what was never written.
    pub fn used(&mut self, range: Range<u64>, contents: &impl Contents) -> Vec<Uninitialised> {
        if self.is_written(range.clone()) {
            return Vec::new();
        }
        let pieces = self.unwritten.pieces(range.clone());
        let found = pieces.flat_map(|(range, Unwritten { left, is_carried })| {
            let parts = contents.untouched(range, *left).into_iter();
            parts.map(|(range, certainty)| Uninitialised { range, is_carried: *is_carried, certainty })
        });
        let found = found.collect();
        self.unwritten.clear(range);
        found
    }

    /// Ranges that are kept.
    pub fn len(&self) -> usize {
        self.unwritten.len()
    }

    /// Whether every byte is written.
    pub fn is_empty(&self) -> bool {
        self.unwritten.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: Left = Left::Fill { phase: 0 };

    /// Memory of 256 bytes.
    struct Bytes([u8; 256]);

    impl Bytes {
        fn pattern(at: u64) -> u8 {
            0xe0 | (at % PERIOD) as u8
        }

        fn filled() -> Self {
            Self(std::array::from_fn(|at| Self::pattern(at as u64)))
        }

        fn copy(&mut self, dst: u64, src: Range<u64>) {
            self.0.copy_within(src.start as usize..src.end as usize, dst as usize);
        }
    }

    impl Contents for Bytes {
        fn untouched(&self, range: Range<u64>, left: Left) -> Vec<(Range<u64>, Certainty)> {
            let byte = |at: u64| self.0[at as usize];
            let (is_left, certainty) = match left {
                Left::Fill { phase } => {
                    (range.clone().all(|at| byte(at) == Self::pattern(at + u64::from(phase))), Certainty::Certain)
                }
                Left::Zeros => (range.clone().all(|at| byte(at) == 0), Certainty::Possible),
            };
            if is_left { vec![(range, certainty)] } else { Vec::new() }
        }
    }

    fn uninitialised(range: Range<u64>, is_carried: bool) -> Uninitialised {
        Uninitialised { range, is_carried, certainty: Certainty::Certain }
    }

    #[test]
    fn bytes_that_were_never_written_are_told_once() {
        let (mut init, bytes) = (Init::default(), Bytes::filled());
        init.allocated(0..100, FILL);
        init.written(10..20);
        assert_eq!(init.used(5..25, &bytes), [uninitialised(5..10, false), uninitialised(20..25, false)]);
        assert_eq!(init.used(5..25, &bytes), []);
        assert_eq!(init.used(0..5, &bytes), [uninitialised(0..5, false)]);
        assert_eq!(init.used(100..200, &bytes), [], "not of an allocation");
    }

    #[test]
    fn copies_carry_the_state_over_any_distance() {
        for (first, second) in [(128, 200), (131, 209), (129, 250 - 20)] {
            let (mut init, mut bytes) = (Init::default(), Bytes::filled());
            init.allocated(0..256, FILL);
            init.written(5..6);
            bytes.0[5] = 0;
            init.copied(first, 0..20, &bytes);
            bytes.copy(first, 0..20);
            init.copied(second, first..first + 20, &bytes);
            bytes.copy(second, first..first + 20);
            let expected = [uninitialised(second..second + 5, true), uninitialised(second + 6..second + 20, true)];
            assert_eq!(init.used(second..second + 20, &bytes), expected, "{first} {second}");
        }
    }

    #[test]
    fn copy_of_written_bytes_writes() {
        let (mut init, mut bytes) = (Init::default(), Bytes::filled());
        init.allocated(0..256, FILL);
        init.written(0..10);
        init.copied(100, 0..20, &bytes);
        bytes.copy(100, 0..20);
        assert_eq!(init.used(100..110, &bytes), []);
        assert_eq!(init.used(110..111, &bytes), [uninitialised(110..111, true)]);
    }

    #[test]
    fn own_stores_of_the_program_count_as_written() {
        let (mut init, mut bytes) = (Init::default(), Bytes::filled());
        init.allocated(0..256, FILL);
        bytes.0[3] = 1;
        assert_eq!(init.used(0..8, &bytes), []);
        bytes.0[20] = 1;
        init.copied(100, 16..32, &bytes);
        bytes.copy(100, 16..32);
        assert_eq!(init.used(100..116, &bytes), []);
        assert_eq!(init.used(40..48, &bytes), [uninitialised(40..48, false)]);
    }

    #[test]
    fn zeros_of_a_large_allocation_are_only_possible() {
        let (mut init, bytes) = (Init::default(), Bytes([0; 256]));
        init.allocated(0..256, Left::Zeros);
        let possible = Uninitialised { range: 0..8, is_carried: false, certainty: Certainty::Possible };
        assert_eq!(init.used(0..8, &bytes), [possible]);
    }
}
