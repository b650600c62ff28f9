//! The scheduler, stepped by hand over a vector: no threads, no mapping.

mod edges;
mod halts;

use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hcomm_aicpu::spec::map::QUEUE_REGS_PHYS;
use hcomm_aicpu::spec::queue::SQ_REGS_STRIDE;
use hcomm_aicpu::spec::soc::Soc;

use super::alloc::{Allocator, Kind, PAGE};
use super::check::list::Checks;
use super::cpu::{Cpu, CpuFault, KernelEntry, KernelFn, Returned};
use super::deterministic::FreeRunning;
use super::error::{DeviceError, DoorbellError};
use super::event::{Feed, Origin};
use super::fault::FaultLog;
use super::inbox::{Command, Inbox};
use super::memory::{Memory, OutsideHbm};
use super::notify::Owner;
use super::queue::{QueueConfig, QueueTable, Registers};
use super::reduce::{BLOCK_LEN, Block, Reduce};
use super::scheduler::{Progress, Scheduler};
use super::shared::{DeviceCounters, FirstError, Shared};
use super::stream::{KernelLaunch, LaunchStats, Op, StreamShared, Waited, Waiting};

const BASE: u64 = 0x12c0_0000_0000;
const HBM: u64 = 1 << 18;
const QUEUES: u32 = 4;
const ORIGIN: Origin = Origin { launch: 1, core: 0 };

/// Memory of a test. A register is used with one width alone.
struct VecMemory {
    hbm: Mutex<Vec<u8>>,
    words64: Vec<AtomicU64>,
    words32: Vec<AtomicU32>,
}

impl VecMemory {
    fn range(&self, addr: u64, len: u64) -> Result<std::ops::Range<usize>, OutsideHbm> {
        let outside = OutsideHbm { addr, len };
        let start = addr.checked_sub(BASE).ok_or(outside)?;
        let end = start.checked_add(len).filter(|end| *end <= HBM).ok_or(outside)?;
        Ok(start as usize..end as usize)
    }

    fn write(&self, addr: u64, bytes: &[u8]) {
        self.write_hbm(addr, bytes).unwrap();
    }

    fn read(&self, addr: u64, len: u64) -> Vec<u8> {
        let range = self.range(addr, len).unwrap();
        self.hbm.lock().unwrap()[range].to_vec()
    }
}

impl Memory for VecMemory {
    fn load_sqe(&self, addr: u64) -> Result<[u8; 64], OutsideHbm> {
        let range = self.range(addr, 64)?;
        Ok(self.hbm.lock().unwrap()[range].try_into().unwrap())
    }

    fn copy(&self, dst: u64, src: u64, len: u64) -> Result<(), OutsideHbm> {
        let (dst, src) = (self.range(dst, len)?, self.range(src, len)?);
        self.hbm.lock().unwrap().copy_within(src, dst.start);
        Ok(())
    }

    fn reduce(&self, dst: u64, src: u64, len: u64, reduce: Reduce) -> Result<(), OutsideHbm> {
        let (dst, src, len) = (self.range(dst, len)?, self.range(src, len)?, len as usize);
        let mut hbm = self.hbm.lock().unwrap();
        let (mut left, mut right) = (Block([0; BLOCK_LEN]), Block([0; BLOCK_LEN]));
        left.0[..len].copy_from_slice(&hbm[dst.clone()]);
        right.0[..len].copy_from_slice(&hbm[src]);
        reduce.apply(&mut left, &right, len);
        hbm[dst].copy_from_slice(&left.0[..len]);
        Ok(())
    }

    fn contains(&self, addr: u64) -> bool {
        (BASE..BASE + HBM).contains(&addr)
    }

    fn copy_from(&self, dst: u64, from: &Self, src: u64, len: u64) -> Result<(), OutsideHbm> {
        self.write_hbm(dst, &from.read(src, len))
    }

    fn reduce_from(&self, dst: u64, from: &Self, src: u64, len: u64, reduce: Reduce) -> Result<(), OutsideHbm> {
        let (mut left, mut right, len) = (Block([0; BLOCK_LEN]), Block([0; BLOCK_LEN]), len as usize);
        left.0[..len].copy_from_slice(&self.read(dst, len as u64));
        right.0[..len].copy_from_slice(&from.read(src, len as u64));
        reduce.apply(&mut left, &right, len);
        self.write_hbm(dst, &left.0[..len])
    }

