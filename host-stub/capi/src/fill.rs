//! Memory that is filled, and how much there is.

use std::ffi::c_void;

use hcomm_aicpu::spec::DeviceAddr;

use super::error::CallError;
use super::memory::check_host_len;
use super::process::{Place, current_device, place_of};
use host_stub::Device;

/// Bytes that a fill writes at a time.
const STEP: usize = 1 << 20;
/// Numbers of `aclrtMemAttr` that are DDR: the simulated device has none.
const DDR: [i32; 5] = [0, 2, 3, 6, 7];
/// Numbers of `aclrtMemAttr` that are HBM.
const HBM: [i32; 5] = [1, 4, 5, 8, 9];

/// Sets `count` bytes of a device or of the host to the low byte of `value`. Waits for no stream.
///
/// # Errors
/// Null, more bytes than the destination has, a range that is not one live allocation. Of no bytes only the first two are
/// errors.
///
/// # Safety
/// A range of the host can be written.
pub unsafe fn fill(ptr: *mut c_void, max: usize, value: i32, count: usize) -> Result<(), CallError> {
    check(ptr, max, count)?;
    // Nothing is looked at, also one past the end of a range.
    if count == 0 {
        return Ok(());
    }
    let byte = value as u8;
    match place_of(ptr.addr() as u64) {
        Place::Closed => Err(CallError::Invalid(format!("{ptr:p} is device memory of a device that is not open"))),
        Place::Device(device) => fill_device(&device, DeviceAddr::from(ptr), byte, count as u64),
        Place::Host => {
            check_host_len(count)?;
            // SAFETY: not null, and the caller owes `count` bytes that can be written.
            unsafe { ptr.cast::<u8>().write_bytes(byte, count) };
            Ok(())
        }
    }
}

/// # Errors
/// Null, or more bytes than the destination has.
pub fn check(ptr: *mut c_void, max: usize, count: usize) -> Result<(), CallError> {
    if ptr.is_null() {
        return Err(CallError::Null("devPtr"));
    }
    if count > max {
        return Err(CallError::OutOfRange { what: "count", value: count as i128, must: "must be at most maxCount" });
    }
    Ok(())
}

fn fill_device(device: &Device, addr: DeviceAddr, byte: u8, count: u64) -> Result<(), CallError> {
    device.check_range(addr, count)?;
    Ok(in_steps(addr, byte, count, |addr, part| device.copy_in(addr, part))?)
}

/// Writes `count` times `byte`, by `write`, a part at a time.
///
/// # Errors
/// The first of `write`.
pub fn in_steps<E>(
    addr: DeviceAddr,
    byte: u8,
    count: u64,
    mut write: impl FnMut(DeviceAddr, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let bytes = vec![byte; count.min(STEP as u64) as usize];
    for offset in (0..count).step_by(STEP) {
        let part = &bytes[..(count - offset).min(STEP as u64) as usize];
        write(DeviceAddr(addr.0 + offset), part)?;
    }
    Ok(())
}

/// Free and all bytes of a kind of memory of the calling thread's device.
///
/// # Errors
/// No device; a kind that there is not.
pub fn info(attr: i32) -> Result<(usize, usize), CallError> {
    let (_, device) = current_device()?;
    match attr {
        _ if HBM.contains(&attr) => Ok((device.free_memory() as usize, device.options().hbm_size as usize)),
        _ if DDR.contains(&attr) => Ok((0, 0)),
        _ => Err(CallError::OutOfRange { what: "attr", value: attr.into(), must: "must be from 0 to 9" }),
    }
}
