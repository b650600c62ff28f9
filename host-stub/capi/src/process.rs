//! The one state that a process has: devices by number, live handles, host memory.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::binary::{Binary, Function};
use super::call::CallError;
use super::comm::{CommEntry, ThreadEntry};
use super::handles::Handles;
use super::launch::Args;
use super::memory::HostBlock;
use super::notify::NotifyEntry;
use super::owner::InUse;
use hcomm_mapping::{is_device_address, is_mapped};
use host_stub::Device;
use host_stub::Stream;

/// A device that is open.
pub struct OpenDevice {
    /// The device.
    pub device: Device,
    /// Threads that have set it and not reset it.
    pub users: Vec<User>,
    /// Handle of the stream that the null handle means.
    pub default_stream: Option<u64>,
    /// A forked child must not use the state while a device is open.
    pub _in_use: InUse,
}

/// A thread that has set a device.
pub struct User {
    /// Its number ([`thread_number`]).
    pub thread: u64,
    /// It has ended without a reset.
    pub has_ended: bool,
}

/// A stream and the number of its device.
#[derive(Clone)]
pub struct StreamEntry {
    /// Device.
    pub index: i32,
    /// Stream.
    pub stream: Arc<Stream>,
}

/// What handles and numbers name.
pub struct Process {
    /// By number.
    pub devices: BTreeMap<i32, OpenDevice>,
    /// `aclrtStream`.
    pub streams: Handles<StreamEntry>,
    /// `aclrtNotify`.
    pub notifies: Handles<NotifyEntry>,
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
    /// Numbers of root infos that have been given out and not used.
    pub root_infos: BTreeSet<u64>,
    /// Number of the next root info.
    pub next_id: u64,
}

static PROCESS: LazyLock<Mutex<Process>> = LazyLock::new(|| {
    Mutex::new(Process {
        devices: BTreeMap::new(),
        streams: Handles::new("stream", 1),
        notifies: Handles::new("notify", 6),
        binaries: Handles::new("binary handle", 2),
        functions: Handles::new("function handle", 3),
        args: Handles::new("arguments handle", 4),
        launched: VecDeque::new(),
        comms: Handles::new("communicator", 5),
        threads: BTreeMap::new(),
        host_memory: BTreeMap::new(),
        root_infos: BTreeSet::new(),
        next_id: 1,
    })
});

/// Number of the next thread that asks for one.
static NEXT_THREAD: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THREAD: u64 = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
    /// Number of the device that this thread has set.
    static CURRENT_DEVICE: Cell<Option<i32>> = const { Cell::new(None) };
}

/// The state. Held for single updates: nothing waits for a device, and nothing of one is dropped, while it is held.
pub fn process() -> MutexGuard<'static, Process> {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of the calling thread. Never used again by another one.
pub fn thread_number() -> u64 {
    THREAD.with(|number| *number)
}

/// Number of the calling thread's device, open or not.
pub fn current_index() -> Option<i32> {
    CURRENT_DEVICE.get()
}

/// Sets the number of the calling thread's device.
pub fn set_current_index(index: Option<i32>) {
    CURRENT_DEVICE.set(index);
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
