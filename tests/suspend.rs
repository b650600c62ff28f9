//! Queues that are suspended, resumed and taken away while there is work on them, on both CPUs.

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::{CopyListParams, ListedCopy};
use hcomm_testkit::{CPUS, Rig, at, pattern, wait_until};
use host_stub::{Cpu, DeviceBuffer, DeviceOptions, Error, Fault, FaultPlan, FaultRule, ThreadConfig};
use zerocopy::IntoBytes;

fn rig(cpu: Cpu, rule: FaultRule) -> Rig {
    Rig::with_options(DeviceOptions { cpu, faults: FaultPlan::one(rule), ..DeviceOptions::default() })
}

/// Copies of one byte each, from each place of `src` to the same one of `dst`.
fn list(thread: ThreadHandle, dst: &DeviceBuffer, src: &DeviceBuffer) -> Vec<ListedCopy> {
    let copy = |i| ListedCopy { thread: thread.0, dst: at(dst, i), src: at(src, i), len: 1 };
    (0..dst.len() as usize).map(copy).collect()
}

/// Launches kernel `copy_list` without waiting for it. The list must outlive the launch.
fn launch(rig: &Rig, list: &[ListedCopy]) -> DeviceBuffer {
    let entries = rig.buffer(list.as_bytes());
    let (header, count) = (CopyListParams::HEADER, list.len() as u64);
    let params = CopyListParams { header, list: entries.addr(), count, batch: 0 };
    rig.stream.launch_and_drain(&rig.device.load_kernel("copy_list").unwrap(), &params).unwrap();
    entries
}

/// Waits until the queue of `thread` has been rung `count` times.
fn wait_rung(rig: &Rig, thread: ThreadHandle, count: u64) {
    let is_rung = || rig.comm.thread_statistics(thread).unwrap().doorbells >= count;
    assert!(wait_until(is_rung), "not rung {count} times: {:?}", rig.comm.thread_statistics(thread));
}

fn message(result: Result<(), Error>) -> String {
    result.unwrap_err().to_string()
}

/// Case 24.
#[test]
fn suspension_ends_the_wait_for_a_full_ring_and_the_next_use_starts_clean() {
    for cpu in CPUS {
        let rig = rig(cpu, FaultRule::new(Fault::DeadQueue));
        let thread = rig.thread(4);
        let (src, dst) = (rig.buffer(&pattern(6, 1)), rig.buffer(&[0; 6]));
        let copies = list(thread, &dst, &src);
        let _entries = launch(&rig, &copies);
        // The ring has room for 3: the kernel waits for room for the fourth.
        wait_rung(&rig, thread, 3);
        rig.comm.suspend().unwrap();
        let error = message(rig.stream.synchronize());
        assert!(error.contains("kernel copy_list returned 22 (HCCL_E_SUSPENDING)"), "{error}");
        assert_eq!(rig.read(&dst), [0; 6]);

        rig.comm.resume().unwrap();
        rig.copy_list(&copies, false).unwrap();
        assert_eq!(rig.read(&dst), pattern(6, 1));
    }
}

/// Case 24.
#[test]
fn launch_that_lost_its_tasks_is_no_success() {
    for cpu in CPUS {
        let rig = rig(cpu, FaultRule::new(Fault::DeadQueue).n(1));
        let thread = rig.thread(8);
        let (src, dst) = (rig.buffer(&pattern(4, 1)), rig.buffer(&[0; 4]));
        let copies = list(thread, &dst, &src);
        let _entries = launch(&rig, &copies);
        wait_rung(&rig, thread, 4);
        rig.comm.suspend().unwrap();
        let error = message(rig.stream.synchronize());
        assert!(error.starts_with("device error 507001: "), "{error}");
        assert!(error.ends_with("sq 0: 3 tasks were dropped, its thread was suspended"), "{error}");
        assert_eq!(rig.read(&dst), [pattern(4, 1)[0], 0, 0, 0]);
        // It is no failure of the device.
        rig.comm.resume().unwrap();
        rig.copy_list(&copies, false).unwrap();
        assert_eq!(rig.read(&dst), pattern(4, 1));
    }
}

/// Case 25.
#[test]
fn after_resume_the_first_task_goes_to_slot_0() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.thread(8);
        let buffer = rig.buffer(&pattern(64, 1));
        let copy = |dst, src, len| ListedCopy { thread: thread.0, dst: at(&buffer, dst), src: at(&buffer, src), len };
        for round in 0..3 {
            rig.copy_list(&vec![copy(0, 32, 8); 2 + round], false).unwrap();
            rig.comm.suspend().unwrap();
            let suspended = message(rig.copy_list(&[copy(8, 32, 8)], false).map(|_| ()));
            assert!(suspended.contains("returned 22 (HCCL_E_SUSPENDING)"), "{suspended}");
            rig.comm.resume().unwrap();
        }
        assert_eq!(rig.read(&buffer)[8..32], pattern(64, 1)[8..32], "a suspended queue has run a task");
        // A task that the device refuses tells its slot.
        let error = message(rig.copy_list(&[copy(16, 8, 16)], false).map(|_| ()));
        assert!(error.contains(" in slot 0: ") && error.contains(" overlap in part; queued at "), "{error}");
    }
}

