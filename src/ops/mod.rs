//! Operations, one file each: arguments to tasks.
//!
//! An operation has a fast look at its arguments, which gives the one task of nearly every call, and the full check in the
//! order of the interface. The full checks of copy and reduce are public: the host's side of the interface answers by them too.

pub(crate) mod aclrt_notify;
pub mod batch;
pub(crate) mod channel;
pub mod comm;
pub mod copy;
pub(crate) mod notify;
pub mod reduce;
pub mod timeout;

use crate::context::{Core, OnCore, on_core, with_core};
use crate::error::Error;
use crate::handle::{Slot, ThreadTable};
use crate::port::Platform;
use crate::port::hooks::Hooks;
use crate::spec::record::EntryPoint;
use crate::spec::thread::ThreadHandle;
use crate::sq::{self, Fast, TaskSource};
use crate::task::{Request, Task};

/// Limit of a wait in seconds: that of the call, or that of the core.
pub(crate) fn timeout_of(core: &Core<'_>, timeout_s: Option<u32>) -> u32 {
    timeout_s.unwrap_or_else(|| core.notify_wait_timeout_s())
}

/// A call that queues tasks, as the caller gave it.
pub(crate) trait Operation: Copy {
    /// The function.
    const ENTRY: EntryPoint;

    /// Whether the arguments may be those of [`task`](Self::task): looked at before a queue is locked.
    #[inline(always)]
    fn is_simple(self) -> bool {
        true
    }

    /// The task of a call that is good and one task, as far as few instructions tell, for an Ascend950; `None` for every other
    /// call. `slot` is that of the thread whose queue takes it.
    fn task(self, table: &ThreadTable, slot: Option<Slot>) -> Option<Task>;

    /// Checks that come before that of the thread.
    ///
    /// # Errors
    /// A null argument.
    fn nulls(self) -> Result<(), Error>;

    /// Checks that come after that of the thread `handle`, in their order. Fills in the tasks.
    ///
    /// # Errors
    /// The operation's own.
    fn request(self, core: &Core<'_>, handle: ThreadHandle, request: &mut Request) -> Result<(), Error>;
}

/// The fast path of a call, on the core that runs the caller.
#[inline(always)]
pub(crate) fn fast<O: Operation>(handle: ThreadHandle, operation: O) -> Fast {
    with_core(FastPath { handle, operation }, Fast::NotTaken)
}

struct FastPath<O> {
    handle: ThreadHandle,
    operation: O,
}

impl<O: Operation> OnCore for FastPath<O> {
    type Output = Fast;

    #[inline(always)]
    fn run(self, core: &Core<'_>, io: &Hooks) -> Fast {
        let Self { handle, operation } = self;
        if !operation.is_simple() {
            return Fast::NotTaken;
        }
        core.device().queues().try_one(io, core.queues(), handle, OneTask { table: core.table(), operation })
    }
}

struct OneTask<'d, O> {
    table: &'d ThreadTable,
    operation: O,
}

impl<O: Operation> TaskSource for OneTask<'_, O> {
    #[inline(always)]
    fn task(self, slot: Option<Slot>) -> Option<Task> {
        self.operation.task(self.table, slot)
    }
}

/// What is left of a call after its fast path: all of it, if that has done nothing.
#[inline(always)]
pub(crate) fn finish<O: Operation>(handle: ThreadHandle, operation: O, fast: Fast) -> Result<(), Error> {
    match fast {
        Fast::Queued => Ok(()),
        Fast::Refused { sq_id } => Err(Error::DoorbellRefused { sq_id }),
        Fast::NotTaken => slow(handle, operation),
    }
}

/// A whole call, every check in its order, on the core that runs the caller.
#[inline(always)]
pub(crate) fn slow<O: Operation>(handle: ThreadHandle, operation: O) -> Result<(), Error> {
    operation.nulls()?;
    if handle.0 == 0 {
        return Err(Error::NullThread);
    }
    on_core(|core, io| on_queue(io, core, handle, operation))
}

/// The call on a handle that is not 0.
#[inline(always)]
pub(crate) fn on_queue<P: Platform, O: Operation>(
    io: &P,
    core: &Core<'_>,
    handle: ThreadHandle,
    operation: O,
) -> Result<(), Error> {
    let queues = core.device().queues();
    let mut request = Request::NONE;
    let mut result = operation.request(core, handle, &mut request);
    if result.is_ok() && !request.is_empty() {
        // The queue looks the handle up, if it does not know it.
        return sq::submit(io, queues, core.queues(), handle, request, O::ENTRY);
    }
    // A bad handle comes before what is wrong with the other arguments, and before a call that queues nothing.
    if let Err(stop) = core.table().queue_place(handle) {
        result = Err(stop.into());
    }
    result
}

/// Makes of an operation a function with plain arguments, as the safe interface calls it: its fast path is in a program
/// once, for all kernels.
macro_rules! outlined {
    ($name:ident($($arg:ident: $type:ty),*) => $operation:expr) => {
        #[inline]
        pub(crate) fn $name(handle: ThreadHandle, $($arg: $type),*) -> Result<(), Error> {
            #[inline(never)]
            fn fast(handle: ThreadHandle, $($arg: $type),*) -> Fast {
                crate::ops::fast(handle, $operation)
            }
            #[cold]
            #[inline(never)]
            fn finish(handle: ThreadHandle, $($arg: $type),*, fast: Fast) -> Result<(), Error> {
                crate::ops::finish(handle, $operation, fast)
            }
            match fast(handle, $($arg),*) {
                Fast::Queued => Ok(()),
                other => finish(handle, $($arg),*, other),
            }
        }
    };
}
pub(crate) use outlined;
