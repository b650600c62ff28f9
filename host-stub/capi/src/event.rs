//! Events.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use super::acl_base::{
    ACL_EVENT_CAPTURE_STREAM_PROGRESS, ACL_EVENT_RECORDED_STATUS_COMPLETE, ACL_EVENT_RECORDED_STATUS_NOT_READY,
    ACL_EVENT_SYNC, ACL_EVENT_TIME_LINE,
};
use super::error::CallError;
use super::objects::EventEntry;
use super::process::{current_device, process};
use super::stream;
use host_stub::{Event, Stream};

/// Flags of an event that `aclrtCreateEvent` makes.
pub const DEFAULT_FLAG: u32 = ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE;
/// Flags that there are.
const FLAGS: u32 = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;

/// Handle of a new event on the calling thread's device.
///
/// # Errors
/// An unknown flag, no device.
pub fn create(flag: u32) -> Result<u64, CallError> {
    if flag == 0 || flag & !FLAGS != 0 {
        let must =
            "must be a sum of ACL_EVENT_SYNC (1), ACL_EVENT_CAPTURE_STREAM_PROGRESS (2) and ACL_EVENT_TIME_LINE (8)";
        return Err(CallError::OutOfRange { what: "flag", value: flag.into(), must });
    }
    let (index, device) = current_device()?;
    Ok(process().events.insert(EventEntry { index, event: Arc::new(Event::new(&device)) }))
}

fn get(handle: u64) -> Result<Arc<Event>, CallError> {
    Ok(Arc::clone(&process().events.get(handle)?.event))
}

/// Destroys an event. Streams that wait for it go on when it is reached.
///
/// # Errors
/// Unknown event.
pub fn destroy(handle: u64) -> Result<(), CallError> {
    let entry = process().events.remove(handle)?;
    // Outside the lock, which must not be held while a part of a device is dropped.
    drop(entry);
    Ok(())
}

/// An event and a stream of one device.
fn get_with_stream(handle: u64, stream: u64) -> Result<(Arc<Event>, Arc<Stream>), CallError> {
    let entry = process().events.get(handle)?.clone();
    let of_stream = stream::get(stream)?;
    if entry.index != of_stream.index {
        let (index, other) = (entry.index, of_stream.index);
        return Err(CallError::Invalid(format!("an event of device {index} on a stream of device {other}")));
    }
    Ok((entry.event, of_stream.stream))
}

/// Records an event after the operations of a stream.
///
/// # Errors
/// Unknown event or stream, two of different devices, a device that has failed.
pub fn record(handle: u64, stream: u64) -> Result<(), CallError> {
    let (event, stream) = get_with_stream(handle, stream)?;
    Ok(event.record(&stream)?)
}

/// Makes later operations of a stream wait for the last record of an event.
///
/// # Errors
/// As [`record`].
pub fn wait_on(stream: u64, handle: u64) -> Result<(), CallError> {
    let (event, stream) = get_with_stream(handle, stream)?;
    Ok(event.wait_on(&stream)?)
}

/// Number of `aclrtEventRecordedStatus`.
///
/// # Errors
/// Unknown event, a device that has failed.
pub fn status(handle: u64) -> Result<i32, CallError> {
    let is_reached = get(handle)?.is_reached()?;
    Ok(if is_reached { ACL_EVENT_RECORDED_STATUS_COMPLETE } else { ACL_EVENT_RECORDED_STATUS_NOT_READY } as i32)
}

/// Waits for the last record of an event.
///
/// # Errors
/// Unknown event, or what went wrong on its stream.
pub fn synchronize(handle: u64) -> Result<(), CallError> {
    Ok(get(handle)?.synchronize_for(Duration::MAX)?)
}

/// Milliseconds between two events.
///
/// # Errors
/// Unknown event, or one that was not reached.
pub fn elapsed_ms(start: u64, end: u64) -> Result<f32, CallError> {
    let at = |handle, name| {
        let reached = get(handle)?.reached_at();
        reached.ok_or_else(|| CallError::Invalid(format!("{name} was not recorded, or its record was not reached")))
    };
    let (start, end) = (at(start, "startEvent")?, at(end, "endEvent")?);
    Ok(((end.as_secs_f64() - start.as_secs_f64()) * 1000.0) as f32)
}
