//! A device: memory, scheduler and AI CPU, opened and closed together.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::{CHANNEL_SIZE, MAX_CHANNELS};
use hcomm_aicpu::spec::comm::{COMM_ENTRY_SIZE, MAX_COMMS};
use hcomm_aicpu::spec::map::IDENTITY_END;
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::{DESCRIPTOR_SIZE, MAX_THREADS};

use crate::backend::core_plugin::CorePlugin;
use crate::backend::linux::{LinuxCpu, RunnerFiles};
use crate::backend::native::{self, NativeCpu};
use crate::backend::places::ProgramPlaces;
use crate::backend::process::Machine;
use crate::backend::qemu::{QemuCpu, QemuOptions};
use crate::backend::{Tables, callers};
use crate::buffer::DeviceBuffer;
use crate::card::device::CardDevice;
use crate::card::kind::DeviceKind;
use crate::error::Error;
use crate::explore::process;
use crate::handle::Handle;
use crate::inner::{Inner, Linux, RECOVERY_TIMEOUT};
use crate::kernel::Kernel;
use crate::library::{Kernels, Library};
use crate::loader::{Image, LoadError};
use crate::options::{Cpu, DeviceOptions};
use crate::trace::lines::Lines;
use crate::trace::session::Recording;
use crate::trace_log::TraceLog;
use hcomm_mapping::SharedMemory;
use hcomm_sim::alloc::{Allocator, Kind};
use hcomm_sim::check::contents::HbmContents;
use hcomm_sim::check::findings::{Findings, Receiver};
use hcomm_sim::check::init_check::InitMember;
use hcomm_sim::check::joint::Membership;
use hcomm_sim::check::list::{Check, Checks};
use hcomm_sim::check::own::OwnCheck;
use hcomm_sim::check::race::RaceMember;
use hcomm_sim::check::start::StartRule;
use hcomm_sim::comm_table::CommTable;
use hcomm_sim::cpu::KernelEntry;
use hcomm_sim::deadlock::WARN_AFTER;
use hcomm_sim::deterministic::seats::Seats;
use hcomm_sim::deterministic::{FreeRunning, Turn};
use hcomm_sim::engine::EnginePool;
use hcomm_sim::event::feed::HostCall;
use hcomm_sim::event::{Access, AccessKind, Feed, HostThread, Object, Observer, Range, Seed, Trace, What};
use hcomm_sim::explore::DeviceTurn;
use hcomm_sim::fabric::{Channels, Fabric};
use hcomm_sim::fault::{FaultCounter, FaultLog, FaultRule};
use hcomm_sim::hosts::{self, spawn_own};
use hcomm_sim::inbox::Recovery;
use hcomm_sim::inbox::{Command, Inbox};
use hcomm_sim::memory::Memory;
use hcomm_sim::queue::{MAX_QUEUES, QueueTable};
use hcomm_sim::scheduler::{Scheduler, SchedulerConfig, run, run_by_turns};
use hcomm_sim::shared::{DeviceCounters, FirstError, Shared};
use hcomm_sim::threads::{RefusedDoorbell, Threads};
use hcomm_sim::timeline::builder::Builder;
use hcomm_sim::timeline::finding;
use hcomm_sim::timeline::model::{Clock, Timeline};

/// Counts of a device since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Tasks that were carried out.
    pub tasks: u64,
    /// Doorbells that were rung.
    pub doorbells: u64,
    /// Tasks whose source and destination overlapped in part, if that is no error.
    pub overlaps: u64,
    /// Entries of channels that were carried out, on an Ascend950.
    pub entries: u64,
}

/// A simulated device, or a card ([`DeviceKind`]). Clones are handles to the same device, which closes with the last of them.
#[derive(Clone)]
pub struct Device(pub(crate) Handle);

impl Device {
    /// Opens a device in the lowest free slot of the process.
    ///
    /// # Errors
    /// No address space, no image, an AI CPU that does not start.
    pub fn open(options: DeviceOptions) -> Result<Self, Error> {
        Self::open_in(options, &Arc::default())
    }

