//! Functions of communicators. `include/hccl/hccl_comm.h` is generated from this file.

use std::ffi::{c_char, c_int};

use super::call::{Out, hccl, not_null};
use super::comm;
use super::comm_config::CommConfig;
use super::error::CallError;
use super::error_text;
use super::hccl_types::{COMM_NAME_MAX_LENGTH, HCCL_ROOT_INFO_BYTES, HcclComm, HcclCommConfig, HcclRootInfo};

type HcclResult = c_int;

// SAFETY of all functions below: as in `acl_rt`.

/// Makes the communicators of `ndev` ranks, rank n on device `devices[n]`, from one thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCommInitAll(ndev: u32, devices: *mut i32, comms: *mut HcclComm) -> HcclResult {
    hccl("HcclCommInitAll", || {
        not_null([(devices.cast(), "devices"), (comms.cast(), "comms")])?;
        // SAFETY: not null, so the caller owes `ndev` numbers.
        let index = |at: u32| unsafe { devices.add(at as usize).read_unaligned() };
        let handles = comm::init_all(ndev, (0..ndev).map(index))?;
        for (at, handle) in handles.into_iter().enumerate() {
            // SAFETY: not null, so the caller owes room for `ndev` handles.
            unsafe { comms.add(at).write_unaligned(std::ptr::without_provenance_mut(handle as usize)) };
        }
        Ok(())
    })
}

/// Writes a root info for HcclCommInitRootInfo, for the ranks of one communicator. Each of them uses it once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetRootInfo(root_info: *mut HcclRootInfo) -> HcclResult {
    hccl("HcclGetRootInfo", || {
        // SAFETY: see above.
        let out = unsafe { Out::new(root_info, "rootInfo") }?;
        let mut internal = [0; HCCL_ROOT_INFO_BYTES];
        for (to, from) in internal.iter_mut().zip(comm::root_info()?) {
            *to = from as c_char;
        }
        out.set(HcclRootInfo { internal });
        Ok(())
    })
}

/// Makes the communicator of rank `rank` on the calling thread's device. Waits until all `nRanks` ranks have called, at most for
/// the seconds of HCCL_CONNECT_TIMEOUT (120).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCommInitRootInfo(
    n_ranks: u32,
    root_info: *const HcclRootInfo,
    rank: u32,
    comm: *mut HcclComm,
) -> HcclResult {
    hccl("HcclCommInitRootInfo", || {
        not_null([(root_info.cast(), "rootInfo"), (comm.cast(), "comm")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(comm, "comm") }?;
        // SAFETY: not null, so the caller owes a root info, whose bytes may have any value.
        let head = unsafe { root_info.cast::<[u8; comm::ROOT_INFO_HEAD]>().read_unaligned() };
        let handle = comm::init_root(n_ranks, head, rank, &CommConfig::default(), "HcclCommInitRootInfo")?;
        out.set(std::ptr::without_provenance_mut(handle as usize));
        Ok(())
    })
}

/// As HcclCommInitRootInfo, with settings that HcclCommConfigInit has initialised: hcclBufferSize and hcclCommName; the others
/// are for hardware and make no difference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCommInitRootInfoConfig(
    n_ranks: u32,
    root_info: *const HcclRootInfo,
    rank: u32,
    config: *const HcclCommConfig,
    comm: *mut HcclComm,
) -> HcclResult {
    hccl("HcclCommInitRootInfoConfig", || {
        not_null([(root_info.cast(), "rootInfo"), (config.cast(), "config"), (comm.cast(), "comm")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(comm, "comm") }?;
        // SAFETY: not null, so the caller owes a root info, whose bytes may have any value.
        let head = unsafe { root_info.cast::<[u8; comm::ROOT_INFO_HEAD]>().read_unaligned() };
        // SAFETY: not null, so the caller owes a configuration; any bits are one.
        let config = CommConfig::read(&unsafe { config.read_unaligned() })?;
        let handle = comm::init_root(n_ranks, head, rank, &config, "HcclCommInitRootInfoConfig")?;
        out.set(std::ptr::without_provenance_mut(handle as usize));
        Ok(())
    })
}

/// Communicators are made by HcclCommInitRootInfo or HcclCommInitAll here: returns 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCommInitClusterInfo(
    cluster_info: *const c_char,
    rank: u32,
    comm: *mut HcclComm,
) -> HcclResult {
    let _ = rank;
    hccl("HcclCommInitClusterInfo", || {
        not_null([(cluster_info.cast(), "clusterInfo"), (comm.cast_const().cast(), "comm")])?;
        Err(no_cluster_info())
    })
}

/// As HcclCommInitClusterInfo, with settings: returns 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclCommInitClusterInfoConfig(
    cluster_info: *const c_char,
    rank: u32,
    config: *const HcclCommConfig,
    comm: *mut HcclComm,
) -> HcclResult {
    let _ = rank;
    hccl("HcclCommInitClusterInfoConfig", || {
        let pointers =
            [(cluster_info.cast(), "clusterInfo"), (config.cast(), "config"), (comm.cast_const().cast(), "comm")];
        not_null(pointers)?;
        Err(no_cluster_info())
    })
}

fn no_cluster_info() -> CallError {
    let text = "ranks by a rank table: make the communicators with HcclCommInitRootInfo or HcclCommInitAll";
    CallError::NotSupported(text.to_owned())
}

/// Name and meaning of a result, in English. Never null; valid until the process ends.
#[unsafe(no_mangle)]
pub extern "C" fn HcclGetErrorString(code: HcclResult) -> *const c_char {
    error_text::of(code).as_ptr()
}

/// Destroys a communicator, with its threads, its channels, its buffer and its contexts. Synchronise the streams that use them
/// first. The other ranks are not waited for.
#[unsafe(no_mangle)]
pub extern "C" fn HcclCommDestroy(comm: HcclComm) -> HcclResult {
    hccl("HcclCommDestroy", || {
        not_null([(comm, "comm")])?;
        comm::destroy(comm.addr() as u64)
    })
}

/// Writes the name of a communicator, at most COMM_NAME_MAX_LENGTH bytes with its zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetCommName(comm: HcclComm, comm_name: *mut c_char) -> HcclResult {
    hccl("HcclGetCommName", || {
        not_null([(comm, "comm"), (comm_name.cast(), "commName")])?;
        // SAFETY: see above; a name is shorter than that.
        let out = unsafe { Out::new(comm_name.cast::<[u8; COMM_NAME_MAX_LENGTH]>(), "commName") }?;
        let name = comm::name(comm.addr() as u64)?;
        let mut bytes = [0; COMM_NAME_MAX_LENGTH];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        out.set(bytes);
        Ok(())
    })
}

/// Rank of the communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetRankId(comm: HcclComm, rank: *mut u32) -> HcclResult {
    hccl("HcclGetRankId", || {
        not_null([(comm, "comm"), (rank.cast(), "rank")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(rank, "rank") }?;
        out.set(comm::rank(comm.addr() as u64)?.0);
        Ok(())
    })
}

/// Number of ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclGetRankSize(comm: HcclComm, rank_size: *mut u32) -> HcclResult {
    hccl("HcclGetRankSize", || {
        not_null([(comm, "comm"), (rank_size.cast(), "rankSize")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(rank_size, "rankSize") }?;
        out.set(comm::rank(comm.addr() as u64)?.1);
        Ok(())
    })
}
