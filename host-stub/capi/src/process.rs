//! The one state that a process has: devices by number, live handles, host memory.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::error::CallError;
use super::handles::Handles;
use super::host_block::HostBlock;
use super::objects::{
    Args, Binary, CommEntry, EventEntry, Function, NotifyEntry, OpenDevice, StreamEntry, ThreadEntry,
};
use super::this_thread::current_index;
use hcomm_mapping::{is_device_address, is_mapped};
use host_stub::Device;

/// What handles and numbers name.
pub struct Process {
    /// By number.
    pub devices: BTreeMap<i32, OpenDevice>,
    /// `aclrtStream`.
    pub streams: Handles<StreamEntry>,
    /// `aclrtNotify`.
    pub notifies: Handles<NotifyEntry>,
    /// `aclrtEvent`.
    pub events: Handles<EventEntry>,
    /// `aclrtBinHandle`.
    pub binaries: Handles<Arc<Binary>>,
    /// `aclrtFuncHandle`.
    pub functions: Handles<Function>,
    /// `aclrtArgsHandle`.
    pub args: Handles<Args>,
    /// Handles of arguments that have been launched, oldest first.
    pub launched: VecDeque<u64>,
    /// `HcclComm`.
    pub comms: Handles<Arc<CommEntry>>,
    /// `ThreadHandle` as the device has it.
    pub threads: BTreeMap<u64, ThreadEntry>,
    /// Memory of `aclrtMallocHost`, by address.
    pub host_memory: BTreeMap<usize, HostBlock>,
}

static PROCESS: LazyLock<Mutex<Process>> = LazyLock::new(|| {
    Mutex::new(Process {
        devices: BTreeMap::new(),
        streams: Handles::new("stream", 1),
        notifies: Handles::new("notify", 6),
        events: Handles::new("event", 7),
        binaries: Handles::new("binary handle", 2),
        functions: Handles::new("function handle", 3),
        args: Handles::new("arguments handle", 4),
        launched: VecDeque::new(),
        comms: Handles::new("communicator", 5),
        threads: BTreeMap::new(),
        host_memory: BTreeMap::new(),
    })
});

/// The state. Held for single updates: nothing waits for a device, and nothing of one is dropped, while it is held.
pub fn process() -> MutexGuard<'static, Process> {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread's device and its number.
///
/// # Errors
/// [`CallError::NoDevice`].
pub fn current_device() -> Result<(i32, Device), CallError> {
    let index = current_index().ok_or(CallError::NoDevice)?;
    let process = process();
    let open = process.devices.get(&index).ok_or(CallError::NoDevice)?;
    Ok((index, open.device.clone()))
}

/// What an address of a C caller is.
pub enum Place {
    /// Memory of the process.
    Host,
    /// Device memory of an open device.
    Device(Device),
    /// Where device memory would be, but nothing is mapped there.
    Closed,
}

/// Finds out whose `addr` is. Only what is mapped as HBM is device memory: in some layouts (`ulimit -s unlimited`, `setarch -L`)
/// the process has memory of its own between the HBM of two devices.
pub fn place_of(addr: u64) -> Place {
    if let Some(open) = process().devices.values().find(|open| open.device.hbm().contains(&addr)) {
        return Place::Device(open.device.clone());
    }
    if is_device_address(addr) && !is_mapped(addr) { Place::Closed } else { Place::Host }
}
