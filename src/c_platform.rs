//! What a platform that is written in C makes its device with and runs kernels by; `include/hcomm/hcomm_platform.h` is generated from it.
//! For the static library only.
//!
//! The caller owns the memory of the device and asks for its size and alignment. It is never freed here: there is nothing in it
//! that would have to be.

use core::ffi::{c_char, c_void};
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::slice;

use crate::context::{CoreBusy, Device, MAX_CORES};
use crate::error::Error;
use crate::spec::DeviceAddr;
use crate::spec::code::{HCCL_E_AGAIN, HCCL_E_PARA, HCCL_E_PTR, HCCL_SUCCESS};
use crate::spec::comm::CommEntry;
use crate::spec::mailbox::LEFT_BATCH_OPEN;
use crate::spec::soc::Soc;
use crate::spec::thread::{DESCRIPTOR_SIZE, MAX_THREADS, ThreadDescriptor};

/// A new device. Copied from here, because it is too large for most stacks.
static NEW: Device = Device::new();

/// Bytes of a device. They are never freed by the library.
#[unsafe(no_mangle)]
pub extern "C" fn hcomm_device_size() -> usize {
    size_of::<Device>()
}

/// What the address of a device is a multiple of.
#[unsafe(no_mangle)]
pub extern "C" fn hcomm_device_align() -> usize {
    align_of::<Device>()
}

/// 0, 2 for null, 1 for an address that is not aligned for a `T`.
fn check<T>(place: *const T) -> i32 {
    if place.is_null() {
        HCCL_E_PTR
    } else if place.is_aligned() {
        HCCL_SUCCESS
    } else {
        HCCL_E_PARA
    }
}

/// Makes a device without threads. 0, 2 for null, 1 for memory that is not aligned.
///
/// # Safety
/// `device` is null or hcomm_device_size bytes that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hcomm_device_init(device: *mut Device) -> i32 {
    let code = check(device);
    if code == HCCL_SUCCESS {
        // SAFETY: not null, aligned, and the caller owes the bytes. `NEW` is never changed: its address is not given out.
        unsafe { device.copy_from_nonoverlapping(&raw const NEW, 1) };
    }
    code
}

/// Tells a device where its table of threads is; once, before the first launch. It has `slots` entries, at most
/// HCOMM_MAX_THREADS, that stay readable, and each one in use names a ring that may be written and ids of notifies that may be
/// read, also while a kernel still runs that has used a thread before it was freed. While its thread lives, and no longer, the
/// status of a queue may be HCOMM_QUEUE_ENABLED. No generation of a slot is used twice. 0, 2 for null, 1 for a table that is not
/// 64-byte aligned or has more slots.
///
/// # Safety
/// `device` is null or a device of hcomm_device_init; the table is as said above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hcomm_device_set_thread_table(
    device: *mut Device,
    table: *const ThreadDescriptor,
    slots: u32,
) -> i32 {
    // SAFETY: the caller owes null or a device.
    let Some(device) = (unsafe { device.as_ref() }) else { return HCCL_E_PTR };
    match check(table) {
        HCCL_SUCCESS if slots as usize > MAX_THREADS => HCCL_E_PARA,
        HCCL_SUCCESS => {
            // SAFETY: the caller owes what `set_thread_table` asks for.
            unsafe { device.set_thread_table(DeviceAddr::from(table), slots as usize) };
            HCCL_SUCCESS
        }
        code => code,
    }
}

/// Tells a device where its table of HCOMM_MAX_COMMS communicators is; once, before the first launch. Without one there are none
/// to lock. 0, 2 for null, 1 for a table that is not 8-byte aligned.
///
/// # Safety
/// `device` is null or a device of hcomm_device_init; the table stays readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hcomm_device_set_comm_table(device: *mut Device, table: *const CommEntry) -> i32 {
    // SAFETY: the caller owes null or a device.
    let Some(device) = (unsafe { device.as_ref() }) else { return HCCL_E_PTR };
    let code = check(table);
    if code == HCCL_SUCCESS {
        // SAFETY: the caller owes what `set_comm_table` asks for.
        unsafe { device.set_comm_table(DeviceAddr::from(table)) };
    }
    code
}

