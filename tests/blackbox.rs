//! What every device does alike, the simulated one and a card: copies, reductions, notifies, batches, faults, timeouts, resets, two
//! kernels at a time. `make test-blackbox DEVICE=.. CPU=..` chooses the device; without it, it is the simulated one with the native CPU.
//! Not yet run on hardware.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::card::{CardEnd, CardState};
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::{Call, CallListParams, CopyListParams, ListedCopy};
use hcomm_testkit::calls::{call, copy, record, reduce, wait};
use hcomm_testkit::{LIMIT, Rig, pattern, test_options};
use host_stub::{CardError, ControlPair, DeviceBuffer, DeviceKind, Error, LaunchStats, Notify, Stream};
use zerocopy::IntoBytes;

/// Limit of a kernel's work, in seconds: only a device that does not work comes to it.
const END_S: u32 = LIMIT.as_secs() as u32;

/// The stand-in of a card is one device for the whole process: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// A device, threads, and the pair of notifies that orders their work with the stream.
struct Bench {
    rig: Rig,
    threads: Vec<ThreadHandle>,
    /// Notify of the first thread that starts a kernel's work.
    start: u32,
    pair: ControlPair,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    /// With so many threads of so many notifies.
    fn new(threads: u32, notifies: u32) -> Self {
        Self::with_limit(threads, notifies, END_S)
    }

    /// `end_s`: how long the stream waits for the end of a kernel's work.
    fn with_limit(threads: u32, notifies: u32, end_s: u32) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let rig = Rig::with_options(test_options());
        let threads = rig.comm.acquire_threads(Engine::AICPU_TS, threads, notifies + 1).unwrap();
        let pair = ControlPair::new(&rig.comm, &rig.stream, threads[0], notifies).unwrap().with_timeout_s(end_s);
        Self { rig, threads, start: notifies, pair, _turn: turn }
    }

    fn is_card(&self) -> bool {
        self.rig.device.options().device.is_some_and(DeviceKind::is_card)
    }

    /// `list` between start and end, as the parameters of kernel `call_list`. The calls stay in the buffer.
    fn params(&self, list: &[Call]) -> (DeviceBuffer, CallListParams) {
        let end = ThreadHandle(self.pair.control().cpu_thread);
        let all = [&[wait(self.threads[0], self.start, END_S)], list, &[record(self.threads[0], end, 0)]].concat();
        let buffer = self.rig.buffer(all.as_bytes());
        let (header, list, count) = (CallListParams::HEADER, buffer.addr(), all.len() as u64);
        (buffer, CallListParams { header, list, count, codes: DeviceAddr(0) })
    }

    /// Runs calls, of which the first refused one ends the kernel.
    fn run(&self, list: &[Call]) -> Result<Arc<LaunchStats>, Error> {
        let (_buffer, params) = self.params(list);
        let kernel = self.rig.device.load_kernel("call_list")?;
        let stats = self.rig.stream.launch_with_control(&self.pair, &kernel, &params)?;
        self.rig.stream.synchronize()?;
        Ok(stats)
    }
}

/// Case 407.
#[test]
fn bytes_are_copied() {
    let bench = Bench::new(1, 0);
    for (index, len) in [0, 1, 63, 64, 4097, (1 << 20) + 3].into_iter().enumerate() {
        let bytes = pattern(len.max(1), index as u64);
        let (src, dst) = (bench.rig.buffer(&bytes), bench.rig.buffer(&vec![0; bytes.len()]));
        bench.run(&[copy(bench.threads[0], dst.addr(), src.addr(), len as u64)]).unwrap();
        let expected = if len == 0 { vec![0] } else { bytes };
        assert_eq!(bench.rig.read(&dst), expected, "{len} bytes");
    }
}

/// Case 408.
#[test]
fn elements_are_reduced() {
    let bench = Bench::new(1, 0);
    let values = |step: usize| (0..1000).map(|index| (index * step % 97) as f32).collect::<Vec<_>>();
    let (first, second) = (values(3), values(5));
    let (src, dst) = (bench.rig.buffer(first.as_bytes()), bench.rig.buffer(second.as_bytes()));
    bench.run(&[reduce(bench.threads[0], dst.addr(), src.addr(), 1000, DataType::FP32, ReduceOp::SUM)]).unwrap();
    let expected: Vec<f32> = first.iter().zip(&second).map(|(one, other)| one + other).collect();
    assert_eq!(bench.rig.read(&dst), expected.as_bytes());
}

/// Case 409.
#[test]
fn notifies_order_the_queues_of_a_kernel() {
    let bench = Bench::new(3, 1);
    let [first, second, third] = bench.threads[..] else { unreachable!() };
    let bytes = pattern(100_000, 3);
    let len = bytes.len() as u64;
    let [a, b, c, d] = [&bytes[..], &[0; 100_000], &[0; 100_000], &[0; 100_000]].map(|bytes| bench.rig.buffer(bytes));
    // Queued in another order than they run in.
    let list = [
        wait(third, 0, END_S),
        copy(third, d.addr(), c.addr(), len),
        record(third, first, 0),
        wait(second, 0, END_S),
        copy(second, c.addr(), b.addr(), len),
        record(second, third, 0),
        copy(first, b.addr(), a.addr(), len),
        record(first, second, 0),
        wait(first, 0, END_S),
    ];
    for _ in 0..3 {
        bench.rig.device.clear(d.addr(), len).unwrap();
        bench.run(&list).unwrap();
        assert_eq!(bench.rig.read(&d), bytes);
    }
}

