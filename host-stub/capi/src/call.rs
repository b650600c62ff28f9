//! What every function of the C API does around its work: panics and errors become codes, and their texts are kept.

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use hcomm_aicpu::spec::code;

use super::binary::BinaryError;
use super::{last_error, owner, recent};
use hcomm_sim::alloc::AllocError;
use hcomm_sim::error::RT_TS_ERROR;
use host_stub::Error;
use host_stub::backend::native::in_kernel;
use host_stub::loader::LoadError;

/// `aclError` of functions that can't fail otherwise.
pub const ACL_SUCCESS: i32 = 0;
/// An argument is wrong.
pub const ACL_ERROR_INVALID_PARAM: i32 = 100_000;
/// `aclFinalize` without `aclInit`.
pub const ACL_ERROR_UNINITIALIZE: i32 = 100_001;
/// `aclInit` twice.
pub const ACL_ERROR_REPEAT_INITIALIZE: i32 = 100_002;
/// The file is not there or can't be read.
pub const ACL_ERROR_INVALID_FILE: i32 = 100_003;
/// The file is not JSON.
pub const ACL_ERROR_PARSE_FILE: i32 = 100_006;
/// The file lacks a key.
pub const ACL_ERROR_FILE_MISSING_ATTR: i32 = 100_007;
/// The value of a key is wrong.
pub const ACL_ERROR_FILE_ATTR_INVALID: i32 = 100_008;
/// No operator of this name.
pub const ACL_ERROR_OP_NOT_FOUND: i32 = 100_024;
/// The library with the kernel can't be loaded.
pub const ACL_ERROR_OP_LOAD_FAILED: i32 = 100_025;
/// The library has no such function.
pub const ACL_ERROR_KERNEL_NOT_FOUND: i32 = 100_029;
/// There is no device with this number.
pub const ACL_ERROR_RT_INVALID_DEVICEID: i32 = 107_001;
/// The calling thread has no device.
pub const ACL_ERROR_RT_CONTEXT_NULL: i32 = 107_002;
/// Known, but not supported.
pub const ACL_ERROR_API_NOT_SUPPORT: i32 = 200_001;
/// No live object has this handle.
pub const ACL_ERROR_INVALID_RESOURCE_HANDLE: i32 = 200_005;
/// No device memory.
pub const ACL_ERROR_RT_MEMORY_ALLOCATION: i32 = 207_001;
/// No notify is free.
pub const ACL_ERROR_RT_NO_NOTIFY_RESOURCE: i32 = 207_009;
/// A bug of this library.
pub const ACL_ERROR_INTERNAL_ERROR: i32 = 500_000;
/// The simulated device could not be opened.
pub const ACL_ERROR_RT_FAILURE: i32 = 500_003;
/// The library with the kernel is not there.
pub const ACL_ERROR_RT_AICPU_INFO_LOAD_ERROR: i32 = 507_902;
/// The stream was not done in time.
pub const ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: i32 = 507_046;

/// Why a function of the C API returns a code other than 0.
#[derive(thiserror::Error)]
pub enum CallError {
    /// A null pointer.
    #[error("{0} is null")]
    Null(&'static str),
    /// A number out of its range.
    #[error("{what} is {value}: {must}")]
    OutOfRange {
        /// Argument.
        what: &'static str,
        /// Its value.
        value: i128,
        /// What it must be.
        must: &'static str,
    },
    /// Another rule of the interface.
    #[error("{0}")]
    Invalid(String),
    /// A device number.
    #[error("there is no device {index}: the number of devices is {count}")]
    NoSuchDevice {
        /// The number.
        index: i32,
        /// Number of devices.
        count: u32,
    },
    /// No device.
    #[error("the calling thread has no device: call aclrtSetDevice first")]
    NoDevice,
    /// The calling process is a fork of the one that uses the devices.
    #[error(
        "the devices were opened by process {owner}, and this is a fork of it: a forked child can't use them \
         (fork before the first call, or start another program in the child)"
    )]
    Forked {
        /// Id of the process that uses the devices.
        owner: u32,
    },
    /// Not a handle of this kind.
    #[error("{handle:#x} is not a {kind}")]
    NoHandle {
        /// What it should be.
        kind: &'static str,
        /// The number.
        handle: u64,
    },
    /// Was a handle once.
    #[error("{kind} {handle:#x} has been destroyed")]
    Destroyed {
        /// What it was.
        kind: &'static str,
        /// The number.
        handle: u64,
    },
    /// All are in use.
    #[error("{0}")]
    Unavailable(String),
    /// Product, engine or this library does not offer it.
    #[error("{0}")]
    NotSupported(String),
    /// A rule of the runtime that has an `aclError` of its own.
    #[error("{text}")]
    Runtime {
        /// The number.
        code: i32,
        /// What is wrong.
        text: String,
    },
    /// A function of the host, called by a kernel.
    #[error("it is a function of the host: a kernel can't call it")]
    InKernel,
    /// The device.
    #[error(transparent)]
    Host(#[from] Error),
    /// A kernel binary.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// A bug.
    #[error("internal error: {0}")]
    Panic(String),
}

