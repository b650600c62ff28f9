//! What a [`Thread`](crate::Thread) does, by the entry points of the library that the program is loaded with.
//!
//! They look handles up themselves, with every call: there is none for that alone.

use crate::abi::{self, result};
use crate::error::Error;
use crate::spec::DeviceAddr;
use crate::spec::data_type::{DataType, ReduceOp};
use crate::spec::thread::ThreadHandle;

/// The first call says whether the handle is good.
pub(crate) fn check_live(_handle: ThreadHandle) -> Result<(), Error> {
    Ok(())
}

/// As [`check_live`].
pub(crate) fn check_aicpu(_handle: ThreadHandle) -> Result<(), Error> {
    Ok(())
}

/// A device address as the pointer that the interface takes.
fn pointer<T>(addr: DeviceAddr) -> *mut T {
    core::ptr::with_exposed_provenance_mut(addr.0 as usize)
}

pub(crate) fn local_copy(handle: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
    result(abi::HcommLocalCopyOnThread(handle.0, pointer(dst), pointer(src), len))
}

pub(crate) fn local_reduce(
    handle: ThreadHandle,
    dst: DeviceAddr,
    src: DeviceAddr,
    count: u64,
    data_type: DataType,
    op: ReduceOp,
) -> Result<(), Error> {
    result(abi::HcommLocalReduceOnThread(handle.0, pointer(dst), pointer(src), count, data_type.0, op.0))
}

pub(crate) fn notify_record(handle: ThreadHandle, to: ThreadHandle, index: u32) -> Result<(), Error> {
    result(abi::HcommThreadNotifyRecordOnThread(handle.0, to.0, index))
}

pub(crate) fn notify_wait(handle: ThreadHandle, index: u32, timeout_s: u32) -> Result<(), Error> {
    result(abi::HcommThreadNotifyWaitOnThread(handle.0, index, timeout_s))
}

pub(crate) fn notify_wait_default(handle: ThreadHandle, index: u32) -> Result<(), Error> {
    result(abi::HcommThreadNotifyWaitOnThreadWithDefaultTimeout(handle.0, index))
}

pub(crate) fn aclrt_notify_record(handle: ThreadHandle, id: u64) -> Result<(), Error> {
    result(abi::HcommAclrtNotifyRecordOnThread(handle.0, id))
}

pub(crate) fn aclrt_notify_wait(handle: ThreadHandle, id: u64, timeout_s: u32) -> Result<(), Error> {
    result(abi::HcommAclrtNotifyWaitOnThread(handle.0, id, timeout_s))
}

/// Whole seconds: a part of one counts as a whole one.
pub(crate) fn join(handle: ThreadHandle, timeout_us: u64) -> Result<(), Error> {
    let seconds = timeout_us.div_ceil(1_000_000).min(u64::from(u32::MAX));
    result(abi::HcommThreadJoin(handle.0, seconds as u32))
}

pub(crate) fn synchronize(handle: ThreadHandle) -> Result<(), Error> {
    result(abi::HcommThreadSynchronize(handle.0))
}
