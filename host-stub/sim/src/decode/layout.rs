//! Where the fields of a descriptor are, what they may hold, and the check that they do.

use super::task::{DecodeError, Field, SQE_LEN};

const WORDS: usize = SQE_LEN / 8;

/// Where a field is, and what it may hold.
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) byte: usize,
    /// First bit, counted from bit 0 of `byte`.
    pub(crate) bit: u32,
    pub(crate) width: u32,
    pub(crate) rule: Rule,
}

/// What the simulated device accepts in a field.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// Anything.
    Any,
    /// Reserved: zero.
    Reserved,
    /// A feature of the hardware that is not simulated: only this value.
    Only(u64),
}

pub(crate) const fn spec(name: &'static str, byte: usize, bit: u32, width: u32, rule: Rule) -> Spec {
    Spec { name, byte, bit, width, rule }
}

impl Spec {
    /// First bit in its 64-bit word: a field never crosses one.
    const fn shift(&self) -> u32 {
        (self.byte % 8) as u32 * 8 + self.bit
    }

    const fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }
}

/// The bits of a descriptor that leave no choice, and what they are.
pub(crate) struct Fixed {
    mask: [u64; WORDS],
    bits: [u64; WORDS],
}

impl Fixed {
    /// As before, and `spec` holds `value`.
    pub(crate) const fn with(mut self, spec: &Spec, value: u64) -> Self {
        self.mask[spec.byte / 8] |= spec.mask() << spec.shift();
        self.bits[spec.byte / 8] |= value << spec.shift();
        self
    }

    const fn with_rules(mut self, specs: &[Spec]) -> Self {
        let mut index = 0;
        while index < specs.len() {
            self = match specs[index].rule {
                Rule::Any => self,
                Rule::Reserved => self.with(&specs[index], 0),
                Rule::Only(value) => self.with(&specs[index], value),
            };
            index += 1;
        }
        self
    }

    /// Whether they are, which eight compares tell.
    pub(crate) fn matches(&self, sqe: &[u8; SQE_LEN]) -> bool {
        let wrong = |index: usize| (word64(sqe, 8 * index) & self.mask[index]) ^ self.bits[index];
        (0..WORDS).fold(0, |all, index| all | wrong(index)) == 0
    }
}

/// The fields of one kind of descriptor.
pub(crate) struct Layout {
    tables: [&'static [Spec]; 2],
    fixed: Fixed,
}

impl Layout {
    /// Header, and what follows it.
    pub(crate) const fn new(header: &'static [Spec], body: &'static [Spec]) -> Self {
        Self { tables: [header, body], fixed: Self::fixed(header, body) }
    }

    /// What the rules of both tables leave no choice about.
    pub(crate) const fn fixed(header: &[Spec], body: &[Spec]) -> Fixed {
        Fixed { mask: [0; WORDS], bits: [0; WORDS] }.with_rules(header).with_rules(body)
    }

    pub(crate) fn specs(&self) -> impl Iterator<Item = &'static Spec> {
        self.tables.into_iter().flatten()
    }

    /// Every field, in the order of its bytes, whatever it holds.
    pub(crate) fn list(&self, sqe: &[u8; SQE_LEN]) -> Vec<Field> {
        let field = |spec: &Spec| Field { name: spec.name, byte: spec.byte, value: extract(sqe, spec) };
        self.specs().map(field).collect()
    }

    /// # Errors
    /// [`DecodeError`]: the first of the fields that breaks its rule.
    pub(crate) fn check(&self, sqe: &[u8; SQE_LEN]) -> Result<(), DecodeError> {
        if self.fixed.matches(sqe) { Ok(()) } else { self.find_wrong(sqe) }
    }

    /// Looks at each field, to name the wrong one.
    #[cold]
    fn find_wrong(&self, sqe: &[u8; SQE_LEN]) -> Result<(), DecodeError> {
        for spec in self.specs() {
            let value = extract(sqe, spec);
            match spec.rule {
                Rule::Reserved if value != 0 => {
                    return Err(DecodeError::Reserved { name: spec.name, byte: spec.byte, value });
                }
                Rule::Only(supported) if value != supported => {
                    return Err(DecodeError::Unsupported { name: spec.name, byte: spec.byte, value, supported });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The field of this name. Meant for constants, where a name that there is not does not compile.
pub(crate) const fn find(specs: &'static [Spec], name: &str) -> &'static Spec {
    let mut index = 0;
    while index < specs.len() {
        if is_same(specs[index].name.as_bytes(), name.as_bytes()) {
            return &specs[index];
        }
        index += 1;
    }
    panic!("a field that the table does not have")
}

const fn is_same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Value of a field.
pub(crate) fn extract(sqe: &[u8; SQE_LEN], spec: &Spec) -> u64 {
    (word64(sqe, spec.byte / 8 * 8) >> spec.shift()) & spec.mask()
}

pub(crate) fn word64(sqe: &[u8; SQE_LEN], byte: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&sqe[byte..byte + 8]);
    u64::from_le_bytes(word)
}

/// Bytes 8..64 of type 8 on every SoC, with what the form has in four of their fields.
pub(crate) const fn write_value(kernel_credit: Rule, va: u64, sub_type: u64, value: Rule) -> [Spec; 19] {
    [
        spec("res1", 8, 0, 32, Rule::Reserved),
        spec("res2", 12, 0, 16, Rule::Reserved),
        spec("kernel_credit", 14, 0, 8, kernel_credit),
        spec("res3", 15, 0, 8, Rule::Reserved),
        spec("addr_low", 16, 0, 32, Rule::Any),
        spec("addr_high", 20, 0, 17, Rule::Any),
        spec("res4", 22, 1, 3, Rule::Reserved),
        spec("awsize", 22, 4, 3, Rule::Only(2)),
        spec("snoop", 22, 7, 1, Rule::Only(0)),
        spec("awcache", 23, 0, 4, Rule::Only(0)),
        spec("awprot", 23, 4, 3, Rule::Only(0)),
        spec("va", 23, 7, 1, Rule::Only(va)),
        spec("res5", 24, 0, 32, Rule::Reserved),
        spec("sub_type", 28, 0, 32, Rule::Only(sub_type)),
        spec("value0", 32, 0, 32, value),
        spec("value1", 36, 0, 32, Rule::Only(0)),
        spec("value2_3", 40, 0, 64, Rule::Only(0)),
        spec("value4_5", 48, 0, 64, Rule::Only(0)),
        spec("value6_7", 56, 0, 64, Rule::Only(0)),
    ]
}
