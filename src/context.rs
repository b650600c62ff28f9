//! Context of a device and of a core that runs kernels on it, and which core runs the caller.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::channel::ChannelPlace;
use crate::comms::{Comms, Owner};
use crate::error::Error;
use crate::handle::ThreadTable;
use crate::port::Platform;
use crate::port::hooks::{self, Hooks};
use crate::spec::DeviceAddr;
use crate::spec::record::EntryPoint;
use crate::spec::soc::Soc;
use crate::sq::{self, CoreQueues, Note, Queues};
use crate::sync::const_fn;

/// Bytes of a [`Device`] for each thread that it can have.
pub const THREAD_STATE: usize = sq::QUEUE_STATE;
/// Cores that a device can have, numbered from 0.
pub const MAX_CORES: usize = 64;

/// State that the cores of one device share: where the thread table is, the device's own state of each queue, task ids.
///
/// Private to the device: the host never reads or writes it.
#[repr(C)]
pub struct Device {
    queues: Queues,
    comms: Comms,
    channels: ChannelPlace,
    /// Cores that run a kernel, a bit for each.
    busy: AtomicU64,
}

impl Device {
    const_fn! {
        /// A device without threads: every handle is refused until [`set_thread_table`](Self::set_thread_table).
        pub fn new() -> Self {
            Self { queues: Queues::new(), comms: Comms::new(), channels: ChannelPlace::none(), busy: AtomicU64::new(0) }
        }
    }

    /// Tells where the table of thread descriptors is. Called once, before the first launch.
    ///
    /// # Safety
    /// From now on, for as long as a kernel runs on this device:
    /// - `slots` descriptors from `base` on (64-byte aligned) stay readable; the tag and the word of the notifies of each are
    ///   written as one atomic word, the tag last for a new thread and first for a freed one;
    /// - the ring of each live thread has `depth` entries that the device may write and nothing else uses, and it stays so
    ///   until no kernel runs that may have looked the thread up, also after the thread is freed;
    /// - every table of notify ids that a descriptor has named stays readable for as long as that;
    /// - the status word of a queue says `enabled` while its thread lives and no longer, and a word that was given up never
    ///   returns: no generation of a slot is used twice.
    ///
    /// # Panics
    /// If `slots` is above [`MAX_THREADS`](crate::spec::thread::MAX_THREADS).
    pub unsafe fn set_thread_table(&self, base: DeviceAddr, slots: usize) {
        // SAFETY: the caller owes the same.
        unsafe { self.queues.shared.table.set(base, slots) };
    }

    /// Tells where the table of communicators is. Called once, before the first launch.
    ///
    /// # Safety
    /// From now on [`MAX_COMMS`](crate::spec::comm::MAX_COMMS) entries from `base` on (8-byte aligned) stay readable for as
    /// long as a kernel runs on this device.
    pub unsafe fn set_comm_table(&self, base: DeviceAddr) {
        // SAFETY: the caller owes the same.
        unsafe { self.comms.set_table(base) };
    }

    /// Tells where the table of channel descriptors is; without one every channel handle is refused. Called once, before the
    /// first launch.
    ///
    /// # Safety
    /// From now on, for as long as a kernel runs on this device:
    /// - `slots` descriptors from `base` on (64-byte aligned) stay readable; the tag of each is written as one atomic word, last
    ///   for a new channel and first for a freed one, and no generation of a slot is used twice;
    /// - the work ring that a live descriptor names has `depth` blocks that the device may write and nothing else uses, and it
    ///   stays so until no kernel runs that may have looked the channel up.
    ///
    /// # Panics
    /// If `slots` is above [`MAX_CHANNELS`](crate::spec::channel::MAX_CHANNELS).
    pub unsafe fn set_channel_table(&self, base: DeviceAddr, slots: usize) {
        // SAFETY: the caller owes the same.
        unsafe { self.channels.set(base, slots) };
    }

    /// Tells which chip's descriptors to queue; Ascend950 unless this is called. Once, before the first launch.
    pub fn set_soc(&self, soc: Soc) {
        self.queues.shared.set_soc(soc);
    }

