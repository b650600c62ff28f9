//! What unit tests of several modules share, and tests of the submission queue as a whole.

#[cfg(not(loom))]
mod channel;
#[cfg(not(loom))]
mod fast;
#[cfg(loom)]
mod loom;
#[cfg(not(loom))]
mod operations;
#[cfg(not(loom))]
pub(crate) mod port;
#[cfg(not(loom))]
mod queue;
#[cfg(not(loom))]
mod records;
#[cfg(not(loom))]
pub(crate) mod rig;
#[cfg(not(loom))]
mod table;
#[cfg(not(loom))]
mod walk;
