//! Communication thread: the safe interface of its operations.

use crate::calls;
use crate::error::Error;
use crate::spec::DeviceAddr;
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::thread::ThreadHandle;

/// A live thread of any engine, of the device that runs the caller: what a notify can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(ThreadHandle);

/// A live AICPU_TS thread of the device that runs the caller.
///
/// Says that the handle was good when it was looked up. Should the host free the thread afterwards, calls answer
/// [`Error::BadHandle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(Peer);

impl Peer {
    /// Looks `handle` up in the thread table. Nothing outside the table is read, whatever the number.
    ///
    /// # Errors
    /// [`Error::NullThread`], [`Error::NoCore`] outside a kernel, [`Error::BadHandle`] for a malformed, foreign or stale
    /// handle.
    #[inline]
    pub fn from_handle(handle: ThreadHandle) -> Result<Self, Error> {
        if handle.0 == 0 {
            return Err(Error::NullThread);
        }
        calls::check_live(handle)?;
        Ok(Self(handle))
    }

    /// The handle that the thread was looked up by.
    pub fn handle(&self) -> ThreadHandle {
        self.0
    }
}

impl Thread {
    /// Looks `handle` up in the thread table. Nothing outside the table is read, whatever the number.
    ///
    /// # Errors
    /// [`Error::NullThread`], [`Error::NoCore`] outside a kernel, [`Error::BadHandle`] for a malformed, foreign or stale
    /// handle, [`Error::WrongEngine`].
    #[inline]
    pub fn from_handle(handle: ThreadHandle) -> Result<Self, Error> {
        if handle.0 == 0 {
            return Err(Error::NullThread);
        }
        calls::check_aicpu(handle)?;
        Ok(Self(Peer(handle)))
    }

    /// Queues a copy of `len` bytes from `src` to `dst`, in as many tasks as the chunk rule needs, and returns; the copy
    /// itself runs later. Any alignment; ranges that overlap in part have no defined result. `len` 0 queues nothing.
    ///
    /// # Errors
    /// In this order: [`Error::NullDst`], [`Error::NullSrc`] (also for `len` 0), [`Error::NoCore`], [`Error::BadHandle`] if
    /// the thread has been freed, [`Error::AddressOverflow`], [`Error::Suspended`], [`Error::QueueFull`],
    /// [`Error::DoorbellRefused`].
    #[inline]
    pub fn local_copy(&self, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
        calls::local_copy(self.handle(), dst, src, len)
    }

    /// Queues `dst[i] = op(dst[i], src[i])` for `count` elements, in as many tasks as the chunk rule needs, and returns.
    /// `count` 0 queues nothing.
    ///
    /// # Errors
    /// In this order: [`Error::NullDst`], [`Error::NullSrc`], [`Error::NoCore`], [`Error::BadHandle`],
    /// [`Error::ReduceNotSupported`], [`Error::CountTooLarge`], [`Error::Misaligned`], then as
    /// [`local_copy`](Self::local_copy).
    #[inline]
    pub fn local_reduce(
        &self,
        dst: DeviceAddr,
        src: DeviceAddr,
        count: u64,
        data_type: DataType,
        op: ReduceOp,
    ) -> Result<(), Error> {
        calls::local_reduce(self.handle(), dst, src, count, data_type, op)
    }

    /// Queues a task that sets notify `index` of thread `to`.
    ///
    /// # Errors
    /// [`Error::BadHandle`] if one of the threads has been freed, [`Error::BadNotifyIndex`], then as
    /// [`local_copy`](Self::local_copy).
    #[inline]
    pub fn notify_record(&self, to: Peer, index: u32) -> Result<(), Error> {
        calls::notify_record(self.handle(), to.handle(), index)
    }

    /// Queues a task that waits for notify `index` of this thread for up to `timeout_s` seconds (0 = without limit) and clears
    /// it. Tasks queued later run after it; the caller does not wait.
    ///
    /// # Errors
    /// As [`notify_record`](Self::notify_record).
    #[inline]
    pub fn notify_wait(&self, index: u32, timeout_s: u32) -> Result<(), Error> {
        calls::notify_wait(self.handle(), index, timeout_s)
    }

    /// [`notify_wait`](Self::notify_wait) with the limit that is set for the core, see [`timeout`](crate::timeout).
    ///
    /// # Errors
    /// As [`notify_wait`](Self::notify_wait).
    pub fn notify_wait_default(&self, index: u32) -> Result<(), Error> {
        calls::notify_wait_default(self.handle(), index)
    }

    /// Queues a task that sets the notify with this id, which the host has made by itself (`aclrtGetNotifyId`).
    ///
    /// # Errors
    /// [`Error::NoCore`], [`Error::BadHandle`], [`Error::AclrtNotifyNotSupported`], [`Error::BadNotifyId`], then as
    /// [`local_copy`](Self::local_copy).
    pub fn aclrt_notify_record(&self, id: u64) -> Result<(), Error> {
        calls::aclrt_notify_record(self.handle(), id)
    }

    /// Queues a task that waits for the notify with this id for up to `timeout_s` seconds (0 = without limit) and clears it.
    ///
    /// # Errors
    /// As [`aclrt_notify_record`](Self::aclrt_notify_record).
    pub fn aclrt_notify_wait(&self, id: u64, timeout_s: u32) -> Result<(), Error> {
        calls::aclrt_notify_wait(self.handle(), id, timeout_s)
    }

    /// Waits until the device has taken every task queued on this thread, and rings first for those that a batch has
    /// staged. At most `timeout_us` microseconds; 0 looks once.
    ///
    /// # Errors
    /// [`Error::QueueFull`] with no entry wanted after that time, and as [`local_copy`](Self::local_copy).
    pub fn join(&self, timeout_us: u64) -> Result<(), Error> {
        calls::join(self.handle(), timeout_us)
    }

    /// [`join`](Self::join) with the limit of a call that waits for room in a full queue.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn synchronize(&self) -> Result<(), Error> {
        calls::synchronize(self.handle())
    }

    /// The thread as one that notifies are sent to.
    pub fn peer(&self) -> Peer {
        self.0
    }

    /// The handle that the thread was looked up by.
    pub fn handle(&self) -> ThreadHandle {
        self.0.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn outside_a_kernel_there_is_no_core() {
        assert_eq!(Thread::from_handle(ThreadHandle(0)), Err(Error::NullThread));
        assert_eq!(Thread::from_handle(ThreadHandle(64)), Err(Error::NoCore));
    }
}
