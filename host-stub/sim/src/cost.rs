//! Cost model: how long things take in deterministic mode. Its numbers are assumptions, none is measured on a card.
//!
//! Time is virtual. With a model it advances by what the model says, not by a turn: kernels pay for their calls, queues for
//! fetches, notifies and transfers. What the host does, and what its streams do besides launches, costs nothing.

pub(crate) mod transfers;

use std::time::Duration;

use crate::decode::Action;

/// How long things take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostModel {
    /// From the turn of a launch in its stream to the first instruction of the kernel, in ns.
    pub launch_ns: u64,
    /// A call of the device library by a kernel, in ns: its instructions. At least 1.
    pub call_ns: u64,
    /// A look of a kernel at head or status of a queue or at the clock, in ns. At least 1.
    pub look_ns: u64,
    /// A doorbell, in ns: until the device has it, and the kernel goes on.
    pub doorbell_ns: u64,
    /// From the end of the task before, or the doorbell, until the task at the head of a queue begins, in ns.
    pub fetch_ns: u64,
    /// A record or a wait, once it has begun, in ns. A wait lasts until its notify is recorded, and no longer if that is later.
    pub notify_ns: u64,
    /// A transfer before its first byte, in ns.
    pub sdma_start_ns: u64,
    /// Bytes that all transfers of a device move in 1000 ns, shared evenly by those that are under way. At least 1.
    pub sdma_bytes_per_us: u64,
}

impl Default for CostModel {
    /// Assumptions, round numbers of the order that such hardware has.
    fn default() -> Self {
        Self {
            launch_ns: 5000,
            call_ns: 100,
            look_ns: 50,
            doorbell_ns: 200,
            fetch_ns: 500,
            notify_ns: 200,
            sdma_start_ns: 1000,
            sdma_bytes_per_us: 50_000,
        }
    }
}

impl CostModel {
    /// Time until a task of a queue begins that is at its head, and, of notifies, has been carried out.
    pub(crate) fn before(&self, action: Option<Action>) -> Duration {
        let own = match action {
            Some(Action::Record { .. } | Action::Wait { .. } | Action::RemoteRecord { .. }) => self.notify_ns,
            _ => 0,
        };
        Duration::from_nanos(self.fetch_ns.saturating_add(own))
    }
}
