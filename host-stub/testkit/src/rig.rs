//! A device on any CPU, its memory, and lists of copies.

use std::sync::Arc;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::{CopyListParams, ListedCopy};
use host_stub::product::{DEFAULT_PRODUCT, Product};
use host_stub::{Comm, Cpu, Device, DeviceBuffer, DeviceKind, DeviceOptions, Error, LaunchStats, Stream, ThreadConfig};
use zerocopy::IntoBytes;

use crate::{DEADLOCK_LIMIT, Rng};

/// Every CPU, for a test that runs on each.
pub const CPUS: [Cpu; 3] = [Cpu::Native, Cpu::Qemu, Cpu::Linux];

/// An open device with a communicator and a stream.
pub struct Rig {
    /// The device.
    pub device: Device,
    /// A communicator of the device.
    pub comm: Comm,
    /// A stream of the device.
    pub stream: Stream,
}

impl Rig {
    /// A device with the default options on `cpu`.
    ///
    /// # Panics
    /// If it can't be opened.
    pub fn new(cpu: Cpu) -> Self {
        Self::with_options(DeviceOptions { cpu, ..DeviceOptions::default() })
    }

    /// A device on `cpu` that has failed once a host thread has waited for [`DEADLOCK_LIMIT`] while nothing could go on. Other
    /// tests run in other threads of the process, so that no deadlock is ever certain.
    ///
    /// # Panics
    /// If it can't be opened.
    pub fn with_deadlock_limit(cpu: Cpu) -> Self {
        Self::with_options(DeviceOptions { cpu, deadlock_limit: Some(DEADLOCK_LIMIT), ..DeviceOptions::default() })
    }

    /// A device with these options.
    ///
    /// # Panics
    /// If it can't be opened.
    pub fn with_options(options: DeviceOptions) -> Self {
        let device = Device::open(options).unwrap();
        let comm = Comm::new(&device).unwrap();
        let stream = Stream::new(&device);
        Self { device, comm, stream }
    }

    /// A thread whose ring has `depth` entries.
    ///
    /// # Panics
    /// If the communicator refuses it.
    #[track_caller]
    pub fn thread(&self, depth: u32) -> ThreadHandle {
        self.comm.acquire_threads_with(&ThreadConfig::new(1).depth(depth)).unwrap()[0]
    }

    /// A buffer that holds `bytes`.
    ///
    /// # Panics
    /// If the device has no room.
    pub fn buffer(&self, bytes: &[u8]) -> DeviceBuffer {
        let buffer = self.device.malloc(bytes.len() as u64).unwrap();
        self.device.copy_in(buffer.addr(), bytes).unwrap();
        buffer
    }

    /// Bytes of a buffer.
    ///
    /// # Panics
    /// If they can't be read.
    pub fn read(&self, buffer: &DeviceBuffer) -> Vec<u8> {
        let mut bytes = vec![0; buffer.len() as usize];
        self.device.copy_out(buffer.addr(), &mut bytes).unwrap();
        bytes
    }

    /// Launches kernel `copy_list` and waits for it.
    ///
    /// # Errors
    /// Those of the wait.
    ///
    /// # Panics
    /// If it can't be launched.
    pub fn copy_list(&self, list: &[ListedCopy], batch: bool) -> Result<Arc<LaunchStats>, Error> {
        self.copy_list_on(&self.stream, list, batch)
    }

    /// As [`copy_list`](Self::copy_list), on another stream.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn copy_list_on(&self, stream: &Stream, list: &[ListedCopy], batch: bool) -> Result<Arc<LaunchStats>, Error> {
        let entries = self.buffer(list.as_bytes());
        let header = CopyListParams::HEADER;
        let (list, count) = (entries.addr(), list.len() as u64);
        let params = CopyListParams { header, list, count, batch: batch.into() };
        let stats = stream.launch_and_drain(&self.device.load_kernel("copy_list").unwrap(), &params).unwrap();
        stream.synchronize()?;
        Ok(stats)
    }
}

impl Drop for Rig {
    /// Prints the seed of a failing test.
    fn drop(&mut self) {
        if let Some(seed) = self.device.options().deterministic.filter(|_| std::thread::panicking()) {
            eprintln!("the device ran with DeviceOptions::deterministic({seed})");
        }
    }
}

/// Options of the device that `make test-blackbox` has chosen: `HCOMM_TEST_DEVICE` (sim, fake-card or card:N), `HCOMM_TEST_CPU` (native, qemu
/// or linux) and `HCOMM_TEST_PRODUCT`. Without them the simulated device with the native CPU, an Atlas 350.
///
/// # Panics
/// If one of them names nothing.
pub fn test_options() -> DeviceOptions {
    let chosen = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let device = chosen("HCOMM_TEST_DEVICE").map_or(DeviceKind::Sim, |name| name.parse().unwrap());
    let cpu = match chosen("HCOMM_TEST_CPU").as_deref() {
        None | Some("native") => Cpu::Native,
        Some("qemu") => Cpu::Qemu,
        Some("linux") => Cpu::Linux,
        Some(other) => panic!("HCOMM_TEST_CPU is {other:?}: must be native, qemu or linux"),
    };
    let product = chosen("HCOMM_TEST_PRODUCT").map_or(DEFAULT_PRODUCT, |key| {
        Product::from_key(&key).unwrap_or_else(|| panic!("HCOMM_TEST_PRODUCT is {key:?}: no product"))
    });
    DeviceOptions { device: Some(device), cpu, product, ..DeviceOptions::default() }
}

/// The address `offset` bytes into a buffer.
pub fn at(buffer: &DeviceBuffer, offset: usize) -> DeviceAddr {
    DeviceAddr(buffer.addr().0 + offset as u64)
}

/// Random bytes, other ones for each seed.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::with_seed(seed).fill(&mut bytes);
    bytes
}
