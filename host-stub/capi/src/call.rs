//! What every function of the C API does around its work: panics and errors become codes, and their texts are kept.

use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::codes::ACL_SUCCESS;
use super::error::CallError;
use super::{last_error, owner, recent, thread_end};
use host_stub::backend::native::in_kernel;

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
        if in_kernel() {
            return Err(CallError::InKernel);
        }
        thread_end::watch();
        call()
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
