//! The QEMU process: how it starts, and how it is guaranteed to end.
//!
//! It ends with its [`Process`], and with this program in every case: the kernel kills it when the thread that started
//! it ends, and that thread runs as long as the program. It is in a process group of its own, so that Ctrl-C reaches
//! only the program.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hcomm_aicpu::spec::map::LOW_SIZE;
use hcomm_mapping::SharedMemory;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;

use super::core_plugin::CorePlugin;
use super::spawn::{self, Group, Program, above_standard_files};

/// Program that emulates the processor.
pub const QEMU: &str = "qemu-system-aarch64";
/// How much of its error output is kept.
const STDERR_MAX: usize = 16 << 10;
/// Most bytes of its error output that are read at a time: QEMU may write without end.
const STDERR_READ_MAX: usize = 1 << 20;
/// How long its monitor may take to answer.
const MONITOR_TIMEOUT: Duration = Duration::from_secs(10);
/// Option that refuses system calls which an emulated machine does not need, if QEMU was built with it.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
/// Folder through which it opens device memory.
const OPEN_FILES: &str = "/proc/self/fd";

/// Whether QEMU has refused [`SANDBOX`] before.
static HAS_NO_SANDBOX: AtomicBool = AtomicBool::new(false);

/// A running QEMU, killed on drop.
pub struct Process {
    group: Group,
    wake: OwnedFd,
    monitor: UnixStream,
    stderr: io::PipeReader,
    stderr_text: Vec<u8>,
    is_sandboxed: bool,
}

