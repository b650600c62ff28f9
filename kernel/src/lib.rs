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
//! | `reduce_scatter`, `all_reduce`, `all_to_all`, `broadcast` | the other collectives over a mesh; not in the image |
//! | `all_reduce_ring` | all-reduce around a ring; not in the image |
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
#[cfg(not(feature = "image"))]
mod all_reduce;
#[cfg(not(feature = "image"))]
mod all_to_all;
mod bench_ops;
#[cfg(not(feature = "image"))]
mod broadcast;
mod call_list;
#[cfg(not(feature = "image"))]
mod collective;
mod control;
mod copy_list;
mod entry;
mod kernel_log;
#[cfg(feature = "linux")]
mod linux_log;
mod local_copy;
mod local_reduce;
mod mesh;
mod misbehave;
mod own_access;
mod pingpong;
mod queued;
#[cfg(not(feature = "image"))]
mod reduce_scatter;
#[cfg(not(feature = "image"))]
mod ring;
mod send_recv;
mod staged_copy;

pub use all_gather::{AllGatherParams, all_gather};
#[cfg(not(feature = "image"))]
pub use all_reduce::all_reduce;
#[cfg(not(feature = "image"))]
pub use all_to_all::all_to_all;
pub use bench_ops::{BenchOp, BenchOpsParams, EmptyParams, bench_ops, empty};
#[cfg(not(feature = "image"))]
pub use broadcast::broadcast;
pub use call_list::{Call, CallListParams, call_list};
#[cfg(not(feature = "image"))]
pub use collective::CollectiveParams;
pub use control::Control;
pub use copy_list::{CopyListParams, ListedCopy, copy_list};
pub use entry::{Answer, KernelEntry, KernelFn, kernels, run_kernel};
pub use kernel_log::LOG_TARGET;
#[doc(hidden)]
#[cfg(feature = "linux")]
pub use linux_log::log_line as __log_line;
pub use local_copy::{LocalCopyParams, local_copy};
pub use local_reduce::{LOCAL_REDUCE_NOTIFIES, LOCAL_REDUCE_THREADS, LocalReduceParams, local_reduce};
pub use mesh::{CHANNEL_NOTIFIES, MeshPeer};
pub use misbehave::{FLOOD, MisbehaveParams, Misbehaviour, UNMAPPED, misbehave};
pub use own_access::{OwnAccessParams, OwnStep, own_access};
pub use pingpong::{PingpongParams, pingpong};
#[cfg(not(feature = "image"))]
pub use reduce_scatter::reduce_scatter;
#[cfg(not(feature = "image"))]
pub use ring::all_reduce_ring;
pub use send_recv::{SendRecvParams, recv_from_peer, send_to_peer};
pub use staged_copy::{STAGED_COPY_INPUT_NOTIFIES, STAGED_COPY_OUTPUT_NOTIFIES, StagedCopyParams, staged_copy};
