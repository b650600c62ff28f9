//! Channels of a communicator. `include/hccl/hccl_channel.h` is generated from this file.

use std::ffi::{c_char, c_int, c_void};
use std::mem::{MaybeUninit, offset_of};

use super::call::{Out, hccl, not_null};
use super::channel_desc::{Endpoint, HEADER_LEN, Read, check_all};
use super::channels::Wanted;
use super::error::CallError;
use super::hccl_res::HcclMemHandle;
use super::hccl_types::HcclComm;
use super::hcomm_res_defs::{ChannelHandle, CommAbiHeader, CommMem, CommProtocol, EndpointDesc};
use super::{channels, comm};

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

/// Most channels of one call.
const CHANNELS_MAX: u32 = 1 << 20;

/// Reads a description.
///
/// # Errors
/// A header that is not that of HcclChannelDescInit.
///
/// # Safety
/// A header can be read at `desc`, and as many bytes as it says.
unsafe fn read_desc(desc: *const HcclChannelDesc) -> Result<Read, CallError> {
    // SAFETY: the caller owes a header.
    let words = unsafe { desc.cast::<[u32; HEADER_LEN / 4]>().read_unaligned() };
    Read::check_header(words, size_of::<HcclChannelDesc>() as u32)?;
    // SAFETY: the header says that the description is whole; each field is plain numbers.
    let endpoint = |at: *const EndpointDesc| unsafe {
        Endpoint {
            protocol: (&raw const (*at).protocol).cast::<i32>().read_unaligned(),
            location: (&raw const (*at).loc.locType).cast::<i32>().read_unaligned(),
        }
    };
    // SAFETY: as above.
    unsafe {
        Ok(Read {
            peer: (&raw const (*desc).remoteRank).read_unaligned(),
            protocol: (&raw const (*desc).channelProtocol).cast::<i32>().read_unaligned(),
            local: endpoint(&raw const (*desc).localEndpoint),
            remote: endpoint(&raw const (*desc).remoteEndpoint),
            notify_count: (&raw const (*desc).notifyNum).read_unaligned(),
        })
    }
}

/// Checks of a call that takes descriptions: what it wants. Without a description there is nothing to do.
///
/// # Safety
/// `channel_num` descriptions can be read at a pointer that is not null.
unsafe fn described(
    comm: HcclComm,
    engine: CommEngine,
    channel_descs: *const HcclChannelDesc,
    channel_num: u32,
    channels: *const ChannelHandle,
) -> Result<Vec<Wanted>, CallError> {
    not_null([(comm.cast_const(), "comm")])?;
    let product = comm::product(comm.addr() as u64)?;
    if channel_num == 0 {
        return Ok(Vec::new());
    }
    not_null([(channel_descs.cast(), "channelDescs"), (channels.cast(), "channels")])?;
    if channel_num > CHANNELS_MAX {
        let must = "must be at most 1048576";
        return Err(CallError::OutOfRange { what: "channelNum", value: channel_num.into(), must });
    }
    // SAFETY: not null, so the caller owes `channel_num` descriptions.
    let read = |at: u32| unsafe { read_desc(channel_descs.add(at as usize)) };
    check_all(product, engine, &(0..channel_num).map(read).collect::<Result<Vec<_>, _>>()?)
}

/// Writes the handles that a call gives.
///
/// # Safety
/// As many handles can be written at `channels`.
unsafe fn give(channels: *mut ChannelHandle, handles: &[ChannelHandle]) {
    for (at, handle) in handles.iter().enumerate() {
        // SAFETY: the caller owes room for as many.
        unsafe { channels.add(at).write_unaligned(*handle) };
    }
}

/// Makes a channel for each of `channelNum` descriptions, or finds it if it exists. Both ends call it, and each waits for the other, at
/// most for the seconds of HCCL_CONNECT_TIMEOUT (120). One call may name several peers. 0 channels are none: the result is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclChannelAcquire(
    comm: HcclComm,
    engine: CommEngine,
    channel_descs: *const HcclChannelDesc,
    channel_num: u32,
    channels: *mut ChannelHandle,
) -> HcclResult {
    hccl("HcclChannelAcquire", || {
        // SAFETY: see above.
        let wanted = unsafe { described(comm, engine, channel_descs, channel_num, channels) }?;
        if !wanted.is_empty() {
            let handles = channels::acquire(comm.addr() as u64, &wanted, "HcclChannelAcquire")?;
            // SAFETY: not null, as was checked, so the caller owes room for `channel_num` handles.
            unsafe { give(channels, &handles) };
        }
        Ok(())
    })
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
    hccl("HcclChannelQuery", || {
        // SAFETY: see above.
        let wanted = unsafe { described(comm, engine, channel_descs, channel_num, channels) }?;
        if !wanted.is_empty() {
            let handles = channels::query(comm.addr() as u64, &wanted)?;
            // SAFETY: not null, as was checked, so the caller owes room for `channel_num` handles.
            unsafe { give(channels, &handles) };
        }
        Ok(())
    })
}

/// Frees channels. Those of AICPU engines end with their communicator: returns 5.
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
        Err(CallError::NotSupported("channels of AICPU engines end with their communicator".to_owned()))
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
    hccl("HcclChannelGetHcclBuffer", || {
        not_null([
            (comm.cast_const(), "comm"),
            (buffer.cast_const().cast(), "buffer"),
            (size.cast_const().cast(), "size"),
        ])?;
        // SAFETY: see above.
        let (buffer, size) = unsafe { (Out::new(buffer, "buffer")?, Out::new(size, "size")?) };
        let (addr, len) = channels::remote_buffer(comm.addr() as u64, channel)?;
        buffer.set(std::ptr::with_exposed_provenance_mut(addr as usize));
        size.set(len);
        Ok(())
    })
}

/// All memory of the peer behind a channel, with its tags: its buffer, under "HcclBuffer". The lists belong to the communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclChannelGetRemoteMems(
    comm: HcclComm,
    channel: ChannelHandle,
    mem_num: *mut u32,
    remote_mems: *mut *mut CommMem,
    mem_tags: *mut *mut *mut c_char,
) -> HcclResult {
    hccl("HcclChannelGetRemoteMems", || {
        not_null([
            (comm.cast_const(), "comm"),
            (mem_num.cast_const().cast(), "memNum"),
            (remote_mems.cast_const().cast(), "remoteMems"),
            (mem_tags.cast_const().cast(), "memTags"),
        ])?;
        // SAFETY: see above.
        let number = unsafe { Out::new(mem_num, "memNum") }?;
        // SAFETY: see above.
        let (mems, tags) = unsafe { (Out::new(remote_mems, "remoteMems")?, Out::new(mem_tags, "memTags")?) };
        let (mem, tag) = channels::remote_mem(comm.addr() as u64, channel)?;
        number.set(1);
        mems.set(mem.cast());
        tags.set(tag.cast());
        Ok(())
    })
}
