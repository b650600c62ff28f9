//! A kernel whose own code loads and stores device memory, for tests and measurements of the check `core`.

use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut, without_provenance, without_provenance_mut};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::code::{HCCL_E_NOT_SUPPORT, HCCL_SUCCESS};
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::{Error, abi};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::kernel;

/// A step of [`own_access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OwnStep {
    /// One of the numbers of [`OwnStep`].
    pub kind: u64,
    /// `ThreadHandle` of a step that queues a task, or waits for a queue.
    pub thread: u64,
    /// First byte that is written, or read by a step that only reads.
    pub dst: DeviceAddr,
    /// First byte that is read by a step that writes.
    pub src: DeviceAddr,
    /// Bytes.
    pub len: u64,
}
const _: () = assert!(size_of::<OwnStep>() == 40);

impl OwnStep {
    /// Stores `len` bytes, one at a time.
    pub const STORE: u64 = 1;
    /// Loads `len` bytes, one at a time.
    pub const LOAD: u64 = 2;
    /// Loads an aligned word of 4 bytes twice.
    pub const POLL: u64 = 3;
    /// Adds floats of `src` to those of `dst`.
    pub const ADD: u64 = 4;
    /// `HcommLocalCopyOnThread`.
    pub const COPY: u64 = 5;
    /// `HcommThreadSynchronize`.
    pub const SYNCHRONIZE: u64 = 6;
}

/// Parameters of [`own_access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OwnAccessParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// `count` entries of [`OwnStep`] in device memory, 8-byte aligned. The host keeps them until the launch has ended. What they
    /// name is mapped, words and floats are aligned.
    pub steps: DeviceAddr,
    /// Steps.
    pub count: u64,
}
const _: () = assert!(size_of::<OwnAccessParams>() == 32);

impl KernelParams for OwnAccessParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"OWNA");
    const VERSION: u32 = 1;
}

kernel! {
    /// Carries out the steps one after the other, and returns the first code that is not 0; 5 (`HCCL_E_NOT_SUPPORT`) for an
    /// unknown step.
    ///
    /// # Errors
    /// None: refusals are codes.
    pub fn own_access(params: &OwnAccessParams) -> Result<i32, Error> {
        let steps = with_exposed_provenance::<OwnStep>(params.steps.0 as usize);
        for index in 0..params.count as usize {
            // SAFETY: the host owes `count` aligned entries that stay readable (`OwnAccessParams::steps`).
            let OwnStep { kind, thread, dst, src, len } = unsafe { steps.add(index).read() };
            let code = match kind {
                OwnStep::STORE => store(dst, len),
                OwnStep::LOAD => load(dst, len),
                OwnStep::POLL => poll(dst),
                OwnStep::ADD => add(dst, src, len),
                OwnStep::COPY => {
                    let (dst, src) = (without_provenance_mut(dst.0 as usize), without_provenance(src.0 as usize));
                    abi::HcommLocalCopyOnThread(thread, dst, src, len)
                }
                OwnStep::SYNCHRONIZE => abi::HcommThreadSynchronize(thread),
                _ => HCCL_E_NOT_SUPPORT,
            };
            if code != HCCL_SUCCESS {
                return Ok(code);
            }
        }
        Ok(HCCL_SUCCESS)
    }
}

#[inline(never)]
fn store(dst: DeviceAddr, len: u64) -> i32 {
    let dst = with_exposed_provenance_mut::<u8>(dst.0 as usize);
    for index in 0..len as usize {
        // SAFETY: the host owes mapped bytes (`OwnAccessParams::steps`).
        unsafe { dst.add(index).write_volatile(index as u8) };
    }
    HCCL_SUCCESS
}

#[inline(never)]
fn load(src: DeviceAddr, len: u64) -> i32 {
    let src = with_exposed_provenance::<u8>(src.0 as usize);
    for index in 0..len as usize {
        // SAFETY: as above.
        let _: u8 = unsafe { src.add(index).read_volatile() };
    }
    HCCL_SUCCESS
}

#[inline(never)]
fn poll(word: DeviceAddr) -> i32 {
    let word = with_exposed_provenance::<u32>(word.0 as usize);
    for _ in 0..2 {
        // SAFETY: as above, aligned.
        let _: u32 = unsafe { word.read_volatile() };
    }
    HCCL_SUCCESS
}

#[inline(never)]
fn add(dst: DeviceAddr, src: DeviceAddr, len: u64) -> i32 {
    let (dst, src) =
        (with_exposed_provenance_mut::<f32>(dst.0 as usize), with_exposed_provenance::<f32>(src.0 as usize));
    for index in 0..len as usize / size_of::<f32>() {
        // SAFETY: as above, aligned.
        unsafe { *dst.add(index) += *src.add(index) };
    }
    HCCL_SUCCESS
}
