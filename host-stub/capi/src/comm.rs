//! Communicators: names, threads, contexts.
#![forbid(unsafe_code)]

use std::collections::hash_map::Entry;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};

use super::comm_config::CommConfig;
use super::error::CallError;
use super::host_block::HostBlock;
use super::objects::{CommEntry, Context, StreamEntry, ThreadEntry};
use super::process::{Process, current_device, process};
use super::ranks::Seat;
use super::this_thread::thread_number;
use super::{device, ranks, stream, support};
use host_stub::Device;
use host_stub::Error;
use host_stub::Stream;
use host_stub::comm::{Comm, CommOptions};
use host_stub::product::{Acquire, Product, Refusal, Side};
use host_stub::thread::{ThreadConfig, ThreadError};

/// Why a rank has left whose communicator was destroyed.
const DESTROYED: &str = "has destroyed its communicator";
/// Most threads of one call.
const THREADS_MAX: u32 = 1000;
/// Most threads of one export.
const EXPORT_MAX: u32 = 40;
/// Longest tag of a context.
const TAG_MAX: usize = 255;
/// First bytes of a root info.
const ROOT_INFO_MAGIC: [u8; 8] = *b"HCOMMSIM";
/// Bytes of a root info that are used.
pub const ROOT_INFO_HEAD: usize = 16;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The communicator with this handle, which the calling thread uses.
///
/// # Errors
/// Unknown communicator.
pub fn get(handle: u64) -> Result<Arc<CommEntry>, CallError> {
    let entry = process().comms.get(handle).cloned()?;
    let thread = thread_number();
    // Relaxed: the lock of the ranks orders what follows.
    if let Some(seat) = entry.seat
        && entry.last_thread.swap(thread, Ordering::Relaxed) != thread
    {
        ranks::used_by(seat, thread);
    }
    Ok(entry)
}

/// A communicator that no handle names yet, for the ranks of `group`.
fn prepare(device: &Device, config: &CommConfig, group: Option<u64>) -> Result<Comm, CallError> {
    let options = CommOptions { ccl_buffer: config.ccl_buffer };
    // The ranks of a communicator have one name for it.
    let name = config.name.clone().or_else(|| group.map(|group| format!("comm_of_root_{group}")));
    Ok(Comm::named(device, options, name.as_deref())?)
}

fn add_comm(index: i32, device: Device, comm: Comm, seat: Option<Seat>) -> u64 {
    let entry = CommEntry {
        index,
        device,
        comm,
        seat,
        last_thread: AtomicU64::new(u64::MAX),
        contexts: Mutex::default(),
        channels: Mutex::default(),
        connecting: Mutex::default(),
        graph: Mutex::default(),
    };
    process().comms.insert(Arc::new(entry))
}

/// Handles of the communicators of ranks on these devices, which are opened if they are not.
///
/// # Errors
/// No device, too many, one twice, or one that does not open: none is made.
pub fn init_all(ndev: u32, indices: impl Iterator<Item = i32>) -> Result<Vec<u64>, CallError> {
    ranks::check_rank("ndev", ndev, 0)?;
    let devices: Vec<_> = indices.map(|index| Ok((index, device::open(index)?))).collect::<Result<_, CallError>>()?;
    let places: Vec<_> = devices.iter().map(|(index, device)| device::place(*index, device)).collect();
    let seats = ranks::join_all(&places)?;
    let group = seats.first().filter(|seat| seat.size > 1).map(|seat| seat.group);
    let comms = devices.iter().map(|(_, device)| prepare(device, &CommConfig::default(), group)).collect();
    let comms: Vec<Comm> = match comms {
        Ok(comms) => comms,
        Err(error) => {
            seats.iter().for_each(|seat| ranks::leave(*seat, DESTROYED));
            return Err(error);
        }
    };
    let made = devices.into_iter().zip(comms).zip(seats);
    Ok(made.map(|(((index, device), comm), seat)| add_comm(index, device, comm, Some(seat))).collect())
}

/// Handle of a communicator of this library on device `index`, for threads without one of the program.
///
/// # Errors
/// The device is not open, or has no room for it.
pub fn for_threads(index: i32) -> Result<u64, CallError> {
    let device = process().devices.get(&index).ok_or(CallError::NoDevice)?.device.clone();
    let comm = prepare(&device, &CommConfig::default(), None)?;
    Ok(add_comm(index, device, comm, None))
}

