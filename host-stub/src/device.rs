//! A device: memory, scheduler and AI CPU, opened and closed together.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::{CHANNEL_SIZE, MAX_CHANNELS};
use hcomm_aicpu::spec::comm::{COMM_ENTRY_SIZE, MAX_COMMS};
use hcomm_aicpu::spec::queue::DEFAULT_DEPTH;
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::{DESCRIPTOR_SIZE, MAX_THREADS};

use crate::backend::Tables;
use crate::backend::native::{self, NativeCpu};
use crate::backend::qemu::QemuCpu;
use crate::buffer::DeviceBuffer;
use crate::comm_table::CommTable;
use crate::error::Error;
use crate::launch::{Kernel, native_kernel};
use crate::loader::Image;
use crate::product::{DEFAULT_PRODUCT, Product};
use crate::thread::ThreadTable;
use hcomm_mapping::SharedMemory;
use hcomm_sim::alloc::{Allocator, Kind};
use hcomm_sim::baton::Baton;
use hcomm_sim::check::findings::{Findings, Receiver};
use hcomm_sim::check::list::{CHECK_VAR, Check, Checks};
use hcomm_sim::check::race::RaceCheck;
use hcomm_sim::cpu::KernelEntry;
use hcomm_sim::deadlock::{self, LIMIT_VAR, WARN_AFTER};
use hcomm_sim::engine::EnginePool;
use hcomm_sim::event::feed::{Clock, HostCall};
use hcomm_sim::event::{Feed, HostThread, Range, Seed, Trace, What};
use hcomm_sim::fault::{Fault, FaultCounter, FaultLog, FaultPlan, FaultRule, KernelFault};
use hcomm_sim::hosts::{self, spawn_own};
use hcomm_sim::inbox::Recovery;
use hcomm_sim::inbox::{Command, Inbox};
use hcomm_sim::memory::Memory;
use hcomm_sim::queue::{MAX_QUEUES, QueueTable};
use hcomm_sim::scheduler::{Scheduler, SchedulerConfig, run, run_by_turns};
use hcomm_sim::shared::{DeviceCounters, FirstError, Shared};

/// How long a reset of queues or of the device may take: longer than the largest task, and than a boot.
pub(crate) const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Which AI CPU runs the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cpu {
    /// The AArch64 image on an emulated processor.
    #[default]
    Qemu,
    /// The kernels that are linked into this program, on threads of the host.
    Native,
}

/// How a device is opened.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// AI CPU.
    pub cpu: Cpu,
    /// Product that the device is.
    pub product: &'static Product,
    /// Bytes of HBM, a multiple of 1 MiB. Memory that is not used costs nothing.
    pub hbm_size: u64,
    /// The image; `None`: [`crate::loader::find`] looks for it. [`Cpu::Native`] ignores it.
    pub image: Option<PathBuf>,
    /// Entries of a ring, unless [`ThreadConfig::depth`](crate::ThreadConfig::depth) sets another number.
    pub queue_depth: u32,
    /// How long a kernel may take. Above the 1856 s that a kernel waits for room in a full queue.
    pub launch_timeout: Duration,
    /// QEMU only: the processor counts instructions exactly ([`LaunchStats::instructions`](crate::LaunchStats)), its cores
    /// take turns on one thread of the host, and it is several times slower. Otherwise the count is not valid.
    pub icount: bool,
    /// How long the task at the head of a queue may wait until it runs; after that the device fails.
    pub task_timeout: Duration,
    /// Whether a task whose source and destination overlap in part is only logged and counted, not an error of the device.
    pub overlap_is_warning: bool,
    /// Faults to inject.
    pub faults: FaultPlan,
    /// Deterministic mode, with this seed; for [`Cpu::Native`] alone. Kernels, scheduler, engines and host waits run one at
    /// a time, the seed picks whose turn it is, and time is virtual: the same program and seed give the same
    /// [trace](Device::trace). The device works only while a host thread is inside a call that waits. Calls of several host
    /// threads come in the order that the operating system picks.
    pub deterministic: Option<u64>,
    /// Limit, in real time, between two calls of the device by a kernel in deterministic mode; after that the kernel is
    /// abandoned.
    pub watchdog: Duration,
    /// Records events also outside deterministic mode.
    pub record: bool,
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
            cpu: Cpu::default(),
            product: DEFAULT_PRODUCT,
            hbm_size: 16 << 30,
            image: None,
            queue_depth: DEFAULT_DEPTH,
            launch_timeout: Duration::from_secs(1900),
            icount: false,
            task_timeout: SchedulerConfig::default().task_timeout,
            overlap_is_warning: false,
            faults: FaultPlan::default(),
            deterministic: None,
            watchdog: Duration::from_secs(10),
            record: false,
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
}

