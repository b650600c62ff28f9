//! Communicator of one rank: its buffer and its threads.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::ChannelHandle;
use hcomm_aicpu::spec::thread::{Engine, MAX_THREADS, ThreadHandle};

use crate::buffer::DeviceBuffer;
use crate::card::error::CardError;
use crate::device::Device;
use crate::error::Error;
use crate::launch::Stream;
pub use crate::limits::BUFFSIZE_MAX_MB;
use crate::product::Acquire;
use crate::thread::{self, QueueStatistics, ThreadConfig, ThreadError, ThreadInfo};
use hcomm_sim::event::Caller;

/// Environment variable with half the size of the cclBuf, in MiB.
pub const BUFFSIZE_VAR: &str = "HCCL_BUFFSIZE";
/// Its default.
const BUFFSIZE_DEFAULT_MB: u64 = 200;

/// Most notifies of all threads of a communicator.
pub const MAX_NOTIFIES_OF_COMM: u64 = 65_536;

/// How a communicator is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommOptions {
    /// Bytes of the whole cclBuf; `None`: 2 x `HCCL_BUFFSIZE` MiB, or 2 x 200 MiB without that variable.
    pub ccl_buffer: Option<u64>,
}

/// A communicator. Its threads and its buffer are freed on drop; wait for the streams that use them before.
pub struct Comm {
    device: Device,
    /// Place in the simulated device's table of communicators.
    slot: usize,
    /// Number on the device, from 1: what its threads and channels are marked with.
    id: u64,
    name: String,
    ccl_buffer_size: u64,
    ccl_buffer: Mutex<Option<DeviceBuffer>>,
    channels: Mutex<Vec<ChannelHandle>>,
    threads: Mutex<Threads>,
}

/// Threads of a communicator.
#[derive(Default)]
struct Threads {
    all: Vec<ThreadHandle>,
    /// The thread of each stream of the host, and its notifies.
    of_streams: HashMap<u32, (ThreadHandle, u32)>,
    /// Streams of those threads of the host that were acquired without one.
    own_streams: HashMap<ThreadHandle, Arc<Stream>>,
    /// Notifies of all of them.
    notifies: u64,
}

impl Threads {
    /// # Errors
    /// [`ThreadError::NoNotifies`] if there would be more than [`MAX_NOTIFIES_OF_COMM`].
    fn check_room(&self, wanted: u64) -> Result<(), Error> {
        let (free, max) = (MAX_NOTIFIES_OF_COMM - self.notifies, MAX_NOTIFIES_OF_COMM);
        if wanted > free { Err(ThreadError::NoNotifies { wanted, free, max }.into()) } else { Ok(()) }
    }
}

impl Comm {
    /// A communicator with the default buffer.
    ///
    /// # Errors
    /// `HCCL_BUFFSIZE` is not a valid size.
    pub fn new(device: &Device) -> Result<Self, Error> {
        Self::with_options(device, CommOptions::default())
    }

    /// A communicator.
    ///
    /// # Errors
    /// A buffer of 0 bytes, or `HCCL_BUFFSIZE` is needed and is not a valid size.
    pub fn with_options(device: &Device, options: CommOptions) -> Result<Self, Error> {
        Self::named(device, options, None)
    }

