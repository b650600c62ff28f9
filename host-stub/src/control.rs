//! Synchronisation of host and kernel: notifies on a stream, and the control pair of a launch.
//!
//! A thread of engine CPU_TS belongs to a stream of the host: its tasks are operations of that stream. A kernel's
//! thread and a stream's thread each have notifies, which the other side records.
#![forbid(unsafe_code)]

use std::sync::Arc;

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::Control;

use crate::card::stream::End;
use crate::comm::Comm;
use crate::device::Device;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::launch::{LaunchOptions, Stream, check_head};
use hcomm_sim::LaunchStats;

/// Limit in seconds that operators give to the wait for a kernel's end.
pub const END_TIMEOUT_S: u32 = 1836;

/// A notify of no thread, for streams of the host (`aclrtCreateNotify`). It is freed on drop; the streams that use it
/// must be idle then.
pub struct Notify {
    device: Device,
    id: u32,
}

impl Notify {
    /// A new notify (`aclrtCreateNotify`).
    ///
    /// # Errors
    /// No id is free, or the device has failed.
    pub fn new(device: &Device) -> Result<Self, Error> {
        device.0.check_alive()?;
        let id = match device.0.card() {
            Some(card) => card.add_notify()?,
            None => device.0.threads.add_notify()?,
        };
        Ok(Self { device: device.clone(), id })
    }

    /// Its id (`aclrtGetNotifyId`).
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Records it after the operations of `stream` (`aclrtRecordNotify`).
    ///
    /// # Errors
    /// A stream of another device, a failed device.
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        self.check(stream)?;
        stream.record_notify(self.id)
    }

    /// Makes later operations of `stream` wait for it, for up to `timeout_s` seconds (0 = no limit), and clears it
    /// (`aclrtWaitAndResetNotify`).
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn wait_and_reset(&self, stream: &Stream, timeout_s: u32) -> Result<(), Error> {
        self.check(stream)?;
        stream.wait_notify(self.id, timeout_s)
    }

    fn check(&self, stream: &Stream) -> Result<(), Error> {
        let (device, other) = (self.device.slot(), stream.device().slot());
        if device == other { Ok(()) } else { Err(Error::OtherDevice { device, other }) }
    }
}

impl Drop for Notify {
    fn drop(&mut self) {
        if self.device.0.is_forked() {
            return;
        }
        match self.device.0.card() {
            Some(card) => card.remove_notify(self.id),
            None => self.device.0.threads.remove_notify(self.id),
        }
    }
}

/// Orders the tasks of a launch with its stream: the host records the start notify on the stream, the kernel waits for
/// it as its first task and records the end notify as its last, and the stream waits for that.
#[derive(Clone, Copy, Debug)]
pub struct ControlPair {
    control: Control,
    /// The kernel's first thread.
    thread: ThreadHandle,
    stream_id: u32,
    start_id: u32,
    end_id: u32,
    timeout_s: u32,
}

impl ControlPair {
    /// The pair of `stream` and the kernel's first thread, whose notify `start_index` is the start notify.
    ///
    /// # Errors
    /// `thread` is not live, `start_index` is out of range, or there is no room for the stream's thread.
    pub fn new(comm: &Comm, stream: &Stream, thread: ThreadHandle, start_index: u32) -> Result<Self, Error> {
        let start_id = comm.notify_id(thread, start_index)?;
        let cpu_thread = comm.acquire_thread_with_stream(stream, 1)?;
        let control = Control { cpu_thread: cpu_thread.0, start_notify: start_index, end_notify: 0 };
        let end_id = comm.notify_id(cpu_thread, 0)?;
        Ok(Self { control, thread, stream_id: stream.id(), start_id, end_id, timeout_s: END_TIMEOUT_S })
    }

    /// Sets how long the stream waits for the end of the kernel's work, in seconds; 0 = no limit.
    pub fn with_timeout_s(self, timeout_s: u32) -> Self {
        Self { timeout_s, ..self }
    }

    /// The kernel's part of it, for the parameters.
    pub fn control(&self) -> Control {
        self.control
    }
}

impl Stream {
    /// Launches a kernel as an operator does: records the start notify of `pair`, launches, and waits for its end notify.
    /// The parameters must contain `pair`'s [`Control`](hcomm_kernel::Control).
    ///
    /// # Errors
    /// As [`launch`](Self::launch), and a pair of another stream.
    pub fn launch_with_control<P: KernelParams>(
        &self,
        pair: &ControlPair,
        kernel: &Kernel,
        params: &P,
    ) -> Result<Arc<LaunchStats>, Error> {
        if pair.stream_id != self.id() {
            return Err(Error::OtherStream { stream_id: self.id(), other: pair.stream_id });
        }
        self.record_notify(pair.start_id)?;
        let stats = match self.device().0.card() {
            Some(_) => {
                check_head(params)?;
                let Control { cpu_thread: peer, end_notify: notify, .. } = pair.control;
                let end = End { thread: pair.thread.0, peer, notify };
                self.launch_on_card(kernel, params.as_bytes(), LaunchOptions::default(), end)?
            }
            None => self.launch(kernel, params)?,
        };
        self.wait_notify(pair.end_id, pair.timeout_s)?;
        Ok(stats)
    }
}