    /// Opens a device in the lowest free slot of the process, and joins it to those of `fabric`: channels to them can be made.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(options: DeviceOptions, fabric: &Arc<Fabric<SharedMemory>>) -> Result<Self, Error> {
        Self::open_at(options, fabric, None)
    }

    /// As [`open_in`](Self::open_in), in slot `wanted` if that is free: a device that has been closed keeps its slot while a call
    /// on it is under way.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_at(
        options: DeviceOptions,
        fabric: &Arc<Fabric<SharedMemory>>,
        wanted: Option<usize>,
    ) -> Result<Self, Error> {
        let kind = options.device.map_or_else(DeviceKind::of_environment, Ok)?;
        let options = DeviceOptions { device: Some(kind), ..options }.complete()?;
        if kind.is_card() {
            return Ok(Self(Handle::Card(Arc::new(CardDevice::open(kind, options)?))));
        }
        let checks = options.checks.unwrap_or(Checks::DEFAULT);
        if !checks.is_on(Check::Core) {
            return Self::open_with(options, fabric, wanted, None);
        }
        let opened =
            CorePlugin::find().and_then(|plugin| Self::open_with(options.clone(), fabric, wanted, Some(plugin)));
        match opened {
            Err(why @ (Error::MissingTool { .. } | Error::CorePlugin(_))) if checks.core_is_optional() => {
                log::warn!("check core is left out: {why}");
                let checks = Some(checks.without(Check::Core));
                Self::open_with(DeviceOptions { checks, ..options }, fabric, wanted, None)
            }
            opened => opened,
        }
    }

    /// Opens a device with complete options. `plugin`: what makes the check `core`.
    fn open_with(
        options: DeviceOptions,
        fabric: &Arc<Fabric<SharedMemory>>,
        wanted: Option<usize>,
        plugin: Option<CorePlugin>,
    ) -> Result<Self, Error> {
        let checks = options.checks.unwrap_or(Checks::DEFAULT);
        let seats = match (options.deterministic, options.cpu) {
            (Some(_), Cpu::Qemu | Cpu::Linux) => return Err(Error::NotDeterministic),
            (Some(seed), Cpu::Native) => {
                let seats = Seats::new(Box::new(Seed::new(seed)), native::CORES, options.watchdog);
                Some(Arc::new(match &options.model {
                    Some(model) => seats.with_costs(model.costs.clone()),
                    None => seats,
                }))
            }
            (None, _) => None,
        };
        let schedule = process::current()?;
        if schedule.is_some() && options.cpu != Cpu::Native {
            process::note_unsupported(&Error::NotExplored);
            return Err(Error::NotExplored);
        }
        if options.model.is_some() && !fabric.is_empty() {
            return Err(Error::ModelOfOneDevice);
        }
        if schedule.is_some() && options.model.is_some() {
            process::note_unsupported(&Error::ModelNotExplored);
            return Err(Error::ModelNotExplored);
        }
        let image = match options.cpu {
            Cpu::Qemu => Some(Arc::new(Image::open(options.image.as_deref())?)),
            Cpu::Native | Cpu::Linux => None,
        };
        let runner = if options.cpu == Cpu::Linux { Some(RunnerFiles::find()?) } else { None };
        let memory = Arc::new(SharedMemory::in_slot(options.hbm_size, wanted)?);
        if options.cpu == Cpu::Qemu && memory.hbm_base() < IDENTITY_END {
            return Err(Error::BaseBelowImage(memory.hbm_base()));
        }
        let explored = schedule.map(|engine| {
            let options = DeviceOptions { trace: None, ..options.clone() };
            engine.note_options(&format!("{options:?}"));
            let device = engine.add_device(memory.hbm());
            (engine, device)
        });
        // In an exploration, its strategy decides in place of a seed.
        let seats = seats.filter(|_| explored.is_none());
        let turn: Arc<dyn Turn> = match (&explored, &seats) {
            (Some((engine, device)), _) => Arc::new(DeviceTurn::new(Arc::clone(engine), *device)),
            (None, Some(seats)) => Arc::clone(seats) as _,
            (None, None) => Arc::new(FreeRunning::default()),
        };
        let mut alloc = Allocator::new(memory.hbm_base(), memory.hbm_size());
        if checks.is_on(Check::Free) {
            alloc = alloc.with_rest();
        }
        let table = DeviceAddr(alloc.allocate(MAX_THREADS as u64 * DESCRIPTOR_SIZE, Kind::ThreadTable)?);
        let comm_table = DeviceAddr(alloc.allocate(MAX_COMMS as u64 * COMM_ENTRY_SIZE, Kind::CommTable)?);
        let channels = DeviceAddr(alloc.allocate(MAX_CHANNELS as u64 * CHANNEL_SIZE, Kind::ChannelTable)?);
        let tables = Tables { threads: table, comms: comm_table, channels };
        // A product that is not supported refuses its threads: no task of any format is ever queued on it.
        let soc = options.product.soc.unwrap_or(Soc::Ascend950);
        let places = ProgramPlaces { image: image.clone(), runner: runner.as_ref().map(|_| Arc::clone(&memory)) };
        let Events { feed: events, findings, recording } =
            feed(&options, checks, soc, &memory, &turn, &places, fabric)?;
        let shared = Arc::new(Shared {
            memory: Arc::clone(&memory),
            soc,
            alloc: Mutex::new(alloc),
            inbox: Arc::new(Inbox::new(Arc::clone(&turn))),
            queues: QueueTable::new(MAX_QUEUES),
            counters: DeviceCounters::default(),
            checks,
            fault_log: FaultLog::default(),
            failed: FirstError::default(),
            events,
            turn,
        });
        let linux =
            runner.as_ref().map(|files| Linux { kernels: Arc::new(Kernels::new(&memory)), files: files.clone() });
        if let Some(recording) = &recording {
            recording.opened(&shared);
        }
        // Records make calls take other ways: in deterministic mode, a trace file must not change the run.
        let records =
            checks.is_on(Check::Race) || plugin.is_some() || recording.is_some() && options.deterministic.is_none();
        let cpu: Box<dyn hcomm_sim::cpu::Cpu> = match &image {
            Some(image) => {
                let machine = Machine { icount: options.icount, gdb: options.gdb };
                let options = QemuOptions { machine, records, plugin };
                Box::new(QemuCpu::start(&memory, image, tables, soc, options)?)
            }
            None => match (&linux, runner) {
                (Some(linux), Some(files)) => {
                    Box::new(LinuxCpu::start(&shared, files, &linux.kernels, tables, soc, records)?)
                }
                _ => Box::new(NativeCpu::new(&shared, tables, soc, records)),
            },
        };
        let config = SchedulerConfig {
            faults: options.faults.clone(),
            task_timeout: options.task_timeout,
            overlap_is_warning: options.overlap_is_warning,
            deadlock_limit: match options.deterministic.is_some() || explored.is_some() {
                true => Some(options.deadlock_limit.unwrap_or(WARN_AFTER)),
                false => options.deadlock_limit,
            },
            is_debugged: options.gdb.is_some(),
            failed_tasks: options.failed_tasks.clone(),
        };
        let kernel_faults = Mutex::new(FaultCounter::new(&options.faults));
        let port = fabric.join(memory.slot() as u32, &shared);
        let name = "stars".to_owned();
        let is_explored = explored.is_some();
        let thread = match (explored, seats, options.deterministic) {
            (Some((engine, device)), ..) => {
                let scheduler = Scheduler::new(Arc::clone(&shared), cpu, None);
                let scheduler = scheduler.with_config(config).with_port(port.clone());
                engine.attach(device, scheduler.explored(device));
                None
            }
            (None, Some(seats), Some(seed)) => {
                let scheduler = Scheduler::new(Arc::clone(&shared), cpu, None)
                    .with_config(config)
                    .with_port(port.clone())
                    .by_turns(Box::new(Seed::new(seed)));
                let scheduler = match &options.model {
                    Some(model) => scheduler.with_costs(model.costs.clone()),
                    None => scheduler,
                };
                Some(spawn_own(name, move || run_by_turns(scheduler, &seats)))
            }
            _ => {
                let engines = EnginePool::new(&memory, &shared.inbox).map_err(Error::Spawn)?;
                let hosts = Box::new(hosts::Process::new(Arc::clone(&shared.inbox)));
                let scheduler = Scheduler::new(Arc::clone(&shared), cpu, Some(engines));
                let scheduler = scheduler.with_config(config).with_hosts(hosts).with_port(port.clone());
                let inbox = Arc::clone(&shared.inbox);
                Some(spawn_own(name, move || run(scheduler, &inbox)))
            }
        };
        let thread = thread.transpose().map_err(Error::Spawn)?;
        let refused_doorbell = match options.cpu {
            Cpu::Qemu | Cpu::Linux => RefusedDoorbell::ByStatus,
            Cpu::Native => RefusedDoorbell::ByAnswer,
        };
        Ok(Self(Handle::Sim(Arc::new(Inner {
            channels: Channels::new(&shared, channels, port),
            threads: Threads::new(&shared, table, options.faults.clone(), refused_doorbell),
            shared,
            options,
            comms: Mutex::new(CommTable::new(comm_table, memory.slot())),
            scheduler: thread.map_or_else(OnceLock::new, OnceLock::from),
            is_explored,
            image,
            linux,
            next_stream_id: AtomicU32::new(1),
            next_event: AtomicU32::new(0),
            kernel_faults,
            findings,
            recording,
            owner: std::process::id(),
        }))))
    }

    /// How it was opened.
    pub fn options(&self) -> &DeviceOptions {
        match &self.0 {
            Handle::Sim(inner) => &inner.options,
            Handle::Card(card) => card.options(),
        }
    }

    /// Time since it was opened: of this computer, or virtual in deterministic mode; with a cost model, that of the model. Never that of
    /// a card: a card tells none, and has 0.
    pub fn now(&self) -> Duration {
        match &self.0 {
            Handle::Sim(inner) => inner.shared.turn.now(),
            Handle::Card(_) => Duration::ZERO,
        }
    }

    /// Device slot in the process: HBM starts at `0x12c0_0000_0000 + slot * 2^40`. Of a card, its number.
    pub fn slot(&self) -> usize {
        match &self.0 {
            Handle::Sim(inner) => inner.shared.memory.slot(),
            Handle::Card(card) => card.number(),
        }
    }

    /// Addresses of the process where its HBM is mapped; none of a card.
    pub fn hbm(&self) -> std::ops::Range<u64> {
        if self.0.card().is_some() {
            return 0..0;
        }
        self.0.shared.memory.hbm()
    }

    /// Allocates `len` bytes of HBM, which are freed when the buffer is dropped.
    ///
    /// # Errors
    /// A length of 0, no room, a failed device.
    pub fn malloc(&self, len: u64) -> Result<DeviceBuffer, Error> {
        Ok(DeviceBuffer::new(self.0.clone(), self.allocate(len)?, len))
    }

    /// Allocates `len` bytes of HBM, which stay until [`free`](Self::free).
    ///
    /// # Errors
    /// As [`malloc`](Self::malloc).
    pub fn allocate(&self, len: u64) -> Result<DeviceAddr, Error> {
        self.0.check_alive()?;
        match self.0.card() {
            Some(card) => Ok(DeviceAddr(card.allocate(len)?)),
            None => self.0.allocate(len, Kind::User),
        }
    }

    /// Frees what [`allocate`](Self::allocate) gave.
    ///
    /// # Errors
    /// `addr` is not the start of a live allocation of the user.
    pub fn free(&self, addr: DeviceAddr) -> Result<(), Error> {
        match self.0.card() {
            Some(_) => self.0.free_unchecked(addr),
            None => self.0.free_user(addr),
        }
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
        if let Some(card) = self.0.card() {
            return Ok(card.copy_in(addr.0, bytes)?);
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
        if let Some(card) = self.0.card() {
            return Ok(card.copy_out(addr.0, out)?);
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
        match self.0.card() {
            Some(card) => Ok(card.check_range(addr.0, len)?),
            None => Ok(self.0.shared.lock_alloc().check_user(addr.0, len)?),
        }
    }

    /// Bytes of HBM that are not allocated. The buffers and queues of the device count as allocated. 0 on a card, which is not asked.
    pub fn free_memory(&self) -> u64 {
        if self.0.card().is_some() {
            return 0;
        }
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
        if let Some(card) = self.0.card() {
            return Ok(card.copy_within(dst.0, src.0, len)?);
        }
        let _call = self.host_copy(Range { addr: src.0, len }, Range { addr: dst.0, len });
        self.0.shared.memory.copy(dst.0, src.0, len)?;
        self.0.check_findings(Receiver::Host(HostThread::current()))
    }

    /// Sets bytes of device memory to zero. Whole pages cost no memory. Does not wait for any stream.
    ///
    /// # Errors
    /// The range is not inside one live allocation of the user, or the device has failed.
    pub fn clear(&self, addr: DeviceAddr, len: u64) -> Result<(), Error> {
        self.0.check_alive()?;
        self.check_range(addr, len)?;
        if let Some(card) = self.0.card() {
            return Ok(card.clear(addr.0, len)?);
        }
        let _call = self.host_copy(Range::default(), Range { addr: addr.0, len });
        self.0.shared.memory.punch(addr.0, len)?;
        self.0.check_findings(Receiver::Host(HostThread::current()))
    }

    /// Reports a copy by the calling thread to the event stream. The copy ends when the result is dropped.
    fn host_copy(&self, reads: Range, writes: Range) -> HostCall<'_> {
        let shared = &self.0.shared;
        shared.turn.host_point();
        for (range, kind) in [(reads, AccessKind::Read), (writes, AccessKind::Write)] {
            if range.len != 0 {
                shared.turn.touch(Access::of(Object::Memory, range.addr, range.len, kind));
            }
        }
        let events = &shared.events;
        let site = events.site();
        events.send(|| What::HostCopy { host: HostThread::current(), reads, writes, site });
        events.host_call()
    }

    /// The image that the AI CPU runs; only on [`Cpu::Qemu`].
    pub fn image(&self) -> Option<&Image> {
        match &self.0 {
            Handle::Sim(inner) => inner.image.as_deref(),
            Handle::Card(_) => None,
        }
    }

    /// The kernel with this name: of the image, of this program on [`Cpu::Native`], of the stock library on [`Cpu::Linux`]; of the
    /// package on a card.
    ///
    /// # Errors
    /// No kernel has this name; the message lists all kernels.
    pub fn load_kernel(&self, name: &str) -> Result<Kernel, Error> {
        if let Some(card) = self.0.card() {
            return Ok(Kernel::on_card(name, card.function(name)?));
        }
        match &self.0.image {
            Some(image) => Ok(Kernel::new(name, KernelEntry::Image(image.kernel(name)?.entry))),
            None => match &self.0.linux {
                Some(linux) => {
                    let path = linux.files.stock_kernels();
                    let stock = Library::read(&path).map_err(|reason| LoadError::Library { path, reason })?;
                    if !stock.has(name) {
                        let kernels = stock.functions().map(ToOwned::to_owned).collect();
                        return Err(LoadError::NoSuchKernel { name: name.to_owned(), kernels }.into());
                    }
                    self.library_kernel(&stock, name)
                }
                None => Kernel::linked(name),
            },
        }
    }

    /// Function `name` of a library as a kernel of [`Cpu::Linux`]. The runner loads the library with the first launch.
    ///
    /// # Errors
    /// The library has no such function, or the file has changed since the device has loaded it; a device on another CPU.
    pub fn library_kernel(&self, library: &Library, name: &str) -> Result<Kernel, Error> {
        let inner = self.0.on_sim("a kernel of a library that is not in the package")?;
        let Some(linux) = &inner.linux else { return Err(Error::WrongCpu(name.to_owned())) };
        let path = library.path();
        let failed = |reason| LoadError::Library { path: path.to_owned(), reason };
        if !library.has(name) {
            return Err(failed(format!("it has no function {name}")).into());
        }
        let place = linux.kernels.place(library, name).map_err(failed)?;
        Ok(Kernel::new(name, KernelEntry::Library(place)))
    }

    /// Checks that the runner of a device on [`Cpu::Linux`] can load this library. Functions that nothing defines are told with a warning.
    ///
    /// # Errors
    /// The file has changed since the device has loaded it; nothing defines what it needs when it is loaded; a device on another CPU.
    pub fn check_library(&self, library: &Library) -> Result<(), Error> {
        let path = library.path();
        let inner = self.0.on_sim("the check of a library")?;
        let Some(linux) = &inner.linux else { return Err(Error::WrongCpu(path.display().to_string())) };
        let needs = |()| library.check_needs(&[linux.files.device_library()], linux.files.root());
        let checked = linux.kernels.check(library).and_then(needs);
        Ok(checked.map_err(|reason| LoadError::Library { path: path.to_owned(), reason })?)
    }

    /// Resets a device that has failed, or whose kernel never ends: the AI CPU starts again, queues are empty, and the
    /// first error is cleared. Memory and threads stay. Outstanding operations end with an error.
    ///
    /// # Errors
    /// [`Error::Restart`]: always on [`Cpu::Native`], whose kernels can't be stopped from outside.
    pub fn restart(&self) -> Result<(), Error> {
        self.0.on_sim("restart")?;
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
        if self.0.card().is_some() {
            return Trace::default();
        }
        self.0.shared.events.trace(self.0.shared.memory.hbm_base())
    }

    /// The timeline of what the device has done so far; empty unless it writes a [trace file](DeviceOptions::trace), is in
    /// deterministic mode, or was opened with [`DeviceOptions::record`]. [`TraceFormat::write`] writes it, and
    /// [`picture`](crate::trace::picture) draws it.
    ///
    /// [`TraceFormat::write`]: crate::trace::TraceFormat::write
    pub fn timeline(&self) -> Timeline {
        if self.0.card().is_some() {
            return Builder::new(self.slot(), Clock::Real).timeline(&|_| None);
        }
        match &self.0.recording {
            Some(recording) => recording.timeline(),
            None => {
                let shared = &self.0.shared;
                let mut builder = Builder::new(self.slot(), clock_of(&self.0.options));
                self.trace().events.iter().for_each(|event| builder.on(event));
                let runner = self.0.linux.as_ref().map(|_| Arc::clone(&shared.memory));
                let places = ProgramPlaces { image: self.0.image.clone(), runner };
                let lines = shared.events.sites().map(|sites| Lines::new(sites, Box::new(places)));
                let mut timeline = builder.timeline(&|site| lines.as_ref()?.text(site));
                let reports = self.0.findings.as_ref().map_or_else(Vec::new, |findings| findings.reports());
                reports.iter().for_each(|report| finding::mark(&mut timeline, report));
                timeline
            }
        }
    }

    /// Looks whether the checks have found something that no call has returned: on a stream that is not synchronised any more, or
    /// between tasks of no known launch. What is left when the device closes is printed to standard error.
    ///
    /// # Errors
    /// The oldest of the findings, once.
    pub fn check_findings(&self) -> Result<(), Error> {
        match self.0.card() {
            Some(_) => Ok(()),
            None => self.0.check_untold(),
        }
    }

    /// Faults that the device was opened with and that have not happened so far: nothing has matched them.
    pub fn faults_left(&self) -> Vec<FaultRule> {
        if self.0.card().is_some() {
            return Vec::new();
        }
        self.0.shared.fault_log.missing(&self.0.options.faults)
    }

    /// Counts since the device was opened; 0 on a card, which does not count.
    pub fn statistics(&self) -> Statistics {
        if self.0.card().is_some() {
            return Statistics::default();
        }
        let counters = &self.0.shared.counters;
        Statistics {
            tasks: counters.tasks.load(Ordering::Relaxed),
            doorbells: counters.doorbells.load(Ordering::Relaxed),
            overlaps: counters.overlaps.load(Ordering::Relaxed),
            entries: counters.entries.load(Ordering::Relaxed),
        }
    }
}

