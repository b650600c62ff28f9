//! AI CPU that runs the AArch64 image in QEMU.
//!
//! The image stays resident. A launch is a store to a mailbox in shared memory; a byte on the UART wakes a core that sleeps.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::mailbox::MAX_CORES;
use hcomm_aicpu::spec::record::CallRecord;
use hcomm_aicpu::spec::soc::Soc;

use super::core_plugin::{self, CorePlugin, OwnAccesses};
use super::log::LogReader;
use super::mailbox::Mailboxes;
use super::process::{Machine, Process};
use super::refusals::RefusalReader;
use super::symbols::Symbols;
use super::{Tables, report};
use crate::error::Error;
use crate::loader::Image;
use crate::log_place::{self, LogPlace, Running};
use hcomm_mapping::SharedMemory;
use hcomm_sim::KernelLaunch;
use hcomm_sim::cpu::{Cpu, CpuFault, KernelEntry, Refused, Returned};
use hcomm_sim::own_accesses::OwnRange;
use hcomm_sim::records::RecordReader;

/// How long the image may take from the start of the process until it takes launches.
const BOOT_TIMEOUT: Duration = Duration::from_secs(60);
/// How often to look for it.
const BOOT_POLL: Duration = Duration::from_micros(200);
/// How often to check that QEMU runs, and to forward the log, while a kernel runs.
const CHECK_PERIOD: Duration = Duration::from_millis(5);

/// How the image is run.
#[derive(Clone, Debug)]
pub struct QemuOptions {
    /// How the processor is emulated.
    pub machine: Machine,
    /// Calls are recorded.
    pub records: bool,
    /// What kernels' own code accesses is recorded, by this plugin; calls must be, too.
    pub plugin: Option<CorePlugin>,
}

/// The AI CPU.
pub struct QemuCpu {
    memory: Arc<SharedMemory>,
    image: Arc<Image>,
    tables: Tables,
    soc: Soc,
    options: QemuOptions,
    process: Process,
    log: LogReader,
    /// Launch that the core runs, or has run last.
    running: Option<Running>,
    refusals: RefusalReader,
    /// Calls are recorded.
    records: Option<RecordReader>,
    /// Accesses of kernels' own code are recorded.
    own_accesses: Option<OwnAccesses>,
    mailboxes: Mailboxes,
    next_check: Instant,
}

impl QemuCpu {
    /// Boots `image` with `memory` as its RAM, and waits until it takes launches, without limit if a debugger starts it.
    ///
    /// # Errors
    /// [`Error::Boot`]; [`Error::CorePlugin`]: it does not take the plugin.
    pub fn start(
        memory: &Arc<SharedMemory>,
        image: &Arc<Image>,
        tables: Tables,
        soc: Soc,
        options: QemuOptions,
    ) -> Result<Self, Error> {
        load(memory, image);
        let mailboxes = Mailboxes::new(memory);
        let QemuOptions { machine, records, ref plugin } = options;
        mailboxes.write_boot_block(tables, soc, records);
        let own_accesses = plugin.as_ref().map(|_| OwnAccesses::new(memory, MAX_CORES));
        let log = LogReader::new(memory, &image.elf, 0).map_err(Error::Boot)?;
        let refusals = RefusalReader::new(memory, 0);
        if let Some(port) = machine.gdb {
            tell_of_debugger(port, image);
        }
        let process = Process::start(memory, image.entry, machine, plugin.as_ref()).map_err(Error::Boot)?;
        let (memory, image) = (Arc::clone(memory), Arc::clone(image));
        let next_check = Instant::now();
        let records = records.then(|| RecordReader::new(0));
        let mut cpu = Self {
            memory,
            image,
            tables,
            soc,
            options,
            process,
            log,
            running: None,
            refusals,
            records,
            own_accesses,
            mailboxes,
            next_check,
        };
        match cpu.wait_ready() {
            Err(_) if cpu.process.lacks_sandbox() => {
                let plugin = cpu.options.plugin.as_ref();
                cpu.process = Process::start(&cpu.memory, cpu.image.entry, machine, plugin).map_err(Error::Boot)?;
                cpu.wait_ready()
            }
            result => result,
        }
        .map_err(|error| cpu.plugin_error().unwrap_or(error))?;
        if let Some(own_accesses) = &cpu.own_accesses {
            own_accesses.check().map_err(Error::CorePlugin)?;
        }
        Ok(cpu)
    }

    /// Why QEMU has ended, if that is the plugin.
    fn plugin_error(&mut self) -> Option<Error> {
        self.options.plugin.as_ref()?;
        self.process.check().err()?;
        core_plugin::refusal(&self.process.stderr_text()).map(Error::CorePlugin)
    }

    fn wait_ready(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        loop {
            if self.mailboxes.is_ready("the image").map_err(Error::Boot)? {
                return Ok(());
            }
            // The image must not wait for room in its ring.
            self.skip_own_accesses();
            self.check_fault().and_then(|()| self.check_process()).map_err(|fault| {
                let (CpuFault::Kernel(text) | CpuFault::Cpu(text)) = fault;
                Error::Boot(text)
            })?;
            if started.elapsed() > BOOT_TIMEOUT && self.options.machine.gdb.is_none() {
                let text =
                    format!("the image does not take launches within {BOOT_TIMEOUT:?}{}", self.process.stderr_text());
                return Err(Error::Boot(text));
            }
            std::thread::sleep(BOOT_POLL);
        }
    }

