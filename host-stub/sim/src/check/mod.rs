//! Checks of what a program does with device memory: which accesses are not ordered, which bytes were never written.
//!
//! | part | what it knows |
//! |---|---|
//! | [`happens_before`] | which actor knows of which others: vector clocks over host calls, streams, launches and queues |
//! | [`calls`] | calls that were refused and whose codes a kernel has ignored |
//! | [`list`] | which checks a device makes |
//! | [`race`] | the race check: accesses that nothing orders |
//! | [`report`] | what a report of a race says |
//! | [`findings`] | what was found, until a call of the host returns it |
//! | [`history`] | the last read and write of each actor for each byte; which of two accesses race |
//! | [`init`], [`contents`] | bytes that were never written since their allocation; what their contents tell |
//! | [`init_check`], [`init_report`] | the init check: uses of such bytes; what a report says |
//! | [`channels`], [`joint`] | doorbells of a channel and the entries of one doorbell; checks that joined devices have in common |
//! | [`own`], [`own_report`] | accesses of kernels' own code to bytes that are not theirs; what a report says |
//! | [`start`] | the start rule: transfers come behind the wait for the start notify |
//! | [`ranges`] | maps from byte ranges |

pub mod calls;
pub mod channels;
pub mod contents;
pub mod findings;
pub mod happens_before;
pub mod history;
pub mod init;
pub mod init_check;
pub mod init_report;
pub mod joint;
pub mod list;
pub mod own;
pub mod own_report;
pub mod race;
pub mod ranges;
pub mod report;
pub mod start;
