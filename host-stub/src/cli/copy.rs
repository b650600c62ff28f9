//! `copy`: a file goes through the device, userIn to cclBuf to userOut, and both ends are compared.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host_stub::{DeviceBuffer, Error};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::digest;
use super::failure::Failure;
use super::number;
use super::output::Output;
use super::replace::{self, Replacement};
use super::session::{self, CpuArg, Session};

/// Most bytes of the file that are in device memory at a time, on each side.
const ROUND: u64 = 256 << 20;

#[derive(Debug, clap::Args)]
#[command(after_long_help = session::FAULT_HELP)]
pub struct CopyArgs {
    /// File to read.
    input: PathBuf,
    /// File to write. An existing one is replaced when the copy is complete.
    output: PathBuf,
    #[command(flatten)]
    session: session::SessionArgs,
    /// Bytes of the communicator's buffer. Without it twice HCCL_BUFFSIZE MiB, which is 200 if it is not set.
    #[arg(long, value_name = "BYTES", value_parser = number::positive)]
    ccl_buffer: Option<u64>,
}

#[derive(Serialize)]
struct Answer {
    /// The device, unless it is the simulated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    cpu: CpuArg,
    input: String,
    output: String,
    bytes: u64,
    ccl_buf_size: u64,
    launches: u64,
    /// None on a card, which does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doorbells: Option<u64>,
    /// Time from the launches to their completion.
    device_seconds: f64,
    gb_per_s: f64,
    /// Sum over the launches.
    #[serde(flatten)]
    model_time: Option<session::ModelTime>,
    sha256_in: String,
    sha256_out: String,
    verified: bool,
}

/// What has gone through the device.
#[derive(Default)]
struct Totals {
    bytes: u64,
    launches: u64,
    tasks: u64,
    doorbells: u64,
    device_time: Duration,
    /// By the clock of the device, which may be that of a cost model.
    own_time: Duration,
}

pub fn run(args: &CopyArgs, output: Output) -> Result<(), Failure> {
    let mut input = Input::open(&args.input)?;
    refuse_output(&input, args)?;
    let session = Session::open(&args.session, args.ccl_buffer)?;
    let mut out = Replacement::new(&args.output).map_err(|error| in_usage(&args.output, &error))?;

    // An allocation has at least one byte.
    let size = input.len.clamp(1, ROUND);
    let allocate = || session.device().malloc(size);
    let (user_in, user_out) =
        allocate().and_then(|user_in| Ok((user_in, allocate()?))).map_err(|error| match error {
            // The files are copied in rounds, so only the size of the communicator's buffer can be too large.
            Error::Alloc(_) => Failure::Usage(format!("{}: {error}", session::ccl_buffer_source(args.ccl_buffer))),
            error => error.into(),
        })?;
    let progress = progress_bar(input.len, args.session.verbose);
    let mut totals = Totals::default();
    let mut hasher = Sha256::new();
    let mut piece = digest::piece()?;
    loop {
        let len = fill(&session, &user_in, &mut input.file, &mut hasher, &mut piece)
            .map_err(|error| error.at(&args.input))?;
        // An empty file needs one launch, too.
        if len == 0 && totals.launches > 0 {
            break;
        }
        let (started, own_start) = (Instant::now(), session.device().now());
        let stats = session.copy_through_ccl_buf(user_in.addr(), user_out.addr(), len)?;
        totals.device_time += started.elapsed();
        totals.own_time += session.device().now().saturating_sub(own_start);
        totals.bytes += len;
        totals.launches += 1;
        totals.tasks += stats.tasks();
        totals.doorbells += stats.doorbells();
        drain(&session, &user_out, len, &mut out, &mut piece, &progress).map_err(|error| error.at(&args.output))?;
        if len < user_in.len() {
            break;
        }
    }
    progress.finish_and_clear();
    input.check_unchanged(&args.input, totals.bytes)?;

    let at_output = |error| Moving::File(error).at(&args.output);
    let sha256_out = digest::of_file(out.file(), &mut piece).map_err(at_output)?;
    let answer = answer(args, &session, &totals, digest::hex(hasher), sha256_out)?;
    out.commit().map_err(at_output)?;
    output.answer(&answer, |out| report(&answer, out))
}

/// A failure during the copy: of the device, or of a file that the caller names.
enum Moving {
    Device(Failure),
    File(io::Error),
}

impl Moving {
    fn at(self, path: &Path) -> Failure {
        match self {
            Self::Device(failure) => failure,
            Self::File(error) => Failure::Device(format!("{}: {error}", path.display())),
        }
    }
}

impl From<io::Error> for Moving {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<host_stub::Error> for Moving {
    fn from(error: host_stub::Error) -> Self {
        Self::Device(error.into())
    }
}

fn in_usage(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("{}: {error}", path.display()))
}

/// The input file, and its size and times when the copy began.
struct Input {
    file: File,
    metadata: Metadata,
    len: u64,
}

impl Input {
    fn open(path: &Path) -> Result<Self, Failure> {
        let file = host_stub::file::open_regular(path).map_err(|error| in_usage(path, &error))?;
        let metadata = file.metadata().map_err(|error| in_usage(path, &error))?;
        let len = metadata.len();
        Ok(Self { file, metadata, len })
    }

