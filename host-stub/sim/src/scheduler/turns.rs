//! What deterministic mode keeps between two steps of the scheduler.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cost::CostModel;
use crate::cost::transfers::Transfers;
use crate::engine::Job;
use crate::event::Chooser;
use crate::ids::QueueGeneration;

/// The chooser, and what an engine has begun.
pub(crate) struct Turns {
    pub(crate) chooser: Box<dyn Chooser>,
    /// Transfers that were started and not made: engines end in any order. With a cost model, those whose time is over.
    pub(crate) transfers: Vec<Job>,
    /// Time follows a model.
    pub(crate) modelled: Option<Modelled>,
}

/// What a cost model keeps.
pub(crate) struct Modelled {
    pub(crate) costs: CostModel,
    pub(crate) transfers: Transfers,
    /// The task at the head of each queue.
    pub(crate) heads: BTreeMap<u32, Head>,
}

/// The task at the head of a queue, and when it begins.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) generation: QueueGeneration,
    /// Tasks of the queue before it.
    pub(crate) done: u64,
    pub(crate) begins: Duration,
}

impl Modelled {
    /// Nothing has begun.
    pub(crate) fn new(costs: CostModel) -> Self {
        let transfers = Transfers::new(costs.sdma_start_ns, costs.sdma_bytes_per_us);
        Self { costs, transfers, heads: BTreeMap::new() }
    }
}
