//! Tasks of one call, before they are descriptors of a chip.

use crate::spec::DeviceAddr;
use crate::spec::ub::Jetty;

/// Most bytes of one task: 4 GiB - 2 MiB. The 32-bit length can't wrap, and every chunk keeps the alignment of the first.
pub const MAX_CHUNK: u64 = (4 << 30) - (2 << 20);

/// What a descriptor asks the device to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A copy (`opcode` 0) or a reduce.
    Sdma { src: DeviceAddr, dst: DeviceAddr, len: u32, opcode: u8 },
    /// Sets a notify.
    NotifyRecord { id: u32 },
    /// Waits for a notify, and clears it.
    NotifyWait { id: u32, timeout_s: u32 },
    /// Ascend950: starts the work entries of a jetty before this producer index.
    UbDoorbell { jetty: Jetty, producer_index: u16 },
    /// Ascend910B, Ascend910_93: a copy (`opcode` 0) or a reduce between this device and another one.
    RemoteSdma { src: DeviceAddr, dst: DeviceAddr, len: u32, opcode: u8 },
    /// Ascend910B, Ascend910_93: sets the notify whose register has this physical address, on another device.
    RemoteRecord { register: DeviceAddr },
}

/// One piece of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// First byte written.
    pub dst: DeviceAddr,
    /// First byte read.
    pub src: DeviceAddr,
    /// Bytes, at most [`MAX_CHUNK`].
    pub len: u32,
}

impl Chunk {
    /// A copy (`opcode` 0) or a reduce of it.
    #[inline(always)]
    pub(crate) fn task(self, opcode: u8) -> Task {
        let Self { dst, src, len } = self;
        Task::Sdma { src, dst, len, opcode }
    }
}

/// The chunks of one copy or reduce, in order of address. Lengths add up to that of the copy, none is 0.
#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    dst: DeviceAddr,
    src: DeviceAddr,
    len: u64,
    done: u64,
}

impl Chunks {
    /// The chunks of a copy of `len` bytes. Addresses are taken as they are: they wrap at 2^64.
    #[inline]
    pub const fn new(dst: DeviceAddr, src: DeviceAddr, len: u64) -> Self {
        Self { dst, src, len, done: 0 }
    }

    /// Chunks that are left.
    #[inline]
    pub(crate) fn remaining(&self) -> u64 {
        (self.len - self.done).div_ceil(MAX_CHUNK)
    }

    /// The next chunk; an empty one if there is none.
    #[inline(always)]
    fn take_next(&mut self) -> Chunk {
        let len = (self.len - self.done).min(MAX_CHUNK) as u32;
        let at = |start: DeviceAddr| DeviceAddr(start.0.wrapping_add(self.done));
        let chunk = Chunk { dst: at(self.dst), src: at(self.src), len };
        self.done += u64::from(len);
        chunk
    }
}

impl Iterator for Chunks {
    type Item = Chunk;

    #[inline(always)]
    fn next(&mut self) -> Option<Chunk> {
        if self.done == self.len { None } else { Some(self.take_next()) }
    }
}

/// The tasks of one call, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// Chunks of a copy or reduce.
    Transfer { opcode: u8, chunks: Chunks },
    /// The same between devices: Ascend910B, Ascend910_93.
    Remote { opcode: u8, chunks: Chunks },
    /// One task that moves no bytes; `None` once it is taken.
    Single(Option<Task>),
}

impl Request {
    /// A copy (`opcode` 0) or a reduce.
    #[inline]
    pub(crate) fn transfer(dst: DeviceAddr, src: DeviceAddr, len: u64, opcode: u8) -> Self {
        Self::Transfer { opcode, chunks: Chunks::new(dst, src, len) }
    }

    /// A copy (`opcode` 0) or a reduce between this device and another one.
    pub(crate) fn remote(dst: DeviceAddr, src: DeviceAddr, len: u64, opcode: u8) -> Self {
        Self::Remote { opcode, chunks: Chunks::new(dst, src, len) }
    }

    /// Whether no task is left.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Transfer { chunks, .. } | Self::Remote { chunks, .. } => chunks.len == chunks.done,
            Self::Single(task) => task.is_none(),
        }
    }

    /// Tasks still to be queued.
    #[inline]
    pub(crate) fn remaining(&self) -> u64 {
        match self {
            Self::Transfer { chunks, .. } | Self::Remote { chunks, .. } => chunks.remaining(),
            Self::Single(task) => task.is_some().into(),
        }
    }

    /// The next task, of which there is one.
    #[inline]
    pub(crate) fn take_next(&mut self) -> Task {
        match self {
            Self::Transfer { opcode, chunks } => chunks.take_next().task(*opcode),
            Self::Remote { opcode, chunks } => {
                let Chunk { dst, src, len } = chunks.take_next();
                Task::RemoteSdma { src, dst, len, opcode: *opcode }
            }
            // A call asks for no more tasks than it has.
            Self::Single(task) => task.take().unwrap_or(Task::NotifyRecord { id: 0 }),
        }
    }

    /// Bytes of the tasks that were taken.
    pub(crate) fn queued_len(&self) -> u64 {
        match self {
            Self::Transfer { chunks, .. } | Self::Remote { chunks, .. } => chunks.done,
            Self::Single(_) => 0,
        }
    }
}
