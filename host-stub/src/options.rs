//! How a device is opened.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::mpsc::Sender;
use std::time::Duration;

use hcomm_aicpu::spec::queue::DEFAULT_DEPTH;

use crate::card::kind::DeviceKind;
use crate::error::Error;
use crate::limits::is_depth;
use crate::model::{MODEL_VAR, Model};
use crate::product::{DEFAULT_PRODUCT, Product};
use crate::trace::file::{TRACE_VAR, TraceFile};
use hcomm_sim::check::list::{CHECK_VAR, Check, Checks};
use hcomm_sim::deadlock::{self, LIMIT_VAR};
use hcomm_sim::fault::{Fault, FaultPlan};
use hcomm_sim::scheduler::{FailedTask, SchedulerConfig};

/// How long a kernel may take if nothing else is said.
pub(crate) const LAUNCH_TIMEOUT: Duration = Duration::from_secs(1900);
/// Environment variable with the limit of a kernel in seconds, for programs that do not choose it.
const LAUNCH_TIMEOUT_VAR: &str = "HCOMM_SIM_LAUNCH_TIMEOUT";

/// Seed of deterministic mode with a cost model, if none is set.
const MODEL_SEED: u64 = 1;

/// Environment variable with the port of a debugger.
const GDB_VAR: &str = "HCOMM_SIM_GDB";

/// Which AI CPU runs the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cpu {
    /// The AArch64 image on an emulated processor.
    #[default]
    Qemu,
    /// The kernels that are linked into this program, on threads of the host.
    Native,
    /// Kernels of AArch64 Linux libraries, in a process of their own.
    Linux,
}

/// Environment variable with the end of launches.
pub const END_VAR: &str = "HCOMM_SIM_END";

/// When a launch ends, and its stream goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaunchEnd {
    /// When the kernel has returned, as on a card: only notifies order its tasks with the stream.
    #[default]
    Notify,
    /// When all queues that the kernel has rung have drained. No card does that.
    Queues,
}

impl FromStr for LaunchEnd {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "notify" => Ok(Self::Notify),
            "queues" => Ok(Self::Queues),
            _ => Err(Error::BadLaunchEnd(text.to_owned())),
        }
    }
}

