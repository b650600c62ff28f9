//! `run`: the interface document's example, one copy from userIn to cclBuf, checked byte by byte.

use std::io::{self, Write};

use hcomm_aicpu::spec::DeviceAddr;
use host_stub::Error;
use serde::Serialize;

use super::digest;
use super::failure::Failure;
use super::number;
use super::output::Output;
use super::session::{self, CONTROL_TASKS, CpuArg, Session};

#[derive(Debug, clap::Args)]
#[command(after_long_help = session::FAULT_HELP)]
pub struct RunArgs {
    #[command(flatten)]
    session: session::SessionArgs,
    /// Bytes to copy.
    #[arg(long, value_name = "BYTES", default_value = "256", value_parser = number::u64)]
    len: u64,
    /// Seed of the random input. By default a new one for each run; it is printed.
    #[arg(long, value_name = "N", value_parser = number::u64)]
    seed: Option<u64>,
}

#[derive(Serialize)]
struct Answer {
    /// The device, unless it is the simulated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    cpu: CpuArg,
    #[serde(serialize_with = "session::hex")]
    thread: u64,
    stream_id: u32,
    sq_id: u32,
    /// 0 on a card: only its AI CPU knows.
    depth: u32,
    #[serde(serialize_with = "session::hex")]
    user_in: u64,
    #[serde(serialize_with = "session::hex")]
    ccl_buf: u64,
    ccl_buf_size: u64,
    #[serde(serialize_with = "session::hex")]
    seed: u64,
    len: u64,
    /// Tasks of the copy; none on a card, which does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<u64>,
    /// Tasks of the control pair, which order the launch with its stream.
    control_tasks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    doorbells: Option<u64>,
    #[serde(flatten)]
    model_time: Option<session::ModelTime>,
    verified: bool,
}

pub fn run(args: &RunArgs, output: Output) -> Result<(), Failure> {
    let session = Session::open(&args.session, None)?;
    let (ccl_buf, ccl_buf_size, len) = (session.ccl_buf(), session.ccl_buf_size(), args.len);
    if len > ccl_buf_size {
        let text = format!("--len {len} is above the {ccl_buf_size} bytes of the ccl buffer (see HCCL_BUFFSIZE)");
        return Err(Failure::Usage(text));
    }
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let device = session.device();
    // An allocation has at least one byte.
    let user_in = device.malloc(len.max(1)).map_err(|error| match error {
        Error::Alloc(_) => Failure::Usage(format!("--len {len}: {error}")),
        error => error.into(),
    })?;
    let mut pieces = Pieces::new(seed, len)?;
    while let Some((at, piece)) = pieces.next() {
        device.copy_in(user_in.at(at), piece)?;
        // Every byte of the destination is wrong before the copy, so that a byte that is not copied is found.
        piece.iter_mut().for_each(|byte| *byte = !*byte);
        device.copy_in(DeviceAddr(ccl_buf.0 + at), piece)?;
    }

    let started = session.device().now();
    let stats = session.copy_to_ccl_buf(user_in.addr(), len)?;
    let model_time = session.model_time(session.device().now().saturating_sub(started));

    let mut pieces = Pieces::new(seed, len)?;
    let mut copied = digest::piece()?;
    while let Some((start, input)) = pieces.next() {
        let copied = &mut copied[..input.len()];
        device.copy_out(DeviceAddr(ccl_buf.0 + start), copied)?;
        if let Some(at) = input.iter().zip(&*copied).position(|(expected, found)| expected != found) {
            let (expected, found, at) = (input[at], copied[at], start + at as u64);
            let text = format!("byte {at} of ccl_buf is {found:#04x}, not {expected:#04x} (seed {seed:#x}, len {len})");
            return Err(Failure::Device(text));
        }
    }
    let thread = session.thread();
    let info = session
        .comm()
        .thread_info(thread)
        .ok_or_else(|| Failure::Device(format!("thread {:#x} was freed while it was in use", thread.0)))?;
    let card = session.card_name();
    let counted = |count: u64| card.is_none().then_some(count);
    let answer = Answer {
        tasks: counted(stats.tasks().saturating_sub(CONTROL_TASKS)),
        doorbells: counted(stats.doorbells()),
        device: card,
        cpu: session.cpu(),
        thread: thread.0,
        stream_id: info.stream_id,
        sq_id: info.sq_id,
        depth: info.depth,
        user_in: user_in.addr().0,
        ccl_buf: ccl_buf.0,
        ccl_buf_size,
        seed,
        len,
        control_tasks: CONTROL_TASKS,
        model_time,
        verified: true,
    };
    output.answer(&answer, |out| report(&answer, out))
}

/// The random input in pieces, so that the host's memory does not depend on the length.
struct Pieces {
    random: fastrand::Rng,
    piece: Vec<u8>,
    done: u64,
    len: u64,
}

impl Pieces {
    fn new(seed: u64, len: u64) -> Result<Self, Failure> {
        Ok(Self { random: fastrand::Rng::with_seed(seed), piece: digest::piece()?, done: 0, len })
    }

    /// Offset of the next piece, and its bytes.
    fn next(&mut self) -> Option<(u64, &mut [u8])> {
        let at = self.done;
        let len = (self.len - at).min(self.piece.len() as u64);
        let piece = &mut self.piece[..len as usize];
        self.random.fill(piece);
        self.done += len;
        (len != 0).then_some((at, piece))
    }
}

fn report(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    let Answer { len, tasks, control_tasks, doorbells, .. } = answer;
    if let Some(device) = &answer.device {
        writeln!(out, "device     {device}")?;
    }
    writeln!(out, "cpu        {}", answer.cpu.description())?;
    writeln!(out, "thread     {:#018x}", answer.thread)?;
    match answer.depth {
        0 => writeln!(out, "queue      stream {}, sq {}", answer.stream_id, answer.sq_id)?,
        depth => writeln!(out, "queue      stream {}, sq {}, depth {depth}", answer.stream_id, answer.sq_id)?,
    }
    writeln!(out, "user_in    {:#x}", answer.user_in)?;
    writeln!(out, "ccl_buf    {:#x}, {} bytes", answer.ccl_buf, answer.ccl_buf_size)?;
    if let Some(tasks) = tasks {
        writeln!(out, "tasks      {tasks}")?;
    }
    writeln!(out, "notifies   {control_tasks}: start and end")?;
    if let Some(doorbells) = doorbells {
        writeln!(out, "doorbells  {doorbells}")?;
    }
    if let Some(time) = &answer.model_time {
        writeln!(out, "model time {time}")?;
    }
    match len {
        0 => writeln!(out, "verified   nothing: --len 0 copies no bytes"),
        len => writeln!(out, "verified   {len} of {len} bytes equal, seed {:#x}", answer.seed),
    }
}
