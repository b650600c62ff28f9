//! Parts of the image.
//!
//! | module | part |
//! |---|---|
//! | [`boot`] | start code, up to the launch loop |
//! | [`mmu`] | page tables |
//! | [`frames`] | return addresses from the stack |
//! | [`layout`] | addresses that `link.ld` gives |
//! | [`vectors`] | exception vectors |
//! | [`fault`] | reports of exceptions, panics and a bad boot block |
//! | [`mailbox`] | launch loop |
//! | [`wake`] | sleep and wake-up of an idle core |
//! | [`port`] | queue registers, clock and barrier for the copy path |
//! | [`refusals`] | refused calls, for the host to log |
//! | [`log`] | log ring |
//! | [`c_library`] | C functions on memory and strings, for kernels in C and C++ |
//! | [`c_log`] | log lines and failed assertions of kernels in C and C++ |
//! | [`cpu`] | core number, clock, measured call |

mod boot;
mod c_library;
mod c_log;
mod cpu;
mod fault;
mod frames;
mod layout;
mod log;
mod mailbox;
mod mmu;
mod port;
mod refusals;
mod vectors;
mod wake;
