//! The QEMU process: how it starts, and why none is left behind.
//!
//! It ends with its [`Process`], and with this program however that ends: the kernel kills it when the thread that started it
//! is gone, and that thread lives as long as the program.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::map::LOW_SIZE;
use rustix::fs::OFlags;
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};

use hcomm_mapping::SharedMemory;
use hcomm_sim::hosts::spawn_own;

/// Program that emulates the processor.
pub const QEMU: &str = "qemu-system-aarch64";
/// How much of its error output is kept.
const STDERR_MAX: u64 = 16 << 10;
/// How long its monitor may take to answer.
const MONITOR_TIMEOUT: Duration = Duration::from_secs(10);

/// A running QEMU, killed on drop.
pub struct Process {
    child: Child,
    wake: ChildStdin,
    monitor: UnixStream,
    stderr: Arc<Mutex<String>>,
    stderr_reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts core 0 at `entry`, with `memory` as RAM. `icount`: instructions are counted.
    ///
    /// # Errors
    /// As a message.
    pub fn start(memory: &Arc<SharedMemory>, entry: u64, icount: bool) -> Result<Self, String> {
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => format!("{QEMU} is not installed: `apt-get install qemu-system-arm` installs it"),
            _ => format!("{QEMU}: {error}"),
        };
        let (monitor, far_end) = UnixStream::pair().map_err(failed)?;
        let mut child = spawn(command(memory, far_end.into(), entry, icount)).map_err(failed)?;
        let wake = child.stdin.take().expect("stdin is a pipe");
        let pipe = child.stderr.take().expect("stderr is a pipe");
        let stderr = Arc::new(Mutex::new(String::new()));
        let text = Arc::clone(&stderr);
        let reader = spawn_own("qemu-stderr".to_owned(), move || collect(pipe, &text));
        let process = Self { child, wake, monitor, stderr, stderr_reader: reader.ok() };
        // A wake-up must never block the scheduler: if the pipe is full, there are bytes that wake the image anyway.
        rustix::fs::fcntl_setfl(&process.wake, OFlags::NONBLOCK).map_err(|errno| failed(errno.into()))?;
        Ok(process)
    }

    /// Sends the byte that wakes a core.
    ///
    /// # Errors
    /// As a message.
    pub fn wake(&mut self) -> Result<(), String> {
        match self.wake.write(&[0]) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(format!("wake-up of {QEMU}: {error}")),
        }
    }

    /// # Errors
    /// It has ended; the message has its status and its error output.
    pub fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                if let Some(reader) = self.stderr_reader.take() {
                    // All output is read once the process has ended; a reader that panicked has none.
                    let _ = reader.join();
                }
                Err(format!("{QEMU} has ended ({status}){}", self.stderr_text()))
            }
            Err(error) => Err(format!("{QEMU}: {error}")),
        }
    }

    /// Its error output, for the end of a message.
    pub fn stderr_text(&self) -> String {
        let text = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
    }

    /// Program counter and frame pointer of core 0, as the monitor tells them.
    pub fn pc_and_fp(&mut self) -> Option<(u64, u64)> {
        self.monitor.set_read_timeout(Some(MONITOR_TIMEOUT)).ok()?;
        self.monitor.set_write_timeout(Some(MONITOR_TIMEOUT)).ok()?;
        self.monitor.write_all(b"info registers\n").ok()?;
        let started = Instant::now();
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        while started.elapsed() < MONITOR_TIMEOUT {
            let len = self.monitor.read(&mut piece).ok().filter(|len| *len != 0)?;
            answer.extend(&piece[..len]);
            if let Some(found) = registers(&String::from_utf8_lossy(&answer)) {
                return Some(found);
            }
        }
        None
    }

    /// Ends it.
    pub fn kill(&mut self) {
        // Neither fails but for a process that has been reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if let Some(reader) = self.stderr_reader.take() {
            // It has come to the end of the output; what it has read is not needed any more.
            let _ = reader.join();
        }
    }
}

/// `PC` and `X29` of a listing of the monitor; `None` while one of them has not come.
fn registers(listing: &str) -> Option<(u64, u64)> {
    let value = |name: &str| {
        let digits = listing.split_once(name)?.1.get(..16)?;
        u64::from_str_radix(digits, 16).ok()
    };
    Some((value("PC=")?, value("X29=")?))
}