/// Counts of a device since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Tasks that were carried out.
    pub tasks: u64,
    /// Doorbells that were rung.
    pub doorbells: u64,
    /// Tasks whose source and destination overlapped in part, if that is no error.
    pub overlaps: u64,
}

/// What all handles to a device share.
pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared<SharedMemory>>,
    pub(crate) options: DeviceOptions,
    pub(crate) threads: Mutex<ThreadTable>,
    pub(crate) comms: Mutex<CommTable>,
    scheduler: OnceLock<JoinHandle<()>>,
    image: Option<Arc<Image>>,
    next_stream_id: AtomicU32,
    kernel_faults: Mutex<FaultCounter>,
    findings: Arc<Findings>,
    /// Id of the process that has opened it.
    owner: u32,
}

impl Inner {
    /// Numbers for `count` new streams: the first of them.
    pub(crate) fn stream_ids(&self, count: u32) -> u32 {
        self.next_stream_id.fetch_add(count, Ordering::Relaxed)
    }

    /// The fault that the plan has for the next launch on a stream.
    pub(crate) fn kernel_fault(&self, stream_id: u32) -> Option<KernelFault> {
        let rule = self.kernel_faults.lock().unwrap_or_else(PoisonError::into_inner).launch(stream_id)?;
        self.shared.fault_log.note(rule);
        match rule.fault {
            Fault::Kernel(fault) => Some(fault),
            _ => None,
        }
    }

    /// Whether the scheduler has ended.
    pub(crate) fn scheduler_gone(&self) -> bool {
        // A scheduler that has crashed has failed the device first.
        let has_crashed = || self.shared.failed.is_set() && self.shared.inbox.is_closed();
        self.is_forked() || has_crashed() || self.scheduler.get().is_none_or(JoinHandle::is_finished)
    }

    /// Whether this is a copy of the device in a forked child, which has none of its threads.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.owner
    }

    /// # Errors
    /// [`Error::Forked`].
    pub(crate) fn check_owner(&self) -> Result<(), Error> {
        if self.is_forked() { Err(Error::Forked { owner: self.owner }) } else { Ok(()) }
    }

    /// # Errors
    /// [`Error::AlreadyFailed`], or [`Error::Forked`].
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        self.check_owner()?;
        match self.shared.failed.get() {
            None => Ok(()),
            Some(error) => Err(Error::AlreadyFailed(error)),
        }
    }

    /// # Errors
    /// [`Error::Race`]: what the checks have found for `receiver`, once.
    pub(crate) fn check_findings(&self, receiver: Receiver) -> Result<(), Error> {
        if !self.shared.checks.is_on(Check::Race) {
            return Ok(());
        }
        self.shared.events.flush();
        self.findings.take(receiver).map_or(Ok(()), |race| Err(Error::Race(Box::new(race))))
    }

    pub(crate) fn allocate(&self, len: u64, kind: Kind) -> Result<DeviceAddr, Error> {
        let _call = self.shared.events.host_call();
        Ok(DeviceAddr(self.shared.allocate(len, kind)?))
    }

    /// Frees what the device itself has allocated.
    pub(crate) fn free_own(&self, addr: DeviceAddr) {
        self.shared.free_own(addr.0, Some(HostThread::current()));
    }

    pub(crate) fn free_user(&self, addr: DeviceAddr) -> Result<(), Error> {
        self.check_owner()?;
        let _call = self.shared.events.host_call();
        self.shared.free_user(addr.0)?;
        self.check_findings(Receiver::Host(HostThread::current()))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_forked() {
            // There is no thread to stop, and a lock that another thread held stays locked.
            return;
        }
        self.shared.inbox.send(Command::Stop);
        if let Some(baton) = &self.shared.baton {
            baton.close();
        }
        if let Some(scheduler) = self.scheduler.take() {
            // If it panicked, its message has been printed.
            let _ = scheduler.join();
        }
    }
}

/// A simulated device. Clones are handles to the same device, which closes with the last of them.
#[derive(Clone)]
pub struct Device(pub(crate) Arc<Inner>);

