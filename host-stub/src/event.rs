//! Events: places that a stream reaches, for which other streams and the host wait.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::device::Device;
use crate::error::Error;
use crate::launch::Stream;
use hcomm_sim::Op;
use hcomm_sim::check::findings::Receiver;
use hcomm_sim::event::{Access, AccessKind, HostThread, Object, What};
use hcomm_sim::stream_event::EventMark;

/// The last record of an event.
#[derive(Clone)]
struct Record {
    stream: Arc<Stream>,
    mark: Arc<EventMark>,
    /// Place of the record among the operations of the stream.
    place: u64,
}

/// An event of a device (`aclrtCreateEvent`).
pub struct Event {
    device: Device,
    number: u32,
    last: Mutex<Option<Record>>,
}

impl Event {
    /// An event that was never recorded.
    pub fn new(device: &Device) -> Self {
        let number = if device.0.card().is_some() { 0 } else { device.0.event_number() };
        Self { device: device.clone(), number, last: Mutex::new(None) }
    }

    fn last(&self) -> MutexGuard<'_, Option<Record>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records it after the operations of `stream` (`aclrtRecordEvent`). What waited for an earlier record waits for that.
    ///
    /// # Errors
    /// A stream of another device, a failed device.
    pub fn record(&self, stream: &Arc<Stream>) -> Result<(), Error> {
        self.check(stream)?;
        self.device.0.on_sim("an event")?;
        let mark = Arc::new(EventMark::new(self.number));
        let place = stream.submit(Op::EventRecord(Arc::clone(&mark)))?;
        *self.last() = Some(Record { stream: Arc::clone(stream), mark, place });
        Ok(())
    }

    /// Makes later operations of `stream` wait for the last record so far (`aclrtStreamWaitEvent`). An event that was never
    /// recorded is no reason to wait.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn wait_on(&self, stream: &Stream) -> Result<(), Error> {
        self.check(stream)?;
        self.device.0.on_sim("an event")?;
        let last = self.last().clone();
        match last {
            Some(Record { mark, .. }) => stream.submit(Op::EventWait(mark)).map(drop),
            None => self.device.0.check_alive(),
        }
    }

    /// Whether its last record was reached (`aclrtQueryEventStatus`). An event that was never recorded was not.
    ///
    /// # Errors
    /// A failed device.
    pub fn is_reached(&self) -> Result<bool, Error> {
        self.device.0.on_sim("an event")?.check_alive()?;
        let turn = &self.device.0.shared.turn;
        turn.host_point();
        turn.touch(Access::new(Object::Event(self.number), AccessKind::Read));
        let is_reached = self.last().as_ref().is_some_and(|record| record.mark.reached_at().is_some());
        if is_reached {
            self.observe();
        }
        Ok(is_reached)
    }

    /// Waits until its last record so far is reached (`aclrtSynchronizeEvent`). Does not wait if it was never recorded.
    ///
    /// # Errors
    /// As [`Stream::synchronize_for`], of the stream that it was recorded on.
    pub fn synchronize_for(&self, timeout: Duration) -> Result<(), Error> {
        self.device.0.on_sim("an event")?.check_owner()?;
        let last = self.last().clone();
        let Some(Record { stream, mark, place }) = last else { return self.device.0.check_alive() };
        let mut waited = if mark.is_over() { self.device.0.check_alive() } else { stream.wait_until(place, timeout) };
        if waited.is_ok() && !mark.is_over() {
            // Another thread submitted at the same time, and its operation came first.
            waited = stream.wait_until(stream.last_place(), timeout);
        }
        if mark.is_over() {
            self.observe();
        }
        waited.and_then(|()| self.device.0.check_findings(Receiver::Stream(stream.id())))
    }

    /// When its last record was reached, since the device was opened; `None`: not yet, or never recorded.
    pub fn reached_at(&self) -> Option<Duration> {
        self.last().as_ref()?.mark.reached_at()
    }

    /// The calling thread knows what had happened before the record.
    fn observe(&self) {
        let events = &self.device.0.shared.events;
        let _call = events.host_call();
        events.send(|| What::EventObserved { host: HostThread::current(), event: self.number });
    }

    fn check(&self, stream: &Stream) -> Result<(), Error> {
        let (device, other) = (self.device.slot(), stream.device().slot());
        if device == other { Ok(()) } else { Err(Error::OtherDevice { device, other }) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.0.card().is_some() || self.device.0.is_forked() {
            return;
        }
        let events = &self.device.0.shared.events;
        let _call = events.host_call();
        events.send(|| What::EventDestroyed { host: HostThread::current(), event: self.number });
    }
}
