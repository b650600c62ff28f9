//! How ranks are linked. `include/hccl/hccl_rank_graph.h` is generated from this file.
//!
//! All ranks are in one layer, and each is linked with each.

use std::ffi::{c_int, c_void};
use std::mem::{MaybeUninit, offset_of};

use super::call::{Out, hccl, not_null};
use super::error::CallError;
use super::hccl_types::HcclComm;
use super::hcomm_res_defs::{CommAbiHeader, CommProtocol, EndpointDesc};
use super::{comm, links};

type HcclResult = c_int;
type CommTopo = c_int;
type EndpointAttr = c_int;

/// CommTopo: each with each.
const COMM_TOPO_1DMESH: CommTopo = 1;

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
    hccl("HcclRankGraphGetLinks", || {
        not_null([
            (comm.cast_const(), "comm"),
            (links.cast_const().cast(), "links"),
            (link_num.cast_const().cast(), "linkNum"),
        ])?;
        // SAFETY: see above.
        let (out, number) = unsafe { (Out::new(links, "links")?, Out::new(link_num, "linkNum")?) };
        out.set(links::link(comm.addr() as u64, net_layer, src_rank, dst_rank)?.cast());
        number.set(1);
        Ok(())
    })
}

/// Numbers of the layers: 0. The list belongs to the communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetLayers(
    comm: HcclComm,
    net_layers: *mut *mut u32,
    net_layer_num: *mut u32,
) -> HcclResult {
    hccl("HcclRankGraphGetLayers", || {
        not_null([
            (comm.cast_const(), "comm"),
            (net_layers.cast_const().cast(), "netLayers"),
            (net_layer_num.cast_const().cast(), "netLayerNum"),
        ])?;
        // SAFETY: see above.
        let (out, number) = unsafe { (Out::new(net_layers, "netLayers")?, Out::new(net_layer_num, "netLayerNum")?) };
        out.set(links::layers(comm.addr() as u64)?.cast());
        number.set(1);
        Ok(())
    })
}

/// Ranks of a layer. The list belongs to the communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetRanksByLayer(
    comm: HcclComm,
    net_layer: u32,
    ranks: *mut *mut u32,
    rank_num: *mut u32,
) -> HcclResult {
    hccl("HcclRankGraphGetRanksByLayer", || {
        not_null([
            (comm.cast_const(), "comm"),
            (ranks.cast_const().cast(), "ranks"),
            (rank_num.cast_const().cast(), "rankNum"),
        ])?;
        // SAFETY: see above.
        let (out, number) = unsafe { (Out::new(ranks, "ranks")?, Out::new(rank_num, "rankNum")?) };
        let (list, size) = links::ranks(comm.addr() as u64, net_layer)?;
        out.set(list.cast());
        number.set(size);
        Ok(())
    })
}

/// Number of ranks of a layer.
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
        out.set(links::ranks(comm.addr() as u64, net_layer)?.1);
        Ok(())
    })
}

/// How the ranks of a layer are linked: COMM_TOPO_1DMESH, each with each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetTopoTypeByLayer(
    comm: HcclComm,
    net_layer: u32,
    topo_type: *mut CommTopo,
) -> HcclResult {
    hccl("HcclRankGraphGetTopoTypeByLayer", || {
        not_null([(comm.cast_const(), "comm"), (topo_type.cast_const().cast(), "topoType")])?;
        // SAFETY: see above.
        let out = unsafe { Out::new(topo_type, "topoType") }?;
        links::ranks(comm.addr() as u64, net_layer)?;
        out.set(COMM_TOPO_1DMESH);
        Ok(())
    })
}

