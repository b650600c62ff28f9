//! AI CPU that runs the AArch64 image in QEMU.
//!
//! The image stays resident. A launch is a store to a mailbox in shared memory; a byte on the UART wakes a core that sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::mailbox::MAX_CORES;
use hcomm_aicpu::spec::record::CallRecord;
use hcomm_aicpu::spec::soc::Soc;

use super::log::LogReader;
use super::mailbox::Mailboxes;
use super::process::Process;
use super::refusals::RefusalReader;
use super::symbols::Symbols;
use super::{Tables, report};
use crate::error::Error;
use crate::loader::Image;
use hcomm_mapping::SharedMemory;
use hcomm_sim::KernelLaunch;
use hcomm_sim::cpu::{Cpu, CpuFault, KernelEntry, RefusedCall, Returned};
use hcomm_sim::records::RecordReader;

/// How long the image may take from the start of the process until it takes launches.
const BOOT_TIMEOUT: Duration = Duration::from_secs(60);
/// How often to look for it.
const BOOT_POLL: Duration = Duration::from_micros(200);
/// How often to check that QEMU runs, and to forward the log, while a kernel runs.
const CHECK_PERIOD: Duration = Duration::from_millis(5);

/// The AI CPU.
pub struct QemuCpu {
    memory: Arc<SharedMemory>,
    image: Arc<Image>,
    tables: Tables,
    soc: Soc,
    icount: bool,
    process: Process,
    log: LogReader,
    refusals: RefusalReader,
    /// Calls are recorded.
    records: Option<RecordReader>,
    mailboxes: Mailboxes,
    next_check: Instant,
}

impl QemuCpu {
    /// Boots `image` with `memory` as its RAM, and waits until it takes launches. `icount`: instructions are counted;
    /// `records`: calls are recorded.
    ///
    /// # Errors
    /// [`Error::Boot`].
    pub fn start(
        memory: &Arc<SharedMemory>,
        image: &Arc<Image>,
        tables: Tables,
        soc: Soc,
        icount: bool,
        records: bool,
    ) -> Result<Self, Error> {
        load(memory, image);
        let mailboxes = Mailboxes::new(memory);
        mailboxes.write_boot_block(tables, soc, records);
        let log = LogReader::new(memory, &image.elf, 0).map_err(Error::Boot)?;
        let refusals = RefusalReader::new(memory, 0);
        let process = Process::start(memory, image.entry, icount).map_err(Error::Boot)?;
        let (memory, image) = (Arc::clone(memory), Arc::clone(image));
        let next_check = Instant::now();
        let records = records.then(|| RecordReader::new(0));
        let mut cpu =
            Self { memory, image, tables, soc, icount, process, log, refusals, records, mailboxes, next_check };
        match cpu.wait_ready() {
            Err(_) if cpu.process.lacks_sandbox() => {
                cpu.process = Process::start(&cpu.memory, cpu.image.entry, icount).map_err(Error::Boot)?;
                cpu.wait_ready()?;
            }
            result => result?,
        }
        Ok(cpu)
    }

    fn wait_ready(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        loop {
            if self.mailboxes.is_ready("the image").map_err(Error::Boot)? {
                return Ok(());
            }
            self.check_fault().and_then(|()| self.check_process()).map_err(|fault| {
                let (CpuFault::Kernel(text) | CpuFault::Cpu(text)) = fault;
                Error::Boot(text)
            })?;
            if started.elapsed() > BOOT_TIMEOUT {
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

    fn forward_log(&mut self) {
        self.log.drain();
        self.refusals.drain();
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

    fn take_refused(&mut self, _core: usize) -> Vec<RefusedCall> {
        self.refusals.take()
    }

    fn take_record(&mut self, _core: usize) -> Option<CallRecord> {
        self.records.as_mut()?.next(&*self.memory)
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
        let records = self.records.is_some();
        let started = Self::start(&self.memory, &self.image, self.tables, self.soc, self.icount, records);
        *self = started.map_err(|error| match error {
            Error::Boot(text) => CpuFault::Cpu(text),
            other => CpuFault::Cpu(other.to_string()),
        })?;
        Ok(())
    }
}

/// Copies the segments of the image into RAM.
fn load(memory: &SharedMemory, image: &Image) {
    for segment in &image.segments {
        memory.write_low(segment.addr, &segment.bytes);
        memory.zero_low(segment.addr + segment.bytes.len() as u64, segment.len as usize - segment.bytes.len());
    }
}