/// Who reads the events of a device.
struct Events {
    feed: Feed,
    findings: Option<Arc<Findings>>,
    recording: Option<Arc<Recording>>,
}

/// What times of a device with complete options are.
fn clock_of(options: &DeviceOptions) -> Clock {
    match (&options.model, options.deterministic) {
        (Some(_), _) => Clock::Model,
        (None, Some(_)) => Clock::Virtual,
        (None, None) => Clock::Real,
    }
}

/// Where the events of a device go, what the checks find, and what is on its way to a trace file.
///
/// # Errors
/// The name of the trace file does not say its format.
fn feed(
    options: &DeviceOptions,
    checks: Checks,
    soc: Soc,
    memory: &Arc<SharedMemory>,
    turn: &Arc<dyn Turn>,
    places: &ProgramPlaces,
    fabric: &Fabric<SharedMemory>,
) -> Result<Events, Error> {
    let file = options.trace_file()?;
    let log = TraceLog::wanted();
    let core = checks.is_on(Check::Core);
    let has_findings = checks.is_on(Check::Race) || checks.is_on(Check::Init) || core;
    let on = || Feed::new(memory.slot(), Arc::clone(turn), MAX_QUEUES, &fabric.bus);
    let feed = match options.deterministic {
        Some(_) => on(),
        None if options.record => on(),
        None if has_findings || file.is_some() || log.is_some() => on().without_recorder(),
        None => Feed::off(),
    };
    let Some(sites) = feed.sites() else { return Ok(Events { feed, findings: None, recording: None }) };
    let (mut feed, mut findings, mut recording) = (feed, None, None);
    let places = || Box::new(places.clone());
    if has_findings || file.is_some() {
        feed = feed.with_callers(callers::return_addresses);
        sites.set_places(places());
    }
    if has_findings {
        let found = Arc::new(Findings::new(Arc::clone(&sites), places()).of_checks(checks));
        // Without one of these two in the list, accesses of kernels' own code alone are reported.
        if checks.is_on(Check::Race) || core {
            let has_start = checks.is_on(Check::Race) && checks.is_on(Check::Sync);
            let start = has_start.then(StartRule::default);
            let member = RaceMember { findings: Arc::clone(&found), soc, start };
            feed.observe(Box::new(Membership::new(&fabric.race, memory.slot(), member)));
        }
        if checks.is_on(Check::Init) || core {
            let contents = HbmContents { memory: Arc::clone(memory), has_every_writer: core };
            let member = InitMember { findings: Arc::clone(&found), hbm: memory.hbm(), contents };
            feed.observe(Box::new(Membership::new(&fabric.init, memory.slot(), member)));
        }
        if core {
            feed.observe(Box::new(OwnCheck::new(Arc::clone(&found))));
            let places = places();
            feed = feed.with_library(move |site| places.is_library(site));
        }
        findings = Some(found);
    }
    if let Some(file) = file {
        let lines = Lines::new(sites, places());
        let begun = Recording::begin(&file, memory.slot(), clock_of(options), findings.clone(), lines);
        feed.observe(begun.observer());
        recording = Some(begun);
    }
    if let Some(log) = log {
        feed.observe(log);
    }
    Ok(Events { feed, findings, recording })
}
