//! What black-box tests share: a device on either CPU, memory with guard bytes, lists of copies.
#![allow(dead_code, reason = "no test program needs all of it")]

pub mod calls;

use std::sync::Arc;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::{CopyListParams, ListedCopy};
use host_stub::{Comm, Cpu, Device, DeviceBuffer, DeviceOptions, Error, LaunchStats, Stream, ThreadConfig};
use zerocopy::IntoBytes;

/// Both CPUs, for a test that runs on each.
pub const CPUS: [Cpu; 2] = [Cpu::Native, Cpu::Qemu];

/// An open device with a communicator and a stream.
pub struct Rig {
    pub device: Device,
    pub comm: Comm,
    pub stream: Stream,
}

impl Rig {
    /// A device of 16 GiB.
    pub fn new(cpu: Cpu) -> Self {
        Self::with_options(DeviceOptions { cpu, ..DeviceOptions::default() })
    }

    pub fn with_options(options: DeviceOptions) -> Self {
        let device = Device::open(options).unwrap();
        let comm = Comm::new(&device).unwrap();
        let stream = Stream::new(&device);
        Self { device, comm, stream }
    }

    /// A thread whose ring has `depth` entries.
    pub fn thread(&self, depth: u32) -> ThreadHandle {
        self.comm.acquire_threads_with(&ThreadConfig::new(1).depth(depth)).unwrap()[0]
    }

    /// A buffer that holds `bytes`.
    pub fn buffer(&self, bytes: &[u8]) -> DeviceBuffer {
        let buffer = self.device.malloc(bytes.len() as u64).unwrap();
        self.device.copy_in(buffer.addr(), bytes).unwrap();
        buffer
    }

    pub fn read(&self, buffer: &DeviceBuffer) -> Vec<u8> {
        let mut bytes = vec![0; buffer.len() as usize];
        self.device.copy_out(buffer.addr(), &mut bytes).unwrap();
        bytes
    }

    /// Launches kernel `copy_list` and waits for it.
    pub fn copy_list(&self, list: &[ListedCopy], batch: bool) -> Result<Arc<LaunchStats>, Error> {
        self.copy_list_on(&self.stream, list, batch)
    }

    /// As [`copy_list`](Self::copy_list), on another stream.
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
    /// A failing test tells how to see the same again.
    fn drop(&mut self) {
        if let Some(seed) = self.device.options().deterministic.filter(|_| std::thread::panicking()) {
            eprintln!("the device ran with DeviceOptions::deterministic({seed})");
        }
    }
}

/// The address `offset` bytes into a buffer.
pub fn at(buffer: &DeviceBuffer, offset: usize) -> DeviceAddr {
    DeviceAddr(buffer.addr().0 + offset as u64)
}

/// Bytes in which neighbours, and equal places of different seeds, differ.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    (0..len).map(step).collect()
}
