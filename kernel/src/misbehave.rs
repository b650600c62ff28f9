//! A kernel that fails on purpose, for tests of the host and for fault plans.

use hcomm_aicpu::Error;
#[cfg(not(feature = "linux"))]
use hcomm_aicpu::port::Platform;
#[cfg(not(feature = "linux"))]
use hcomm_aicpu::port::hooks::Hooks;
use hcomm_aicpu::spec::code::HCCL_E_NOT_SUPPORT;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::kernel;

/// What [`misbehave`] does. Open: any number is a valid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Misbehaviour(pub u64);

impl Misbehaviour {
    /// Reads [`UNMAPPED`]. In the image alone.
    pub const DATA_ABORT: Self = Self(0);
    /// Executes an instruction that is never defined. In the image alone.
    pub const UNDEFINED: Self = Self(1);
    /// Calls itself until the stack has no room. In the image alone.
    pub const STACK_OVERFLOW: Self = Self(2);
    /// Panics.
    pub const PANIC: Self = Self(3);
    /// Never returns.
    pub const HANG: Self = Self(4);
    /// Logs [`FLOOD`] lines as fast as it can, and returns 0. In the image alone.
    pub const LOG_FLOOD: Self = Self(5);
    /// Never returns, and its frame pointer is [`UNMAPPED`]. In the image alone.
    pub const WILD_FRAME: Self = Self(6);
}

/// Lines of a flood: many times what the device's log takes.
pub const FLOOD: u64 = 30_000;

/// An address that no image maps.
pub const UNMAPPED: u64 = 0xdead_0000;

/// Parameters of [`misbehave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MisbehaveParams {
    /// [`KernelParams::HEADER`].
    pub header: ParamsHeader,
    /// What to do.
    pub kind: Misbehaviour,
}
const _: () = assert!(size_of::<MisbehaveParams>() == 24);

impl KernelParams for MisbehaveParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"MISB");
    const VERSION: u32 = 1;
}

kernel! {
    /// Fails as `kind` says. A kind that is unknown, or that would end the process of a native CPU, returns
    /// `HCCL_E_NOT_SUPPORT`.
    ///
    /// # Errors
    /// None.
    ///
    /// # Panics
    /// For [`Misbehaviour::PANIC`].
    pub fn misbehave(params: &MisbehaveParams) -> Result<i32, Error> {
        match params.kind {
            #[cfg(any(target_os = "none", feature = "linux"))]
            Misbehaviour::DATA_ABORT => exception::data_abort(),
            #[cfg(any(target_os = "none", feature = "linux"))]
            Misbehaviour::UNDEFINED => exception::undefined(),
            #[cfg(any(target_os = "none", feature = "linux"))]
            Misbehaviour::STACK_OVERFLOW => exception::stack_overflow(0),
            Misbehaviour::PANIC => panic!("a kernel that was asked to panic"),
            Misbehaviour::HANG => hang(),
            #[cfg(feature = "image")]
            Misbehaviour::LOG_FLOOD => log_flood(),
            #[cfg(feature = "image")]
            Misbehaviour::WILD_FRAME => exception::wild_frame(),
            _ => return Ok(HCCL_E_NOT_SUPPORT),
        };
        Ok(0)
    }
}

/// Never returns, and costs a host processor next to nothing.
fn hang() -> u64 {
    loop {
        #[cfg(not(feature = "linux"))]
        embedded_hal::delay::DelayNs::delay_us(&mut Hooks.delay(), 100);
        #[cfg(feature = "linux")]
        core::hint::spin_loop();
    }
}

#[cfg(feature = "image")]
fn log_flood() -> u64 {
    (0..FLOOD).for_each(|line| crate::kernel_log!(info, "line {}", line));
    0
}

/// What a processor of its own can survive: not that of the host process.
#[cfg(any(target_os = "none", feature = "linux"))]
mod exception {
    use core::arch::asm;
    use core::hint::black_box;

    use super::UNMAPPED;

    #[inline(never)]
    pub fn data_abort() -> u64 {
        let value;
        // SAFETY: the address is not mapped: the load reads nothing and ends the launch with a data abort.
        unsafe { asm!("ldr {}, [{}]", out(reg) value, in(reg) UNMAPPED, options(nostack, readonly)) };
        value
    }

    #[inline(never)]
    pub fn undefined() -> u64 {
        // SAFETY: the instruction has no effect but the exception, which ends the launch.
        unsafe { asm!("udf #0", options(nomem, nostack)) };
        0
    }

    #[cfg(feature = "image")]
    #[inline(never)]
    pub fn wild_frame() -> u64 {
        // SAFETY: nothing after it uses the frame pointer, because it never ends.
        unsafe { asm!("mov x29, {}", "2: b 2b", in(reg) UNMAPPED, options(nostack, noreturn)) }
    }

    #[inline(never)]
    pub fn stack_overflow(depth: u64) -> u64 {
        let frame = black_box([depth; 32]);
        if black_box(depth) == u64::MAX { 0 } else { stack_overflow(depth + 1) + black_box(&frame)[0] }
    }
}
