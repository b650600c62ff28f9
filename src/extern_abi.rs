//! C entry points of the library that the program is loaded with (`libccl_kernel.so`): with feature `extern-abi` nothing is queued by
//! this crate itself, so that a queue never has two writers.
//!
//! Types and codes are those that this crate's own entry points document.

use core::arch::global_asm;
use core::ffi::{c_char, c_void};

use crate::error::Error;
pub use crate::spec::channel::HcommBatchTransferDesc;

#[cfg(all(feature = "timeout-f32", feature = "timeout-u32"))]
compile_error!("the library has one of the two types of limits: feature timeout-f32 or timeout-u32");

/// The two calls whose limit has another type in older libraries. On AArch64 the types are passed in different registers, so that a wrong one
/// is not noticed: without a feature that names the type, neither is called.
#[allow(non_snake_case, reason = "names of the library's functions")]
mod limits {
    #[cfg(all(feature = "timeout-f32", not(feature = "timeout-u32")))]
    unsafe extern "C" {
        pub safe fn HcommSetNotifyWaitTimeOut(time_out: f32) -> i32;
        pub safe fn HcommThreadResAcquireTimeOut(time_out: f32) -> i32;
    }

    #[cfg(all(feature = "timeout-u32", not(feature = "timeout-f32")))]
    mod whole {
        unsafe extern "C" {
            pub safe fn HcommSetNotifyWaitTimeOut(time_out: u32) -> i32;
            pub safe fn HcommThreadResAcquireTimeOut(time_out: u32) -> i32;
        }
    }

    /// A fraction is a whole second: 0 means no limit. `ops::timeout` has refused what is no time.
    #[cfg(all(feature = "timeout-u32", not(feature = "timeout-f32")))]
    fn whole_seconds(time_out: f32) -> u32 {
        let whole = time_out as u32;
        if (whole as f32) < time_out { whole.saturating_add(1) } else { whole }
    }

    #[cfg(all(feature = "timeout-u32", not(feature = "timeout-f32")))]
    pub fn HcommSetNotifyWaitTimeOut(time_out: f32) -> i32 {
        whole::HcommSetNotifyWaitTimeOut(whole_seconds(time_out))
    }

    #[cfg(all(feature = "timeout-u32", not(feature = "timeout-f32")))]
    pub fn HcommThreadResAcquireTimeOut(time_out: f32) -> i32 {
        whole::HcommThreadResAcquireTimeOut(whole_seconds(time_out))
    }

    #[cfg(not(any(feature = "timeout-f32", feature = "timeout-u32")))]
    pub fn HcommSetNotifyWaitTimeOut(_time_out: f32) -> i32 {
        crate::spec::code::HCCL_E_NOT_SUPPORT
    }

    #[cfg(not(any(feature = "timeout-f32", feature = "timeout-u32")))]
    pub fn HcommThreadResAcquireTimeOut(_time_out: f32) -> i32 {
        crate::spec::code::HCCL_E_NOT_SUPPORT
    }
}

/// `HcommSetNotifyWaitTimeOut`; 5 without feature `timeout-f32` or `timeout-u32`.
#[allow(non_snake_case, reason = "name of the library's function")]
pub fn HcommSetNotifyWaitTimeOut(time_out: f32) -> i32 {
    limits::HcommSetNotifyWaitTimeOut(time_out)
}

/// `HcommThreadResAcquireTimeOut`; 5 without feature `timeout-f32` or `timeout-u32`.
#[allow(non_snake_case, reason = "name of the library's function")]
pub fn HcommThreadResAcquireTimeOut(time_out: f32) -> i32 {
    limits::HcommThreadResAcquireTimeOut(time_out)
}

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
