//! Reduce of many slices into one, on several threads.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::{Error, Thread};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Control, kernel, kernel_log, queued};

/// Most threads of [`local_reduce`].
pub const LOCAL_REDUCE_THREADS: usize = 8;
/// Notifies of each of its threads: one for the start, one for each level of the tree. The next index is free for the start
/// notify of the control pair.
pub const LOCAL_REDUCE_NOTIFIES: u32 = 1 + LOCAL_REDUCE_THREADS.ilog2();

/// Parameters of [`local_reduce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LocalReduceParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `ThreadHandle`s of `thread_count` threads, with [`LOCAL_REDUCE_NOTIFIES`] notifies each.
    pub threads: [u64; LOCAL_REDUCE_THREADS],
    /// Threads, at least 1. More threads than slices have nothing to do.
    pub thread_count: u64,
    /// First slice. The others follow, `count` elements each.
    pub src: DeviceAddr,
    /// Slices.
    pub slice_count: u64,
    /// `count` elements: the result.
    pub dst: DeviceAddr,
    /// Partial results: `count` elements for each thread but the first.
    pub scratch: DeviceAddr,
    /// Elements of a slice.
    pub count: u64,
    /// Element type (`HcommDataType`).
    pub data_type: i32,
    /// Operator (`HcommReduceOp`).
    pub op: i32,
    /// Control pair of the launch; on the first thread.
    pub control: Control,
}
const _: () = assert!(size_of::<LocalReduceParams>() == 152);

impl KernelParams for LocalReduceParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"LRED");
    const VERSION: u32 = 1;
}

kernel! {
    /// Reduces `slice_count` slices into `dst`; the slices are not changed. With 0 slices nothing is written.
    ///
    /// Thread *t* of *k* reduces the slices *t*, *t + k*, … into a partial result of its own, the first thread's being `dst`.
    /// Then a tree joins them: on level *l* thread *t + 2^l* records that its part is complete, and thread *t*, a multiple of
    /// 2^(l+1), waits for that and adds it to its own.
    ///
    /// # Errors
    /// [`Error::NullThread`] for no threads, [`Error::TooLarge`] for more than [`LOCAL_REDUCE_THREADS`], and those of the calls.
    pub fn local_reduce(params: &LocalReduceParams) -> Result<(), Error> {
        let (given, limit) = (params.thread_count, LOCAL_REDUCE_THREADS as u64);
        if given > limit {
            return Err(Error::TooLarge { len: given, limit });
        }
        let first = queued::thread(if given == 0 { 0 } else { params.threads[0] })?;
        let mut threads = [first; LOCAL_REDUCE_THREADS];
        let used = given.min(params.slice_count).max(1) as usize;
        for (thread, handle) in threads.iter_mut().zip(params.threads).take(used).skip(1) {
            *thread = queued::thread(handle)?;
        }
        params.control.in_step(&first, || reduce_tree(params, &threads[..used]))
    }
}

/// Notify of every thread but the first: it may start.
const GO: u32 = 0;

fn reduce_tree(params: &LocalReduceParams, threads: &[Thread]) -> Result<(), Error> {
    let (data_type, op, count) = (DataType(params.data_type), ReduceOp(params.op), params.count);
    let not_supported = Error::ReduceNotSupported { op, data_type };
    let size = data_type.size().ok_or(not_supported)?;
    let len = count.checked_mul(size).ok_or(Error::CountTooLarge { count, size })?;
    // An address past the end of the space is refused by the call that it is handed to.
    let at = |addr: DeviceAddr, index: u64| DeviceAddr(addr.0.wrapping_add(index.wrapping_mul(len)));
    let part = |index: usize| if index == 0 { params.dst } else { at(params.scratch, index as u64 - 1) };

    kernel_log!(debug, "reduce: {} slices of {} bytes on {} threads", params.slice_count, len, threads.len());
    for thread in &threads[1..] {
        queued::record(&threads[0], thread.peer(), GO)?;
        queued::wait(thread, GO)?;
    }
    for (index, thread) in threads.iter().enumerate() {
        let mut slices = (index as u64..params.slice_count).step_by(threads.len());
        if let Some(first) = slices.next() {
            queued::copy(thread, part(index), at(params.src, first), len)?;
        }
        for slice in slices {
            queued::reduce(thread, part(index), at(params.src, slice), count, data_type, op)?;
        }
    }
    let levels = threads.len().next_power_of_two().ilog2();
    for level in 0..levels {
        let distance = 1 << level;
        for to in (0..threads.len()).step_by(2 * distance).filter(|to| to + distance < threads.len()) {
            let from = to + distance;
            queued::record(&threads[from], threads[to].peer(), 1 + level)?;
            queued::wait(&threads[to], 1 + level)?;
            queued::reduce(&threads[to], part(to), part(from), count, data_type, op)?;
        }
    }
    Ok(())
}
