//! The bugs.

use hcomm_planted::change::Change;

/// Tests that must find a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tests {
    /// Unit tests of the device crate, then its tests on plain memory.
    Device,
    /// Unit tests of the simulated device.
    Sim,
}

impl Tests {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Device, Self::Sim];

    /// Arguments of `cargo test`, in order.
    pub fn commands(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Device => &[&["-p", "hcomm-aicpu", "--lib"], &["-p", "hcomm-device-tests"]],
            Self::Sim => &[&["-p", "hcomm-sim", "--lib"]],
        }
    }
}

/// One bug.
#[derive(Debug)]
pub struct Bug {
    /// What goes wrong.
    pub name: &'static str,
    /// File of the repository.
    pub file: &'static str,
    /// Function, with `Type::` before it where the file has several of the name.
    pub function: &'static str,
    /// What changes in it.
    pub change: Change,
    /// What must find it.
    pub tests: Tests,
}

const fn device(name: &'static str, file: &'static str, function: &'static str, change: Change) -> Bug {
    Bug { name, file, function, change, tests: Tests::Device }
}

const fn sim(name: &'static str, file: &'static str, function: &'static str, change: Change) -> Bug {
    Bug { name, file, function, change, tests: Tests::Sim }
}

const SDMA_950: &str = "src/spec/stars950/sdma.rs";
const STARS_910: &str = "src/spec/stars910.rs";
const DEADLOCK: &str = "host-stub/sim/src/deadlock.rs";
const RECOVERY: &str = "host-stub/sim/src/recovery.rs";
const QUEUE: &str = "host-stub/sim/src/queue.rs";
const SCHEDULER: &str = "host-stub/sim/src/scheduler.rs";
const NOTIFY: &str = "host-stub/sim/src/notify.rs";

/// Each is one that others have shipped, or close to one.
pub const TABLE: &[Bug] = &[
    // Descriptors.
    device("source and destination swapped", SDMA_950, "build", Change::Swap("src", "dst")),
    device("source and destination swapped on Ascend910", STARS_910, "Sdma::build", Change::Swap("src", "dst")),
    device("wait with the credit of a copy on Ascend910", STARS_910, "", Change::Value("CREDIT_NEVER", "254")),
    // Scheduler.
    sim("report of a deadlock stops at the end of the ring", DEADLOCK, "records_of", Change::Never("depth")),
    sim("suspended queue is observed", QUEUE, "HwQueue::observe", Change::Never("suspended")),
    sim("tail outside the ring is taken", QUEUE, "HwQueue::observe", Change::Drop("check_doorbell")),
    sim("suspended queue keeps its tasks", RECOVERY, "suspend", Change::Drop("drop_tasks")),
    sim("registers keep their values over a resume", RECOVERY, "start_queue_anew", Change::Drop("reset")),
    sim("wait outlives a resume", RECOVERY, "start_queue_anew", Change::Drop("wait")),
    sim("freed queue keeps its tasks", SCHEDULER, "obey", Change::Drop("drop_tasks")),
    sim("late waits are never ended", SCHEDULER, "step", Change::Drop("end_late_waits")),
    // Notifies.
    sim("record is taken by two waits", NOTIFY, "take", Change::Drop("take_oldest")),
    sim("notify keeps its records for its next owner", NOTIFY, "add", Change::Drop("remove")),
];
