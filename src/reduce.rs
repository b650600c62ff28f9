//! Local reduce: argument checks; the split into chunks is that of the copy.

use crate::copy::{MAX_CHUNK, check_addresses, check_range};
use crate::device::Core;
use crate::encode::Task;
use crate::error::Error;
use crate::port::{Launch, Platform, Port};
use crate::queue::submit;
use crate::short::{Short, submit_one};
use crate::spec::DeviceAddr;
use crate::spec::data_type::{DataType, ReduceOp, SdmaReduce};
use crate::spec::thread::ThreadHandle;
use crate::thread::Thread;
use crate::work::Work;

/// What is reduced: `count` elements of `data_type` by `op`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    pub(crate) count: u64,
    pub(crate) data_type: DataType,
    pub(crate) op: ReduceOp,
}

/// The short way, on the core that runs the caller: one task, and nothing that needs a closer look.
#[inline(always)]
pub(crate) fn short(handle: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, elements: Elements) -> Short {
    let Elements { count, data_type, op } = elements;
    let Some(SdmaReduce { opcode, size_log2 }) = SdmaReduce::new(op, data_type) else { return Short::NotTaken };
    // Also refuses 0, which wraps around; below it the length can't overflow.
    let is_long = count.wrapping_sub(1) >= MAX_CHUNK >> size_log2;
    let bits = dst.0 | src.0;
    let is_misaligned = bits >> size_log2 << size_log2 != bits;
    // Below 2^63 no range of one chunk overflows.
    if dst.is_null() || src.is_null() || is_long || is_misaligned || bits >> 63 != 0 {
        return Short::NotTaken;
    }
    let task = Task::Sdma { src, dst, len: (count << size_log2) as u32, opcode };
    let launch = Launch;
    let Some(core) = launch.core() else { return Short::NotTaken };
    submit_one(&Platform, core, handle, |_| Some(task))
}

/// Every check in its order, on the core that runs the caller. Answers as `HcommLocalReduceOnThread`.
#[cold]
#[inline(never)]
pub(crate) fn long(handle: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, elements: Elements) -> Result<(), Error> {
    check_addresses(dst, src)?;
    let launch = Launch;
    let (core, thread) = Thread::on_core(&launch, handle)?;
    local_reduce(&Platform, core, thread, dst, src, elements)
}

/// The reduce on a thread that was looked up, between addresses that are not null.
fn local_reduce<P: Port>(
    port: &P,
    core: &Core<'_>,
    thread: Thread,
    dst: DeviceAddr,
    src: DeviceAddr,
    elements: Elements,
) -> Result<(), Error> {
    let Elements { count, data_type, op } = elements;
    let reduce = SdmaReduce::new(op, data_type).ok_or(Error::ReduceNotSupported { op, data_type })?;
    let size = 1 << reduce.size_log2;
    let len = count.checked_mul(size).ok_or(Error::CountTooLarge { count, size })?;
    for addr in [dst, src] {
        if !addr.0.is_multiple_of(size) {
            return Err(Error::Misaligned { addr, size });
        }
        check_range(addr, len)?;
    }
    // A chunk is a multiple of every element's size: none is cut.
    submit(port, core, thread, &mut Work::sdma(core.device().soc(), dst, src, len, reduce.opcode))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::spec::stars950::Sdma;
    use crate::test_port::{STALE, TestPort};

    const DST: DeviceAddr = DeviceAddr(0x12c0_0010_0000);
    const SRC: DeviceAddr = DeviceAddr(0x12c0_8000_0000);

    fn reduce(port: &mut TestPort, dst: u64, count: u64, data_type: DataType, op: ReduceOp) -> Result<(), Error> {
        let device = port.device();
        let thread = port.thread(&device);
        local_reduce(port, &Core::new(&device), thread, DeviceAddr(dst), SRC, Elements { count, data_type, op })
    }

    #[test]
    fn chunks_keep_elements_whole() {
        let mut port = TestPort::new(8);
        let count = MAX_CHUNK / 4 + 1;
        reduce(&mut port, DST.0, count, DataType::FP32, ReduceOp::MAX).unwrap();
        let at = |addr: DeviceAddr, done| DeviceAddr(addr.0 + done);
        let chunk =
            |done, len| Sdma::new(at(SRC, done), at(DST, done), len).reduce(ReduceOp::MAX, DataType::FP32).unwrap();
        let expected = [chunk(0, MAX_CHUNK as u32).build(0), chunk(MAX_CHUNK, 4).build(1), STALE];
        assert_eq!(port.slots()[..3], expected);
    }

    #[test]
    fn refusals_in_their_order_leave_the_ring_alone() {
        let mut port = TestPort::new(4);
        let prod = Error::ReduceNotSupported { op: ReduceOp::PROD, data_type: DataType::FP32 };
        assert_eq!(reduce(&mut port, DST.0 + 1, u64::MAX, DataType::FP32, ReduceOp::PROD), Err(prod));
        assert_eq!((prod.code(), prod.to_string().as_str()), (5, "reduce prod over fp32 is not supported"));
        for odd in [-1, 5, 13, 17, 18, 255] {
            let error = reduce(&mut port, DST.0, 1, DataType(odd), ReduceOp::SUM).unwrap_err();
            assert_eq!(error.code(), 5, "type {odd}");
        }
        let too_large = Error::CountTooLarge { count: 1 << 62, size: 4 };
        assert_eq!(reduce(&mut port, DST.0 + 1, 1 << 62, DataType::INT32, ReduceOp::SUM), Err(too_large));
        let misaligned = Error::Misaligned { addr: DeviceAddr(DST.0 + 2), size: 4 };
        assert_eq!(reduce(&mut port, DST.0 + 2, 1, DataType::INT32, ReduceOp::SUM), Err(misaligned));
        let last = u64::MAX - 3;
        let overflow = Error::AddressOverflow { addr: DeviceAddr(last), len: 8 };
        assert_eq!(reduce(&mut port, last, 2, DataType::INT32, ReduceOp::SUM), Err(overflow));
        assert_eq!(reduce(&mut port, DST.0, 0, DataType::INT32, ReduceOp::SUM), Ok(()));
        assert_eq!(port.slots(), [STALE; 4]);
    }
}
