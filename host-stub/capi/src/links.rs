//! The links between the ranks of a communicator, in the memory that functions of the rank graph give.
#![forbid(unsafe_code)]

use std::ffi::c_void;
use std::sync::PoisonError;

use super::error::CallError;
use super::host_block::HostBlock;
use super::objects::CommEntry;
use super::ranks::Place;
use super::{comm, ranks, support};
use hcomm_aicpu::spec::channel::Protocol;
use hcomm_sim::fabric::eid_of;
use host_stub::channel::MAX_RANKS;

/// The one layer. Also the list of layers: it stands at the begin of the block.
const LAYER: u32 = 0;
/// Offset of the list of ranks.
const RANKS_AT: usize = 64;
/// Offset of the link.
const LINK_AT: usize = RANKS_AT + 4 * MAX_RANKS;

/// Bytes of a `CommLink`.
const LINK_LEN: usize = 464;
/// `CommLink.header`, as `CommLinkInit` sets it.
const LINK_HEADER: [u32; 4] = [1, 0x0f0e_0f0f, LINK_LEN as u32, 0];
/// Offset of `CommLink.srcEndpointDesc`.
const SOURCE_AT: usize = 16;
/// Offset of `CommLink.dstEndpointDesc`.
const DESTINATION_AT: usize = SOURCE_AT + ENDPOINT_LEN;
/// Offset of `CommLink.linkAttr`: its protocol, then the number of hops.
const ATTRIBUTES_AT: usize = DESTINATION_AT + ENDPOINT_LEN;

/// Bytes of an `EndpointDesc`.
const ENDPOINT_LEN: usize = 160;
/// Offset of its `commAddr`: a type, then the address.
const ADDRESS_AT: usize = 4;
/// Offset of its `loc`: a type, then the number of the device.
const LOCATION_AT: usize = 44;
/// `COMM_ADDR_TYPE_ID`.
const ADDRESS_IS_ID: u32 = 2;
/// `COMM_ADDR_TYPE_EID`.
const ADDRESS_IS_EID: u32 = 3;

/// Calls `use_it` with the block of a communicator.
fn with_block<T>(entry: &CommEntry, use_it: impl FnOnce(&HostBlock) -> T) -> Result<T, CallError> {
    let mut block = entry.graph.lock().unwrap_or_else(PoisonError::into_inner);
    let block = match &mut *block {
        Some(block) => block,
        none => {
            let block = none.insert(HostBlock::new(LINK_AT + LINK_LEN)?);
            (0..MAX_RANKS).for_each(|rank| block.write(RANKS_AT + 4 * rank, &(rank as u32).to_ne_bytes()));
            block
        }
    };
    Ok(use_it(block))
}

fn check_layer(layer: u32) -> Result<(), CallError> {
    match layer {
        LAYER => Ok(()),
        _ => {
            let must = "must be 0: there is one layer";
            Err(CallError::OutOfRange { what: "netLayer", value: layer.into(), must })
        }
    }
}

/// The list of layers, which has one.
///
/// # Errors
/// Unknown communicator; no memory.
pub fn layers(handle: u64) -> Result<*mut c_void, CallError> {
    with_block(&*comm::get(handle)?, HostBlock::ptr)
}

/// The list of the ranks of a layer, and how many there are.
///
/// # Errors
/// Unknown communicator, no such layer; no memory.
pub fn ranks(handle: u64, layer: u32) -> Result<(*mut c_void, u32), CallError> {
    let entry = comm::get(handle)?;
    check_layer(layer)?;
    let size = entry.seat.map_or(1, |seat| seat.size);
    Ok((with_block(&entry, |block| block.ptr().wrapping_byte_add(RANKS_AT))?, size))
}

/// The link between two ranks. The next call overwrites it.
///
/// # Errors
/// Unknown communicator, one rank twice, no such layer, a rank that is none; no memory.
pub fn link(handle: u64, layer: u32, source: u32, destination: u32) -> Result<*mut c_void, CallError> {
    let entry = comm::get(handle)?;
    if source == destination {
        return Err(CallError::Invalid(format!("srcRank and dstRank are both {source}: must be different")));
    }
    check_layer(layer)?;
    let alone = || CallError::Invalid("the communicator has one rank, and no link".to_owned());
    let seat = entry.seat.filter(|seat| seat.size > 1).ok_or_else(alone)?;
    let (source, destination) = (ranks::place_of(seat, source)?, ranks::place_of(seat, destination)?);
    let protocol = support::link_protocol(entry.device.options().product);
    with_block(&entry, |block| {
        let write = |at: usize, bytes: &[u8]| block.write(LINK_AT + at, bytes);
        write(0, LINK_HEADER.map(u32::to_ne_bytes).as_flattened());
        write(SOURCE_AT, &endpoint(protocol, source));
        write(DESTINATION_AT, &endpoint(protocol, destination));
        write(ATTRIBUTES_AT, &protocol.0.to_ne_bytes());
        write(ATTRIBUTES_AT + 4, &[1]);
        block.ptr().wrapping_byte_add(LINK_AT)
    })
}

/// The end of a link at a device.
fn endpoint(protocol: Protocol, place: Place) -> [u8; ENDPOINT_LEN] {
    let mut bytes = [0; ENDPOINT_LEN];
    let mut write = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    write(0, &protocol.0.to_ne_bytes());
    if protocol == Protocol::UB_CTP {
        write(ADDRESS_AT, &ADDRESS_IS_EID.to_ne_bytes());
        write(ADDRESS_AT + 4, &eid_of(place.slot));
    } else {
        write(ADDRESS_AT, &ADDRESS_IS_ID.to_ne_bytes());
        write(ADDRESS_AT + 4, &place.index.to_ne_bytes());
    }
    // On a device; the server, the super pod and the place in it are 0.
    write(LOCATION_AT + 4, &place.index.to_ne_bytes());
    bytes
}
