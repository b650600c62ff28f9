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
}

/// What a descriptor of an Ascend910B or Ascend910_93 asks for between two devices. Apart from [`Task`], so that a copy does not
/// reach what encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoteTask {
    /// A copy (`opcode` 0) or a reduce between this device and another one.
    Sdma { src: DeviceAddr, dst: DeviceAddr, len: u32, opcode: u8 },
    /// Sets the notify whose register has this physical address, on another device.
    Record { register: DeviceAddr },
}

/// Ascend950: starts the work entries of a jetty before this producer index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UbDoorbellTask {
    pub(crate) jetty: Jetty,
    pub(crate) producer_index: u16,
}

/// Tasks of which a call may have several.
pub(crate) trait Divisible: Copy {
    /// First byte written and first byte read, if it moves any.
    fn addrs(self) -> Option<(DeviceAddr, DeviceAddr)>;
    /// The task for one chunk of it.
    fn of_chunk(self, chunk: Chunk) -> Self;
    /// Opcode and chunks, if all of it is a copy or reduce on this device.
    #[inline(always)]
    fn as_local(self, _chunks: Chunks) -> Option<(u8, Chunks)> {
        None
    }
}

impl Divisible for Task {
    #[inline(always)]
    fn addrs(self) -> Option<(DeviceAddr, DeviceAddr)> {
        if let Self::Sdma { dst, src, .. } = self { Some((dst, src)) } else { None }
    }

    #[inline(always)]
    fn of_chunk(self, chunk: Chunk) -> Self {
        if let Self::Sdma { opcode, .. } = self { chunk.task(opcode) } else { self }
    }

    #[inline(always)]
    fn as_local(self, chunks: Chunks) -> Option<(u8, Chunks)> {
        if let Self::Sdma { opcode, .. } = self { Some((opcode, chunks)) } else { None }
    }
}

impl Divisible for RemoteTask {
    fn addrs(self) -> Option<(DeviceAddr, DeviceAddr)> {
        if let Self::Sdma { dst, src, .. } = self { Some((dst, src)) } else { None }
    }

    fn of_chunk(self, Chunk { dst, src, len }: Chunk) -> Self {
        if let Self::Sdma { opcode, .. } = self { Self::Sdma { src, dst, len, opcode } } else { self }
    }
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
pub(crate) struct Request<T = Task> {
    /// Of a copy or reduce: all of it, and the length is not looked at.
    task: T,
    /// Bytes. A task that moves none is one byte here, so that both are counted alike.
    len: u64,
    /// Of these, bytes of the tasks that were taken.
    done: u64,
}

impl Request {
    /// Nothing.
    pub(crate) const NONE: Self = Self::transfer(DeviceAddr(0), DeviceAddr(0), 0, 0);

    /// A copy (`opcode` 0) or a reduce.
    #[inline]
    pub(crate) const fn transfer(dst: DeviceAddr, src: DeviceAddr, len: u64, opcode: u8) -> Self {
        Self { task: Task::Sdma { src, dst, len: 0, opcode }, len, done: 0 }
    }
}

impl Request<RemoteTask> {
    /// A copy (`opcode` 0) or a reduce between this device and another one.
    pub(crate) fn remote(dst: DeviceAddr, src: DeviceAddr, len: u64, opcode: u8) -> Self {
        Self { task: RemoteTask::Sdma { src, dst, len: 0, opcode }, len, done: 0 }
    }
}

impl<T: Divisible> Request<T> {
    /// One task that moves no bytes.
    #[inline]
    pub(crate) const fn single(task: T) -> Self {
        Self { task, len: 1, done: 0 }
    }

    /// Whether no task is left.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == self.done
    }

    /// Tasks still to be queued.
    #[inline]
    pub(crate) fn remaining(&self) -> u64 {
        (self.len - self.done).div_ceil(MAX_CHUNK)
    }

    /// What is left of a copy (`opcode` 0) or reduce on this device.
    #[inline]
    pub(crate) fn as_local(&self) -> Option<(u8, Chunks)> {
        let Self { task, len, done } = *self;
        let (dst, src) = task.addrs()?;
        task.as_local(Chunks { dst, src, len, done })
    }

    /// The next task, of which there is one.
    #[inline]
    pub(crate) fn take_next(&mut self) -> T {
        let Self { task, len, done } = *self;
        let Some((dst, src)) = task.addrs() else {
            self.done = len;
            return task;
        };
        let mut chunks = Chunks { dst, src, len, done };
        let next = task.of_chunk(chunks.take_next());
        self.done = chunks.done;
        next
    }

    /// Bytes of the tasks that were taken.
    pub(crate) fn queued_len(&self) -> u64 {
        if self.task.addrs().is_some() { self.done } else { 0 }
    }
}
