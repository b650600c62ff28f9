//! Shared by `run` and `copy`: a device with a communicator, threads and a stream.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::{LocalCopyParams, STAGED_COPY_INPUT_NOTIFIES, STAGED_COPY_OUTPUT_NOTIFIES, StagedCopyParams};
use host_stub::comm::BUFFSIZE_VAR;
use host_stub::model::{Model, ModelError};
use host_stub::product::{DEFAULT_PRODUCT, PRODUCTS, Product};
use host_stub::sim::deadlock;
use host_stub::trace::{BadTraceFile, TraceFile};
use host_stub::{
    Checks, Comm, CommOptions, ControlPair, Cpu, Device, DeviceKind, DeviceOptions, Error, FaultPlan, FaultRule,
    Kernel, LaunchEnd, LaunchStats, Stream,
};
use serde::{Serialize, Serializer};

use super::device_log;
use super::failure::Failure;
use super::number;

/// Limit of kernels and waiting tasks when faults are injected.
const FAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Grammar of `--fault`. docs/faults.md says the same with examples.
pub const FAULT_HELP: &str = "\
Faults: SPEC = KIND[:KEY=VALUE[,KEY=VALUE...]]
  sdma-error      the engine fails at a task                    n, task, stream, sq
  translation     the engine can't translate a task's address   n, task, stream, sq
  doorbell        a queue refuses a doorbell                    n, stream, sq
  dead-queue      a queue runs no more tasks                    after, stream, sq
  slow-queue      a queue waits before each task                time, stream, sq
  data-abort, undefined, stack-overflow, panic, hang
                  a kernel fails in place of the one launched   n, stream
  n=N             the Nth task, doorbell (of a queue) or launch that matches; default 1
  after=N         tasks that the queue still runs; default 0
  n=A-B, seed=N   a number from A to B chosen by the seed (also after=A-B); the seed is printed
  time=T          like 5us, 10ms or 2s; default 10ms
data-abort, undefined and stack-overflow need --cpu qemu.";

/// Arguments that choose the AI CPU.
#[derive(Debug, clap::Args)]
pub struct SessionArgs {
    /// Device: sim (the simulated one), card:N (a card, by the runtime's libraries; not yet run on hardware), or fake-card (the
    /// simulated one behind a stand-in of those libraries). Default: HCOMM_DEVICE, else sim.
    #[arg(long, value_name = "DEVICE", value_parser = DeviceKind::from_str)]
    device: Option<DeviceKind>,
    /// AI CPU that runs the kernel; fake-card: native or linux; a card has its own.
    #[arg(long, value_enum, default_value_t = CpuArg::Qemu)]
    cpu: CpuArg,
    /// Device image for `--cpu qemu`. Without it: HCOMM_IMAGE, then the target folder.
    #[arg(long, value_name = "PATH")]
    image: Option<PathBuf>,
    /// Product that the device is; `host-stub products` lists them.
    #[arg(long, value_name = "KEY", default_value = DEFAULT_PRODUCT.key)]
    product: String,
    /// Inject a fault, see below. May be given more than once.
    #[arg(long = "fault", value_name = "SPEC")]
    faults: Vec<FaultRule>,
    /// Limit of a kernel, and of a task that waits in its queue. 5 with --fault; without it 1900 (or
    /// HCOMM_SIM_LAUNCH_TIMEOUT) and 60.
    #[arg(long, value_name = "SECONDS", value_parser = number::seconds)]
    timeout: Option<u64>,
    /// How long a wait may last while the device can make no progress. Default: HCOMM_SIM_DEADLOCK_LIMIT, else the
    /// limit of the wait itself.
    #[arg(long, value_name = "SECONDS", value_parser = deadlock::parse_limit)]
    deadlock_limit: Option<Duration>,
    /// Checks to make: race, init, free, calls, sync, core, all or none; -NAME removes one, warn:NAME makes its findings
    /// warnings. Without it those that HCOMM_SIM_CHECK lists, else all but core.
    #[arg(long = "check", value_name = "LIST", allow_hyphen_values = true)]
    checks: Option<Checks>,
    /// Write a timeline of the run to this file: .json (for ui.perfetto.dev), .html (for a browser) or .txt. Default:
    /// HCOMM_SIM_TRACE, else none.
    #[arg(long, value_name = "FILE", value_parser = trace_file)]
    trace: Option<PathBuf>,
    /// Deterministic mode in the time of this cost model: a TOML file (docs/model.md), or stock. With --cpu native. Default:
    /// HCOMM_SIM_MODEL, else none.
    #[arg(long, value_name = "FILE", value_parser = model)]
    model: Option<Model>,
    /// QEMU waits at this TCP port for a debugger, and the command to type is printed; no limit counts. Default: HCOMM_SIM_GDB,
    /// else none.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    gdb: Option<u16>,
    /// When a launch ends: notify (its kernel has returned, as on a card) or queues (all queues that it rang have drained).
    /// Default: HCOMM_SIM_END, else notify.
    #[arg(long, value_name = "WHEN", value_parser = LaunchEnd::from_str)]
    end: Option<LaunchEnd>,
    /// Show all of the device's log on standard error, not only warnings.
    #[arg(short, long)]
    pub verbose: bool,
}

