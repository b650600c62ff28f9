//! The process of the Linux CPU: where its parts are, how it starts and ends, and what its kernels print.
//!
//! It runs directly on AArch64, and elsewhere in qemu-aarch64. It ends with this program in every case, as QEMU's does.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hcomm_aicpu::spec::mailbox::MAX_CORES;
use hcomm_aicpu::spec::runner::LOG_MARK;
use hcomm_mapping::SharedMemory;
use hcomm_sim::hosts::spawn_own;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::process::Signal;

use super::log::TARGET;
use super::modules::{DEVICE_LIBRARY, is_runner};
use super::spawn::{self, Group, Program, above_standard_files};
use crate::error::Error;
use crate::log_place::{self, LogPlace, Running};

/// Environment variable that names the runner.
pub const RUNNER_VAR: &str = "HCOMM_RUNNER";
/// Environment variable with the folder that AArch64 libraries are below.
pub const SYSROOT_VAR: &str = "HCOMM_SYSROOT";
/// Its default: where Debian's cross compiler has them.
const SYSROOT: &str = "/usr/aarch64-linux-gnu";
/// Loader of AArch64 programs, below that folder.
const LOADER: &str = "lib/ld-linux-aarch64.so.1";
/// Library of the C++ runtime, below that folder: kernels need it.
const CXX_LIBRARY: &str = "lib/libstdc++.so.6";
/// Program that emulates the processor for one process.
pub const QEMU_USER: &str = "qemu-aarch64";
/// The runner's program.
const RUNNER_NAME: &str = "hcomm-runner";
/// Its folder, below a target folder.
const RUNNER_FOLDER: &str = "aarch64-unknown-linux-gnu/linux";
/// The stock kernels, beside the runner.
pub const STOCK_KERNELS: &str = "libhcomm_kernels.so";
/// Most bytes of output that are read at a time: a kernel may write without end.
const READ_MAX: usize = 1 << 20;
/// Longest line that is kept whole.
const LINE_MAX: usize = 4096;
/// Last lines of output that a message has.
const LAST_LINES: usize = 4;
/// Start of the message with which the dynamic linker ends a process that calls a function which is not there.
const LOOKUP_ERROR: &str = "symbol lookup error: ";

/// Where the parts of the Linux CPU are.
#[derive(Clone, Debug)]
pub struct RunnerFiles {
    /// The runner's program.
    pub runner: PathBuf,
    /// What runs it, and the folder that AArch64 libraries are below; `None`: this is an AArch64 machine.
    emulator: Option<(PathBuf, PathBuf)>,
}

impl RunnerFiles {
    /// Looks for all parts.
    ///
    /// # Errors
    /// [`Error::MissingTool`].
    pub fn find() -> Result<Self, Error> {
        let runner = find_runner()?;
        if cfg!(target_arch = "aarch64") {
            return Ok(Self { runner, emulator: None });
        }
        let emulator = spawn::find(QEMU_USER).map_err(|error| Error::MissingTool {
            what: match error.kind() {
                ErrorKind::NotFound => format!("{QEMU_USER} is not installed"),
                _ => format!("{QEMU_USER} in PATH can't be executed ({error})"),
            },
            command: "apt-get install qemu-user".to_owned(),
        })?;
        let sysroot = std::env::var_os(SYSROOT_VAR).map_or_else(|| SYSROOT.into(), PathBuf::from);
        for name in [LOADER, CXX_LIBRARY] {
            let path = sysroot.join(name);
            if !path.exists() {
                return Err(Error::MissingTool {
                    what: format!(
                        "the AArch64 library {} is not there ({SYSROOT_VAR} names another folder)",
                        path.display()
                    ),
                    command: "apt-get install libc6-arm64-cross libstdc++6-arm64-cross".to_owned(),
                });
            }
        }
        Ok(Self { runner, emulator: Some((emulator, sysroot)) })
    }

    /// The library with the stock kernels.
    pub fn stock_kernels(&self) -> PathBuf {
        self.runner.with_file_name(STOCK_KERNELS)
    }

    /// The library that kernels' calls go to.
    pub fn device_library(&self) -> PathBuf {
        self.runner.with_file_name(DEVICE_LIBRARY)
    }

    /// Folder that AArch64 libraries are below.
    pub fn root(&self) -> &Path {
        self.emulator.as_ref().map_or(Path::new("/"), |(_, sysroot)| sysroot)
    }

