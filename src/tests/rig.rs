//! One thread over a [`TestPort`], and tasks to queue on it, for unit tests of the fast and the slow path.

use crate::context::{Core, Device};
use crate::error::Error;
use crate::handle::Slot;
use crate::spec::record::EntryPoint;
use crate::spec::stars950::Sdma;
use crate::spec::thread::ThreadHandle;
use crate::spec::{DeviceAddr, Sqe};
use crate::sq::{Fast, TaskSource, drain, submit};
use crate::task::{MAX_CHUNK, Request, Task};
use crate::tests::port::{Call, TestPort};

const DST: u64 = 0x1000;
const SRC: u64 = 0x2000;

/// `count` tasks of [`MAX_CHUNK`] bytes each, from task `first` on.
pub(crate) fn tasks(first: u64, count: u64) -> Request {
    let at = |base| DeviceAddr(base + first * MAX_CHUNK);
    Request::transfer(at(DST), at(SRC), count * MAX_CHUNK, 0)
}

/// Task `n` of [`tasks`].
pub(crate) fn task(n: u64) -> Task {
    first_of(tasks(n, 1))
}

/// The first task of a copy.
pub(crate) fn first_of(mut request: Request) -> Task {
    request.take_next()
}

/// Its descriptor.
pub(crate) fn sqe(task: u64, task_id: u32) -> Sqe {
    let at = |base| DeviceAddr(base + task * MAX_CHUNK);
    Sdma::new(at(SRC), at(DST), MAX_CHUNK as u32).build(task_id)
}

/// Tails of the doorbells among `calls`.
pub(crate) fn rings(calls: &[Call]) -> Vec<u32> {
    calls.iter().filter_map(|call| if let Call::Ring(tail) = call { Some(*tail) } else { None }).collect()
}

/// Gives a task whatever the queue.
pub(crate) struct Given(pub(crate) Task);

impl TaskSource for Given {
    fn task(self, slot: Option<Slot>) -> Option<Task> {
        assert!(slot.is_some());
        Some(self.0)
    }
}

pub(crate) struct Rig {
    pub(crate) port: TestPort,
    pub(crate) device: Box<Device>,
    pub(crate) handle: ThreadHandle,
}

impl Rig {
    pub(crate) fn new(mut port: TestPort) -> Self {
        let device = port.device();
        let handle = port.handle();
        Self { port, device, handle }
    }

    /// Queues tasks 0 to `count` on a core of its own.
    pub(crate) fn submit(&self, count: u64, timeout_us: u64) -> Result<(), Error> {
        let core = self.core(0);
        core.queues().set_sq_full_timeout_us(timeout_us);
        self.submit_on(&core, count)
    }

    /// Queues tasks 0 to `count` on `core`.
    pub(crate) fn submit_on(&self, core: &Core<'_>, count: u64) -> Result<(), Error> {
        let (queues, entry) = (self.device.queues(), EntryPoint::LOCAL_COPY);
        submit(&self.port, queues, core.queues(), self.handle, tasks(0, count), entry)
    }

    /// The fast path with task `n`.
    pub(crate) fn fast_on(&self, core: &Core<'_>, n: u64) -> Fast {
        self.fast_for(core, self.handle, n)
    }

    /// The fast path with task `n` on the queue of `handle`.
    pub(crate) fn fast_for(&self, core: &Core<'_>, handle: ThreadHandle, n: u64) -> Fast {
        self.device.queues().try_one(&self.port, core.queues(), handle, Given(task(n)))
    }

    pub(crate) fn drain_on(&self, core: &Core<'_>, timeout_us: u64) -> Result<(), Error> {
        let queues = self.device.queues();
        drain(&self.port, queues, core.queues(), self.handle, Some(timeout_us), EntryPoint::JOIN)
    }

    /// A core without a batch.
    pub(crate) fn core(&self, core: u32) -> Core<'_> {
        Core::new(&self.device, core)
    }

    /// A core in a batch. Waits for 1 us.
    pub(crate) fn batching(&self, core: u32) -> Core<'_> {
        let core = self.core(core);
        core.queues().set_sq_full_timeout_us(1);
        core.queues().start_batch();
        core
    }

    pub(crate) fn end_batch(&self, core: &Core<'_>) -> Result<(), Error> {
        core.queues().end_batch(&self.port, self.device.queues())
    }
}
