//! C API of the host side: the vendor's names, types and numbers.
//!
//! | file | what it holds |
//! |---|---|
//! | `acl_base`, `acl_rt` | types, then functions `aclrt*`; source of `include/acl/` |
//! | `hccl_types`, `hccl_comm`, `hccl_res`, `hccl_res_expt`, `hccl_channel`, `hccl_rank_graph`, `hccl_launch` | source of `include/hccl/` |
//! | `hcomm_res_defs`, `hcomm_res`, `hcomm_primitives` | source of `include/hcomm/`; functions `Hcomm*`, on the host and in native kernels |
//! | `hcomm_log` | log lines of kernels in C and C++ |
//! | `init`, `fill`, `last_error`, `error_text` | what the functions of those names do |
//! | `codes`, `error`, `binary_error` | why functions fail, and with which numbers |
//! | `call`, `recent` | what every function does: errors to codes, panics to codes, the recent message |
//! | `process`, `handles`, `objects`, `host_block` | the one state that a process has: devices by number, live handles, and what they name |
//! | `owner`, `this_thread`, `thread_end` | what belongs to a process or a thread, and what happens after a fork and when a thread ends |
//! | `device`, `stream`, `notify`, `event`, `memory`, `memory_async`, `binary`, `binary_data`, `launch`, `comm`, `comm_config`, `thread_pool` | what the functions do |
//! | `ranks`, `waits` | which ranks have joined a communicator, what they hand to each other, and who waits for whom |
//! | `channels`, `channel_desc`, `links` | channels between ranks, what they are made from, and the links that a program finds |
//! | `library` | loads the shared libraries of native kernels |
//! | `support` | what product and engine allow: every such decision is made there |
//!
//! Handles are numbers that are looked up, never addresses: whatever a program passes is answered. Out-pointers are written
//! on success only. The names of the exported functions are listed in `docs/abi-host.txt`.
#![allow(non_camel_case_types, non_snake_case, reason = "names of the vendor's interface")]

mod acl_base;
mod acl_rt;
mod binary;
mod binary_data;
mod binary_error;
mod call;
mod channel_desc;
mod channels;
mod codes;
mod comm;
mod comm_config;
mod device;
mod error;
mod error_text;
mod event;
mod fill;
mod find_library;
mod handles;
mod hccl_channel;
mod hccl_comm;
mod hccl_launch;
mod hccl_rank_graph;
mod hccl_res;
mod hccl_res_expt;
mod hccl_types;
mod hcomm_log;
mod hcomm_primitives;
mod hcomm_res;
mod hcomm_res_defs;
mod host_block;
mod init;
mod last_error;
mod launch;
mod library;
mod links;
mod memory;
mod memory_async;
mod memory_file;
mod notify;
mod objects;
mod owner;
mod process;
mod ranks;
mod recent;
mod stderr_log;
mod stream;
mod support;
mod this_thread;
mod thread_end;
mod thread_pool;
mod waits;