/// What functions answer that are not simulated.
fn not_simulated<const N: usize>(
    comm: HcclComm,
    pointers: [(*const c_void, &'static str); N],
    what: &str,
) -> Result<(), CallError> {
    not_null([(comm.cast_const(), "comm")])?;
    not_null(pointers)?;
    comm::check(comm.addr() as u64)?;
    Err(CallError::NotSupported(format!("{what}: there is one layer here, in which each rank is linked with each")))
}

/// Sizes of the instances of a layer: returns 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetInstSizeListByLayer(
    comm: HcclComm,
    net_layer: u32,
    inst_size_list: *mut *mut u32,
    list_size: *mut u32,
) -> HcclResult {
    let _ = net_layer;
    let pointers = [(inst_size_list.cast_const().cast(), "instSizeList"), (list_size.cast_const().cast(), "listSize")];
    hccl("HcclRankGraphGetInstSizeListByLayer", || not_simulated(comm, pointers, "instances of a layer"))
}

/// Instances of a layer: returns 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetTopoInstsByLayer(
    comm: HcclComm,
    net_layer: u32,
    topo_insts: *mut *mut u32,
    topo_inst_num: *mut u32,
) -> HcclResult {
    let _ = net_layer;
    let pointers = [(topo_insts.cast_const().cast(), "topoInsts"), (topo_inst_num.cast_const().cast(), "topoInstNum")];
    hccl("HcclRankGraphGetTopoInstsByLayer", || not_simulated(comm, pointers, "instances of a layer"))
}

/// How the ranks of an instance are linked: returns 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetTopoType(
    comm: HcclComm,
    net_layer: u32,
    topo_inst_id: u32,
    topo_type: *mut CommTopo,
) -> HcclResult {
    let _ = (net_layer, topo_inst_id);
    let pointers = [(topo_type.cast_const().cast(), "topoType")];
    hccl("HcclRankGraphGetTopoType", || not_simulated(comm, pointers, "instances of a layer"))
}

/// Ranks of an instance: returns 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetRanksByTopoInst(
    comm: HcclComm,
    net_layer: u32,
    topo_inst_id: u32,
    ranks: *mut *mut u32,
    rank_num: *mut u32,
) -> HcclResult {
    let _ = (net_layer, topo_inst_id);
    let pointers = [(ranks.cast_const().cast(), "ranks"), (rank_num.cast_const().cast(), "rankNum")];
    hccl("HcclRankGraphGetRanksByTopoInst", || not_simulated(comm, pointers, "instances of a layer"))
}

/// Number of endpoints of an instance: returns 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetEndpointNum(
    comm: HcclComm,
    net_layer: u32,
    topo_inst_id: u32,
    num: *mut u32,
) -> HcclResult {
    let _ = (net_layer, topo_inst_id);
    let pointers = [(num.cast_const().cast(), "num")];
    hccl("HcclRankGraphGetEndpointNum", || not_simulated(comm, pointers, "endpoints of an instance"))
}

/// Endpoints of an instance: returns 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetEndpointDesc(
    comm: HcclComm,
    net_layer: u32,
    topo_inst_id: u32,
    desc_num: *mut u32,
    endpoint_desc: *mut EndpointDesc,
) -> HcclResult {
    let _ = (net_layer, topo_inst_id);
    let pointers = [(desc_num.cast_const().cast(), "descNum"), (endpoint_desc.cast_const().cast(), "endpointDesc")];
    hccl("HcclRankGraphGetEndpointDesc", || not_simulated(comm, pointers, "endpoints of an instance"))
}

/// Attribute of an endpoint: returns 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRankGraphGetEndpointInfo(
    comm: HcclComm,
    rank_id: u32,
    endpoint_desc: *const EndpointDesc,
    endpoint_attr: EndpointAttr,
    info_len: u32,
    info: *mut c_void,
) -> HcclResult {
    let _ = (rank_id, endpoint_attr, info_len);
    let pointers = [(endpoint_desc.cast(), "endpointDesc"), (info.cast_const().cast(), "info")];
    hccl("HcclRankGraphGetEndpointInfo", || not_simulated(comm, pointers, "attributes of an endpoint"))
}
