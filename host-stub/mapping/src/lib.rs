//! Memory of a simulated device: one sparse shared file, of which HBM is mapped at its device virtual address.
//!
//! All unsafe code of the host that touches device memory is here. Every other crate names memory by device address.
//!
//! | file | what it holds |
//! |---|---|
//! | `shared_memory` | the file, its mappings, reads and writes ([`SharedMemory`]) |
//! | `layout` | where HBM lies ([`Layout`]) |
//! | `engine` | copy and reduce, as the simulated device asks for them |
//! | `large_copy` | copies that keep holes and go past the caches |
//! | `pages` | which pages are mapped or in memory |

mod engine;
mod large_copy;
mod layout;
mod pages;
mod shared_memory;

pub use layout::{BASE_VAR, BadBase, Layout, SLOTS};
pub use pages::is_mapped;
pub use shared_memory::{MemoryError, SharedMemory, is_device_address};
