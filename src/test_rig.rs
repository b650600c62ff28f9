//! One thread over a [`TestPort`], and tasks to queue on it, for unit tests of the short and the long way.

use crate::device::{Core, Device};
use crate::encode::Task;
use crate::error::Error;
use crate::queue::submit;
use crate::spec::soc::Soc;
use crate::spec::stars910::Stamp;
use crate::spec::stars950::Sdma;
use crate::spec::{DeviceAddr, Sqe};
use crate::test_port::{Call, TestPort};
use crate::thread::Thread;
use crate::work::Tasks;

/// `count` tasks of one byte each; task *n* copies to address *n*.
pub(crate) struct Bytes {
    soc: Soc,
    next: u64,
    count: u64,
}

impl Bytes {
    pub(crate) fn new(count: u64) -> Self {
        Self::on(Soc::Ascend950, count)
    }

    pub(crate) fn on(soc: Soc, count: u64) -> Self {
        Self { soc, next: 0, count }
    }
}

impl Tasks for Bytes {
    fn remaining(&self) -> u64 {
        self.count - self.next
    }

    fn next(&mut self, stamp: u64) -> Sqe {
        let task = byte_task(self.next);
        self.next += 1;
        let mut sqe = match self.soc {
            Soc::Ascend950 => task.for_950(0),
            Soc::Ascend910B | Soc::Ascend910_93 => task.for_910(Stamp { stream_id: 0, task_id: 0 }),
        };
        sqe.0[0] |= stamp;
        sqe
    }

    fn queued_len(&self) -> u64 {
        self.next
    }
}

/// Task *n* of [`Bytes`].
pub(crate) fn byte_task(task: u64) -> Task {
    Task::Sdma { src: DeviceAddr(0x2000), dst: DeviceAddr(task), len: 1, opcode: 0 }
}

/// Its descriptor.
pub(crate) fn sqe(task: u64, task_id: u32) -> Sqe {
    Sdma::new(DeviceAddr(0x2000), DeviceAddr(task), 1).build(task_id)
}

/// Tails of the doorbells among `calls`.
pub(crate) fn rings(calls: &[Call]) -> Vec<u32> {
    calls.iter().filter_map(|call| if let Call::Ring(tail) = call { Some(*tail) } else { None }).collect()
}

pub(crate) struct Rig {
    pub(crate) port: TestPort,
    pub(crate) device: Box<Device>,
    pub(crate) thread: Thread,
}

impl Rig {
    pub(crate) fn new(mut port: TestPort) -> Self {
        let device = port.device();
        let thread = port.thread(&device);
        Self { port, device, thread }
    }

    /// Queues `count` tasks the long way, on a core of its own.
    pub(crate) fn submit(&self, count: u64, timeout_us: u64) -> Result<(), Error> {
        let core = Core::new(&self.device);
        core.set_sq_full_timeout_us(timeout_us);
        submit(&self.port, &core, self.thread, &mut Bytes::on(self.device.soc(), count))
    }

    /// Another core, in a batch. Waits for 1 us. Boxed: a batch is known by its address.
    pub(crate) fn batching(&self) -> Box<Core<'_>> {
        let core = Box::new(Core::new(&self.device));
        core.set_sq_full_timeout_us(1);
        core.batch().start();
        core
    }
}
