//! The device of this process, and its platform.

use core::sync::atomic::{AtomicU64, Ordering};

use embedded_hal::delay::DelayNs;
use hcomm_aicpu::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use hcomm_aicpu::spec::card::REASON_MAX;
use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::{Device, Error, MAX_CORES};
use hcomm_hal::{CardPlatform, Clock};
use spin::Mutex;

use crate::current::{self, ThisThread};
use crate::line::Line;

/// The device that this library queues tasks on.
pub static DEVICE: Device = Device::new();

/// The queues that are open.
pub static QUEUES: CardPlatform<ProcessClock> = CardPlatform::new();

/// What a refused call leaves for the status.
pub type Reason = Line<REASON_MAX>;

/// First refused call of each running kernel, by the place of its thread.
static REASONS: [Mutex<Reason>; MAX_CORES] = [const { Mutex::new(Reason::EMPTY) }; MAX_CORES];

/// Gives and clears the reason of the calling thread's kernel.
pub fn take_reason() -> Reason {
    let reason = current::place().map(|place| core::mem::replace(&mut *REASONS[place].lock(), Reason::EMPTY));
    reason.unwrap_or(Reason::EMPTY)
}

/// Keeps `text` as the reason of the calling thread's kernel, unless it has one.
fn note(text: core::fmt::Arguments<'_>) {
    let Some(place) = current::place() else { return };
    let mut reason = REASONS[place].lock();
    if reason.bytes().is_empty() {
        *reason = Reason::new(text);
    }
}

/// Keeps the message of a panic as the reason of the calling thread's kernel. If the kernel has panicked while it was writing one, that is lost.
#[cfg(feature = "panic-handler")]
pub fn note_panic(info: &core::panic::PanicInfo<'_>) {
    let Some(mut reason) = current::place().and_then(|place| REASONS[place].try_lock()) else { return };
    *reason = Reason::new(format_args!("{info}"));
}

/// Cores that run a kernel, a bit for each.
static CORES: AtomicU64 = AtomicU64::new(0);
const _: () = assert!(MAX_CORES == 64);

/// A core that nothing else uses until the value is dropped.
pub struct FreeCore(pub usize);

impl FreeCore {
    /// Takes one; `None`: all run kernels.
    pub fn take() -> Option<Self> {
        let lowest = |taken: u64| (taken != u64::MAX).then(|| taken | 1 << taken.trailing_ones());
        let taken = CORES.fetch_update(Ordering::Acquire, Ordering::Relaxed, lowest).ok()?;
        Some(Self(taken.trailing_ones() as usize))
    }
}

impl Drop for FreeCore {
    fn drop(&mut self) {
        CORES.fetch_and(!(1 << self.0), Ordering::Release);
    }
}

/// Time of the process.
pub struct ProcessClock;

impl Clock for ProcessClock {
    #[cfg(target_arch = "aarch64")]
    fn now_us() -> u64 {
        hcomm_hal::Counter::now_us()
    }

    /// Not of a card: tests run the library on the machine that they are compiled on.
    #[cfg(target_arch = "x86_64")]
    fn now_us() -> u64 {
        const CLOCK_GETTIME: u64 = 228;
        const CLOCK_MONOTONIC: u64 = 1;
        let mut time = [0_u64; 2];
        // SAFETY: the system call writes the two words, and changes no register but those that are named.
        unsafe {
            core::arch::asm!(
                "syscall",
                inlateout("rax") CLOCK_GETTIME => _,
                in("rdi") CLOCK_MONOTONIC,
                in("rsi") time.as_mut_ptr(),
                out("rcx") _,
                out("r11") _,
                options(nostack),
            );
        }
        time[0] * 1_000_000 + time[1] / 1000
    }
}

/// [`CardPlatform`], with the reasons of refusals.
struct Card;

impl Platform for Card {
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        QUEUES.has_queue(sq_id, regs)
    }

    fn head(&self, queue: QueueId) -> Result<u32, ReadFailed> {
        QUEUES.head(queue)
    }

    #[inline(always)]
    fn status(&self, queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        QUEUES.status(queue)
    }

    #[inline(always)]
    fn ring(&self, queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        QUEUES.ring(queue, tail)
    }

    #[inline(always)]
    fn store_barrier(&self) {
        QUEUES.store_barrier();
    }

    fn now_us(&self) -> u64 {
        QUEUES.now_us()
    }

    fn delay(&self) -> impl DelayNs {
        QUEUES.delay()
    }

    #[cold]
    #[inline(never)]
    fn refused(&self, who: &'static str, error: &Error) {
        log::warn!("{who}: {error}");
        note(format_args!("{who}: {error}"));
    }
}

static CARD: Card = Card;
hcomm_aicpu::export_platform!(CARD, ThisThread);
