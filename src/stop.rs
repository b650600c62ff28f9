//! Why a queue takes no tasks: an [`Error`] in two registers, for the ways inside of the library.

use core::num::NonZeroU64;

use crate::error::{Error, QueueField, QueueFull};
use crate::spec::SQE_SIZE;
use crate::spec::queue::MIN_DEPTH;
use crate::spec::thread::{Engine, ThreadHandle};

/// See the module. A result of it is a pair of numbers, of which the first is 0 for success: an enum with data would be
/// returned in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// Bits 0..8 say what, 8..16 of which field, 16..32 with which limit, 32..64 of which queue or engine.
    what: NonZeroU64,
    /// Handle, value or code.
    value: u64,
}

const DOORBELL_REFUSED: u64 = 1;
const SUSPENDED: u64 = 2;
const BAD_HANDLE: u64 = 3;
const WRONG_ENGINE: u64 = 4;
const BAD_FIELD: u64 = 5;
const BAD_HEAD: u64 = 6;
const UNREADABLE: u64 = 7;
const QUEUE_FULL: u64 = 8;
const RECORDS_NOT_READ: u64 = 9;

/// In the order of their numbers. A power of two, so that three bits are an index without a check.
const FIELDS: [QueueField; 8] = {
    let [depth, ring, head] = [QueueField::Depth, QueueField::RingAddress, QueueField::Head];
    let [registers, status] = [QueueField::Registers, QueueField::Status];
    [depth, ring, head, registers, status, status, status, status]
};

impl Stop {
    #[inline(always)]
    const fn new(kind: u64, id: u32, value: u64) -> Self {
        match NonZeroU64::new(kind | (id as u64) << 32) {
            Some(what) => Self { what, value },
            None => panic!("no kind is 0"),
        }
    }

    #[inline(always)]
    const fn of_field(kind: u64, sq_id: u32, field: QueueField, value: u64) -> Self {
        let limit = match field {
            QueueField::Depth => MIN_DEPTH as u64,
            QueueField::RingAddress => SQE_SIZE as u64,
            QueueField::Head | QueueField::Registers | QueueField::Status => 0,
        };
        Self::new(kind | (field as u64) << 8 | limit << 16, sq_id, value)
    }

    /// [`Error::DoorbellRefused`].
    #[inline(always)]
    pub(crate) const fn doorbell_refused(sq_id: u32) -> Self {
        Self::new(DOORBELL_REFUSED, sq_id, 0)
    }

    /// [`Error::Suspended`].
    #[inline(always)]
    pub(crate) const fn suspended(sq_id: u32) -> Self {
        Self::new(SUSPENDED, sq_id, 0)
    }

    /// [`Error::BadHandle`].
    #[inline(always)]
    pub(crate) const fn bad_handle(handle: ThreadHandle) -> Self {
        Self::new(BAD_HANDLE, 0, handle.0)
    }

    /// [`Error::WrongEngine`].
    #[inline(always)]
    pub(crate) const fn wrong_engine(engine: Engine, handle: ThreadHandle) -> Self {
        Self::new(WRONG_ENGINE, engine.0.cast_unsigned(), handle.0)
    }

    /// [`Error::BadQueue`] of what the descriptor says.
    #[inline(always)]
    pub(crate) const fn bad_field(sq_id: u32, field: QueueField, value: u64) -> Self {
        Self::of_field(BAD_FIELD, sq_id, field, value)
    }

    /// [`Error::BadQueue`] of the head.
    #[inline(always)]
    pub(crate) const fn bad_head(sq_id: u32, head: u32, limit: u32) -> Self {
        Self::of_field(BAD_HEAD, sq_id, QueueField::Head, head as u64 | (limit as u64) << 32)
    }

    /// [`Error::QueueRead`].
    #[inline(always)]
    pub(crate) const fn unreadable(sq_id: u32, field: QueueField, code: i32) -> Self {
        Self::of_field(UNREADABLE, sq_id, field, code as u64)
    }

    /// [`Error::QueueFull`], of which the caller keeps the rest: see [`error`](Self::error).
    pub(crate) const QUEUE_FULL: Self = Self::new(QUEUE_FULL, 0, 0);

    /// [`Error::RecordsNotRead`].
    #[inline(always)]
    pub(crate) const fn records_not_read(timeout_us: u64) -> Self {
        Self::new(RECORDS_NOT_READ, 0, timeout_us)
    }

    /// As an error; `full` is what [`QUEUE_FULL`](Self::QUEUE_FULL) tells.
    #[cold]
    #[inline(never)]
    pub(crate) fn error(self, full: &QueueFull) -> Error {
        let Self { what, value } = self;
        let what = what.get();
        let sq_id = (what >> 32) as u32;
        let field = FIELDS[(what >> 8) as usize % FIELDS.len()];
        match what % 256 {
            QUEUE_FULL => Error::QueueFull(*full),
            DOORBELL_REFUSED => Error::DoorbellRefused { sq_id },
            SUSPENDED => Error::Suspended { sq_id },
            BAD_HANDLE => Error::BadHandle(ThreadHandle(value)),
            WRONG_ENGINE => Error::WrongEngine { handle: ThreadHandle(value), engine: Engine(sq_id.cast_signed()) },
            BAD_HEAD => Error::BadQueue { sq_id, field, value: value & 0xffff_ffff, limit: value >> 32 },
            RECORDS_NOT_READ => Error::RecordsNotRead { timeout_us: value },
            UNREADABLE => Error::QueueRead { sq_id, field, code: value as i32 },
            _ => Error::BadQueue { sq_id, field, value, limit: what >> 16 & 0xffff },
        }
    }
}

impl From<Stop> for Error {
    #[inline]
    fn from(stop: Stop) -> Self {
        stop.error(&QueueFull::NONE)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_stop_is_the_error_that_it_was_made_for() {
        let (sq_id, handle) = (u32::MAX - 1, ThreadHandle(u64::MAX - 2));
        let queue = |field, value, limit| Error::BadQueue { sq_id, field, value, limit };
        let read = |field, code| Error::QueueRead { sq_id, field, code };
        let cases = [
            (Stop::doorbell_refused(sq_id), Error::DoorbellRefused { sq_id }),
            (Stop::suspended(sq_id), Error::Suspended { sq_id }),
            (Stop::bad_handle(handle), Error::BadHandle(handle)),
            (Stop::wrong_engine(Engine(7), handle), Error::WrongEngine { handle, engine: Engine(7) }),
            (Stop::bad_field(sq_id, QueueField::Depth, 1), queue(QueueField::Depth, 1, 2)),
            (Stop::bad_field(sq_id, QueueField::RingAddress, u64::MAX), queue(QueueField::RingAddress, u64::MAX, 64)),
            (Stop::bad_field(sq_id, QueueField::Registers, u64::MAX), queue(QueueField::Registers, u64::MAX, 0)),
            (Stop::bad_head(sq_id, u32::MAX, 5), queue(QueueField::Head, u32::MAX.into(), 5)),
            (Stop::unreadable(sq_id, QueueField::Head, -7), read(QueueField::Head, -7)),
            (Stop::unreadable(sq_id, QueueField::Status, i32::MAX), read(QueueField::Status, i32::MAX)),
            (Stop::records_not_read(u64::MAX), Error::RecordsNotRead { timeout_us: u64::MAX }),
        ];
        for (stop, error) in cases {
            assert_eq!(Error::from(stop), error);
        }
    }
}
