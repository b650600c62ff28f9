//! Channels of a communicator. `include/hccl/hccl_channel.h` is generated from this file.
//!
//! A communicator has one rank here, so it has no peer for a channel.

use std::ffi::{c_char, c_int, c_void};
use std::mem::{MaybeUninit, offset_of};

use super::call::{hccl, not_null};
use super::comm;
use super::error::{CallError, no_channels};
use super::hccl_res::HcclMemHandle;
use super::hccl_types::HcclComm;
use super::hcomm_res_defs::{ChannelHandle, CommAbiHeader, CommMem, CommProtocol, EndpointDesc};

type HcclResult = c_int;
type CommEngine = c_int;

/// What a channel of protocol RoCE is made with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct HcclChannelRoceAttr {
    pub queueNum: u32,
    pub retryCnt: u32,
    pub retryInterval: u32,
    pub tc: u8,
    pub sl: u8,
}

/// What a channel of protocol UB_MEM is made with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct HcclChannelUbMemAttr {
    pub pathMode: u8,
}

/// What a channel is made with, as its protocol says.
#[derive(Clone, Copy)]
#[repr(C)]
pub union HcclChannelAttr {
    pub roceAttr: HcclChannelRoceAttr,
    pub ubMemAttr: HcclChannelUbMemAttr,
    pub raws: [u8; 128],
}

/// What a channel is made from; HcclChannelDescInit sets it to "not set".
#[repr(C)]
pub struct HcclChannelDesc {
    pub header: CommAbiHeader,
    pub remoteRank: u32,
    pub channelProtocol: MaybeUninit<CommProtocol>,
    pub localEndpoint: EndpointDesc,
    pub remoteEndpoint: EndpointDesc,
    /// Notifies of each side, at most 64.
    pub notifyNum: u32,
    pub memHandles: *mut HcclMemHandle,
    pub memHandleNum: u32,
    pub attr: HcclChannelAttr,
}
const _: () = assert!(size_of::<HcclChannelDesc>() == 496 && align_of::<HcclChannelDesc>() == 8);
const _: () =
    assert!(offset_of!(HcclChannelDesc, localEndpoint) == 24 && offset_of!(HcclChannelDesc, notifyNum) == 344);
const _: () = assert!(offset_of!(HcclChannelDesc, memHandles) == 352 && offset_of!(HcclChannelDesc, attr) == 364);

// SAFETY of all functions below: as in `acl_rt`.

/// Checks of a call that takes descriptions. Without one there is nothing to do.
fn described(
    comm: HcclComm,
    channel_descs: *const HcclChannelDesc,
    channel_num: u32,
    channels: *const ChannelHandle,
) -> Result<(), CallError> {
    not_null([(comm.cast_const(), "comm")])?;
    comm::check(comm.addr() as u64)?;
    if channel_num == 0 {
        return Ok(());
    }
    not_null([(channel_descs.cast(), "channelDescs"), (channels.cast(), "channels")])?;
    Err(no_channels())
}

/// Makes a channel for each of `channelNum` descriptions, or finds it if it exists. 0 channels are none: the result is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclChannelAcquire(
    comm: HcclComm,
    engine: CommEngine,
    channel_descs: *const HcclChannelDesc,
    channel_num: u32,
    channels: *mut ChannelHandle,
) -> HcclResult {
    let _ = engine;
    hccl("HcclChannelAcquire", || described(comm, channel_descs, channel_num, channels))
}

/// Finds the channel of each of `channelNum` descriptions; 0 for one that was not made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclChannelQuery(
    comm: HcclComm,
    engine: CommEngine,
    channel_descs: *const HcclChannelDesc,
    channel_num: u32,
    channels: *mut ChannelHandle,
) -> HcclResult {
    let _ = engine;
    hccl("HcclChannelQuery", || described(comm, channel_descs, channel_num, channels))
}

/// Frees channels. Those of AICPU engines end with their communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclChannelDestroy(
    comm: HcclComm,
    channels: *const ChannelHandle,
    channel_num: u32,
) -> HcclResult {
    let _ = channel_num;
    hccl("HcclChannelDestroy", || {
        not_null([(comm.cast_const(), "comm"), (channels.cast(), "channels")])?;
        comm::check(comm.addr() as u64)?;
        Err(no_channels())
    })
}

/// Address and size of the peer's buffer behind a channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclChannelGetHcclBuffer(
    comm: HcclComm,
    channel: ChannelHandle,
    buffer: *mut *mut c_void,
    size: *mut u64,
) -> HcclResult {
    let _ = channel;
    hccl("HcclChannelGetHcclBuffer", || {
        not_null([
            (comm.cast_const(), "comm"),
            (buffer.cast_const().cast(), "buffer"),
            (size.cast_const().cast(), "size"),
        ])?;
        comm::check(comm.addr() as u64)?;
        Err(no_channels())
    })
}

/// All memory of the peer behind a channel, with its tags.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclChannelGetRemoteMems(
    comm: HcclComm,
    channel: ChannelHandle,
    mem_num: *mut u32,
    remote_mems: *mut *mut CommMem,
    mem_tags: *mut *mut *mut c_char,
) -> HcclResult {
    let _ = channel;
    hccl("HcclChannelGetRemoteMems", || {
        not_null([
            (comm.cast_const(), "comm"),
            (mem_num.cast_const().cast(), "memNum"),
            (remote_mems.cast_const().cast(), "remoteMems"),
            (mem_tags.cast_const().cast(), "memTags"),
        ])?;
        comm::check(comm.addr() as u64)?;
        Err(no_channels())
    })
}
