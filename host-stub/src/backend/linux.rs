//! AI CPU that runs kernels of AArch64 Linux libraries in a process of its own, the runner.
//!
//! The launch protocol is that of the image. The runner stays from open to close, and loads each library once.

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::mailbox::{FAULT_STRIDE, FaultKind, FaultRecord, HostMailbox, MAILBOX_STRIDE, MAX_CORES};
use hcomm_aicpu::spec::map::{FAULT_PHYS, HOST_MAILBOX_PHYS};
use hcomm_aicpu::spec::record::CallRecord;
use hcomm_aicpu::spec::runner::{HBM_STEP_WORDS, HBM_STEPS_PHYS, MODULES_PHYS, MODULES_SIZE, NO_CORE};
use hcomm_aicpu::spec::soc::Soc;

use super::Tables;
use super::mailbox::Mailboxes;
use super::modules::Modules;
use super::refusals::RefusalReader;
use super::report::{Record, way};
pub use super::runner::RunnerFiles;
use super::runner::{Runner, is_system_library};
use crate::error::Error;
use crate::library::Kernels;
use crate::log_place::Running;
use hcomm_mapping::SharedMemory;
use hcomm_sim::KernelLaunch;
use hcomm_sim::cpu::{Cpu, CpuFault, KernelEntry, Refused, Returned};
use hcomm_sim::memory::Memory;
use hcomm_sim::records::RecordReader;
use hcomm_sim::shared::Shared;

/// How long the runner may take from the start of the process until it takes launches.
const BOOT_TIMEOUT: Duration = Duration::from_secs(60);
/// How often to look for it.
const BOOT_POLL: Duration = Duration::from_micros(200);
/// How often to check that it runs, while a kernel runs.
const CHECK_PERIOD: Duration = Duration::from_millis(5);
/// How long a core may take to tell where it is.
const PLACE_TIMEOUT: Duration = Duration::from_secs(2);

/// The AI CPU.
pub struct LinuxCpu {
    shared: Arc<Shared<SharedMemory>>,
    files: RunnerFiles,
    kernels: Arc<Kernels>,
    tables: Tables,
    soc: Soc,
    runner: Runner,
    mailboxes: Mailboxes,
    /// Of each core, and of the threads without one.
    refusals: Vec<RefusalReader>,
    /// Calls are recorded.
    records: Option<[RecordReader; MAX_CORES]>,
    /// Place of the name of the kernel that each core runs.
    running: [Option<u64>; MAX_CORES],
    next_check: Instant,
}

impl LinuxCpu {
    /// Starts the runner, and waits until it takes launches. `records`: calls are recorded.
    ///
    /// # Errors
    /// [`Error::Boot`].
    pub fn start(
        shared: &Arc<Shared<SharedMemory>>,
        files: RunnerFiles,
        kernels: &Arc<Kernels>,
        tables: Tables,
        soc: Soc,
        records: bool,
    ) -> Result<Self, Error> {
        let memory = &shared.memory;
        let mailboxes = Mailboxes::new(memory);
        mailboxes.write_boot_block(tables, soc, records);
        ask_for_steps(shared);
        let mut cpu = Self {
            shared: Arc::clone(shared),
            runner: Runner::start(&files, memory).map_err(Error::Boot)?,
            files,
            kernels: Arc::clone(kernels),
            tables,
            soc,
            mailboxes,
            records: records.then(|| std::array::from_fn(RecordReader::new)),
            refusals: (0..=NO_CORE).map(|core| RefusalReader::new(memory, core)).collect(),
            running: [None; MAX_CORES],
            next_check: Instant::now(),
        };
        cpu.wait_ready()?;
        Ok(cpu)
    }

    fn wait_ready(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        while !self.mailboxes.is_ready("the runner").map_err(Error::Boot)? {
            if let Some((phys, _)) = self.mailboxes.fault(0) {
                return Err(Error::Boot(format!(
                    "the runner can't serve the device: {}",
                    message(self.memory(), phys)
                )));
            }
            self.runner.check().map_err(|ended| Error::Boot(ended.text))?;
            if started.elapsed() > BOOT_TIMEOUT {
                return Err(Error::Boot(format!("the runner does not take launches within {BOOT_TIMEOUT:?}")));
            }
            std::thread::sleep(BOOT_POLL);
        }
        Ok(())
    }

    fn memory(&self) -> &SharedMemory {
        &self.shared.memory
    }

    fn forward(&mut self) {
        self.runner.forward_output();
        self.refusals.iter_mut().for_each(RefusalReader::drain);
    }