/// Case 410.
#[test]
fn a_batch_is_published_at_its_end() {
    let bench = Bench::new(1, 0);
    let thread = bench.threads[0];
    let bytes = pattern(64 * 40, 4);
    let (src, dst) = (bench.rig.buffer(&bytes), bench.rig.buffer(&vec![0; bytes.len()]));
    let copies = (0..40).map(|index| copy(thread, dst.at(index * 64), src.at(index * 64), 64));
    let begin = std::iter::once(call(Call::BATCH_START, &[0]));
    let list: Vec<_> = begin.chain(copies).chain([call(Call::BATCH_END, &[0])]).collect();
    let stats = bench.run(&list).unwrap();
    assert_eq!(bench.rig.read(&dst), bytes);
    if bench.is_card() {
        eprintln!("not checked on a card: how often the doorbell was rung");
    } else {
        // Start, batch, end.
        assert_eq!((stats.tasks(), stats.doorbells()), (42, 3));
    }
}

/// Case 411.
#[test]
fn a_ring_is_filled_and_used_again() {
    let bench = Bench::new(1, 0);
    let (thread, count) = (bench.threads[0], 5000);
    let bytes = pattern(16 * count, 5);
    let (src, dst) = (bench.rig.buffer(&bytes), bench.rig.buffer(&vec![0; bytes.len()]));
    let list: Vec<_> = (0..count as u64)
        .map(|index| ListedCopy { thread: thread.0, dst: dst.at(index * 16), src: src.at(index * 16), len: 16 })
        .collect();
    let entries = bench.rig.buffer(list.as_bytes());
    let header = CopyListParams::HEADER;
    let params = CopyListParams { header, list: entries.addr(), count: count as u64, batch: 0 };
    bench.rig.stream.launch(&bench.rig.device.load_kernel("copy_list").unwrap(), &params).unwrap();
    // Its tasks are done when those of the next kernel on the queue are.
    bench.run(&[]).unwrap();
    assert_eq!(bench.rig.read(&dst), bytes);
}

/// Case 412.
#[test]
fn a_refused_call_ends_its_kernel_and_nothing_else() {
    let bench = Bench::new(1, 0);
    let thread = bench.threads[0];
    let (src, dst) = (bench.rig.buffer(&[7; 64]), bench.rig.buffer(&[0; 64]));
    let good = copy(thread, dst.addr(), src.addr(), 64);
    let error = bench.run(&[good, copy(thread, DeviceAddr(0), src.addr(), 64)]).unwrap_err();
    match &error {
        Error::Card(CardError::Kernel(failed)) => {
            assert_eq!((failed.state, failed.code, failed.end), (CardState::FAILED, 2, CardEnd::RECORDED), "{error}");
            assert!(failed.reason.starts_with("HcommLocalCopyOnThread: dst is null"), "{error}");
        }
        error => assert!(!bench.is_card() && error.to_string().contains("HcommLocalCopyOnThread"), "{error}"),
    }
    bench.run(&[good]).unwrap();
    assert_eq!(bench.rig.read(&dst), [7; 64]);
}

/// Case 418.
#[test]
fn a_task_that_fails_stops_its_queue_and_is_named_when_the_wait_for_it_is_over() {
    let bench = Bench::with_limit(1, 1, 2);
    if matches!(bench.rig.device.options().device, Some(DeviceKind::Card(_))) {
        eprintln!("not run on a card: what a task that fails does to the queues of other programs is not known");
        return;
    }
    let thread = bench.threads[0];
    // Nothing records it.
    let error = bench.run(&[wait(thread, 0, 1)]).unwrap_err();
    match &error {
        Error::Card(CardError::Stream { task, .. }) => assert_eq!((task.thread, task.kind), (thread.0, 1), "{error}"),
        error => assert!(!bench.is_card() && error.to_string().contains("was not recorded within 1 s"), "{error}"),
    }
    if bench.is_card() {
        // A kernel that fails on such a queue can record no end notify.
        let error = bench.run(&[copy(thread, DeviceAddr(0), DeviceAddr(0), 64)]).unwrap_err();
        assert!(matches!(&error, Error::Card(CardError::Kernel(failed)) if failed.code == 2), "{error}");
    }
}