    fn write_value(&self, addr: u64, value: u32) -> Result<(), OutsideHbm> {
        let range = self.range(addr, 4)?;
        self.hbm.lock().unwrap()[range].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn write_hbm(&self, addr: u64, bytes: &[u8]) -> Result<(), OutsideHbm> {
        let range = self.range(addr, bytes.len() as u64)?;
        self.hbm.lock().unwrap()[range].copy_from_slice(bytes);
        Ok(())
    }

    fn read_hbm(&self, addr: u64, out: &mut [u8]) -> Result<(), OutsideHbm> {
        let range = self.range(addr, out.len() as u64)?;
        out.copy_from_slice(&self.hbm.lock().unwrap()[range]);
        Ok(())
    }

    fn publish_hbm_word(&self, addr: u64, value: u64) -> Result<(), OutsideHbm> {
        assert!(addr.is_multiple_of(8), "{addr:#x}");
        self.write_hbm(addr, &value.to_le_bytes())
    }

    fn word64(&self, phys: u64) -> &AtomicU64 {
        &self.words64[((phys - QUEUE_REGS_PHYS) / 8) as usize]
    }

    fn word32(&self, phys: u64) -> &AtomicU32 {
        &self.words32[((phys - QUEUE_REGS_PHYS) / 4) as usize]
    }
}

/// How the kernel of [`TestCpu`] ends, once a test sets it.
type End = Arc<Mutex<Option<Result<Returned, CpuFault>>>>;

/// Doorbell that the kernel of [`TestCpu`] rings as the last thing that it does: queue and tail.
type LateDoorbell = Arc<Mutex<Option<(u32, u32)>>>;

struct TestCpu {
    end: End,
    late: LateDoorbell,
    memory: Arc<VecMemory>,
    polled: bool,
}

impl Cpu for TestCpu {
    fn cores(&self) -> usize {
        1
    }

    fn start(&mut self, _core: usize, _launch: &KernelLaunch) -> Result<(), CpuFault> {
        Ok(())
    }

    fn poll(&mut self, _core: usize) -> Result<Option<Returned>, CpuFault> {
        let end = self.end.lock().unwrap().take();
        if let Some((sq_id, tail)) = end.as_ref().and_then(|_| self.late.lock().unwrap().take()) {
            Registers::of(&*self.memory, sq_id).ring(tail);
        }
        end.transpose()
    }

    fn is_polled(&self) -> bool {
        self.polled
    }

    fn abandon(&mut self, _core: usize) {}
}

extern "C-unwind" fn no_kernel(_args: *const std::ffi::c_void) -> u32 {
    unreachable!("the test's CPU runs nothing")
}

struct Rig {
    shared: Arc<Shared<VecMemory>>,
    scheduler: Scheduler<VecMemory>,
    end: End,
    late: LateDoorbell,
    stream: Arc<StreamShared>,
    ring: u64,
    depth: u32,
    src: u64,
    dst: u64,
    now: Duration,
}

impl Rig {
    /// A device with one queue (sq 1, stream 7), two buffers of a page, and one stream (number 9).
    fn new(depth: u32, polled: bool) -> Self {
        Self::of(Soc::Ascend950, depth, polled)
    }

    /// As [`new`](Self::new), of another SoC.
    fn of(soc: Soc, depth: u32, polled: bool) -> Self {
        let memory = Arc::new(VecMemory {
            hbm: Mutex::new(vec![0; HBM as usize]),
            words64: (0..u64::from(QUEUES) * SQ_REGS_STRIDE / 8).map(|_| AtomicU64::new(0)).collect(),
            words32: (0..u64::from(QUEUES) * SQ_REGS_STRIDE / 4).map(|_| AtomicU32::new(0)).collect(),
        });
        let mut alloc = Allocator::new(BASE, HBM);
        let ring = alloc.allocate(u64::from(depth) * 64, Kind::Ring).unwrap();
        let src = alloc.allocate(PAGE, Kind::User).unwrap();
        let dst = alloc.allocate(PAGE, Kind::User).unwrap();
        let shared = Arc::new(Shared {
            memory,
            soc,
            alloc: Mutex::new(alloc),
            inbox: Arc::new(Inbox::default()),
            queues: QueueTable::new(QUEUES),
            counters: DeviceCounters::default(),
            checks: Checks::DEFAULT,
            fault_log: FaultLog::default(),
            failed: FirstError::default(),
            events: Feed::off(),
            turn: Arc::new(FreeRunning::default()),
        });
        let (end, late) = (End::default(), LateDoorbell::default());
        let memory = Arc::clone(&shared.memory);
        let cpu = Box::new(TestCpu { end: Arc::clone(&end), late: Arc::clone(&late), memory, polled });
        let scheduler = Scheduler::new(Arc::clone(&shared), cpu, None);
        let stream = Arc::new(StreamShared::new(9));
        shared.inbox.send(Command::AddStream(Arc::clone(&stream)));
        shared.add_queue(QueueConfig { stream_id: 7, sq_id: 1, base: ring, depth }, 1, 0);
        Self { shared, scheduler, end, late, stream, ring, depth, src, dst, now: Duration::ZERO }
    }

