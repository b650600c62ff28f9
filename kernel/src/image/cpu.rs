//! Core number, clock, and the measured call of a kernel.

use core::arch::asm;
use core::ffi::c_void;
use core::num::NonZeroU64;

use cortex_a::asm::barrier;
use cortex_a::registers::{CNTFRQ_EL0, CNTVCT_EL0, MPIDR_EL1, Readable};
use hcomm_kernel::KernelFn;

/// Number of the core that runs this: index of its mailbox, fault record and log ring. The start code parks every core
/// but the first.
#[inline]
pub fn core_id() -> u64 {
    MPIDR_EL1.get() & 0xff
}

/// Ticks of the clock, [`ticks_per_second`] a second.
#[inline]
pub fn ticks() -> u64 {
    // Without it the counter may be read ahead of what comes before in the program.
    barrier::isb(barrier::SY);
    CNTVCT_EL0.get()
}

/// Frequency of the clock.
#[inline]
pub fn ticks_per_second() -> u64 {
    CNTFRQ_EL0.get()
}

/// Time since the machine started, in microseconds.
#[inline]
pub fn now_us() -> u64 {
    // Whole seconds apart: it does not wrap in the life of the machine, and needs no division of 128 bits.
    let (ticks, Some(per_second)) = (ticks(), NonZeroU64::new(ticks_per_second())) else { return 0 };
    ticks / per_second * 1_000_000 + ticks % per_second * 1_000_000 / per_second
}

/// Frame pointer of the caller.
#[inline(always)]
pub fn frame_pointer() -> u64 {
    let fp;
    // SAFETY: reads one register.
    unsafe { asm!("mov {}, x29", out(reg) fp, options(nomem, nostack, preserves_flags)) };
    fp
}

/// Lets PMCCNTR_EL0 count from 0.
pub fn start_cycle_counter() {
    const PMCR_ENABLE: u64 = 1 << 0;
    const PMCR_RESET_CYCLES: u64 = 1 << 2;
    /// All 64 bits count, not the low 32.
    const PMCR_LONG: u64 = 1 << 6;
    const CYCLE_COUNTER: u64 = 1 << 31;
    // SAFETY: the registers of the performance monitors affect nothing but themselves.
    unsafe {
        asm!(
            "msr pmccfiltr_el0, xzr",
            "msr pmcntenset_el0, {counters}",
            "msr pmcr_el0, {control}",
            "isb",
            counters = in(reg) CYCLE_COUNTER,
            control = in(reg) PMCR_ENABLE | PMCR_RESET_CYCLES | PMCR_LONG,
            options(nomem, nostack, preserves_flags),
        );
    }
}

/// Counted by [`call_measured`] besides the kernel: the call itself, and the second read of the counter.
const CALL_OVERHEAD: u64 = 2;

/// Calls `entry` with `args`. Returns its result and the cycles it took; under `-icount shift=0` these are instructions.
///
/// # Safety
/// `args` is what `entry` expects.
pub unsafe fn call_measured(entry: KernelFn, args: *const c_void) -> (u32, u64) {
    let ret: u64;
    let cycles: u64;
    // SAFETY: a call by the C ABI; all that it may clobber is named. The callee keeps x20.
    unsafe {
        asm!(
            "isb",
            "mrs x20, pmccntr_el0",
            "blr {entry}",
            "mrs x21, pmccntr_el0",
            "sub x20, x21, x20",
            entry = in(reg) entry,
            inlateout("x0") args => ret,
            out("x20") cycles,
            out("x21") _,
            clobber_abi("C"),
        );
    }
    // The upper half of x0 is not part of a 32-bit result.
    (ret as u32, cycles.saturating_sub(CALL_OVERHEAD))
}
