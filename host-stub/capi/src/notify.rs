//! Notifies of the host.
#![forbid(unsafe_code)]

use std::sync::Arc;

use super::acl_base::{ACL_NOTIFY_DEFAULT, ACL_NOTIFY_DEVICE_USE_ONLY};
use super::error::CallError;
use super::objects::NotifyEntry;
use super::process::{current_device, process};
use super::stream;
use host_stub::Stream;
use host_stub::control::Notify;

/// Handle of a new notify on the calling thread's device.
///
/// # Errors
/// An unknown flag, no device, no id that is free.
pub fn create(flag: u64) -> Result<u64, CallError> {
    if flag != u64::from(ACL_NOTIFY_DEFAULT) && flag != u64::from(ACL_NOTIFY_DEVICE_USE_ONLY) {
        let must = "must be ACL_NOTIFY_DEFAULT (0) or ACL_NOTIFY_DEVICE_USE_ONLY (1)";
        return Err(CallError::OutOfRange { what: "flag", value: flag.into(), must });
    }
    let (index, device) = current_device()?;
    let notify = Arc::new(Notify::new(&device)?);
    Ok(process().notifies.insert(NotifyEntry { index, notify }))
}

fn get(handle: u64) -> Result<NotifyEntry, CallError> {
    process().notifies.get(handle).cloned()
}

/// Destroys a notify.
///
/// # Errors
/// Unknown notify.
pub fn destroy(handle: u64) -> Result<(), CallError> {
    let entry = process().notifies.remove(handle)?;
    // Outside the lock, which must not be held while a part of a device is dropped.
    drop(entry);
    Ok(())
}

/// Its id.
///
/// # Errors
/// Unknown notify.
pub fn id(handle: u64) -> Result<u32, CallError> {
    Ok(get(handle)?.notify.id())
}

/// A notify and a stream of one device.
fn get_with_stream(handle: u64, stream: u64) -> Result<(Arc<Notify>, Arc<Stream>), CallError> {
    let (entry, of_stream) = (get(handle)?, stream::get(stream)?);
    if entry.index != of_stream.index {
        let (index, other) = (entry.index, of_stream.index);
        return Err(CallError::Invalid(format!("a notify of device {index} on a stream of device {other}")));
    }
    Ok((entry.notify, of_stream.stream))
}

/// Records a notify after the operations of a stream.
///
/// # Errors
/// Unknown notify or stream, two of different devices, a device that has failed.
pub fn record(handle: u64, stream: u64) -> Result<(), CallError> {
    let (notify, stream) = get_with_stream(handle, stream)?;
    Ok(notify.record(&stream)?)
}

/// Makes later operations of a stream wait for a notify for up to `timeout_s` seconds (0 = no limit), and clears it.
///
/// # Errors
/// As [`record`].
pub fn wait_and_reset(handle: u64, stream: u64, timeout_s: u32) -> Result<(), CallError> {
    let (notify, stream) = get_with_stream(handle, stream)?;
    Ok(notify.wait_and_reset(&stream, timeout_s)?)
}