    /// Puts a copy of byte `index` of the source to byte `index` of the destination into slot `index % depth`.
    fn put(&self, index: u32) {
        self.put_sqe(index % self.depth, copy_sqe(index, self.src + u64::from(index), self.dst + u64::from(index), 1));
    }

    fn put_sqe(&self, slot: u32, sqe: [u8; 64]) {
        self.shared.memory.write(self.ring + u64::from(slot) * 64, &sqe);
    }

    fn registers(&self) -> Registers<'_, VecMemory> {
        Registers::of(&self.shared.memory, 1)
    }

    /// Steps until nothing happens any more.
    fn settle(&mut self) -> Progress {
        loop {
            let progress = self.scheduler.step(self.now);
            if progress != Progress::Worked {
                return progress;
            }
        }
    }

    fn launch(&mut self) -> Arc<LaunchStats> {
        let stats = self.submit_launch(&self.stream, true);
        self.settle();
        stats
    }

    fn submit_launch(&self, stream: &StreamShared, drain: bool) -> Arc<LaunchStats> {
        let stats = Arc::new(LaunchStats::default());
        let launch = KernelLaunch {
            name: "test".into(),
            entry: KernelEntry::Native(no_kernel as KernelFn),
            args: 0,
            timeout: Duration::from_secs(5),
            expects_refusals: false,
            drain,
            number: 0,
            stats: Arc::clone(&stats),
        };
        stream.submit();
        self.shared.inbox.send(Command::Submit(stream.id(), Op::KernelLaunch(launch)));
        stats
    }

    /// What a host hears that synchronises with a stream.
    fn synchronize(&mut self, stream: &StreamShared) -> Waited {
        let waiting = self.begin_synchronize(stream);
        self.settle();
        waiting.wait(Duration::ZERO)
    }

    /// A host thread begins to synchronise with a stream, without a limit of its own.
    fn begin_synchronize<'s>(&self, stream: &'s StreamShared) -> Waiting<'s> {
        let waiting = stream.begin_wait(false);
        if waiting.needs_look() {
            self.shared.inbox.send(Command::Submit(stream.id(), Op::Synchronize));
        }
        waiting
    }

    fn kernel_returns(&self, code: u32) {
        *self.end.lock().unwrap() = Some(Ok(Returned { code, ..Returned::default() }));
    }

    fn failed(&self) -> String {
        self.shared.failed.get().expect("the device has failed").to_string()
    }
}

/// An SDMA copy, by the offsets of the hardware's table.
fn copy_sqe(task_id: u32, src: u64, dst: u64, len: u32) -> [u8; 64] {
    let mut sqe = [0; 64];
    sqe[0] = 11;
    sqe[4..8].copy_from_slice(&task_id.to_le_bytes());
    sqe[14] = 254;
    sqe[17] = 0x0f;
    sqe[32..40].copy_from_slice(&src.to_le_bytes());
    sqe[40..48].copy_from_slice(&dst.to_le_bytes());
    sqe[48..52].copy_from_slice(&len.to_le_bytes());
    sqe
}

#[test]
fn runs_only_what_was_rung() {
    let mut rig = Rig::new(8, false);
    rig.shared.memory.write(rig.src, &[1, 2, 3, 4]);
    (0..4).for_each(|index| rig.put(index));
    rig.shared.ring(1, 2, ORIGIN).unwrap();
    assert_eq!(rig.settle(), Progress::Idle);
    assert_eq!((rig.shared.memory.read(rig.dst, 4), rig.registers().head()), (vec![1, 2, 0, 0], 2));
}

