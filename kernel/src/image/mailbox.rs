//! Launch loop: takes launches from the mailbox of this core, one at a time, without end.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use hcomm_aicpu::LaunchEnd;
use hcomm_aicpu::spec::code::{HCCL_E_INTERNAL, HCCL_E_NOT_FOUND};
use hcomm_aicpu::spec::mailbox::{DeviceMailbox, HostMailbox, LEFT_BATCH_OPEN, MAILBOX_STRIDE, MAILBOX_VERSION};
use hcomm_aicpu::spec::map::{DEVICE_MAILBOX_PHYS, HOST_MAILBOX_PHYS};
use hcomm_kernel::{KernelFn, kernels};

use super::{cpu, port, wake};

/// How long an idle core polls before it sleeps: a launch that comes sooner needs no wake-up.
const POLL_US: u64 = 100;

/// Number of the running launch, 0 = none. For fault reports.
static RUNNING: AtomicU64 = AtomicU64::new(0);

/// Number of the running launch, 0 = none.
pub fn running() -> u64 {
    RUNNING.load(Ordering::Relaxed)
}

/// Both directions of this core's mailbox.
struct Mailbox {
    host: *mut HostMailbox,
    device: *mut DeviceMailbox,
}

impl Mailbox {
    fn of_this_core() -> Self {
        let offset = cpu::core_id() * MAILBOX_STRIDE;
        Self {
            host: (HOST_MAILBOX_PHYS + offset) as *mut HostMailbox,
            device: (DEVICE_MAILBOX_PHYS + offset) as *mut DeviceMailbox,
        }
    }

    fn seq(&self) -> u64 {
        // SAFETY: an aligned word of the mailbox, that stays mapped, and that both sides access atomically. The acquire pairs with
        // the release store of the host: entry and args of the launch are there.
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

    fn finish(&self, seq: u64, ret: u32, instructions: u64, end: LaunchEnd) {
        let left_behind = if end.batch_left_open { LEFT_BATCH_OPEN } else { 0 };
        // SAFETY: mapped; we are the only writer. The release pairs with the acquire load of the host: who sees `done` sees
        // the result, and whatever the kernel wrote.
        unsafe {
            (&raw mut (*self.device).ret).write_volatile(ret);
            (&raw mut (*self.device).left_behind).write_volatile(left_behind);
            (&raw mut (*self.device).instructions).write_volatile(instructions);
            AtomicU64::from_ptr(&raw mut (*self.device).done).store(seq, Ordering::Release);
        }
    }

    fn set_ready(&self) {
        // SAFETY: mapped; we are the only writer.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.device).ready) }.store(MAILBOX_VERSION, Ordering::Release);
    }

    fn set_sleeping(&self, sleeping: bool) {
        // SAFETY: mapped; we are the only writer.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.device).sleeping) }.store(u32::from(sleeping), Ordering::Relaxed);
    }

    /// Waits for a launch that is not `done`.
    fn wait(&self, done: u64) -> u64 {
        let ticks = POLL_US * cpu::ticks_per_second() / 1_000_000;
        let start = cpu::ticks();
        while cpu::ticks() - start < ticks {
            let seq = self.seq();
            if seq != done {
                return seq;
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
            wake::sleep();
        }
    }
}

/// The kernel whose function is at `entry`. The address comes from the host: anything but a kernel is not jumped to.
fn kernel_at(entry: u64) -> Option<KernelFn> {
    kernels().iter().map(|kernel| kernel.function).find(|&function| function as usize as u64 == entry)
}

/// Takes launches.
pub fn run() -> ! {
    let mailbox = Mailbox::of_this_core();
    let mut done = mailbox.done();
    mailbox.set_ready();
    loop {
        let seq = mailbox.wait(done);
        let (entry, args) = mailbox.launch();
        defmt::debug!("launch {=u64}: entry {=u64:#x}, args {=u64:#x}", seq, entry, args);
        let ((ret, instructions), end) = match kernel_at(entry) {
            Some(kernel) => {
                RUNNING.store(seq, Ordering::Relaxed);
                let core = cpu::core_id() as usize;
                // SAFETY: the host hands a kernel null or its parameters; a kernel checks which.
                let call = || unsafe { cpu::call_measured(kernel, args as *const c_void) };
                // This loop is the one that runs kernels on the core.
                let result =
                    port::DEVICE.run(core, call).unwrap_or(((HCCL_E_INTERNAL as u32, 0), LaunchEnd::default()));
                RUNNING.store(0, Ordering::Relaxed);
                result
            }
            None => {
                defmt::error!("launch {=u64}: no kernel at {=u64:#x}", seq, entry);
                ((HCCL_E_NOT_FOUND as u32, 0), LaunchEnd::default())
            }
        };
        mailbox.finish(seq, ret, instructions, end);
        done = seq;
    }
}