#[test]
fn suspension_of_one_communicator_leaves_the_other_alone() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let other = host_stub::Comm::new(&rig.device).unwrap();
        let thread = other.acquire_threads(hcomm_aicpu::spec::thread::Engine::AICPU_TS, 1, 0).unwrap()[0];
        rig.thread(8);
        rig.comm.suspend().unwrap();
        let (src, dst) = (rig.buffer(&pattern(9, 1)), rig.buffer(&[0; 9]));
        rig.copy_list(&list(thread, &dst, &src), false).unwrap();
        assert_eq!(rig.read(&dst), pattern(9, 1));
    }
}

/// Case 54.
#[test]
fn communicator_that_is_dropped_with_a_copy_pending_cancels_it() {
    for cpu in CPUS {
        let mut rig = rig(cpu, FaultRule::new(Fault::DeadQueue));
        let thread = rig.thread(8);
        let (src, dst) = (rig.buffer(&pattern(4, 1)), rig.buffer(&[0; 4]));
        let _entries = launch(&rig, &list(thread, &dst, &src)[..1]);
        wait_rung(&rig, thread, 1);
        rig.comm = host_stub::Comm::new(&rig.device).unwrap();
        let error = message(rig.stream.synchronize());
        assert!(error.ends_with("sq 0: 1 tasks were dropped, its thread was freed"), "{error}");
        assert_eq!(rig.read(&dst), [0; 4]);
        // The handle is stale, the device is well.
        let stale = message(rig.copy_list(&list(thread, &dst, &src), false).map(|_| ()));
        assert!(stale.contains("returned 6 (HCCL_E_NOT_FOUND)"), "{stale}");
    }
}

/// Case 54.
#[test]
fn communicator_that_is_dropped_at_once_is_gone() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        for _ in 0..3 {
            let comm = host_stub::Comm::new(&rig.device).unwrap();
            comm.acquire_threads(hcomm_aicpu::spec::thread::Engine::AICPU_TS, 2, 1).unwrap();
            drop(comm);
        }
        drop(host_stub::Comm::new(&rig.device).unwrap());
        rig.comm.suspend().unwrap();
        rig.comm.resume().unwrap();
    }
}

/// Case 200.
#[test]
fn tasks_of_before_256_resets_do_not_run_again() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.thread(16);
        let (src, dst) = (rig.buffer(&pattern(4, 1)), rig.buffer(&[0; 4]));
        let copies = list(thread, &dst, &src);
        rig.copy_list(&copies[..3], false).unwrap();
        let tasks = || rig.comm.thread_statistics(thread).unwrap().tasks;
        let before = tasks();
        for _ in 0..256 {
            rig.comm.suspend().unwrap();
            rig.comm.resume().unwrap();
        }
        rig.copy_list(&copies[3..], false).unwrap();
        assert_eq!((tasks() - before, rig.read(&dst)), (1, pattern(4, 1)), "{cpu:?}");
    }
}

/// Case 201.
#[test]
fn slot_whose_generations_are_used_up_is_not_handed_out_again() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let (src, dst) = (rig.buffer(&pattern(2, 1)), rig.buffer(&[0; 2]));
        let acquire = || {
            let comm = host_stub::Comm::new(&rig.device).unwrap();
            let thread = comm.acquire_threads_with(&ThreadConfig::new(1).depth(4)).unwrap()[0];
            (comm, thread)
        };
        // Its ring state stays at entry 2 of 4.
        let (comm, first) = acquire();
        rig.copy_list(&list(first, &dst, &src), false).unwrap();
        drop(comm);
        for generation in 2..=u16::MAX {
            let (_comm, thread) = acquire();
            assert_eq!((thread.addr(), thread.generation()), (first.addr(), generation));
        }
        let (_comm, thread) = acquire();
        assert_ne!(thread.addr(), first.addr(), "the slot has no generation left");
        rig.copy_list(&list(thread, &dst, &src)[..1], false).unwrap();
        let stale = message(rig.copy_list(&list(first, &dst, &src), false).map(|_| ()));
        assert!(stale.contains("returned 6 (HCCL_E_NOT_FOUND)"), "{stale}");
    }
}
