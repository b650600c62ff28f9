//! How ranks are linked. `include/hccl/hccl_rank_graph.h` is generated from this file.
//!
//! A communicator has one rank here, in one layer, without links.

use std::ffi::c_int;
use std::mem::{MaybeUninit, offset_of};

use super::call::{Out, hccl, not_null};
use super::comm;
use super::error::{CallError, no_channels};
use super::hccl_types::HcclComm;
use super::hcomm_res_defs::{CommAbiHeader, CommProtocol, EndpointDesc};

type HcclResult = c_int;

/// What a link is.
#[repr(C)]
pub struct CommLinkAttr {
    pub linkProtocol: MaybeUninit<CommProtocol>,
    /// Number of links one after the other.
    pub hop: u8,
    pub reserved: [u8; 123],
}

/// A link between two ranks.
#[repr(C)]
pub struct CommLink {
    pub header: CommAbiHeader,
    pub srcEndpointDesc: EndpointDesc,
    pub dstEndpointDesc: EndpointDesc,
    pub linkAttr: CommLinkAttr,
}
const _: () = assert!(size_of::<CommLink>() == 464 && align_of::<CommLink>() == 4);
const _: () = assert!(offset_of!(CommLink, dstEndpointDesc) == 176 && offset_of!(CommLink, linkAttr) == 336);
const _: () = assert!(offset_of!(CommLinkAttr, hop) == 4);

// SAFETY of all functions below: as in `acl_rt`.

/// Links from rank `srcRank` to `dstRank` in a layer. They belong to the communicator; its next call overwrites them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetLinks(
    comm: HcclComm,
    net_layer: u32,
    src_rank: u32,
    dst_rank: u32,
    links: *mut *mut CommLink,
    link_num: *mut u32,
) -> HcclResult {
    let _ = net_layer;
    hccl("HcclRankGraphGetLinks", || {
        not_null([
            (comm.cast_const(), "comm"),
            (links.cast_const().cast(), "links"),
            (link_num.cast_const().cast(), "linkNum"),
        ])?;
        comm::check(comm.addr() as u64)?;
        if src_rank == dst_rank {
            let text = format!("srcRank and dstRank are both {src_rank}: must be different");
            return Err(CallError::Invalid(text));
        }
        Err(no_channels())
    })
}

/// Number of ranks of a layer: 1 in layer 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetRankSizeByLayer(
    comm: HcclComm,
    net_layer: u32,
    rank_num: *mut u32,
) -> HcclResult {
    hccl("HcclRankGraphGetRankSizeByLayer", || {
        not_null([(comm.cast_const(), "comm"), (rank_num.cast_const().cast(), "rankNum")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(rank_num, "rankNum") }?;
        comm::check(comm.addr() as u64)?;
        match net_layer {
            0 => {
                out.set(1);
                Ok(())
            }
            _ => {
                let must = "must be 0: there is one layer";
                Err(CallError::OutOfRange { what: "netLayer", value: net_layer.into(), must })
            }
        }
    })
}
