//! Random walks over the state of one queue: three cores with and without batches, the fast path and the slow path, and a host
//! that resets, suspends and refuses. Whatever the order: nothing that the device may read is written, no task is published
//! twice or after it was refused or dropped, and no id comes twice.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use embedded_hal::delay::DelayNs;

use crate::context::{Core, Device};
use crate::error::Error;
use crate::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use crate::spec::queue::QueueStatus;
use crate::spec::record::EntryPoint;
use crate::spec::thread::{DescriptorTag, Engine, NotifyTable, ThreadDescriptor, ThreadHandle};
use crate::spec::{DeviceAddr, SQE_SIZE, Sqe};
use crate::sq::{Fast, drain, submit};
use crate::task::{MAX_CHUNK, Request};
use crate::tests::rig::{Given, first_of};

/// Address of the ring: never dereferenced.
const RING: u64 = 0x12c0_0000_1000;
/// Word of a descriptor that holds the source, by which a task is known.
const SRC_WORD: usize = 4;

/// Numbers from a seed (xorshift).
struct Random(Cell<u64>);

impl Random {
    fn below(&self, limit: u64) -> u64 {
        let mut bits = self.0.get();
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        self.0.set(bits);
        (bits >> 16) % limit
    }
}

struct WalkPort {
    slots: RefCell<Vec<Sqe>>,
    head: Cell<u32>,
    rung: Cell<u32>,
    status: Cell<QueueStatus>,
    refuse_ring: Cell<bool>,
    now_us: Cell<u64>,
    random: Random,
    /// Sources of the descriptors that were rung for, in order.
    published: RefCell<Vec<u64>>,
    ids: RefCell<HashSet<u32>>,
}

impl WalkPort {
    fn depth(&self) -> u32 {
        self.slots.borrow().len() as u32
    }

    fn distance(&self, from: u32, to: u32) -> u32 {
        (to + self.depth() - from) % self.depth()
    }

    /// The device takes up to `entries` of what was rung for.
    fn run(&self, entries: u32) {
        let taken = entries.min(self.distance(self.head.get(), self.rung.get()));
        self.head.set((self.head.get() + taken) % self.depth());
    }

    /// The host resets the queue.
    fn reset(&self) {
        self.head.set(0);
        self.rung.set(0);
        self.status.set(self.status.get().with_state(QueueStatus::ENABLED).after_reset().unwrap());
    }

    fn set_state(&self, state: QueueStatus) {
        self.status.set(self.status.get().with_state(state));
    }
}

impl Platform for WalkPort {
    fn has_queue(&self, _sq_id: u32, _regs: u64) -> bool {
        true
    }

    fn head(&self, _queue: QueueId) -> Result<u32, ReadFailed> {
        self.run(self.random.below(2) as u32);
        Ok(self.head.get())
    }

    fn status(&self, _queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        Ok(self.status.get())
    }

    fn ring(&self, _queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        assert_eq!(self.status.get().state(), QueueStatus::ENABLED, "rung in spite of the status");
        if self.refuse_ring.get() {
            return Err(DoorbellRefused);
        }
        let depth = self.depth();
        assert!(tail < depth && tail != self.rung.get(), "tail {tail}");
        while self.rung.get() != tail {
            let sqe = self.slots.borrow()[self.rung.get() as usize];
            self.rung.set((self.rung.get() + 1) % depth);
            assert_ne!(self.rung.get(), self.head.get(), "more than depth - 1 entries");
            self.published.borrow_mut().push(sqe.0[SRC_WORD] / MAX_CHUNK);
            let task_id = (sqe.0[0] >> 32) as u32;
            assert!(self.ids.borrow_mut().insert(task_id), "task id {task_id} twice");
        }
        Ok(())
    }

    fn store_barrier(&self) {}

    fn now_us(&self) -> u64 {
        self.now_us.get()
    }

    fn delay(&self) -> impl DelayNs {
        WalkDelay(self)
    }

    unsafe fn write_slot(&self, slot: DeviceAddr, sqe: &Sqe) {
        let index = ((slot.0 - RING) / SQE_SIZE as u64) as u32;
        let (head, rung) = (self.head.get(), self.rung.get());
        assert!(self.distance(head, index) >= self.distance(head, rung), "slot {index} is the device's");
        self.slots.borrow_mut()[index as usize] = *sqe;
    }
}

struct WalkDelay<'p>(&'p WalkPort);

impl DelayNs for WalkDelay<'_> {
    fn delay_ns(&mut self, ns: u32) {
        self.0.now_us.set(self.0.now_us.get() + u64::from(ns / 1000));
    }
}

/// Tasks `from` up to `to`, known by their source.
fn named(from: u64, to: u64) -> Request {
    Request::transfer(DeviceAddr(0), DeviceAddr(from * MAX_CHUNK), (to - from) * MAX_CHUNK, 0)
}