/// Keeps the start of QEMU's error output, and reads the rest so that QEMU never waits.
fn collect(mut pipe: impl Read, text: &Mutex<String>) {
    let mut bytes = Vec::new();
    // A pipe that can't be read has nothing to say; the end of the process is reported elsewhere.
    let _ = pipe.by_ref().take(STDERR_MAX).read_to_end(&mut bytes);
    *text.lock().unwrap_or_else(PoisonError::into_inner) = String::from_utf8_lossy(&bytes).into_owned();
    let _ = std::io::copy(&mut pipe, &mut std::io::sink());
}

/// The command that runs the image.
fn command(memory: &Arc<SharedMemory>, monitor: OwnedFd, entry: u64, icount: bool) -> Command {
    let size = LOW_SIZE + memory.hbm_size();
    let fd = memory.file().as_raw_fd();
    let mut command = Command::new(QEMU);
    command
        .args(["-M", "virt,gic-version=2,memory-backend=ram", "-cpu", "cortex-a72", "-smp", "2"])
        .args(["-nodefaults", "-display", "none", "-serial", "stdio"])
        .args(["-m", &(size >> 20).to_string()])
        .arg("-chardev")
        .arg(format!("socket,id=monitor,fd={}", monitor.as_raw_fd()))
        .args(["-mon", "chardev=monitor,mode=readline"])
        .arg("-object")
        .arg(format!("memory-backend-file,id=ram,size={size},mem-path=/proc/self/fd/{fd},share=on"))
        .arg("-device")
        .arg(format!("loader,addr={entry:#x},cpu-num=0"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if icount {
        // One instruction takes 1 ns of the machine's time, and its cycle counter counts ns.
        command.args(["-icount", "shift=0"]);
    }
    let parent = rustix::process::getpid();
    let memory = Arc::clone(memory);
    // SAFETY: between fork and exec `prepare` makes system calls only: it neither allocates nor locks.
    unsafe { command.pre_exec(move || prepare([memory.file(), monitor.as_fd()], parent)) };
    command
}

/// What the child does before it becomes QEMU: it dies with its parent, and inherits `files`.
fn prepare(files: [BorrowedFd<'_>; 2], parent: Pid) -> std::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(parent) {
        // The parent has died before the signal was asked for.
        return Err(std::io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()));
    }
    // Only here: no other child of the parent gets the files.
    for file in files {
        rustix::io::fcntl_setfd(file, FdFlags::empty())?;
    }
    Ok(())
}

type SpawnRequest = (Command, SyncSender<std::io::Result<Child>>);

/// Spawns from a thread that lives as long as the process: the death signal comes when the spawning *thread* ends.
fn spawn(command: Command) -> std::io::Result<Child> {
    /// The thread's process, and the way to it: a forked child has not got its parent's.
    static SPAWNER: Mutex<Option<(u32, Sender<SpawnRequest>)>> = Mutex::new(None);
    let gone = || std::io::Error::other("no thread to start it from");
    let (reply, answer) = sync_channel(1);
    {
        let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = std::process::id();
        let (_, sender) = match spawner.take() {
            Some(known) if known.0 == pid => spawner.insert(known),
            _ => spawner.insert((pid, start_spawner()?)),
        };
        sender.send((command, reply)).map_err(|_| gone())?;
    }
    answer.recv().map_err(|_| gone())?
}

fn start_spawner() -> std::io::Result<Sender<SpawnRequest>> {
    let (sender, requests) = channel::<SpawnRequest>();
    let run = move || {
        for (mut command, reply) in requests {
            // Whoever asked waits for the answer.
            let _ = reply.send(command.spawn());
        }
    };
    spawn_own("qemu-spawner".to_owned(), run)?;
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_found_in_a_listing() {
        let listing = "info registers\r\n\r\nCPU#0\r\n PC=0000000040201234 X00=0000000000000001\r\nX29=0000000040250010 X30=0\r\n";
        assert_eq!(registers(listing), Some((0x4020_1234, 0x4025_0010)));
        for cut in 0..listing.find(" X30").unwrap() {
            assert_eq!(registers(&listing[..cut]), None, "after {cut} bytes");
        }
    }
}
