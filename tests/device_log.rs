//! Log of the image, and its refused calls, when they are more than the rings take: nothing waits, and each is accounted for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::{Control, FLOOD, LocalReduceParams, MisbehaveParams, Misbehaviour};
use hcomm_testkit::Rig;
use hcomm_testkit::calls::copy;
use host_stub::{Cpu, LogPlace, Stream};
use log::{LevelFilter, Log, Metadata, Record};

/// Lines that begin as `BEGINS` says, and those that the device says there were and are not shown.
static SHOWN: AtomicU64 = AtomicU64::new(0);
static MISSED: AtomicU64 = AtomicU64::new(0);
static BEGINS: Mutex<&str> = Mutex::new("");
/// Where the first one comes from.
static PLACE: Mutex<Option<LogPlace>> = Mutex::new(None);
/// The logger is the program's: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Counts lines. The first one takes it as long as the device needs to fill its rings.
struct SlowReader;

impl Log for SlowReader {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        let line = record.args().to_string();
        let missed = [" log frames dropped", " more refused calls"].iter().find_map(|end| line.split_once(end));
        if let Some((count, _)) = missed {
            MISSED.fetch_add(count.parse().unwrap(), Ordering::Relaxed);
        } else if line.starts_with(*BEGINS.lock().unwrap()) && SHOWN.fetch_add(1, Ordering::Relaxed) == 0 {
            *PLACE.lock().unwrap() = host_stub::log_place();
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn flush(&self) {}
}

/// Lines shown and missed while `run` runs.
fn count(begins: &'static str, run: impl FnOnce()) -> (u64, u64) {
    let _turn = TURN.lock().unwrap();
    // Fails in the second test, whose logger is there.
    let _ = log::set_logger(&SlowReader);
    log::set_max_level(LevelFilter::Trace);
    *BEGINS.lock().unwrap() = begins;
    SHOWN.store(0, Ordering::Relaxed);
    MISSED.store(0, Ordering::Relaxed);
    run();
    (SHOWN.load(Ordering::Relaxed), MISSED.load(Ordering::Relaxed))
}

/// Case 67.
#[test]
fn full_log_ring_drops_whole_frames_and_counts_them() {
    let rig = Rig::new(Cpu::Qemu);
    let stream = Stream::new(&rig.device);
    let kernel = rig.device.load_kernel("misbehave").unwrap();
    let (shown, missed) = count("line ", || {
        for _ in 0..2 {
            let params = MisbehaveParams { header: MisbehaveParams::HEADER, kind: Misbehaviour::LOG_FLOOD };
            stream.launch_and_drain(&kernel, &params).unwrap();
            stream.synchronize().unwrap();
        }
    });
    assert_eq!(shown + missed, 2 * FLOOD, "{shown} lines, {missed} dropped");
    assert!(shown > 100 && missed > 0, "{shown} lines, {missed} dropped");
}

/// Case 230.
#[test]
fn kernels_log_the_same_line_on_every_cpu() {
    for cpu in [Cpu::Native, Cpu::Qemu, Cpu::Linux] {
        let rig = Rig::new(cpu);
        let src = rig.buffer(&[7; 4096]);
        let dst = rig.buffer(&[0; 1024]);
        let (shown, _) = count("reduce: 4 slices of 1024 bytes on 1 threads", || {
            let params = LocalReduceParams {
                header: LocalReduceParams::HEADER,
                threads: [rig.thread(64).0, 0, 0, 0, 0, 0, 0, 0],
                thread_count: 1,
                src: src.addr(),
                slice_count: 4,
                dst: dst.addr(),
                scratch: DeviceAddr(0),
                count: 256,
                data_type: DataType::FP32.0,
                op: ReduceOp::SUM.0,
                control: Control::NONE,
            };
            rig.stream.launch_and_drain(&rig.device.load_kernel("local_reduce").unwrap(), &params).unwrap();
            rig.stream.synchronize().unwrap();
        });
        assert_eq!(shown, 1, "{cpu:?}");
        let place = PLACE.lock().unwrap().take().unwrap();
        assert_eq!((&*place.running.kernel, place.running.launch, place.core), ("local_reduce", 1, 0), "{cpu:?}");
        assert!(place.at_us.is_some(), "{cpu:?}");
    }
}

/// Case 67.
#[test]
fn refused_calls_are_all_shown_or_counted() {
    let rig = Rig::new(Cpu::Qemu);
    let buffer = rig.buffer(&[0; 8]);
    let calls = 3000;
    let (shown, missed) = count("HcommLocalCopyOnThread: thread handle is 0", || {
        let list = vec![copy(ThreadHandle(0), buffer.addr(), buffer.addr(), 1); calls];
        assert_eq!(rig.calls(&list).unwrap(), vec![2; calls]);
    });
    assert_eq!(shown + missed, calls as u64, "{shown} lines, {missed} missed");
    assert!(shown >= 31 && missed > 0, "{shown} lines, {missed} missed");
}