impl Device {
    /// Opens a device in the lowest free slot of the process.
    ///
    /// # Errors
    /// No address space, no image, an AI CPU that does not start.
    pub fn open(options: DeviceOptions) -> Result<Self, Error> {
        crate::thread::check_depth(options.queue_depth)?;
        check_faults(&options)?;
        let deadlock_limit =
            options.deadlock_limit.map_or_else(deadlock_limit_of_environment, |limit| Ok(Some(limit)))?;
        let checks = options.checks.map_or_else(checks_of_environment, Ok)?;
        let checks = checks.without_core().map_err(Error::CoreUnavailable)?;
        let findings = Arc::new(Findings::default());
        let options = DeviceOptions { deadlock_limit, checks: Some(checks), ..options };
        let baton = match (options.deterministic, options.cpu) {
            (Some(_), Cpu::Qemu) => return Err(Error::DeterministicQemu),
            (Some(seed), Cpu::Native) => {
                Some(Arc::new(Baton::new(Box::new(Seed::new(seed)), native::CORES, options.watchdog)))
            }
            (None, _) => None,
        };
        let image = match options.cpu {
            Cpu::Qemu => Some(Arc::new(Image::open(options.image.as_deref())?)),
            Cpu::Native => None,
        };
        let memory = Arc::new(SharedMemory::new(options.hbm_size)?);
        let mut alloc = Allocator::new(memory.hbm_base(), memory.hbm_size());
        let table = DeviceAddr(alloc.allocate(MAX_THREADS as u64 * DESCRIPTOR_SIZE, Kind::ThreadTable)?);
        let comm_table = DeviceAddr(alloc.allocate(MAX_COMMS as u64 * COMM_ENTRY_SIZE, Kind::CommTable)?);
        let channels = DeviceAddr(alloc.allocate(MAX_CHANNELS as u64 * CHANNEL_SIZE, Kind::ChannelTable)?);
        let tables = Tables { threads: table, comms: comm_table, channels };
        // A product that is not supported refuses its threads: no task of any format is ever queued on it.
        let soc = options.product.soc.unwrap_or(Soc::Ascend950);
        let shared = Arc::new(Shared {
            memory: Arc::clone(&memory),
            soc,
            alloc: Mutex::new(alloc),
            inbox: Arc::new(baton.clone().map_or_else(Inbox::default, Inbox::with_baton)),
            queues: QueueTable::new(MAX_QUEUES),
            counters: DeviceCounters::default(),
            checks,
            fault_log: FaultLog::default(),
            failed: FirstError::default(),
            events: feed(&options, checks, memory.slot(), baton.as_ref(), &findings),
            baton: baton.clone(),
        });
        let cpu: Box<dyn hcomm_sim::cpu::Cpu> = match &image {
            Some(image) => Box::new(QemuCpu::start(&memory, image, tables, soc, options.icount)?),
            None => Box::new(NativeCpu::new(&shared, tables, soc)),
        };
        let config = SchedulerConfig {
            faults: options.faults.clone(),
            task_timeout: options.task_timeout,
            overlap_is_warning: options.overlap_is_warning,
            deadlock_limit: match options.deterministic {
                Some(_) => Some(deadlock_limit.unwrap_or(WARN_AFTER)),
                None => deadlock_limit,
            },
        };
        let kernel_faults = Mutex::new(FaultCounter::new(&options.faults));
        let name = "stars".to_owned();
        let thread = match (baton, options.deterministic) {
            (Some(baton), Some(seed)) => {
                let scheduler = Scheduler::new(Arc::clone(&shared), cpu, None)
                    .with_config(config)
                    .by_turns(Box::new(Seed::new(seed)));
                spawn_own(name, move || run_by_turns(scheduler, &baton))
            }
            _ => {
                let engines = EnginePool::new(&memory, &shared.inbox).map_err(Error::Spawn)?;
                let hosts = Box::new(hosts::Process::new(Arc::clone(&shared.inbox)));
                let scheduler = Scheduler::new(Arc::clone(&shared), cpu, Some(engines));
                let scheduler = scheduler.with_config(config).with_hosts(hosts);
                let inbox = Arc::clone(&shared.inbox);
                spawn_own(name, move || run(scheduler, &inbox))
            }
        };
        let thread = thread.map_err(Error::Spawn)?;
        Ok(Self(Arc::new(Inner {
            shared,
            options,
            threads: Mutex::new(ThreadTable::new(table, soc)),
            comms: Mutex::new(CommTable::new(comm_table)),
            scheduler: OnceLock::from(thread),
            image,
            next_stream_id: AtomicU32::new(1),
            kernel_faults,
            findings,
            owner: std::process::id(),
        })))
    }

