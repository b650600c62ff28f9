//! The control pair of a launch: orders a kernel's tasks with the stream that it was launched on.

use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_aicpu::{Error, Peer, Thread, batch};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::queued;

/// The kernel's part of the control pair, in its parameters.
///
/// The host records the start notify on its stream, launches, and lets the stream wait for the end notify. The kernel's first
/// thread waits for the one and records the other, both as queued tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Control {
    /// `ThreadHandle` of the stream's thread, which waits for the end notify; 0 = there is no control pair.
    pub cpu_thread: u64,
    /// Index of the start notify, of the kernel's first thread.
    pub start_notify: u32,
    /// Index of the end notify, of `cpu_thread`.
    pub end_notify: u32,
}
const _: () = assert!(size_of::<Control>() == 16);

impl Control {
    /// No control pair: the kernel queues its work and nothing else.
    pub const NONE: Self = Self { cpu_thread: 0, start_notify: 0, end_notify: 0 };

    /// Queues `work` ordered with the stream: in one batch, the wait for the start notify, what `work` queues, and the record
    /// of the end notify, both on `thread`. Work on other threads has to be ordered before the end of `thread`'s by `work`
    /// itself. Without a control pair `work` alone is queued, outside a batch.
    ///
    /// # Errors
    /// The first of `work` and the calls around it; the batch is ended, so that what was queued runs.
    pub fn in_step<T>(&self, thread: &Thread, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if *self == Self::NONE {
            return work();
        }
        batch::start()?;
        let result = queued::wait(thread, self.start_notify).and_then(|()| work());
        let result = result.and_then(|answer| self.record_end(thread).map(|()| answer));
        let ended = batch::end();
        let answer = result?;
        ended.map(|()| answer)
    }

    #[inline(never)]
    fn record_end(&self, thread: &Thread) -> Result<(), Error> {
        queued::record(thread, Peer::from_handle(ThreadHandle(self.cpu_thread))?, self.end_notify)
    }
}
