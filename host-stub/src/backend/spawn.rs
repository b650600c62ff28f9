//! Starts programs in a process group of their own, each within a limit, and ends the whole group.
//!
//! `std::process` is not used: it waits without limit for a child that is stopped between `fork` and `exec`, and it loses files
//! when the program that uses this library has closed its standard files.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::ptr;
use std::sync::mpsc::{SendError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hcomm_sim::hosts::spawn_own;
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};

/// How long a program may take from `fork` to `exec`.
pub const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a killed process may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to check whether it has ended.
const END_POLL: Duration = Duration::from_micros(200);
/// Descriptors below this are the standard files.
const FIRST_FREE_FD: RawFd = 3;
/// Folders of programs if `PATH` is not set; the C library uses the same.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Shell of the guard.
const SHELL: &str = "/bin/sh";
/// What the guard runs: its standard input ends when this process does, however that happens.
const GUARD: &str = "read -r _; kill -KILL 0";

/// The same file with a number above those of the standard files.
///
/// # Errors
/// No number is free.
pub fn above_standard_files(file: impl Into<OwnedFd>) -> io::Result<OwnedFd> {
    let file = file.into();
    if file.as_raw_fd() >= FIRST_FREE_FD {
        return Ok(file);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&file, FIRST_FREE_FD)?)
}

/// Looks for an executable file `name` in the folders of `PATH`.
///
/// # Errors
/// `NotFound`, or why the first file of this name can't be executed.
pub fn find(name: &str) -> io::Result<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let mut refused = None;
    for path in std::env::split_paths(&folders).map(|folder| folder.join(name)).filter(|path| path.is_file()) {
        match rustix::fs::access(&path, Access::EXEC_OK) {
            Ok(()) => return Ok(path),
            Err(errno) => refused = refused.or(Some(io::Error::from(errno))),
        }
    }
    Err(refused.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// A program to run. All files have numbers above those of the standard files.
pub struct Program<'a> {
    /// Its file.
    pub path: PathBuf,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// Standard input, output and error output.
    pub standard: [OwnedFd; 3],
    /// Files that it finds under the numbers that they have here.
    pub inherited: Vec<BorrowedFd<'a>>,
}

/// A program that runs, and every process of its group. Killed on drop.
pub struct Group {
    program: Pid,
    guard: Option<Guard>,
    /// Process that started it: a forked child must not end its parent's.
    owner: u32,
    is_alive: bool,
}

/// Process that kills the group when this process is gone.
///
/// The death signal reaches the program that was started. A script that runs another program without `exec` dies by it, and
/// that other program does not. So for a script there is a guard, which also is the leader of the group.
struct Guard {
    pid: Pid,
    /// Write end of the guard's standard input, open until this process ends.
    _alive: OwnedFd,
}

impl Group {
    /// Starts `program`; the kernel kills it when this process ends.
    ///
    /// # Errors
    /// No process can be made, the program does not exist, or it has not started within [`START_TIMEOUT`].
    pub fn start(program: &Program<'_>) -> io::Result<Self> {
        let guard = if is_script(&program.path)? { Guard::start() } else { None };
        let leader = guard.as_ref().map(|guard| guard.pid);
        match start(program, leader, true) {
            Ok(pid) => Ok(Self { program: pid, guard, owner: std::process::id(), is_alive: true }),
            Err(error) => {
                if let Some(guard) = guard {
                    end(guard.pid, &[guard.pid]);
                }
                Err(error)
            }
        }
    }

