//! Devices of one machine, and the channels between them.
//!
//! | file | what it knows |
//! |---|---|
//! | `member` | [`Fabric`]: which devices are joined, what each lets others use, which of them has failed |
//! | `status` | completion statuses of transfers, and why a transfer has failed |
//! | `end` | one end of a channel, as the scheduler of its device keeps it |
//! | `connect` | the channel table of a device: makes and releases ends |
//! | `execute` | a scheduler's part: the entries of a doorbell, transfers to a peer, records of a peer's notifies |
//! | `peer_failure`, `failure` | peers that have failed, and a scheduler's part of it |
//!
//! A device is known by its slot. Each has a notify window outside HBM, which no processor maps: only the notify part of a work
//! entry and the remote write value of an Ascend910B or Ascend910_93 name it.

mod connect;
mod end;
mod execute;
mod failure;
mod member;
mod peer_failure;
mod status;

pub use connect::{ChannelError, Channels, EndSpec, Offer, Prepared};
pub use end::ChannelEnd;
pub(crate) use execute::remote_notify;
pub use member::{Export, Fabric, Port, Token, eid_of};
pub use peer_failure::PeerFailure;
pub use status::{Status, TransferError, Why};
