//! Send and receive: the receiver reads from the sender's buffer.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::ChannelHandle;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::{Channel, Error};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Control, kernel, queued};

/// Of a channel: the sender's buffer is full.
const FULL: u32 = 0;
/// Of a channel: the receiver has read.
const READ: u32 = 1;

/// Parameters of [`send_to_peer`] and [`recv_from_peer`]. Sender and receiver give the same `len` and `ccl_buf_size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SendRecvParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `ThreadHandle` of the thread whose queue takes the tasks.
    pub thread: u64,
    /// `ChannelHandle` of the channel to the other rank, with [`CHANNEL_NOTIFIES`](crate::CHANNEL_NOTIFIES) notifies.
    pub channel: u64,
    /// What is sent, or where it goes.
    pub user: DeviceAddr,
    /// Buffer of the sender.
    pub ccl_buf: DeviceAddr,
    /// Bytes of it, at least 1.
    pub ccl_buf_size: u64,
    /// Bytes to send.
    pub len: u64,
    /// Control pair of the launch; on `thread`.
    pub control: Control,
}
const _: () = assert!(size_of::<SendRecvParams>() == 80);

impl KernelParams for SendRecvParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"SDRC");
    const VERSION: u32 = 1;
}

/// Offset and length of each piece of a transfer through the buffer.
fn pieces(params: &SendRecvParams) -> Result<impl Iterator<Item = (u64, u64)>, Error> {
    let (size, len) = (params.ccl_buf_size, params.len);
    if len > 0 && size == 0 {
        return Err(Error::TooLarge { len, limit: 0 });
    }
    let count = if len == 0 { 0 } else { len.div_ceil(size) };
    Ok((0..count).map(move |index| (index * size, size.min(len - index * size))))
}

fn at(addr: DeviceAddr, offset: u64) -> DeviceAddr {
    DeviceAddr(addr.0.wrapping_add(offset))
}

kernel! {
    /// Sends `len` bytes of `user`: piece by piece into `ccl_buf`, from where the receiver reads.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a buffer of no bytes, and those of the calls.
    pub fn send_to_peer(params: &SendRecvParams) -> Result<(), Error> {
        let thread = queued::thread(params.thread)?;
        let channel = Channel::from_handle(ChannelHandle(params.channel))?;
        let pieces = pieces(params)?;
        params.control.in_step(&thread, || {
            for (offset, len) in pieces {
                queued::copy(&thread, params.ccl_buf, at(params.user, offset), len)?;
                channel.notify_record(&thread, FULL)?;
                channel.notify_wait_default(&thread, READ)?;
            }
            Ok(())
        })
    }
}

kernel! {
    /// Receives `len` bytes into `user`; `ccl_buf` is the sender's.
    ///
    /// # Errors
    /// As [`send_to_peer`].
    pub fn recv_from_peer(params: &SendRecvParams) -> Result<(), Error> {
        let thread = queued::thread(params.thread)?;
        let channel = Channel::from_handle(ChannelHandle(params.channel))?;
        let pieces = pieces(params)?;
        params.control.in_step(&thread, || {
            for (offset, len) in pieces {
                channel.notify_wait_default(&thread, FULL)?;
                channel.read(&thread, at(params.user, offset), params.ccl_buf, len)?;
                channel.notify_record(&thread, READ)?;
            }
            Ok(())
        })
    }
}
