//! AI CPU that runs the AArch64 image in QEMU.
//!
//! The image stays resident. A launch is a store to a mailbox in shared memory; a byte on the UART wakes a core that sleeps.

use std::io::{ErrorKind, Read, Write};
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{Ordering, fence};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::mailbox::{
    BOOT_MAGIC, BootBlock, DeviceMailbox, FAULT_STRIDE, FaultKind, FaultRecord, HostMailbox, LEFT_BATCH_OPEN,
    MAILBOX_STRIDE, MAILBOX_VERSION, MAX_CORES,
};
use hcomm_aicpu::spec::map::{BOOT_BLOCK_PHYS, DEVICE_MAILBOX_PHYS, FAULT_PHYS, HOST_MAILBOX_PHYS, LOW_SIZE};
use hcomm_aicpu::spec::soc::Soc;
use hcomm_aicpu::spec::thread::MAX_THREADS;
use rustix::fs::OFlags;
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};

use super::log::LogReader;
use super::{Cpu, CpuFault, KernelEntry, Returned, Tables};
use crate::error::Error;
use crate::loader::Image;
use crate::sim::KernelLaunch;
use crate::sim::memory::{Memory, SharedMemory};

/// Program that emulates the processor.
const QEMU: &str = "qemu-system-aarch64";
/// How long the image may take from the start of the process until it takes launches.
const BOOT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to look for it.
const BOOT_POLL: Duration = Duration::from_micros(200);
/// How often to look whether QEMU is alive, and to forward the log, while a kernel runs.
const CHECK_PERIOD: Duration = Duration::from_millis(5);
/// How much of QEMU's error output is kept.
const STDERR_MAX: u64 = 16 << 10;

/// The AI CPU. QEMU is killed on drop.
pub struct QemuCpu {
    memory: Arc<SharedMemory>,
    child: Child,
    wake: ChildStdin,
    stderr: Arc<Mutex<String>>,
    stderr_reader: Option<JoinHandle<()>>,
    log: LogReader,
    /// Number of the last launch.
    seq: u64,
    next_check: Instant,
}