/// Case 419.
#[test]
fn a_kernel_that_panics_ends_with_an_error_and_the_next_one_runs() {
    let bench = Bench::new(1, 0);
    if !bench.is_card() {
        eprintln!("not run on the simulated device: tests of its own cover panics");
        return;
    }
    let (src, dst) = (bench.rig.buffer(&[7; 64]), bench.rig.buffer(&[0; 64]));
    let good = copy(bench.threads[0], dst.addr(), src.addr(), 64);
    for _ in 0..3 {
        let error = bench.run(&[good, call(Call::PANIC, &[])]).unwrap_err();
        let Error::Card(CardError::Kernel(failed)) = &error else { panic!("{error}") };
        assert_eq!((failed.state, failed.code, failed.end), (CardState::FAILED, 4, CardEnd::RECORDED), "{error}");
        assert!(failed.reason.contains("panicked at ") && failed.reason.contains("call_list.rs"), "{error}");
    }
    bench.run(&[good]).unwrap();
    assert_eq!(bench.rig.read(&dst), [7; 64]);
}

/// Case 413.
#[test]
fn a_wait_of_the_host_has_a_limit_and_goes_on() {
    let bench = Bench::new(1, 0);
    let notify = Notify::new(&bench.rig.device).unwrap();
    let (waiting, other) = (Stream::new(&bench.rig.device), Stream::new(&bench.rig.device));
    notify.wait_and_reset(&waiting, END_S).unwrap();
    match waiting.synchronize_for(Duration::from_millis(100)) {
        Err(Error::Timeout { stream_id, .. }) => assert_eq!(stream_id, waiting.id()),
        other => panic!("{other:?}"),
    }
    notify.record(&other).unwrap();
    waiting.synchronize().unwrap();
    other.synchronize().unwrap();
}

/// Case 414.
#[test]
fn two_kernels_run_at_a_time() {
    let bench = Bench::new(2, 2);
    let [first, second] = bench.threads[..] else { unreachable!() };
    let stream = Stream::new(&bench.rig.device);
    let pair = ControlPair::new(&bench.rig.comm, &stream, second, 2).unwrap().with_timeout_s(END_S);
    let end = ThreadHandle(pair.control().cpu_thread);
    let bytes = pattern(30_000, 6);
    let len = bytes.len() as u64;
    let [a, b, c] = [&bytes[..], &[0; 30_000], &[0; 30_000]].map(|bytes| bench.rig.buffer(bytes));
    // Neither can end without the other.
    let of_second = [
        wait(second, 2, END_S),
        wait(second, 0, END_S),
        copy(second, c.addr(), b.addr(), len),
        record(second, first, 0),
        record(second, end, 0),
    ];
    let calls = bench.rig.buffer(of_second.as_bytes());
    let (header, count) = (CallListParams::HEADER, of_second.len() as u64);
    let params = CallListParams { header, list: calls.addr(), count, codes: DeviceAddr(0) };
    let kernel = bench.rig.device.load_kernel("call_list").unwrap();
    stream.launch_with_control(&pair, &kernel, &params).unwrap();
    bench.run(&[copy(first, b.addr(), a.addr(), len), record(first, second, 0), wait(first, 0, END_S)]).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(bench.rig.read(&c), bytes);
}

/// Case 415.
#[test]
fn a_device_that_was_closed_opens_again() {
    for round in 0..3 {
        let bench = Bench::new(2, 1);
        let (src, dst) = (bench.rig.buffer(&[round; 64]), bench.rig.buffer(&[0xff; 64]));
        bench.run(&[copy(bench.threads[0], dst.addr(), src.addr(), 64)]).unwrap();
        assert_eq!(bench.rig.read(&dst), [round; 64]);
    }
}

/// Case 416.
#[test]
fn queues_that_were_suspended_and_reset_go_on_or_say_that_they_can_not() {
    let bench = Bench::new(1, 0);
    if bench.is_card() {
        let error = bench.rig.comm.suspend().unwrap_err();
        assert!(matches!(&error, Error::Card(CardError::NotOnCard("suspend"))), "{error}");
        eprintln!("not run on a card: suspend and resume of queues");
        return;
    }
    bench.rig.comm.suspend().unwrap();
    bench.rig.comm.resume().unwrap();
    let (src, dst) = (bench.rig.buffer(&[7; 64]), bench.rig.buffer(&[0; 64]));
    bench.run(&[copy(bench.threads[0], dst.addr(), src.addr(), 64)]).unwrap();
    assert_eq!(bench.rig.read(&dst), [7; 64]);
}

/// Case 417.
#[test]
fn memory_is_checked_by_the_host_and_threads_come_and_go() {
    let bench = Bench::new(1, 0);
    let buffer = bench.rig.buffer(&[1; 64]);
    assert!(bench.rig.device.copy_in(buffer.at(60), &[0; 8]).is_err());
    assert!(bench.rig.device.free(DeviceAddr(64)).is_err());
    for _ in 0..5 {
        let threads = bench.rig.comm.acquire_threads(Engine::AICPU_TS, 20, 2).unwrap();
        assert!(bench.rig.comm.notify_id(threads[0], 2).is_err());
        bench.rig.comm.release_threads(&threads);
        assert!(bench.rig.comm.notify_id(threads[0], 0).is_err());
    }
    bench.run(&[copy(bench.threads[0], buffer.at(32), buffer.addr(), 32)]).unwrap();
}
