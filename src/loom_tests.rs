//! Every order of two cores and a device on one ring (`make loom`).
//!
//! Slots are loom cells: a write that the device could see too early, or a slot that is written while the device may still
//! read it, is an error in whatever order shows it.

use embedded_hal::delay::DelayNs;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};

use crate::device::{Core, Device};
use crate::encode::Task;
use crate::port::{DoorbellRefused, Port, QueueId};
use crate::queue::submit;
use crate::short::{Short, submit_one};
use crate::spec::queue::QueueStatus;
use crate::spec::thread::{DescriptorTag, Engine, ThreadDescriptor, ThreadHandle};
use crate::spec::{DeviceAddr, SQE_SIZE, Sqe};
use crate::thread::Thread;
use crate::work::Tasks;

/// Word of a descriptor that holds the source, by which the tests know a task.
const SRC_WORD: usize = 4;
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
            // SAFETY: loom checks that nobody writes the cell meanwhile.
            seen.push(self.slots[head as usize].with(|slot| unsafe { *slot }));
            self.head.store((head + 1) % self.slots.len() as u32, Ordering::Release);
        }
        seen
    }
}

impl Port for LoomPort {
    fn head(&self, _queue: QueueId) -> u32 {
        self.head.load(Ordering::Relaxed)
    }

    fn status(&self, _queue: QueueId) -> QueueStatus {
        self.status
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
        // SAFETY: loom checks that nobody reads or writes the cell meanwhile.
        self.slots[index].with_mut(|slot| unsafe { *slot = sqe.0[SRC_WORD] });
    }
}

struct Yield;

impl DelayNs for Yield {
    fn delay_ns(&mut self, _ns: u32) {
        loom::thread::yield_now();
    }
}

/// A task whose source is `name`.
fn named(name: u64) -> Task {
    Task::Sdma { src: DeviceAddr(name), dst: DeviceAddr(0), len: 1, opcode: 0 }
}

/// `left` of them.
struct Named {
    name: u64,
    left: u64,
}

impl Tasks for Named {
    fn remaining(&self) -> u64 {
        self.left
    }

    fn next(&mut self, stamp: u64) -> Sqe {
        self.left -= 1;
        let mut sqe = named(self.name).for_950(0);
        sqe.0[0] |= stamp;
        sqe
    }

    fn queued_len(&self) -> u64 {
        0
    }
}

/// One task, the short way if it is taken.
fn queue_one(port: &LoomPort, core: &Core<'_>, thread: &Thread, name: u64) {
    if !matches!(submit_one(port, core, thread.handle(), |_| Some(named(name))), Short::Queued) {
        submit(port, core, *thread, &mut Named { name, left: 1 }).expect("queued");
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
            notify_table: DeviceAddr(0),
            notify_count: 0,
            reserved: [0; 3],
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
                    let core = Core::new(&device);
                    let thread = Thread::look_up(&core, handle).expect("live handle");
                    if one_by_one {
                        (0..left).for_each(|_| queue_one(&port, &core, &thread, name));
                    } else {
                        submit(&*port, &core, thread, &mut Named { name, left }).expect("queued");
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
fn one_core_laps_the_ring_the_short_way() {
    explore(3, &[4], true, |seen| assert_eq!(seen, [1; 4]));
}

#[test]
fn two_cores_lose_nothing_the_short_way() {
    explore(4, &[2, 1], true, |seen| {
        let mut sorted = seen.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [1, 1, 2]);
    });
}
