//! Bugs between ranks, each planted once and once put right: the checks name the one at its first run, and nothing about the
//! other.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::channel::ChannelHandle;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_aicpu::{Channel, Thread, Transfer, TransferKind};
use hcomm_kernel::kernel;
use hcomm_testkit::DEADLOCK_LIMIT;
use host_stub::{
    ChannelConfig, Check, Checks, Cluster, CommOptions, DeviceBuffer, DeviceOptions, LaunchOptions, Stream,
    ThreadConfig,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Threads of each rank.
const THREADS: u32 = 2;
/// Notifies of each thread and of each channel.
const NOTIFIES: u32 = 4;
/// Bytes of each cclBuf and user buffer.
const LEN: u64 = 4096;

/// One call of a rank's kernel.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Op {
    code: u64,
    thread: u64,
    /// Channel, or the other thread.
    to: u64,
    dst: DeviceAddr,
    src: DeviceAddr,
    /// Bytes, or the number of elements.
    len: u64,
    notify: u64,
}

const COPY: u64 = 0;
const WRITE: u64 = 1;
const WRITE_NOTIFY: u64 = 2;
const READ: u64 = 3;
const REDUCE: u64 = 4;
const RECORD: u64 = 5;
const WAIT: u64 = 6;
const THREAD_RECORD: u64 = 7;
const THREAD_WAIT: u64 = 8;
/// The next `len` calls, all over one channel on one thread, are one batch.
const BATCH: u64 = 9;
/// Most calls of a batch.
const BATCH_MAX: usize = 4;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ProgramParams {
    header: ParamsHeader,
    list: DeviceAddr,
    count: u64,
}

impl KernelParams for ProgramParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"PROG");
    const VERSION: u32 = 1;
}

impl Op {
    fn transfer(&self) -> Transfer {
        let Self { dst, src, len, notify, .. } = *self;
        let (kind, index) = (TransferKind::Write, notify as u32);
        match self.code {
            WRITE => Transfer::Copy { kind, dst, src, len, notify: None },
            WRITE_NOTIFY => Transfer::Copy { kind, dst, src, len, notify: Some(index) },
            READ => Transfer::Copy { kind: TransferKind::Read, dst, src, len, notify: None },
            REDUCE => {
                let (data_type, op) = (DataType::FP32, ReduceOp::SUM);
                Transfer::Reduce { kind, dst, src, count: len, data_type, op, notify: None }
            }
            _ => Transfer::Record { notify: index },
        }
    }

    fn run(&self) -> Result<(), hcomm_aicpu::Error> {
        let thread = Thread::from_handle(ThreadHandle(self.thread))?;
        let channel = || Channel::from_handle(ChannelHandle(self.to));
        let notify = self.notify as u32;
        match self.code {
            COPY => thread.local_copy(self.dst, self.src, self.len),
            WAIT => channel()?.notify_wait(&thread, notify, 60),
            THREAD_RECORD => thread.notify_record(Thread::from_handle(ThreadHandle(self.to))?.peer(), notify),
            THREAD_WAIT => thread.notify_wait(notify, 60),
            RECORD => channel()?.notify_record(&thread, notify),
            WRITE => channel()?.write(&thread, self.dst, self.src, self.len),
            READ => channel()?.read(&thread, self.dst, self.src, self.len),
            _ => channel()?.batch(&thread, &[self.transfer()]),
        }
    }
}

kernel! {
    /// Makes the calls of a list.
    fn rank_program(params: &ProgramParams) -> Result<(), hcomm_aicpu::Error> {
        let list = std::ptr::with_exposed_provenance::<Op>(params.list.0 as usize);
        // SAFETY: the test hands `count` entries over and keeps them until the launch has ended.
        let list = unsafe { std::slice::from_raw_parts(list, params.count as usize) };
        let mut next = 0;
        while let Some(op) = list.get(next) {
            next += 1;
            if op.code != BATCH {
                op.run()?;
                continue;
            }
            let ops = &list[next..next + op.len as usize];
            let mut transfers = [Transfer::Record { notify: 0 }; BATCH_MAX];
            transfers.iter_mut().zip(ops).for_each(|(transfer, op)| *transfer = op.transfer());
            let (thread, channel) = (ThreadHandle(ops[0].thread), ChannelHandle(ops[0].to));
            Channel::from_handle(channel)?.batch(&Thread::from_handle(thread)?, &transfers[..ops.len()])?;
            next += ops.len();
        }
        Ok(())
    }
}