    /// How it was opened.
    pub fn options(&self) -> &DeviceOptions {
        &self.0.options
    }

    /// Device slot in the process: HBM starts at `0x12c0_0000_0000 + slot * 2^40`.
    pub fn slot(&self) -> usize {
        self.0.shared.memory.slot()
    }

    /// Addresses of the process where its HBM is mapped.
    pub fn hbm(&self) -> std::ops::Range<u64> {
        self.0.shared.memory.hbm()
    }

    /// Allocates `len` bytes of HBM, which are freed when the buffer is dropped.
    ///
    /// # Errors
    /// A length of 0, no room, a failed device.
    pub fn malloc(&self, len: u64) -> Result<DeviceBuffer, Error> {
        Ok(DeviceBuffer::new(self.clone(), self.allocate(len)?, len))
    }

    /// Allocates `len` bytes of HBM, which stay until [`free`](Self::free).
    ///
    /// # Errors
    /// As [`malloc`](Self::malloc).
    pub fn allocate(&self, len: u64) -> Result<DeviceAddr, Error> {
        self.0.check_alive()?;
        self.0.allocate(len, Kind::User)
    }

    /// Frees what [`allocate`](Self::allocate) gave.
    ///
    /// # Errors
    /// `addr` is not the start of a live allocation of the user.
    pub fn free(&self, addr: DeviceAddr) -> Result<(), Error> {
        self.0.free_user(addr)
    }

    /// Copies bytes of the host into device memory. Does not wait for any stream. 0 bytes can be copied to any address.
    ///
    /// # Errors
    /// The range is not inside one live allocation of the user, or the device has failed.
    pub fn copy_in(&self, addr: DeviceAddr, bytes: &[u8]) -> Result<(), Error> {
        self.0.check_alive()?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.0.shared.lock_alloc().check_user(addr.0, bytes.len() as u64)?;
        let _call = self.host_copy(Range::default(), Range { addr: addr.0, len: bytes.len() as u64 });
        self.0.shared.memory.write(addr.0, bytes)?;
        self.0.check_findings(Receiver::Host(HostThread::current()))
    }

    /// Copies device memory into bytes of the host. Does not wait for any stream. A failed device can still be read. 0
    /// bytes can be read from any address.
    ///
    /// # Errors
    /// The range is not inside one live allocation of the user; a forked child.
    pub fn copy_out(&self, addr: DeviceAddr, out: &mut [u8]) -> Result<(), Error> {
        self.0.check_owner()?;
        if out.is_empty() {
            return Ok(());
        }
        self.0.shared.lock_alloc().check_user(addr.0, out.len() as u64)?;
        let _call = self.host_copy(Range { addr: addr.0, len: out.len() as u64 }, Range::default());
        self.0.shared.memory.read(addr.0, out)?;
        self.0.check_findings(Receiver::Host(HostThread::current()))
    }

    /// Checks that a range is inside one live allocation of the user.
    ///
    /// # Errors
    /// It is not.
    pub fn check_range(&self, addr: DeviceAddr, len: u64) -> Result<(), Error> {
        Ok(self.0.shared.lock_alloc().check_user(addr.0, len)?)
    }

    /// Bytes of HBM that are not allocated. The buffers and queues of the device count as allocated.
    pub fn free_memory(&self) -> u64 {
        self.0.shared.lock_alloc().free_bytes()
    }

    /// Copies inside device memory, by the host. Ranges may overlap. Does not wait for any stream.
    ///
    /// # Errors
    /// A range is not inside one live allocation of the user, or the device has failed.
    pub fn copy_within(&self, dst: DeviceAddr, src: DeviceAddr, len: u64) -> Result<(), Error> {
        self.0.check_alive()?;
        self.check_range(dst, len)?;
        self.check_range(src, len)?;
        let _call = self.host_copy(Range { addr: src.0, len }, Range { addr: dst.0, len });
        self.0.shared.memory.copy(dst.0, src.0, len)?;
        self.0.check_findings(Receiver::Host(HostThread::current()))
    }

