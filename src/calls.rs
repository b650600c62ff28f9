//! What a [`Thread`](crate::Thread) does, on the core that runs the caller.

use crate::context::on_core;
use crate::error::Error;
pub(crate) use crate::ops::copy::local_copy;
pub(crate) use crate::ops::notify::{notify_record, notify_wait};
pub(crate) use crate::ops::reduce::local_reduce;
use crate::ops::{self, aclrt_notify};
use crate::spec::record::EntryPoint;
use crate::spec::thread::ThreadHandle;
use crate::sq;

/// Whether the handle, which is not 0, names a live thread.
#[inline]
pub(crate) fn check_live(handle: ThreadHandle) -> Result<(), Error> {
    on_core(|core, _| Ok(core.table().live(handle).map(drop)?))
}

/// Whether the handle, which is not 0, names a live thread of engine AICPU_TS.
#[inline]
pub(crate) fn check_aicpu(handle: ThreadHandle) -> Result<(), Error> {
    on_core(|core, _| Ok(core.table().queue_place(handle).map(drop)?))
}

pub(crate) fn notify_wait_default(handle: ThreadHandle, index: u32) -> Result<(), Error> {
    let timeout_s = on_core(|core, _| Ok(core.notify_wait_timeout_s()))?;
    notify_wait(handle, index, timeout_s)
}

pub(crate) fn aclrt_notify_record(handle: ThreadHandle, id: u64) -> Result<(), Error> {
    ops::slow(handle, aclrt_notify::Record { id })
}

pub(crate) fn aclrt_notify_wait(handle: ThreadHandle, id: u64, timeout_s: u32) -> Result<(), Error> {
    ops::slow(handle, aclrt_notify::Wait { id, timeout_s })
}

pub(crate) fn join(handle: ThreadHandle, timeout_us: u64) -> Result<(), Error> {
    drain(handle, Some(timeout_us), EntryPoint::JOIN)
}

pub(crate) fn synchronize(handle: ThreadHandle) -> Result<(), Error> {
    drain(handle, None, EntryPoint::SYNCHRONIZE)
}

fn drain(handle: ThreadHandle, timeout_us: Option<u64>, entry: EntryPoint) -> Result<(), Error> {
    on_core(|core, io| sq::drain(io, core.device().queues(), core.queues(), handle, timeout_us, entry))
}
