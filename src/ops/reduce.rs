//! Local reduce: the split into chunks is that of the copy.

use super::copy::{check_addresses, check_range};
use super::{Operation, outlined};
use crate::context::Core;
use crate::error::Error;
use crate::handle::{Slot, ThreadTable};
use crate::spec::DeviceAddr;
use crate::spec::data_type::{DataType, ReduceOp, SdmaReduce};
use crate::spec::record::EntryPoint;
use crate::spec::thread::ThreadHandle;
use crate::sq::Fast;
use crate::task::{MAX_CHUNK, Request, Task};

/// `dst[i] = op(dst[i], src[i])` for `count` elements of `data_type`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduce {
    pub(crate) dst: DeviceAddr,
    pub(crate) src: DeviceAddr,
    pub(crate) count: u64,
    pub(crate) data_type: DataType,
    pub(crate) op: ReduceOp,
}

outlined!(local_reduce(dst: DeviceAddr, src: DeviceAddr, count: u64, data_type: DataType, op: ReduceOp)
    => Reduce { dst, src, count, data_type, op });

impl Operation for Reduce {
    const ENTRY: EntryPoint = EntryPoint::LOCAL_REDUCE;

    #[inline(always)]
    fn task(self, _table: &ThreadTable, _slot: Option<Slot>) -> Option<Task> {
        let Self { dst, src, count, data_type, op } = self;
        let SdmaReduce { opcode, size_log2 } = SdmaReduce::new(op, data_type)?;
        // Also refuses 0, which wraps around; below it the length can't overflow.
        let is_long = count.wrapping_sub(1) >= MAX_CHUNK >> size_log2;
        let bits = dst.0 | src.0;
        let is_misaligned = bits >> size_log2 << size_log2 != bits;
        // Below 2^63 no range of one chunk overflows.
        if dst.is_null() || src.is_null() || is_long || is_misaligned || bits >> 63 != 0 {
            return None;
        }
        Some(Task::Sdma { src, dst, len: (count << size_log2) as u32, opcode })
    }

    fn nulls(self) -> Result<(), Error> {
        check_addresses(self.dst, self.src)
    }

    fn request(self, _core: &Core<'_>, _handle: ThreadHandle, request: &mut Request) -> Result<(), Error> {
        let Transfer { len, opcode } = check_elements(self)?;
        // A chunk is a multiple of every element's size: none is cut.
        *request = Request::transfer(self.dst, self.src, len, opcode);
        Ok(())
    }
}

/// What a reduce is to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes.
    pub len: u64,
    /// Opcode byte of the descriptor.
    pub opcode: u8,
}

/// Checks the arguments of a reduce of `count` elements, thread apart.
///
/// # Errors
/// In this order: [`Error::NullDst`], [`Error::NullSrc`] (also for `count` 0), [`Error::ReduceNotSupported`],
/// [`Error::CountTooLarge`], [`Error::Misaligned`] and [`Error::AddressOverflow`] of `dst`, then of `src`.
pub fn validate(
    dst: DeviceAddr,
    src: DeviceAddr,
    count: u64,
    data_type: DataType,
    op: ReduceOp,
) -> Result<Transfer, Error> {
    check_addresses(dst, src)?;
    check_elements(Reduce { dst, src, count, data_type, op })
}

fn check_elements(Reduce { dst, src, count, data_type, op }: Reduce) -> Result<Transfer, Error> {
    let SdmaReduce { opcode, size_log2 } =
        SdmaReduce::new(op, data_type).ok_or(Error::ReduceNotSupported { op, data_type })?;
    let size = 1 << size_log2;
    let len = count.checked_mul(size).ok_or(Error::CountTooLarge { count, size })?;
    for addr in [dst, src] {
        if !addr.0.is_multiple_of(size) {
            return Err(Error::Misaligned { addr, size });
        }
        check_range(addr, len)?;
    }
    Ok(Transfer { len, opcode })
}