impl Process {
    /// Starts core 0 at `entry`, with `memory` as RAM. `plugin`: it loads this.
    ///
    /// # Errors
    /// As a message.
    pub fn start(
        memory: &Arc<SharedMemory>,
        entry: u64,
        machine: Machine,
        plugin: Option<&CorePlugin>,
    ) -> Result<Self, String> {
        let path = spawn::find(QEMU).map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("{QEMU} is not installed: `apt-get install qemu-system-arm` installs it"),
            _ => format!("{QEMU} in PATH can't be executed: {error}"),
        })?;
        if !Path::new(OPEN_FILES).exists() {
            return Err(format!("{QEMU} opens device memory by {OPEN_FILES}, which is not there: mount /proc"));
        }
        let is_sandboxed = !HAS_NO_SANDBOX.load(Ordering::Relaxed);
        let plugin = plugin.map(|plugin| plugin.option(memory, memory.file().as_raw_fd()));
        let arguments = Arguments { size: LOW_SIZE + memory.hbm_size(), entry, machine, plugin, is_sandboxed };
        Self::spawn(&path, memory, &arguments).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn spawn(path: &Path, memory: &Arc<SharedMemory>, arguments: &Arguments) -> io::Result<Self> {
        let (wake, stdin) = UnixStream::pair()?;
        let (monitor, monitor_end) = UnixStream::pair()?;
        let (stderr, stderr_end) = io::pipe()?;
        let null = std::fs::File::options().write(true).open("/dev/null")?;
        let monitor_end = above_standard_files(monitor_end)?;
        let program = Program {
            path: path.to_owned(),
            args: arguments.list(memory.file().as_raw_fd(), monitor_end.as_raw_fd()),
            standard: [above_standard_files(stdin)?, above_standard_files(null)?, above_standard_files(stderr_end)?],
            inherited: vec![memory.file(), monitor_end.as_fd()],
        };
        // A file that stays open must not have the number of a standard file that the program opens later.
        let wake = above_standard_files(wake)?;
        let monitor = UnixStream::from(above_standard_files(monitor)?);
        let stderr = io::PipeReader::from(above_standard_files(stderr)?);
        rustix::fs::fcntl_setfl(&stderr, OFlags::NONBLOCK)?;
        let group = Group::start(&program)?;
        let is_sandboxed = arguments.is_sandboxed;
        Ok(Self { group, wake, monitor, stderr, stderr_text: Vec::new(), is_sandboxed })
    }

    /// Sends the byte that wakes a core.
    ///
    /// # Errors
    /// As a message.
    pub fn wake(&mut self) -> Result<(), String> {
        // A wake-up must never block the scheduler: if there is no room, there are bytes that wake the image anyway.
        // And no signal may reach the program when QEMU has ended.
        match rustix::net::send(&self.wake, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(errno) => Err(format!("wake-up of {QEMU}: {errno}")),
        }
    }

    /// # Errors
    /// It has ended; the message contains its status and its error output.
    pub fn check(&mut self) -> Result<(), String> {
        self.read_stderr();
        match self.group.status() {
            None => Ok(()),
            Some(status) => {
                // Its last output.
                self.read_stderr();
                Err(format!("{QEMU} has ended ({status}){}", self.stderr_text()))
            }
        }
    }

    /// Whether it has ended because it has no option for a sandbox. The next one is started without.
    pub fn lacks_sandbox(&mut self) -> bool {
        self.read_stderr();
        let text = String::from_utf8_lossy(&self.stderr_text);
        let lacks = self.is_sandboxed
            && self.group.status().is_some()
            && ["sandbox", "seccomp"].iter().any(|word| text.contains(word));
        if lacks {
            HAS_NO_SANDBOX.store(true, Ordering::Relaxed);
        }
        lacks
    }

    /// Its error output, for the end of a message.
    pub fn stderr_text(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr_text);
        if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
    }

    /// Keeps the start of the error output, and reads the rest so that QEMU never waits for room.
    fn read_stderr(&mut self) {
        let (mut piece, mut total) = ([0; 4096], 0);
        while total < STDERR_READ_MAX {
            // The end of the output, or no output now. A pipe that can't be read gives no text.
            let Some(len) = self.stderr.read(&mut piece).ok().filter(|&len| len != 0) else { return };
            total += len;
            let kept = len.min(STDERR_MAX - self.stderr_text.len());
            self.stderr_text.extend(&piece[..kept]);
        }
    }

    /// Program counter and frame pointer of core 0, from the monitor.
    pub fn pc_and_fp(&mut self) -> Option<(u64, u64)> {
        self.monitor.set_read_timeout(Some(MONITOR_TIMEOUT)).ok()?;
        // Even if the monitor reads nothing, there is room for one command.
        let command = b"info registers\n";
        let sent = rustix::net::send(&self.monitor, command, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).ok()?;
        if sent != command.len() {
            return None;
        }
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

    /// Ends it, and the processes that it has started.
    pub fn kill(&mut self) {
        self.group.kill();
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

/// How the processor is emulated.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Instructions are counted.
    pub icount: bool,
    /// TCP port of this computer where a debugger is waited for: the processor stands still until it goes on.
    pub gdb: Option<u16>,
}

/// The command line of QEMU.
struct Arguments {
    /// Bytes of RAM.
    size: u64,
    entry: u64,
    machine: Machine,
    /// Value of `-plugin`.
    plugin: Option<String>,
    is_sandboxed: bool,
}

impl Arguments {
    /// The arguments; `memory` and `monitor` are numbers of files that it inherits.
    fn list(&self, memory: i32, monitor: i32) -> Vec<OsString> {
        let Self { size, entry, .. } = self;
        let mut list: Vec<OsString> = Vec::new();
        let mut add = |option: &str, value: String| list.extend([option.into(), value.into()]);
        add("-M", "virt,gic-version=2,memory-backend=ram".to_owned());
        add("-cpu", "cortex-a72".to_owned());
        add("-smp", "2".to_owned());
        add("-display", "none".to_owned());
        add("-serial", "stdio".to_owned());
        add("-m", (size >> 20).to_string());
        add("-chardev", format!("socket,id=monitor,fd={monitor}"));
        add("-mon", "chardev=monitor,mode=readline".to_owned());
        add("-object", format!("memory-backend-file,id=ram,size={size},mem-path={OPEN_FILES}/{memory},share=on"));
        add("-device", format!("loader,addr={entry:#x},cpu-num=0"));
        if let Some(port) = self.machine.gdb {
            add("-gdb", format!("tcp:127.0.0.1:{port}"));
        }
        if self.machine.icount {
            // One instruction takes 1 ns of the machine's time, and its cycle counter counts ns.
            add("-icount", "shift=0".to_owned());
        }
        if let Some(plugin) = &self.plugin {
            add("-plugin", plugin.clone());
        }
        if self.is_sandboxed {
            add("-sandbox", SANDBOX.to_owned());
        }
        list.push("-nodefaults".into());
        if self.machine.gdb.is_some() {
            list.push("-S".into());
        }
        list
    }
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