    /// # Errors
    /// [`CpuFault::Kernel`]: a core has reported a fault.
    fn check_fault(&mut self) -> Result<(), CpuFault> {
        for core in 0..MAX_CORES as u64 {
            if let Some((phys, kind)) = self.mailboxes.fault(core) {
                self.forward_log();
                let symbols = Symbols::new(&self.image.elf);
                return Err(CpuFault::Kernel(report::fault_text(&self.memory, phys, kind, &symbols)));
            }
        }
        Ok(())
    }

    fn skip_own_accesses(&mut self) {
        if let Some(own_accesses) = &mut self.own_accesses {
            own_accesses.skip();
        }
    }

    fn forward_log(&mut self) {
        self.log.drain(self.running.as_ref());
        let place = self.running.clone().map(|running| LogPlace { running, core: 0, at_us: None });
        log_place::during(place, || self.refusals.drain());
    }

    /// # Errors
    /// [`CpuFault::Cpu`]: QEMU has ended.
    fn check_process(&mut self) -> Result<(), CpuFault> {
        self.process.check().map_err(CpuFault::Cpu)
    }
}

impl Cpu for QemuCpu {
    fn cores(&self) -> usize {
        1
    }

    fn start(&mut self, core: usize, launch: &KernelLaunch) -> Result<(), CpuFault> {
        let KernelEntry::Image(entry) = launch.entry else {
            return Err(CpuFault::Cpu(format!("kernel {} is not in the image", launch.name)));
        };
        self.check_process()?;
        self.skip_own_accesses();
        // Lines from before are not of this launch.
        self.forward_log();
        self.running = Some(Running { kernel: Arc::clone(&launch.name), launch: launch.number });
        if self.mailboxes.post(core, entry, launch.args) {
            self.process.wake().map_err(CpuFault::Cpu)?;
        }
        self.next_check = Instant::now() + CHECK_PERIOD;
        Ok(())
    }

    fn poll(&mut self, core: usize) -> Result<Option<Returned>, CpuFault> {
        if let Some(returned) = self.mailboxes.returned(core) {
            self.forward_log();
            return Ok(Some(returned));
        }
        self.check_fault()?;
        let now = Instant::now();
        if now >= self.next_check {
            self.next_check = now + CHECK_PERIOD;
            self.forward_log();
            self.check_process()?;
        }
        Ok(None)
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn whereabouts(&mut self, _core: usize) -> Option<String> {
        let (pc, fp) = self.process.pc_and_fp()?;
        Some(report::running_text(&self.memory, pc, fp, &Symbols::new(&self.image.elf)))
    }

    fn take_refused(&mut self, _core: usize) -> Vec<Refused> {
        self.refusals.take()
    }

    fn take_record(&mut self, core: usize) -> Option<CallRecord> {
        let record = self.records.as_mut()?.next(&*self.memory)?;
        if let Some(own_accesses) = &mut self.own_accesses {
            own_accesses.record_taken(core, record.seq);
        }
        Some(record)
    }

    fn take_own_accesses(&mut self, core: usize, before: Option<u64>, each: &mut dyn FnMut(OwnRange)) {
        if let Some(own_accesses) = &mut self.own_accesses {
            own_accesses.take(core, before, each);
        }
    }

    fn has_many_own_accesses(&mut self, core: usize) -> bool {
        self.own_accesses.as_ref().is_some_and(|own_accesses| own_accesses.has_many(core))
    }

    fn abandon(&mut self, _core: usize) {
        // It ends with the process.
        self.process.kill();
    }

    fn restart(&mut self) -> Result<(), CpuFault> {
        // The old process has ended, so its memory can be cleared.
        self.process.kill();
        self.forward_log();
        self.mailboxes.clear();
        let started = Self::start(&self.memory, &self.image, self.tables, self.soc, self.options.clone());
        *self = started.map_err(|error| match error {
            Error::Boot(text) => CpuFault::Cpu(text),
            other => CpuFault::Cpu(other.to_string()),
        })?;
        Ok(())
    }
}

/// Says how to attach the debugger that QEMU waits for.
fn tell_of_debugger(port: u16, image: &Image) {
    let path = image.path.display();
    // A standard error that is closed is no reason to stop.
    let _ = writeln!(
        io::stderr(),
        "qemu waits for a debugger; type: gdb-multiarch -ex 'target remote 127.0.0.1:{port}' '{path}'"
    );
}

/// Copies the segments of the image into RAM.
fn load(memory: &SharedMemory, image: &Image) {
    for segment in &image.segments {
        memory.write_low(segment.addr, &segment.bytes);
        memory.zero_low(segment.addr + segment.bytes.len() as u64, segment.len as usize - segment.bytes.len());
    }
}
