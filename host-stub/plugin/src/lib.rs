//! TCG plugin of QEMU: tells the host which bytes of HBM the loads and stores of the emulated program access, for the check `core`.
//!
//! | file | what it holds |
//! |---|---|
//! | `interface` | QEMU's plugin interface, version 1, as its documentation describes it |
//! | `options` | the arguments that the host gives |
//! | `ring` | the ring in shared memory that accesses go to ([`hcomm_aicpu::spec::own_access`]) |
//! | `instruction` | which instructions of AArch64 need a look |
//! | `plugin` | what QEMU calls |
//!
//! It only looks: it changes nothing of what the program computes. An access outside HBM costs one comparison. Accesses of HBM
//! that are neighbours become one entry of the ring, see `ring`. What it does not see: accesses that QEMU makes by itself for one
//! instruction, that is `dc zva` and the loads and stores of SVE; the ring says so if the program has one.

mod instruction;
mod options;
mod ring;

// The functions of the interface are in the program that loads this library: a test has none.
#[cfg(not(test))]
mod interface;
#[cfg(not(test))]
mod plugin;