impl QemuCpu {
    /// Boots `image` with `memory` as its RAM, and waits until it takes launches.
    ///
    /// # Errors
    /// [`Error::Boot`].
    pub fn start(memory: &Arc<SharedMemory>, image: &Image, tables: Tables, soc: Soc) -> Result<Self, Error> {
        load(memory, image);
        write_boot_block(memory, tables, soc);
        let log = LogReader::new(memory, &image.elf, 0).map_err(Error::Boot)?;
        let mut child = spawn(command(memory, image.entry)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Error::Boot(format!("{QEMU} is not installed: `apt-get install qemu-system-arm` installs it"))
            }
            _ => Error::Boot(format!("{QEMU}: {error}")),
        })?;
        let wake = child.stdin.take().expect("stdin is a pipe");
        let pipe = child.stderr.take().expect("stderr is a pipe");
        let stderr = Arc::new(Mutex::new(String::new()));
        let text = Arc::clone(&stderr);
        let reader = std::thread::Builder::new().name("qemu-stderr".to_owned()).spawn(move || collect(pipe, &text));
        let (memory, stderr_reader) = (Arc::clone(memory), reader.ok());
        let mut cpu = Self { memory, child, wake, stderr, stderr_reader, log, seq: 0, next_check: Instant::now() };
        // A wake-up must never block the scheduler: if the pipe is full, there are bytes that wake the image anyway.
        rustix::fs::fcntl_setfl(&cpu.wake, OFlags::NONBLOCK).map_err(|errno| Error::Boot(errno.to_string()))?;
        cpu.wait_ready()?;
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
            self.check_fault().and_then(|()| self.check_child()).map_err(|fault| {
                let (CpuFault::Kernel(text) | CpuFault::Cpu(text)) = fault;
                Error::Boot(text)
            })?;
            if started.elapsed() > BOOT_TIMEOUT {
                let text = format!("the image does not take launches within {BOOT_TIMEOUT:?}{}", self.stderr_text());
                return Err(Error::Boot(text));
            }
            std::thread::sleep(BOOT_POLL);
        }
    }

    /// # Errors
    /// [`CpuFault::Cpu`]: QEMU has ended.
    fn check_child(&mut self) -> Result<(), CpuFault> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                if let Some(reader) = self.stderr_reader.take() {
                    // All output is read once the process has ended; a reader that panicked has none.
                    let _ = reader.join();
                }
                Err(CpuFault::Cpu(format!("{QEMU} has ended ({status}){}", self.stderr_text())))
            }
            Err(error) => Err(CpuFault::Cpu(format!("{QEMU}: {error}"))),
        }
    }

    fn stderr_text(&self) -> String {
        let text = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
    }

    /// # Errors
    /// [`CpuFault::Kernel`]: a core has reported a fault.
    fn check_fault(&mut self) -> Result<(), CpuFault> {
        for core in 0..MAX_CORES as u64 {
            let phys = FAULT_PHYS + core * FAULT_STRIDE;
            let kind = self.memory.word32(phys + offset_of!(FaultRecord, kind) as u64).load(Ordering::Acquire);
            if kind != FaultKind::NONE.0 {
                self.log.drain();
                return Err(CpuFault::Kernel(fault_text(&self.memory, phys, FaultKind(kind))));
            }
        }
        Ok(())
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
        self.check_child()?;
        self.seq += 1;
        let mailbox = HOST_MAILBOX_PHYS + core as u64 * MAILBOX_STRIDE;
        let word = |offset: usize| self.memory.word64(mailbox + offset as u64);
        word(offset_of!(HostMailbox, entry)).store(entry, Ordering::Relaxed);
        word(offset_of!(HostMailbox, args)).store(launch.args, Ordering::Relaxed);
        // Release pairs with the image's acquire load: who sees the number sees entry and args.
        word(offset_of!(HostMailbox, seq)).store(self.seq, Ordering::Release);
        // Pairs with the fence of the image between `sleeping` and its last look at `seq`.
        fence(Ordering::SeqCst);
        let sleeping = DEVICE_MAILBOX_PHYS + core as u64 * MAILBOX_STRIDE + offset_of!(DeviceMailbox, sleeping) as u64;
        if self.memory.word32(sleeping).load(Ordering::Relaxed) != 0 {
            match self.wake.write(&[0]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(CpuFault::Cpu(format!("wake-up of {QEMU}: {error}"))),
            }
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
            self.log.drain();
            let batch_left_open = left & LEFT_BATCH_OPEN != 0;
            return Ok(Some(Returned { code, instructions, batch_left_open, rung: None }));
        }
        self.check_fault()?;
        let now = Instant::now();
        if now >= self.next_check {
            self.next_check = now + CHECK_PERIOD;
            self.log.drain();
            self.check_child()?;
        }
        Ok(None)
    }

    fn is_polled(&self) -> bool {
        true
    }

    fn abandon(&mut self, _core: usize) {
        // It ends with the process.
        self.kill();
    }
}