#[test]
fn wraps_at_a_depth_that_is_no_power_of_two() {
    let mut rig = Rig::new(5, false);
    let bytes: Vec<u8> = (1..=23).collect();
    rig.shared.memory.write(rig.src, &bytes);
    for index in 0..23 {
        rig.put(index);
        rig.shared.ring(1, (index + 1) % 5, ORIGIN).unwrap();
        rig.settle();
    }
    assert_eq!((rig.shared.memory.read(rig.dst, 23), rig.registers().head()), (bytes, 3));
}

#[test]
fn tail_outside_the_ring_is_refused_and_fails_the_device() {
    let mut rig = Rig::new(8, false);
    assert_eq!(rig.shared.ring(1, 8, ORIGIN), Err(DoorbellError::BadTail { tail: 8, depth: 8 }));
    rig.settle();
    assert_eq!(rig.failed(), "stream 7, sq 1: doorbell with tail 8, but the ring has 8 entries");
    assert_eq!(rig.registers().head(), 0);
}

#[test]
fn stored_tail_outside_the_ring_fails_the_device() {
    let mut rig = Rig::new(8, true);
    rig.launch();
    rig.put(0);
    rig.registers().ring(9);
    rig.settle();
    assert_eq!(rig.failed(), "stream 7, sq 1: doorbell with tail 9, but the ring has 8 entries");
    assert_eq!(rig.shared.memory.read(rig.dst, 1), [0]);
}

#[test]
fn doorbell_of_a_free_queue_fails_the_device() {
    let mut rig = Rig::new(8, false);
    assert_eq!(rig.shared.ring(3, 1, ORIGIN), Err(DoorbellError::FreeQueue));
    rig.settle();
    assert_eq!(rig.failed(), "sq 3: doorbell on a free queue");
}

#[test]
fn wrong_doorbell_of_a_kernel_that_returns_ends_its_launch() {
    let mut rig = Rig::new(8, true);
    rig.launch();
    *rig.late.lock().unwrap() = Some((0, 1));
    rig.kernel_returns(0);
    rig.settle();
    assert_eq!(rig.failed(), "sq 0: doorbell on a free queue");
    assert_eq!(rig.stream.peek(), Waited::Done(rig.shared.failed.get()));
}

/// Case 105.
#[test]
fn doorbell_of_a_queue_above_all_that_were_acquired_is_seen() {
    let mut rig = Rig::new(8, true);
    rig.launch();
    *rig.late.lock().unwrap() = Some((QUEUES - 1, 1));
    rig.kernel_returns(0);
    rig.settle();
    assert_eq!(rig.failed(), format!("sq {}: doorbell on a free queue", QUEUES - 1));
    assert_eq!(rig.stream.peek(), Waited::Done(rig.shared.failed.get()));
}

#[test]
fn launch_answers_for_its_own_tasks_alone() {
    let mut rig = Rig::new(8, true);
    let (first, second) = (Arc::clone(&rig.stream), Arc::new(StreamShared::new(10)));
    rig.shared.inbox.send(Command::AddStream(Arc::clone(&second)));
    rig.put(0);
    // The second kernel starts in the step in which the first one returns, on the one core that there is.
    rig.submit_launch(&first, false);
    rig.submit_launch(&second, false);
    rig.settle();
    *rig.late.lock().unwrap() = Some((1, 1));
    rig.kernel_returns(0);
    rig.settle();
    rig.kernel_returns(0);
    rig.settle();
    assert_eq!(rig.synchronize(&second), Waited::Done(None));
    let Waited::Done(Some(DeviceError::UnorderedWork { stream_id: 9, tasks: 1, .. })) = rig.synchronize(&first) else {
        panic!("the work of the first launch is not reported");
    };
}

#[test]
fn launch_completes_when_the_kernel_has_returned_and_what_it_rang_is_empty() {
    for polled in [false, true] {
        let mut rig = Rig::new(512, polled);
        let stats = rig.launch();
        (0..400).for_each(|index| rig.put(index));
        match polled {
            true => rig.registers().ring(400),
            false => assert_eq!(rig.shared.ring(1, 400, ORIGIN), Ok(400)),
        }
        // Both become visible at once, and one turn of the queue is shorter than 400 tasks.
        rig.kernel_returns(0);
        rig.scheduler.step(rig.now);
        rig.scheduler.step(rig.now);
        assert!(rig.registers().head() < 400);
        assert_eq!(rig.stream.outstanding(), 1);
        rig.settle();
        assert_eq!((rig.registers().head(), rig.stream.outstanding()), (400, 0));
        assert_eq!((stats.tasks(), stats.doorbells()), (400, 1));
    }
}