impl SessionArgs {
    /// With a fault the limits are short, so that it is reported soon.
    fn fault_timeout(&self) -> Option<Duration> {
        (!self.faults.is_empty()).then_some(FAULT_TIMEOUT)
    }
}

/// A cost model.
pub fn model(name: &str) -> Result<Model, ModelError> {
    Model::read(name.as_ref())
}

/// Nanoseconds as text, in microseconds.
pub fn microseconds(ns: u64) -> String {
    format!("{}.{:03} us", ns / 1000, ns % 1000)
}

/// Time by a cost model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelTime {
    /// The model.
    model: String,
    /// From the launches to their completion.
    model_ns: u64,
}

impl fmt::Display for ModelTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (model {}: computed, not the time of a card)", microseconds(self.model_ns), self.model)
    }
}

/// A name that says the format of a trace file.
fn trace_file(path: &str) -> Result<PathBuf, BadTraceFile> {
    TraceFile::new(path.as_ref()).map(|file| file.path().to_owned())
}

/// The AI CPU, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum CpuArg {
    /// The AArch64 image, in QEMU.
    Qemu,
    /// The same kernel in this process.
    Native,
    /// The same kernel in a library of AArch64 Linux, in a process of its own.
    Linux,
    /// That of a card.
    #[value(skip)]
    Card,
}

impl CpuArg {
    /// Its name, and what it is.
    pub fn description(self) -> &'static str {
        match self {
            Self::Qemu => "qemu (AArch64 image)",
            Self::Native => "native (this process)",
            Self::Linux => "linux (AArch64 library)",
            Self::Card => "card (its own)",
        }
    }
}

impl From<CpuArg> for Cpu {
    fn from(cpu: CpuArg) -> Self {
        match cpu {
            CpuArg::Qemu => Self::Qemu,
            // A card does not look at it.
            CpuArg::Native | CpuArg::Card => Self::Native,
            CpuArg::Linux => Self::Linux,
        }
    }
}

/// Where the size of the communicator's buffer comes from.
pub fn ccl_buffer_source(ccl_buffer: Option<u64>) -> String {
    match (ccl_buffer, std::env::var_os(BUFFSIZE_VAR)) {
        (Some(bytes), _) => format!("--ccl-buffer {bytes}"),
        (None, Some(value)) => format!("{BUFFSIZE_VAR}={}", value.display()),
        (None, None) => format!("{BUFFSIZE_VAR} is not set"),
    }
}

/// A number of 64 bits in JSON: hexadecimal digits in a string, because many readers keep only 53 bits of a number.
pub fn hex<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:#x}"))
}

/// Tasks of a control pair: the wait for the start notify and the record of the end notify.
pub const CONTROL_TASKS: u64 = 2;

/// A device that is ready for copies through the communicator's buffer.
pub struct Session {
    // Dropped in this order: a communicator must outlive the streams that use it.
    stream: Stream,
    comm: Comm,
    device: Device,
    local_copy: Kernel,
    staged_copy: Kernel,
    thread: ThreadHandle,
    output: ThreadHandle,
    control: ControlPair,
    ccl_buf: DeviceAddr,
    ccl_buf_size: u64,
}

impl Drop for Session {
    /// A fault that was asked for and has hit nothing is told: the run has tested nothing.
    fn drop(&mut self) {
        for rule in self.device.faults_left() {
            // Nowhere to tell it to is no reason to stop.
            let _ =
                writeln!(io::stderr(), "warning: the fault {rule} did not happen: nothing that was run has matched it");
        }
    }
}

