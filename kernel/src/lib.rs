//! Kernels of the AI CPU: algorithms that run on the device and queue their tasks there.
//!
//! The same code runs in the bare-metal AArch64 image (binary `hcomm-image`, feature `image`) and natively in the host
//! process. A kernel is declared with [`kernel!`](crate::kernel!) and found by name in [`kernels`]; it does not depend
//! on the device that runs its tasks.
//!
//! | kernel | what it does |
//! |---|---|
//! | [`local_copy()`] | one copy from the user's buffer into the communicator's |
//! | [`staged_copy()`] | copy of any size through a buffer of any size, on two threads |
//! | [`local_reduce()`] | many slices into one, on several threads |
//! | [`pingpong()`] | a token between two threads: the cost of a notify |
//! | [`call_list()`] | any calls, from a list in device memory |
//! | [`all_gather()`] | all-gather over a full mesh of channels |
//! | [`send_to_peer()`], [`recv_from_peer()`] | one rank reads what another one gives |
//! | [`copy_list()`] | many copies, from a list in device memory |
//! | [`bench_ops()`] | one entry point called many times, to be measured |
//! | [`empty()`] | nothing, to measure a launch |
//! | [`own_access()`] | loads and stores of its own, for tests of the check `core` |
//! | [`misbehave()`] | fails in a chosen way, for tests and fault plans |
//!
//! Kernels log with [`kernel_log!`].
//!
//! It does not define the platform (`hcomm_port_*` of `hcomm-aicpu`): the image does, and so must every program that links
//! this crate.
#![no_std]

#[doc(hidden)]
#[cfg(not(feature = "image"))]
pub use log as __log;

mod all_gather;
mod bench_ops;
mod call_list;
mod control;
mod copy_list;
mod entry;
mod kernel_log;
mod local_copy;
mod local_reduce;
mod misbehave;
mod own_access;
mod pingpong;
mod queued;
mod send_recv;
mod staged_copy;

pub use all_gather::{AllGatherParams, CHANNEL_NOTIFIES, MeshPeer, all_gather};
pub use bench_ops::{BenchOp, BenchOpsParams, EmptyParams, bench_ops, empty};
pub use call_list::{Call, CallListParams, call_list};
pub use control::Control;
pub use copy_list::{CopyListParams, ListedCopy, copy_list};
pub use entry::{Answer, KernelEntry, KernelFn, kernels, run_kernel};
#[doc(hidden)]
#[cfg(not(feature = "image"))]
pub use kernel_log::IS_LOGGED as __IS_LOGGED;
pub use kernel_log::LOG_TARGET;
pub use local_copy::{LocalCopyParams, local_copy};
pub use local_reduce::{LOCAL_REDUCE_NOTIFIES, LOCAL_REDUCE_THREADS, LocalReduceParams, local_reduce};
pub use misbehave::{FLOOD, MisbehaveParams, Misbehaviour, UNMAPPED, misbehave};
pub use own_access::{OwnAccessParams, OwnStep, own_access};
pub use pingpong::{PingpongParams, pingpong};
pub use send_recv::{SendRecvParams, recv_from_peer, send_to_peer};
pub use staged_copy::{STAGED_COPY_INPUT_NOTIFIES, STAGED_COPY_OUTPUT_NOTIFIES, StagedCopyParams, staged_copy};
