//! Resources of a communicator that the vendor marks as experimental. `include/hccl/hccl_res_expt.h` is generated from this
//! file.

use std::ffi::c_int;

use super::call::{hccl, not_null};
use super::comm;
use super::hccl_types::HcclComm;
use super::hcomm_res_defs::ThreadHandle;

type HcclResult = c_int;
type CommEngine = c_int;

// SAFETY of all functions below: as in `acl_rt`.

/// Writes the handles of `threadNum` threads of a communicator (1 to 40) for the other side: `dstCommEngine` is CPU(_TS) for
/// threads of kernels, AICPU(_TS) for those of the host. `exportedThreads` may be `threads`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclThreadExportToCommEngine(
    comm: HcclComm,
    thread_num: u32,
    threads: *const ThreadHandle,
    dst_comm_engine: CommEngine,
    exported_threads: *mut ThreadHandle,
) -> HcclResult {
    hccl("HcclThreadExportToCommEngine", || {
        not_null([(comm, "comm"), (threads.cast(), "threads"), (exported_threads.cast(), "exportedThreads")])?;
        comm::check_export(thread_num)?;
        // SAFETY: not null, and the caller owes `threadNum` handles.
        let handles = (0..thread_num as usize).map(|index| unsafe { threads.add(index).read_unaligned() });
        let handles: Vec<ThreadHandle> = handles.collect();
        let exported = comm::export(comm.addr() as u64, &handles, dst_comm_engine)?;
        for (index, thread) in exported.iter().enumerate() {
            // SAFETY: not null, and the caller owes room for `threadNum` handles.
            unsafe { exported_threads.add(index).write_unaligned(thread.0) };
        }
        Ok(())
    })
}
