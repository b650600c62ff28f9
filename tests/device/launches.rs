//! `Device::run`: which core runs the caller.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hcomm_aicpu::abi::HcommBatchModeStart;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_aicpu::{CoreBusy, Device, Error, LaunchEnd, MAX_CORES, Thread};
// For its platform.
use hcomm_testkit_platform as _;

fn look_up() -> Result<Thread, Error> {
    Thread::from_handle(ThreadHandle(64))
}

/// Case 208.
#[test]
fn core_runs_one_kernel_at_a_time_and_is_free_again_after_a_panic() {
    let device = Box::new(Device::new());
    assert_eq!(look_up(), Err(Error::NoCore));
    let nothing = LaunchEnd::default();
    let in_kernel = device.run(3, || {
        assert_eq!(device.run(3, || ()), Err(CoreBusy { core: 3 }), "from the same thread");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| (look_up(), device.run(3, || ()).is_err(), device.run(4, look_up)));
            let (outside, is_busy, inside) = other.join().unwrap();
            assert_eq!((outside, is_busy), (Err(Error::NoCore), true), "another thread has no core by itself");
            assert_eq!(inside, Ok((Err(Error::BadHandle(ThreadHandle(64))), nothing)));
        });
        look_up()
    });
    assert_eq!(in_kernel, Ok((Err(Error::BadHandle(ThreadHandle(64))), nothing)));
    assert_eq!(look_up(), Err(Error::NoCore));

    let panicked = catch_unwind(AssertUnwindSafe(|| device.run(3, || panic!("a kernel that panics"))));
    assert!(panicked.is_err());
    assert_eq!(look_up(), Err(Error::NoCore), "no core is left behind");
    assert_eq!(device.run(3, || HcommBatchModeStart(std::ptr::null())), Ok((0, LaunchEnd { batch_left_open: true })));
    for core in [MAX_CORES, usize::MAX] {
        assert_eq!(device.run(core, || ()), Err(CoreBusy { core }));
    }
}
