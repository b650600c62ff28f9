//! All devices of the process that write one file.
//!
//! The file is written when a device closes, and when the process ends if there is more to tell by then. A program that opens
//! device after device writes it less and less often: each time, all of it is written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use hcomm_mapping::SharedMemory;
use hcomm_sim::check::findings::Findings;
use hcomm_sim::event::{Event, Observer};
use hcomm_sim::shared::Shared;
use hcomm_sim::timeline::builder::Builder;
use hcomm_sim::timeline::finding;
use hcomm_sim::timeline::model::{Clock, Timeline};

use super::at_exit;
use super::file::{TraceFile, TraceFormat};
use super::lines::Lines;
use crate::signals::without_write_signals;

/// Slices up to which a file is written each time that a device closes.
const OFTEN: usize = 100_000;

/// The events of one device, on their way to a file.
pub(crate) struct Recording {
    builder: Mutex<Builder>,
    /// `None`: no check finds anything.
    findings: Option<Arc<Findings>>,
    lines: Lines,
    /// When the device was opened, on the clock of its file.
    opened_ns: u64,
    device: Mutex<Weak<Shared<SharedMemory>>>,
    file: TraceFile,
}

struct Session {
    file: TraceFile,
    /// The process that it is of: a fork has its own.
    process: u32,
    started: Instant,
    recordings: Vec<Arc<Recording>>,
    /// Slices in the file as it was written last.
    written: usize,
}

static SESSIONS: Mutex<Vec<Session>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Watch(Arc<Recording>);

impl Observer for Watch {
    fn on(&mut self, event: &Event) {
        lock(&self.0.builder).on(event);
    }
}

impl Recording {
    /// Of the device in slot `slot`, which is about to be opened.
    pub(crate) fn begin(
        file: &TraceFile,
        slot: usize,
        clock: Clock,
        findings: Option<Arc<Findings>>,
        lines: Lines,
    ) -> Arc<Self> {
        let mut sessions = lock(&SESSIONS);
        let process = std::process::id();
        sessions.retain(|session| session.process == process);
        let index = sessions.iter().position(|session| session.file == *file).unwrap_or_else(|| {
            let (file, started) = (file.clone(), Instant::now());
            sessions.push(Session { file, process, started, recordings: Vec::new(), written: 0 });
            sessions.len() - 1
        });
        let session = &mut sessions[index];
        let since = u64::try_from(session.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let recording = Arc::new(Self {
            builder: Mutex::new(Builder::new(slot, clock)),
            findings,
            lines,
            opened_ns: if clock == Clock::Real { since } else { 0 },
            device: Mutex::default(),
            file: file.clone(),
        });
        session.recordings.push(Arc::clone(&recording));
        at_exit::register(write_all);
        recording
    }

    /// What makes it of the events.
    pub(crate) fn observer(self: &Arc<Self>) -> Box<dyn Observer> {
        Box::new(Watch(Arc::clone(self)))
    }

    /// The device is open.
    pub(crate) fn opened(&self, device: &Arc<Shared<SharedMemory>>) {
        *lock(&self.device) = Arc::downgrade(device);
    }

    /// Takes the events that wait.
    fn flush(&self) {
        let device = lock(&self.device).upgrade();
        if let Some(device) = device {
            device.events.flush();
        }
    }

    /// What happened so far, in the time of the file.
    pub(crate) fn timeline(&self) -> Timeline {
        self.flush();
        let mut timeline = lock(&self.builder).timeline(&|site| self.lines.text(site));
        for report in self.findings.iter().flat_map(|findings| findings.reports()) {
            finding::mark(&mut timeline, &report);
        }
        timeline.shift(self.opened_ns);
        timeline
    }

    /// The device has closed.
    pub(crate) fn closed(&self) {
        let mut sessions = lock(&SESSIONS);
        let Some(session) = sessions.iter_mut().find(|session| session.file == self.file) else { return };
        let slices = session.slices();
        if slices <= OFTEN || slices >= session.written + session.written / 4 {
            session.write();
        }
    }
}

impl Session {
    fn slices(&self) -> usize {
        self.recordings.iter().map(|recording| lock(&recording.builder).slice_count()).sum()
    }

    /// A file that can't be written is no reason to stop.
    fn write(&mut self) {
        let timelines: Vec<Timeline> = self.recordings.iter().map(|recording| recording.timeline()).collect();
        self.written = timelines.iter().map(|timeline| timeline.slices.len()).sum();
        without_write_signals(|| {
            if let Err(error) = write_file(&self.file, &timelines) {
                let path = self.file.path().display();
                // Nor is a standard error that is closed or full.
                let _ = writeln!(io::stderr(), "hcomm-sim: warning: the timeline was not written to {path}: {error}");
            }
        });
    }
}

/// Writes what the files lack. Called when the process ends.
fn write_all() {
    let process = std::process::id();
    for session in lock(&SESSIONS).iter_mut().filter(|session| session.process == process) {
        session.recordings.iter().for_each(|recording| recording.flush());
        if session.slices() != session.written {
            session.write();
        }
    }
}

/// Writes beside the file, and then in its place: a reader never sees a part of it.
fn write_file(file: &TraceFile, timelines: &[Timeline]) -> io::Result<()> {
    let path = file.path();
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut part = path.to_owned().into_os_string();
    part.push(format!(".part-{}", std::process::id()));
    let part = PathBuf::from(part);
    let result = File::create_new(&part).and_then(|out| {
        write_to(file.format(), timelines, out)?;
        fs::rename(&part, path)
    });
    if result.is_err() {
        // What is left of it is of no use; that it can't be removed either changes nothing.
        let _ = fs::remove_file(&part);
    }
    result
}

fn write_to(format: TraceFormat, timelines: &[Timeline], out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    format.write(timelines, &mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disc with room for some bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Case 281.
    #[test]
    fn disc_that_is_full_is_an_error_in_every_format() {
        for format in [TraceFormat::Json, TraceFormat::Html, TraceFormat::Text] {
            for room in [0, 10] {
                let error = write_to(format, &[Timeline::default()], Full(room)).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{format:?}");
            }
        }
    }

    /// Case 281.
    #[test]
    fn file_that_can_not_be_written_leaves_no_part_behind() {
        let folder = std::env::temp_dir().join(format!("hcomm-trace-{}", std::process::id()));
        fs::create_dir_all(folder.join("taken.txt")).unwrap();
        let written = |name: &str| write_file(&TraceFile::new(&folder.join(name)).unwrap(), &[]);
        assert_eq!(written("taken.txt").unwrap_err().to_string(), "it is not a regular file");
        assert_eq!(written("none/t.txt").unwrap_err().kind(), io::ErrorKind::NotFound);
        written("t.txt").unwrap();
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["t.txt", "taken.txt"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
