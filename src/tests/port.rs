//! A device of one thread over plain memory, for unit tests: a ring, a thread table, and a platform that writes down each call.

use core::cell::{Cell, RefCell};

use embedded_hal::delay::DelayNs;
use embedded_hal_mock::eh1::delay::{CheckedDelay, Transaction};

use crate::context::Device;
use crate::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use crate::spec::queue::QueueStatus;
use crate::spec::thread::{DescriptorTag, Engine, NotifyTable, ThreadDescriptor, ThreadHandle};
use crate::spec::{DeviceAddr, SQE_SIZE, Sqe};

/// One call on the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Head,
    Status,
    Slot(u32),
    Barrier,
    Ring(u32),
}

/// See the module.
pub(crate) struct TestPort {
    pub(crate) calls: RefCell<Vec<Call>>,
    pub(crate) head: Cell<u32>,
    /// The device runs this many entries each time the head is read, up to the rung tail.
    pub(crate) speed: Cell<u32>,
    pub(crate) status: Cell<QueueStatus>,
    pub(crate) refuse_ring: Cell<bool>,
    /// Code of each read of a register, unless 0.
    pub(crate) unreadable: Cell<i32>,
    /// What the platform gives as return addresses.
    pub(crate) frames: [u64; 2],
    pub(crate) now_us: Cell<u64>,
    looks_until_run: Cell<u32>,
    /// What the count above starts again from; 0: it is counted once.
    looks_again: Cell<u32>,
    delay: RefCell<CheckedDelay>,
    rung: Cell<u32>,
    // Vectors, not boxes: a box that is moved makes the addresses of its contents stale to Miri.
    ring: Vec<Entry>,
    table: Vec<ThreadDescriptor>,
    notify_ids: Vec<u32>,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Entry(Sqe);

/// What a slot holds before it is written: every bit that a builder leaves alone would show.
pub(crate) const STALE: Sqe = Sqe([0xa5a5_a5a5_a5a5_a5a5; SQE_SIZE / 8]);
/// Notifies of the thread.
pub(crate) const NOTIFY_IDS: [u32; 3] = [40, 0x1_ffff, 0x2_0000];
pub(crate) const GENERATION: u16 = 7;
/// Slot of the thread in the table.
const SLOT: usize = 2;

impl TestPort {
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            calls: RefCell::default(),
            head: Cell::new(0),
            speed: Cell::new(0),
            status: Cell::new(QueueStatus::ENABLED),
            refuse_ring: Cell::new(false),
            unreadable: Cell::new(0),
            frames: [0x4020_0001, 0x4020_0002],
            now_us: Cell::new(0),
            looks_until_run: Cell::new(0),
            looks_again: Cell::new(0),
            delay: RefCell::new(CheckedDelay::new(&[])),
            rung: Cell::new(0),
            ring: vec![Entry(STALE); depth as usize],
            notify_ids: NOTIFY_IDS.to_vec(),
            table: vec![zerocopy::FromZeros::new_zeroed(); SLOT + 3],
        }
    }

    /// Head and tail start here.
    pub(crate) fn starting_at(depth: u32, head: u32) -> Self {
        let port = Self::new(depth);
        port.head.set(head);
        port.rung.set(head);
        port
    }

    /// The device runs everything at the `looks`th look at the head from now on, and nothing before.
    pub(crate) fn run_after_looks(&self, looks: u32) {
        self.looks_until_run.set(looks);
    }

    /// The same again and again.
    pub(crate) fn run_after_each_looks(&self, looks: u32) {
        self.looks_until_run.set(looks);
        self.looks_again.set(looks);
    }

    /// The host frees the thread and gives its slot to another one, whose handle and generation this gives.
    pub(crate) fn next_thread(&mut self) -> (ThreadHandle, u16) {
        let generation = self.table[SLOT].tag.generation + 1;
        self.table[SLOT].tag = DescriptorTag::live(generation);
        (self.handle_of(SLOT, generation), generation)
    }

    /// From now on exactly these delays, in nanoseconds, must be asked for.
    pub(crate) fn expect_delays(&self, delays: &[u32]) {
        let transactions: Vec<_> = delays.iter().map(|ns| Transaction::delay_ns(*ns)).collect();
        self.delay.borrow_mut().update_expectations(&transactions);
    }

    /// A device that knows this thread table, with the one thread alive.
    pub(crate) fn device(&mut self) -> Box<Device> {
        let sq_base = DeviceAddr::from(self.ring.as_mut_ptr());
        self.table[SLOT] = ThreadDescriptor {
            tag: DescriptorTag::live(GENERATION),
            engine: Engine::AICPU_TS,
            stream_id: 3,
            sq_id: 9,
            depth: self.ring.len() as u32,
            sq_base,
            regs: 0x1234,
            notifies: NotifyTable::new(DeviceAddr::from(self.notify_ids.as_mut_ptr()), NOTIFY_IDS.len() as u16),
            comm: 0,
            reserved: 0,
        };
        // Looks alive, but the table ends before it.
        self.table[SLOT + 2] = self.table[SLOT];
        let device = Box::new(Device::new());
        // SAFETY: table and ring live as long as the port, which every call takes.
        unsafe { device.set_thread_table(self.table_base(), SLOT + 2) };
        device
    }

    fn table_base(&mut self) -> DeviceAddr {
        DeviceAddr::from(self.table.as_mut_ptr())
    }

    pub(crate) fn edit_descriptor(&mut self, edit: impl FnOnce(&mut ThreadDescriptor)) {
        edit(&mut self.table[SLOT]);
    }

    /// Handle of table slot `index`, in `generation`.
    pub(crate) fn handle_of(&mut self, index: usize, generation: u16) -> ThreadHandle {
        let base = self.table_base().0;
        ThreadHandle::new(DeviceAddr(base + (index * size_of::<ThreadDescriptor>()) as u64), generation)
    }

    pub(crate) fn handle(&mut self) -> ThreadHandle {
        self.handle_of(SLOT, GENERATION)
    }

    pub(crate) fn slots(&self) -> Vec<Sqe> {
        // SAFETY: entries of our own ring; volatile, since the code under test writes through their addresses.
        self.ring.iter().map(|entry| unsafe { (&raw const entry.0).read_volatile() }).collect()
    }

    pub(crate) fn take_calls(&self) -> Vec<Call> {
        self.calls.take()
    }

    fn read<T>(&self, value: T) -> Result<T, ReadFailed> {
        match self.unreadable.get() {
            0 => Ok(value),
            code => Err(ReadFailed(code)),
        }
    }

    fn note(&self, call: Call) {
        let mut calls = self.calls.borrow_mut();
        // No test makes so many: a bug that loops fails instead of hanging.
        assert!(calls.len() < 1_000_000, "more calls on the port than any test makes");
        calls.push(call);
    }
}

