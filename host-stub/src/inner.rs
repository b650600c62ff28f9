//! What all handles to a device share: the device's parts, and whether it still works.
#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hcomm_aicpu::spec::DeviceAddr;

use crate::backend::linux::RunnerFiles;
use crate::error::Error;
use crate::library::Kernels;
use crate::loader::Image;
use crate::options::DeviceOptions;
use crate::signals::without_write_signals;
use crate::trace::session::Recording;
use hcomm_mapping::SharedMemory;
use hcomm_sim::alloc::Kind;
use hcomm_sim::check::findings::{Findings, Receiver, Report};
use hcomm_sim::check::list::{Check, Level};
use hcomm_sim::comm_table::CommTable;
use hcomm_sim::event::HostThread;
use hcomm_sim::fabric::Channels;
use hcomm_sim::fault::{Fault, FaultCounter, KernelFault};
use hcomm_sim::inbox::Command;
use hcomm_sim::shared::Shared;
use hcomm_sim::threads::Threads;

/// How long a reset of queues or of the device may take: longer than the largest task, and than a boot.
pub(crate) const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Allocations that are listed of those that nothing has freed.
const LISTED_LEAKS: usize = 16;

/// What a device on [`Cpu::Linux`](crate::Cpu::Linux) has.
pub(crate) struct Linux {
    /// Kernels that the runner has a name of.
    pub(crate) kernels: Arc<Kernels>,
    /// Where its parts are.
    pub(crate) files: RunnerFiles,
}

/// What all handles to a device share.
pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared<SharedMemory>>,
    pub(crate) options: DeviceOptions,
    pub(crate) threads: Threads<SharedMemory>,
    pub(crate) channels: Channels<SharedMemory>,
    pub(crate) comms: Mutex<CommTable>,
    pub(crate) scheduler: OnceLock<JoinHandle<()>>,
    pub(crate) image: Option<Arc<Image>>,
    pub(crate) linux: Option<Linux>,
    pub(crate) next_stream_id: AtomicU32,
    pub(crate) next_event: AtomicU32,
    pub(crate) kernel_faults: Mutex<FaultCounter>,
    /// What the checks have found; `None`: there are none.
    pub(crate) findings: Option<Arc<Findings>>,
    /// The way of its events to a trace file, if it has one.
    pub(crate) recording: Option<Arc<Recording>>,
    /// It takes part in an exploration: its scheduler has no thread.
    pub(crate) is_explored: bool,
    /// Id of the process that has opened it.
    pub(crate) owner: u32,
}

impl Inner {
    /// Numbers for `count` new streams: the first of them.
    pub(crate) fn stream_ids(&self, count: u32) -> u32 {
        self.next_stream_id.fetch_add(count, Ordering::Relaxed)
    }

