//! A platform of plain memory for tests of the device crate alone: one thread, a ring on the heap, and a device that takes
//! descriptors at the doorbell and checks them. Outside a launch there is no core, and a call returns what it must then.
//!
//! A program that uses this crate can't use host-stub, which is a platform too.

use std::cell::{Cell, RefCell};
use std::ptr;

use embedded_hal::delay::DelayNs;
use hcomm_aicpu::Device;
use hcomm_aicpu::abi::HcommThreadResAcquireTimeOut;
use hcomm_aicpu::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use hcomm_aicpu::spec::queue::QueueStatus;
use hcomm_aicpu::spec::thread::{DescriptorTag, Engine, NotifyTable, ThreadDescriptor, ThreadHandle};
use hcomm_aicpu::spec::{DeviceAddr, SQE_SIZE, Sqe};
use zerocopy::FromZeros;

/// Slots of the thread table.
pub const SLOTS: usize = 8;
/// The slot of the AICPU_TS thread.
pub const LIVE: usize = 3;
/// The slot of a CPU_TS thread.
pub const OTHER_ENGINE: usize = 5;
/// Generation of both threads.
pub const GENERATION: u16 = 7;
/// The queue.
pub const SQ_ID: u32 = 9;
const REGS: u64 = 0x1234;
/// Notifies of each thread.
pub const NOTIFIES: u32 = 2;
/// What a ring entry holds before it is written.
pub const STALE: Sqe = Sqe([0xa5a5_a5a5_a5a5_a5a5; SQE_SIZE / 8]);

/// One aligned ring entry.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Entry(Sqe);

/// The device's side: registers, clock, and what it has been asked for.
struct Port {
    status: Cell<QueueStatus>,
    refuse_ring: Cell<bool>,
    head: Cell<u32>,
    rung: Cell<u32>,
    /// Entries that run when the head is read.
    speed: Cell<u32>,
    /// Looks at the head before any entry runs.
    idle_looks: Cell<u32>,
    now_us: Cell<u64>,
    /// How much longer a delay takes than it was asked for.
    slowness: Cell<u64>,
    delays: RefCell<Vec<u32>>,
    head_reads: Cell<u32>,
    doorbells: RefCell<Vec<u32>>,
    /// Descriptors taken, each with its slot.
    taken: RefCell<Vec<(u32, Sqe)>>,
    ring: Cell<*const Entry>,
    depth: Cell<u32>,
    /// The ring as the last barrier has made it visible; of small rings.
    visible: RefCell<Vec<Sqe>>,
}

thread_local! {
    static PORT: Port = const {
        Port {
            status: Cell::new(QueueStatus::ENABLED),
            refuse_ring: Cell::new(false),
            head: Cell::new(0),
            rung: Cell::new(0),
            speed: Cell::new(0),
            idle_looks: Cell::new(0),
            now_us: Cell::new(0),
            slowness: Cell::new(1),
            delays: RefCell::new(Vec::new()),
            head_reads: Cell::new(0),
            doorbells: RefCell::new(Vec::new()),
            taken: RefCell::new(Vec::new()),
            ring: Cell::new(ptr::null()),
            depth: Cell::new(0),
            visible: RefCell::new(Vec::new()),
        }
    };
}

impl Port {
    fn slot(&self, index: u32) -> Sqe {
        assert!(index < self.depth.get());
        // SAFETY: an entry of the ring of the one rig of this thread, which lives; the crate writes it by its address.
        unsafe { self.ring.get().add(index as usize).cast::<Sqe>().read_volatile() }
    }

    fn after(&self, index: u32) -> u32 {
        (index + 1) % self.depth.get()
    }

    /// What was published and has not run must be as it was taken.
    fn check_outstanding(&self) {
        let taken = self.taken.borrow();
        let outstanding = (self.rung.get() + self.depth.get() - self.head.get()) % self.depth.get();
        for (slot, sqe) in taken.iter().rev().take(outstanding as usize) {
            assert_eq!(self.slot(*slot), *sqe, "slot {slot} was written while the device may read it");
        }
    }

    fn run(&self, entries: u32) {
        if entries != 0 {
            self.check_outstanding();
        }
        for _ in 0..entries {
            if self.head.get() != self.rung.get() {
                self.head.set(self.after(self.head.get()));
            }
        }
    }
}

/// A device with one thread, and the thread's handle.
pub struct Rig {
    device: Box<Device>,
    /// First entry of the thread table.
    table: *mut ThreadDescriptor,
    /// What the device knows by its address, on the heap and exactly as long as it is told.
    _memory: (Vec<ThreadDescriptor>, Vec<Entry>, Vec<u32>),
}

