//! Host side of the AI CPU copy path, and the simulated device (an Atlas 350) on which it runs without an NPU.
//!
//! | part | what it does |
//! |---|---|
//! | [`Device`] | opens memory, task scheduler and AI CPU; allocates and copies device memory |
//! | [`Comm`] | cclBuf and communication threads |
//! | [`Cluster`], [`channel`] | several devices, and channels between them |
//! | [`Stream`], [`Kernel`] | launches kernels and waits for them |
//! | [`control`] | notifies of streams, and the pair of notifies that orders a launch with its stream |
//! | [`loader`] | reads the device image |
//! | [`library`] | reads kernel libraries of the Linux CPU |
//! | [`mod@file`] | opens files that a user names, without waiting, and reads them up to a limit |
//! | [`signals`] | turns signals of writes into errors |
//! | [`explore`] | runs a test under many schedules, and repeats the one that fails |
//! | [`trace`] | files with the timeline of a run |
//! | [`card`] | a card in place of the simulated device, through the runtime's own libraries; not yet run on hardware |
//! | [`model`] | cost models: how long things take in deterministic mode |
//! | [`product`] | the products, and what threads of each engine may do on them |
//! | [`backend`] | the AI CPU: threads of the host ([`Cpu::Native`]), the AArch64 image in QEMU ([`Cpu::Qemu`]), or a process that loads AArch64 libraries ([`Cpu::Linux`]) |
//! | [`sim`] | the device itself: memory, hardware queues, scheduler, SDMA engines, descriptor decoder |
//!
//! A device pointer is one number everywhere: in the host process, in the image and in a descriptor. HBM of the device
//! in slot *n* of the process starts at `0x12c0_0000_0000 + n * 2^40`. The C API has the same functions under the
//! vendor's names (docs/c-api.md). Not modelled: communication between processes, and the timing of
//! hardware.
//!
//! ```
//! use hcomm_aicpu::spec::params::KernelParams;
//! use hcomm_aicpu::spec::thread::Engine;
//! use hcomm_kernel::LocalCopyParams;
//! use host_stub::{Comm, ControlPair, Device, DeviceOptions, Stream};
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
//! let pair = ControlPair::new(&comm, &stream, thread, 0)?;
//! let params = LocalCopyParams {
//!     header: LocalCopyParams::HEADER,
//!     thread: thread.0,
//!     user_in: user_in.addr(),
//!     ccl_buf,
//!     ccl_buf_size,
//!     len: 256,
//!     control: pair.control(),
//! };
//! let stats = stream.launch_with_control(&pair, &device.load_kernel("local_copy")?, &params)?;
//! stream.synchronize()?;
//!
//! let mut out = [0; 256];
//! device.copy_out(ccl_buf, &mut out)?;
//! assert_eq!(out, [7; 256]);
//! // Start notify, copy, end notify.
//! assert_eq!((stats.tasks(), stats.doorbells()), (3, 1));
//! # Ok(())
//! # }
//! ```

pub mod backend;
mod buffer;
pub mod card;
pub mod channel;
pub mod cluster;
pub mod collective;
pub mod comm;
pub mod control;
mod device;
mod error;
mod event;
pub mod explore;
pub mod file;
mod handle;
mod inner;
mod installed;
mod kernel;
mod launch;
pub mod library;
mod limits;
pub mod loader;
mod log_place;
pub mod model;
mod needs;
mod options;
pub mod product;
pub mod signals;
pub mod thread;
pub mod trace;
mod trace_log;

pub use buffer::DeviceBuffer;
pub use card::error::CardError;
pub use card::kind::DeviceKind;
pub use channel::{ChannelConfig, ChannelRanks};
pub use cluster::Cluster;
pub use comm::{Comm, CommOptions};
pub use control::{ControlPair, Notify};
pub use device::{Device, Statistics};
pub use error::Error;
pub use event::Event;
pub use hcomm_sim as sim;
pub use hcomm_sim::LaunchStats;
pub use hcomm_sim::check::list::{Check, Checks};
pub use hcomm_sim::error::DeviceError;
pub use hcomm_sim::event::Trace;
pub use hcomm_sim::fault::{Fault, FaultPlan, FaultRule, FaultSpecError, KernelFault};
pub use kernel::Kernel;
pub use launch::{LaunchOptions, Stream};
pub use log_place::{LogPlace, Running, log_place};
pub use model::Model;
pub use options::{Cpu, DeviceOptions, LaunchEnd};
pub use thread::{QueueStatistics, ThreadConfig, ThreadInfo};
