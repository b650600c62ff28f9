//! Work entries of a UB channel, and the descriptor that rings for them. Source: docs/spec.md, "UB work entries".
//!
//! A channel has a ring of 64-byte blocks in the memory of its sender. An entry takes one block, or two if it also sets a
//! notify. Entries are written at the call; one [`UbDoorbell`] descriptor in the queue of a thread starts all of them.
//!
//! | module | what |
//! |---|---|
//! | `entry` | the fields of an entry, and a builder for each kind |
//! | `order` | which bits order the entries, and how an operation is cut into slices |
//! | `reduce` | codes of the reduces that the engine computes |
//! | `index` | the 16-bit producer index, its slot and its owner bit |
//! | `doorbell` | the descriptor |
//!
//! A builder writes every byte of its blocks: reserved fields are zero, whatever the slots held before. A number that does not
//! fit into its field is refused; none is cut.

mod doorbell;
mod entry;
mod index;
mod order;
mod reduce;

pub use doorbell::{BadJetty, Jetty, UbDoorbell, UbDoorbellSqe};
pub use entry::{
    Block, Eid, Local, MAX_PATH, MAX_TOKEN_ID, NotifyEntry, NotifyRecord, NotifyTarget, PathNumber, PathTooLarge, Peer,
    Read, Region, Remote, TokenId, TokenIdTooLarge, WorkEntry, Write, WriteWithNotify,
};
pub use index::{BadWorkDepth, MAX_WORK_DEPTH, WorkDepth};
pub use order::{MAX_SLICE, Order, Place, Sequence, Slice, Slices};
pub use reduce::UbReduce;

/// Bytes of a block, of which a work ring is made.
pub const BLOCK_SIZE: usize = 64;