/// As the message.
impl std::fmt::Debug for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl CallError {
    /// As `aclError`.
    fn acl_code(&self) -> i32 {
        match self {
            Self::Null(_) | Self::OutOfRange { .. } | Self::Invalid(_) => ACL_ERROR_INVALID_PARAM,
            Self::NoSuchDevice { .. } => ACL_ERROR_RT_INVALID_DEVICEID,
            Self::NoDevice | Self::Forked { .. } => ACL_ERROR_RT_CONTEXT_NULL,
            Self::NoHandle { .. } | Self::Destroyed { .. } => ACL_ERROR_INVALID_RESOURCE_HANDLE,
            Self::Unavailable(_) => ACL_ERROR_RT_MEMORY_ALLOCATION,
            Self::NotSupported(_) | Self::InKernel => ACL_ERROR_API_NOT_SUPPORT,
            Self::Runtime { code, .. } => *code,
            Self::Host(error) => acl_code_of(error),
            Self::Binary(error) => error.acl_code(),
            Self::Panic(_) => ACL_ERROR_INTERNAL_ERROR,
        }
    }

    /// As `HcclResult`.
    fn hccl_code(&self) -> i32 {
        match self {
            Self::Null(_) => code::HCCL_E_PTR,
            Self::OutOfRange { .. } | Self::Invalid(_) | Self::NoSuchDevice { .. } => code::HCCL_E_PARA,
            Self::NoHandle { .. } | Self::Destroyed { .. } => code::HCCL_E_NOT_FOUND,
            Self::Unavailable(_) => code::HCCL_E_UNAVAIL,
            Self::NotSupported(_) | Self::InKernel => code::HCCL_E_NOT_SUPPORT,
            Self::NoDevice | Self::Forked { .. } | Self::Runtime { .. } => code::HCCL_E_RUNTIME,
            Self::Host(error) => hccl_code_of(error),
            Self::Binary(_) => code::HCCL_E_OPEN_FILE_FAILURE,
            Self::Panic(_) => code::HCCL_E_INTERNAL,
        }
    }
}

fn acl_code_of(error: &Error) -> i32 {
    match error {
        // Every later call returns the first error of a device, not its consequences.
        Error::Device(error) | Error::AlreadyFailed(error) => error.runtime_code(),
        Error::Race(_) => RT_TS_ERROR,
        Error::Alloc(AllocError::OutOfMemory { .. }) => ACL_ERROR_RT_MEMORY_ALLOCATION,
        Error::Alloc(AllocError::Zero) | Error::Free(_) | Error::Access(_) | Error::OutsideHbm(_) => {
            ACL_ERROR_INVALID_PARAM
        }
        Error::NoNotifies { .. } => ACL_ERROR_RT_NO_NOTIFY_RESOURCE,
        Error::Timeout { .. } => ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
        Error::Load(LoadError::NoSuchKernel { .. }) => ACL_ERROR_KERNEL_NOT_FOUND,
        Error::WrongCpu(_) => ACL_ERROR_OP_LOAD_FAILED,
        _ => ACL_ERROR_RT_FAILURE,
    }
}

