//! A device of one thread over plain memory, for unit tests: a ring, a thread table, and a port that writes down each call.

use core::cell::{Cell, RefCell};

use embedded_hal::delay::DelayNs;
use embedded_hal_mock::eh1::delay::{CheckedDelay, Transaction};

use crate::device::{Core, Device};
use crate::port::{DoorbellRefused, Port, QueueId};
use crate::spec::queue::QueueStatus;
use crate::spec::thread::{DescriptorTag, Engine, ThreadDescriptor, ThreadHandle};
use crate::spec::{DeviceAddr, SQE_SIZE, Sqe};
use crate::thread::Thread;

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
    pub(crate) now_us: Cell<u64>,
    looks_until_run: Cell<u32>,
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
            now_us: Cell::new(0),
            looks_until_run: Cell::new(0),
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
            notify_table: DeviceAddr::from(self.notify_ids.as_mut_ptr()),
            notify_count: NOTIFY_IDS.len() as u32,
            reserved: [0; 3],
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

    pub(crate) fn thread(&mut self, device: &Device) -> Thread {
        let handle = self.handle();
        Thread::look_up(&Core::new(device), handle).unwrap()
    }

    pub(crate) fn slots(&self) -> Vec<Sqe> {
        // SAFETY: entries of our own ring; volatile, since the code under test writes through their addresses.
        self.ring.iter().map(|entry| unsafe { (&raw const entry.0).read_volatile() }).collect()
    }

    pub(crate) fn take_calls(&self) -> Vec<Call> {
        self.calls.take()
    }

    fn note(&self, call: Call) {
        let mut calls = self.calls.borrow_mut();
        // No test makes so many: a planted bug that goes round in circles fails instead of hanging.
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

impl Port for TestPort {
    fn head(&self, queue: QueueId) -> u32 {
        assert_eq!(queue, QueueId { sq_id: 9, regs: 0x1234 });
        self.note(Call::Head);
        match self.looks_until_run.get() {
            0 => {}
            1 => self.head.set(self.rung.get()),
            looks => self.looks_until_run.set(looks - 1),
        }
        for _ in 0..self.speed.get() {
            if self.head.get() != self.rung.get() {
                self.head.set((self.head.get() + 1) % self.ring.len() as u32);
            }
        }
        self.head.get()
    }

    fn status(&self, _queue: QueueId) -> QueueStatus {
        self.note(Call::Status);
        self.status.get()
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

/// Unit tests have no platform: [`Platform`](crate::port::Platform) finds no core, and nothing else is asked of it.
mod platform {
    use core::ffi::c_void;

    #[unsafe(no_mangle)]
    extern "C" fn hcomm_port_core() -> *const c_void {
        core::ptr::null()
    }

    macro_rules! unreachable_hooks {
        ($($name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)?;)*) => {$(
            #[unsafe(no_mangle)]
            extern "C" fn $name($($arg: $type),*) $(-> $ret)? {
                $(let _ = $arg;)*
                panic!("called without a core")
            }
        )*};
    }

    #[unsafe(no_mangle)]
    extern "C" fn hcomm_port_refused(_who: *const u8, _who_len: usize, _code: i32, _error: *const c_void) {}

    unreachable_hooks! {
        hcomm_port_head(sq_id: u32, regs: u64) -> u32;
        hcomm_port_status(sq_id: u32, regs: u64) -> u64;
        hcomm_port_ring(sq_id: u32, regs: u64, tail: u32) -> i32;
        hcomm_port_store_barrier();
        hcomm_port_now_us() -> u64;
        hcomm_port_delay_ns(ns: u32);
    }
}
