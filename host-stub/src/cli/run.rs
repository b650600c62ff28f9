//! `run`: the interface document's example, one copy from userIn to cclBuf, checked byte by byte.

use std::io::{self, Write};

use serde::Serialize;

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
    /// Seed of the random input. Without it another one each time; it is printed.
    #[arg(long, value_name = "N", value_parser = number::u64)]
    seed: Option<u64>,
}

#[derive(Serialize)]
struct Answer {
    cpu: CpuArg,
    #[serde(serialize_with = "session::hex")]
    thread: u64,
    stream_id: u32,
    sq_id: u32,
    depth: u32,
    #[serde(serialize_with = "session::hex")]
    user_in: u64,
    #[serde(serialize_with = "session::hex")]
    ccl_buf: u64,
    ccl_buf_size: u64,
    #[serde(serialize_with = "session::hex")]
    seed: u64,
    len: u64,
    /// Tasks of the copy.
    tasks: u64,
    /// Tasks that keep the launch in step with its stream.
    control_tasks: u64,
    doorbells: u64,
    verified: bool,
}

pub fn run(args: &RunArgs, output: Output) -> Result<(), Failure> {
    let session = Session::open(&args.session, None)?;
    let (ccl_buf, ccl_buf_size, len) = (session.ccl_buf(), session.ccl_buf_size(), args.len);
    let host_len = usize::try_from(len).ok().filter(|_| len <= ccl_buf_size).ok_or_else(|| {
        Failure::Usage(format!("--len {len} is above the {ccl_buf_size} bytes of the ccl buffer (see HCCL_BUFFSIZE)"))
    })?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let mut input = vec![0; host_len];
    fastrand::Rng::with_seed(seed).fill(&mut input);

    let device = session.device();
    // An allocation has at least one byte.
    let user_in = device.malloc(len.max(1))?;
    device.copy_in(user_in.addr(), &input)?;
    // Every byte of the destination is wrong before the copy, so that a byte which is not copied shows.
    let mut copied: Vec<u8> = input.iter().map(|byte| !byte).collect();
    device.copy_in(ccl_buf, &copied)?;

    let stats = session.copy_to_ccl_buf(user_in.addr(), len)?;

    device.copy_out(ccl_buf, &mut copied)?;
    if let Some(at) = input.iter().zip(&copied).position(|(expected, found)| expected != found) {
        let (expected, found) = (input[at], copied[at]);
        let text = format!("byte {at} of ccl_buf is {found:#04x}, not {expected:#04x} (seed {seed:#x}, len {len})");
        return Err(Failure::Device(text));
    }
    let thread = session.thread();
    let info = session
        .comm()
        .thread_info(thread)
        .ok_or_else(|| Failure::Device(format!("thread {:#x} was freed while it was in use", thread.0)))?;
    let answer = Answer {
        cpu: args.session.cpu,
        thread: thread.0,
        stream_id: info.stream_id,
        sq_id: info.sq_id,
        depth: info.depth,
        user_in: user_in.addr().0,
        ccl_buf: ccl_buf.0,
        ccl_buf_size,
        seed,
        len,
        tasks: stats.tasks() - CONTROL_TASKS,
        control_tasks: CONTROL_TASKS,
        doorbells: stats.doorbells(),
        verified: true,
    };
    output.answer(&answer, |out| report(&answer, out))
}

fn report(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    let Answer { len, tasks, control_tasks, doorbells, .. } = answer;
    writeln!(out, "cpu        {}", answer.cpu.description())?;
    writeln!(out, "thread     {:#018x}", answer.thread)?;
    writeln!(out, "queue      stream {}, sq {}, depth {}", answer.stream_id, answer.sq_id, answer.depth)?;
    writeln!(out, "user_in    {:#x}", answer.user_in)?;
    writeln!(out, "ccl_buf    {:#x}, {} bytes", answer.ccl_buf, answer.ccl_buf_size)?;
    writeln!(out, "tasks      {tasks}")?;
    writeln!(out, "notifies   {control_tasks}: start and end")?;
    writeln!(out, "doorbells  {doorbells}")?;
    writeln!(out, "verified   {len} of {len} bytes equal, seed {:#x}", answer.seed)
}