impl Rig {
    /// A device whose head and tail are at 0, and which runs nothing.
    pub fn new(depth: u32) -> Self {
        Self::starting_at(depth, 0)
    }

    /// A device whose head and tail are at `head`.
    pub fn starting_at(depth: u32, head: u32) -> Self {
        let mut table: Vec<ThreadDescriptor> = vec![FromZeros::new_zeroed(); SLOTS];
        let mut ring = vec![Entry(STALE); depth as usize];
        let mut notify_ids = vec![40_u32, 41];
        table[LIVE] = ThreadDescriptor {
            tag: DescriptorTag::live(GENERATION),
            engine: Engine::AICPU_TS,
            stream_id: 3,
            sq_id: SQ_ID,
            depth,
            sq_base: DeviceAddr::from(ring.as_mut_ptr()),
            regs: REGS,
            notifies: NotifyTable::new(DeviceAddr::from(notify_ids.as_mut_ptr()), NOTIFIES as u16),
            comm: 0,
            reserved: 0,
        };
        table[OTHER_ENGINE] = ThreadDescriptor { engine: Engine::CPU_TS, ..table[LIVE] };
        let device = Box::new(Device::new());
        let first = table.as_mut_ptr();
        // SAFETY: table and ring are on the heap, where a move of the rig leaves them, and live as long as the device.
        unsafe { device.set_thread_table(DeviceAddr::from(first), SLOTS) };
        PORT.with(|port| {
            port.status.set(QueueStatus::ENABLED);
            port.head.set(head);
            port.rung.set(head);
            port.depth.set(depth);
            port.ring.set(ring.as_ptr());
            port.speed.set(0);
            port.idle_looks.set(0);
            port.slowness.set(1);
            port.taken.take();
            port.visible.take();
            port.refuse_ring.set(false);
        });
        let rig = Self { device, table: first, _memory: (table, ring, notify_ids) };
        rig.forget_calls();
        rig
    }

    /// Calls `run` in a launch whose calls wait a second for room.
    pub fn launch<R>(&self, run: impl FnOnce() -> R) -> R {
        self.launch_with_defaults(|| {
            assert_eq!(HcommThreadResAcquireTimeOut(1.0), 0);
            run()
        })
    }

    /// Calls `run` in a launch whose calls wait as long as the library's defaults say.
    pub fn launch_with_defaults<R>(&self, run: impl FnOnce() -> R) -> R {
        let (result, _) = self.device.run(0, run).expect("launches of a rig follow each other");
        result
    }

    /// The handle that works.
    pub fn live(&self) -> u64 {
        self.handle(LIVE as i64, GENERATION)
    }

    /// Handle of a slot, which need not be in use or in the table, in a generation.
    pub fn handle(&self, slot: i64, generation: u16) -> u64 {
        let addr = (self.table as i64 + slot * size_of::<ThreadDescriptor>() as i64) as u64;
        ThreadHandle::new(DeviceAddr(addr & 0xffff_ffff_ffff), generation).0
    }

    /// Numbers that name no AICPU_TS thread: odd, unaligned, far outside, unused, of another generation or engine.
    pub fn bad_handles(&self) -> Vec<u64> {
        let live = self.live();
        let near = [live | 1, live + 8, live - 32, live ^ 1 << 48, live ^ 1 << 63, live & 0xffff_ffff_ffff];
        let slots = [0, LIVE as i64 + 1, -1, SLOTS as i64, 1 << 20, -(1 << 20), OTHER_ENGINE as i64];
        let of_slots = slots.map(|slot| self.handle(slot, GENERATION));
        let unused = [self.handle(0, 0), self.handle(0, 1)];
        [&[u64::MAX, u64::MAX << 48, 1, 64, 0x1234][..], &near, &of_slots, &unused].concat()
    }

    /// Handle of a live thread that is no AICPU_TS thread.
    pub fn of_other_engine(&self) -> u64 {
        self.handle(OTHER_ENGINE as i64, GENERATION)
    }

    /// The host takes the thread back: what the descriptor still says of its notifies is no longer there to be read.
    pub fn free_thread(&self) {
        // SAFETY: a slot of the table, which lives in `_memory` and is only reached through this pointer.
        unsafe { (&raw mut (*self.table.add(LIVE)).tag.magic).write_volatile(0) };
        // SAFETY: the same slot of the same table.
        unsafe { (&raw mut (*self.table.add(LIVE)).notifies).write_volatile(NotifyTable::default()) };
    }