    /// Program and arguments, before those of the runner.
    fn command(&self) -> (PathBuf, Vec<OsString>) {
        match &self.emulator {
            None => (self.runner.clone(), Vec::new()),
            // Libraries that are loaded before all others are this machine's, and would not load there.
            Some((emulator, sysroot)) => {
                let args = ["-U".into(), "LD_PRELOAD".into(), "-L".into(), sysroot.into(), self.runner.clone().into()];
                (emulator.clone(), args.to_vec())
            }
        }
    }
}

fn find_runner() -> Result<PathBuf, Error> {
    let missing = |what| Error::MissingTool { what, command: "make linux".to_owned() };
    if let Some(path) = std::env::var_os(RUNNER_VAR).map(PathBuf::from) {
        return if path.is_file() {
            Ok(path)
        } else {
            Err(missing(format!("{RUNNER_VAR} is {}: no such file", path.display())))
        };
    }
    let installed = crate::installed::folders().into_iter().map(|folder| folder.join(RUNNER_NAME));
    let built = crate::loader::target_folders().into_iter().map(|folder| folder.join(RUNNER_FOLDER).join(RUNNER_NAME));
    let looked: Vec<_> = installed.chain(built).collect();
    match looked.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => {
            let looked: Vec<_> = looked.iter().map(|path| path.display().to_string()).collect();
            Err(missing(format!("the runner of the linux cpu is not built (looked for {})", looked.join(", "))))
        }
    }
}

/// A running runner, killed on drop.
pub struct Runner {
    group: Group,
    output: Arc<Output>,
    /// Closed on drop, which ends the thread that reads the output.
    _alive: OwnedFd,
}

impl Runner {
    /// Starts it for the device in `memory`.
    ///
    /// # Errors
    /// As a message.
    pub fn start(files: &RunnerFiles, memory: &Arc<SharedMemory>) -> Result<Self, String> {
        let (path, args) = files.command();
        Self::spawn(path.clone(), args, memory).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn spawn(path: PathBuf, mut args: Vec<OsString>, memory: &Arc<SharedMemory>) -> io::Result<Self> {
        let (output, output_end) = io::pipe()?;
        let (stop, alive) = io::pipe()?;
        let null = std::fs::File::options().read(true).open("/dev/null")?;
        let output_end = above_standard_files(output_end)?;
        args.push(memory.file().as_raw_fd().to_string().into());
        let program = Program {
            path,
            args,
            standard: [above_standard_files(null)?, output_end.try_clone()?, output_end],
            inherited: vec![memory.file()],
        };
        let pipe = io::PipeReader::from(above_standard_files(output)?);
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        let (stop, alive) = (above_standard_files(stop)?, above_standard_files(alive)?);
        let group = Group::start(&program)?;
        let slot = memory.slot();
        let output = Arc::new(Output {
            reader: Mutex::new(Reader {
                pipe,
                slot,
                line: Vec::new(),
                last: Vec::new(),
                running: [const { None }; MAX_CORES],
                is_over: false,
            }),
        });
        let reader = Arc::clone(&output);
        spawn_own(format!("output-{slot}"), move || reader.read_until(&stop))?;
        Ok(Self { group, output, _alive: alive })
    }

    /// `core` runs this launch from now on.
    pub fn begins(&self, core: usize, running: Running) {
        self.output.lock().running[core] = Some(running);
    }

    /// Prints what kernels have written so far.
    pub fn forward_output(&self) {
        self.output.lock().drain();
    }

    /// # Errors
    /// It has ended; the message contains its status and its last output.
    pub fn check(&self) -> Result<(), Ended> {
        let Some(status) = self.group.status() else { return Ok(()) };
        let mut reader = self.output.lock();
        reader.drain();
        reader.end_line();
        let missing = reader.last.iter().rev().find_map(|line| Some(line.split_once(LOOKUP_ERROR)?.1.to_owned()));
        let last = match reader.last.is_empty() {
            true => String::new(),
            false => format!(": {}", reader.last.join(" / ")),
        };
        Err(Ended { text: format!("the runner has ended ({status}){last}"), missing })
    }

    /// Asks each core that runs a kernel where it is.
    pub fn ask(&self) {
        self.group.signal(Signal::USR1);
    }

    /// Ends it, and the processes that kernels have started.
    pub fn kill(&mut self) {
        self.group.kill();
        self.forward_output();
    }
}

/// How a runner has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Status and last output.
    pub text: String,
    /// `LIBRARY: undefined symbol: NAME`, if a kernel has called a function that is not there.
    pub missing: Option<String>,
}

