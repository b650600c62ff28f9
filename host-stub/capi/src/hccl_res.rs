//! Resources of a communicator. `include/hccl/hccl_res.h` is generated from this file.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::acl_base::aclrtStream;
use super::call::{Out, bytes_arg, hccl, not_null};
use super::comm;
use super::error::CallError;
use super::hccl_types::HcclComm;
use super::hcomm_res_defs::{CommAbiHeader, CommMem, ThreadHandle};

type HcclResult = c_int;
type CommEngine = c_int;
type ThreadType = c_int;
type ThreadResType = c_int;

/// Memory that HcclCommMemReg has made known.
pub type HcclMemHandle = *mut c_void;

/// Magic word of ThreadConfig.
pub const HCCL_THREAD_CONFIG_MAGIC_WORD: u32 = 0x0f0f_0f2f;
/// ThreadType: threads whose tasks a task scheduler runs.
const THREAD_TYPE_TS: c_int = 0;
/// ThreadResType: the stream of a thread.
const THREAD_RES_TYPE_STREAM: c_int = 0;

/// What threads are acquired with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ThreadConfig {
    pub header: CommAbiHeader,
    pub notifyNumPerThread: u16,
    pub reserved: [u8; 14],
}
const _: () = assert!(size_of::<ThreadConfig>() == 32 && std::mem::offset_of!(ThreadConfig, notifyNumPerThread) == 16);

// SAFETY of all functions below: as in `acl_rt`.

/// A tag: null means the empty one.
///
/// # Safety
/// A pointer that is not null points to text that ends with a zero byte and stays unchanged until the call returns.
unsafe fn tag_arg<'a>(tag: *const c_char) -> &'a [u8] {
    // SAFETY: not null, so the caller owes text.
    if tag.is_null() { b"" } else { unsafe { CStr::from_ptr(tag) }.to_bytes() }
}

/// Acquires `threadNum` threads with `notifyNumPerThread` notifies each: all of them, or none. They belong to the
/// communicator and are never freed by the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclThreadAcquire(
    comm: HcclComm,
    engine: CommEngine,
    thread_num: u32,
    notify_num_per_thread: u32,
    threads: *mut ThreadHandle,
) -> HcclResult {
    hccl("HcclThreadAcquire", || {
        not_null([(comm, "comm"), (threads.cast(), "threads")])?;
        let acquired = comm::acquire(comm.addr() as u64, engine, thread_num, notify_num_per_thread)?;
        for (index, thread) in acquired.iter().enumerate() {
            // SAFETY: not null, and the caller owes room for `threadNum` handles.
            unsafe { threads.add(index).write_unaligned(thread.0) };
        }
        Ok(())
    })
}

/// The thread of the host that belongs to a stream, with at least `notifyNum` notifies. It ends with the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclThreadAcquireWithStream(
    comm: HcclComm,
    engine: CommEngine,
    stream: aclrtStream,
    notify_num: u32,
    thread: *mut ThreadHandle,
) -> HcclResult {
    hccl("HcclThreadAcquireWithStream", || {
        not_null([(comm, "comm"), (stream, "stream"), (thread.cast(), "thread")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(thread, "thread") }?;
        let (comm, stream) = (comm.addr() as u64, stream.addr() as u64);
        out.set(comm::acquire_with_stream(comm, engine, stream, notify_num)?.0);
        Ok(())
    })
}

/// The buffer of a communicator: 2 x HCCL_BUFFSIZE MiB (environment; 200 by default). The first call allocates it; the
/// caller never frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetHcclBuffer(comm: HcclComm, buffer: *mut *mut c_void, size: *mut u64) -> HcclResult {
    hccl("HcclGetHcclBuffer", || {
        not_null([(comm, "comm")])?;
        // SAFETY: see above.
        let (buffer, size) = unsafe { (Out::new(buffer, "buffer")?, Out::new(size, "size")?) };
        let (addr, bytes) = comm::hccl_buffer(comm.addr() as u64)?;
        buffer.set(std::ptr::with_exposed_provenance_mut(addr as usize));
        size.set(bytes);
        Ok(())
    })
}

/// As HcclGetHcclBuffer, and sets every byte of it to zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetHcclBufferCleared(
    comm: HcclComm,
    buffer: *mut *mut c_void,
    size: *mut u64,
) -> HcclResult {
    hccl("HcclGetHcclBufferCleared", || {
        not_null([(comm, "comm")])?;
        // SAFETY: see above.
        let (buffer, size) = unsafe { (Out::new(buffer, "buffer")?, Out::new(size, "size")?) };
        let (addr, bytes) = comm::cleared_buffer(comm.addr() as u64)?;
        buffer.set(std::ptr::with_exposed_provenance_mut(addr as usize));
        size.set(bytes);
        Ok(())
    })
}

