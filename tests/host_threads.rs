//! Several threads of the host on one device: none changes what another one sees, and a wait goes on while one of them could
//! still end it.

use std::time::Duration;

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::LocalCopyParams;
use hcomm_testkit::calls::{copy, record, wait};
use hcomm_testkit::{CPUS, Rig, pattern};
use host_stub::{Comm, ControlPair, Cpu, DeviceBuffer, Error, Notify, Stream};

/// Launches of all threads of a test together.
const LAUNCHES: u64 = 10_000;
const LEN: usize = 64;

/// What one host thread drives: a stream, a communicator, a thread of the device, and buffers.
struct Driver {
    // Dropped in this order: a communicator outlives the streams that use it.
    stream: Stream,
    comm: Comm,
    thread: ThreadHandle,
    pair: ControlPair,
    src: DeviceBuffer,
    dst: DeviceBuffer,
}

impl Driver {
    fn new(rig: &Rig) -> Self {
        let (stream, comm) = (Stream::new(&rig.device), Comm::new(&rig.device).unwrap());
        let thread = comm.acquire_threads(Engine::AICPU_TS, 1, 1).unwrap()[0];
        let pair = ControlPair::new(&comm, &stream, thread, 0).unwrap();
        let [src, dst] = [rig.buffer(&[0; LEN]), rig.buffer(&[0; LEN])];
        Self { stream, comm, thread, pair, src, dst }
    }

    fn params(&self) -> LocalCopyParams {
        LocalCopyParams {
            header: LocalCopyParams::HEADER,
            thread: self.thread.0,
            user_in: self.src.addr(),
            ccl_buf: self.dst.addr(),
            ccl_buf_size: LEN as u64,
            len: LEN as u64,
            control: self.pair.control(),
        }
    }

    /// One operation, and whether its bytes are right.
    fn operate(&self, rig: &Rig, seed: u64) -> Result<(), String> {
        let text = |error: Error| format!("operation {seed}: {error}");
        let bytes = pattern(LEN, seed);
        rig.device.copy_in(self.src.addr(), &bytes).map_err(text)?;
        let kernel = rig.device.load_kernel("local_copy").map_err(text)?;
        self.stream.launch_with_control(&self.pair, &kernel, &self.params()).map_err(text)?;
        self.stream.synchronize().map_err(text)?;
        if rig.read(&self.dst) == bytes { Ok(()) } else { Err(format!("operation {seed}: wrong bytes")) }
    }
}

/// `count` host threads drive a stream each, all on one device.
fn drive(cpu: Cpu, count: u64) {
    let rig = Rig::new(cpu);
    let each = LAUNCHES / count;
    let run = |which: u64| {
        let driver = Driver::new(&rig);
        (0..each).try_for_each(|operation| driver.operate(&rig, which * each + operation))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|which| scope.spawn(move || run(which))).collect();
        for (which, thread) in threads.into_iter().enumerate() {
            let result = thread.join().unwrap();
            assert_eq!(result, Ok(()), "{cpu:?}, host thread {which} of {count}");
        }
    });
}

/// Case 100.
#[test]
fn streams_of_8_host_threads_go_their_own_way() {
    CPUS.into_iter().for_each(|cpu| drive(cpu, 8));
}

/// Case 100.
#[test]
fn streams_of_16_host_threads_go_their_own_way() {
    CPUS.into_iter().for_each(|cpu| drive(cpu, 16));
}

/// Case 100.
#[test]
fn stream_that_ends_between_the_start_of_another_and_its_launch_leaves_the_start_alone() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let (driver, other) = (Driver::new(&rig), Driver::new(&rig));
        let bytes = pattern(LEN, 1);
        rig.device.copy_in(driver.src.addr(), &bytes).unwrap();
        let cpu_thread = driver.comm.acquire_thread_with_stream(&driver.stream, 1).unwrap();
        driver.comm.notify_record(&driver.stream, cpu_thread, driver.thread, 0).unwrap();
        other.operate(&rig, 2).unwrap();
        // A look at the stream itself, as another host thread may have one, is too early as well.
        driver.stream.synchronize().unwrap();
        other.operate(&rig, 3).unwrap();
        driver.stream.launch(&rig.device.load_kernel("local_copy").unwrap(), &driver.params()).unwrap();
        driver.comm.notify_wait(&driver.stream, cpu_thread, 0, 30).unwrap();
        driver.stream.synchronize().unwrap();
        assert_eq!(rig.read(&driver.dst), bytes, "{cpu:?}");
    }
}