/// Releases live threads.
///
/// # Errors
/// A handle that is not that of a live thread; none is released then.
pub fn release(threads: &[ThreadHandle]) -> Result<(), CallError> {
    let mut process = process();
    let mut released = Vec::new();
    for handle in threads {
        let known = process.threads.get(&handle.0).copied().ok_or_else(|| no_thread(handle.0))?;
        released.push((process.comms.get(known.comm)?.clone(), *handle));
    }
    let streams = forget_threads(&mut process, |thread| threads.contains(&thread.handle));
    drop(process);
    for (entry, handle) in released {
        entry.comm.release_threads(&[handle]);
    }
    drop(streams);
    Ok(())
}

/// Bytes that name a communicator to be made.
///
/// # Errors
/// The calling thread has no device.
pub fn root_info() -> Result<[u8; ROOT_INFO_HEAD], CallError> {
    current_device()?;
    let id = ranks::new_group();
    let mut bytes = [0; ROOT_INFO_HEAD];
    bytes[..8].copy_from_slice(&ROOT_INFO_MAGIC);
    bytes[8..].copy_from_slice(&id.to_le_bytes());
    Ok(bytes)
}

/// Handle of the communicator of a rank on the calling thread's device, once all its ranks have called.
///
/// # Errors
/// No device, a rank that is not below `n_ranks` or has called, bytes that [`root_info`] has not given or that all ranks have used,
/// ranks that do not come.
pub fn init_root(
    n_ranks: u32,
    root_info: [u8; ROOT_INFO_HEAD],
    rank: u32,
    config: &CommConfig,
    function: &'static str,
) -> Result<u64, CallError> {
    ranks::check_rank("nRanks", n_ranks, rank)?;
    let (index, device) = current_device()?;
    let (magic, id) = root_info.split_at(8);
    let id = u64::from_le_bytes(id.try_into().expect("8 of 16 bytes"));
    if magic != ROOT_INFO_MAGIC {
        return Err(CallError::Invalid("the root info is not one of HcclGetRootInfo".to_owned()));
    }
    let place = device::place(index, &device);
    // Before the name is taken on this device: what is wrong with the rank comes first.
    ranks::check_join(id, n_ranks, rank, place)?;
    let comm = prepare(&device, config, Some(id).filter(|_| n_ranks > 1))?;
    let seat = ranks::join(id, n_ranks, rank, place, function)?;
    Ok(add_comm(index, device, comm, Some(seat)))
}

/// Destroys a communicator: its threads, its buffer and its contexts end. The call waits for the host's tasks on
/// threads without a stream of the program, because the program can't. It does not wait for the other ranks.
///
/// # Errors
/// Unknown communicator; or a task failed; then the communicator is destroyed, too.
pub fn destroy(handle: u64) -> Result<(), CallError> {
    let mut process = process();
    let entry = process.comms.remove(handle)?;
    let streams = forget_threads(&mut process, |thread| thread.comm == handle);
    drop(process);
    if let Some(seat) = entry.seat {
        ranks::leave(seat, DESTROYED);
    }
    // Outside the lock: the scheduler may be working on its queues.
    let waited = entry.comm.synchronize();
    drop((entry, streams));
    Ok(waited?)
}

/// Waits for all tasks of the host on device `index`.
///
/// # Errors
/// The first error. The call waits for all tasks.
pub fn synchronize_device(index: i32) -> Result<(), CallError> {
    let process = process();
    let streams = process.streams.all(|entry| entry.index == index);
    let comms = process.comms.all(|entry| entry.index == index);
    // Nothing waits while the lock is held.
    drop(process);
    let streams = streams.iter().map(|entry| entry.stream.synchronize());
    let results: Vec<_> = streams.chain(comms.iter().map(|entry| entry.comm.synchronize())).collect();
    Ok(results.into_iter().collect::<Result<(), Error>>()?)
}

/// Its name, by which kernels lock it.
///
/// # Errors
/// Unknown communicator.
pub fn name(handle: u64) -> Result<String, CallError> {
    Ok(get(handle)?.comm.name().to_owned())
}

/// The product that its device is.
///
/// # Errors
/// Unknown communicator.
pub fn product(handle: u64) -> Result<&'static Product, CallError> {
    Ok(get(handle)?.device.options().product)
}