    /// The chip whose descriptors are queued.
    #[inline]
    pub fn soc(&self) -> Soc {
        self.queues.shared.soc()
    }

    /// Asks for [records of calls](crate::spec::record): core *n* writes them into ring *n* from `base` on. Called once,
    /// before the first launch. Calls then take several times as long, and wait while the ring of their core is full.
    ///
    /// # Safety
    /// From now on, for as long as a kernel runs on this device, a ring lies there for each core that runs one, aligned to 64
    /// bytes, readable and writable, and nothing but the reader of the records accesses it, `tail` as an atomic word.
    pub unsafe fn set_record_rings(&self, base: DeviceAddr) {
        // SAFETY: the caller owes the same.
        unsafe { self.queues.shared.set_records(base.0) };
    }

    /// Runs `kernel` on core `core` of this device: until it returns, calls of this thread of execution are the core's. Then
    /// the limits of waits are back at their defaults, communicators that it has locked are free, and what a batch that it
    /// left open had staged is dropped.
    ///
    /// # Errors
    /// [`CoreBusy`] if `core` runs a kernel, or is not below [`MAX_CORES`].
    pub fn run<R>(&self, core: usize, kernel: impl FnOnce() -> R) -> Result<(R, LaunchEnd), CoreBusy> {
        let busy = CoreBusy { core };
        let bit = 1_u64.checked_shl(core.try_into().map_err(|_| busy)?).ok_or(busy)?;
        // Acquire pairs with the release at the end of the core's kernel before.
        if self.busy.fetch_or(bit, Ordering::Acquire) & bit != 0 {
            return Err(busy);
        }
        let core = Core::new(self, core as u32);
        let mut running = Running::enter(&core, bit);
        let result = kernel();
        Ok((result, running.leave()))
    }

    #[inline(always)]
    pub(crate) fn queues(&self) -> &Queues {
        &self.queues
    }

    pub(crate) fn channels(&self) -> &ChannelPlace {
        &self.channels
    }

    pub(crate) fn comms(&self) -> &Comms {
        &self.comms
    }
}

impl Default for Device {
    fn default() -> Self {
        Self::new()
    }
}

/// The core runs a kernel already, or there is no such core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("core {core} runs a kernel already, or is not one of 0..{MAX_CORES}")]
pub struct CoreBusy {
    /// The core.
    pub core: usize,
}

/// How long a call waits for room in a full queue, in microseconds, unless the kernel sets another limit: 1856 s.
pub const SQ_FULL_TIMEOUT_US: u64 = 1856 * 1_000_000;
/// How long a wait without a limit of its own waits for its notify, in seconds, unless the kernel sets another limit.
pub const NOTIFY_WAIT_TIMEOUT_S: u32 = 1836;

/// One core of a device during a launch: what calls on it share, and calls on other cores don't.
#[repr(C)]
pub(crate) struct Core<'d> {
    device: &'d Device,
    table: ThreadTable,
    queues: CoreQueues,
    notify_wait_timeout_s: AtomicU32,
    owner: Owner,
}

/// What a kernel left behind, see [`Device::run`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchEnd {
    /// It had started a batch and not ended it: the staged tasks were dropped.
    pub batch_left_open: bool,
}

impl<'d> Core<'d> {
    /// Core `core` with the default time-outs and no batch.
    pub(crate) fn new(device: &'d Device, core: u32) -> Self {
        let queues = CoreQueues::new(core);
        queues.set_sq_full_timeout_us(SQ_FULL_TIMEOUT_US);
        let notify_wait_timeout_s = AtomicU32::new(NOTIFY_WAIT_TIMEOUT_S);
        Self {
            device,
            table: device.queues.shared.table.get(),
            queues,
            notify_wait_timeout_s,
            owner: Owner::core(core),
        }
    }

