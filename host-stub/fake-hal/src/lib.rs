//! A stand-in for the driver's library on a card, `libascend_hal.so`, over the queues of the simulated device.
//!
//! It decodes arguments by byte offset from the vendor's headers, not by the types of `hcomm-hal`, and refuses what the driver
//! refuses: other devices than the local one, whose number differs from the host's; queues that it does not have; properties that
//! a submission queue does not have; a tail outside of the ring; a paused queue. Nothing that is wrong succeeds.
//!
//! - `world`: the queues, and how their registers are reached: by functions of the process (native), or in the memory that
//!   the runner shares with the simulator (AArch64).
//! - `hal`: the functions of the driver.
//! - `control`: functions of the type of a kernel, by which a test makes queues, pauses them and lets tasks fail.
//! - `dlog`: the log of the scheduler, which ends on standard error.
//!
//! It does not run tasks: the simulated device does, on its own thread, after the doorbell.

mod control;
mod dlog;
mod hal;
mod world;