fn hccl_code_of(error: &Error) -> i32 {
    match error {
        Error::Alloc(_) => code::HCCL_E_MEMORY,
        Error::Access(_) | Error::OutsideHbm(_) | Error::Free(_) => code::HCCL_E_PARA,
        Error::BadThreadCount(_) | Error::BadNotifyCount(_) | Error::BadDepth(_) => code::HCCL_E_PARA,
        Error::BadBuffSize(_) | Error::ZeroCclBuffer => code::HCCL_E_PARA,
        Error::Refused(refusal) => refusal.code(),
        Error::Argument(error) => error.code(),
        Error::NoThreads { .. } | Error::NoNotifies { .. } => code::HCCL_E_UNAVAIL,
        Error::BadThread { .. } => code::HCCL_E_NOT_FOUND,
        // As in a kernel.
        Error::BadNotifyIndex { .. } => code::HCCL_E_PTR,
        _ => code::HCCL_E_RUNTIME,
    }
}

/// A function that returns an `aclError`.
pub fn acl(function: &'static str, call: impl FnOnce() -> Result<(), CallError>) -> i32 {
    let code = answer(function, call, CallError::acl_code);
    last_error::note(code);
    code
}

/// A function that returns an `HcclResult`.
pub fn hccl(function: &'static str, call: impl FnOnce() -> Result<(), CallError>) -> i32 {
    answer(function, call, CallError::hccl_code)
}

fn answer(
    function: &'static str,
    call: impl FnOnce() -> Result<(), CallError>,
    code: impl FnOnce(&CallError) -> i32,
) -> i32 {
    let call = || {
        let _in_use = owner::enter()?;
        if in_kernel() { Err(CallError::InKernel) } else { call() }
    };
    // A panic leaves no partial update: locks are held for single updates, so poisoned locks can be used.
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| Err(CallError::Panic(text(&*payload))));
    match result {
        Ok(()) => ACL_SUCCESS,
        Err(error) => {
            // In a forked child a thread of the parent may hold the lock of standard error for good.
            if !matches!(error, CallError::Forked { .. }) {
                log::error!("{function}: {error}");
            }
            recent::keep(&format!("{function}: {error}"));
            code(&error)
        }
    }
}

/// Text of a panic.
fn text(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "panic without text".to_owned(),
    }
}

/// An out-pointer of a C caller.
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// # Errors
    /// Null.
    ///
    /// # Safety
    /// A pointer that is not null can be written as a `T` until the call returns.
    pub unsafe fn new(ptr: *mut T, name: &'static str) -> Result<Self, CallError> {
        if ptr.is_null() { Err(CallError::Null(name)) } else { Ok(Self(ptr)) }
    }

    /// Writes the result.
    pub fn set(self, value: T) {
        // SAFETY: the maker of this owes a pointer that can be written; C callers need not align it.
        unsafe { self.0.write_unaligned(value) };
    }
}

/// Checks the pointers and handles of a call, in the order of its arguments, before any of them is used.
///
/// # Errors
/// The first one that is null.
pub fn not_null<const N: usize>(arguments: [(*const c_void, &'static str); N]) -> Result<(), CallError> {
    match arguments.into_iter().find(|(ptr, _)| ptr.is_null()) {
        Some((_, name)) => Err(CallError::Null(name)),
        None => Ok(()),
    }
}

/// Text of a C caller: bytes of any encoding, up to the zero byte.
///
/// # Errors
/// Null.
///
/// # Safety
/// A pointer that is not null points to text that ends with a zero byte and stays unchanged until the call returns.
pub unsafe fn text_arg<'a>(ptr: *const c_char, name: &'static str) -> Result<&'a [u8], CallError> {
    if ptr.is_null() {
        return Err(CallError::Null(name));
    }
    // SAFETY: not null, so the caller owes text.
    Ok(unsafe { CStr::from_ptr(ptr) }.to_bytes())
}

/// `len` bytes of a C caller; 0 bytes may be at null.
///
/// # Errors
/// Null with a length, or a length above half the address space.
///
/// # Safety
/// `len` bytes can be read at a pointer that is not null, unchanged until the call returns.
pub unsafe fn bytes_arg<'a>(ptr: *const c_void, len: u64, name: &'static str) -> Result<&'a [u8], CallError> {
    if len == 0 {
        return Ok(&[]);
    }
    if ptr.is_null() {
        return Err(CallError::Null(name));
    }
    let fits = usize::try_from(len).ok().filter(|&len| isize::try_from(len).is_ok());
    let Some(len) = fits else {
        return Err(CallError::OutOfRange { what: name, value: len.into(), must: "more bytes than there is memory" });
    };
    // SAFETY: not null, so the caller owes `len` readable bytes.
    Ok(unsafe { std::slice::from_raw_parts(ptr.cast(), len) })
}
