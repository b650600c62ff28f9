//! Local copy: argument checks and the split into chunks.

use crate::device::Core;
use crate::encode::Task;
use crate::error::Error;
use crate::port::{Launch, Platform, Port};
use crate::queue::submit;
use crate::short::{Short, submit_one, submit_some};
use crate::spec::thread::ThreadHandle;
use crate::spec::{DeviceAddr, Sqe};
use crate::thread::Thread;
use crate::work::{Tasks, Work};

/// Most bytes of one task: 4 GiB - 2 MiB. The 32-bit length can't wrap, and every chunk keeps the alignment of the first.
pub const MAX_CHUNK: u64 = (4 << 30) - (2 << 20);

/// The short way, on the core that runs the caller: one task, and nothing that needs a closer look.
#[inline(always)]
pub(crate) fn short(handle: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Short {
    if !is_one_task(dst, src, len) {
        return Short::NotTaken;
    }
    let task = Task::Sdma { src, dst, len: len as u32, opcode: 0 };
    let launch = Launch;
    let Some(core) = launch.core() else { return Short::NotTaken };
    submit_one(&Platform, core, handle, |_| Some(task))
}

/// Whether the copy is good and one task, as far as few instructions tell.
#[inline(always)]
fn is_one_task(dst: DeviceAddr, src: DeviceAddr, len: u64) -> bool {
    // The subtraction takes a length of 0 to the others that are out of range. Below 2^63 no range of one chunk overflows.
    let is_long = len.wrapping_sub(1) >= MAX_CHUNK;
    !(dst.is_null() || src.is_null() || is_long || (dst.0 | src.0) >> 63 != 0)
}

/// Longest copy that goes the short way in several chunks.
const MAX_SHORT: u64 = 1 << 40;

/// The short way for several chunks.
#[inline]
fn short_chunks(handle: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Short {
    // Below 2^63 no range so short overflows.
    if dst.is_null() || src.is_null() || len <= MAX_CHUNK || len > MAX_SHORT || (dst.0 | src.0) >> 63 != 0 {
        return Short::NotTaken;
    }
    let launch = Launch;
    let Some(core) = launch.core() else { return Short::NotTaken };
    submit_some(&Platform, core, handle, Chunks::new(dst, src, len))
}

/// What [`short`] does not take, on the core that runs the caller. Answers as `HcommLocalCopyOnThread`.
#[cold]
#[inline(never)]
pub(crate) fn long(handle: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
    short_chunks(handle, dst, src, len).or_else(handle, || checked(handle, dst, src, len))
}

/// Every check in its order.
#[inline(never)]
fn checked(handle: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
    check_addresses(dst, src)?;
    let launch = Launch;
    let (core, thread) = Thread::on_core(&launch, handle)?;
    local_copy(&Platform, core, thread, dst, src, len)
}

/// # Errors
/// [`Error::NullDst`], [`Error::NullSrc`].
pub(crate) fn check_addresses(dst: DeviceAddr, src: DeviceAddr) -> Result<(), Error> {
    if dst.is_null() {
        return Err(Error::NullDst);
    }
    if src.is_null() {
        return Err(Error::NullSrc);
    }
    Ok(())
}

/// The copy on a thread that was looked up, between addresses that are not null.
pub(crate) fn local_copy<P: Port>(
    port: &P,
    core: &Core<'_>,
    thread: Thread,
    dst: DeviceAddr,
    src: DeviceAddr,
    len: u64,
) -> Result<(), Error> {
    check_range(dst, len)?;
    check_range(src, len)?;
    submit(port, core, thread, &mut Work::sdma(core.device().soc(), dst, src, len, 0))
}

/// # Errors
/// [`Error::AddressOverflow`] when the last byte lies past the end of the address space.
#[inline]
pub(crate) fn check_range(addr: DeviceAddr, len: u64) -> Result<(), Error> {
    let is_past_end = len.checked_sub(1).is_some_and(|last| addr.0.checked_add(last).is_none());
    if is_past_end { Err(Error::AddressOverflow { addr, len }) } else { Ok(()) }
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

    /// The next chunk; an empty one if there is none.
    #[inline]
    pub(crate) fn take_next(&mut self) -> Chunk {
        let len = (self.len - self.done).min(MAX_CHUNK) as u32;
        let at = |start: DeviceAddr| DeviceAddr(start.0.wrapping_add(self.done));
        let chunk = Chunk { dst: at(self.dst), src: at(self.src), len };
        self.done += u64::from(len);
        chunk
    }
}

/// As copies of an Ascend950, which alone has a short way.
impl Tasks for Chunks {
    #[inline]
    fn remaining(&self) -> u64 {
        (self.len - self.done).div_ceil(MAX_CHUNK)
    }

    #[inline(always)]
    fn next(&mut self, stamp: u64) -> Sqe {
        let Chunk { dst, src, len } = self.take_next();
        let mut sqe = Task::Sdma { src, dst, len, opcode: 0 }.for_950(0);
        sqe.0[0] |= stamp;
        sqe
    }

    fn queued_len(&self) -> u64 {
        self.done
    }
}

impl Iterator for Chunks {
    type Item = Chunk;

    #[inline]
    fn next(&mut self) -> Option<Chunk> {
        if self.done == self.len { None } else { Some(self.take_next()) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::spec::queue::QueueStatus;
    use crate::spec::stars950::Sdma;
    use crate::test_port::{STALE, TestPort};

    const DST: DeviceAddr = DeviceAddr(0x12c0_0010_0001);
    const SRC: DeviceAddr = DeviceAddr(0x12c0_8000_0003);

    fn copy(port: &mut TestPort, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
        let device = port.device();
        let thread = port.thread(&device);
        local_copy(port, &Core::new(&device), thread, dst, src, len)
    }

    #[test]
    fn case_1_chunks_cover_every_byte_once_in_order() {
        let lens =
            [1, MAX_CHUNK - 1, MAX_CHUNK, MAX_CHUNK + 1, 2 * MAX_CHUNK, 2 * MAX_CHUNK + 1, 1 << 32, (1 << 32) + 1];
        for len in lens.into_iter().chain([16 << 30]) {
            let mut port = TestPort::new(16);
            copy(&mut port, DST, SRC, len).unwrap();
            let count = len.div_ceil(MAX_CHUNK) as usize;
            let mut done = 0;
            for (task_id, sqe) in port.slots()[..count].iter().enumerate() {
                let chunk = (len - done).min(MAX_CHUNK);
                let expected = Sdma::new(DeviceAddr(SRC.0 + done), DeviceAddr(DST.0 + done), chunk as u32);
                assert_eq!(*sqe, expected.build(task_id as u32), "{len} bytes, chunk {task_id}");
                assert!(chunk > 0 && chunk < 1 << 32);
                done += chunk;
            }
            assert_eq!(done, len);
            assert_eq!(port.slots()[count..], vec![STALE; 16 - count]);
        }
    }

    #[test]
    fn nothing_is_queued_for_nothing() {
        let mut port = TestPort::new(4);
        port.status.set(QueueStatus::SUSPENDED);
        assert_eq!(copy(&mut port, DST, SRC, 0), Ok(()));
        assert_eq!((port.take_calls(), port.slots()), (vec![], vec![STALE; 4]));
    }

    #[test]
    fn range_may_end_at_the_end_of_the_address_space_but_not_past_it() {
        let last = DeviceAddr(u64::MAX);
        for (dst, src, len, bad) in [
            (last, SRC, 1, None),
            (SRC, last, 1, None),
            (last, SRC, 2, Some(last)),
            (SRC, last, 2, Some(last)),
            (DST, SRC, u64::MAX, Some(DST)),
            (DeviceAddr(2), DeviceAddr(1), u64::MAX, Some(DeviceAddr(2))),
            (DeviceAddr(1), DeviceAddr(2), u64::MAX, Some(DeviceAddr(2))),
        ] {
            let mut port = TestPort::new(4);
            let expected = bad.map_or(Ok(()), |addr| Err(Error::AddressOverflow { addr, len }));
            assert_eq!(copy(&mut port, dst, src, len), expected, "{dst} {src} {len}");
            assert_eq!(port.slots()[0] == STALE, bad.is_some());
        }
    }

    #[test]
    fn case_46_what_is_not_one_good_task_goes_the_long_way() {
        let (null, high) = (DeviceAddr(0), DeviceAddr(1 << 63));
        assert!(is_one_task(DST, SRC, 1) && is_one_task(DST, SRC, MAX_CHUNK));
        for (dst, src, len) in [(null, SRC, 1), (DST, null, 1), (high, SRC, 1), (DST, high, 1)] {
            assert!(!is_one_task(dst, src, len), "{dst} {src} {len}");
        }
        for len in [0, MAX_CHUNK + 1, 1 << 32, u64::MAX] {
            assert!(!is_one_task(DST, SRC, len), "{len}");
        }
    }

    #[test]
    fn case_3_longest_copy_flows_through_a_ring_and_a_dead_device_ends_it() {
        let mut port = TestPort::new(4);
        port.expect_delays(&[1000]);
        let device = port.device();
        let thread = port.thread(&device);
        let core = Core::new(&device);
        core.set_sq_full_timeout_us(1);
        let one = DeviceAddr(1);
        let Err(Error::QueueFull(full)) = local_copy(&port, &core, thread, one, one, u64::MAX) else { panic!("full") };
        assert_eq!(full.queued_len, 3 * MAX_CHUNK);
    }

    #[test]
    fn case_46_null_addresses_are_refused_dst_first() {
        let null = DeviceAddr(0);
        assert_eq!(check_addresses(null, null), Err(Error::NullDst));
        assert_eq!(check_addresses(null, SRC), Err(Error::NullDst));
        assert_eq!(check_addresses(DST, null), Err(Error::NullSrc));
        assert_eq!(check_addresses(DST, SRC), Ok(()));
    }
}
