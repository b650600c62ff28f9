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
const STATE: &str = "src/sq/state.rs";
const SQ: &str = "src/sq/mod.rs";
const COPY: &str = "src/ops/copy.rs";
const REDUCE: &str = "src/ops/reduce.rs";
const TASK: &str = "src/task.rs";
const HALT: &str = "host-stub/sim/src/halt.rs";
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
    // Operations.
    device("chunk of 4 GiB", TASK, "", Change::Value("MAX_CHUNK", "4 << 30")),
    device("chunks that lose the alignment", TASK, "", Change::Value("MAX_CHUNK", "(4 << 30) - 1")),
    device("source and destination swapped in a chunk", TASK, "Chunks::take_next", Change::Swap("src", "dst")),
    device("range of the destination not checked", COPY, "check_ranges", Change::Drop("check_range")),
    device("null addresses not checked", COPY, "validate", Change::Drop("check_addresses")),
    device("null destination not checked", COPY, "check_addresses", Change::Never("dst")),
    device("null source not checked", COPY, "check_addresses", Change::Never("src")),
    device("ranges of a reduce not checked", REDUCE, "check_elements", Change::Drop("check_range")),
    // Queue.
    device("no barrier", STATE, "State::ring", Change::Drop("store_barrier")),
    device("doorbell before the barrier", STATE, "State::ring", Change::Before("ring", "store_barrier")),
    device("what was rung for is forgotten", STATE, "State::ring", Change::Drop("rung")),
    device("head trusted", STATE, "State::read_head", Change::Never("outstanding")),
    device("head after a reset trusted", STATE, "State::restart", Change::Never("depth")),
    device("fast path stays closed after a restart", STATE, "State::restart", Change::Drop("open")),
    device("tasks that a reset dropped are not reported", STATE, "State::restart", Change::Drop("lose_staged")),
    device("tasks of a former thread are not reported", STATE, "QueueSlot::try_enter", Change::Drop("lose_staged")),
    device("task ids of a former thread stay taken", STATE, "QueueSlot::try_enter", Change::Drop("clear")),
    device("staged tasks run after a refused batch", STATE, "State::ring_staged", Change::Drop("settle_staged")),
    device("fast path after dropped tasks", STATE, "State::settle_staged", Change::Drop("open")),
    device("lost tasks are told to a later launch", STATE, "QueueSlot::drop_staged", Change::Drop("take_loss")),
    device("batch ends without a doorbell", SQ, "CoreQueues::end_batch", Change::Drop("ring_staged")),
    device("failure of a launch is told to the next", SQ, "CoreQueues::discard_batch", Change::Drop("take_failure")),
    device("wait does not start again after progress", SQ, "refresh", Change::Drop("wait")),
    device("full ring does not ring what others hold", SQ, "refresh", Change::Drop("ring_staged")),
    device("head is not read again", SQ, "refresh", Change::Never("wanted")),
    // Scheduler.
    sim("report of a deadlock stops at the end of the ring", HALT, "records_of", Change::Never("depth")),
    sim("suspended queue is observed", QUEUE, "HwQueue::observe", Change::Never("suspended")),
    sim("tail outside the ring is taken", QUEUE, "HwQueue::observe", Change::Drop("check_doorbell")),
    sim("suspended queue keeps its tasks", RECOVERY, "suspend", Change::Drop("drop_tasks")),
    sim("registers keep their values over a resume", RECOVERY, "restart_queue", Change::Drop("reset")),
    sim("wait outlives a resume", RECOVERY, "restart_queue", Change::Drop("wait")),
    sim("freed queue keeps its tasks", SCHEDULER, "handle_command", Change::Drop("drop_tasks")),
    sim("late waits are never ended", SCHEDULER, "step", Change::Drop("end_late_waits")),
    // Notifies.
    sim("record is taken by two waits", NOTIFY, "take", Change::Drop("take_oldest")),
    sim("notify keeps its records for its next owner", NOTIFY, "add", Change::Drop("remove")),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hcomm_planted::change;

    use super::*;

    #[test]
    fn place_of_every_bug_is_there_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut wrong = Vec::new();
        for bug in TABLE {
            let text =
                std::fs::read_to_string(root.join(bug.file)).unwrap_or_else(|error| panic!("{}: {error}", bug.file));
            let edits = change::edits(&text, bug.function, bug.change);
            wrong.extend(edits.err().map(|error| format!("{}: {}, {}: {error}", bug.name, bug.file, bug.function)));
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