/// Its rank, and the number of ranks.
///
/// # Errors
/// Unknown communicator.
pub fn rank(handle: u64) -> Result<(u32, u32), CallError> {
    Ok(get(handle)?.seat.map_or((0, 1), |seat| (seat.rank, seat.size)))
}

/// # Errors
/// Unknown communicator.
pub fn check(handle: u64) -> Result<(), CallError> {
    get(handle).map(drop)
}

/// Address and size of the cclBuf.
///
/// # Errors
/// Unknown communicator, or no room.
pub fn hccl_buffer(handle: u64) -> Result<(u64, u64), CallError> {
    let (addr, size) = get(handle)?.comm.hccl_buffer()?;
    Ok((addr.0, size))
}

/// As [`hccl_buffer`], with every byte zero.
///
/// # Errors
/// As [`hccl_buffer`]; a device that has failed.
pub fn cleared_buffer(handle: u64) -> Result<(u64, u64), CallError> {
    let entry = get(handle)?;
    let (addr, size) = entry.comm.hccl_buffer()?;
    entry.device.clear(addr, size)?;
    Ok((addr.0, size))
}

/// Acquires threads: all of them, or none.
///
/// # Errors
/// Unknown communicator, an engine without such threads, a count out of range, no more threads or notifies.
pub fn acquire(handle: u64, engine: i32, count: u32, notifies: u32) -> Result<Vec<ThreadHandle>, CallError> {
    let entry = get(handle)?;
    let engine = support::thread_engine(entry.device.options().product, Acquire::Threads, engine)?;
    if !(1..=THREADS_MAX).contains(&count) {
        return Err(CallError::OutOfRange { what: "threadNum", value: count.into(), must: "must be from 1 to 1000" });
    }
    let config = ThreadConfig { engine, ..ThreadConfig::new(count).notifies(notifies) };
    let threads = entry.comm.acquire_threads_at(&config, entry.comm.caller())?;
    let index = entry.index;
    add(threads.iter().map(|thread| ThreadEntry {
        handle: *thread,
        index,
        comm: handle,
        engine,
        stream: None,
        own_stream: None,
    }))?;
    Ok(threads)
}

/// Makes threads of one communicator known to the process.
fn add(threads: impl IntoIterator<Item = ThreadEntry>) -> Result<(), CallError> {
    let mut process = process();
    for known in threads {
        // If the communicator has been destroyed meanwhile, its last user frees them.
        process.comms.get(known.comm)?;
        process.threads.insert(known.handle.0, known);
    }
    Ok(())
}

/// Acquires the thread of a stream. A stream has one in each communicator, and each call returns it, unless it has too
/// few notifies: then a new one is made, and the old one stays valid, because a kernel may have its handle.
///
/// # Errors
/// As [`acquire`]; no such stream, or one of another device.
pub fn acquire_with_stream(
    handle: u64,
    engine: i32,
    stream: u64,
    notify_count: u32,
) -> Result<ThreadHandle, CallError> {
    let entry = get(handle)?;
    let engine = support::thread_engine(entry.device.options().product, Acquire::WithStream, engine)?;
    let of_stream = stream::get(stream)?;
    if of_stream.index != entry.index {
        let (index, other) = (entry.index, of_stream.index);
        return Err(CallError::Invalid(format!("a communicator of device {index} with a stream of device {other}")));
    }
    let thread = entry.comm.acquire_thread_with_stream_at(&of_stream.stream, notify_count, entry.comm.caller())?;
    let index = entry.index;
    add([ThreadEntry { handle: thread, index, comm: handle, engine, stream: Some(stream), own_stream: None }])?;
    Ok(thread)
}

/// Handle of the stream of a thread of the host.
///
/// # Errors
/// Unknown communicator, a thread that is not one of its live threads; a thread of kernels, whose queue no program has a
/// handle for.
pub fn stream_of_thread(handle: u64, thread: u64) -> Result<u64, CallError> {
    let entry = get(handle)?;
    let known = self::thread(thread)?;
    if known.comm != handle {
        return Err(CallError::NoHandle { kind: "live thread of this communicator", handle: thread });
    }
    if known.engine != Engine::CPU_TS {
        let text = "the stream of a thread of kernels: the device drives it, and no function of the host takes it";
        return Err(CallError::NotSupported(text.to_owned()));
    }
    if let Some(stream) = known.stream.or(known.own_stream) {
        return Ok(stream);
    }
    let stream = entry.comm.thread_stream(known.handle)?;
    let mut process = process();
    let stream = process.streams.insert(StreamEntry { index: entry.index, stream });
    // Of two threads that ask at the same time the first one's answer counts.
    let Some(known) = process.threads.get_mut(&thread) else { return Err(no_thread(thread)) };
    let kept = *known.own_stream.get_or_insert(stream);
    let unused = if kept == stream { None } else { process.streams.remove(stream).ok() };
    drop(process);
    drop(unused);
    Ok(kept)
}

