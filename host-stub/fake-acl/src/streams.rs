//! Streams and notifies.
#![allow(non_snake_case, reason = "names of the runtime's functions")]

use std::ffi::c_void;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host_stub::{Notify, Stream, ThreadConfig};

use crate::codes;
use crate::driver::{descriptor, logic_cq};
use crate::world::{AnyStream, Object, Open, code, code_of, current, lock};

type Ptr = *mut c_void;

/// Flag of a stream whose queue belongs to the AI CPU: no other may stand beside it.
const DEVICE_USE_ONLY: u32 = 0x20;
/// Flags of a stream of the host: fast launch, fast synchronise.
const HOST_FLAGS: u32 = 3;
/// Priorities are 0 to 7.
const PRIORITY_MAX: u32 = 7;

/// Writes a result of the caller's.
///
/// # Errors
/// `to` is null.
///
/// # Safety
/// `to` is null or can be written.
unsafe fn give<T>(to: *mut T, value: T) -> Result<(), i32> {
    if to.is_null() {
        return Err(codes::INVALID_PARAM);
    }
    // SAFETY: not null, so the caller owes room.
    unsafe { to.write(value) };
    Ok(())
}

fn add_stream(open: &Open, flags: u32) -> Result<Ptr, i32> {
    let stream = match flags {
        DEVICE_USE_ONLY => {
            let acquired = open.comm.acquire_threads_with(&ThreadConfig::new(1)).map_err(|error| code_of(&error))?;
            open.driver.announce(acquired[0])?;
            AnyStream::Queue(acquired[0])
        }
        flags if flags & !HOST_FLAGS == 0 => AnyStream::Host(Stream::new(&open.device), Mutex::new(None)),
        _ => return Err(codes::INVALID_PARAM),
    };
    Ok(open.add(Object::Stream(Arc::new(stream))))
}

/// # Safety
/// `stream` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtCreateStreamWithConfig(stream: *mut Ptr, priority: u32, flags: u32) -> i32 {
    if stream.is_null() || priority > PRIORITY_MAX {
        return codes::INVALID_PARAM;
    }
    // SAFETY: passed on.
    code(current().and_then(|open| unsafe { give(stream, add_stream(&open, flags)?) }))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtDestroyStream(stream: Ptr) -> i32 {
    code(current().and_then(|open| {
        open.stream(stream)?;
        let Object::Stream(stream) = open.remove(stream)? else { return Err(codes::INVALID_HANDLE) };
        match &*stream {
            AnyStream::Queue(thread) => {
                open.driver.forget(*thread)?;
                open.comm.release_threads(&[*thread]);
            }
            AnyStream::Host(..) => {}
        }
        Ok(())
    }))
}

/// Of queues of the AI CPU alone.
#[unsafe(no_mangle)]
extern "C" fn aclrtStreamStop(stream: Ptr) -> i32 {
    code(current().and_then(|open| match &*open.stream(stream)? {
        AnyStream::Queue(_) => Ok(()),
        AnyStream::Host(..) => Err(codes::INVALID_PARAM),
    }))
}

/// Of streams of the host alone: on the other side a card leaves the queue as it is.
#[unsafe(no_mangle)]
extern "C" fn aclrtStreamAbort(stream: Ptr) -> i32 {
    code(current().and_then(|open| match &*open.stream(stream)? {
        AnyStream::Host(..) => Ok(()),
        AnyStream::Queue(_) => Err(codes::INVALID_PARAM),
    }))
}

/// # Safety
/// `id` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtStreamGetId(stream: Ptr, id: *mut i32) -> i32 {
    code(current().and_then(|open| {
        let number = match &*open.stream(stream)? {
            AnyStream::Host(stream, _) => stream.id(),
            AnyStream::Queue(thread) => descriptor(*thread).stream_id,
        };
        // SAFETY: passed on.
        unsafe { give(id, number as i32) }
    }))
}

/// The queue of a stream. Of a stream of the host it is no business of the AI CPU's: it has none here.
fn sq_of(stream: Ptr) -> Result<u32, i32> {
    match &*current()?.stream(stream)? {
        AnyStream::Queue(thread) => Ok(descriptor(*thread).sq_id),
        AnyStream::Host(..) => Err(codes::INVALID_PARAM),
    }
}

/// # Safety
/// `sq` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn rtStreamGetSqid(stream: Ptr, sq: *mut u32) -> i32 {
    // SAFETY: passed on.
    code(sq_of(stream).and_then(|id| unsafe { give(sq, id) }))
}

/// # Safety
/// `cq` and `logic` are null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn rtStreamGetCqid(stream: Ptr, cq: *mut u32, logic: *mut u32) -> i32 {
    // SAFETY: passed on.
    code(sq_of(stream).and_then(|id| unsafe { give(cq, id).and_then(|()| give(logic, logic_cq(id))) }))
}

/// Returns at once for a queue of the AI CPU.
#[unsafe(no_mangle)]
extern "C" fn aclrtSynchronizeStreamWithTimeout(stream: Ptr, ms: i32) -> i32 {
    if ms < -1 {
        return codes::INVALID_PARAM;
    }
    let limit = u64::try_from(ms).map_or(Duration::MAX, Duration::from_millis);
    code(current().and_then(|open| match &*open.stream(stream)? {
        AnyStream::Queue(_) => Ok(()),
        AnyStream::Host(stream, refused) => {
            let waited = stream.synchronize_for(limit).map_err(|error| code_of(&error));
            match lock(refused).take() {
                Some(code) if waited.is_ok() => Err(code),
                _ => waited,
            }
        }
    }))
}

/// # Safety
/// `notify` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtCreateNotify(notify: *mut Ptr, flag: u64) -> i32 {
    if notify.is_null() || flag > 1 {
        return codes::INVALID_PARAM;
    }
    code(current().and_then(|open| {
        let made = Notify::new(&open.device).map_err(|error| code_of(&error))?;
        // SAFETY: passed on.
        unsafe { give(notify, open.add(Object::Notify(Arc::new(made)))) }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtDestroyNotify(notify: Ptr) -> i32 {
    code(current().and_then(|open| {
        open.notify(notify)?;
        open.remove(notify).map(drop)
    }))
}

/// # Safety
/// `id` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtGetNotifyId(notify: Ptr, id: *mut u32) -> i32 {
    // SAFETY: passed on.
    code(current().and_then(|open| unsafe { give(id, open.notify(notify)?.id()) }))
}

/// # Errors
/// A queue of the AI CPU: the host can't add tasks there.
fn on_host(stream: &AnyStream, run: impl FnOnce(&Stream) -> Result<(), host_stub::Error>) -> Result<(), i32> {
    match stream {
        AnyStream::Host(stream, _) => run(stream).map_err(|error| code_of(&error)),
        AnyStream::Queue(_) => Err(codes::INVALID_PARAM),
    }
}

#[unsafe(no_mangle)]
extern "C" fn aclrtRecordNotify(notify: Ptr, stream: Ptr) -> i32 {
    code(current().and_then(|open| {
        let (notify, stream) = (open.notify(notify)?, open.stream(stream)?);
        on_host(&stream, |stream| notify.record(stream))
    }))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtWaitAndResetNotify(notify: Ptr, stream: Ptr, seconds: u32) -> i32 {
    code(current().and_then(|open| {
        let (notify, stream) = (open.notify(notify)?, open.stream(stream)?);
        on_host(&stream, |stream| notify.wait_and_reset(stream, seconds))
    }))
}
