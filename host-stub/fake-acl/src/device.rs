//! Device and memory.
#![allow(non_snake_case, reason = "names of the runtime's functions")]

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::slice;

use hcomm_aicpu::spec::DeviceAddr;
use host_stub::Cpu;
use host_stub::product::Product;

use crate::codes;
use crate::driver::HOST_DEVICE;
use crate::world::{Config, code, code_of, configure, current, initialise, reset_device, set_device};

/// Of the stand-in alone: 0 for a native AI CPU, 1 for that of AArch64 Linux; key of the product; folder of what was built.
///
/// # Safety
/// The two texts end with a zero byte.
#[unsafe(no_mangle)]
unsafe extern "C" fn hcomm_fake_card(cpu: i32, product: *const c_char, folder: *const c_char) -> i32 {
    // SAFETY: the caller owes texts.
    let (product, folder) = unsafe { (CStr::from_ptr(product), CStr::from_ptr(folder)) };
    let Some(product) = product.to_str().ok().and_then(Product::from_key) else { return codes::INVALID_PARAM };
    let cpu = if cpu == 0 { Cpu::Native } else { Cpu::Linux };
    code(configure(Config { cpu, product, folder: OsStr::from_bytes(folder.to_bytes()).into() }))
}

#[unsafe(no_mangle)]
extern "C" fn aclInit(config: *const c_char) -> i32 {
    if config.is_null() { initialise() } else { codes::API_NOT_SUPPORT }
}

#[unsafe(no_mangle)]
extern "C" fn aclrtSetDevice(device: i32) -> i32 {
    code(set_device(device))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtResetDevice(device: i32) -> i32 {
    code(reset_device(device))
}

/// The name of a chip as the runtime gives it: with more behind it.
#[unsafe(no_mangle)]
extern "C" fn aclrtGetSocName() -> *const c_char {
    use hcomm_aicpu::spec::soc::Soc;
    let soc = current().ok().and_then(|open| open.device.options().product.soc);
    let name = match soc {
        Some(Soc::Ascend910B) => c"Ascend910B3",
        Some(Soc::Ascend910_93) => c"Ascend910_9391",
        Some(Soc::Ascend950) => c"Ascend950PR_9599",
        None => return std::ptr::null(),
    };
    name.as_ptr()
}

/// # Safety
/// `physical` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtGetPhyDevIdByLogicDevId(device: i32, physical: *mut i32) -> i32 {
    if device != 0 || physical.is_null() {
        return codes::INVALID_PARAM;
    }
    // SAFETY: not null, so the caller owes a number.
    unsafe { physical.write(HOST_DEVICE as i32) };
    codes::SUCCESS
}

/// # Safety
/// `to` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtMalloc(to: *mut *mut c_void, len: usize, _policy: i32) -> i32 {
    if to.is_null() || len == 0 {
        return codes::INVALID_PARAM;
    }
    code(current().and_then(|open| {
        let addr = open.device.allocate(len as u64).map_err(|error| code_of(&error))?;
        // SAFETY: not null, so the caller owes a pointer.
        unsafe { to.write(std::ptr::with_exposed_provenance_mut(addr.0 as usize)) };
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtFree(addr: *mut c_void) -> i32 {
    code(current().and_then(|open| open.device.free(device_addr(addr)).map_err(|error| code_of(&error))))
}

fn device_addr(addr: *const c_void) -> DeviceAddr {
    DeviceAddr(addr.addr() as u64)
}

/// # Safety
/// The side that is of the host has `count` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtMemcpy(dst: *mut c_void, dst_max: usize, src: *const c_void, count: usize, kind: i32) -> i32 {
    if dst.is_null() || src.is_null() || count == 0 || count > dst_max {
        return codes::INVALID_PARAM;
    }
    code(current().and_then(|open| {
        let device = &open.device;
        let copied = match kind {
            // SAFETY: the caller owes so many bytes of the host.
            1 => device.copy_in(device_addr(dst), unsafe { slice::from_raw_parts(src.cast(), count) }),
            // SAFETY: as above.
            2 => device.copy_out(device_addr(src), unsafe { slice::from_raw_parts_mut(dst.cast(), count) }),
            3 => device.copy_within(device_addr(dst), device_addr(src), count as u64),
            _ => return Err(codes::INVALID_PARAM),
        };
        copied.map_err(|error| code_of(&error))
    }))
}

#[unsafe(no_mangle)]
extern "C" fn aclrtMemset(addr: *mut c_void, max: usize, value: i32, count: usize) -> i32 {
    if count > max {
        return codes::INVALID_PARAM;
    }
    if value != 0 {
        return codes::API_NOT_SUPPORT;
    }
    code(current().and_then(|open| open.device.clear(device_addr(addr), count as u64).map_err(|error| code_of(&error))))
}