/// Tells a device which chip's descriptors to queue, by the driver's device type: 2 Ascend910B, 4 Ascend910_93, 6 Ascend950,
/// which it is unless this is called; before the first launch. 0, 2 for null, 1 for another number.
///
/// # Safety
/// `device` is null or a device of hcomm_device_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hcomm_device_set_soc(device: *mut Device, device_type: u32) -> i32 {
    // SAFETY: the caller owes null or a device.
    let Some(device) = (unsafe { device.as_ref() }) else { return HCCL_E_PTR };
    let Some(soc) = Soc::from_device_type(device_type) else { return HCCL_E_PARA };
    device.set_soc(soc);
    HCCL_SUCCESS
}

/// A kernel of hcomm_device_run.
pub type HcommKernel = Option<unsafe extern "C" fn(arg: *mut c_void)>;

/// Runs `kernel` with `arg` on core `core` of a device: until it returns, calls of this thread of execution are the core's. Then
/// limits are back at their defaults, locks are released, and what a batch had staged is dropped; `leftBehind`, unless null, gets
/// HCOMM_LEFT_BATCH_OPEN if the kernel has not ended its batch, else 0. 0, 2 for a null device or kernel, 1 for a core that no
/// device has, 20 for a core that runs a kernel.
///
/// # Safety
/// `device` is null or a device of hcomm_device_init; `leftBehind` is null or can be written; `arg` is what `kernel` expects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hcomm_device_run(
    device: *const Device,
    core: u32,
    kernel: HcommKernel,
    arg: *mut c_void,
    left_behind: *mut u32,
) -> i32 {
    // SAFETY: the caller owes null or a device, which stays for the call.
    let device = unsafe { device.as_ref() };
    let (Some(device), Some(kernel)) = (device, kernel) else { return HCCL_E_PTR };
    if core as usize >= MAX_CORES {
        return HCCL_E_PARA;
    }
    // SAFETY: the caller owes an `arg` that the kernel expects.
    match device.run(core as usize, || unsafe { kernel(arg) }) {
        Ok(((), end)) => {
            if !left_behind.is_null() {
                // SAFETY: not null, so the caller owes a place that can be written.
                unsafe { left_behind.write(if end.batch_left_open { LEFT_BATCH_OPEN } else { 0 }) };
            }
            HCCL_SUCCESS
        }
        Err(CoreBusy { .. }) => HCCL_E_AGAIN,
    }
}

/// Text that keeps what fits, and counts all. The bytes are the caller's and need not hold anything yet.
struct Text<'t> {
    out: &'t mut [MaybeUninit<u8>],
    len: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, part: &str) -> core::fmt::Result {
        for byte in part.bytes() {
            if let Some(place) = self.out.get_mut(self.len) {
                place.write(byte);
            }
            self.len += 1;
        }
        Ok(())
    }
}

/// Why a call was refused, in words: writes what fits into `size` bytes, with a zero byte at the end, and gives the length of all of
/// it, as `snprintf` does. 0 for null.
///
/// # Safety
/// `error` is null or what `hcomm_port_refused` has just been handed; `text` is null or `size` bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hcomm_refusal_text(error: *const c_void, text: *mut c_char, size: usize) -> usize {
    // SAFETY: the caller owes null or a live error.
    let Some(error) = (unsafe { error.cast::<Error>().as_ref() }) else { return 0 };
    let out = match size.checked_sub(1).filter(|_| !text.is_null()) {
        // SAFETY: not null, and the caller owes `size` bytes, of which the last is for the zero.
        Some(room) => unsafe { slice::from_raw_parts_mut(text.cast(), room) },
        None => &mut [],
    };
    let (room, mut text_of) = (out.len(), Text { out, len: 0 });
    // It takes every text.
    let _ = write!(text_of, "{error}");
    let len = text_of.len;
    if size > 0 && !text.is_null() {
        // SAFETY: below `size`.
        unsafe { text.add(len.min(room)).write(0) };
    }
    len
}

const _: () = assert!(LEFT_BATCH_OPEN == 1 && DESCRIPTOR_SIZE == 64 && align_of::<ThreadDescriptor>() == 64);