/// What kernels write, and where it goes.
struct Output {
    reader: Mutex<Reader>,
}

impl Output {
    fn lock(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints what comes, until the other end of `stop` is closed or nothing can come any more.
    fn read_until(&self, stop: &OwnedFd) {
        let pipe = match self.lock().pipe.as_fd().try_clone_to_owned() {
            Ok(pipe) => pipe,
            // Then only those print that look for it: at the end of each kernel.
            Err(error) => return log::warn!("output of kernels is printed at their end: {error}"),
        };
        loop {
            let mut files = [PollFd::new(&pipe, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            if rustix::event::poll(&mut files, None).is_err() {
                continue;
            }
            let is_stopped = !files[1].revents().is_empty();
            let mut reader = self.lock();
            reader.drain();
            if is_stopped || reader.is_over {
                return reader.end_line();
            }
        }
    }
}

struct Reader {
    pipe: io::PipeReader,
    /// Device slot, for the start of each line.
    slot: usize,
    /// A line that has not ended.
    line: Vec<u8>,
    /// The last lines that were printed.
    last: Vec<String>,
    /// Launch that each core runs, or has run last.
    running: [Option<Running>; MAX_CORES],
    /// Nothing can come any more.
    is_over: bool,
}

impl Reader {
    /// Prints the lines that have come.
    fn drain(&mut self) {
        let (mut piece, mut total) = ([0; 4096], 0);
        while total < READ_MAX {
            match self.pipe.read(&mut piece) {
                Ok(0) => {
                    self.is_over = true;
                    return;
                }
                Ok(len) => {
                    total += len;
                    self.add(&piece[..len]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // None now. A pipe that can't be read gives no text.
                Err(_) => return,
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // A line of the log may come behind the start of another line, which ends there.
            if *byte == LOG_MARK {
                self.end_line();
            }
            self.line.push(*byte);
            if *byte == b'\n' || self.line.len() >= LINE_MAX {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned();
        if let Some(line) = LogLine::parse(&text) {
            return line.log(&self.running);
        }
        // A standard error that is closed or full is no reason to stop.
        let _ = writeln!(io::stderr(), "[device {}] {text}", self.slot);
        if self.last.len() == LAST_LINES {
            self.last.remove(0);
        }
        self.last.push(text);
    }
}

/// A line of the log that a kernel in C or C++ has written.
struct LogLine<'a> {
    level: log::Level,
    core: usize,
    at_us: u64,
    text: &'a str,
}

impl<'a> LogLine<'a> {
    /// `None`: it is no such line.
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.strip_prefix(char::from(LOG_MARK))?.splitn(4, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (level, core, at_us) = (number()?, number()?, number()?);
        let level = log::Level::iter().nth(usize::try_from(level.checked_sub(1)?).ok()?)?;
        Some(Self { level, core: usize::try_from(core).ok()?, at_us, text: words.next()? })
    }

    /// Logs it, from the launch that its core runs. A thread that a kernel has made has no core.
    fn log(&self, running: &[Option<Running>]) {
        let Self { level, core, at_us, text } = *self;
        let running = running.get(core).cloned().flatten();
        let place = running.map(|running| LogPlace { running, core, at_us: Some(at_us) });
        log_place::during(place, || log::log!(target: TARGET, level, "{text}"));
    }
}

/// Whether a path is that of a library below the folder of AArch64 libraries, or one of the runner itself.
pub fn is_system_library(files: &RunnerFiles, path: &Path) -> bool {
    let sysroot = files.emulator.as_ref().map_or(Path::new("/usr/lib"), |(_, sysroot)| sysroot);
    is_runner(path) || path.starts_with(sysroot) || path.starts_with("/lib")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_lines_of_output_are_lines_of_the_log() {
        let parsed = |line| LogLine::parse(line).map(|line| (line.level, line.core, line.at_us, line.text));
        assert_eq!(parsed("\x1e3 1 250 5 of 7  pieces"), Some((log::Level::Info, 1, 250, "5 of 7  pieces")));
        assert_eq!(parsed("\x1e5 2 0 "), Some((log::Level::Trace, 2, 0, "")));
        for other in ["3 1 250 text", "\x1e0 1 250 text", "\x1e6 1 250 text", "\x1e3 1 text", "\x1e3 1 2"] {
            assert_eq!(parsed(other), None, "{other:?}");
        }
    }
}
