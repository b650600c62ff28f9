//! Completion statuses of transfers over a channel.

use crate::alloc::AccessError;
use crate::decode::ub::WalkError;

/// How a transfer ended. Source: docs/faults.md, "Channels".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// The engine does not carry out the entry.
    UnsupportedOpcode = 1,
    /// Memory of the sender.
    LocalOperation = 2,
    /// Memory or notify of the peer.
    RemoteOperation = 3,
    /// Too many tries.
    RetryExceeded = 4,
    /// The peer does not answer.
    AckTimeout = 5,
    /// The channel was taken away before.
    Flushed = 6,
}

impl Status {
    /// The runtime's number for it.
    pub fn runtime_code(self) -> i32 {
        match self {
            Self::LocalOperation => 507_053,
            Self::RemoteOperation => 507_057,
            Self::AckTimeout => 507_056,
            Self::UnsupportedOpcode | Self::RetryExceeded | Self::Flushed => 507_001,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::UnsupportedOpcode => "unsupported opcode",
            Self::LocalOperation => "local operation error",
            Self::RemoteOperation => "remote operation error",
            Self::RetryExceeded => "retry exceeded",
            Self::AckTimeout => "ack timeout",
            Self::Flushed => "flushed",
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "completion status {} ({})", *self as u8, self.name())
    }
}

/// Why a transfer has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// What the doorbell starts is no list of entries.
    #[error(transparent)]
    Entries(#[from] WalkError),
    /// A block of the ring is not in HBM.
    #[error("block at {0:#x} of the work ring is not in hbm")]
    Ring(u64),
    /// Another peer than that of the channel.
    #[error("the entry names eid {found}, the channel's peer is {expected}")]
    Eid {
        /// In the entry.
        found: String,
        /// Of the channel.
        expected: String,
    },
    /// Another transport path than that of the channel.
    #[error("the entry names transport path {found:#x}, that of the channel is {expected:#x}")]
    Path {
        /// In the entry.
        found: u32,
        /// Of the channel.
        expected: u32,
    },
    /// The peer has no such token.
    #[error("token id {0:#x} is none of the peer's")]
    TokenId(u32),
    /// The peer has another value for the token.
    #[error("token id {id:#x} has another value than {value:#x}")]
    TokenValue {
        /// The token.
        id: u32,
        /// Value in the entry.
        value: u32,
    },
    /// A token of the wrong kind, or of another channel.
    #[error("token id {0:#x} is not for {1}")]
    TokenKind(u32, &'static str),
    /// Bytes at the peer that the token does not cover.
    #[error("{len} bytes at {addr:#x} are outside of what the peer has exchanged")]
    RemoteRange {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u32,
    },
    /// Bytes at the peer that are not allocated any more.
    #[error("translation fault at the peer: {0}")]
    Remote(AccessError),
    /// Bytes of the sender.
    #[error("translation fault: {0}")]
    Local(AccessError),
    /// A register that is no notify of the channel.
    #[error("{0:#x} is no notify register of the channel")]
    NotifyRegister(u64),
    /// A reduce whose last element is not whole.
    #[error("reduce of {len} bytes cuts an element of {size} bytes")]
    CutElement {
        /// Bytes of the entry.
        len: u32,
        /// Bytes of an element.
        size: u32,
    },
    /// The peer is closed.
    #[error("the peer's device {0}")]
    PeerGone(String),
}

/// A transfer over a channel that has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("channel to rank {peer_rank}, {what}: {status}: {why}")]
pub struct TransferError {
    /// Rank of the peer.
    pub peer_rank: u32,
    /// The entry.
    pub what: String,
    /// How it ended.
    pub status: Status,
    /// Why.
    pub why: Why,
}