    /// How the program has ended; `None` while it runs.
    pub fn status(&self) -> Option<String> {
        // It is not reaped before `kill`, so that its id is not given to another process.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(self.program), options) {
            Ok(None) | Err(Errno::INTR) => None,
            Ok(Some(status)) => Some(describe(&status)),
            // The program that uses this library waits for all children, or ignores SIGCHLD.
            Err(Errno::CHILD) => Some("its exit status was taken by another part of this process".to_owned()),
            Err(errno) => Some(format!("it can't be waited for: {errno}")),
        }
    }

    /// Sends a signal to the program, if it has not ended.
    pub fn signal(&self, signal: Signal) {
        if self.is_alive && self.owner == std::process::id() {
            // It fails only for a process that has ended.
            let _ = rustix::process::kill_process(self.program, signal);
        }
    }

    /// Ends every process of the group.
    pub fn kill(&mut self) {
        if !std::mem::take(&mut self.is_alive) || self.owner != std::process::id() {
            return;
        }
        match &self.guard {
            Some(guard) => end(guard.pid, &[self.program, guard.pid]),
            None => end(self.program, &[self.program]),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Guard {
    /// `None`, with a line in the log, if there is no shell or no process can be made.
    fn start() -> Option<Self> {
        let start = || {
            let (input, alive) = io::pipe()?;
            let null = || above_standard_files(std::fs::File::options().write(true).open("/dev/null")?);
            let program = Program {
                path: SHELL.into(),
                args: vec!["-c".into(), GUARD.into()],
                standard: [above_standard_files(input)?, null()?, null()?],
                inherited: Vec::new(),
            };
            let alive = above_standard_files(alive)?;
            Ok(Self { pid: start(&program, None, false)?, _alive: alive })
        };
        let failed = |error: io::Error| log::warn!("no guard for a program that is a script: {SHELL}: {error}");
        start().map_err(failed).ok()
    }
}

fn describe(status: &WaitIdStatus) -> String {
    let raw = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code << 8,
        (None, Some(signal)) => signal,
        (None, None) => return "unknown status".to_owned(),
    };
    ExitStatus::from_raw(raw).to_string()
}

/// Whether the system starts the file by way of an interpreter.
fn is_script(path: &Path) -> io::Result<bool> {
    let mut start = [0; 2];
    match std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)) {
        Ok(()) => Ok(start == *b"#!"),
        // A program that may be executed but not read.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(error),
    }
}

/// Kills the group of `leader`, and waits a limited time for those of its processes that are children of this one.
fn end(leader: Pid, children: &[Pid]) {
    // Both calls fail only for processes that have ended. A child that is not in its group yet is killed by its own id.
    let _ = rustix::process::kill_process_group(leader, Signal::KILL);
    for &child in children {
        let _ = rustix::process::kill_process(child, Signal::KILL);
    }
    let started = Instant::now();
    for &child in children {
        // `Err`: it has been waited for elsewhere.
        while let Ok(None) = rustix::process::waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
        {
            if started.elapsed() > END_TIMEOUT {
                log::warn!("process {} was killed and has not ended within {END_TIMEOUT:?}", child.as_raw_nonzero());
                break;
            }
            std::thread::sleep(END_POLL);
        }
    }
}

