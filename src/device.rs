//! Context of a device and of a core that runs kernels on it.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::batch::Batch;
use crate::comm::Comms;
use crate::queue::QueueSlot;
use crate::spec::DeviceAddr;
use crate::spec::soc::Soc;
#[cfg(not(loom))]
pub(crate) use crate::spec::thread::MAX_THREADS as MAX_QUEUES;
use crate::spec::thread::{DESCRIPTOR_SIZE, ThreadHandle};
use crate::sync::const_fn;
use crate::task_id::IdAllocator;

/// Loom follows each lock: few are enough for it.
#[cfg(loom)]
pub(crate) const MAX_QUEUES: usize = 4;

/// State that the cores of one device share: where the thread table is, the device's own state of each queue, task ids.
///
/// Private to the device: the host never reads or writes it.
#[repr(C)]
pub struct Device {
    queues: [QueueSlot; MAX_QUEUES],
    table_base: AtomicU64,
    table_len: AtomicU64,
    /// Device type of the SoC, or 0 for an Ascend950: a new device is all zero.
    soc: AtomicU32,
    ids: IdAllocator,
    comms: Comms,
}

impl Device {
    const_fn! {
        /// A device without threads: every handle is refused until [`set_thread_table`](Self::set_thread_table).
        pub fn new() -> Self {
            Self {
                queues: queue_slots(),
                table_base: AtomicU64::new(0),
                table_len: AtomicU64::new(0),
                soc: AtomicU32::new(0),
                ids: IdAllocator::new(),
                comms: Comms::new(),
            }
        }
    }

    /// Tells where the table of thread descriptors is. Called once, before the first launch.
    ///
    /// # Safety
    /// From now on `slots` descriptors from `base` on (64-byte aligned) stay readable for as long as a kernel runs on
    /// this device, and each live one names a ring of `depth` entries that the device may write and a table of
    /// `notify_count` ids that it may read. The status word of a queue says `enabled` while its thread lives and no longer, and
    /// no two lives of a slot have the same one.
    ///
    /// # Panics
    /// If `slots` is above [`MAX_THREADS`](crate::spec::thread::MAX_THREADS).
    pub unsafe fn set_thread_table(&self, base: DeviceAddr, slots: usize) {
        assert!(slots <= MAX_QUEUES, "{slots} thread slots, at most {MAX_QUEUES}");
        self.table_base.store(base.0, Ordering::Relaxed);
        self.table_len.store(slots as u64 * DESCRIPTOR_SIZE, Ordering::Relaxed);
    }

    /// Tells where the table of communicators is. Called once, before the first launch.
    ///
    /// # Safety
    /// From now on [`MAX_COMMS`](crate::spec::comm::MAX_COMMS) entries from `base` on (8-byte aligned) stay readable for as
    /// long as a kernel runs on this device.
    pub unsafe fn set_comm_table(&self, base: DeviceAddr) {
        self.comms.set_table(base);
    }

    pub(crate) fn comms(&self) -> &Comms {
        &self.comms
    }

    /// Tells which chip's descriptors to queue; Ascend950 unless this is called. Once, before the first launch.
    pub fn set_soc(&self, soc: Soc) {
        self.soc.store(soc as u32, Ordering::Relaxed);
    }

    /// The chip whose descriptors are queued.
    #[inline]
    pub fn soc(&self) -> Soc {
        Soc::from_device_type(self.soc.load(Ordering::Relaxed)).unwrap_or(Soc::Ascend950)
    }

    /// Base address and length in bytes of the thread table. Whoever starts a launch orders it after `set_thread_table`.
    #[inline]
    pub(crate) fn thread_table(&self) -> (u64, u64) {
        (self.table_base.load(Ordering::Relaxed), self.table_len.load(Ordering::Relaxed))
    }

    /// Index of the device's own state of the queue behind `handle`. Descriptors that lie side by side have different ones;
    /// any number has one.
    #[inline]
    pub(crate) fn queue_index(&self, handle: ThreadHandle) -> usize {
        (handle.addr().0 / DESCRIPTOR_SIZE) as usize % MAX_QUEUES
    }