/// All expected delays must have been asked for.
impl Drop for TestPort {
    fn drop(&mut self) {
        // A test that has failed must be able to say so: a second panic would end all tests.
        if !std::thread::panicking() {
            self.delay.borrow_mut().done();
        }
    }
}

impl Platform for TestPort {
    fn has_queue(&self, sq_id: u32, regs: u64) -> bool {
        (sq_id, regs) == (9, 0x1234)
    }

    fn head(&self, queue: QueueId) -> Result<u32, ReadFailed> {
        assert_eq!((queue.sq_id(), queue.regs()), (9, 0x1234));
        self.note(Call::Head);
        match self.looks_until_run.get() {
            0 => {}
            1 => {
                self.head.set(self.rung.get());
                self.looks_until_run.set(self.looks_again.get());
            }
            looks => self.looks_until_run.set(looks - 1),
        }
        for _ in 0..self.speed.get() {
            if self.head.get() != self.rung.get() {
                self.head.set((self.head.get() + 1) % self.ring.len() as u32);
            }
        }
        self.read(self.head.get())
    }

    fn status(&self, _queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        self.note(Call::Status);
        self.read(self.status.get())
    }

    fn ring(&self, _queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        self.note(Call::Ring(tail));
        if self.refuse_ring.get() {
            return Err(DoorbellRefused);
        }
        self.rung.set(tail);
        Ok(())
    }

    fn store_barrier(&self) {
        self.note(Call::Barrier);
    }

    fn now_us(&self) -> u64 {
        self.now_us.get()
    }

    fn delay(&self) -> impl DelayNs {
        TestDelay(self)
    }

    fn return_addresses(&self, addrs: &mut [u64]) {
        addrs.fill(0);
        addrs[..2].copy_from_slice(&self.frames);
    }

    unsafe fn write_slot(&self, slot: DeviceAddr, sqe: &Sqe) {
        let offset = slot.0 - self.ring.as_ptr().expose_provenance() as u64;
        let index = offset / SQE_SIZE as u64;
        assert!(
            offset.is_multiple_of(SQE_SIZE as u64) && index < self.ring.len() as u64,
            "slot {slot} is not of the ring"
        );
        self.note(Call::Slot(index as u32));
        let entry = core::ptr::with_exposed_provenance_mut::<Sqe>(slot.0 as usize);
        // SAFETY: just checked to be an entry of the ring.
        unsafe { entry.write_volatile(*sqe) };
    }
}

/// Delays of the mock, which also let the clock go on.
struct TestDelay<'a>(&'a TestPort);

impl DelayNs for TestDelay<'_> {
    fn delay_ns(&mut self, ns: u32) {
        self.0.delay.borrow_mut().delay_ns(ns);
        self.0.now_us.set(self.0.now_us.get().wrapping_add(ns.div_ceil(1000).into()));
    }
}

/// Unit tests have no platform of the program: none of them runs a launch by it.
mod program {
    use super::*;

    struct None;

    static NONE: None = None;
    crate::export_platform!(NONE);

    impl Platform for None {
        fn has_queue(&self, _sq_id: u32, _regs: u64) -> bool {
            panic!("called without a core")
        }

        fn head(&self, _queue: QueueId) -> Result<u32, ReadFailed> {
            panic!("called without a core")
        }

        fn status(&self, _queue: QueueId) -> Result<QueueStatus, ReadFailed> {
            panic!("called without a core")
        }

        fn ring(&self, _queue: QueueId, _tail: u32) -> Result<(), DoorbellRefused> {
            panic!("called without a core")
        }

        fn store_barrier(&self) {
            panic!("called without a core")
        }

        fn now_us(&self) -> u64 {
            panic!("called without a core")
        }

        fn delay(&self) -> impl DelayNs {
            embedded_hal_mock::eh1::delay::NoopDelay::new()
        }
    }
}
