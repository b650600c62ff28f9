//! A device for the fuzz targets that need one: thread table and rings on the heap, where a sanitizer watches their ends, and
//! a platform that counts what is asked of it.
//!
//! Targets that use `host-stub` don't use this: it has a platform of its own.

use std::cell::Cell;
use std::ptr;

use embedded_hal::delay::DelayNs;
use hcomm_aicpu::Device;
use hcomm_aicpu::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::spec::thread::{DescriptorTag, Engine, NotifyTable, ThreadDescriptor, ThreadHandle};
use hcomm_aicpu::spec::{DeviceAddr, SQE_SIZE, Sqe};
use zerocopy::FromZeros;

/// Slots of the thread table.
pub const SLOTS: usize = 8;
/// The slot of an AICPU_TS thread.
pub const LIVE: usize = 3;
/// The slot of a CPU_TS thread.
pub const OTHER_ENGINE: usize = 5;
/// Generation of both threads.
pub const GENERATION: u16 = 7;
/// Notifies of each thread.
pub const NOTIFIES: u32 = 2;
/// Entries of the ring.
pub const DEPTH: usize = 5;
/// What a ring entry holds before it is written.
pub const STALE: Entry = Entry(Sqe([0xa5a5_a5a5_a5a5_a5a5; SQE_SIZE / 8]));

/// One aligned ring entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Entry(pub Sqe);

thread_local! {
    /// Tail of the last doorbell.
    static TAIL: Cell<u32> = const { Cell::new(0) };
    static DOORBELLS: Cell<u32> = const { Cell::new(0) };
    static NOW_US: Cell<u64> = const { Cell::new(0) };
}

/// A device with two threads.
pub struct Rig {
    device: Box<Device>,
    /// The thread table. On the heap and exactly as long as the device is told.
    table: Vec<ThreadDescriptor>,
    ring: Vec<Entry>,
    /// What the descriptors point to.
    _notify_ids: Vec<u32>,
}

impl Rig {
    /// A device whose ring was never written.
    pub fn new() -> Self {
        let mut table: Vec<ThreadDescriptor> = vec![FromZeros::new_zeroed(); SLOTS];
        let mut ring: Vec<Entry> = vec![STALE; DEPTH];
        let mut notify_ids: Vec<u32> = vec![40, 41];
        table[LIVE] = ThreadDescriptor {
            tag: DescriptorTag::live(GENERATION),
            engine: Engine::AICPU_TS,
            stream_id: 3,
            sq_id: 9,
            depth: DEPTH as u32,
            sq_base: DeviceAddr::from(ring.as_mut_ptr()),
            regs: 0x1234,
            notifies: NotifyTable::new(DeviceAddr::from(notify_ids.as_mut_ptr()), NOTIFIES as u16),
            comm: 0,
            reserved: 0,
        };
        table[OTHER_ENGINE] = ThreadDescriptor { engine: Engine::CPU_TS, ..table[LIVE] };
        let device = Box::new(Device::new());
        // SAFETY: table and ring are on the heap, where a move of the rig leaves them, and live as long as the device.
        unsafe { device.set_thread_table(DeviceAddr::from(table.as_mut_ptr()), SLOTS) };
        TAIL.set(0);
        Self { device, table, ring, _notify_ids: notify_ids }
    }

    /// Address of the thread table.
    pub fn table_base(&self) -> u64 {
        self.table.as_ptr() as u64
    }

    /// Handle of a slot, which need not be in use or in the table, in a generation.
    pub fn handle(&self, slot: u64, generation: u16) -> ThreadHandle {
        let addr = self.table_base().wrapping_add(slot.wrapping_mul(size_of::<ThreadDescriptor>() as u64));
        ThreadHandle::new(DeviceAddr(addr & 0xffff_ffff_ffff), generation)
    }

    /// The handle that works.
    pub fn live(&self) -> ThreadHandle {
        self.handle(LIVE as u64, GENERATION)
    }

    /// The handle of a live thread that is no AICPU_TS thread.
    pub fn other_engine(&self) -> ThreadHandle {
        self.handle(OTHER_ENGINE as u64, GENERATION)
    }

    /// Calls `run` in a launch. The device runs each task at once.
    ///
    /// Answers the doorbells of the launch too.
    pub fn launch<R>(&self, run: impl FnOnce() -> R) -> (R, u32) {
        DOORBELLS.set(0);
        let (result, _) = self.device.run(0, run).expect("launches of a rig follow each other");
        (result, DOORBELLS.get())
    }

    /// Whether the ring was not written since the rig was made.
    pub fn ring_is_untouched(&self) -> bool {
        // SAFETY: `ring` is a live boxed slice; the volatile reads see what the crate wrote through the descriptor's address.
        self.ring.iter().all(|entry| unsafe { ptr::from_ref(entry).read_volatile() } == STALE)
    }
}

impl Default for Rig {
    fn default() -> Self {
        Self::new()
    }
}

/// The platform: the device has taken all tasks at the doorbell.
struct Plain;

static PLAIN: Plain = Plain;
hcomm_aicpu::export_platform!(PLAIN);

impl Platform for Plain {
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        assert_eq!((sq_id, regs), (9, 0x1234), "another queue");
        true
    }

    fn head(&self, _queue: QueueId) -> Result<u32, ReadFailed> {
        Ok(TAIL.get())
    }

    fn status(&self, _queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        Ok(QueueStatus::ENABLED)
    }

    fn ring(&self, _queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        assert!(tail < DEPTH as u32, "tail {tail} of a ring of {DEPTH} entries");
        TAIL.set(tail);
        DOORBELLS.set(DOORBELLS.get() + 1);
        Ok(())
    }

    fn store_barrier(&self) {}

    fn now_us(&self) -> u64 {
        NOW_US.set(NOW_US.get() + 1);
        NOW_US.get()
    }

    fn delay(&self) -> impl DelayNs {
        PlainDelay
    }
}

/// Delays that let the clock go on.
struct PlainDelay;

impl DelayNs for PlainDelay {
    fn delay_ns(&mut self, ns: u32) {
        NOW_US.set(NOW_US.get() + u64::from(ns / 1000));
    }
}
