//! The bare-metal AArch64 image: the kernels of this crate, resident on the AI CPU.
//!
//! The host loads it, fills the boot block and starts the core at `_start`. From then on the core takes launches from its
//! mailbox; it ends only by a fault, which it reports. Formats and addresses: `hcomm_aicpu::spec::{mailbox, map}`.
//!
//! What it does not do: it starts one core, has no interrupt handlers, and never runs anything below EL1.
#![no_std]
#![no_main]

#[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
compile_error!("feature `image` is for the bare-metal image: build it with `cargo image`");

#[cfg(all(target_arch = "aarch64", target_os = "none"))]
mod image;
