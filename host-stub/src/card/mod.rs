//! Backend of a card: the host API through the runtime's own libraries, which are loaded while the program runs. **Not yet run on
//! hardware.**
//!
//! - `acl`: the functions of `libascendcl.so` and `libruntime.so`.
//! - [`kind`]: which device a program runs on.
//! - `files`: where runtime and package are.
//! - `device`: memory and kernels. `threads`, `known_thread`: queues of the AI CPU and notifies. `stream`: launches, and their statuses.
//!
//! A kernel of the package gets a [`CardLaunch`](hcomm_aicpu::spec::card::CardLaunch) in front of its own parameters; how it ended is
//! in a status in device memory, which the host reads when it synchronises.

pub(crate) mod acl;
pub(crate) mod device;
pub mod error;
pub(crate) mod files;
pub mod kind;
mod known_thread;
pub(crate) mod stream;
mod threads;

pub use files::DESCRIPTION_VAR;