#[test]
fn empty_queue_does_not_keep_a_running_kernel_complete() {
    let mut rig = Rig::new(8, false);
    rig.launch();
    rig.put(0);
    rig.shared.ring(1, 1, ORIGIN).unwrap();
    rig.settle();
    assert_eq!((rig.registers().head(), rig.stream.outstanding()), (1, 1));
    rig.kernel_returns(0);
    rig.settle();
    assert_eq!(rig.stream.outstanding(), 0);
}

#[test]
fn kernel_code_fails_the_launch_alone() {
    let mut rig = Rig::new(8, false);
    rig.launch();
    rig.kernel_returns(6);
    rig.settle();
    let error = DeviceError::KernelCode { stream_id: 9, kernel: "test".into(), code: 6, refused: Box::default() };
    assert_eq!(rig.stream.peek(), Waited::Done(Some(error)));
    assert_eq!(rig.shared.failed.get(), None);
    rig.launch();
    rig.kernel_returns(0);
    rig.settle();
    assert_eq!(rig.stream.peek(), Waited::Done(None));
}

#[test]
fn kernel_that_does_not_return_times_out() {
    let mut rig = Rig::new(8, false);
    rig.launch();
    rig.now = Duration::from_millis(4999);
    assert_eq!(rig.settle(), Progress::Waiting(Duration::from_millis(1)));
    rig.now = Duration::from_secs(5);
    rig.settle();
    assert_eq!(rig.failed(), "stream 9: kernel test has not returned within 5s");
    assert_eq!(rig.shared.failed.get().unwrap().runtime_code(), 507_017);
    assert_eq!(rig.stream.outstanding(), 0);
}

#[test]
fn faulty_task_stops_its_queue_and_the_first_error_stays() {
    let mut rig = Rig::new(8, false);
    rig.shared.memory.write(rig.src, &[1, 2, 3]);
    (0..3).for_each(|index| rig.put(index));
    let mut sqe = copy_sqe(0x0001_0005, rig.src + 1, rig.dst + 1, 1);
    sqe[9] = 0x80;
    rig.put_sqe(1, sqe);
    rig.shared.ring(1, 3, ORIGIN).unwrap();
    rig.settle();
    let first = "stream 7, sq 1, task 0x10005 in slot 1: reserved field res1 in byte 8 is 0x8000, not 0";
    assert_eq!(rig.failed(), first);
    assert_eq!((rig.shared.memory.read(rig.dst, 3), rig.registers().head()), (vec![1, 0, 0], 1));
    // Native kernels see the refusal; it is no second error.
    assert_eq!(rig.shared.ring(1, 4, ORIGIN), Err(DoorbellError::Refused));
    rig.settle();
    assert_eq!(rig.failed(), first);
    rig.launch();
    assert!(matches!(rig.stream.peek(), Waited::Done(Some(DeviceError::Task { .. }))));
}

#[test]
fn ranges_of_a_task_are_checked() {
    type Range = fn(&Rig) -> (u64, u64);
    let ranges: [(Range, &str); 4] = [
        (|rig| (rig.src + PAGE - 1, rig.dst), "src of 2 bytes"),
        (|rig| (rig.src, rig.dst + PAGE - 1), "dst of 2 bytes"),
        (|rig| (rig.src, rig.ring), "is in the ring of a queue, which only the device may touch"),
        (|rig| (0x7fff_0000_0000, rig.dst), "is not in hbm"),
    ];
    for (range, text) in ranges {
        let mut rig = Rig::new(8, false);
        let (src, dst) = range(&rig);
        rig.put_sqe(0, copy_sqe(1, src, dst, 2));
        rig.shared.ring(1, 1, ORIGIN).unwrap();
        rig.settle();
        assert!(rig.failed().contains(text), "{}", rig.failed());
        assert_eq!(rig.registers().head(), 0);
    }
}