    /// Reports a copy by the calling thread to the event stream. The copy ends when the result is dropped.
    fn host_copy(&self, reads: Range, writes: Range) -> HostCall<'_> {
        let events = &self.0.shared.events;
        events.send(|| What::HostCopy { host: HostThread::current(), reads, writes });
        events.host_call()
    }

    /// The image that the AI CPU runs; none on [`Cpu::Native`].
    pub fn image(&self) -> Option<&Image> {
        self.0.image.as_deref()
    }

    /// The kernel with this name: of the image, or of this program on [`Cpu::Native`].
    ///
    /// # Errors
    /// No kernel has this name; the message lists all kernels.
    pub fn load_kernel(&self, name: &str) -> Result<Kernel, Error> {
        match &self.0.image {
            Some(image) => Ok(Kernel::new(name, KernelEntry::Image(image.kernel(name)?.entry))),
            None => native_kernel(name),
        }
    }

    /// Resets a device that has failed, or whose kernel never ends: the AI CPU starts again, queues are empty, and the
    /// first error is cleared. Memory and threads stay. Outstanding operations end with an error.
    ///
    /// # Errors
    /// [`Error::Restart`]: always on [`Cpu::Native`], whose kernels can't be stopped from outside.
    pub fn restart(&self) -> Result<(), Error> {
        let (reply, answer) = sync_channel(1);
        self.0.shared.inbox.send(Command::Recover(Recovery::Restart(reply)));
        match self.0.shared.receive(&answer, RECOVERY_TIMEOUT) {
            Ok(result) => result.map_err(Error::Restart),
            Err(_) if self.0.scheduler_gone() => Err(Error::SchedulerGone),
            Err(_) => Err(Error::Restart(format!("the scheduler has not done it within {RECOVERY_TIMEOUT:?}"))),
        }
    }

    /// The events so far; empty unless the device is in deterministic mode or opened with [`DeviceOptions::record`].
    pub fn trace(&self) -> Trace {
        self.0.shared.events.trace(self.0.shared.memory.hbm_base())
    }

    /// Faults that the device was opened with and that have not happened so far: nothing has matched them.
    pub fn faults_left(&self) -> Vec<FaultRule> {
        self.0.shared.fault_log.missing(&self.0.options.faults)
    }

    /// Counts since the device was opened.
    pub fn statistics(&self) -> Statistics {
        let counters = &self.0.shared.counters;
        Statistics {
            tasks: counters.tasks.load(Ordering::Relaxed),
            doorbells: counters.doorbells.load(Ordering::Relaxed),
            overlaps: counters.overlaps.load(Ordering::Relaxed),
        }
    }
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

/// The limit that `HCOMM_SIM_DEADLOCK_LIMIT` sets, if it does.
///
/// # Errors
/// [`Error::BadDeadlockLimit`].
fn deadlock_limit_of_environment() -> Result<Option<Duration>, Error> {
    let Some(value) = std::env::var_os(LIMIT_VAR) else { return Ok(None) };
    let text = value.to_string_lossy();
    let bad = |must| Error::BadDeadlockLimit { value: text.clone().into_owned(), must };
    deadlock::parse_limit(&text).map(Some).map_err(bad)
}

/// The checks that `HCOMM_SIM_CHECK` lists; the default ones without it.
///
/// # Errors
/// [`Error::BadChecks`].
fn checks_of_environment() -> Result<Checks, Error> {
    let Some(value) = std::env::var_os(CHECK_VAR) else { return Ok(Checks::DEFAULT) };
    value.to_string_lossy().parse().map_err(Error::BadChecks)
}

/// Where the events of a device go.
fn feed(
    options: &DeviceOptions,
    checks: Checks,
    slot: usize,
    baton: Option<&Arc<Baton>>,
    findings: &Arc<Findings>,
) -> Feed {
    let mut feed = match baton {
        Some(baton) => Feed::new(slot, Clock::Virtual(Arc::clone(baton)), MAX_QUEUES),
        None if options.record => Feed::new(slot, Clock::Real(Instant::now()), MAX_QUEUES),
        None if checks.is_on(Check::Race) => {
            Feed::new(slot, Clock::Real(Instant::now()), MAX_QUEUES).without_recorder()
        }
        None => Feed::off(),
    };
    if checks.is_on(Check::Race) {
        feed.observe(Box::new(RaceCheck::new(Arc::clone(findings))));
    }
    feed
}