/// Case 100.
#[test]
fn record_for_a_thread_that_another_stream_will_use_is_not_left_over() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let (one, two) = (Stream::new(&rig.device), Stream::new(&rig.device));
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let (src, dst) = (rig.buffer(&[9; 2]), rig.buffer(&[0; 2]));
        for _ in 0..3 {
            let step = rig.launch_calls_and_drain(&one, &[record(first, second, 0)]);
            one.synchronize().unwrap();
            let list = [wait(second, 0, 30), copy(second, dst.addr(), src.addr(), 2)];
            let next = rig.launch_calls_and_drain(&two, &list);
            two.synchronize().unwrap();
            assert_eq!((rig.codes(&step), rig.codes(&next)), (vec![0], vec![0, 0]), "{cpu:?}");
            assert_eq!(rig.read(&dst), [9; 2], "{cpu:?}");
        }
    }
}

/// Case 100.
#[test]
fn communicator_that_goes_away_takes_only_its_own_work_along() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let (driver, other) = (Driver::new(&rig), Comm::new(&rig.device).unwrap());
        let gone = other.acquire_threads(Engine::AICPU_TS, 1, 1).unwrap()[0];
        let buffer = rig.buffer(&[0; 2]);
        // Work that waits, on a communicator that is dropped while kernels of another stream run.
        let lost = rig.launch_calls(&[wait(gone, 0, 0), copy(gone, buffer.at(1), buffer.addr(), 1)]);
        assert!(hcomm_testkit::wait_until(|| rig.codes(&lost) == [0, 0]));
        std::thread::scope(|scope| {
            let runs = scope.spawn(|| (0..200).try_for_each(|seed| driver.operate(&rig, seed)));
            drop(other);
            assert_eq!(runs.join().unwrap(), Ok(()), "{cpu:?}");
        });
        let error = rig.stream.synchronize().unwrap_err().to_string();
        assert!(error.ends_with("2 tasks were dropped, its thread was freed"), "{cpu:?}: {error}");
    }
}

/// Case 100.
#[test]
fn communicator_resumes_while_kernels_of_another_one_run_all_the_time() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let stop = std::sync::atomic::AtomicBool::new(false);
        let thread = rig.threads(1, 0, 8)[0];
        let buffer = rig.buffer(&[5, 0]);
        std::thread::scope(|scope| {
            let run = |seed: u64| {
                let driver = Driver::new(&rig);
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    driver.operate(&rig, seed)?;
                }
                Ok::<_, String>(())
            };
            let drivers = [scope.spawn(move || run(1)), scope.spawn(move || run(2))];
            for _ in 0..20 {
                rig.comm.suspend().unwrap();
                rig.comm.resume().unwrap();
                rig.good_calls(&[copy(thread, buffer.at(1), buffer.addr(), 1)]).unwrap();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(drivers.map(|driver| driver.join().unwrap()), [Ok(()), Ok(())], "{cpu:?}");
        });
        assert_eq!(rig.read(&buffer), [5, 5], "{cpu:?}");
    }
}

/// Case 101.
#[test]
fn record_by_another_host_thread_within_the_limit_ends_the_wait() {
    for cpu in CPUS {
        for late_ms in [10, 300, 1000] {
            let rig = Rig::new(cpu);
            let notify = Notify::new(&rig.device).unwrap();
            let other = Stream::new(&rig.device);
            notify.wait_and_reset(&rig.stream, 60).unwrap();
            let recorded = std::thread::scope(|scope| {
                let recorder = scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(late_ms));
                    notify.record(&other)?;
                    other.synchronize()
                });
                rig.stream.synchronize().unwrap_or_else(|error| panic!("{cpu:?}, {late_ms} ms: {error}"));
                recorder.join().unwrap()
            });
            assert!(recorded.is_ok(), "{cpu:?}, {late_ms} ms: {recorded:?}");
        }
    }
}
