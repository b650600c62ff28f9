//! A forked child of a process with an open device: the host API refuses it at once, and drops touch nothing of the parent.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, Ordering};

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::thread::Engine;
use hcomm_testkit::{CPUS, Rig, calls::copy, pattern, wait_until};
use host_stub::{Error, Notify};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
    fn kill(process: i32, signal: i32) -> i32;
}

const WNOHANG: i32 = 1;
const SIGKILL: i32 = 9;

/// What the child does with a copy of the parent's device: everything is refused, and everything is dropped.
fn child(rig: Rig, notify: Notify) -> bool {
    let owner = std::os::unix::process::parent_id();
    let is_refused = |result: Result<(), Error>| matches!(result, Err(Error::Forked { owner: id }) if id == owner);
    let refused = is_refused(rig.device.malloc(64).map(drop))
        && is_refused(rig.device.copy_in(DeviceAddr(0), &[1]))
        && is_refused(rig.device.copy_out(DeviceAddr(0), &mut [1]))
        && is_refused(rig.comm.acquire_threads(Engine::AICPU_TS, 1, 1).map(drop))
        && is_refused(rig.stream.synchronize())
        && is_refused(notify.record(&rig.stream));
    drop((rig, notify));
    refused
}

/// Case 116.
#[test]
fn child_is_refused_and_its_drops_leave_the_parent_alone() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.thread(8);
        // Large enough for its memory to be given back to the system when it is freed.
        let (src, dst) = (rig.buffer(&pattern(1 << 20, 1)), rig.buffer(&[0; 1 << 20]));
        let notify = Notify::new(&rig.device).unwrap();
        // SAFETY: the child ends by `_exit` in the same block, also if it panics. It allocates, which the C library allows after a
        // fork, and takes no lock but those that the test is about.
        let pid = unsafe { fork() };
        if pid == 0 {
            let done = catch_unwind(AssertUnwindSafe(|| {
                drop((src, dst));
                child(rig, notify)
            }));
            // SAFETY: ends the process, without exit handlers of the test's parent.
            unsafe { _exit(if matches!(done, Ok(true)) { 0 } else { 1 }) };
        }
        assert!(pid > 0, "no child process");
        let status = AtomicI32::new(-1);
        // SAFETY: `status` can be written.
        let ended = wait_until(|| unsafe { waitpid(pid, status.as_ptr(), WNOHANG) } == pid);
        if !ended {
            // SAFETY: a child of this process that has not been waited for.
            unsafe { kill(pid, SIGKILL) };
        }
        assert!(ended, "{cpu:?}: the child hangs");
        assert_eq!(status.load(Ordering::Relaxed), 0, "{cpu:?}");
        rig.good_calls(&[copy(thread, dst.addr(), src.addr(), 1 << 20)]).unwrap();
        assert!(rig.read(&dst) == pattern(1 << 20, 1), "{cpu:?}");
    }
}