impl QemuCpu {
    fn kill(&mut self) {
        // Neither fails but for a process that has been reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for QemuCpu {
    fn drop(&mut self) {
        self.kill();
        if let Some(reader) = self.stderr_reader.take() {
            // It has come to the end of the output; what it has read is not needed any more.
            let _ = reader.join();
        }
    }
}

/// Keeps the start of QEMU's error output, and reads the rest so that QEMU never waits.
fn collect(mut pipe: impl Read, text: &Mutex<String>) {
    let mut bytes = Vec::new();
    // A pipe that can't be read has nothing to say; the end of the process is reported elsewhere.
    let _ = pipe.by_ref().take(STDERR_MAX).read_to_end(&mut bytes);
    *text.lock().unwrap_or_else(PoisonError::into_inner) = String::from_utf8_lossy(&bytes).into_owned();
    let _ = std::io::copy(&mut pipe, &mut std::io::sink());
}

/// Puts the segments of the image into RAM.
fn load(memory: &SharedMemory, image: &Image) {
    for segment in &image.segments {
        memory.write_low(segment.addr, &segment.bytes);
        memory.zero_low(segment.addr + segment.bytes.len() as u64, segment.len as usize - segment.bytes.len());
    }
}

fn write_boot_block(memory: &SharedMemory, tables: Tables, soc: Soc) {
    let word32 = |offset: usize| memory.word32(BOOT_BLOCK_PHYS + offset as u64);
    let word64 = |offset: usize| memory.word64(BOOT_BLOCK_PHYS + offset as u64);
    word32(offset_of!(BootBlock, version)).store(MAILBOX_VERSION, Ordering::Relaxed);
    word64(offset_of!(BootBlock, hbm_base)).store(memory.hbm_base(), Ordering::Relaxed);
    word64(offset_of!(BootBlock, hbm_size)).store(memory.hbm_size(), Ordering::Relaxed);
    word64(offset_of!(BootBlock, thread_table)).store(tables.threads.0, Ordering::Relaxed);
    word64(offset_of!(BootBlock, comm_table)).store(tables.comms.0, Ordering::Relaxed);
    word32(offset_of!(BootBlock, thread_slots)).store(MAX_THREADS as u32, Ordering::Relaxed);
    word32(offset_of!(BootBlock, soc)).store(soc as u32, Ordering::Relaxed);
    word32(offset_of!(BootBlock, magic)).store(BOOT_MAGIC, Ordering::Release);
}

/// What a fault record says.
fn fault_text(memory: &SharedMemory, phys: u64, kind: FaultKind) -> String {
    let word64 = |offset: usize| memory.word64(phys + offset as u64).load(Ordering::Relaxed);
    let word32 = |offset: usize| memory.word32(phys + offset as u64).load(Ordering::Relaxed);
    let text = |offset: usize, len: u32, max: usize| {
        let mut bytes = vec![0; (len as usize).min(max)];
        memory.read_low(phys + offset as u64, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let record = |field: usize, len: usize, max: usize| text(field, word32(len), max);
    let message = record(offset_of!(FaultRecord, message), offset_of!(FaultRecord, message_len), 384);
    match kind {
        FaultKind::EXCEPTION => format!(
            "exception (vector {}): esr {:#x}, far {:#x}, elr {:#x}, spsr {:#x}, sp {:#x}",
            word32(offset_of!(FaultRecord, vector)),
            word64(offset_of!(FaultRecord, esr)),
            word64(offset_of!(FaultRecord, far)),
            word64(offset_of!(FaultRecord, elr)),
            word64(offset_of!(FaultRecord, spsr)),
            word64(offset_of!(FaultRecord, sp)),
        ),
        FaultKind::PANIC => format!(
            "panic: {message}, {}:{}",
            record(offset_of!(FaultRecord, file), offset_of!(FaultRecord, file_len), 128),
            word32(offset_of!(FaultRecord, line)),
        ),
        FaultKind::BOOT => format!("the image refuses its boot block: {message}"),
        FaultKind(other) => format!("fault of unknown kind {other}"),
    }
}

/// The command that runs the image.
fn command(memory: &Arc<SharedMemory>, entry: u64) -> Command {
    let size = LOW_SIZE + memory.hbm_size();
    let fd = memory.file().as_raw_fd();
    let mut command = Command::new(QEMU);
    command
        .args(["-M", "virt,gic-version=2,memory-backend=ram", "-cpu", "cortex-a72", "-smp", "2"])
        .args(["-nodefaults", "-display", "none", "-serial", "stdio"])
        .args(["-m", &(size >> 20).to_string()])
        .arg("-object")
        .arg(format!("memory-backend-file,id=ram,size={size},mem-path=/proc/self/fd/{fd},share=on"))
        .arg("-device")
        .arg(format!("loader,addr={entry:#x},cpu-num=0"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let parent = rustix::process::getpid();
    let memory = Arc::clone(memory);
    // SAFETY: between fork and exec `prepare` makes system calls only: it neither allocates nor locks.
    unsafe { command.pre_exec(move || prepare(&memory, parent)) };
    command
}

/// What the child does before it becomes QEMU: it dies with its parent, and inherits the memory.
fn prepare(memory: &SharedMemory, parent: Pid) -> std::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(parent) {
        // The parent has died before the signal was asked for.
        return Err(std::io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()));
    }
    // Only here: no other child of the parent gets the file.
    rustix::io::fcntl_setfd(memory.file(), FdFlags::empty())?;
    Ok(())
}

type SpawnRequest = (Command, SyncSender<std::io::Result<Child>>);

/// Spawns from a thread that lives as long as the process: the death signal comes when the spawning *thread* ends.
fn spawn(command: Command) -> std::io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<Sender<SpawnRequest>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, requests) = channel::<SpawnRequest>();
        let run = move || {
            for (mut command, reply) in requests {
                // Whoever asked waits for the answer.
                let _ = reply.send(command.spawn());
            }
        };
        // If it can't be started, its end of the channel is dropped, and the request below fails.
        let _ = std::thread::Builder::new().name("qemu-spawner".to_owned()).spawn(run);
        Mutex::new(sender)
    });
    let gone = || std::io::Error::other("no thread to start it from");
    let (reply, answer) = sync_channel(1);
    spawner.lock().unwrap_or_else(PoisonError::into_inner).send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}
