//! Kernels of the AI CPU: algorithms that run on the device and queue their tasks there.
//!
//! The same code runs in the bare-metal AArch64 image (binary `hcomm-image`, feature `image`) and natively in the host
//! process. A kernel is declared with [`kernel!`](crate::kernel!) and found by name in [`kernels`]; it does not know who
//! carries out its tasks.
//!
//! | kernel | what it does |
//! |---|---|
//! | [`local_copy()`] | one copy from the user's buffer into the communicator's |
//! | [`copy_list()`] | many copies, as a list in device memory asks for them |
//! | [`bench_ops()`] | one entry point called many times, to be measured |
//! | [`empty()`] | nothing, to measure a launch |
//! | [`misbehave()`] | fails as asked, for tests and fault plans |
//!
//! It does not define the platform (`hcomm_port_*` of `hcomm-aicpu`): the image does, and so must every program that links
//! this crate.
#![no_std]

mod bench_ops;
mod copy_list;
mod entry;
mod local_copy;
mod misbehave;

pub use bench_ops::{BenchOp, BenchOpsParams, EmptyParams, bench_ops, empty};
pub use copy_list::{CopyListParams, ListedCopy, copy_list};
pub use entry::{Answer, KernelEntry, KernelFn, kernels, run_kernel};
pub use local_copy::{LocalCopyParams, local_copy};
pub use misbehave::{MisbehaveParams, Misbehaviour, UNMAPPED, misbehave};