/// Writes what a thread of a communicator is made of. `type` is THREAD_RES_TYPE_STREAM, `infoLen` sizeof(aclrtStream), and
/// `info` gets the stream of a thread of the host; for a thread of kernels the result is 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclThreadResGetInfo(
    comm: HcclComm,
    thread: ThreadHandle,
    r#type: ThreadResType,
    info_len: u32,
    info: *mut *mut c_void,
) -> HcclResult {
    hccl("HcclThreadResGetInfo", || {
        let thread_ptr = std::ptr::without_provenance(thread as usize);
        not_null([(comm, "comm"), (thread_ptr, "thread"), (info.cast(), "info")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(info, "info") }?;
        if r#type != THREAD_RES_TYPE_STREAM {
            let must = "must be THREAD_RES_TYPE_STREAM (0)";
            return Err(CallError::OutOfRange { what: "type", value: r#type.into(), must });
        }
        if info_len as usize != size_of::<aclrtStream>() {
            let must = "must be sizeof(aclrtStream) (8)";
            return Err(CallError::OutOfRange { what: "infoLen", value: info_len.into(), must });
        }
        let stream = comm::stream_of_thread(comm.addr() as u64, thread)?;
        out.set(std::ptr::without_provenance_mut(stream as usize));
        Ok(())
    })
}

/// As HcclThreadAcquire. `type` is THREAD_TYPE_TS; `config` has the notifies of each thread, and a head as ThreadConfigInit
/// writes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclThreadAcquireWithConfig(
    comm: HcclComm,
    engine: CommEngine,
    thread_num: u32,
    r#type: ThreadType,
    config: *const ThreadConfig,
    threads: *mut ThreadHandle,
) -> HcclResult {
    hccl("HcclThreadAcquireWithConfig", || {
        not_null([(comm, "comm"), (config.cast(), "config"), (threads.cast(), "threads")])?;
        if r#type != THREAD_TYPE_TS {
            let must = "must be THREAD_TYPE_TS (0)";
            return Err(CallError::OutOfRange { what: "type", value: r#type.into(), must });
        }
        // SAFETY: not null, so the caller owes a configuration; any bits are one.
        let config = unsafe { config.read_unaligned() };
        let CommAbiHeader { version, magicWord, size, .. } = config.header;
        if magicWord != HCCL_THREAD_CONFIG_MAGIC_WORD || size as usize != size_of::<ThreadConfig>() || version == 0 {
            let text = format!(
                "config (version {version}, magic word {magicWord:#x}, size {size}): initialise it with ThreadConfigInit"
            );
            return Err(CallError::Invalid(text));
        }
        let acquired = comm::acquire(comm.addr() as u64, engine, thread_num, config.notifyNumPerThread.into())?;
        for (index, thread) in acquired.iter().enumerate() {
            // SAFETY: not null, and the caller owes room for `threadNum` handles.
            unsafe { threads.add(index).write_unaligned(thread.0) };
        }
        Ok(())
    })
}

/// Makes memory known to the channels of a communicator. Not simulated: the result is 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCommMemReg(
    comm: HcclComm,
    mem_tag: *const c_char,
    mem: *const CommMem,
    mem_handle: *mut HcclMemHandle,
) -> HcclResult {
    hccl("HcclCommMemReg", || {
        let pointers = [
            (comm.cast_const(), "comm"),
            (mem_tag.cast(), "memTag"),
            (mem.cast(), "mem"),
            (mem_handle.cast_const().cast(), "memHandle"),
        ];
        not_null(pointers)?;
        comm::check(comm.addr() as u64)?;
        Err(CallError::NotSupported(
            "memory of the program's own is not exchanged: peers use the HcclBuffer".to_owned(),
        ))
    })
}

/// Makes `size` bytes of memory under a tag (at most 255 bytes): device memory for AICPU engines, host memory for
/// CPU engines. A null tag is the empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclEngineCtxCreate(
    comm: HcclComm,
    ctx_tag: *const c_char,
    engine: CommEngine,
    size: u64,
    ctx: *mut *mut c_void,
) -> HcclResult {
    hccl("HcclEngineCtxCreate", || {
        not_null([(comm, "comm"), (ctx.cast(), "ctx")])?;
        // SAFETY: see above.
        let (tag, out) = unsafe { (tag_arg(ctx_tag), Out::new(ctx, "ctx")?) };
        out.set(comm::create_context(comm.addr() as u64, tag, engine, size)?);
        Ok(())
    })
}

/// Address and size of the memory under a tag.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclEngineCtxGet(
    comm: HcclComm,
    ctx_tag: *const c_char,
    engine: CommEngine,
    ctx: *mut *mut c_void,
    size: *mut u64,
) -> HcclResult {
    hccl("HcclEngineCtxGet", || {
        not_null([(comm, "comm"), (ctx.cast(), "ctx"), (size.cast(), "size")])?;
        // SAFETY: see above.
        let (tag, out, bytes) = unsafe { (tag_arg(ctx_tag), Out::new(ctx, "ctx")?, Out::new(size, "size")?) };
        let (ptr, len) = comm::find_context(comm.addr() as u64, tag, engine)?;
        out.set(ptr);
        bytes.set(len);
        Ok(())
    })
}

/// Copies `size` bytes of the host into the memory under a tag, at `dstCtxOffset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclEngineCtxCopy(
    comm: HcclComm,
    engine: CommEngine,
    ctx_tag: *const c_char,
    src_ctx: *const c_void,
    size: u64,
    dst_ctx_offset: u64,
) -> HcclResult {
    hccl("HcclEngineCtxCopy", || {
        not_null([(comm, "comm")])?;
        // SAFETY: see above.
        let (tag, bytes) = unsafe { (tag_arg(ctx_tag), bytes_arg(src_ctx, size, "srcCtx")?) };
        comm::write_context(comm.addr() as u64, tag, engine, bytes, dst_ctx_offset)
    })
}

/// Frees the memory under a tag.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclEngineCtxDestroy(
    comm: HcclComm,
    ctx_tag: *const c_char,
    engine: CommEngine,
) -> HcclResult {
    hccl("HcclEngineCtxDestroy", || {
        not_null([(comm, "comm")])?;
        // SAFETY: see above.
        let tag = unsafe { tag_arg(ctx_tag) };
        comm::destroy_context(comm.addr() as u64, tag, engine)
    })
}
