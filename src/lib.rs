//! Device-side copy path of Ascend communication kernels.
#![cfg_attr(not(test), no_std)]

pub mod spec;
