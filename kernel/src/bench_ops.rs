//! Measuring kernels: one entry point called many times in a loop as small as a caller's can be, and nothing at all.
//!
//! They are for `make bench`, which runs them on the image with exact instruction counts. The entry points are called
//! through pointers that the compiler can't see through, so that the count is the cost for a caller in C.

use core::ffi::c_void;
use core::hint::black_box;
use core::ptr::{without_provenance, without_provenance_mut};

use hcomm_aicpu::abi::{
    HcommBatchModeEnd, HcommBatchModeStart, HcommChannelNotifyRecordOnThread, HcommLocalCopyOnThread,
    HcommLocalReduceOnThread, HcommThreadNotifyRecordOnThread, HcommThreadNotifyWaitOnThread, HcommWriteOnThread,
};
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::code::{HCCL_E_NOT_SUPPORT, HCCL_SUCCESS};
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_aicpu::{Error, Thread};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::kernel;

/// What [`bench_ops`] calls. Open, as every number of parameters is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct BenchOp(pub u64);

impl BenchOp {
    /// A C function that does nothing: the cost of the loop and of a call.
    pub const NOTHING: Self = Self(0);
    /// `HcommLocalCopyOnThread` of `len` bytes.
    pub const COPY: Self = Self(1);
    /// The same through the safe interface, with a look-up of the handle for each copy.
    pub const COPY_SAFE: Self = Self(2);
    /// `HcommLocalReduceOnThread`: fp32 sum of `len / 4` elements.
    pub const REDUCE: Self = Self(3);
    /// `HcommThreadNotifyRecordOnThread` of notify 0 of `peer`.
    pub const NOTIFY_RECORD: Self = Self(4);
    /// The same, and then `HcommThreadNotifyWaitOnThread` for notify 0 of `thread`, which is `peer`: no wait without a record.
    pub const NOTIFY_RECORD_WAIT: Self = Self(5);
    /// `HcommWriteOnThread` of `len` bytes over the channel `peer`.
    pub const WRITE: Self = Self(6);
    /// `HcommChannelNotifyRecordOnThread` of notify 0 of the peer of the channel `peer`.
    pub const CHANNEL_RECORD: Self = Self(7);
}

/// Parameters of [`bench_ops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BenchOpsParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `ThreadHandle` of the thread whose queue takes the tasks.
    pub thread: u64,
    /// `ThreadHandle` of the thread whose notify is recorded, or `ChannelHandle`.
    pub peer: u64,
    /// What is called.
    pub op: BenchOp,
    /// First byte written.
    pub dst: DeviceAddr,
    /// First byte read.
    pub src: DeviceAddr,
    /// Bytes of a call.
    pub len: u64,
    /// Calls in all; whole batches of them.
    pub count: u64,
    /// Calls in a batch, 0 = no batch.
    pub batch: u64,
}
const _: () = assert!(size_of::<BenchOpsParams>() == 80);

impl KernelParams for BenchOpsParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"BNCH");
    const VERSION: u32 = 1;
}

kernel! {
    /// Calls `op` `count` times, in batches if `batch` says so, and returns the first code that is not 0; 5
    /// (`HCCL_E_NOT_SUPPORT`) for an unknown `op`.
    ///
    /// # Errors
    /// None: refusals are codes.
    pub fn bench_ops(params: &BenchOpsParams) -> Result<i32, Error> {
        let &BenchOpsParams { thread, peer, op, dst, src, len, .. } = params;
        let (to, from) = (without_provenance_mut::<c_void>(dst.0 as usize), without_provenance(src.0 as usize));
        let code = match op {
            BenchOp::NOTHING => {
                let call: Copy = black_box(nothing);
                repeat(params, || call(thread, to, from, len))
            }
            BenchOp::COPY => {
                let call: Copy = black_box(HcommLocalCopyOnThread);
                repeat(params, || call(thread, to, from, len))
            }
            BenchOp::COPY_SAFE => {
                // Looked up once and inlined, as in a kernel.
                let thread = Thread::from_handle(ThreadHandle(thread))?;
                repeat(params, || match thread.local_copy(dst, src, len) {
                    Ok(()) => HCCL_SUCCESS,
                    Err(error) => error.code(),
                })
            }
            BenchOp::REDUCE => {
                let call: Reduce = black_box(HcommLocalReduceOnThread);
                repeat(params, || call(thread, to, from, len / 4, DataType::FP32.0, ReduceOp::SUM.0))
            }
            BenchOp::NOTIFY_RECORD => {
                let record: Record = black_box(HcommThreadNotifyRecordOnThread);
                repeat(params, || record(thread, peer, 0))
            }
            BenchOp::NOTIFY_RECORD_WAIT => {
                let record: Record = black_box(HcommThreadNotifyRecordOnThread);
                let wait: Wait = black_box(HcommThreadNotifyWaitOnThread);
                repeat(params, || record(thread, peer, 0) | wait(thread, 0, 0))
            }
            BenchOp::WRITE => {
                let call: Write = black_box(HcommWriteOnThread);
                repeat(params, || call(thread, peer, to, from, len))
            }
            BenchOp::CHANNEL_RECORD => {
                let record: Record = black_box(HcommChannelNotifyRecordOnThread);
                repeat(params, || record(thread, peer, 0))
            }
            BenchOp(_) => HCCL_E_NOT_SUPPORT,
        };
        Ok(code)
    }
}

type Copy = extern "C" fn(u64, *mut c_void, *const c_void, u64) -> i32;
type Write = extern "C" fn(u64, u64, *mut c_void, *const c_void, u64) -> i32;
type Reduce = extern "C" fn(u64, *mut c_void, *const c_void, u64, i32, i32) -> i32;
type Record = extern "C" fn(u64, u64, u32) -> i32;
type Wait = extern "C" fn(u64, u32, u32) -> i32;

/// The measured loop.
#[inline(always)]
fn repeat(params: &BenchOpsParams, call: impl Fn() -> i32) -> i32 {
    let &BenchOpsParams { count, batch, .. } = params;
    let calls = |count| (0..count).map(|_| call()).find(|code| *code != HCCL_SUCCESS).unwrap_or(HCCL_SUCCESS);
    if batch == 0 {
        return calls(count);
    }
    let (start, end): (Mark, Mark) = (black_box(HcommBatchModeStart), black_box(HcommBatchModeEnd));
    for _ in 0..count / batch {
        let started = start(core::ptr::null());
        let called = calls(batch);
        let ended = end(core::ptr::null());
        if started | called | ended != HCCL_SUCCESS {
            return started | called | ended;
        }
    }
    HCCL_SUCCESS
}

type Mark = extern "C" fn(*const core::ffi::c_char) -> i32;

extern "C" fn nothing(_: u64, _: *mut c_void, _: *const c_void, _: u64) -> i32 {
    HCCL_SUCCESS
}

/// Parameters of [`empty`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EmptyParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
}

impl KernelParams for EmptyParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"NONE");
    const VERSION: u32 = 1;
}

kernel! {
    /// Does nothing: what a launch costs.
    ///
    /// # Errors
    /// None.
    pub fn empty(_params: &EmptyParams) -> Result<(), Error> {
        Ok(())
    }
}