    /// That state.
    #[inline]
    pub(crate) fn queue_of(&self, handle: ThreadHandle) -> &QueueSlot {
        self.queue_at(self.queue_index(handle))
    }

    /// The state with this index, which is one of [`queue_index`](Self::queue_index).
    #[inline]
    pub(crate) fn queue_at(&self, index: usize) -> &QueueSlot {
        &self.queues[index % MAX_QUEUES]
    }

    pub(crate) fn queues(&self) -> &[QueueSlot] {
        &self.queues
    }

    pub(crate) fn ids(&self) -> &IdAllocator {
        &self.ids
    }
}

#[cfg(not(loom))]
const fn queue_slots() -> [QueueSlot; MAX_QUEUES] {
    [const { QueueSlot::new() }; MAX_QUEUES]
}

#[cfg(loom)]
fn queue_slots() -> [QueueSlot; MAX_QUEUES] {
    core::array::from_fn(|_| QueueSlot::new())
}

impl Default for Device {
    fn default() -> Self {
        Self::new()
    }
}

/// Default of [`Core::sq_full_timeout_us`]: 1856 s.
pub const SQ_FULL_TIMEOUT_US: u64 = 1856 * 1_000_000;
/// Default of [`Core::notify_wait_timeout_s`].
pub const NOTIFY_WAIT_TIMEOUT_S: u32 = 1836;

/// One core of a device: what calls on it share, and calls on other cores don't.
#[repr(C)]
pub struct Core<'d> {
    device: &'d Device,
    batch: Batch,
    sq_full_timeout_us: AtomicU64,
    notify_wait_timeout_s: AtomicU32,
}

/// What a kernel left behind, see [`Core::finish_launch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchEnd {
    /// It had started a batch and not ended it: the staged tasks were dropped.
    pub batch_left_open: bool,
}

impl<'d> Core<'d> {
    const_fn! {
        /// A core with the default time-outs and no batch.
        pub fn new(device: &'d Device) -> Self {
            Self {
                device,
                sq_full_timeout_us: AtomicU64::new(SQ_FULL_TIMEOUT_US),
                notify_wait_timeout_s: AtomicU32::new(NOTIFY_WAIT_TIMEOUT_S),
                batch: Batch::new(),
            }
        }
    }

    /// The device that the core belongs to.
    #[inline]
    pub fn device(&self) -> &'d Device {
        self.device
    }

    /// How long a call on this core waits for room in a full queue, in microseconds; 0 = for ever.
    pub fn sq_full_timeout_us(&self) -> u64 {
        self.sq_full_timeout_us.load(Ordering::Relaxed)
    }

    /// Sets [`sq_full_timeout_us`](Self::sq_full_timeout_us).
    pub fn set_sq_full_timeout_us(&self, us: u64) {
        self.sq_full_timeout_us.store(us, Ordering::Relaxed);
    }

    /// How long a wait without a limit of its own waits for its notify, in seconds; 0 = for ever.
    pub fn notify_wait_timeout_s(&self) -> u32 {
        self.notify_wait_timeout_s.load(Ordering::Relaxed)
    }

    /// Sets [`notify_wait_timeout_s`](Self::notify_wait_timeout_s).
    pub fn set_notify_wait_timeout_s(&self, s: u32) {
        self.notify_wait_timeout_s.store(s, Ordering::Relaxed);
    }

    /// Ends a launch: the core is as new for the next kernel.
    pub fn finish_launch(&self) -> LaunchEnd {
        self.set_sq_full_timeout_us(SQ_FULL_TIMEOUT_US);
        self.set_notify_wait_timeout_s(NOTIFY_WAIT_TIMEOUT_S);
        self.device.comms.release_all(self);
        LaunchEnd { batch_left_open: self.batch.discard(self.device) }
    }

    #[inline]
    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }
}
