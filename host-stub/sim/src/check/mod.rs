//! Checks of what a program does with device memory: which accesses are not ordered, which bytes were never written.
//!
//! | part | what it knows |
//! |---|---|
//! | [`happens_before`] | which actor knows of which others: vector clocks over host calls, streams, launches and queues |
//! | [`history`] | the last read and write of each actor for each byte; which of two accesses race |
//! | [`init`] | bytes that were never written since their allocation |
//! | [`clock`], [`ranges`] | vector clocks; maps from byte ranges |

pub mod clock;
pub mod happens_before;
pub mod history;
pub mod init;
pub mod ranges;
