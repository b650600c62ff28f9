//! What tests share: [`Rig`], an open device with communicator and stream; [`test_options`], the device that a
//! run has chosen; [`calls`] of kernel `call_list`; [`cli`], the
//! `host-stub` program as a user runs it; [`Rng`], random numbers from a seed; [`LIMIT`] and [`wait_until`] for what must
//! happen; [`root`] and [`target_dir`], where files are; [`Folder`] for files of a test; [`marked`] finds processes.
//!
//! ```no_run
//! use hcomm_testkit::{CPUS, Rig, calls::copy, pattern};
//!
//! for cpu in CPUS {
//!     let rig = Rig::new(cpu);
//!     let thread = rig.thread(8);
//!     let (src, dst) = (rig.buffer(&pattern(64, 1)), rig.buffer(&[0; 64]));
//!     rig.good_calls(&[copy(thread, dst.addr(), src.addr(), 64)]).unwrap();
//!     assert_eq!(rig.read(&dst), pattern(64, 1));
//! }
//! ```
//!
//! Tests of the device crate alone use the crate hcomm-testkit-platform instead: a program has one platform, and the host API
//! brings its own.

pub mod calls;
pub mod cli;
mod folder;
mod processes;
pub mod provenance;
mod rig;
mod run;

pub use fastrand::Rng;
pub use folder::Folder;
pub use processes::marked;
pub use rig::{CPUS, Rig, at, pattern, test_options};
pub use run::{DEADLOCK_LIMIT, LIMIT, root, target_dir, wait_until};
