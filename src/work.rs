//! Tasks of one call.

use crate::copy::Chunks;
use crate::encode::{Draft, Task};
use crate::spec::soc::Soc;
use crate::spec::{DeviceAddr, Sqe};

/// Tasks of one call, in order.
pub(crate) trait Tasks {
    /// Tasks still to be queued.
    fn remaining(&self) -> u64;
    /// Descriptor of the next task, of which there is one, with this stamp.
    fn next(&mut self, stamp: u64) -> Sqe;
    /// Bytes of the tasks that were taken.
    fn queued_len(&self) -> u64;
}

/// Tasks of any call: one type, so that the long way is in a program once.
pub(crate) struct Work {
    draft: Draft,
    /// A task that moves no bytes counts as one chunk.
    chunks: Chunks,
}

impl Work {
    /// A copy (`opcode` 0) or a reduce of `len` bytes. Addresses are taken as they are: they wrap at 2^64.
    #[inline]
    pub(crate) fn sdma(soc: Soc, dst: DeviceAddr, src: DeviceAddr, len: u64, opcode: u8) -> Self {
        let draft = Draft::new(soc, Task::Sdma { src, dst, len: 0, opcode });
        Self { draft, chunks: Chunks::new(dst, src, len) }
    }

    /// One task that moves no bytes.
    pub(crate) fn one(soc: Soc, task: Task) -> Self {
        Self { draft: Draft::new(soc, task), chunks: Chunks::new(DeviceAddr(0), DeviceAddr(0), 1) }
    }
}

impl Tasks for Work {
    #[inline]
    fn remaining(&self) -> u64 {
        self.chunks.remaining()
    }

    #[inline(always)]
    fn next(&mut self, stamp: u64) -> Sqe {
        self.draft.entry(self.chunks.take_next(), stamp)
    }

    fn queued_len(&self) -> u64 {
        self.chunks.queued_len()
    }
}