/// Starts a program in the group of `leader`, or as the leader of a new one. `dies`: the kernel kills it when this
/// process ends.
fn start(program: &Program<'_>, leader: Option<Pid>, dies: bool) -> io::Result<Pid> {
    let (mut report, far_end) = UnixStream::pair()?;
    let image = Image::new(program, leader, dies, above_standard_files(far_end)?)?;
    let pid = fork_from_spawner(image)?;
    let started = Instant::now();
    let mut code = [0; 4];
    loop {
        let left = START_TIMEOUT.saturating_sub(started.elapsed()).max(Duration::from_millis(1));
        report.set_read_timeout(Some(left))?;
        let result = report.read(&mut code);
        let error = match result {
            // Closed by `exec`.
            Ok(0) => return Ok(pid),
            Ok(_) => io::Error::from_raw_os_error(i32::from_ne_bytes(code)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted && started.elapsed() < START_TIMEOUT => continue,
            Err(_) => io::Error::other(format!(
                "not started within {START_TIMEOUT:?}: process {} is stopped between fork and exec, or the machine is overloaded",
                pid.as_raw_nonzero()
            )),
        };
        end(leader.unwrap_or(pid), &[pid]);
        return Err(error);
    }
}

/// Everything that the child needs, because nothing may be allocated after `fork`.
struct Image {
    path: CString,
    args: Vec<CString>,
    environment: Vec<CString>,
    standard: [RawFd; 3],
    inherited: Vec<RawFd>,
    leader: Option<Pid>,
    dies: bool,
    parent: Pid,
    /// File for an error. If it ends without one, the program has started.
    report: OwnedFd,
}

impl Image {
    fn new(program: &Program<'_>, leader: Option<Pid>, dies: bool, report: OwnedFd) -> io::Result<Self> {
        let text = |bytes: &OsStr| CString::new(bytes.as_bytes()).map_err(io::Error::from);
        let path = text(program.path.as_os_str())?;
        let args = program.args.iter().map(|arg| text(arg));
        let args = std::iter::once(Ok(path.clone())).chain(args).collect::<io::Result<Vec<_>>>()?;
        let variable = |(name, value): (OsString, OsString)| {
            let mut bytes = name.into_vec();
            bytes.push(b'=');
            bytes.extend(value.into_vec());
            CString::new(bytes).map_err(io::Error::from)
        };
        Ok(Self {
            path,
            args,
            environment: std::env::vars_os().map(variable).collect::<io::Result<_>>()?,
            standard: program.standard.each_ref().map(AsRawFd::as_raw_fd),
            inherited: program.inherited.iter().map(AsRawFd::as_raw_fd).collect(),
            leader,
            dies,
            parent: rustix::process::getpid(),
            report,
        })
    }

    /// Forks, and runs the program in the child.
    fn fork(&self) -> io::Result<Pid> {
        let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
        };
        let (args, environment) = (pointers(&self.args), pointers(&self.environment));
        // SAFETY: the child runs only `exec`, which neither allocates nor locks: other threads of this process may have
        // held any lock at the fork. All signals are blocked here, so that no handler of the program runs in the child.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: in the child; both arrays end with null and point to texts of `self`, which the child has a copy of.
                let error = unsafe { self.exec(args.as_ptr(), environment.as_ptr()) };
                let code = error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes();
                // SAFETY: the bytes are this function's. If they can't be written, the parent sees the end of the file
                // as a start, and then finds that the process has ended with 127.
                unsafe {
                    libc::write(self.report.as_raw_fd(), code.as_ptr().cast(), code.len());
                    libc::_exit(127)
                }
            }
            pid => Ok(Pid::from_raw(pid).expect("the number of a process is not 0")),
        }
    }

    /// The child's part: returns the error if the program does not start.
    ///
    /// # Safety
    /// Only after `fork`, in the child. Both arrays end with a null pointer; those before point to texts.
    unsafe fn exec(&self, args: *const *const libc::c_char, environment: *const *const libc::c_char) -> io::Error {
        let group = self.leader.map_or(0, |leader| leader.as_raw_nonzero().get());
        // SAFETY: plain system calls with numbers of this process and files that `report` and `Program` hold open.
        unsafe {
            if libc::setpgid(0, group) != 0 {
                return io::Error::last_os_error();
            }
            if self.dies && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) != 0 {
                return io::Error::last_os_error();
            }
            if self.dies && libc::getppid() != self.parent.as_raw_nonzero().get() {
                // The parent ended before the death signal was set.
                libc::_exit(127);
            }
            // Closes files that the program left open for its own children. Before Linux 5.11 there is no such call,
            // and they stay open.
            libc::syscall(libc::SYS_close_range, FIRST_FREE_FD, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            for (number, &file) in (0..).zip(&self.standard) {
                if libc::dup2(file, number) < 0 {
                    return io::Error::last_os_error();
                }
            }
            for &file in &self.inherited {
                if libc::fcntl(file, libc::F_SETFD, 0) != 0 {
                    return io::Error::last_os_error();
                }
            }
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            for signal in 1..=libc::SIGRTMAX() {
                // Two signals can't be changed, and some belong to the C library.
                libc::sigaction(signal, &default, ptr::null_mut());
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
            libc::execve(self.path.as_ptr(), args, environment);
        }
        io::Error::last_os_error()
    }
}

type Request = (Image, SyncSender<io::Result<Pid>>);

/// Forks from a thread that runs as long as the process: the death signal is sent when the forking *thread* ends.
fn fork_from_spawner(image: Image) -> io::Result<Pid> {
    /// Process of the thread, and a channel to the thread: a forked child does not have its parent's thread.
    static SPAWNER: Mutex<Option<(u32, Sender<Request>)>> = Mutex::new(None);
    let requests = {
        let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = std::process::id();
        let (_, requests) = match spawner.take() {
            Some(known) if known.0 == pid => spawner.insert(known),
            // After an error the next call tries again.
            _ => spawner.insert((pid, start_spawner()?)),
        };
        requests.clone()
    };
    let gone = || io::Error::other("the thread that starts programs has ended");
    let (reply, answer) = sync_channel(1);
    requests.send((image, reply)).map_err(|_| gone())?;
    answer.recv_timeout(START_TIMEOUT).map_err(|_| gone())?
}

fn start_spawner() -> io::Result<Sender<Request>> {
    let (sender, requests) = channel::<Request>();
    let run = move || {
        block_signals();
        for (image, reply) in requests {
            if let Err(SendError(Ok(pid))) = reply.send(image.fork()) {
                // The caller no longer waits.
                end(image.leader.unwrap_or(pid), &[pid]);
            }
        }
    };
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("no thread to start it from: {error}"));
    spawn_own("qemu-spawner".to_owned(), run).map_err(failed)?;
    Ok(sender)
}

/// Blocks every signal for the calling thread.
fn block_signals() {
    // SAFETY: both calls only write the set, which is this function's.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, ptr::null_mut());
    }
}