    /// # Errors
    /// [`CpuFault::Kernel`]: the kernel of `core` has ended the runner. If that of another core has, this is not the one to say so.
    fn check(&mut self, core: usize) -> Result<(), CpuFault> {
        let others_run = |one: u64| self.running.get(one as usize).is_some_and(Option::is_some);
        for one in 0..=NO_CORE {
            let Some((phys, kind)) = self.mailboxes.fault(one) else { continue };
            if one != core as u64 && others_run(one) {
                return Ok(());
            }
            self.runner.kill();
            self.forward();
            let text = self.fault_text(phys, kind);
            return Err(CpuFault::Kernel(if one == NO_CORE {
                format!("in a thread that a kernel has made: {text}")
            } else {
                text
            }));
        }
        let now = Instant::now();
        if now < self.next_check {
            return Ok(());
        }
        self.next_check = now + CHECK_PERIOD;
        self.refusals.iter_mut().for_each(RefusalReader::drain);
        let Err(ended) = self.runner.check() else { return Ok(()) };
        // A record may have been written since the look at them.
        if (0..=NO_CORE).any(|one| self.mailboxes.fault(one).is_some()) {
            self.next_check = now;
            return Ok(());
        }
        let is_of = |place: &Option<u64>| {
            let path = place.and_then(|place| self.kernels.library_at(place));
            path.is_some_and(|path| {
                ended.missing.as_ref().is_some_and(|text| text.starts_with(&*path.to_string_lossy()))
            })
        };
        if let Some(owner) = self.running.iter().position(is_of)
            && owner != core
        {
            self.next_check = now;
            return Ok(());
        }
        Err(CpuFault::Kernel(match &ended.missing {
            Some(missing) => format!("it calls a function that is not there: {missing}"),
            None => ended.text,
        }))
    }

    /// What a fault record says.
    fn fault_text(&self, phys: u64, kind: FaultKind) -> String {
        let memory = self.memory();
        let record = Record { memory, phys };
        let (code, far) = (record.word64(offset_of!(FaultRecord, esr)), record.word64(offset_of!(FaultRecord, far)));
        let what = match kind {
            FaultKind::SIGNAL => {
                let signal = record.word32(offset_of!(FaultRecord, vector));
                self.signal_text(signal, far, &message(memory, phys))
            }
            FaultKind::EXIT => format!("it has called exit({})", code as i32),
            FaultKind::LOAD => return format!("it can't be loaded: {}", message(memory, phys)),
            FaultKind::BOOT => return message(memory, phys),
            FaultKind(other) => return format!("fault of unknown kind {other}"),
        };
        let (pc, sp) = (record.word64(offset_of!(FaultRecord, elr)), record.word64(offset_of!(FaultRecord, sp)));
        format!("{what}, {} [pc {pc:#x}, sp {sp:#x}]", self.way(&record))
    }

    /// The functions that led to where a record was written: those of kernels, if there is one of them.
    fn way(&self, record: &Record<'_>) -> String {
        let pc = record.word64(offset_of!(FaultRecord, elr));
        let modules = Modules::read(record.memory, |path| is_system_library(&self.files, path));
        let symbols = modules.symbols();
        let all: Vec<u64> = std::iter::once(pc).chain(record.callers()).collect();
        let kernels: Vec<u64> = all.iter().copied().filter(|addr| symbols.is_kernel(*addr)).collect();
        let (at, callers) =
            if kernels.is_empty() { all.split_first() } else { kernels.split_first() }.expect("has the pc");
        way(&symbols, *at, callers.iter().copied())
    }

    fn signal_text(&self, signal: u32, far: u64, message: &str) -> String {
        let number = signal as i32;
        let name = match number {
            libc::SIGSEGV => "SIGSEGV",
            libc::SIGBUS => "SIGBUS",
            libc::SIGILL => "SIGILL: not an instruction",
            libc::SIGFPE => "SIGFPE: an arithmetic error",
            libc::SIGTRAP => "SIGTRAP: a breakpoint",
            libc::SIGSYS => "SIGSYS: a system call that is not allowed",
            libc::SIGABRT => "SIGABRT: abort() was called",
            _ => "a signal",
        };
        match number {
            libc::SIGABRT if !message.is_empty() => format!("exception of type {} left the kernel", type_name(message)),
            libc::SIGSEGV | libc::SIGBUS if message.is_empty() => {
                let alloc = self.shared.lock_alloc();
                match (alloc.place(far), alloc.check_user(far, 1)) {
                    (None, _) => format!("{name}: access to {far:#x}"),
                    (Some(place), Ok(())) => {
                        format!("{name}: access to {far:#x}, {place}, which was allocated after the launch had begun")
                    }
                    (Some(place), Err(why)) => format!("{name}: access to {far:#x}: {why}; it is {place}"),
                }
            }
            _ if message.is_empty() => name.to_owned(),
            _ => format!("{message} ({name} at {far:#x})"),
        }
    }
}

