//! AI CPU of the simulated device as a process of AArch64 Linux: `libccl_kernel.so`, and the runner inside of it.
//!
//! The host process starts the program `hcomm-runner` with the file of the device's memory. Two cores take launches from the
//! mailboxes that the image has (`hcomm_aicpu::spec::{mailbox, runner}`), load the kernel's library as the loader of a card
//! does, and run its function. Kernels are C or C++ with all of libc and libstdc++; their calls of the device go to the entry points in
//! this library.
//!
//! | part | what it does |
//! |---|---|
//! | `memory` | the shared file: the low part, and the steps of HBM that are mapped |
//! | `start` | from the file to cores that take launches |
//! | `core` | launch loop of a core |
//! | `library` | dlopen and dlsym, once for a library and a function |
//! | `modules` | which code lies where, for the host's messages |
//! | `platform` | what the device crate needs: registers, barrier, clock |
//! | `refusals` | refused calls, for the host |
//! | `log` | log lines of kernels in C and C++, for the host |
//! | `fault` | signals and `exit`: what happened and where |
//!
//! It does not simulate anything: queues, tasks and checks are the host's. It never unloads a library.
#![cfg(all(target_os = "linux", target_arch = "aarch64"))]

mod core;
mod fault;
mod library;
mod log;
mod memory;
mod modules;
mod platform;
mod refusals;
mod start;