#[test]
fn reduce_is_carried_out_or_refused_by_its_opcode() {
    let mut rig = Rig::new(8, false);
    rig.shared.memory.write(rig.src, &1.5f32.to_le_bytes());
    rig.shared.memory.write(rig.dst, &2.25f32.to_le_bytes());
    let sum = sqe_with_opcode(&rig, 0x71);
    let mut cut = sum;
    cut[48] = 6;
    rig.put_sqe(0, sum);
    rig.put_sqe(1, cut);
    rig.shared.ring(1, 2, ORIGIN).unwrap();
    rig.settle();
    assert_eq!(rig.shared.memory.read(rig.dst, 4), 3.75f32.to_le_bytes());
    let cut = "stream 7, sq 1, task 0x1 in slot 1: reduce of 6 bytes cuts an element of 4 bytes";
    assert_eq!(rig.failed(), cut);

    let mut rig = Rig::new(8, false);
    rig.put_sqe(0, sqe_with_opcode(&rig, 0x74));
    rig.shared.ring(1, 1, ORIGIN).unwrap();
    rig.settle();
    let text = "stream 7, sq 1, task 0x1 in slot 0: opcode 0x74 in byte 16 is no reduce that the engine computes";
    assert_eq!(rig.failed(), text);
}

fn sqe_with_opcode(rig: &Rig, opcode: u8) -> [u8; 64] {
    let mut sqe = copy_sqe(1, rig.src, rig.dst, 4);
    sqe[16] = opcode;
    sqe
}

#[test]
fn removed_queue_is_answered_and_forgets_what_was_rung() {
    let mut rig = Rig::new(8, false);
    let (reply, answer) = std::sync::mpsc::sync_channel(1);
    rig.put(0);
    rig.shared.inbox.send(Command::RemoveQueues(vec![1], reply));
    rig.shared.ring(1, 1, ORIGIN).unwrap();
    assert_eq!(rig.settle(), Progress::Idle);
    assert_eq!(answer.try_recv(), Ok(()));
    assert_eq!(rig.registers().head(), 0);
}

/// Case 210.
#[test]
fn queue_is_removed_when_no_kernel_that_may_know_it_runs() {
    let mut rig = Rig::new(8, false);
    rig.launch();
    rig.settle();
    let (reply, answer) = std::sync::mpsc::sync_channel(1);
    rig.shared.inbox.send(Command::RemoveQueues(vec![1], reply));
    rig.settle();
    assert_eq!(answer.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty));
    rig.kernel_returns(0);
    rig.settle();
    assert_eq!(answer.try_recv(), Ok(()));
}

#[test]
fn stop_ends_what_is_outstanding() {
    let mut rig = Rig::new(8, false);
    rig.launch();
    rig.shared.inbox.send(Command::Stop);
    assert_eq!(rig.settle(), Progress::Stopped);
    assert_eq!(rig.stream.peek(), Waited::Done(Some(DeviceError::Closed)));
}

/// A notify record or wait of the one-bit form, by the offsets of the hardware's table.
fn notify_sqe(task_id: u32, id: u32, wait_s: Option<u32>) -> [u8; 64] {
    let mut sqe = [0; 64];
    sqe[4..8].copy_from_slice(&task_id.to_le_bytes());
    sqe[8..12].copy_from_slice(&id.to_le_bytes());
    match wait_s {
        None => (sqe[0], sqe[14]) = (6, 254),
        Some(seconds) => {
            (sqe[0], sqe[11], sqe[12], sqe[14]) = (7, 0x80, 1, 255);
            sqe[24..28].copy_from_slice(&seconds.to_le_bytes());
        }
    }
    sqe
}

/// A rig whose queue waits for notify 5, which a second task would follow.
fn waiting_rig(timeout_s: u32) -> Rig {
    let mut rig = Rig::new(8, false);
    rig.shared.inbox.send(Command::AddNotifies(vec![(5, Owner::Thread { stream_id: 7, index: 0 })]));
    rig.put_sqe(0, notify_sqe(9, 5, Some(timeout_s)));
    rig.put(1);
    rig.shared.ring(1, 2, ORIGIN).unwrap();
    rig.settle();
    rig
}

/// Case 39.
#[test]
fn limit_of_a_wait_is_in_seconds() {
    let mut rig = waiting_rig(1);
    rig.now = Duration::from_millis(999);
    assert_eq!(rig.settle(), Progress::Waiting(Duration::from_millis(1)));
    rig.now = Duration::from_secs(1);
    rig.settle();
    let text =
        "stream 7, sq 1, task 0x9 in slot 0: notify 5 (index 0 of the thread of stream 7) was not recorded within 1 s";
    assert_eq!((rig.failed(), rig.shared.failed.get().unwrap().runtime_code()), (text.to_owned(), 507_048));
    assert_eq!(rig.registers().head(), 0);
}

