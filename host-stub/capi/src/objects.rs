//! What handles and numbers of a program name. The files of these names say what can be done with them.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::ChannelHandle;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use libloading::os::unix::Library;

use super::host_block::HostBlock;
use super::owner::InUse;
use super::ranks::{End, Seat};
use host_stub::comm::Comm;
use host_stub::control::Notify;
use host_stub::library as aarch64;
use host_stub::{Device, DeviceBuffer, Event, Kernel, Stream};

/// A device that is open.
pub struct OpenDevice {
    /// The device.
    pub device: Device,
    /// Threads that have set it and not reset it.
    pub users: Vec<User>,
    /// Handle of the stream that the null handle means.
    pub default_stream: Option<u64>,
    /// Handle of the communicator whose threads `HcommThreadAlloc` gives.
    pub thread_pool: Option<u64>,
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

/// A notify and the number of its device.
#[derive(Clone)]
pub struct NotifyEntry {
    /// Device.
    pub index: i32,
    pub notify: Arc<Notify>,
}

/// An event and the number of its device.
#[derive(Clone)]
pub struct EventEntry {
    /// Device.
    pub index: i32,
    /// Event.
    pub event: Arc<Event>,
}

/// One operator of a description.
pub struct Operator {
    /// `kernelSo`, found.
    pub library: PathBuf,
    /// `functionName`.
    pub function: String,
}

/// A loaded description.
pub struct Binary {
    /// Number of the device that it was loaded for.
    pub index: i32,
    pub device: Device,
    pub path: PathBuf,
    pub operators: BTreeMap<String, Operator>,
    /// By path, native libraries only. They stay mapped when this is dropped: a kernel of theirs may still run.
    pub libraries: BTreeMap<PathBuf, Library>,
    /// By path, libraries of the Linux CPU.
    pub read: BTreeMap<PathBuf, aarch64::Library>,
    /// Set for a binary that was loaded from bytes.
    pub data: Option<BinaryData>,
}

/// What a binary has that was loaded from bytes.
pub struct BinaryData {
    /// Handles of the functions that were registered, by their kernel names.
    pub functions: Mutex<BTreeMap<Vec<u8>, u64>>,
}

impl Binary {
    /// Handle of the function that was registered under this name.
    pub fn registered(&self, name: &[u8]) -> Option<u64> {
        let functions = self.data.as_ref()?.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.get(name).copied()
    }
}

/// A kernel, and its binary.
#[derive(Clone)]
pub struct Function {
    /// Number of the device that it was loaded for.
    pub index: i32,
    /// Handle of the binary.
    pub binary: u64,
    /// Kernel.
    pub kernel: Kernel,
}

impl Drop for Binary {
    fn drop(&mut self) {
        for library in std::mem::take(&mut self.libraries).into_values() {
            // Loading it again finds the same one, so that this does not grow.
            let _ = library.into_raw();
        }
    }
}

/// Arguments of a launch.
pub struct Args {
    /// Number of the device.
    pub index: i32,
    /// Handle of the binary.
    pub binary: u64,
    pub function: u64,
    pub bytes: Vec<u8>,
    pub appended: u64,
    pub is_final: bool,
}

/// A communicator.
pub struct CommEntry {
    /// Number of its device.
    pub index: i32,
    pub device: Device,
    pub comm: Comm,
    /// Its rank; `None`: it is one of this library, for threads without a communicator of the program.
    pub seat: Option<Seat>,
    /// Number of the thread that has used it last.
    pub last_thread: AtomicU64,
    pub contexts: Mutex<HashMap<(Vec<u8>, i32), Context>>,
    /// Channels to its peers.
    pub channels: Mutex<BTreeMap<End, Channel>>,
    /// One call makes channels at a time.
    pub connecting: Mutex<()>,
    /// What functions of the rank graph give.
    pub graph: Mutex<Option<HostBlock>>,
}

/// A channel to a peer.
pub struct Channel {
    pub handle: ChannelHandle,
    /// Address and bytes of the peer's buffer.
    pub remote: (DeviceAddr, u64),
    /// What `HcclChannelGetRemoteMems` gives; made by its first call.
    pub mems: Option<HostBlock>,
}

/// Memory under a tag.
pub enum Context {
    Device(DeviceBuffer),
    Host(HostBlock),
}

/// A thread that has been acquired.
#[derive(Clone, Copy)]
pub struct ThreadEntry {
    /// As the device has it.
    pub handle: ThreadHandle,
    /// Number of its device.
    pub index: i32,
    /// Handle of its communicator.
    pub comm: u64,
    /// Its engine.
    pub engine: Engine,
    /// Handle of the program's stream that it belongs to; a thread of the host without one has a stream of its own.
    pub stream: Option<u64>,
    /// Handle that was given for a stream of its own.
    pub own_stream: Option<u64>,
}

impl Context {
    /// First byte.
    pub fn ptr(&self) -> *mut c_void {
        match self {
            Self::Device(buffer) => std::ptr::with_exposed_provenance_mut(buffer.addr().0 as usize),
            Self::Host(block) => block.ptr(),
        }
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Device(buffer) => buffer.len(),
            Self::Host(block) => block.len() as u64,
        }
    }
}
