//! What the scheduler of a device keeps. Each file beside this one adds one subject to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::halt_watch::HaltWatch;
use super::launches::Launches;
use super::queues::Queues;
use super::requests::Requests;
use super::streams::Streams;
use super::turns::Turns;
use crate::cpu::Cpu;
use crate::decode::Jetty;
use crate::engine::EnginePool;
use crate::error::DeviceError;
use crate::fabric::{ChannelEnd, Port};
use crate::fault::{FaultCounter, FaultPlan};
use crate::hosts::{self, HostThreads};
use crate::inbox::Command;
use crate::memory::Memory;
use crate::notify::NotifyTable;
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
    /// Whether a debugger may stop the AI CPU for any time: no limit of a kernel, a wait or a task counts.
    pub is_debugged: bool,
    /// Who is told of tasks that fail, in place of a failure of the device: their queue stops alone, as on a card, and a wait of a stream
    /// that comes to its limit is an error of the stream alone.
    pub failed_tasks: Option<Sender<FailedTask>>,
}

/// A task that has failed.
#[derive(Clone, Debug)]
pub struct FailedTask {
    /// Its queue, which has stopped.
    pub sq_id: u32,
    /// Its id.
    pub task_id: u32,
    /// Why.
    pub error: DeviceError,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            faults: FaultPlan::default(),
            task_timeout: Duration::from_secs(60),
            overlap_is_warning: false,
            deadlock_limit: None,
            is_debugged: false,
            failed_tasks: None,
        }
    }
}

impl SchedulerConfig {
    /// How long the task at the head of a queue may wait.
    pub(crate) fn task_limit(&self) -> Duration {
        if self.is_debugged { Duration::MAX } else { self.task_timeout }
    }

    /// End of a kernel that starts now and may take `timeout`.
    pub(crate) fn launch_deadline(&self, now: Duration, timeout: Duration) -> Duration {
        if self.is_debugged { Duration::MAX } else { now.saturating_add(timeout) }
    }

    /// End of a wait for a notify that begins now; `None`: it has none. 0 s have none.
    pub(crate) fn wait_deadline(&self, now: Duration, timeout_s: u32) -> Option<Duration> {
        (timeout_s != 0 && !self.is_debugged).then(|| now.saturating_add(Duration::from_secs(timeout_s.into())))
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
    pub(crate) queues: Queues,
    pub(crate) streams: Streams,
    pub(crate) launches: Launches,
    pub(crate) notifies: NotifyTable,
    pub(crate) requests: Requests,
    pub(crate) halt_watch: HaltWatch,
    /// Time of the step that runs.
    pub(crate) now: Duration,
    pub(crate) config: SchedulerConfig,
    pub(crate) faults: FaultCounter,
    pub(crate) commands: Vec<Command>,
    /// Another thread was woken.
    pub(crate) has_woken: bool,
    pub(crate) stopped: bool,
    /// Access to other devices.
    pub(crate) port: Option<Port<M>>,
    /// Ends of channels, by their jetty.
    pub(crate) channels: HashMap<Jetty, ChannelEnd>,
}

impl<M: Memory> Scheduler<M> {
    /// A scheduler without queues and streams.
    pub fn new(shared: Arc<Shared<M>>, cpu: Box<dyn Cpu>, engines: Option<EnginePool>) -> Self {
        let launches = Launches::new(cpu.cores());
        Self {
            shared,
            cpu,
            engines,
            turns: None,
            queues: Queues::default(),
            streams: Streams::default(),
            launches,
            notifies: NotifyTable::default(),
            requests: Requests::default(),
            halt_watch: HaltWatch::new(Box::new(hosts::Unknown)),
            now: Duration::ZERO,
            config: SchedulerConfig::default(),
            faults: FaultCounter::default(),
            commands: Vec::new(),
            has_woken: false,
            stopped: false,
            port: None,
            channels: HashMap::new(),
        }
    }

    /// Sets how it treats what can go wrong.
    pub fn with_config(self, config: SchedulerConfig) -> Self {
        Self { faults: FaultCounter::new(&config.faults), config, ..self }
    }

    /// Joins it to other devices.
    pub fn with_port(self, port: Port<M>) -> Self {
        Self { port: Some(port), ..self }
    }

    /// Lets it count the threads of the process: a deadlock may then be certain.
    pub fn with_hosts(self, hosts: Box<dyn HostThreads>) -> Self {
        Self { halt_watch: HaltWatch::new(hosts), ..self }
    }
}
