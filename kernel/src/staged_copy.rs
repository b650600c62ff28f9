//! Copy of any size through a buffer of any size, on two threads that synchronise with notifies.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::{Error, Thread};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Control, kernel, kernel_log, queued};

/// Notifies of thread `input`: one for each half that is free again, one for the end of `output`. The next index is free for
/// the start notify of the control pair.
pub const STAGED_COPY_INPUT_NOTIFIES: u32 = 3;
/// Notifies of thread `output`: one for each half that is full.
pub const STAGED_COPY_OUTPUT_NOTIFIES: u32 = 2;

/// Of the notifies of `input`: `output` is done.
const DONE: u32 = 2;
/// Halves start at a multiple of this many bytes, where the buffer is large enough.
const ALIGN: u64 = 64;

/// Parameters of [`staged_copy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StagedCopyParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `ThreadHandle` of the thread that copies into `ccl_buf`, with [`STAGED_COPY_INPUT_NOTIFIES`] notifies.
    pub input: u64,
    /// `ThreadHandle` of the thread that copies out of it, with [`STAGED_COPY_OUTPUT_NOTIFIES`] notifies.
    pub output: u64,
    /// First byte read.
    pub user_in: DeviceAddr,
    /// First byte written.
    pub user_out: DeviceAddr,
    /// Buffer in between.
    pub ccl_buf: DeviceAddr,
    /// Bytes of `ccl_buf`, at least 1.
    pub ccl_buf_size: u64,
    /// Bytes to copy.
    pub len: u64,
    /// Control pair of the launch; on `input`.
    pub control: Control,
}
const _: () = assert!(size_of::<StagedCopyParams>() == 88);

impl KernelParams for StagedCopyParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"STCP");
    const VERSION: u32 = 1;
}

kernel! {
    /// Copies `len` bytes from `user_in` to `user_out` through `ccl_buf`, piece by piece: while `output` copies one half of
    /// the buffer out, `input` fills the other.
    ///
    /// Two copies and at most four notify tasks a piece of half the buffer.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a buffer of no bytes, and those of the calls.
    pub fn staged_copy(params: &StagedCopyParams) -> Result<(), Error> {
        if params.len > 0 && params.ccl_buf_size == 0 {
            return Err(Error::TooLarge { len: params.len, limit: 0 });
        }
        let input = queued::thread(params.input)?;
        let output = queued::thread(params.output)?;
        params.control.in_step(&input, || copy_pieces(params, &input, &output))
    }
}

fn copy_pieces(params: &StagedCopyParams, input: &Thread, output: &Thread) -> Result<(), Error> {
    if params.len == 0 {
        return Ok(());
    }
    // A buffer of one byte has no halves.
    let halves = params.ccl_buf_size.min(2);
    let half = params.ccl_buf_size / halves;
    let piece = if half > ALIGN { half - half % ALIGN } else { half };
    let pieces = params.len.div_ceil(piece);
    kernel_log!(debug, "staged copy: {} bytes in {} pieces of up to {}", params.len, pieces, piece);
    let at = |addr: DeviceAddr, offset| DeviceAddr(addr.0.wrapping_add(offset));
    for index in 0..pieces {
        let (offset, half) = (index * piece, index % halves);
        let (len, buffer, notify) = (piece.min(params.len - offset), at(params.ccl_buf, half * piece), half as u32);
        if index >= halves {
            queued::wait(input, notify)?;
        }
        queued::copy(input, buffer, at(params.user_in, offset), len)?;
        queued::record(input, output.peer(), notify)?;

        queued::wait(output, notify)?;
        queued::copy(output, at(params.user_out, offset), buffer, len)?;
        // A record without a wait would stay set and release the next launch too early.
        if index + halves < pieces {
            queued::record(output, input.peer(), notify)?;
        }
    }
    queued::record(output, input.peer(), DONE)?;
    queued::wait(input, DONE)
}
