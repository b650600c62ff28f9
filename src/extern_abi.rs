//! C entry points of the library that the program is loaded with (`libccl_kernel.so`): with feature `extern-abi` nothing is queued by
//! this crate itself, so that a queue never has two writers.
//!
//! Types and codes are those that this crate's own entry points document.

use core::arch::global_asm;
use core::ffi::{c_char, c_void};

use crate::error::Error;
pub use crate::spec::channel::HcommBatchTransferDesc;

unsafe extern "C" {
    /// `HcommLocalCopyOnThread`.
    pub safe fn HcommLocalCopyOnThread(thread: u64, dst: *mut c_void, src: *const c_void, len: u64) -> i32;
    /// `HcommLocalReduceOnThread`.
    pub safe fn HcommLocalReduceOnThread(
        thread: u64,
        dst: *mut c_void,
        src: *const c_void,
        count: u64,
        data_type: i32,
        reduce_op: i32,
    ) -> i32;
    /// `HcommThreadNotifyRecordOnThread`.
    pub safe fn HcommThreadNotifyRecordOnThread(thread: u64, dst_thread: u64, dst_notify_idx: u32) -> i32;
    /// `HcommThreadNotifyWaitOnThread`.
    pub safe fn HcommThreadNotifyWaitOnThread(thread: u64, notify_idx: u32, timeout: u32) -> i32;
    /// `HcommThreadNotifyWaitOnThreadWithDefaultTimeout`.
    pub safe fn HcommThreadNotifyWaitOnThreadWithDefaultTimeout(thread: u64, notify_idx: u32) -> i32;
    /// `HcommAclrtNotifyRecordOnThread`.
    pub safe fn HcommAclrtNotifyRecordOnThread(thread: u64, dst_notify_id: u64) -> i32;
    /// `HcommAclrtNotifyWaitOnThread`.
    pub safe fn HcommAclrtNotifyWaitOnThread(thread: u64, notify_id: u64, timeout: u32) -> i32;
    /// `HcommSetNotifyWaitTimeOut`.
    pub safe fn HcommSetNotifyWaitTimeOut(time_out: f32) -> i32;
    /// `HcommThreadResAcquireTimeOut`.
    pub safe fn HcommThreadResAcquireTimeOut(time_out: f32) -> i32;
    /// `HcommBatchModeStart`.
    pub safe fn HcommBatchModeStart(batch_tag: *const c_char) -> i32;
    /// `HcommBatchModeEnd`.
    pub safe fn HcommBatchModeEnd(batch_tag: *const c_char) -> i32;
    /// `HcommAcquireComm`: `comm_id` is null, or a text that ends with a zero byte.
    pub fn HcommAcquireComm(comm_id: *const c_char) -> i32;
    /// `HcommReleaseComm`: as [`HcommAcquireComm`].
    pub fn HcommReleaseComm(comm_id: *const c_char) -> i32;
    /// `HcommThreadSynchronize`.
    pub safe fn HcommThreadSynchronize(thread: u64) -> i32;
    /// `HcommThreadJoin`.
    pub safe fn HcommThreadJoin(thread: u64, timeout: u32) -> i32;
    /// `HcommWriteOnThread`.
    pub safe fn HcommWriteOnThread(thread: u64, channel: u64, dst: *mut c_void, src: *const c_void, len: u64) -> i32;
    /// `HcommReadOnThread`.
    pub safe fn HcommReadOnThread(thread: u64, channel: u64, dst: *mut c_void, src: *const c_void, len: u64) -> i32;
    /// `HcommWriteReduceOnThread`.
    pub safe fn HcommWriteReduceOnThread(
        thread: u64,
        channel: u64,
        dst: *mut c_void,
        src: *const c_void,
        count: u64,
        data_type: i32,
        reduce_op: i32,
    ) -> i32;
    /// `HcommReadReduceOnThread`.
    pub safe fn HcommReadReduceOnThread(
        thread: u64,
        channel: u64,
        dst: *mut c_void,
        src: *const c_void,
        count: u64,
        data_type: i32,
        reduce_op: i32,
    ) -> i32;
    /// `HcommWriteWithNotifyOnThread`.
    pub safe fn HcommWriteWithNotifyOnThread(
        thread: u64,
        channel: u64,
        dst: *mut c_void,
        src: *const c_void,
        len: u64,
        remote_notify_idx: u32,
    ) -> i32;
    /// `HcommWriteReduceWithNotifyOnThread`.
    pub safe fn HcommWriteReduceWithNotifyOnThread(
        thread: u64,
        channel: u64,
        dst: *mut c_void,
        src: *const c_void,
        count: u64,
        data_type: i32,
        reduce_op: i32,
        remote_notify_idx: u32,
    ) -> i32;
    /// `HcommChannelNotifyRecordOnThread`.
    pub safe fn HcommChannelNotifyRecordOnThread(thread: u64, channel: u64, remote_notify_idx: u32) -> i32;
    /// `HcommChannelNotifyWaitOnThread`.
    pub safe fn HcommChannelNotifyWaitOnThread(thread: u64, channel: u64, local_notify_idx: u32, timeout: u32) -> i32;
    /// `HcommChannelNotifyWaitOnThreadWithDefaultTimeout`.
    pub safe fn HcommChannelNotifyWaitOnThreadWithDefaultTimeout(
        thread: u64,
        channel: u64,
        local_notify_idx: u32,
    ) -> i32;
    /// `HcommChannelFenceOnThread`.
    pub safe fn HcommChannelFenceOnThread(thread: u64, channel: u64) -> i32;
    /// `HcommBatchTransferOnThread`: `transfer_desc_num` descriptions can be read at `transfer_descs`.
    pub fn HcommBatchTransferOnThread(
        thread: u64,
        channel: u64,
        transfer_descs: *const HcommBatchTransferDesc,
        transfer_desc_num: u32,
    ) -> i32;
}

/// `hcomm_port_refused`, or nothing: a card's library does not have it.
type Report = unsafe extern "C" fn(who: *const u8, who_len: usize, code: i32, error: *const c_void);

// A weak name can't be told in Rust: the word is 0 where nothing has the name.
global_asm!(
    ".weak hcomm_port_refused",
    ".pushsection .data.rel.ro.hcomm_report, \"aw\"",
    ".balign 8",
    "hcomm_report: .quad hcomm_port_refused",
    ".popsection",
);

unsafe extern "C" {
    /// Address of `hcomm_port_refused`, or 0.
    safe static hcomm_report: Option<Report>;
}

/// Tells the platform that `who` refuses a call and why, if it listens, and gives the code.
#[cold]
#[inline(never)]
pub fn refuse(who: &'static str, error: &Error) -> i32 {
    // SAFETY: the word is constant once the program is loaded; volatile, since a compiler may take a function to be there.
    let report = unsafe { (&raw const hcomm_report).read_volatile() };
    if let Some(report) = report {
        // SAFETY: `who` is a constant of the program and `error` is borrowed for the call, which is what the hook may expect.
        unsafe { report(who.as_ptr(), who.len(), error.code(), (&raw const *error).cast()) };
    }
    error.code()
}

/// The answer of an entry point.
///
/// # Errors
/// [`Error::Library`] for anything but 0.
pub(crate) fn result(code: i32) -> Result<(), Error> {
    if code == 0 { Ok(()) } else { Err(Error::Library(code)) }
}
