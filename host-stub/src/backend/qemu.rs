//! AI CPU that runs the AArch64 image in QEMU.
//!
//! The image stays resident. A launch is a store to a mailbox in shared memory; a byte on the UART wakes a core that sleeps.

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::channel::MAX_CHANNELS;
use hcomm_aicpu::spec::mailbox::{
    BOOT_MAGIC, BootBlock, DeviceMailbox, FAULT_STRIDE, FaultKind, FaultRecord, HostMailbox, LEFT_BATCH_OPEN,
    LOG_STRIDE, MAILBOX_STRIDE, MAILBOX_VERSION, MAX_CORES, REFUSAL_STRIDE,
};
use hcomm_aicpu::spec::map::{
    BOOT_BLOCK_PHYS, DEVICE_MAILBOX_PHYS, FAULT_PHYS, HOST_MAILBOX_PHYS, LOG_PHYS, RECORD_PHYS, REFUSAL_PHYS,
};
use hcomm_aicpu::spec::record::{CallRecord, RECORD_STRIDE};
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::MAX_THREADS;

use super::log::LogReader;
use super::process::Process;
use super::refusals::RefusalReader;
use super::symbols::Symbols;
use super::{Tables, report};
use crate::error::Error;
use crate::loader::Image;
use hcomm_mapping::SharedMemory;
use hcomm_sim::KernelLaunch;
use hcomm_sim::cpu::{Cpu, CpuFault, KernelEntry, RefusedCall, Returned};
use hcomm_sim::memory::Memory;
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
    /// Number of the last launch.
    seq: u64,
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
        write_boot_block(memory, tables, soc, records);
        let log = LogReader::new(memory, &image.elf, 0).map_err(Error::Boot)?;
        let refusals = RefusalReader::new(memory, 0);
        let process = Process::start(memory, image.entry, icount).map_err(Error::Boot)?;
        let (memory, image) = (Arc::clone(memory), Arc::clone(image));
        let next_check = Instant::now();
        let records = records.then(|| RecordReader::new(0));
        let mut cpu = Self { memory, image, tables, soc, icount, process, log, refusals, records, seq: 0, next_check };
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
        let ready = DEVICE_MAILBOX_PHYS + offset_of!(DeviceMailbox, ready) as u64;
        loop {
            match self.memory.word32(ready).load(Ordering::Acquire) {
                0 => {}
                MAILBOX_VERSION => return Ok(()),
                other => {
                    let text = format!("the image has mailbox version {other}, this program {MAILBOX_VERSION}");
                    return Err(Error::Boot(text));
                }
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
            let phys = FAULT_PHYS + core * FAULT_STRIDE;
            let kind = self.memory.word32(phys + offset_of!(FaultRecord, kind) as u64).load(Ordering::Acquire);
            if kind != FaultKind::NONE.0 {
                self.forward_log();
                let symbols = Symbols::new(&self.image.elf);
                return Err(CpuFault::Kernel(report::fault_text(&self.memory, phys, FaultKind(kind), &symbols)));
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
        self.seq += 1;
        let mailbox = HOST_MAILBOX_PHYS + core as u64 * MAILBOX_STRIDE;
        let word = |offset: usize| self.memory.word64(mailbox + offset as u64);
        word(offset_of!(HostMailbox, entry)).store(entry, Ordering::Relaxed);
        word(offset_of!(HostMailbox, args)).store(launch.args, Ordering::Relaxed);
        // Release pairs with the image's acquire load: a core that sees the number sees entry and args.
        word(offset_of!(HostMailbox, seq)).store(self.seq, Ordering::Release);
        // Pairs with the fence of the image between `sleeping` and its last look at `seq`.
        fence(Ordering::SeqCst);
        let sleeping = DEVICE_MAILBOX_PHYS + core as u64 * MAILBOX_STRIDE + offset_of!(DeviceMailbox, sleeping) as u64;
        if self.memory.word32(sleeping).load(Ordering::Relaxed) != 0 {
            self.process.wake().map_err(CpuFault::Cpu)?;
        }
        self.next_check = Instant::now() + CHECK_PERIOD;
        Ok(())
    }

    fn poll(&mut self, core: usize) -> Result<Option<Returned>, CpuFault> {
        let mailbox = DEVICE_MAILBOX_PHYS + core as u64 * MAILBOX_STRIDE;
        let word = |offset: usize| self.memory.word64(mailbox + offset as u64);
        // Acquire pairs with the image's release store of `done`: its result and its doorbells are visible.
        if word(offset_of!(DeviceMailbox, done)).load(Ordering::Acquire) == self.seq {
            let code = self.memory.word32(mailbox + offset_of!(DeviceMailbox, ret) as u64).load(Ordering::Relaxed);
            let instructions = word(offset_of!(DeviceMailbox, instructions)).load(Ordering::Relaxed);
            let left =
                self.memory.word32(mailbox + offset_of!(DeviceMailbox, left_behind) as u64).load(Ordering::Relaxed);
            self.forward_log();
            let batch_left_open = left & LEFT_BATCH_OPEN != 0;
            return Ok(Some(Returned { code, instructions, batch_left_open, rung: None }));
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
        for (phys, len) in [
            (HOST_MAILBOX_PHYS, MAILBOX_STRIDE),
            (DEVICE_MAILBOX_PHYS, MAILBOX_STRIDE),
            (FAULT_PHYS, FAULT_STRIDE),
            (REFUSAL_PHYS, REFUSAL_STRIDE),
            (LOG_PHYS, LOG_STRIDE),
            (RECORD_PHYS, RECORD_STRIDE),
        ] {
            self.memory.zero_low(phys, MAX_CORES * len as usize);
        }
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

fn write_boot_block(memory: &SharedMemory, tables: Tables, soc: Soc, records: bool) {
    let word32 = |offset: usize| memory.word32(BOOT_BLOCK_PHYS + offset as u64);
    let word64 = |offset: usize| memory.word64(BOOT_BLOCK_PHYS + offset as u64);
    word32(offset_of!(BootBlock, version)).store(MAILBOX_VERSION, Ordering::Relaxed);
    word64(offset_of!(BootBlock, hbm_base)).store(memory.hbm_base(), Ordering::Relaxed);
    word64(offset_of!(BootBlock, hbm_size)).store(memory.hbm_size(), Ordering::Relaxed);
    word64(offset_of!(BootBlock, thread_table)).store(tables.threads.0, Ordering::Relaxed);
    word64(offset_of!(BootBlock, comm_table)).store(tables.comms.0, Ordering::Relaxed);
    word64(offset_of!(BootBlock, channel_table)).store(tables.channels.0, Ordering::Relaxed);
    word32(offset_of!(BootBlock, channel_slots)).store(MAX_CHANNELS as u32, Ordering::Relaxed);
    word32(offset_of!(BootBlock, thread_slots)).store(MAX_THREADS as u32, Ordering::Relaxed);
    word32(offset_of!(BootBlock, soc)).store(soc as u32, Ordering::Relaxed);
    word32(offset_of!(BootBlock, records)).store(records.into(), Ordering::Relaxed);
    word32(offset_of!(BootBlock, magic)).store(BOOT_MAGIC, Ordering::Release);
}