/// How a device is opened.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// Which device it is. `None`: the one that `HCOMM_DEVICE` names, and without that variable the simulated one.
    ///
    /// A card has an AI CPU, a product, memory, rings and checks of its own: options about those do not count, and options of
    /// the simulated device alone (faults, deterministic mode, traces, a debugger) are refused.
    pub device: Option<DeviceKind>,
    /// AI CPU.
    pub cpu: Cpu,
    /// Product that the device is.
    pub product: &'static Product,
    /// Bytes of HBM, a multiple of 1 MiB. Memory that is not used costs nothing.
    pub hbm_size: u64,
    /// The image; `None`: [`crate::loader::find`] looks for it. For [`Cpu::Qemu`] alone.
    pub image: Option<PathBuf>,
    /// Entries of a ring, unless [`ThreadConfig::depth`](crate::ThreadConfig::depth) sets another number.
    pub queue_depth: u32,
    /// How long a kernel may take; after that the device fails with 507017. `None`: the seconds in
    /// `HCOMM_SIM_LAUNCH_TIMEOUT`, and without that variable 1900 s, above the 1856 s that a kernel waits for room in a full
    /// queue.
    pub launch_timeout: Option<Duration>,
    /// When launches end. `None`: as `HCOMM_SIM_END` says, and without that variable [`LaunchEnd::Notify`].
    pub end: Option<LaunchEnd>,
    /// QEMU only: the processor counts instructions exactly ([`LaunchStats::instructions`](crate::LaunchStats)), its cores
    /// take turns on one thread of the host, and it is several times slower. Otherwise the count is not valid.
    pub icount: bool,
    /// TCP port of this computer at which QEMU waits for a debugger before the image runs; the command to type is printed. No
    /// limit of a kernel, a wait or a task counts. For [`Cpu::Qemu`] alone. `None`: the one that `HCOMM_SIM_GDB` names, and
    /// without that variable no debugger.
    pub gdb: Option<u16>,
    /// How long the task at the head of a queue may wait until it runs; after that the device fails.
    pub task_timeout: Duration,
    /// Whether a task whose source and destination overlap in part is only logged and counted, not an error of the device.
    pub overlap_is_warning: bool,
    /// Faults to inject.
    pub faults: FaultPlan,
    /// Deterministic mode, with this seed; for [`Cpu::Native`] alone. Kernels, scheduler, engines and host waits run one at
    /// a time, the seed picks whose turn it is, and time is virtual: the same program and seed give the same
    /// [trace](crate::Device::trace). The device works only while a host thread is inside a call that waits. Calls of several host
    /// threads come in the order that the operating system picks.
    pub deterministic: Option<u64>,
    /// Cost model that time follows in deterministic mode (docs/model.md); for [`Cpu::Native`] alone, with seed 1 if
    /// [`deterministic`](Self::deterministic) sets none. `None`: the one that `HCOMM_SIM_MODEL` names, `stock` or a file, and without that
    /// variable none: each turn takes 100 ns. Not with [`explore`](crate::explore).
    pub model: Option<Model>,
    /// Limit, in real time, between two calls of the device by a kernel in deterministic mode; after that the kernel is
    /// abandoned.
    pub watchdog: Duration,
    /// Records events also outside deterministic mode.
    pub record: bool,
    /// File that the timeline of the run is written to when the device closes, see docs/trace.md. `None`: the one that
    /// `HCOMM_SIM_TRACE` names, and without that variable none.
    pub trace: Option<PathBuf>,
    /// Who is told of tasks that fail. With it the simulated device does not fail: the queue of the task stops alone, as on a card.
    pub failed_tasks: Option<Sender<FailedTask>>,
    /// How long a host thread may wait while the device can make no progress, but other threads of the process could
    /// still record a notify; after that the device fails with 507048. A deadlock that no thread can end is reported at
    /// once. `None`: the seconds in `HCOMM_SIM_DEADLOCK_LIMIT`; without that variable waits keep their own limits. In
    /// deterministic mode the limit is virtual time, 200 ms by default.
    pub deadlock_limit: Option<Duration>,
    /// Checks to make. `None`: those that `HCOMM_SIM_CHECK` lists, and without that variable [`Checks::DEFAULT`].
    /// docs/checks.md says what each of them finds, and which call returns it.
    pub checks: Option<Checks>,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self {
            device: None,
            cpu: Cpu::default(),
            product: DEFAULT_PRODUCT,
            hbm_size: 16 << 30,
            image: None,
            queue_depth: DEFAULT_DEPTH,
            launch_timeout: None,
            end: None,
            icount: false,
            gdb: None,
            task_timeout: SchedulerConfig::default().task_timeout,
            overlap_is_warning: false,
            faults: FaultPlan::default(),
            deterministic: None,
            model: None,
            watchdog: Duration::from_secs(10),
            record: false,
            trace: None,
            failed_tasks: None,
            deadlock_limit: None,
            checks: None,
        }
    }
}

impl DeviceOptions {
    /// The defaults, with the kernels on threads of the host.
    pub fn native() -> Self {
        Self { cpu: Cpu::Native, ..Self::default() }
    }

    /// The defaults, in deterministic mode with this seed.
    pub fn deterministic(seed: u64) -> Self {
        Self { deterministic: Some(seed), ..Self::native() }
    }

    /// With what the environment sets and the program does not.
    ///
    /// # Errors
    /// An option that is out of range, an unsupported fault, or a variable that can't be read.
    pub(crate) fn complete(self) -> Result<Self, Error> {
        check_depth(self.queue_depth)?;
        check_faults(&self)?;
        let deadlock_limit = limit_of_environment(self.deadlock_limit, LIMIT_VAR)?;
        let launch_timeout = limit_of_environment(self.launch_timeout, LAUNCH_TIMEOUT_VAR)?;
        let checks = self.checks.map_or_else(checks_of_environment, Ok)?;
        let checks = match self.cpu {
            Cpu::Qemu => checks,
            Cpu::Native | Cpu::Linux => {
                let others = checks.without_core().map_err(Error::CoreUnavailable)?;
                if checks.is_on(Check::Core) {
                    log::info!("check core is left out: only the cpu qemu can make it");
                }
                others
            }
        };
        let trace = self.trace_file()?.map(|file| file.path().to_owned());
        let end = self.end.map_or_else(end_of_environment, Ok)?;
        let gdb = match self.gdb {
            Some(port) => Some(port),
            None => gdb_of_environment()?,
        };
        let model = self.model.clone().map_or_else(model_of_environment, |model| Ok(Some(model)))?;
        if model.is_some() && self.cpu != Cpu::Native {
            return Err(Error::ModelNeedsNative);
        }
        let deterministic = self.deterministic.or(model.as_ref().map(|_| MODEL_SEED));
        match gdb {
            Some(_) if self.cpu != Cpu::Qemu => return Err(Error::DebuggerNeedsQemu),
            Some(0) => return Err(Error::BadPort("0".to_owned())),
            _ => {}
        }
        Ok(Self {
            gdb,
            deterministic,
            model,
            deadlock_limit,
            launch_timeout,
            checks: Some(checks),
            end: Some(end),
            trace,
            ..self
        })
    }