/// Three ranks with two threads each, and two channels between each two.
struct Ground {
    cluster: Cluster,
    first: Vec<Vec<u64>>,
    threads: Vec<Vec<ThreadHandle>>,
    /// Two of each rank.
    users: Vec<[DeviceBuffer; 2]>,
}

/// What the ranks do.
type Programs = [Vec<Op>; 3];

const RANKS: usize = 3;

impl Ground {
    fn new(checks: Checks) -> Self {
        let options = DeviceOptions {
            hbm_size: 64 << 20,
            checks: Some(checks),
            deadlock_limit: Some(DEADLOCK_LIMIT),
            ..DeviceOptions::native()
        };
        let mut cluster = Cluster::with_options(RANKS, &options, CommOptions { ccl_buffer: Some(LEN) }).unwrap();
        let config = ChannelConfig::new(NOTIFIES);
        cluster.connect(&config).unwrap();
        let channels = |cluster: &Cluster, rank| {
            let to = |peer| cluster.channel(rank, peer).map_or(0, |channel| channel.0);
            (0..RANKS).map(to).collect::<Vec<_>>()
        };
        let first = (0..RANKS).map(|rank| channels(&cluster, rank)).collect();
        cluster.connect(&config).unwrap();
        let config = ThreadConfig { engine: Engine::AICPU_TS, ..ThreadConfig::new(THREADS) }.notifies(NOTIFIES);
        let threads = (0..RANKS).map(|rank| cluster.comm(rank).acquire_threads_with(&config).unwrap()).collect();
        let users = (0..RANKS).map(|rank| {
            [0, 1].map(|index| {
                let (device, bytes) = (cluster.device(rank), [rank as u8 * 16 + index; LEN as usize]);
                let buffer = device.malloc(LEN).unwrap();
                device.copy_in(buffer.addr(), &bytes).unwrap();
                buffer
            })
        });
        Self { first, threads, users: users.collect(), cluster }
    }

    /// Offset `offset` of the cclBuf of a rank.
    fn ccl(&self, rank: usize, offset: u64) -> DeviceAddr {
        DeviceAddr(self.cluster.comm(rank).hccl_buffer().unwrap().0.0 + offset)
    }

    fn user(&self, rank: usize, index: usize) -> DeviceAddr {
        self.users[rank][index].addr()
    }

    fn thread(&self, (rank, thread): (usize, usize)) -> u64 {
        self.threads[rank][thread].0
    }

    /// A call on a thread of a rank, over its first channel to `peer`.
    fn over(&self, on: (usize, usize), peer: usize, code: u64) -> Op {
        let (dst, src) = (DeviceAddr(0), DeviceAddr(0));
        Op { code, thread: self.thread(on), to: self.first[on.0][peer], dst, src, len: 0, notify: 0 }
    }

    /// 64 bytes of user buffer 0 to offset `offset` of the peer's cclBuf.
    fn write(&self, on: (usize, usize), peer: usize, offset: u64) -> Op {
        Op { dst: self.ccl(peer, offset), src: self.user(on.0, 0), len: 64, ..self.over(on, peer, WRITE) }
    }

    fn write_notify(&self, on: (usize, usize), peer: usize, offset: u64, notify: u64) -> Op {
        Op { code: WRITE_NOTIFY, notify, ..self.write(on, peer, offset) }
    }

    /// A sum of 16 elements.
    fn reduce(&self, on: (usize, usize), peer: usize, offset: u64) -> Op {
        Op { code: REDUCE, len: 16, ..self.write(on, peer, offset) }
    }

    /// 64 bytes of the peer's cclBuf to user buffer 1.
    fn read(&self, on: (usize, usize), peer: usize) -> Op {
        Op { dst: self.user(on.0, 1), src: self.ccl(peer, 0), len: 64, ..self.over(on, peer, READ) }
    }