    /// The device that the core belongs to.
    #[inline(always)]
    pub(crate) fn device(&self) -> &'d Device {
        self.device
    }

    /// The thread table of the device.
    #[inline(always)]
    pub(crate) fn table(&self) -> &ThreadTable {
        &self.table
    }

    /// State of its calls on queues.
    #[inline(always)]
    pub(crate) fn queues(&self) -> &CoreQueues {
        &self.queues
    }

    /// What it owns locks as.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// How long a wait without a limit of its own waits for its notify, in seconds; 0 = without limit.
    pub(crate) fn notify_wait_timeout_s(&self) -> u32 {
        self.notify_wait_timeout_s.load(Ordering::Relaxed)
    }

    /// Sets [`notify_wait_timeout_s`](Self::notify_wait_timeout_s).
    pub(crate) fn set_notify_wait_timeout_s(&self, s: u32) {
        self.notify_wait_timeout_s.store(s, Ordering::Relaxed);
    }

    /// Room for a record of a call that queues nothing, if calls are recorded.
    ///
    /// # Errors
    /// [`Error::RecordsNotRead`].
    pub(crate) fn room_for_note<P: Platform>(&self, io: &P) -> Result<Note, Error> {
        self.queues.room_for_note(io, &self.device.queues)
    }

    /// Unlocks the communicators that the kernel has locked.
    fn release_comms<P: Platform>(&self, io: &P) {
        self.device.comms.release_all(self.owner, |place| {
            // Without room the host reads no records any more.
            if let Ok(note) = self.room_for_note(io) {
                note.write(io, EntryPoint::RELEASE_COMM, place);
            }
        });
    }

    /// Ends a launch.
    pub(crate) fn finish(&self) -> LaunchEnd {
        self.device.comms.release_all(self.owner, |_| {});
        LaunchEnd { batch_left_open: self.queues.discard_batch(&self.device.queues) }
    }
}

/// A launch: its core is the current one of this thread of execution. Ends when it is dropped, also by a panic.
struct Running<'c, 'd> {
    core: &'c Core<'d>,
    bit: u64,
    /// The core before: null, but for a launch inside of another one.
    before: *const c_void,
    is_over: bool,
}

impl<'c, 'd> Running<'c, 'd> {
    fn enter(core: &'c Core<'d>, bit: u64) -> Self {
        let before = hooks::current();
        hooks::set_current(ptr::from_ref(core).cast());
        Self { core, bit, before, is_over: false }
    }

    fn leave(&mut self) -> LaunchEnd {
        self.is_over = true;
        self.core.release_comms(&Hooks);
        hooks::set_current(self.before);
        let end = self.core.finish();
        self.core.device.busy.fetch_and(!self.bit, Ordering::Release);
        end
    }
}

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.leave();
        }
    }
}

/// What is done on a core. A trait of our own, because closures can't be told to be inlined.
pub(crate) trait OnCore {
    /// What it gives.
    type Output;
    /// Does it.
    fn run(self, core: &Core<'_>, io: &Hooks) -> Self::Output;
}

/// Does `what` with the core that runs the caller, and the platform; `outside` a launch.
#[inline(always)]
pub(crate) fn with_core<T: OnCore>(what: T, outside: T::Output) -> T::Output {
    // SAFETY: null, or what `Running::enter` has set in this thread of execution (contract of `hcomm_port_core`): a core on
    // the stack of a `Device::run` that has not returned, since `Running` takes the word back before it does. The reference
    // ends with `what`, which runs in this call.
    match unsafe { hooks::current().cast::<Core<'_>>().as_ref() } {
        Some(core) => what.run(core, &Hooks),
        None => outside,
    }
}

impl<R, F: FnOnce(&Core<'_>, &Hooks) -> R> OnCore for F {
    type Output = R;

    #[inline]
    fn run(self, core: &Core<'_>, io: &Hooks) -> R {
        self(core, io)
    }
}

/// Does `run` with the core that runs the caller.
///
/// # Errors
/// [`Error::NoCore`] outside a launch.
#[inline]
pub(crate) fn change_core(run: impl FnOnce(&Core<'_>)) -> Result<(), Error> {
    on_core(|core, _| {
        run(core);
        Ok(())
    })
}

/// As [`with_core`].
///
/// # Errors
/// [`Error::NoCore`] outside a launch, and those of `run`.
#[inline(always)]
pub(crate) fn on_core<R>(run: impl FnOnce(&Core<'_>, &Hooks) -> Result<R, Error>) -> Result<R, Error> {
    with_core(run, Err(Error::NoCore))
}
