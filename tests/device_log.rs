//! Log of the image when it says more than the ring takes: nothing waits, whole frames are dropped, and each is accounted for.

mod rig;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hcomm_aicpu::spec::thread::ThreadHandle;
use host_stub::Cpu;
use log::{LevelFilter, Log, Metadata, Record};
use rig::Rig;
use rig::calls::copy;

/// Lines that the refused calls have written, and frames that the device says it has dropped.
static LINES: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Counts lines. The first one takes it as long as the device needs to fill its ring.
struct SlowReader;

impl Log for SlowReader {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        let line = record.args().to_string();
        if let Some((count, _)) = line.split_once(" log frames dropped") {
            DROPPED.fetch_add(count.parse().unwrap(), Ordering::Relaxed);
        } else if record.target() == "device" && line.starts_with("HcommLocalCopyOnThread: ") {
            assert_eq!(line, "HcommLocalCopyOnThread: NullThread");
            if LINES.fetch_add(1, Ordering::Relaxed) == 0 {
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }

    fn flush(&self) {}
}

#[test]
fn case_67_full_log_ring_drops_whole_frames_and_counts_them() {
    log::set_logger(&SlowReader).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let rig = Rig::new(Cpu::Qemu);
    let buffer = rig.buffer(&[0; 8]);
    let calls: u64 = 30_000;
    for round in 1..=2 {
        let list = vec![copy(ThreadHandle(0), buffer.addr(), buffer.addr(), 1); calls as usize];
        assert_eq!(rig.calls(&list).unwrap(), vec![2; calls as usize]);
        let (lines, dropped) = (LINES.load(Ordering::Relaxed), DROPPED.load(Ordering::Relaxed));
        assert_eq!(lines + dropped, round * calls, "{lines} lines, {dropped} dropped");
        assert!(lines > 100 && dropped > 0, "{lines} lines, {dropped} dropped");
    }
}