    fn record(&self, on: (usize, usize), peer: usize, notify: u64) -> Op {
        Op { notify, ..self.over(on, peer, RECORD) }
    }

    fn wait(&self, on: (usize, usize), peer: usize, notify: u64) -> Op {
        Op { notify, ..self.over(on, peer, WAIT) }
    }

    /// The same over the second channel to that peer.
    fn second(&self, op: Op, rank: usize, peer: usize) -> Op {
        Op { to: self.cluster.channel(rank, peer).unwrap().0, ..op }
    }

    /// 64 bytes of the own cclBuf to user buffer 1.
    fn copy_out(&self, on: (usize, usize)) -> Op {
        let (dst, src) = (self.user(on.0, 1), self.ccl(on.0, 0));
        Op { dst, src, len: 64, ..self.over(on, on.0, COPY) }
    }

    /// 64 bytes of user buffer 0 to the own cclBuf.
    fn copy_in(&self, on: (usize, usize)) -> Op {
        let (dst, src) = (self.ccl(on.0, 0), self.user(on.0, 0));
        Op { dst, src, len: 64, ..self.over(on, on.0, COPY) }
    }

    /// Thread `from` of a rank records notify 0 of thread `to`, which waits for it.
    fn thread_notify(&self, rank: usize, from: usize, to: usize) -> [Op; 2] {
        let record = Op { code: THREAD_RECORD, to: self.thread((rank, to)), ..self.over((rank, from), rank, 0) };
        [record, Op { code: THREAD_WAIT, ..self.over((rank, to), rank, 0) }]
    }

    fn batch(&self, ops: Vec<Op>) -> Vec<Op> {
        let begin = Op { code: BATCH, len: ops.len() as u64, ..ops[0] };
        std::iter::once(begin).chain(ops).collect()
    }

    /// Runs the programs at the same time. Gives all that is reported.
    fn run(self, programs: Programs) -> Vec<String> {
        let mut running = Vec::new();
        for (rank, list) in programs.into_iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let device = self.cluster.device(rank);
            let buffer = device.malloc(size_of_val(&list[..]) as u64).unwrap();
            device.copy_in(buffer.addr(), list.as_bytes()).unwrap();
            let stream = Stream::new(device);
            let params = ProgramParams { header: ProgramParams::HEADER, list: buffer.addr(), count: list.len() as u64 };
            let options = LaunchOptions { drain: true, ..LaunchOptions::default() };
            let kernel = device.load_kernel("rank_program").unwrap();
            stream.launch_bytes_with(&kernel, params.as_bytes(), options).unwrap();
            running.push((rank, stream, buffer));
        }
        let mut reports = Vec::new();
        for (rank, stream, _) in &running {
            // A device that has failed says so each time.
            while let Err(error) = stream.synchronize() {
                let is_known = reports.contains(&error.to_string());
                reports.push(error.to_string());
                if is_known {
                    break;
                }
            }
            while let Err(error) = self.cluster.device(*rank).check_findings() {
                reports.push(error.to_string());
            }
        }
        reports
    }
}

/// A bug: who does what, what a report says of it, and how it is put right.
struct Bug {
    name: &'static str,
    planted: fn(&Ground) -> Programs,
    /// All in one report.
    texts: &'static [&'static str],
    fixed: fn(&Ground) -> Programs,
}

#[path = "channel_races/table.rs"]
mod table;
use table::BUGS;

/// Case 305. Bugs between ranks are reported at their first run, and their fixed versions are not.
#[test]
fn bugs_between_ranks_are_named_and_their_fixed_versions_are_clean() {
    assert!(BUGS.len() >= 15);
    for Bug { name, planted, texts, fixed } in BUGS {
        let checks = || Checks::NONE.with(Check::Race).with(Check::Init);
        let ground = Ground::new(checks());
        let programs = planted(&ground);
        let reports = ground.run(programs);
        let is_it = |report: &String| texts.iter().all(|text| report.contains(text));
        assert!(reports.iter().any(is_it), "{name}: no report has all of {texts:?}: {reports:#?}");
        let ground = Ground::new(checks());
        let programs = fixed(&ground);
        assert_eq!(ground.run(programs), Vec::<String>::new(), "{name}, fixed");
    }
}
