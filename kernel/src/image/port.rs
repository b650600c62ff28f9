//! The platform of the image: what [`hcomm_aicpu::port`] asks for. With one code generation unit and LTO these are inlined
//! into the copy path.

use core::ffi::c_void;
use core::ptr;

use cortex_a::asm::barrier;
use cortex_a::registers::{Readable, TPIDR_EL1, Writeable};
use hcomm_aicpu::regs::SqRegs;
use hcomm_aicpu::{Core, Device, LaunchEnd};

use super::{cpu, refusals};

/// The device that this image is.
pub static DEVICE: Device = Device::new();
static CORE: Core<'static> = Core::new(&DEVICE);

/// A launch begins on this core.
pub fn enter() {
    TPIDR_EL1.set((&raw const CORE) as u64);
}

/// It has ended: the core is as new for the next one. Gives what the kernel left behind.
pub fn leave() -> LaunchEnd {
    TPIDR_EL1.set(0);
    CORE.finish_launch()
}

/// The core while a launch runs on it, else null: the start code and [`leave`] put 0 there.
#[unsafe(no_mangle)]
extern "C" fn hcomm_port_core() -> *const Core<'static> {
    ptr::with_exposed_provenance(TPIDR_EL1.get() as usize)
}

/// The register block that a thread descriptor names.
#[inline]
fn regs(addr: u64) -> &'static SqRegs {
    // SAFETY: the host wrote `addr` into the descriptor of a live thread (contract of `Device::set_thread_table`): a block
    // below QUEUE_REGS_PHYS + QUEUE_REGS_SIZE, mapped for good. Only the holder of the queue's lock rings.
    unsafe { SqRegs::at(addr) }
}

#[unsafe(no_mangle)]
extern "C" fn hcomm_port_head(_sq_id: u32, addr: u64) -> u32 {
    regs(addr).head()
}

#[unsafe(no_mangle)]
extern "C" fn hcomm_port_status(_sq_id: u32, addr: u64) -> u64 {
    regs(addr).status().0
}

#[unsafe(no_mangle)]
extern "C" fn hcomm_port_ring(_sq_id: u32, addr: u64, tail: u32) -> i32 {
    regs(addr).ring(tail);
    // A store can't be refused: a queue that refuses says so in its status word, which is read before.
    0
}

#[unsafe(no_mangle)]
extern "C" fn hcomm_port_store_barrier() {
    barrier::dsb(barrier::ISHST);
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn hcomm_port_now_us() -> u64 {
    cpu::now_us()
}

#[unsafe(no_mangle)]
extern "C" fn hcomm_port_refused(who: *const u8, who_len: usize, _code: i32, error: *const c_void) {
    // SAFETY: the device crate hands over a live error.
    refusals::note(who, who_len, unsafe { &*error.cast() });
}

#[unsafe(no_mangle)]
extern "C" fn hcomm_port_delay_ns(ns: u32) {
    // The lock's loop asks for nothing, and gets it without a call.
    if ns != 0 {
        delay(ns);
    }
}

#[cold]
#[inline(never)]
fn delay(ns: u32) {
    // Rounded up: a delay is never shorter than asked for.
    let ticks = (u64::from(ns) * cpu::ticks_per_second()).div_ceil(1_000_000_000);
    let start = cpu::ticks();
    while cpu::ticks() - start < ticks {
        core::hint::spin_loop();
    }
}