    /// A communicator with a name of the program's; `None`: one that no other has had on this device.
    ///
    /// # Errors
    /// As [`with_options`](Self::with_options), and a name that is empty, too long, or that of another communicator of
    /// the device.
    pub fn named(device: &Device, options: CommOptions, name: Option<&str>) -> Result<Self, Error> {
        let ccl_buffer_size = match options.ccl_buffer {
            Some(0) => return Err(Error::ZeroCclBuffer),
            Some(size) => size,
            None => match std::env::var_os(BUFFSIZE_VAR) {
                None => (2 * BUFFSIZE_DEFAULT_MB) << 20,
                Some(value) => buffsize(&value.to_string_lossy())?,
            },
        };
        let (slot, id, name) = match device.0.card() {
            Some(card) => {
                let taken = || CardError::BadComm(name.unwrap_or_default().to_owned());
                let (id, name) = card.add_comm(name).ok_or_else(taken)?;
                (0, id, name)
            }
            None => lock(&device.0.comms).add(&*device.0.shared.memory, name)?,
        };
        Ok(Self {
            device: device.clone(),
            slot,
            id,
            name,
            ccl_buffer_size,
            ccl_buffer: Mutex::new(None),
            channels: Mutex::default(),
            threads: Mutex::default(),
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Keeps a channel until the communicator is dropped.
    pub(crate) fn add_channel(&self, channel: ChannelHandle) {
        lock(&self.channels).push(channel);
    }

    /// Its name, unique in its device (`HcclGetCommName`). Kernels lock the communicator by this name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Address and size of the cclBuf. The first call allocates it.
    ///
    /// # Errors
    /// No room for it.
    pub fn hccl_buffer(&self) -> Result<(DeviceAddr, u64), Error> {
        let mut buffer = self.ccl_buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = match &mut *buffer {
            Some(buffer) => buffer,
            none => none.insert(self.device.malloc(self.ccl_buffer_size)?),
        };
        Ok((buffer.addr(), buffer.len()))
    }

    /// Acquires `count` threads with `notify_count` notifies each, with rings as deep as the device was opened with.
    ///
    /// # Errors
    /// As [`acquire_threads_with`](Self::acquire_threads_with).
    #[track_caller]
    pub fn acquire_threads(&self, engine: Engine, count: u32, notify_count: u32) -> Result<Vec<ThreadHandle>, Error> {
        self.acquire_threads_with(&ThreadConfig { engine, ..ThreadConfig::new(count).notifies(notify_count) })
    }

    /// Acquires threads: all of them, or none. They stay until the communicator is dropped.
    ///
    /// A thread of engine CPU_TS has a [stream of its own](Self::thread_stream); notifies synchronise it with others.
    ///
    /// # Errors
    /// An engine that is not supported, a count, depth or number of notifies out of range, no room, a failed device.
    #[track_caller]
    pub fn acquire_threads_with(&self, config: &ThreadConfig) -> Result<Vec<ThreadHandle>, Error> {
        self.acquire_threads_at(config, Caller::Source(Location::caller()))
    }

    /// The place in the program that has called, by its return addresses: for a layer above this interface, whose own lines
    /// no report shall name.
    #[track_caller]
    pub fn caller(&self) -> Caller {
        if self.device.0.card().is_some() {
            return Caller::Source(Location::caller());
        }
        Caller::Site(self.device.0.shared.events.site())
    }

    /// As [`acquire_threads_with`](Self::acquire_threads_with), on behalf of `caller`: the place that reports name for
    /// the threads.
    ///
    /// # Errors
    /// As [`acquire_threads_with`](Self::acquire_threads_with).
    pub fn acquire_threads_at(&self, config: &ThreadConfig, caller: Caller) -> Result<Vec<ThreadHandle>, Error> {
        let engine = self.device.options().product.engine_for(Acquire::Threads, config.engine)?;
        let mut threads = self.threads();
        let notifies = u64::from(config.count) * u64::from(config.notify_count);
        // `thread::acquire` checks the numbers themselves, and its errors come first.
        if config.notify_count <= thread::MAX_NOTIFIES && config.count as usize <= MAX_THREADS {
            threads.check_room(notifies)?;
        }
        let mut streams = Vec::new();
        if let Some(card) = self.device.0.card() {
            config.check()?;
            if config.depth.is_some() {
                return Err(CardError::NotOnCard("a ring of another depth").into());
            }
            self.device.0.check_owner()?;
            for _ in 0..config.count {
                let handle = match engine {
                    Engine::CPU_TS => {
                        let stream = Arc::new(Stream::new(&self.device));
                        let handle = card.add_host_thread(stream.id(), config.notify_count)?;
                        threads.own_streams.insert(handle, stream);
                        handle
                    }
                    _ => card.add_thread(config.notify_count)?,
                };
                streams.push(handle);
                threads.all.push(handle);
                threads.notifies += u64::from(config.notify_count);
            }
            return Ok(streams);
        }
        let mut streams = Vec::new();
        let handles = thread::acquire(
            &self.device.0,
            self.id,
            config,
            |count| match engine {
                Engine::CPU_TS => {
                    streams.extend((0..count).map(|_| Arc::new(Stream::new(&self.device))));
                    streams.iter().map(|stream| stream.id()).collect()
                }
                _ => {
                    let first = self.device.0.stream_ids(count);
                    (first..).take(count as usize).collect()
                }
            },
            caller,
        )?;
        threads.all.extend(&handles);
        threads.own_streams.extend(handles.iter().copied().zip(streams));
        threads.notifies += notifies;
        Ok(handles)
    }

    /// The thread of engine CPU_TS of `stream`, with at least `notify_count` notifies (`HcclThreadAcquireWithStream`).
    /// Every call returns the same thread, unless that has too few notifies.
    ///
    /// It is for notifies; a copy on it is refused on an Atlas 350.
    ///
    /// # Errors
    /// As [`acquire_threads_with`](Self::acquire_threads_with), and a stream of another device.
    #[track_caller]
    pub fn acquire_thread_with_stream(&self, stream: &Stream, notify_count: u32) -> Result<ThreadHandle, Error> {
        self.acquire_thread_with_stream_at(stream, notify_count, Caller::Source(Location::caller()))
    }

    /// As [`acquire_thread_with_stream`](Self::acquire_thread_with_stream), on behalf of `caller`.
    ///
    /// # Errors
    /// As [`acquire_thread_with_stream`](Self::acquire_thread_with_stream).
    pub fn acquire_thread_with_stream_at(
        &self,
        stream: &Stream,
        notify_count: u32,
        caller: Caller,
    ) -> Result<ThreadHandle, Error> {
        let (device, other) = (self.device.slot(), stream.device().slot());
        if device != other {
            return Err(Error::OtherDevice { device, other });
        }
        let mut threads = self.threads();
        match threads.of_streams.get(&stream.id()) {
            Some((handle, count)) if *count >= notify_count => return Ok(*handle),
            _ => {}
        }
        if notify_count <= thread::MAX_NOTIFIES {
            threads.check_room(notify_count.into())?;
        }
        let handle = match self.device.0.card() {
            Some(card) => {
                self.device.options().product.engine_for(Acquire::WithStream, Engine::CPU_TS)?;
                card.add_host_thread(stream.id(), notify_count)?
            }
            None => thread::acquire_with_stream(&self.device.0, self.id, stream.id(), notify_count, caller)?,
        };
        threads.all.push(handle);
        threads.of_streams.insert(stream.id(), (handle, notify_count));
        threads.notifies += u64::from(notify_count);
        Ok(handle)
    }

    /// The handle of the thread for `engine` (`HcclThreadExportToCommEngine`): the same number, because host and device
    /// use the same handles here.
    ///
    /// # Errors
    /// The engine is not CPU(_TS) or AICPU(_TS), or the handle is not that of a live thread of this communicator.
    pub fn export_thread(&self, thread: ThreadHandle, engine: Engine) -> Result<ThreadHandle, Error> {
        self.device.options().product.engine_for(Acquire::Export, engine)?;
        if !self.threads().all.contains(&thread) {
            return Err(ThreadError::BadThread { handle: thread.0, engine: None }.into());
        }
        Ok(thread)
    }

    /// The stream of a thread of the host that was acquired without one.
    ///
    /// # Errors
    /// The handle is not that of such a thread of this communicator.
    pub fn thread_stream(&self, thread: ThreadHandle) -> Result<Arc<Stream>, Error> {
        let found = self.threads().own_streams.get(&thread).cloned();
        Ok(found.ok_or(ThreadError::BadThread { handle: thread.0, engine: Some(Engine::CPU_TS.0) })?)
    }

    /// Waits for the streams of all threads of the host that were acquired without one.
    ///
    /// # Errors
    /// The first error of any stream. The call waits for all of them.
    pub fn synchronize(&self) -> Result<(), Error> {
        let mut streams: Vec<_> = self.threads().own_streams.values().cloned().collect();
        streams.sort_by_key(|stream| stream.id());
        let results: Vec<_> = streams.iter().map(|stream| stream.synchronize()).collect();
        results.into_iter().collect()
    }

    /// Id of notify `index` of a thread.
    ///
    /// # Errors
    /// The handle is not that of a live thread, or `index` is out of range.
    pub fn notify_id(&self, thread: ThreadHandle, index: u32) -> Result<u32, Error> {
        match self.device.0.card() {
            Some(card) => Ok(card.notify_id(thread, index)?),
            None => Ok(self.device.0.threads.notify_id(thread, index)?),
        }
    }

    /// Records notify `index` of thread `to` after the operations of `stream`: the host's
    /// `HcommThreadNotifyRecordOnThread`, called with the thread `cpu_thread` of that stream.
    ///
    /// # Errors
    /// `cpu_thread` is not the thread of `stream`, or as [`notify_id`](Self::notify_id); a failed device.
    pub fn notify_record(
        &self,
        stream: &Stream,
        cpu_thread: ThreadHandle,
        to: ThreadHandle,
        index: u32,
    ) -> Result<(), Error> {
        self.check_stream(stream, cpu_thread)?;
        stream.record_notify(self.notify_id(to, index)?)
    }

    /// Makes later operations of `stream` wait for notify `index` of its thread `cpu_thread`, for up to `timeout_s`
    /// seconds (0 = no limit): the host's `HcommThreadNotifyWaitOnThread`.
    ///
    /// # Errors
    /// As [`notify_record`](Self::notify_record).
    pub fn notify_wait(
        &self,
        stream: &Stream,
        cpu_thread: ThreadHandle,
        index: u32,
        timeout_s: u32,
    ) -> Result<(), Error> {
        self.check_stream(stream, cpu_thread)?;
        stream.wait_notify(self.notify_id(cpu_thread, index)?, timeout_s)
    }

    fn check_stream(&self, stream: &Stream, cpu_thread: ThreadHandle) -> Result<(), Error> {
        let other = match self.device.0.card() {
            Some(card) => card.host_stream_id(cpu_thread)?,
            None => self.device.0.threads.host_stream_id(cpu_thread)?,
        };
        let stream_id = stream.id();
        if stream_id == other { Ok(()) } else { Err(Error::OtherStream { stream_id, other }) }
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        lock(&self.threads)
    }

    /// Releases threads of this communicator before it is dropped.
    pub fn release_threads(&self, released: &[ThreadHandle]) {
        let mut threads = self.threads();
        threads.all.retain(|thread| !released.contains(thread));
        threads.of_streams.retain(|_, (thread, _)| !released.contains(thread));
        threads.own_streams.retain(|thread, _| !released.contains(thread));
        let count = |thread: &ThreadHandle| match self.device.0.card() {
            Some(card) => card.notify_count(*thread),
            None => self.device.0.threads.notify_count(*thread),
        };
        let notifies: usize = released.iter().filter_map(count).sum();
        threads.notifies -= notifies as u64;
        if let Some(card) = self.device.0.card() {
            return released.iter().for_each(|thread| card.remove_thread(*thread));
        }
        thread::release(&self.device.0, released);
    }

    /// What a thread is made of, `None` if the handle is not that of a live thread.
    pub fn thread_info(&self, thread: ThreadHandle) -> Option<ThreadInfo> {
        match self.device.0.card() {
            // How deep the ring is, only the AI CPU knows.
            Some(card) => card.thread_ids(thread).map(|(stream_id, sq_id)| ThreadInfo { stream_id, sq_id, depth: 0 }),
            None => self.device.0.threads.info(thread),
        }
    }

    /// Suspends the queues of all threads: their tasks stop, calls on them return 22, and tasks that have not run are
    /// dropped. A launch that loses tasks ends with an error; the device stays usable.
    ///
    /// # Errors
    /// [`Error::SchedulerGone`].
    pub fn suspend(&self) -> Result<(), Error> {
        self.device.0.on_sim("suspend")?;
        thread::suspend(&self.device.0, &self.threads().all)
    }

    /// Resets and enables the queues: they are empty, and the next task goes to slot 0. Waits until no kernel runs,
    /// because one that was launched before the suspension may still ring.
    ///
    /// # Errors
    /// [`Error::Resume`]: a kernel still runs; the queues stay suspended until it ends.
    pub fn resume(&self) -> Result<(), Error> {
        self.device.0.on_sim("resume")?.check_alive()?;
        thread::resume(&self.device.0, &self.threads().all)
    }

    /// Counts of a thread's queue, `None` if the handle is not that of a live thread, or on a card, which does not count.
    pub fn thread_statistics(&self, thread: ThreadHandle) -> Option<QueueStatistics> {
        match self.device.0.card() {
            Some(_) => None,
            None => self.device.0.threads.statistics(thread),
        }
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        if self.device.0.is_forked() {
            return;
        }
        if let Some(card) = self.device.0.card() {
            std::mem::take(&mut self.threads().all).into_iter().for_each(|thread| card.remove_thread(thread));
            return card.remove_comm(&self.name);
        }
        lock(&self.device.0.comms).remove(&*self.device.0.shared.memory, self.slot);
        let threads = std::mem::take(&mut self.threads().all);
        if !threads.is_empty() {
            thread::release(&self.device.0, &threads);
        }
        // After the threads: no queue has a doorbell of them any more.
        let inner = &self.device.0;
        inner.channels.release(&inner.threads, &std::mem::take(&mut *lock(&self.channels)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of the whole cclBuf for a value of `HCCL_BUFFSIZE`.
fn buffsize(value: &str) -> Result<u64, Error> {
    match value.trim().parse::<u64>() {
        Ok(mb) if (1..=BUFFSIZE_MAX_MB).contains(&mb) => Ok((2 * mb) << 20),
        _ => Err(Error::BadBuffSize(value.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffsize_is_half_the_buffer_in_mib() {
        assert_eq!(buffsize("1").unwrap(), 2 << 20);
        assert_eq!(buffsize("200").unwrap(), 400 << 20);
    }

    #[test]
    fn wrong_buffsize_is_named() {
        for value in ["0", "-1", "1.5", "", "65537", "99999999999999999999"] {
            let message = buffsize(value).unwrap_err().to_string();
            let expected = format!("HCCL_BUFFSIZE is {value:?}: must be a whole number of MiB from 1 to 65536");
            assert_eq!(message, expected);
        }
    }
}
