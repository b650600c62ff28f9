//! What the device crate needs: registers of the queues, barrier, clock.

use std::arch::asm;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use embedded_hal::delay::DelayNs;
use hcomm_aicpu::port::regs::SqRegs;
use hcomm_aicpu::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use hcomm_aicpu::spec::map;
use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::{Device, Error};

use crate::{fault, memory, refusals};

/// The device of this process.
pub static DEVICE: Device = Device::new();

/// Delays from this length on sleep, below they spin.
const SLEEP_NS: u32 = 50_000;

/// What the device crate asks.
pub struct Linux;

/// The one of this process.
pub static LINUX: Linux = Linux;
hcomm_aicpu::export_platform!(LINUX);

/// The register block of a queue.
#[inline(always)]
fn regs(queue: QueueId) -> &'static SqRegs {
    // SAFETY: `has_queue` found the address to be that of a register block; the low part stays mapped where `memory::low` says.
    // Only the holder of the queue's lock in the device crate rings.
    unsafe { SqRegs::at(memory::low::<SqRegs>(queue.regs()).expose_provenance() as u64) }
}

impl Platform for Linux {
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
        // SAFETY: orders stores before it with stores after it, for every observer of the memory; touches nothing.
        unsafe { asm!("dmb ishst", options(nostack, preserves_flags)) };
    }

    fn now_us(&self) -> u64 {
        static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
        STARTED.elapsed().as_micros() as u64
    }

    fn delay(&self) -> impl DelayNs {
        Delay
    }

    fn refused(&self, who: &'static str, error: &Error) {
        refusals::note(who, error);
    }

    #[inline(never)]
    fn return_addresses(&self, addrs: &mut [u64]) {
        fault::return_addresses(addrs);
    }
}

/// Delays by the clock.
struct Delay;

impl DelayNs for Delay {
    fn delay_ns(&mut self, ns: u32) {
        match ns {
            // The caller waits for another core of the device, which may need the processor.
            0 => std::thread::yield_now(),
            SLEEP_NS.. => std::thread::sleep(Duration::from_nanos(ns.into())),
            _ => {
                let (started, limit) = (Instant::now(), Duration::from_nanos(ns.into()));
                while started.elapsed() < limit {
                    std::hint::spin_loop();
                }
            }
        }
    }
}