    /// Number for a new event: the least significant 31 bits of a counter.
    pub(crate) fn event_number(&self) -> u32 {
        self.next_event.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 1)
    }

    /// The fault that the plan has for the next launch on a stream.
    pub(crate) fn kernel_fault(&self, stream_id: u32) -> Option<KernelFault> {
        let rule = self.kernel_faults.lock().unwrap_or_else(PoisonError::into_inner).launch(stream_id)?;
        self.shared.fault_log.note(rule);
        match rule.fault {
            Fault::Kernel(fault) => Some(fault),
            _ => None,
        }
    }

    /// Whether the scheduler has ended.
    pub(crate) fn scheduler_gone(&self) -> bool {
        // A scheduler that has crashed has failed the device first.
        let has_crashed = || self.shared.failed.is_set() && self.shared.inbox.is_closed();
        let has_ended = || !self.is_explored && self.scheduler.get().is_none_or(JoinHandle::is_finished);
        self.is_forked() || has_crashed() || has_ended()
    }

    /// Whether this is a copy of the device in a forked child, which has none of its threads.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.owner
    }

    /// # Errors
    /// [`Error::Forked`].
    pub(crate) fn check_owner(&self) -> Result<(), Error> {
        if self.is_forked() { Err(Error::Forked { owner: self.owner }) } else { Ok(()) }
    }

    /// # Errors
    /// [`Error::AlreadyFailed`], or [`Error::Forked`].
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        self.check_owner()?;
        match self.shared.failed.get() {
            None => Ok(()),
            Some(error) => Err(Error::AlreadyFailed(error)),
        }
    }

    /// # Errors
    /// [`Error::Race`], [`Error::Uninitialised`]: what the checks have found for `receiver`, once.
    pub(crate) fn check_findings(&self, receiver: Receiver) -> Result<(), Error> {
        let Some(findings) = &self.findings else { return Ok(()) };
        self.shared.events.flush();
        self.as_error(|| findings.take(receiver))
    }

    /// # Errors
    /// The first of these findings that is an error. Those before it are lines of the log.
    fn as_error(&self, mut take: impl FnMut() -> Option<Report>) -> Result<(), Error> {
        while let Some(report) = take() {
            let is_error = self.shared.checks.level(report.check()) == Level::Error && !report.is_warning();
            if is_error && self.is_explored {
                self.shared.turn.report(&report.to_string());
            }
            match report {
                Report::Race(race) if is_error => return Err(Error::Race(race)),
                Report::Uninitialised(read) if is_error => return Err(Error::Uninitialised(read)),
                Report::Early(early) if is_error => return Err(Error::EarlyTask(early)),
                Report::Stray(access) if is_error => return Err(Error::StrayAccess(access)),
                report => log::warn!("{report}"),
            }
        }
        Ok(())
    }

    /// A line of the log for each allocation that nothing has freed.
    fn warn_of_leaks(&self) {
        let alloc = self.shared.lock_alloc();
        let (mut count, mut bytes) = (0, 0);
        for (addr, len, place) in alloc.of_user() {
            if count < LISTED_LEAKS {
                log::warn!("never freed: {len} bytes at {addr:#x}{}", place.after(", allocated"));
            }
            (count, bytes) = (count + 1, bytes + len);
        }
        if count > LISTED_LEAKS {
            log::warn!("never freed: {count} allocations in all, {bytes} bytes");
        }
    }

    /// # Errors
    /// The oldest finding that no call has returned, of a device that works.
    pub(crate) fn check_untold(&self) -> Result<(), Error> {
        self.check_owner()?;
        let Some(findings) = self.findings.as_ref().filter(|_| !self.shared.failed.is_set()) else { return Ok(()) };
        self.shared.events.flush();
        self.as_error(|| findings.take_any())
    }

    /// Prints what no call has returned.
    fn print_untold(&self) {
        let Some(findings) = &self.findings else { return };
        self.shared.events.flush();
        while let Some(report) = findings.take_any() {
            self.shared.turn.report(&report.to_string());
            // A standard error that is closed or full is no reason to stop.
            let _ = without_write_signals(|| {
                writeln!(std::io::stderr(), "hcomm-sim: found, and no call has returned it: {report}")
            });
        }
    }

    pub(crate) fn allocate(&self, len: u64, kind: Kind) -> Result<DeviceAddr, Error> {
        self.shared.turn.host_point();
        let _call = self.shared.events.host_call();
        Ok(DeviceAddr(self.shared.allocate(len, kind)?))
    }

    /// Frees what the device itself has allocated.
    pub(crate) fn free_own(&self, addr: DeviceAddr) {
        self.shared.free_own(addr.0, Some(HostThread::current()));
    }

    pub(crate) fn free_user(&self, addr: DeviceAddr) -> Result<(), Error> {
        self.free_unchecked(addr)?;
        self.check_findings(Receiver::Host(HostThread::current()))
    }

    /// Frees without a look at what the checks have found.
    pub(crate) fn free_unchecked(&self, addr: DeviceAddr) -> Result<(), Error> {
        self.check_owner()?;
        self.shared.turn.host_point();
        let _call = self.shared.events.host_call();
        Ok(self.shared.free_user(addr.0)?)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_forked() {
            // There is no thread to stop, and a lock that another thread held stays locked.
            return;
        }
        if self.shared.checks.is_on(Check::Free) {
            self.warn_of_leaks();
        }
        self.shared.inbox.send(Command::Stop);
        self.shared.turn.close();
        if let Some(scheduler) = self.scheduler.take() {
            // If it panicked, its message has been printed.
            let _ = scheduler.join();
        }
        if let Some(recording) = &self.recording {
            recording.closed();
        }
        self.print_untold();
    }
}