/// Removes the threads for which `is_gone` is true. Gives the streams whose handles end with them: to be dropped outside the
/// lock.
fn forget_threads(process: &mut Process, is_gone: impl Fn(&ThreadEntry) -> bool) -> Vec<StreamEntry> {
    let gone: Vec<u64> =
        process.threads.iter().filter(|(_, thread)| is_gone(thread)).map(|(handle, _)| *handle).collect();
    let gone = gone.iter().filter_map(|handle| process.threads.remove(handle)?.own_stream);
    let streams: Vec<u64> = gone.collect();
    streams.into_iter().filter_map(|stream| process.streams.remove(stream).ok()).collect()
}

/// # Errors
/// A number of threads that one call can't export.
pub fn check_export(count: u32) -> Result<(), CallError> {
    match count {
        1..=EXPORT_MAX => Ok(()),
        _ => Err(CallError::OutOfRange { what: "threadNum", value: count.into(), must: "must be from 1 to 40" }),
    }
}

/// The handles of threads of a communicator for `engine`: all of them, or none.
///
/// # Errors
/// Unknown communicator, an engine without threads, a null handle, or one that is not of its threads.
pub fn export(handle: u64, threads: &[u64], engine: i32) -> Result<Vec<ThreadHandle>, CallError> {
    let entry = get(handle)?;
    let engine = support::thread_engine(entry.device.options().product, Acquire::Export, engine)?;
    let export = |thread: &u64| match entry.comm.export_thread(ThreadHandle(*thread), engine) {
        _ if *thread == 0 => Err(CallError::Null("one of threads")),
        // Unlike in other functions, it is a wrong argument (1), not one that is not found (6).
        Err(error @ Error::Thread(ThreadError::BadThread { .. })) => Err(CallError::Invalid(error.to_string())),
        result => Ok(result?),
    };
    threads.iter().map(export).collect()
}

impl ThreadEntry {
    /// The stream that it is tied to, or its own.
    ///
    /// # Errors
    /// It has been destroyed.
    pub fn stream(&self) -> Result<Arc<Stream>, CallError> {
        match self.stream {
            Some(stream) => Ok(stream::get(stream)?.stream),
            None => Ok(get(self.comm)?.comm.thread_stream(self.handle)?),
        }
    }
}

/// A live thread of the process.
///
/// # Errors
/// Null, or not a live thread.
pub fn thread(handle: u64) -> Result<ThreadEntry, CallError> {
    if handle == 0 {
        return Err(CallError::Null("thread"));
    }
    let found = process().threads.get(&handle).copied();
    found.ok_or_else(|| no_thread(handle))
}

fn no_thread(handle: u64) -> CallError {
    CallError::NoHandle { kind: "live thread of this process", handle }
}

/// Communicator and stream of a thread of the host.
fn host_thread(handle: u64) -> Result<(Arc<CommEntry>, Arc<Stream>), CallError> {
    let known = thread(handle)?;
    if known.engine != Engine::CPU_TS {
        let (engine, side) = (known.engine.0, Side::Host);
        return Err(Error::from(Refusal::WrongSide { engine, side }).into());
    }
    Ok((get(known.comm)?, known.stream()?))
}

/// Records notify `index` of thread `to` after the operations of the stream of `thread`.
///
/// # Errors
/// Null, not a live thread, a thread of the other side, an index that is out of range.
pub fn notify_record(thread: u64, to: u64, index: u32) -> Result<(), CallError> {
    for (handle, name) in [(thread, "thread"), (to, "dstThread")] {
        if handle == 0 {
            return Err(CallError::Null(name));
        }
    }
    let (entry, stream) = host_thread(thread)?;
    Ok(entry.comm.notify_record(&stream, ThreadHandle(thread), ThreadHandle(to), index)?)
}

