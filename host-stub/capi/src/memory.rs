//! Memory of devices and of the host, and copies between them.

use std::ffi::c_void;

use hcomm_aicpu::spec::DeviceAddr;

use super::acl_base::{
    ACL_MEM_ACCESS_USER_SPACE_READONLY, ACL_RT_MEM_ATTR_DEVICE_ID, ACL_RT_MEM_ATTR_MODULE_ID, ACL_RT_MEM_ATTR_VA_FLAG,
    aclrtMallocAttribute, aclrtMallocConfig, number,
};
use super::call::{bytes_arg, not_null};
use super::error::CallError;
use super::host_block::HostBlock;
use super::process::{Place, current_device, place_of, process};
use host_stub::Device;

/// Bytes that a copy between two devices takes at a time.
const BOUNCE_LEN: u64 = 1 << 20;
/// Kinds of copy: 0 to this. The addresses decide the direction of a copy; the kind is a hint.
const MEMCPY_KIND_MAX: i32 = 7;

/// Allocates device memory.
///
/// # Errors
/// No device, a size of 0, no room, or memory that is to be read-only.
pub fn allocate(size: usize, policy: i32) -> Result<*mut c_void, CallError> {
    if policy & ACL_MEM_ACCESS_USER_SPACE_READONLY as i32 != 0 {
        return Err(CallError::NotSupported(format!("policy {policy:#x}: read-only memory is not simulated")));
    }
    let (_, device) = current_device()?;
    let addr = device.allocate(size as u64)?;
    Ok(std::ptr::with_exposed_provenance_mut(addr.0 as usize))
}

/// Checks the attributes of an allocation.
///
/// # Errors
/// An attribute that is not known or not supported.
///
/// # Safety
/// `config` is null, or a configuration can be read there, and its attributes where it says.
pub unsafe fn check_config(config: *const aclrtMallocConfig) -> Result<(), CallError> {
    if config.is_null() {
        return Ok(());
    }
    // SAFETY: not null, so the caller owes a configuration.
    let config = unsafe { config.read_unaligned() };
    if config.numAttrs != 0 && config.attrs.is_null() {
        return Err(CallError::Null("cfg->attrs"));
    }
    for index in 0..config.numAttrs {
        // SAFETY: the caller owes `numAttrs` attributes from `attrs` on.
        check_attribute(unsafe { config.attrs.add(index).read_unaligned() })?;
    }
    Ok(())
}

fn check_attribute(attribute: aclrtMallocAttribute) -> Result<(), CallError> {
    // SAFETY: all eight bytes of the union were read from the caller's memory; any bits are these integers.
    let (device, flag) = unsafe { (attribute.value.deviceId, attribute.value.vaFlag) };
    match number(attribute.attr) {
        // It names a module for statistics, which do not exist here.
        ACL_RT_MEM_ATTR_MODULE_ID => Ok(()),
        ACL_RT_MEM_ATTR_DEVICE_ID => match current_device()? {
            (index, _) if i64::from(index) == i64::from(device) => Ok(()),
            (index, _) => {
                Err(CallError::NotSupported(format!("memory of device {device} by a thread of device {index}")))
            }
        },
        ACL_RT_MEM_ATTR_VA_FLAG if flag == 0 => Ok(()),
        ACL_RT_MEM_ATTR_VA_FLAG => Err(CallError::NotSupported(format!("address flag {flag}"))),
        other => Err(CallError::OutOfRange { what: "cfg->attrs->attr", value: other.into(), must: "not an attribute" }),
    }
}

/// Frees device memory of any open device.
///
/// # Errors
/// Not the start of a live allocation.
pub fn free(ptr: *mut c_void) -> Result<(), CallError> {
    match place_of(ptr.addr() as u64) {
        _ if ptr.is_null() => Err(CallError::Null("devPtr")),
        Place::Device(device) => Ok(device.free(DeviceAddr::from(ptr))?),
        Place::Host | Place::Closed => Err(CallError::Invalid(format!("{ptr:p} is not memory of an open device"))),
    }
}

