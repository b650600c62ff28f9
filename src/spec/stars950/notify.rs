//! Notify record and wait, the one-bit form and both count forms.

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

use super::{CREDIT_DEFAULT, CREDIT_NEVER, Credit, SqeHeader, SqeType};
use crate::spec::{NotifyIdTooLarge, SQE_SIZE, Sqe};

/// Largest notify id: the field has 17 bits.
pub const MAX_NOTIFY_ID: u32 = (1 << 17) - 1;

/// Word 2.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct NotifyWord {
    #[bits(17)]
    notify_id: u32,
    #[bits(13)]
    reserved: u16,
    /// The notify counts; otherwise it is one bit.
    cnt_flag: bool,
    /// A wait that ends clears the notify.
    clr_flag: bool,
}

/// Word 5.
#[bitfield(u32)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct NotifyMode {
    /// Bit 0: until equal, bit 1: until bigger.
    #[bits(2)]
    wait_mode: u8,
    /// Bit 0: add, bit 1: write, bit 2: clear.
    #[bits(3)]
    record_mode: u8,
    /// Waits for any of the bits in the count value.
    bitmap: bool,
    #[bits(26)]
    reserved: u32,
}

/// `recordMode` bit 1: the count is written.
const RECORD_WRITE: u8 = 2;
/// `waitMode` bit 0: until the count is equal.
const WAIT_EQUAL: u8 = 1;

/// `subType`: what software calls the kind.
mod sub_type {
    pub(super) const WAIT: u16 = 1;
    pub(super) const COUNT_RECORD: u16 = 2;
    pub(super) const COUNT_WAIT: u16 = 3;
}

/// A notify descriptor as the ring holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NotifySqe {
    header: SqeHeader,
    notify: NotifyWord,
    credit: Credit,
    cnt_value: u32,
    mode: NotifyMode,
    /// Seconds, 0 = without limit.
    timeout_s: u32,
    exe_result: u32,
    reserved: [u32; 8],
}
const _: () = assert!(size_of::<NotifySqe>() == SQE_SIZE);
const _: () = assert!(core::mem::offset_of!(NotifySqe, cnt_value) == 16);
const _: () = assert!(core::mem::offset_of!(NotifySqe, timeout_s) == 24);

/// What both kinds have in common.
#[derive(Clone, Copy, Debug)]
struct Notify {
    word: NotifyWord,
    cnt_value: u32,
    mode: NotifyMode,
    sub_type: u16,
}

impl Notify {
    const fn with_checked_id(notify_id: u32) -> Self {
        debug_assert!(notify_id <= MAX_NOTIFY_ID);
        // The mask is what the builder's check comes down to: without it the check is code, and its panic is, too.
        let word = NotifyWord::new().with_notify_id(notify_id & MAX_NOTIFY_ID);
        Self { word, cnt_value: 0, mode: NotifyMode::new(), sub_type: 0 }
    }

    const fn counting(self, cnt_value: u32, mode: NotifyMode, sub_type: u16) -> Self {
        Self { word: self.word.with_cnt_flag(true), cnt_value, mode, sub_type }
    }

    const fn build(self, sqe_type: SqeType, kernel_credit: u8, timeout_s: u32, task_id: u32) -> Sqe {
        let sqe = NotifySqe {
            header: SqeHeader::new(sqe_type, task_id),
            notify: self.word,
            credit: Credit::new().with_sub_type(self.sub_type).with_kernel_credit(kernel_credit),
            cnt_value: self.cnt_value,
            mode: self.mode,
            timeout_s,
            exe_result: 0,
            reserved: [0; 8],
        };
        Sqe::of_words(transmute!(sqe))
    }
}

/// Builder of a record.
#[derive(Clone, Copy, Debug)]
pub struct NotifyRecord(Notify);

impl NotifyRecord {
    /// Sets the one bit of `notify_id`.
    ///
    /// # Errors
    /// [`NotifyIdTooLarge`]: it is never cut to the field.
    pub const fn new(notify_id: u32) -> Result<Self, NotifyIdTooLarge> {
        match NotifyIdTooLarge::check(notify_id, MAX_NOTIFY_ID) {
            Ok(()) => Ok(Self::with_checked_id(notify_id)),
            Err(error) => Err(error),
        }
    }

    #[inline]
    pub(crate) const fn with_checked_id(notify_id: u32) -> Self {
        Self(Notify::with_checked_id(notify_id))
    }

    /// The count form in which one record releases several waits: bits of `value` are set.
    pub const fn one_to_many(self, value: u32) -> Self {
        Self(self.0.counting(value, NotifyMode::new(), sub_type::COUNT_RECORD))
    }

    /// The count form in which several records release one wait: `value` is written.
    pub const fn many_to_one(self, value: u32) -> Self {
        Self(self.0.counting(value, NotifyMode::new().with_record_mode(RECORD_WRITE), sub_type::COUNT_RECORD))
    }

    /// The descriptor with this task id.
    #[inline]
    pub const fn build(self, task_id: u32) -> Sqe {
        self.0.build(SqeType::NOTIFY_RECORD, CREDIT_DEFAULT, 0, task_id)
    }
}

/// Builder of a wait.
#[derive(Clone, Copy, Debug)]
pub struct NotifyWait {
    notify: Notify,
    timeout_s: u32,
}

impl NotifyWait {
    /// Waits for the one bit of `notify_id` for `timeout_s` seconds (0 = without limit), and clears it.
    ///
    /// # Errors
    /// [`NotifyIdTooLarge`]: it is never cut to the field.
    pub const fn new(notify_id: u32, timeout_s: u32) -> Result<Self, NotifyIdTooLarge> {
        match NotifyIdTooLarge::check(notify_id, MAX_NOTIFY_ID) {
            Ok(()) => Ok(Self::with_checked_id(notify_id, timeout_s)),
            Err(error) => Err(error),
        }
    }

    #[inline]
    pub(crate) const fn with_checked_id(notify_id: u32, timeout_s: u32) -> Self {
        let notify = Notify::with_checked_id(notify_id);
        let word = notify.word.with_clr_flag(true);
        Self { notify: Notify { word, sub_type: sub_type::WAIT, ..notify }, timeout_s }
    }

    /// The count form in which one record releases several waits: waits for the bits of `value`. Has no time-out.
    pub const fn one_to_many(self, value: u32) -> Self {
        let mode = NotifyMode::new().with_bitmap(true);
        Self { notify: self.notify.counting(value, mode, sub_type::COUNT_WAIT), timeout_s: 0 }
    }

    /// The count form in which several records release one wait: waits until the count equals `value`. Has no time-out.
    pub const fn many_to_one(self, value: u32) -> Self {
        let mode = NotifyMode::new().with_wait_mode(WAIT_EQUAL);
        Self { notify: self.notify.counting(value, mode, sub_type::COUNT_WAIT), timeout_s: 0 }
    }

    /// The descriptor with this task id.
    #[inline]
    pub const fn build(self, task_id: u32) -> Sqe {
        self.notify.build(SqeType::NOTIFY_WAIT, CREDIT_NEVER, self.timeout_s, task_id)
    }
}