impl Session {
    /// Opens the device and acquires what the kernels need.
    pub fn open(args: &SessionArgs, ccl_buffer: Option<u64>) -> Result<Self, Failure> {
        device_log::show(args.verbose);
        let product = Product::from_key(&args.product).ok_or_else(|| {
            let keys = PRODUCTS.map(|product| product.key).join(", ");
            Failure::Usage(format!("unknown product {:?}: must be one of {keys}", args.product))
        })?;
        let mut options = DeviceOptions {
            device: args.device,
            cpu: args.cpu.into(),
            product,
            image: args.image.clone(),
            faults: FaultPlan::from(args.faults.clone()),
            deadlock_limit: args.deadlock_limit,
            checks: args.checks,
            gdb: args.gdb,
            end: args.end,
            trace: args.trace.clone(),
            model: args.model.clone(),
            ..Default::default()
        };
        if let Some(timeout) = args.timeout.map(Duration::from_secs).or(args.fault_timeout()) {
            (options.launch_timeout, options.task_timeout) = (Some(timeout), timeout);
        }
        for rule in &args.faults {
            // Standard error: standard output may be one JSON object. The line shows the number that a seed has chosen.
            drop(writeln!(io::stderr(), "fault: {rule}"));
        }
        let device = Device::open(options)?;
        let comm = Comm::with_options(&device, CommOptions { ccl_buffer })?;
        let (ccl_buf, ccl_buf_size) = comm.hccl_buffer().map_err(|error| match error {
            Error::Alloc(_) => Failure::Usage(format!("{}: {error}", ccl_buffer_source(ccl_buffer))),
            error => error.into(),
        })?;
        let thread = comm.acquire_threads(Engine::AICPU_TS, 1, STAGED_COPY_INPUT_NOTIFIES + 1)?[0];
        let (local_copy, staged_copy) = (device.load_kernel("local_copy")?, device.load_kernel("staged_copy")?);
        let stream = Stream::new(&device);
        let output = comm.acquire_threads(Engine::AICPU_TS, 1, STAGED_COPY_OUTPUT_NOTIFIES)?[0];
        let control = ControlPair::new(&comm, &stream, thread, STAGED_COPY_INPUT_NOTIFIES)?;
        Ok(Self { stream, comm, device, local_copy, staged_copy, thread, output, control, ccl_buf, ccl_buf_size })
    }

    /// A time of the device, as one of its cost model; `None`: it has none.
    pub fn model_time(&self, time: Duration) -> Option<ModelTime> {
        let model = self.device.options().model.as_ref()?.name.clone();
        Some(ModelTime { model, model_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) })
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What has run the kernels.
    pub fn cpu(&self) -> CpuArg {
        let options = self.device.options();
        match (options.device, options.cpu) {
            (Some(DeviceKind::Card(_)), _) => CpuArg::Card,
            (_, Cpu::Qemu) => CpuArg::Qemu,
            (_, Cpu::Native) => CpuArg::Native,
            (_, Cpu::Linux) => CpuArg::Linux,
        }
    }

    /// Name of a device that is not the simulated one: what it does not count is left out of the answer.
    pub fn card_name(&self) -> Option<String> {
        self.device.options().device.filter(|kind| kind.is_card()).map(|kind| kind.to_string())
    }

    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    pub fn thread(&self) -> ThreadHandle {
        self.thread
    }

    /// First byte of the communicator's buffer.
    pub fn ccl_buf(&self) -> DeviceAddr {
        self.ccl_buf
    }

    /// Bytes of the communicator's buffer.
    pub fn ccl_buf_size(&self) -> u64 {
        self.ccl_buf_size
    }

    /// Launches `local_copy` for `len` bytes from `user_in` to the start of the communicator's buffer; waits for it.
    pub fn copy_to_ccl_buf(&self, user_in: DeviceAddr, len: u64) -> Result<Arc<LaunchStats>, Failure> {
        let params = LocalCopyParams {
            header: LocalCopyParams::HEADER,
            thread: self.thread.0,
            user_in,
            ccl_buf: self.ccl_buf,
            ccl_buf_size: self.ccl_buf_size,
            len,
            control: self.control.control(),
        };
        let stats = self.stream.launch_with_control(&self.control, &self.local_copy, &params)?;
        self.stream.synchronize()?;
        Ok(stats)
    }
    /// Launches `staged_copy` for `len` bytes from `user_in` through the communicator's buffer to `user_out`; waits for it.
    pub fn copy_through_ccl_buf(
        &self,
        user_in: DeviceAddr,
        user_out: DeviceAddr,
        len: u64,
    ) -> Result<Arc<LaunchStats>, Failure> {
        let params = StagedCopyParams {
            header: StagedCopyParams::HEADER,
            input: self.thread.0,
            output: self.output.0,
            user_in,
            user_out,
            ccl_buf: self.ccl_buf,
            ccl_buf_size: self.ccl_buf_size,
            len,
            control: self.control.control(),
        };
        let stats = self.stream.launch_with_control(&self.control, &self.staged_copy, &params)?;
        self.stream.synchronize()?;
        Ok(stats)
    }
}