/// Case 39.
#[test]
fn limit_0_means_no_limit() {
    let mut rig = waiting_rig(0);
    rig.now = Duration::from_secs(u64::MAX / 2);
    assert_eq!(rig.settle(), Progress::Idle);
    rig.shared.inbox.send(Command::AddQueue(QueueConfig { stream_id: 8, sq_id: 2, base: rig.ring + 256, depth: 4 }));
    rig.shared.queues.get(2).unwrap().depth.store(4, std::sync::atomic::Ordering::Relaxed);
    Registers::of(&*rig.shared.memory, 2).enable(1);
    rig.put_sqe(4, notify_sqe(1, 5, None));
    rig.shared.ring(2, 1, ORIGIN).unwrap();
    assert_eq!(rig.settle(), Progress::Idle);
    assert_eq!(rig.registers().head(), 2);
}

/// Case 39.
#[test]
fn longest_limit_does_not_wrap() {
    let mut rig = waiting_rig(u32::MAX);
    rig.now = Duration::from_secs(u64::from(u32::MAX)) - Duration::from_nanos(1);
    assert_eq!(rig.settle(), Progress::Waiting(Duration::from_nanos(1)));
    rig.now = Duration::from_secs(u64::from(u32::MAX));
    rig.settle();
    assert!(rig.failed().ends_with("was not recorded within 4294967295 s"), "{}", rig.failed());
}

#[test]
fn unsynchronised_wait_is_no_deadlock() {
    let mut rig = waiting_rig(0);
    rig.now = Duration::from_secs(100);
    assert_eq!(rig.settle(), Progress::Idle);
    rig.stream.submit();
    rig.stream.complete(None);
    // The stream itself has launched nothing, so it does not wait for the queue.
    let stream = Arc::clone(&rig.stream);
    assert_eq!((rig.synchronize(&stream), rig.shared.failed.get()), (Waited::Done(None), None));
}

#[test]
fn task_with_an_unallocated_notify_fails() {
    let mut rig = Rig::new(8, false);
    rig.put_sqe(0, notify_sqe(1, 0x1_ffff, None));
    rig.shared.ring(1, 1, ORIGIN).unwrap();
    rig.settle();
    let text = "stream 7, sq 1, task 0x1 in slot 0: notify 131071 belongs to no thread and to no host";
    assert_eq!(rig.failed(), text);
}

#[test]
fn value_is_written_to_memory_of_the_user_alone() {
    let write = |addr: u64| {
        let mut sqe = [0; 64];
        (sqe[0], sqe[14]) = (8, 254);
        sqe[16..24].copy_from_slice(&(addr | 0x8020_0000 << 32).to_le_bytes());
        sqe[32..36].copy_from_slice(&0x0102_0304u32.to_le_bytes());
        sqe
    };
    let mut rig = Rig::new(8, false);
    rig.put_sqe(0, write(rig.dst + 4));
    rig.put_sqe(1, write(rig.dst + PAGE - 3));
    rig.shared.ring(1, 2, ORIGIN).unwrap();
    rig.settle();
    assert_eq!(rig.shared.memory.read(rig.dst, 12), [0, 0, 0, 0, 4, 3, 2, 1, 0, 0, 0, 0]);
    assert!(rig.failed().contains("in slot 1: translation fault: dst of 4 bytes:"), "{}", rig.failed());
}

#[test]
fn notify_of_another_chip_fails_its_task() {
    let mut rig = Rig::of(Soc::Ascend910B, 8, false);
    let mut sqe = [0; 64];
    (sqe[0], sqe[6], sqe[14], sqe[28], sqe[32]) = (8, 44, 254, 3, 1);
    // Its address would be good if it were a virtual one.
    sqe[16..24].copy_from_slice(&(rig.dst | 0x0020_0000 << 32).to_le_bytes());
    rig.put_sqe(0, sqe);
    rig.shared.ring(1, 1, ORIGIN).unwrap();
    rig.settle();
    let addr = rig.dst;
    let text = format!(
        "stream 7, sq 1, task 0x2c in slot 0: notify at physical address {addr:#x} is another chip's, and a simulated \
         device has one"
    );
    assert_eq!(rig.failed(), text);
}
