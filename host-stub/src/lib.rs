//! Host side of the AI CPU copy path, and the simulated device (an Atlas 350) on which it runs without an NPU.
//!
//! | part | what it does |
//! |---|---|
//! | [`Device`] | opens memory, task scheduler and AI CPU; allocates and copies device memory |
//! | [`Comm`] | cclBuf and communication threads |
//! | [`Stream`], [`Kernel`] | launches kernels and waits for them |
//! | [`loader`] | reads the device image |
//! | [`product`] | which products there are, and what each lets threads do |
//! | [`backend`] | who runs kernels: threads of the host ([`Cpu::Native`]) or the AArch64 image in QEMU ([`Cpu::Qemu`]) |
//! | [`sim`] | the device itself: memory, hardware queues, scheduler, SDMA engines, descriptor decoder |
//!
//! A device pointer is one number everywhere: in the host process, in the image and in a descriptor. HBM of the device in
//! slot *n* of the process starts at `0x12c0_0000_0000 + n * 2^40`.
//!
//! For C and C++ the same is there under the vendor's names (docs/c-api.md).
//!
//! Not here: more than one device that talk to each other, notifies, reduce, timing like that of hardware.
//!
//! ```
//! use hcomm_aicpu::spec::params::KernelParams;
//! use hcomm_aicpu::spec::thread::Engine;
//! use hcomm_kernel::LocalCopyParams;
//! use host_stub::{Comm, Device, DeviceOptions, Stream};
//!
//! # fn main() -> Result<(), host_stub::Error> {
//! let device = Device::open(DeviceOptions::native())?;
//! let comm = Comm::new(&device)?;
//! let (ccl_buf, ccl_buf_size) = comm.hccl_buffer()?;
//! let thread = comm.acquire_threads(Engine::AICPU_TS, 1, 1)?[0];
//! let user_in = device.malloc(256)?;
//! device.copy_in(user_in.addr(), &[7; 256])?;
//!
//! let stream = Stream::new(&device);
//! let params = LocalCopyParams {
//!     header: LocalCopyParams::HEADER,
//!     thread: thread.0,
//!     user_in: user_in.addr(),
//!     ccl_buf,
//!     ccl_buf_size,
//!     len: 256,
//! };
//! let stats = stream.launch(&device.load_kernel("local_copy")?, &params)?;
//! stream.synchronize()?;
//!
//! let mut out = [0; 256];
//! device.copy_out(ccl_buf, &mut out)?;
//! assert_eq!(out, [7; 256]);
//! assert_eq!((stats.tasks(), stats.doorbells()), (1, 1));
//! # Ok(())
//! # }
//! ```

pub mod backend;
mod buffer;
mod capi;
pub mod comm;
mod device;
mod error;
mod launch;
pub mod loader;
pub mod product;
pub mod sim;
pub mod thread;

pub use buffer::DeviceBuffer;
pub use comm::{Comm, CommOptions};
pub use device::{Cpu, Device, DeviceOptions, Statistics};
pub use error::Error;
pub use launch::{Kernel, Stream};
pub use sim::LaunchStats;
pub use sim::error::DeviceError;
pub use sim::fault::{Fault, FaultPlan, FaultRule, FaultSpecError, KernelFault};
pub use sim::trace::Trace;
pub use thread::{QueueStatistics, ThreadConfig, ThreadInfo};
