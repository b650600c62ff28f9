//! Streams of the host on a card: launches, notifies, and what the statuses of the kernels say.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::card::{CardLaunch, CardState};
use hcomm_aicpu::spec::params::KernelParams;
use zerocopy::IntoBytes;

use super::acl::{FunctionHandle, SYNC_TIMEOUT, StreamHandle};
use super::device::{CardDevice, lock};
use super::error::{CardError, FailedKernel};

/// How long a call of a kernel waits for room in a full queue: other programs use the AI CPU, too.
const ROOM_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a stream that is dropped waits for the kernels that are left; after that it is aborted.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// The notify that the library records in place of a kernel that has failed.
#[derive(Clone, Copy, Debug, Default)]
pub struct End {
    /// Thread of the kernel on which it is recorded.
    pub thread: u64,
    /// Thread that has it.
    pub peer: u64,
    /// Its index.
    pub notify: u32,
}

/// A launch that was not waited for.
struct Pending {
    kernel: Arc<str>,
    status: u64,
}

struct State {
    /// `None` after an error: the next operation makes another one.
    handle: Option<StreamHandle>,
    /// In the order of the launches.
    pending: Vec<Pending>,
}

/// How a wait for a stream has ended.
pub enum Ended {
    /// All operations have completed.
    Complete,
    /// So many launches have not.
    TimedOut(u64),
}

/// A stream.
pub struct CardStream {
    device: Arc<CardDevice>,
    /// Number of the first stream of the runtime; 0 if there was none.
    id: u32,
    /// Why there was none.
    failed: Option<CardError>,
    state: Mutex<State>,
}

impl CardStream {
    /// A stream. If the runtime gives none, every call says why.
    pub fn new(device: &Arc<CardDevice>) -> Self {
        let made = device.choose().and_then(|acl| {
            let handle = acl.create_stream(false)?;
            Ok((handle, acl.stream_id(handle)?))
        });
        let (handle, id, failed) = match made {
            Ok((handle, id)) => (Some(handle), id, None),
            Err(error) => (None, 0, Some(error)),
        };
        Self { device: Arc::clone(device), id, failed, state: Mutex::new(State { handle, pending: Vec::new() }) }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, CardError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(lock(&self.state)),
        }
    }

    fn handle(&self, state: &mut State) -> Result<StreamHandle, CardError> {
        match state.handle {
            Some(handle) => Ok(handle),
            None => Ok(*state.handle.insert(self.device.choose()?.create_stream(false)?)),
        }
    }

    /// Launches a kernel with its parameters by value, behind the head that the card's library reads.
    ///
    /// # Errors
    /// An error of the runtime.
    pub fn launch(
        &self,
        kernel: &Arc<str>,
        function: FunctionHandle,
        params: &[u8],
        end: End,
        timeout: Duration,
    ) -> Result<(), CardError> {
        let mut state = self.state()?;
        let stream = self.handle(&mut state)?;
        let status = self.device.new_status()?;
        let head = CardLaunch {
            header: CardLaunch::HEADER,
            status: DeviceAddr(status),
            params_size: params.len() as u64,
            threads: self.device.slots(),
            end_thread: end.thread,
            end_peer: end.peer,
            end_notify: end.notify,
            timeout_ms: timeout.min(ROOM_TIMEOUT).as_millis() as u32,
        };
        let bytes = [head.as_bytes(), params].concat();
        let seconds = u16::try_from(timeout.as_secs()).unwrap_or(u16::MAX).max(1);
        match self.device.choose().and_then(|acl| acl.launch(function, stream, &bytes, seconds)) {
            Ok(()) => {
                state.pending.push(Pending { kernel: Arc::clone(kernel), status });
                Ok(())
            }
            Err(error) => {
                self.device.drop_status(status);
                Err(error)
            }
        }
    }

    /// Records a notify after the operations of the stream.
    ///
    /// # Errors
    /// Not the id of a notify of this device; an error of the runtime.
    pub fn record(&self, id: u32) -> Result<(), CardError> {
        let (mut state, notify) = (self.state()?, self.device.notify(id)?);
        let stream = self.handle(&mut state)?;
        self.device.choose()?.record(notify, stream)
    }

    /// Makes the stream wait for a notify.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn wait(&self, id: u32, seconds: u32) -> Result<(), CardError> {
        let (mut state, notify) = (self.state()?, self.device.notify(id)?);
        let stream = self.handle(&mut state)?;
        self.device.choose()?.wait_and_reset(notify, stream, seconds)
    }

    /// Waits for all operations, for at most `timeout`.
    ///
    /// # Errors
    /// The first kernel that has failed, by its status; without one, the runtime's code and the first failed task.
    pub fn synchronize(&self, timeout: Duration) -> Result<Ended, CardError> {
        let mut state = self.state()?;
        let Some(stream) = state.handle else { return Ok(Ended::Complete) };
        let ms = if timeout == Duration::MAX { -1 } else { i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX) };
        let code = self.device.choose()?.synchronize(stream, ms);
        if code == SYNC_TIMEOUT {
            return Ok(Ended::TimedOut(state.pending.len() as u64));
        }
        let mut failed = None;
        for Pending { kernel, status: addr } in std::mem::take(&mut state.pending) {
            let status = self.device.read_status(addr)?;
            match status.state {
                CardState::DONE => self.device.drop_status(addr),
                // It may still be written, by a kernel that was never ended: it stays.
                CardState::PENDING if code != 0 => {}
                _ => {
                    self.device.drop_status(addr);
                    failed.get_or_insert_with(|| FailedKernel::new(&kernel, &status));
                }
            }
        }
        if code != 0 {
            // What the runtime leaves of a stream that has failed is not documented.
            state.handle = None;
            if let Err(error) = self.device.choose().and_then(|acl| acl.destroy_stream(stream, true)) {
                log::warn!("stream {}: {error}", self.id);
            }
        }
        drop(state);
        match failed {
            Some(mut failed) => {
                if failed.task.thread == 0 && code != 0 {
                    failed.task = self.device.failed_task();
                }
                Err(CardError::Kernel(Box::new(failed)))
            }
            None if code != 0 => Err(CardError::Stream { stream_id: self.id, code, task: self.device.failed_task() }),
            None => Ok(Ended::Complete),
        }
    }
}

impl Drop for CardStream {
    fn drop(&mut self) {
        if self.device.is_forked() {
            return;
        }
        let State { handle, pending } = std::mem::replace(
            self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner),
            State { handle: None, pending: Vec::new() },
        );
        // Kernels that are left may still write their statuses.
        if let Some(stream) = handle {
            let acl = match self.device.choose() {
                Ok(acl) => acl,
                Err(error) => return log::warn!("stream {}: {error}", self.id),
            };
            let code = if pending.is_empty() { 0 } else { acl.synchronize(stream, DROP_TIMEOUT.as_millis() as i32) };
            if let Err(error) = acl.destroy_stream(stream, code != 0) {
                log::warn!("stream {}: {error}", self.id);
            }
        }
        pending.iter().for_each(|left| self.device.drop_status(left.status));
    }
}