    /// Every ring entry.
    pub fn slots(&self) -> Vec<Sqe> {
        PORT.with(|port| (0..port.depth.get()).map(|index| port.slot(index)).collect())
    }

    /// Descriptors that the device was given, each with its slot, since the last call of this.
    pub fn take_published(&self) -> Vec<(u32, Sqe)> {
        PORT.with(|port| {
            port.check_outstanding();
            port.taken.take()
        })
    }

    /// How many descriptors the device was given.
    pub fn published(&self) -> usize {
        PORT.with(|port| port.taken.borrow().len())
    }

    /// Forgets doorbells, delays and reads of the head.
    pub fn forget_calls(&self) {
        PORT.with(|port| (port.delays.take(), port.doorbells.take(), port.head_reads.set(0)));
    }

    /// Tails of the doorbells that were taken.
    pub fn doorbells(&self) -> Vec<u32> {
        PORT.with(|port| port.doorbells.borrow().clone())
    }

    /// Delays that were asked for, in nanoseconds.
    pub fn delays(&self) -> Vec<u32> {
        PORT.with(|port| port.delays.borrow().clone())
    }

    /// How often the head was read.
    pub fn head_reads(&self) -> u32 {
        PORT.with(|port| port.head_reads.get())
    }

    /// Sets the status word.
    pub fn set_status(&self, status: QueueStatus) {
        PORT.with(|port| port.status.set(status));
    }

    /// Doorbells are refused, or taken again.
    pub fn refuse_ring(&self, refuse: bool) {
        PORT.with(|port| port.refuse_ring.set(refuse));
    }

    /// The device runs some of what it was given.
    pub fn run(&self, entries: u32) {
        PORT.with(|port| port.run(entries));
    }

    /// The device runs `speed` entries at each look at its head, after `idle_looks` of them.
    pub fn run_at_looks(&self, speed: u32, idle_looks: u32) {
        PORT.with(|port| (port.speed.set(speed), port.idle_looks.set(idle_looks)));
    }

    /// A delay takes so many times as long as it was asked for.
    pub fn slow_delays(&self, times: u64) {
        PORT.with(|port| port.slowness.set(times));
    }
}

/// The platform: each thread of the process has a device of its own.
struct Plain;

static PLAIN: Plain = Plain;
hcomm_aicpu::export_platform!(PLAIN);

impl Platform for Plain {
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        (sq_id, regs) == (SQ_ID, REGS)
    }

    fn head(&self, _queue: QueueId) -> Result<u32, ReadFailed> {
        PORT.with(|port| {
            port.head_reads.set(port.head_reads.get() + 1);
            match port.idle_looks.get() {
                0 => port.run(port.speed.get()),
                looks => port.idle_looks.set(looks - 1),
            }
            Ok(port.head.get())
        })
    }

    fn status(&self, _queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        PORT.with(|port| Ok(port.status.get()))
    }

    fn ring(&self, _queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        PORT.with(|port| {
            assert!(tail < port.depth.get(), "tail {tail} of a ring of {} entries", port.depth.get());
            if port.refuse_ring.get() {
                return Err(DoorbellRefused);
            }
            assert_ne!(tail, port.rung.get(), "a doorbell for nothing");
            let mut slot = port.rung.get();
            while slot != tail {
                let sqe = port.slot(slot);
                if let Some(visible) = port.visible.borrow().get(slot as usize) {
                    assert_eq!(sqe, *visible, "slot {slot} was written after the barrier");
                }
                port.taken.borrow_mut().push((slot, sqe));
                slot = port.after(slot);
                // A full ring looks like an empty one: what is outstanding would be lost.
                assert_ne!(slot, port.head.get(), "more than depth - 1 entries");
            }
            port.rung.set(tail);
            port.doorbells.borrow_mut().push(tail);
            Ok(())
        })
    }

    fn store_barrier(&self) {
        PORT.with(|port| {
            if port.depth.get() <= 8 {
                *port.visible.borrow_mut() = (0..port.depth.get()).map(|index| port.slot(index)).collect();
            }
        });
    }

    fn now_us(&self) -> u64 {
        PORT.with(|port| port.now_us.get())
    }

    fn delay(&self) -> impl DelayNs {
        PlainDelay
    }
}

/// Delays that let the clock go on.
struct PlainDelay;

impl DelayNs for PlainDelay {
    fn delay_ns(&mut self, ns: u32) {
        PORT.with(|port| {
            port.delays.borrow_mut().push(ns);
            assert!(port.delays.borrow().len() < 100_000_000, "a wait that does not end");
            port.now_us.set(port.now_us.get() + u64::from(ns / 1000) * port.slowness.get());
        });
    }
}