    /// # Errors
    /// The size is not `copied` bytes, or the file was written since it was opened, so old and new bytes may be mixed.
    fn check_unchanged(&self, path: &Path, copied: u64) -> Result<(), Failure> {
        let now = self.file.metadata().map_err(|error| Moving::File(error).at(path))?;
        let times = |metadata: &Metadata| (metadata.mtime(), metadata.mtime_nsec());
        let (before, path) = (self.len, path.display());
        if now.len() != before || copied != before {
            let now = now.len();
            let text =
                format!("{path} has changed while it was copied: {before} bytes, {copied} read, {now} bytes now");
            return Err(Failure::Device(text));
        }
        if times(&now) != times(&self.metadata) {
            return Err(Failure::Device(format!("{path} has changed while it was copied: it was written")));
        }
        Ok(())
    }
}

/// The output is new, or replaces a regular file that is neither the input nor standard output or error output.
fn refuse_output(input: &Input, args: &CopyArgs) -> Result<(), Failure> {
    let (source, target) = (args.input.display(), args.output.display());
    let existing = std::fs::metadata(&args.output).ok();
    if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
        return Err(Failure::Usage(format!("{target}: not a regular file")));
    }
    if existing.as_ref().is_some_and(|existing| replace::is_same(existing, &input.metadata)) {
        return Err(Failure::Usage(format!("{source} and {target} are the same file")));
    }
    for (name, stream) in [("output", io::stdout().as_fd()), ("error output", io::stderr().as_fd())] {
        // A closed stream is not a file.
        let Some(stream) = stream.try_clone_to_owned().ok().and_then(|file| File::from(file).metadata().ok()) else {
            continue;
        };
        for (path, file) in [(&args.output, existing.as_ref()), (&args.input, Some(&input.metadata))] {
            if file.is_some_and(|file| replace::is_same(file, &stream)) {
                let path = path.display();
                return Err(Failure::Usage(format!(
                    "{path} is the standard {name}, to which this command prints its result"
                )));
            }
        }
    }
    Ok(())
}

/// Progress bar: shown on a terminal, hidden elsewhere and with `--verbose`, whose log lines would break it.
fn progress_bar(len: u64, has_log: bool) -> ProgressBar {
    if has_log {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec}");
    ProgressBar::new(len).with_style(style.expect("the template is valid"))
}

/// Reads the next bytes of the file into `user_in`, up to its size; returns how many there were.
fn fill(
    session: &Session,
    user_in: &DeviceBuffer,
    input: &mut File,
    hasher: &mut Sha256,
    piece: &mut [u8],
) -> Result<u64, Moving> {
    let mut filled = 0;
    while filled < user_in.len() {
        let room = (user_in.len() - filled).min(piece.len() as u64) as usize;
        let len = input.read(&mut piece[..room])?;
        if len == 0 {
            break;
        }
        hasher.update(&piece[..len]);
        session.device().copy_in(user_in.at(filled), &piece[..len])?;
        filled += len as u64;
    }
    Ok(filled)
}

/// Writes the first `len` bytes of `user_out` to the file.
fn drain(
    session: &Session,
    user_out: &DeviceBuffer,
    len: u64,
    out: &mut Replacement,
    piece: &mut [u8],
    progress: &ProgressBar,
) -> Result<(), Moving> {
    let mut written = 0;
    while written < len {
        let part = (len - written).min(piece.len() as u64) as usize;
        session.device().copy_out(user_out.at(written), &mut piece[..part])?;
        out.write_all(&piece[..part])?;
        written += part as u64;
        progress.inc(part as u64);
    }
    Ok(())
}

/// Compares both files' digests, the output's from what the file holds now.
fn answer(
    args: &CopyArgs,
    session: &Session,
    totals: &Totals,
    sha256_in: String,
    sha256_out: String,
) -> Result<Answer, Failure> {
    if sha256_in != sha256_out {
        let (input, output) = (args.input.display(), args.output.display());
        let text = format!("{output} has SHA-256 {sha256_out}, but {input} has {sha256_in}");
        return Err(Failure::Device(text));
    }
    let device_seconds = totals.device_time.as_secs_f64();
    let card = session.card_name();
    let counted = |count: u64| card.is_none().then_some(count);
    Ok(Answer {
        tasks: counted(totals.tasks),
        doorbells: counted(totals.doorbells),
        device: card,
        cpu: session.cpu(),
        input: args.input.display().to_string(),
        output: args.output.display().to_string(),
        bytes: totals.bytes,
        ccl_buf_size: session.ccl_buf_size(),
        launches: totals.launches,
        device_seconds,
        gb_per_s: totals.bytes as f64 / device_seconds / 1e9,
        model_time: session.model_time(totals.own_time),
        sha256_in,
        sha256_out,
        verified: true,
    })
}

fn report(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    if let Some(device) = &answer.device {
        writeln!(out, "device      {device}")?;
    }
    writeln!(out, "cpu         {}", answer.cpu.description())?;
    writeln!(out, "copied      {} bytes, {} -> {}", answer.bytes, answer.input, answer.output)?;
    writeln!(out, "ccl_buf     {} bytes", answer.ccl_buf_size)?;
    writeln!(out, "launches    {}", answer.launches)?;
    if let (Some(tasks), Some(doorbells)) = (answer.tasks, answer.doorbells) {
        writeln!(out, "tasks       {tasks}")?;
        writeln!(out, "doorbells   {doorbells}")?;
    }
    writeln!(out, "speed       {:.3} GB/s, launch to completion, {:.6} s", answer.gb_per_s, answer.device_seconds)?;
    if let Some(time) = &answer.model_time {
        writeln!(out, "model time  {time}")?;
    }
    writeln!(out, "sha256 in   {}", answer.sha256_in)?;
    writeln!(out, "sha256 out  {}", answer.sha256_out)?;
    writeln!(out, "verified    equal")
}
