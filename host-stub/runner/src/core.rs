//! Launch loop of a core: takes launches from its mailbox, one at a time, without end.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{null, with_exposed_provenance};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use hcomm_aicpu::LaunchEnd;
use hcomm_aicpu::spec::code::HCCL_E_INTERNAL;
use hcomm_aicpu::spec::mailbox::{
    DeviceMailbox, HostMailbox, LEFT_BATCH_OPEN, MAILBOX_STRIDE, MAILBOX_VERSION, MAX_CORES,
};
use hcomm_aicpu::spec::map::{DEVICE_MAILBOX_PHYS, HOST_MAILBOX_PHYS};
use hcomm_aicpu::spec::runner::NO_CORE;

use crate::platform::DEVICE;
use crate::{fault, library, memory};

/// How long an idle core polls before it sleeps: a launch that comes sooner needs no wake-up.
const POLL: Duration = Duration::from_micros(100);
/// Looks at the mailbox between two looks at the clock.
const LOOKS: u32 = 64;

thread_local! {
    static CORE: Cell<u64> = const { Cell::new(NO_CORE) };
}

/// Number of the core that the calling thread is; [`NO_CORE`] for a thread that a kernel has made.
pub fn of_this_thread() -> u64 {
    CORE.get()
}

/// Number of the launch that each core runs, 0 = none.
static RUNNING: [AtomicU64; MAX_CORES] = [const { AtomicU64::new(0) }; MAX_CORES];

/// Number of the launch that `core` runs, 0 = none.
pub fn running(core: u64) -> u64 {
    RUNNING.get(core as usize).map_or(0, |running| running.load(Ordering::Relaxed))
}

/// Both directions of a core's mailbox.
struct Mailbox {
    host: *mut HostMailbox,
    device: *mut DeviceMailbox,
}

impl Mailbox {
    fn of(core: u64) -> Self {
        let offset = core * MAILBOX_STRIDE;
        Self { host: memory::low(HOST_MAILBOX_PHYS + offset), device: memory::low(DEVICE_MAILBOX_PHYS + offset) }
    }

    fn seq(&self) -> u64 {
        // SAFETY: an aligned word of the mailbox, which stays mapped, and which both sides access atomically. The acquire pairs
        // with the release store of the host: entry and args of the launch are there.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.host).seq) }.load(Ordering::Acquire)
    }

    /// Entry and args of the launch.
    fn launch(&self) -> (u64, u64) {
        // SAFETY: mapped; the host does not write them again before `done` has its answer.
        unsafe { ((&raw const (*self.host).entry).read_volatile(), (&raw const (*self.host).args.0).read_volatile()) }
    }

    fn done(&self) -> u64 {
        // SAFETY: mapped; we are its only writer once the core runs.
        unsafe { (&raw const (*self.device).done).read_volatile() }
    }

    fn finish(&self, seq: u64, ret: u32, end: LaunchEnd) {
        let left_behind = if end.batch_left_open { LEFT_BATCH_OPEN } else { 0 };
        // SAFETY: mapped; we are the only writer. The release pairs with the acquire load of the host: who sees `done` sees
        // the result, and whatever the kernel wrote.
        unsafe {
            (&raw mut (*self.device).ret).write_volatile(ret);
            (&raw mut (*self.device).left_behind).write_volatile(left_behind);
            AtomicU64::from_ptr(&raw mut (*self.device).done).store(seq, Ordering::Release);
        }
    }

    fn set_sleeping(&self, sleeping: bool) {
        // SAFETY: mapped; we are the only writer.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.device).sleeping) }.store(u32::from(sleeping), Ordering::Relaxed);
    }

    /// Waits for a launch that is not `done`.
    fn wait(&self, done: u64) -> u64 {
        let started = Instant::now();
        while started.elapsed() < POLL {
            for _ in 0..LOOKS {
                let seq = self.seq();
                if seq != done {
                    return seq;
                }
                std::hint::spin_loop();
            }
        }
        self.set_sleeping(true);
        // Pairs with the fence of the host between its store of `seq` and its look at `sleeping`: at least one side sees
        // the store of the other, so a launch is never slept over.
        fence(Ordering::SeqCst);
        loop {
            let seq = self.seq();
            if seq != done {
                self.set_sleeping(false);
                return seq;
            }
            // SAFETY: the word is the low half of `seq`, which stays mapped; the call sleeps while it has the value of `done`, and
            // returns at once if it has not. It reads nothing else.
            unsafe {
                let word = (&raw const (*self.host).seq).cast::<u32>();
                libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, done as u32, null::<libc::timespec>());
            }
        }
    }
}

/// Says that launches are taken: [`serve`] has begun on each core, or will.
pub fn set_ready() {
    for core in 0..MAX_CORES as u64 {
        let device = Mailbox::of(core).device;
        // SAFETY: mapped; this process is the only writer.
        unsafe { AtomicU32::from_ptr(&raw mut (*device).ready) }.store(MAILBOX_VERSION, Ordering::Release);
    }
}

/// Takes launches of `core` in the calling thread.
pub fn serve(core: u64) -> ! {
    CORE.set(core);
    let mailbox = Mailbox::of(core);
    let mut done = mailbox.done();
    loop {
        let seq = mailbox.wait(done);
        let (entry, args) = mailbox.launch();
        RUNNING[core as usize].store(seq, Ordering::Relaxed);
        let hbm = memory::HBM.get().expect("set before the cores start");
        let kernel = hbm.map_steps().and_then(|()| library::kernel(entry)).unwrap_or_else(|text| fault::load(&text));
        let args = with_exposed_provenance::<c_void>(args as usize).cast_mut();
        // SAFETY: the host launches a function that the user's description calls a kernel, `uint32_t f(void *)`, with null or the
        // parameters of the launch.
        let call = || unsafe { kernel(args) };
        // This loop is the one that runs kernels on the core.
        let (ret, end) = DEVICE.run(core as usize, call).unwrap_or((HCCL_E_INTERNAL as u32, LaunchEnd::default()));
        // SAFETY: writes out what C streams hold, under their locks.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        RUNNING[core as usize].store(0, Ordering::Relaxed);
        mailbox.finish(seq, ret, end);
        done = seq;
    }
}
