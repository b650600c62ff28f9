//! What the table of one SoC says: its kinds of descriptors, and where the parameters of each are.

use super::layout::{Fixed, Layout, Spec, extract};
use super::task::{Action, DecodeError, Effect, SQE_LEN, Until};

/// The descriptors of one SoC.
pub(super) struct Table {
    /// The id of a task of any kind.
    pub(super) task_id: Spec,
    /// The most frequent one first.
    pub(super) kinds: &'static [Kind],
}

impl Table {
    /// The kind of a descriptor.
    ///
    /// # Errors
    /// [`DecodeError::UnknownType`]: the table has no such type.
    pub(super) fn kind(&self, sqe: &[u8; SQE_LEN]) -> Result<&'static Kind, DecodeError> {
        let value = sqe[0] & 0x3f;
        self.kinds.iter().find(|kind| kind.number == value).ok_or(DecodeError::UnknownType { value })
    }
}

/// One kind of descriptor.
pub(super) struct Kind {
    /// Its type, bits 0..6 of byte 0.
    pub(super) number: u8,
    pub(super) layout: Layout,
    pub(super) meaning: Meaning,
}

/// What a kind of descriptor asks for, and where its parameters are.
pub(super) enum Meaning {
    Sdma {
        src: &'static Spec,
        dst: &'static Spec,
        len: &'static Spec,
    },
    /// A record or wait; the first form whose conditions hold.
    Notify(&'static [Form]),
    WriteValue {
        /// Low and high part of the address.
        addr: [&'static Spec; 2],
        value: &'static Spec,
    },
    /// A write of 1 to a notify register of another chip.
    RemoteRecord {
        /// Low and high part of the address.
        addr: [&'static Spec; 2],
    },
    PlaceHolder,
    UbDoorbell,
}

/// A field, and what it has to hold.
pub(super) type Holds = (&'static Spec, u64);

/// Most fields whose value a form of a notify fixes.
pub(super) const FLAGS: usize = 8;

/// One form of a notify record or wait.
pub(super) struct Form {
    /// What tells it apart from the forms after it.
    when: &'static [Holds],
    /// What else it must hold, in the order in which errors name it.
    flags: [Option<Holds>; FLAGS],
    /// These.
    fixed: Fixed,
    id: &'static Spec,
    does: Does,
}

/// What a form of a notify does.
pub(super) enum Does {
    Set,
    SetBits { bits: &'static Spec },
    Write { value: &'static Spec },
    AwaitSet { timeout: &'static Spec },
    AwaitAnyOf { bits: &'static Spec, timeout: &'static Spec },
    AwaitEqual { value: &'static Spec, timeout: &'static Spec },
}

impl Form {
    pub(super) const fn new(
        when: &'static [Holds],
        flags: [Option<Holds>; FLAGS],
        id: &'static Spec,
        does: Does,
    ) -> Self {
        let mut fixed = Layout::fixed(&[], &[]);
        let mut index = 0;
        while index < FLAGS {
            if let Some((spec, value)) = flags[index] {
                fixed = fixed.with(spec, value);
            }
            index += 1;
        }
        Self { when, flags, fixed, id, does }
    }

    pub(super) fn is_of(&self, sqe: &[u8; SQE_LEN]) -> bool {
        self.when.iter().all(|(spec, value)| extract(sqe, spec) == *value)
    }

    /// # Errors
    /// [`DecodeError::Unsupported`]: the first flag that is not part of the form.
    pub(super) fn check(&self, sqe: &[u8; SQE_LEN]) -> Result<(), DecodeError> {
        if self.fixed.matches(sqe) { Ok(()) } else { self.find_wrong(sqe) }
    }

    #[cold]
    fn find_wrong(&self, sqe: &[u8; SQE_LEN]) -> Result<(), DecodeError> {
        for (spec, supported) in self.flags.iter().flatten() {
            let (value, supported) = (extract(sqe, spec), *supported);
            if value != supported {
                return Err(DecodeError::Unsupported { name: spec.name, byte: spec.byte, value, supported });
            }
        }
        Ok(())
    }

    pub(super) fn action(&self, sqe: &[u8; SQE_LEN]) -> Action {
        let field = |spec| extract(sqe, spec) as u32;
        let id = field(self.id);
        let record = |effect| Action::Record { id, effect };
        let wait = |until, timeout| Action::Wait { id, until, timeout_s: field(timeout) };
        match self.does {
            Does::Set => record(Effect::Set),
            Does::SetBits { bits } => record(Effect::SetBits(field(bits))),
            Does::Write { value } => record(Effect::Write(field(value))),
            Does::AwaitSet { timeout } => wait(Until::Set, timeout),
            Does::AwaitAnyOf { bits, timeout } => wait(Until::AnyOf(field(bits)), timeout),
            Does::AwaitEqual { value, timeout } => wait(Until::Equal(field(value)), timeout),
        }
    }
}
