//! Channels to other devices.
//!
//! | module | what it knows |
//! |---|---|
//! | `table` | the channel table: the one place that reads descriptors |
//! | `state` | the device's own state of a channel: producer index, free blocks, what is staged; the one writer of work entries |
//! | `work` | transfers and records of one call, cut into entries |
//! | `submit` | a whole call: looks both handles up, waits for room, writes entries and queues their doorbell |
//! | `safe` | safe interface of a channel |

mod safe;
pub(crate) mod state;
pub(crate) mod submit;
mod table;
pub(crate) mod work;

pub use safe::Channel;
pub(crate) use table::ChannelPlace;
pub use work::{Transfer, TransferKind};
