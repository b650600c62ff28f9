//! Communicator of one rank: its buffer and its threads.
#![forbid(unsafe_code)]

use std::sync::{Mutex, PoisonError};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};

use crate::buffer::DeviceBuffer;
use crate::device::Device;
use crate::error::Error;
use crate::thread::{self, QueueStatistics, ThreadConfig, ThreadInfo};

/// Environment variable with half the size of the cclBuf, in MiB.
pub const BUFFSIZE_VAR: &str = "HCCL_BUFFSIZE";
/// Its default.
const BUFFSIZE_DEFAULT_MB: u64 = 200;
/// Its largest value: the buffer is as large as the largest HBM.
pub const BUFFSIZE_MAX_MB: u64 = hcomm_aicpu::spec::map::HBM_MAX >> 21;

/// How a communicator is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommOptions {
    /// Bytes of the whole cclBuf; `None`: 2 x `HCCL_BUFFSIZE` MiB, or 2 x 200 MiB without that variable.
    pub ccl_buffer: Option<u64>,
}

/// A communicator. Its threads and its buffer are freed on drop; wait for the streams that use them before.
pub struct Comm {
    device: Device,
    ccl_buffer_size: u64,
    ccl_buffer: Mutex<Option<DeviceBuffer>>,
    threads: Mutex<Vec<ThreadHandle>>,
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
        let ccl_buffer_size = match options.ccl_buffer {
            Some(0) => return Err(Error::ZeroCclBuffer),
            Some(size) => size,
            None => match std::env::var_os(BUFFSIZE_VAR) {
                None => (2 * BUFFSIZE_DEFAULT_MB) << 20,
                Some(value) => buffsize(&value.to_string_lossy())?,
            },
        };
        Ok(Self {
            device: device.clone(),
            ccl_buffer_size,
            ccl_buffer: Mutex::new(None),
            threads: Mutex::new(Vec::new()),
        })
    }

    /// Address and size of the cclBuf, which is allocated by the first call.
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
    pub fn acquire_threads(&self, engine: Engine, count: u32, notify_count: u32) -> Result<Vec<ThreadHandle>, Error> {
        self.acquire_threads_with(&ThreadConfig { engine, ..ThreadConfig::new(count).notifies(notify_count) })
    }

    /// Acquires threads: all of them, or none. They stay until the communicator is dropped.
    ///
    /// # Errors
    /// An engine that is not supported, a count, depth or number of notifies out of range, no room, a failed device.
    pub fn acquire_threads_with(&self, config: &ThreadConfig) -> Result<Vec<ThreadHandle>, Error> {
        let handles = thread::acquire(&self.device.0, config)?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).extend(&handles);
        Ok(handles)
    }

    /// Gives threads of this communicator back before it is dropped.
    pub(crate) fn release_threads(&self, released: &[ThreadHandle]) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).retain(|thread| !released.contains(thread));
        thread::release(&self.device.0, released);
    }

    /// What a thread is made of, `None` if the handle is not that of a live thread.
    pub fn thread_info(&self, thread: ThreadHandle) -> Option<ThreadInfo> {
        thread::info(&self.device.0, thread)
    }

    /// Suspends the queues of all threads: nothing of them runs any more, calls on them answer 22, and what they had not run
    /// is dropped. A launch that loses tasks by this ends with an error; the device is well.
    ///
    /// # Errors
    /// [`Error::SchedulerGone`].
    pub fn suspend(&self) -> Result<(), Error> {
        thread::suspend(&self.device.0, &self.threads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets the queues start anew, empty: the next task goes to slot 0. Waits until no kernel runs, because one that was
    /// launched before the suspension may still ring.
    ///
    /// # Errors
    /// [`Error::Resume`]: a kernel still runs; the queues stay suspended until it ends.
    pub fn resume(&self) -> Result<(), Error> {
        self.device.0.check_alive()?;
        thread::resume(&self.device.0, &self.threads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts of a thread's queue, `None` if the handle is not that of a live thread.
    pub fn thread_statistics(&self, thread: ThreadHandle) -> Option<QueueStatistics> {
        thread::statistics(&self.device.0, thread)
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        let threads = std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !threads.is_empty() {
            thread::release(&self.device.0, &threads);
        }
    }
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
