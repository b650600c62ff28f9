//! Local copy: argument checks and the split into chunks.

use crate::device::Core;
use crate::error::Error;
use crate::port::Port;
use crate::queue::{Tasks, submit};
use crate::spec::stars950::Sdma;
use crate::spec::{DeviceAddr, Sqe};
use crate::thread::Thread;

/// Most bytes of one task: 4 GiB - 2 MiB. The 32-bit length can't wrap, and every chunk keeps the alignment of the first.
pub const MAX_CHUNK: u64 = (4 << 30) - (2 << 20);

/// # Errors
/// [`Error::NullDst`], [`Error::NullSrc`].
#[inline]
pub(crate) fn check_addresses(dst: DeviceAddr, src: DeviceAddr) -> Result<(), Error> {
    if dst.is_null() {
        return Err(Error::NullDst);
    }
    if src.is_null() {
        return Err(Error::NullSrc);
    }
    Ok(())
}

/// [`Thread::local_copy`] on any port.
#[inline]
pub(crate) fn local_copy<P: Port>(
    port: &P,
    core: &Core<'_>,
    thread: &Thread,
    dst: DeviceAddr,
    src: DeviceAddr,
    len: u64,
) -> Result<(), Error> {
    check_range(dst, len)?;
    check_range(src, len)?;
    if len == 0 {
        return Ok(());
    }
    submit(port, core, thread, Chunks::new(dst, src, len))
}

#[inline]
fn check_range(addr: DeviceAddr, len: u64) -> Result<(), Error> {
    if addr.0.checked_add(len).is_none() { Err(Error::AddressOverflow { addr, len }) } else { Ok(()) }
}

/// The tasks of one copy, in order of address. Lengths add up to that of the copy, none is 0.
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
}

impl Iterator for Chunks {
    type Item = Sdma;

    #[inline]
    fn next(&mut self) -> Option<Sdma> {
        let left = self.len - self.done;
        if left == 0 {
            return None;
        }
        // At most MAX_CHUNK, which is below 2^32.
        let len = left.min(MAX_CHUNK) as u32;
        let at = |addr: DeviceAddr| DeviceAddr(addr.0.wrapping_add(self.done));
        let chunk = Sdma::new(at(self.src), at(self.dst), len);
        self.done += u64::from(len);
        Some(chunk)
    }
}

impl Tasks for Chunks {
    #[inline]
    fn remaining(&self) -> u64 {
        (self.len - self.done).div_ceil(MAX_CHUNK)
    }

    #[inline]
    fn next(&mut self, task_id: u32) -> Sqe {
        // `submit` takes `remaining` tasks at most; an empty one here would be a copy of nothing.
        Iterator::next(self).unwrap_or(Sdma::new(self.src, self.dst, 0)).build(task_id)
    }

    fn queued_len(&self) -> u64 {
        self.done
    }
}
