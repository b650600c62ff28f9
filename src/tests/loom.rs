//! Every order of two cores and a device on one ring (`make loom`).
//!
//! Slots are loom cells: a write that the device could see too early, or a slot that is written while the device may still
//! read it, is an error in whatever order shows it.

use embedded_hal::delay::DelayNs;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};

use crate::context::{Core, Device};
use crate::handle::Slot;
use crate::port::{DoorbellRefused, Platform, QueueId, ReadFailed};
use crate::spec::queue::QueueStatus;
use crate::spec::record::EntryPoint;
use crate::spec::thread::{DescriptorTag, Engine, NotifyTable, ThreadDescriptor, ThreadHandle};
use crate::spec::{DeviceAddr, SQE_SIZE, Sqe};
use crate::sq::{Fast, TaskSource, submit};
use crate::task::{MAX_CHUNK, Request, Task};

/// Word of a descriptor that holds the source, by which the tests know a task.
const SRC_WORD: usize = 4;
/// Above every offset of the chunks of a call.
const NAME_SHIFT: u32 = 48;
/// Address of the ring: never dereferenced, `write_slot` finds the cell by it.
const RING: u64 = 0x12c0_0000_1000;

struct LoomPort {
    slots: Vec<UnsafeCell<u64>>,
    head: AtomicU32,
    tail: AtomicU32,
    status: QueueStatus,
}

impl LoomPort {
    fn new(depth: usize) -> Self {
        Self {
            slots: (0..depth).map(|_| UnsafeCell::new(0)).collect(),
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            status: QueueStatus::ENABLED,
        }
    }

    /// The device: takes `count` descriptors in order and returns their sources.
    fn run(&self, count: usize) -> Vec<u64> {
        let mut seen = Vec::new();
        while seen.len() < count {
            let head = self.head.load(Ordering::Relaxed);
            if self.tail.load(Ordering::Acquire) == head {
                loom::thread::yield_now();
                continue;
            }
            // SAFETY: loom checks that nothing writes the cell meanwhile.
            seen.push(self.slots[head as usize].with(|slot| unsafe { *slot }));
            self.head.store((head + 1) % self.slots.len() as u32, Ordering::Release);
        }
        seen
    }
}

impl Platform for LoomPort {
    fn has_queue(&self, _sq_id: u32, _regs: u64) -> bool {
        true
    }

    fn head(&self, _queue: QueueId) -> Result<u32, ReadFailed> {
        Ok(self.head.load(Ordering::Relaxed))
    }

    fn status(&self, _queue: QueueId) -> Result<QueueStatus, ReadFailed> {
        Ok(self.status)
    }

    fn ring(&self, _queue: QueueId, tail: u32) -> Result<(), DoorbellRefused> {
        self.tail.store(tail, Ordering::Relaxed);
        Ok(())
    }

    fn store_barrier(&self) {
        fence(Ordering::Release);
    }

    fn now_us(&self) -> u64 {
        0
    }

    fn delay(&self) -> impl DelayNs {
        Yield
    }

    unsafe fn write_slot(&self, slot: DeviceAddr, sqe: &Sqe) {
        let index = (slot.0 - RING) as usize / SQE_SIZE;
        // SAFETY: loom checks that nothing reads or writes the cell meanwhile.
        self.slots[index].with_mut(|slot| unsafe { *slot = sqe.0[SRC_WORD] >> NAME_SHIFT });
    }
}

struct Yield;

impl DelayNs for Yield {
    fn delay_ns(&mut self, _ns: u32) {
        loom::thread::yield_now();
    }
}

/// `count` tasks of core `name`: they are known by the high part of their source.
fn named(name: u64, count: u64) -> Request {
    Request::transfer(DeviceAddr(0), DeviceAddr(name << NAME_SHIFT), count * MAX_CHUNK, 0)
}

struct Given(Task);

impl TaskSource for Given {
    fn task(self, _slot: Option<Slot>) -> Option<Task> {
        Some(self.0)
    }
}

/// One task, on the fast path if it is taken.
fn queue_one(port: &LoomPort, core: &Core<'_>, handle: ThreadHandle, name: u64) {
    let queues = core.device().queues();
    let fast = queues.try_one(port, core.queues(), handle, Given(named(name, 1).take_next()));
    if !matches!(fast, Fast::Queued) {
        submit(port, queues, core.queues(), handle, named(name, 1), EntryPoint::LOCAL_COPY).expect("queued");
    }
}

/// Cores that each queue `tasks[n]` tasks, in one call or one by one, on a ring of `depth`; what the device saw.
fn explore(depth: usize, tasks: &'static [u64], one_by_one: bool, check: fn(&[u64])) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let table: &[ThreadDescriptor] = Box::leak(Box::new([ThreadDescriptor {
            tag: DescriptorTag::live(1),
            engine: Engine::AICPU_TS,
            stream_id: 0,
            sq_id: 0,
            depth: depth as u32,
            sq_base: DeviceAddr(RING),
            regs: 0,
            notifies: NotifyTable::default(),
            comm: 0,
            reserved: 0,
        }]));
        let base = DeviceAddr::from(table.as_ptr());
        let device = Arc::new(Device::new());
        // SAFETY: the table is leaked, and the port writes no address.
        unsafe { device.set_thread_table(base, table.len()) };
        let port = Arc::new(LoomPort::new(depth));
        let handle = ThreadHandle::new(base, 1);

        let cores: Vec<_> = tasks
            .iter()
            .zip(1..)
            .map(|(&left, name)| {
                let (device, port) = (device.clone(), port.clone());
                loom::thread::spawn(move || {
                    let core = Core::new(&device, name as u32);
                    if one_by_one {
                        (0..left).for_each(|_| queue_one(&port, &core, handle, name));
                    } else {
                        let (queues, tasks) = (device.queues(), named(name, left));
                        submit(&*port, queues, core.queues(), handle, tasks, EntryPoint::LOCAL_COPY).expect("queued");
                    }
                })
            })
            .collect();
        check(&port.run(tasks.iter().sum::<u64>() as usize));
        cores.into_iter().for_each(|core| core.join().expect("core"));
    });
}

#[test]
fn one_core_laps_the_ring() {
    explore(2, &[3], false, |seen| assert_eq!(seen, [1, 1, 1]));
}

#[test]
fn two_cores_lose_nothing() {
    explore(3, &[1, 1], false, |seen| assert!(seen == [1, 2] || seen == [2, 1], "{seen:?}"));
}

#[test]
fn groups_of_two_cores_do_not_mix() {
    explore(3, &[2, 1], false, |seen| {
        assert!([[1, 1, 2], [2, 1, 1]].contains(&[seen[0], seen[1], seen[2]]), "{seen:?}")
    });
}

#[test]
fn one_core_laps_the_ring_on_the_fast_path() {
    explore(3, &[4], true, |seen| assert_eq!(seen, [1; 4]));
}

#[test]
fn two_cores_lose_nothing_on_the_fast_path() {
    explore(4, &[2, 1], true, |seen| {
        let mut sorted = seen.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [1, 1, 2]);
    });
}
