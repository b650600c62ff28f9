//! The platform of the image: registers of the queues, clock and barrier. With one code generation unit and LTO these are
//! inlined into the copy path.

use core::ffi::c_void;
use core::ptr;

use cortex_a::asm::barrier;
use cortex_a::registers::{Readable, TPIDR_EL1, Writeable};
use embedded_hal::delay::DelayNs;
use hcomm_aicpu::port::hooks::CurrentCore;
use hcomm_aicpu::port::regs::SqRegs;
use hcomm_aicpu::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use hcomm_aicpu::spec::map;
use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::{Device, Error};

use super::{cpu, frames, refusals};

/// The device that this image is.
pub static DEVICE: Device = Device::new();

struct Image;

/// The register block of a queue.
#[inline(always)]
fn regs(queue: QueueId) -> &'static SqRegs {
    // SAFETY: `has_queue` found the address to be that of a register block, and the blocks stay mapped. Only the
    // holder of the queue's lock in the device crate rings.
    unsafe { SqRegs::at(queue.regs()) }
}

impl Platform for Image {
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        map::is_regs_of(sq_id, regs)
    }

    #[inline(always)]
    fn head(&self, queue: QueueId) -> Result<u32, ReadFailed> {
        Ok(regs(queue).head())
    }

    #[inline(always)]
    fn status(&self, queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        Ok(regs(queue).status())
    }

    #[inline(always)]
    fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        // A store can't be refused: a queue that refuses says so in its status word, which is read before.
        regs(queue).ring(tail);
        Ok(())
    }

    #[inline(always)]
    fn store_barrier(&self) {
        barrier::dsb(barrier::ISHST);
    }

    #[inline(never)]
    fn now_us(&self) -> u64 {
        cpu::now_us()
    }

    fn delay(&self) -> impl DelayNs {
        Delay
    }

    #[inline(never)]
    fn refused(&self, who: &'static str, error: &Error) {
        refusals::note(who, error);
    }

    #[inline(never)]
    fn return_addresses(&self, addrs: &mut [u64]) {
        frames::walk(cpu::frame_pointer(), addrs);
    }
}

/// Fills `addrs` with return addresses of the caller, innermost first, then 0.
#[inline(always)]
pub fn return_addresses(addrs: &mut [u64]) {
    IMAGE.return_addresses(addrs);
}

/// Delays by the clock.
struct Delay;

impl DelayNs for Delay {
    #[inline(always)]
    fn delay_ns(&mut self, ns: u32) {
        // The lock's loop asks for nothing, and gets it without a call.
        if ns != 0 {
            wait(ns);
        }
    }
}

/// Waits for at least `ns` nanoseconds.
#[cold]
#[inline(never)]
fn wait(ns: u32) {
    // The clock shows whole microseconds, and the first of them may be over at once.
    let last = IMAGE.now_us() + u64::from(ns / 1000) + 1;
    while IMAGE.now_us() <= last {
        core::hint::spin_loop();
    }
}

/// TPIDR_EL1 of each core: 0 by the start code, then what the device crate keeps there.
struct Tpidr;

// SAFETY: the register is the core's own, nothing else writes it, and the start code puts 0 there.
unsafe impl CurrentCore for Tpidr {
    #[inline(always)]
    fn get() -> *const c_void {
        ptr::with_exposed_provenance(TPIDR_EL1.get() as usize)
    }

    #[inline(always)]
    fn set(core: *const c_void) {
        TPIDR_EL1.set(core.expose_provenance() as u64);
    }
}

static IMAGE: Image = Image;
hcomm_aicpu::export_platform!(IMAGE, Tpidr);
