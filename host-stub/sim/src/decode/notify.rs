//! Records and waits of notifies: six forms of one table.

use super::header::{HEADER, TYPE_NOTIFY_RECORD};
use super::layout::Rule::{Any, Only, Reserved};
use super::layout::{Fixed, Layout, Spec, extract, find, spec};
use super::task::{Action, DecodeError, Effect, SQE_LEN, Until};

/// Bytes 8..64 of types 6 and 7.
pub(super) const NOTIFY: &[Spec] = &[
    spec("notify_id", 8, 0, 17, Any),
    spec("res1", 10, 1, 13, Reserved),
    spec("cnt_flag", 11, 6, 1, Any),
    spec("clr_flag", 11, 7, 1, Any),
    spec("sub_type", 12, 0, 16, Any),
    spec("kernel_credit", 14, 0, 8, Any),
    spec("res2", 15, 0, 5, Reserved),
    spec("sqe_length", 15, 5, 3, Only(0)),
    spec("cnt_value", 16, 0, 32, Any),
    spec("wait_mode", 20, 0, 2, Any),
    spec("record_mode", 20, 2, 3, Any),
    spec("bitmap", 20, 5, 1, Any),
    spec("res3", 20, 6, 26, Reserved),
    spec("timeout", 24, 0, 32, Any),
    spec("exe_result", 28, 0, 32, Only(0)),
    spec("res4", 32, 0, 64, Reserved),
    spec("res5", 40, 0, 64, Reserved),
    spec("res6", 48, 0, 64, Reserved),
    spec("res7", 56, 0, 64, Reserved),
];

pub(super) static LAYOUT: Layout = Layout::new(HEADER, NOTIFY);

const ID: &Spec = find(NOTIFY, "notify_id");
const COUNTS: &Spec = find(NOTIFY, "cnt_flag");
const CLEARS: &Spec = find(NOTIFY, "clr_flag");
const SUB_TYPE: &Spec = find(NOTIFY, "sub_type");
const CREDIT: &Spec = find(NOTIFY, "kernel_credit");
const VALUE: &Spec = find(NOTIFY, "cnt_value");
const WAIT_MODE: &Spec = find(NOTIFY, "wait_mode");
const RECORD_MODE: &Spec = find(NOTIFY, "record_mode");
const BITMAP: &Spec = find(NOTIFY, "bitmap");
const TIMEOUT: &Spec = find(NOTIFY, "timeout");

/// The fields that tell the forms apart, in the order in which they are looked at.
const FLAGS: [&Spec; 8] = [CLEARS, SUB_TYPE, CREDIT, WAIT_MODE, RECORD_MODE, BITMAP, VALUE, TIMEOUT];

/// What [`FLAGS`] must hold in one form; `None`: its parameters.
struct Form {
    flags: [Option<u64>; 8],
    /// These and the rules of the table.
    fixed: Fixed,
}

const fn form(flags: [u64; 6], value: Option<u64>, timeout: Option<u64>) -> Form {
    let [clears, sub_type, credit, wait_mode, record_mode, bitmap] = flags;
    let flags =
        [Some(clears), Some(sub_type), Some(credit), Some(wait_mode), Some(record_mode), Some(bitmap), value, timeout];
    let mut fixed = Layout::fixed(HEADER, NOTIFY);
    let mut index = 0;
    while index < FLAGS.len() {
        if let Some(value) = flags[index] {
            fixed = fixed.with(FLAGS[index], value);
        }
        index += 1;
    }
    Form { flags, fixed }
}

static RECORD: Form = form([0, 0, 254, 0, 0, 0], Some(0), Some(0));
static RECORD_BITS: Form = form([0, 2, 254, 0, 0, 0], None, Some(0));
static RECORD_VALUE: Form = form([0, 2, 254, 0, 2, 0], None, Some(0));
/// A wait needs the credit "never": the queue's own timer would end it, and it would miss its record.
static WAIT: Form = form([1, 1, 255, 0, 0, 0], Some(0), None);
static WAIT_BITS: Form = form([1, 3, 255, 0, 0, 1], None, Some(0));
static WAIT_VALUE: Form = form([1, 3, 255, 1, 0, 0], None, Some(0));

/// The form of a notify record or wait; every flag that is not part of it is an error.
pub(super) fn decode(sqe: &[u8; SQE_LEN]) -> Result<Action, DecodeError> {
    let field = |spec| extract(sqe, spec);
    let (id, value, timeout_s) = (field(ID) as u32, field(VALUE) as u32, field(TIMEOUT) as u32);
    let record = |effect| Action::Record { id, effect };
    let wait = |until| Action::Wait { id, until, timeout_s };
    let (form, action) = match (sqe[0] & 0x3f == TYPE_NOTIFY_RECORD, field(COUNTS) == 1) {
        (true, false) => (&RECORD, record(Effect::Set)),
        (true, true) if field(RECORD_MODE) == 0 => (&RECORD_BITS, record(Effect::SetBits(value))),
        (true, true) => (&RECORD_VALUE, record(Effect::Write(value))),
        (false, false) => (&WAIT, wait(Until::Set)),
        (false, true) if field(BITMAP) == 1 => (&WAIT_BITS, wait(Until::AnyOf(value))),
        (false, true) => (&WAIT_VALUE, wait(Until::Equal(value))),
    };
    if !form.fixed.matches(sqe) {
        LAYOUT.check(sqe)?;
        form.find_wrong(sqe)?;
    }
    Ok(action)
}

impl Form {
    #[cold]
    fn find_wrong(&self, sqe: &[u8; SQE_LEN]) -> Result<(), DecodeError> {
        for (spec, supported) in FLAGS.into_iter().zip(self.flags) {
            let value = extract(sqe, spec);
            if let Some(supported) = supported.filter(|supported| *supported != value) {
                return Err(DecodeError::Unsupported { name: spec.name, byte: spec.byte, value, supported });
            }
        }
        Ok(())
    }
}