/// A call, on the fast path if it is taken: as the entry points do.
fn call(port: &WalkPort, core: &Core<'_>, handle: ThreadHandle, tasks: &std::ops::Range<u64>) -> Result<(), Error> {
    let (queues, request) = (core.device().queues(), named(tasks.start, tasks.end));
    if request.remaining() == 1 {
        match queues.try_one(port, core.queues(), handle, Given(first_of(request))) {
            Fast::Queued => return Ok(()),
            Fast::Refused { sq_id } => return Err(Error::DoorbellRefused { sq_id }),
            Fast::NotTaken => {}
        }
    }
    submit(port, queues, core.queues(), handle, request, EntryPoint::LOCAL_COPY)
}

/// What the walk knows of a core.
#[derive(Default)]
struct Expected {
    in_batch: bool,
    /// Tasks that its calls have staged, and perhaps rung for.
    staged: Vec<u64>,
    /// The queue was reset meanwhile.
    was_reset: bool,
}

impl Expected {
    /// The batch is over: gives the tasks that were not rung for.
    fn end(&mut self, published: &[u64]) -> Vec<u64> {
        let staged = std::mem::take(self).staged;
        staged.into_iter().filter(|task| !published.contains(task)).collect()
    }
}

fn walk(seed: u64, depth: u32, steps: u32) {
    let mut table = [ThreadDescriptor {
        tag: DescriptorTag::live(1),
        engine: Engine::AICPU_TS,
        stream_id: 0,
        sq_id: 0,
        depth,
        sq_base: DeviceAddr(RING),
        regs: 0,
        notifies: NotifyTable::default(),
        comm: 0,
        reserved: 0,
    }];
    // The device reads the tags as atomic words, for which Miri wants a pointer that could write.
    let (slots, base) = (table.len(), DeviceAddr::from(table.as_mut_ptr()));
    let device = Box::new(Device::new());
    // SAFETY: the table lives until the end of the walk, and the port writes no address.
    unsafe { device.set_thread_table(base, slots) };
    let start = (seed % u64::from(depth)) as u32;
    let port = WalkPort {
        slots: RefCell::new(vec![Sqe([0; SQE_SIZE / 8]); depth as usize]),
        head: Cell::new(start),
        rung: Cell::new(start),
        status: Cell::new(QueueStatus::ENABLED),
        refuse_ring: Cell::new(false),
        now_us: Cell::new(0),
        random: Random(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)),
        published: RefCell::default(),
        ids: RefCell::default(),
    };
    let cores = [0, 1, 2].map(|core| Core::new(&device, core));
    let thread = ThreadHandle::new(base, 1);
    let mut expected: [Expected; 3] = Default::default();
    // Tasks that must not be published any more.
    let mut gone = HashSet::new();
    let (mut next, mut checked) = (1, 0);
    for step in 0..steps {
        let which = port.random.below(3) as usize;
        let (core, of_core) = (&cores[which], &mut expected[which]);
        core.queues().set_sq_full_timeout_us(3);
        port.refuse_ring.set(port.random.below(12) == 0);
        let what = port.random.below(32);
        match what {
            0..20 => {
                let count = if what < 14 { 1 } else { 1 + port.random.below(u64::from(depth - 1)) };
                let tasks = next..next + count;
                next = tasks.end;
                match call(&port, core, thread, &tasks) {
                    Err(_) => gone.extend(tasks),
                    Ok(()) if of_core.in_batch => of_core.staged.extend(tasks),
                    Ok(()) => assert!(port.published.borrow().ends_with(&tasks.collect::<Vec<_>>()), "step {step}"),
                }
            }
            20..23 => {
                core.queues().start_batch();
                of_core.in_batch = true;
            }
            23..26 => {
                let result = core.queues().end_batch(&port, device.queues());
                let lost = of_core.end(&port.published.borrow());
                assert!(result.is_err() || lost.is_empty(), "step {step}: an end without an error loses {lost:?}");
                gone.extend(lost);
            }
            26 => {
                core.finish();
                gone.extend(of_core.end(&port.published.borrow()));
            }
            27 => {
                let result = drain(&port, device.queues(), core.queues(), thread, Some(3), EntryPoint::JOIN);
                assert!(result.is_err() || port.head.get() == port.rung.get(), "step {step}");
            }
            // Of two batches that lose tasks before either ends, only one is told.
            28 if expected.iter().all(|core| !core.was_reset) => {
                port.reset();
                expected.iter_mut().for_each(|core| core.was_reset = !core.staged.is_empty());
            }
            29 => port.set_state([QueueStatus::SUSPENDED, QueueStatus::REFUSING][port.random.below(2) as usize]),
            _ => port.run(port.random.below(u64::from(depth)) as u32),
        }
        if what != 29 && port.random.below(4) == 0 {
            port.set_state(QueueStatus::ENABLED);
        }
        let published = port.published.borrow();
        for (index, task) in published.iter().enumerate().skip(checked) {
            assert!(!gone.contains(task), "step {step}: task {task} was refused or dropped");
            assert!(!published[..index].contains(task), "step {step}: task {task} again");
        }
        checked = published.len();
    }
    assert!(checked > 0, "nothing was published");
}

#[test]
fn random_walk_over_one_queue_publishes_each_task_once_or_never() {
    // Miri takes too long for many.
    let (seeds, steps) = if cfg!(miri) { (1, 100) } else { (60, 400) };
    for depth in [2, 3, 4, 8] {
        for seed in 0..seeds {
            walk(seed, depth, steps);
        }
    }
}
