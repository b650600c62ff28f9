//! Local copy.

use super::{Operation, outlined};
use crate::context::Core;
use crate::error::Error;
use crate::handle::{Slot, ThreadTable};
use crate::spec::DeviceAddr;
use crate::spec::record::EntryPoint;
use crate::spec::thread::ThreadHandle;
use crate::sq::Fast;
pub use crate::task::{Chunk, Chunks, MAX_CHUNK};
use crate::task::{Request, Task};

/// A copy of `len` bytes from `src` to `dst`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) dst: DeviceAddr,
    pub(crate) src: DeviceAddr,
    pub(crate) len: u64,
}

outlined!(local_copy(dst: DeviceAddr, src: DeviceAddr, len: u64) => Copy { dst, src, len });

impl Operation for Copy {
    const ENTRY: EntryPoint = EntryPoint::LOCAL_COPY;

    #[inline(always)]
    fn is_simple(self) -> bool {
        let Self { dst, src, len } = self;
        // The subtraction takes a length of 0 to the others that are out of range. Below 2^63 no range of one chunk overflows.
        let is_long = len.wrapping_sub(1) >= MAX_CHUNK;
        !(dst.is_null() || src.is_null() || is_long || (dst.0 | src.0) >> 63 != 0)
    }

    #[inline(always)]
    fn task(self, _table: &ThreadTable, _slot: Option<Slot>) -> Option<Task> {
        let Self { dst, src, len } = self;
        Some(Task::Sdma { src, dst, len: len as u32, opcode: 0 })
    }

    fn nulls(self) -> Result<(), Error> {
        check_addresses(self.dst, self.src)
    }

    fn request(self, _core: &Core<'_>, _handle: ThreadHandle, request: &mut Request) -> Result<(), Error> {
        let Self { dst, src, len } = self;
        check_ranges(dst, src, len)?;
        *request = Request::transfer(dst, src, len, 0);
        Ok(())
    }
}

/// Checks the arguments of a copy of `len` bytes, thread apart.
///
/// # Errors
/// In this order: [`Error::NullDst`], [`Error::NullSrc`] (also for `len` 0), [`Error::AddressOverflow`].
pub fn validate(dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
    check_addresses(dst, src)?;
    check_ranges(dst, src, len)
}

/// # Errors
/// [`Error::NullDst`], [`Error::NullSrc`].
#[inline]
pub(super) fn check_addresses(dst: DeviceAddr, src: DeviceAddr) -> Result<(), Error> {
    if dst.is_null() {
        return Err(Error::NullDst);
    }
    if src.is_null() {
        return Err(Error::NullSrc);
    }
    Ok(())
}

/// # Errors
/// [`Error::AddressOverflow`] when the last byte of one lies past the end of the address space, `dst` first.
#[inline]
fn check_ranges(dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
    check_range(dst, len)?;
    check_range(src, len)
}

/// # Errors
/// [`Error::AddressOverflow`] when the last byte lies past the end of the address space.
#[inline]
pub(super) fn check_range(addr: DeviceAddr, len: u64) -> Result<(), Error> {
    let is_past_end = len.checked_sub(1).is_some_and(|last| addr.0.checked_add(last).is_none());
    if is_past_end { Err(Error::AddressOverflow { addr, len }) } else { Ok(()) }
}