    /// The file that the options or the environment name.
    ///
    /// # Errors
    /// [`Error::Trace`], [`Error::BadTraceVariable`].
    pub(crate) fn trace_file(&self) -> Result<Option<TraceFile>, Error> {
        if let Some(path) = &self.trace {
            return Ok(Some(TraceFile::new(path)?));
        }
        match std::env::var_os(TRACE_VAR).filter(|path| !path.is_empty()) {
            Some(path) => TraceFile::new(path.as_ref()).map(Some).map_err(Error::BadTraceVariable),
            None => Ok(None),
        }
    }
}

/// # Errors
/// [`Error::BadDepth`].
pub(crate) fn check_depth(depth: u32) -> Result<(), Error> {
    if is_depth(depth) { Ok(()) } else { Err(Error::BadDepth(depth)) }
}

/// # Errors
/// [`Error::UnsupportedFault`]: the AI CPU does not support a fault of the plan.
fn check_faults(options: &DeviceOptions) -> Result<(), Error> {
    let is_unsupported = |fault| matches!(fault, Fault::Kernel(kernel) if !kernel.runs_native());
    match options.faults.rules.iter().find(|rule| is_unsupported(rule.fault)) {
        Some(rule) if options.cpu == Cpu::Native => Err(Error::UnsupportedFault(rule.fault.name())),
        _ => Ok(()),
    }
}

/// `limit`, or that which an environment variable sets, if it does.
///
/// # Errors
/// [`Error::BadLimit`].
fn limit_of_environment(limit: Option<Duration>, var: &'static str) -> Result<Option<Duration>, Error> {
    let Some(value) = std::env::var_os(var).filter(|_| limit.is_none()) else { return Ok(limit) };
    let text = value.to_string_lossy();
    let bad = |must| Error::BadLimit { var, value: text.clone().into_owned(), must };
    deadlock::parse_limit(&text).map(Some).map_err(bad)
}

/// The end of launches that `HCOMM_SIM_END` names; the default one without it.
///
/// # Errors
/// [`Error::BadLaunchEnd`].
fn end_of_environment() -> Result<LaunchEnd, Error> {
    let Some(value) = std::env::var_os(END_VAR) else { return Ok(LaunchEnd::default()) };
    value.to_string_lossy().parse()
}

/// The model that `HCOMM_SIM_MODEL` names.
///
/// # Errors
/// [`Error::Model`].
fn model_of_environment() -> Result<Option<Model>, Error> {
    match std::env::var_os(MODEL_VAR).filter(|name| !name.is_empty()) {
        Some(name) => Ok(Some(Model::read(name.as_ref())?)),
        None => Ok(None),
    }
}

/// The port that `HCOMM_SIM_GDB` names.
///
/// # Errors
/// [`Error::BadPort`].
fn gdb_of_environment() -> Result<Option<u16>, Error> {
    let Some(value) = std::env::var_os(GDB_VAR) else { return Ok(None) };
    let text = value.to_string_lossy();
    text.parse().map(Some).map_err(|_| Error::BadPort(text.clone().into_owned()))
}

/// The checks that `HCOMM_SIM_CHECK` lists; the default ones without it.
///
/// # Errors
/// [`Error::BadChecks`].
fn checks_of_environment() -> Result<Checks, Error> {
    let Some(value) = std::env::var_os(CHECK_VAR) else { return Ok(Checks::DEFAULT) };
    value.to_string_lossy().parse().map_err(Error::BadChecks)
}