/// Allocates host memory.
///
/// # Errors
/// A size of 0, or no room.
pub fn allocate_host(size: usize) -> Result<*mut c_void, CallError> {
    let block = HostBlock::new(size)?;
    let ptr = block.ptr();
    process().host_memory.insert(ptr.addr(), block);
    Ok(ptr)
}

/// Frees host memory.
///
/// # Errors
/// Not from [`allocate_host`], or freed already.
pub fn free_host(ptr: *mut c_void) -> Result<(), CallError> {
    if ptr.is_null() {
        return Err(CallError::Null("hostPtr"));
    }
    match process().host_memory.remove(&ptr.addr()) {
        Some(_) => Ok(()),
        None => Err(CallError::Invalid(format!("{ptr:p} is not live host memory of aclrtMallocHost"))),
    }
}

/// Copies `count` bytes between any two of host and devices. Waits for no stream.
///
/// # Errors
/// Null, more bytes than the destination has, an unknown kind, a range that is not inside one live allocation; 0 bytes
/// are always copied.
///
/// # Safety
/// Ranges of the host can be read and written.
pub unsafe fn copy(
    dst: *mut c_void,
    dest_max: usize,
    src: *const c_void,
    count: usize,
    kind: i32,
) -> Result<(), CallError> {
    not_null([(dst, "dst"), (src, "src")])?;
    check_copy(dest_max, count, kind)?;
    if count == 0 {
        // As for the copy of a kernel: addresses are not checked, in any direction.
        return Ok(());
    }
    let (to, from) = (DeviceAddr::from(dst), DeviceAddr::from(src));
    match (place_of(to.0), place_of(from.0)) {
        (Place::Closed, _) | (_, Place::Closed) => {
            Err(CallError::Invalid(format!("{to} or {from} is device memory of a device that is not open")))
        }
        (Place::Device(device), Place::Host) => {
            // SAFETY: the caller owes a readable range.
            Ok(device.copy_in(to, unsafe { bytes_arg(src, count as u64, "src") }?)?)
        }
        (Place::Host, Place::Device(device)) => {
            check_host_len(count)?;
            // SAFETY: not null, and the caller owes a range that can be written; the device fills it.
            Ok(device.copy_out(from, unsafe { std::slice::from_raw_parts_mut(dst.cast(), count) })?)
        }
        (Place::Device(device), Place::Device(source)) => copy_devices(&device, to, &source, from, count as u64),
        (Place::Host, Place::Host) => {
            check_host_len(count)?;
            // SAFETY: the caller owes both ranges; they may overlap.
            unsafe { std::ptr::copy(src.cast::<u8>(), dst.cast::<u8>(), count) };
            Ok(())
        }
    }
}

/// # Errors
/// More bytes than the destination has, an unknown kind.
pub fn check_copy(dest_max: usize, count: usize, kind: i32) -> Result<(), CallError> {
    if count > dest_max {
        let must = "must be at most destMax";
        return Err(CallError::OutOfRange { what: "count", value: count as i128, must });
    }
    if !(0..=MEMCPY_KIND_MAX).contains(&kind) {
        return Err(CallError::OutOfRange { what: "kind", value: kind.into(), must: "must be from 0 to 7" });
    }
    Ok(())
}

/// # Errors
/// More bytes than memory of the host can have.
pub fn check_host_len(count: usize) -> Result<(), CallError> {
    match isize::try_from(count) {
        Ok(_) => Ok(()),
        Err(_) => Err(CallError::OutOfRange { what: "count", value: count as i128, must: "more than there is memory" }),
    }
}

fn copy_devices(device: &Device, to: DeviceAddr, source: &Device, from: DeviceAddr, len: u64) -> Result<(), CallError> {
    device.check_range(to, len)?;
    source.check_range(from, len)?;
    if device.slot() == source.slot() {
        return Ok(device.copy_within(to, from, len)?);
    }
    let mut bounce = vec![0; len.min(BOUNCE_LEN) as usize];
    for offset in (0..len).step_by(BOUNCE_LEN as usize) {
        let part = &mut bounce[..(len - offset).min(BOUNCE_LEN) as usize];
        source.copy_out(DeviceAddr(from.0 + offset), part)?;
        device.copy_in(DeviceAddr(to.0 + offset), part)?;
    }
    Ok(())
}
