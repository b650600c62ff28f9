//! Calls of a thread, once in the image and not once for each place: kernels of many calls stay small.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::{Error, Peer, Thread};

/// [`Thread::local_copy`].
#[inline(never)]
pub(crate) fn copy(thread: &Thread, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
    thread.local_copy(dst, src, len)
}

/// [`Thread::local_reduce`].
#[inline(never)]
pub(crate) fn reduce(
    thread: &Thread,
    dst: DeviceAddr,
    src: DeviceAddr,
    count: u64,
    data_type: DataType,
    op: ReduceOp,
) -> Result<(), Error> {
    thread.local_reduce(dst, src, count, data_type, op)
}

/// [`Thread::notify_record`].
#[inline(never)]
pub(crate) fn record(thread: &Thread, to: Peer, index: u32) -> Result<(), Error> {
    thread.notify_record(to, index)
}

/// [`Thread::notify_wait_default`].
#[inline(never)]
pub(crate) fn wait(thread: &Thread, index: u32) -> Result<(), Error> {
    thread.notify_wait_default(index)
}

/// [`Thread::from_handle`].
#[inline(never)]
pub(crate) fn thread(handle: u64) -> Result<Thread, Error> {
    Thread::from_handle(hcomm_aicpu::spec::thread::ThreadHandle(handle))
}
