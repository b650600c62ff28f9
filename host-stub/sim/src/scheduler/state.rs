//! What the scheduler of a device keeps. Each file beside this one adds one subject to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use super::turns::Turns;
use crate::cpu::Cpu;
use crate::deadlock::{Deadlock, Halt};
use crate::engine::EnginePool;
use crate::fault::{FaultCounter, FaultPlan};
use crate::host_stream::HostStream;
use crate::hosts::{self, HostThreads};
use crate::ids::{QueueGeneration, StreamId};
use crate::inbox::{Command, Recovery};
use crate::memory::Memory;
use crate::notify::NotifyTable;
use crate::queue::HwQueue;
use crate::shared::Shared;

/// How a scheduler treats what can go wrong.
#[derive(Clone, Debug)]
pub struct SchedulerConfig {
    /// Faults to inject.
    pub faults: FaultPlan,
    /// How long the task at the head of a queue may wait until it runs.
    pub task_timeout: Duration,
    /// Whether a partial overlap of source and destination is only logged and counted.
    pub overlap_is_warning: bool,
    /// How long a host may wait while nothing in the device can go on; `None`: as long as its waits allow.
    pub deadlock_limit: Option<Duration>,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            faults: FaultPlan::default(),
            task_timeout: Duration::from_secs(60),
            overlap_is_warning: false,
            deadlock_limit: None,
        }
    }
}

/// The scheduler of one device.
pub struct Scheduler<M: Memory> {
    pub(crate) shared: Arc<Shared<M>>,
    pub(crate) cpu: Box<dyn Cpu>,
    /// `None`: all transfers are made by the scheduler's own thread.
    pub(crate) engines: Option<EnginePool>,
    /// Deterministic mode.
    pub(crate) turns: Option<Turns>,
    pub(crate) queues: Vec<Option<HwQueue>>,
    /// Queues that may have something to do.
    pub(crate) active: Vec<u32>,
    pub(crate) streams: BTreeMap<StreamId, HostStream>,
    pub(crate) core_busy: Vec<bool>,
    /// Doorbells observed, over all queues.
    pub(crate) observed: u64,
    /// Entries rung, over all queues.
    pub(crate) rung: u64,
    /// Queues that were ever made.
    pub(crate) generations: QueueGeneration,
    pub(crate) notifies: NotifyTable,
    /// No parked queue has a deadline before.
    pub(crate) next_deadline: Option<Duration>,
    /// Time of the step that runs.
    pub(crate) now: Duration,
    /// Nothing can go on although a host waits.
    pub(crate) halt: Option<Halt>,
    /// The last deadlock that there was a warning of.
    pub(crate) warned_of: Option<Deadlock>,
    pub(crate) hosts: Box<dyn HostThreads>,
    /// Launches that were started.
    pub(crate) launches: u64,
    /// Queues to be removed, the number of the last launch that may know them, and who waits for the removal.
    pub(crate) removals: Vec<(Vec<u32>, u64, SyncSender<()>)>,
    /// What waits for engines and kernels.
    pub(crate) recoveries: Vec<Recovery>,
    /// Parameters of launches that ended with their kernel still running.
    pub(crate) orphans: Vec<u64>,
    pub(crate) config: SchedulerConfig,
    pub(crate) faults: FaultCounter,
    pub(crate) commands: Vec<Command>,
    /// Another thread was woken.
    pub(crate) has_woken: bool,
    pub(crate) stopped: bool,
}

impl<M: Memory> Scheduler<M> {
    /// A scheduler without queues and streams.
    pub fn new(shared: Arc<Shared<M>>, cpu: Box<dyn Cpu>, engines: Option<EnginePool>) -> Self {
        let core_busy = vec![false; cpu.cores()];
        Self {
            shared,
            cpu,
            engines,
            turns: None,
            queues: Vec::new(),
            active: Vec::new(),
            streams: BTreeMap::new(),
            core_busy,
            observed: 0,
            rung: 0,
            generations: 0,
            notifies: NotifyTable::default(),
            next_deadline: None,
            now: Duration::ZERO,
            halt: None,
            warned_of: None,
            hosts: Box::new(hosts::Unknown),
            launches: 0,
            removals: Vec::new(),
            recoveries: Vec::new(),
            orphans: Vec::new(),
            config: SchedulerConfig::default(),
            faults: FaultCounter::default(),
            commands: Vec::new(),
            has_woken: false,
            stopped: false,
        }
    }

    /// Sets how it treats what can go wrong.
    pub fn with_config(self, config: SchedulerConfig) -> Self {
        Self { faults: FaultCounter::new(&config.faults), config, ..self }
    }

    /// Lets it count the threads of the process: a deadlock may then be certain.
    pub fn with_hosts(self, hosts: Box<dyn HostThreads>) -> Self {
        Self { hosts, ..self }
    }
}