/// Name of a C++ type from its mangled one.
fn type_name(mangled: &str) -> String {
    let text = addr2line::demangle_auto(format!("_ZTI{mangled}").into(), None);
    text.strip_prefix("typeinfo for ").unwrap_or(mangled).to_owned()
}

fn message(memory: &SharedMemory, phys: u64) -> String {
    Record { memory, phys }.text(offset_of!(FaultRecord, message), offset_of!(FaultRecord, message_len), 384)
}

/// Asks the runner for all of HBM that holds an allocation.
fn ask_for_steps(shared: &Shared<SharedMemory>) {
    let alloc = shared.lock_alloc();
    for (index, steps) in alloc.steps().iter().take(HBM_STEP_WORDS).enumerate() {
        let word = shared.memory.word64(HBM_STEPS_PHYS + index as u64 * 8);
        if word.load(Ordering::Relaxed) != *steps {
            // The launch that follows is published with release order.
            word.store(*steps, Ordering::Release);
        }
    }
}

impl Cpu for LinuxCpu {
    fn cores(&self) -> usize {
        MAX_CORES
    }

    fn start(&mut self, core: usize, launch: &KernelLaunch) -> Result<(), CpuFault> {
        let KernelEntry::Library(place) = launch.entry else {
            return Err(CpuFault::Cpu(format!("kernel {} is not in a library of the linux cpu", launch.name)));
        };
        self.running[core] = Some(place);
        self.runner.check().map_err(|ended| CpuFault::Cpu(ended.text))?;
        self.runner.begins(core, Running { kernel: Arc::clone(&launch.name), launch: launch.number });
        ask_for_steps(&self.shared);
        if self.mailboxes.post(core, place, launch.args) {
            let seq = HOST_MAILBOX_PHYS + core as u64 * MAILBOX_STRIDE + offset_of!(HostMailbox, seq) as u64;
            let word = self.memory().word32(seq);
            rustix::thread::futex::wake(word, rustix::thread::futex::Flags::empty(), 1)
                .map_err(|errno| CpuFault::Cpu(format!("wake-up of core {core}: {errno}")))?;
        }
        self.next_check = Instant::now() + CHECK_PERIOD;
        Ok(())
    }

    fn poll(&mut self, core: usize) -> Result<Option<Returned>, CpuFault> {
        if let Some(returned) = self.mailboxes.returned(core) {
            self.running[core] = None;
            self.forward();
            return Ok(Some(returned));
        }
        self.check(core)?;
        Ok(None)
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn whereabouts(&mut self, core: usize) -> Option<String> {
        let started = Instant::now();
        self.runner.ask();
        while started.elapsed() < PLACE_TIMEOUT {
            if let Some((phys, FaultKind::PLACE)) = self.mailboxes.fault(core as u64) {
                let record = Record { memory: self.memory(), phys };
                let pc = record.word64(offset_of!(FaultRecord, elr));
                return Some(format!("{} [pc {pc:#x}]", self.way(&record)));
            }
            std::thread::sleep(BOOT_POLL);
        }
        None
    }

    fn take_refused(&mut self, core: usize) -> Vec<Refused> {
        let mut refused = self.refusals[core].take();
        refused.extend(self.refusals[NO_CORE as usize].take());
        refused
    }

    fn take_record(&mut self, core: usize) -> Option<CallRecord> {
        let memory = &*self.shared.memory;
        self.records.as_mut()?[core].next(memory)
    }

    fn ends_with(&self) -> Option<&'static str> {
        Some("the runner")
    }

    fn abandon(&mut self, _core: usize) {
        // It ends with the process.
        self.runner.kill();
    }

    fn restart(&mut self) -> Result<(), CpuFault> {
        // The old process has ended, so its memory can be cleared.
        self.runner.kill();
        self.forward();
        self.mailboxes.clear();
        self.memory().zero_low(MODULES_PHYS, MODULES_SIZE as usize);
        self.kernels.forget_loaded();
        let (files, kernels) = (self.files.clone(), Arc::clone(&self.kernels));
        let shared = Arc::clone(&self.shared);
        let records = self.records.is_some();
        *self = Self::start(&shared, files, &kernels, self.tables, self.soc, records).map_err(|error| match error {
            Error::Boot(text) => CpuFault::Cpu(text),
            other => CpuFault::Cpu(other.to_string()),
        })?;
        Ok(())
    }
}

const _: () = assert!(FAULT_STRIDE * (NO_CORE + 1) <= 0x4000 && FAULT_PHYS > HBM_STEPS_PHYS);
