//! Devices by number: opened by the first thread that sets one, closed when the last has reset it.
#![forbid(unsafe_code)]

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::error::CallError;
use super::objects::{OpenDevice, User};
use super::owner::InUse;
use super::process::{Process, process};
use super::ranks::Place;
use super::this_thread::{current_index, set_current_index, thread_number};
use super::{ranks, stderr_log, support};
use hcomm_mapping::{SLOTS, SharedMemory};
use hcomm_sim::fabric::Fabric;
use host_stub::{Cpu, Device, DeviceOptions};

/// Environment variable that chooses the AI CPU: `native` (default), `qemu` or `linux`.
const CPU_VAR: &str = "HCOMM_SIM_CPU";
/// Environment variable with the number of devices.
const DEVICES_VAR: &str = "HCOMM_SIM_DEVICES";
/// Its default: the cards of one server. A device that is not set costs nothing.
const DEVICES_DEFAULT: u32 = 8;

/// Joins all devices of the process: those of one machine.
static FABRIC: LazyLock<Arc<Fabric<SharedMemory>>> = LazyLock::new(Arc::default);

/// One thread opens or closes a device at a time.
static OPENING: Mutex<()> = Mutex::new(());

/// Number of devices.
///
/// # Errors
/// `HCOMM_SIM_DEVICES` is wrong.
pub fn count() -> Result<u32, CallError> {
    let Some(value) = std::env::var_os(DEVICES_VAR) else { return Ok(DEVICES_DEFAULT) };
    match value.to_string_lossy().trim().parse() {
        Ok(count) if (1..=SLOTS as u32).contains(&count) => Ok(count),
        _ => Err(CallError::Invalid(format!("{DEVICES_VAR} is {value:?}: must be a whole number from 1 to {SLOTS}"))),
    }
}

/// The number of a device that there is.
///
/// # Errors
/// There is none; `HCOMM_SIM_DEVICES` is wrong.
pub fn check_index(index: i32) -> Result<i32, CallError> {
    let count = count()?;
    if u32::try_from(index).is_ok_and(|index| index < count) {
        Ok(index)
    } else {
        Err(CallError::NoSuchDevice { index, count })
    }
}

/// How devices of the C API are opened.
///
/// The default CPU is native: kernels of C programs are shared libraries, and those need no other tool to run.
fn options() -> Result<DeviceOptions, CallError> {
    let cpu = match std::env::var_os(CPU_VAR) {
        None => Cpu::Native,
        Some(value) if value == "native" => Cpu::Native,
        Some(value) if value == "qemu" => Cpu::Qemu,
        Some(value) if value == "linux" => Cpu::Linux,
        Some(value) => {
            return Err(CallError::Invalid(format!("{CPU_VAR} is {value:?}: must be native, qemu or linux")));
        }
    };
    Ok(DeviceOptions { cpu, product: support::product()?, ..DeviceOptions::default() })
}

/// Device `index`, opened if it is not.
///
/// # Errors
/// Unknown device, or it does not open.
pub fn open(index: i32) -> Result<Device, CallError> {
    let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    stderr_log::start();
    check_index(index)?;
    if let Some(open) = process().devices.get(&index) {
        return Ok(open.device.clone());
    }
    let device = Device::open_at(options()?, &FABRIC, usize::try_from(index).ok())?;
    let open = OpenDevice {
        device: device.clone(),
        users: Vec::new(),
        default_stream: None,
        thread_pool: None,
        _in_use: InUse::new(),
    };
    process().devices.insert(index, open);
    Ok(device)
}

/// Where device `index` is.
pub fn place(index: i32, device: &Device) -> Place {
    Place { index, slot: device.slot() as u32, generation: device.generation() }
}

/// Sets device `index` as the calling thread's device.
///
/// # Errors
/// As [`open`].
pub fn set(index: i32) -> Result<(), CallError> {
    open(index)?;
    let mut process = process();
    // Another thread's reset may have closed it in between: then there is none.
    let open = process.devices.get_mut(&index).ok_or(CallError::NoDevice)?;
    let thread = thread_number();
    match open.users.iter_mut().find(|user| user.thread == thread) {
        Some(user) => user.has_ended = false,
        None => open.users.push(User { thread, has_ended: false }),
    }
    set_current_index(Some(index));
    Ok(())
}

/// The calling thread no longer uses device `index`; the last one closes it, and with it everything that is on it. Threads that
/// have ended do not count.
///
/// # Errors
/// Unknown device, or this thread has not set it. What the checks have found and no call has returned; the device is closed all
/// the same.
pub fn reset(index: i32) -> Result<(), CallError> {
    let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    check_index(index)?;
    let mut process = process();
    let thread = thread_number();
    let users = process.devices.get_mut(&index).map(|open| &mut open.users).ok_or(CallError::NoDevice)?;
    let place = users.iter().position(|user| user.thread == thread).ok_or(CallError::NoDevice)?;
    users.remove(place);
    let is_used = users.iter().any(|user| !user.has_ended);
    if current_index() == Some(index) {
        set_current_index(None);
    }
    if is_used {
        return Ok(());
    }
    close(process, index)
}

/// Closes all devices, also those that other threads have set.
///
/// # Errors
/// What the checks have found and no call has returned, of the first such device; all are closed all the same.
pub fn close_all() -> Result<(), CallError> {
    let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let open: Vec<_> = process().devices.keys().copied().collect();
    let mut result = Ok(());
    for index in open {
        result = result.and(close(process(), index));
    }
    set_current_index(None);
    result
}

/// Closes a device, with everything that is on it.
fn close(mut process: MutexGuard<'_, Process>, index: i32) -> Result<(), CallError> {
    let device = process.devices.remove(&index);
    process.threads.retain(|_, thread| thread.index != index);
    let comms = process.comms.extract(|comm| comm.index == index);
    let streams = process.streams.extract(|entry| entry.index == index);
    let notifies = process.notifies.extract(|entry| entry.index == index);
    let events = process.events.extract(|entry| entry.index == index);
    let binaries = process.binaries.extract(|binary| binary.index == index);
    process.functions.extract(|function| function.index == index);
    process.args.extract(|args| args.index == index);
    drop(process);
    if let Some(open) = &device {
        ranks::device_closed(place(index, &open.device));
    }
    // Outside the lock: releasing queues waits for a scheduler that may be working.
    drop((comms, streams, notifies, events, binaries));
    device.map_or(Ok(()), |open| open.device.check_findings())?;
    Ok(())
}