/// Makes later operations of the stream of `thread` wait for notify `index` of `thread`, for up to `timeout_s` seconds;
/// 0 = no limit.
///
/// # Errors
/// As [`notify_record`].
pub fn notify_wait(thread: u64, index: u32, timeout_s: u32) -> Result<(), CallError> {
    let (entry, stream) = host_thread(thread)?;
    Ok(entry.comm.notify_wait(&stream, ThreadHandle(thread), index, timeout_s)?)
}

/// Records the notify with an id after the operations of the stream of `thread`.
///
/// # Errors
/// Null, not a live thread, a thread of the other side, a product without these notifies, an id above the limit.
pub fn aclrt_notify_record(thread: u64, id: u64) -> Result<(), CallError> {
    Ok(host_thread(thread)?.1.aclrt_notify_record(id)?)
}

/// Makes later operations of the stream of `thread` wait for the notify with an id, for up to `timeout_s` seconds; 0 =
/// no limit.
///
/// # Errors
/// As [`aclrt_notify_record`].
pub fn aclrt_notify_wait(thread: u64, id: u64, timeout_s: u32) -> Result<(), CallError> {
    Ok(host_thread(thread)?.1.aclrt_notify_wait(id, timeout_s)?)
}

fn key(tag: &[u8], engine: i32) -> Result<(Vec<u8>, i32), CallError> {
    if tag.len() > TAG_MAX {
        let must = "must be at most 255";
        return Err(CallError::OutOfRange { what: "length of ctxTag", value: tag.len() as i128, must });
    }
    Ok((tag.to_owned(), support::context_engine(engine)?.0))
}

/// Makes memory under a tag: of the device for AICPU engines, of the host for CPU engines.
///
/// # Errors
/// Unknown communicator, a tag that is too long or in use, an engine without contexts, a size of 0, no room.
pub fn create_context(handle: u64, tag: &[u8], engine: i32, size: u64) -> Result<*mut c_void, CallError> {
    let entry = get(handle)?;
    let key = key(tag, engine)?;
    if size == 0 {
        return Err(CallError::OutOfRange { what: "size", value: 0, must: "must be at least 1" });
    }
    match lock(&entry.contexts).entry(key) {
        Entry::Occupied(_) => {
            let tag = String::from_utf8_lossy(tag);
            Err(CallError::Invalid(format!("there is a context {tag:?} of this engine already")))
        }
        Entry::Vacant(free) => {
            let context = match Engine(free.key().1) {
                Engine::CPU_TS => Context::Host(HostBlock::new(size.try_into().unwrap_or(usize::MAX))?),
                _ => Context::Device(entry.device.malloc(size)?),
            };
            Ok(free.insert(context).ptr())
        }
    }
}

fn no_context(tag: &[u8]) -> CallError {
    let tag = String::from_utf8_lossy(tag);
    CallError::Invalid(format!("there is no context {tag:?} of this engine"))
}

/// Address and size of a context.
///
/// # Errors
/// Unknown communicator or context.
pub fn find_context(handle: u64, tag: &[u8], engine: i32) -> Result<(*mut c_void, u64), CallError> {
    let entry = get(handle)?;
    let contexts = lock(&entry.contexts);
    let context = contexts.get(&key(tag, engine)?).ok_or_else(|| no_context(tag))?;
    Ok((context.ptr(), context.len()))
}

/// Copies bytes of the host into a context.
///
/// # Errors
/// Unknown communicator or context, or the bytes do not fit.
pub fn write_context(handle: u64, tag: &[u8], engine: i32, bytes: &[u8], offset: u64) -> Result<(), CallError> {
    let entry = get(handle)?;
    let contexts = lock(&entry.contexts);
    let context = contexts.get(&key(tag, engine)?).ok_or_else(|| no_context(tag))?;
    let (len, size) = (bytes.len() as u64, context.len());
    if offset.checked_add(len).is_none_or(|end| end > size) {
        return Err(CallError::Invalid(format!("{len} bytes at {offset} do not fit into a context of {size}")));
    }
    match context {
        Context::Device(buffer) => Ok(entry.device.copy_in(buffer.at(offset), bytes)?),
        Context::Host(block) => {
            block.write(offset as usize, bytes);
            Ok(())
        }
    }
}

/// Frees a context.
///
/// # Errors
/// Unknown communicator or context.
pub fn destroy_context(handle: u64, tag: &[u8], engine: i32) -> Result<(), CallError> {
    let entry = get(handle)?;
    let removed = lock(&entry.contexts).remove(&key(tag, engine)?);
    removed.map(drop).ok_or_else(|| no_context(tag))
}
