//! Faults of the device and of kernels, from the host's side: each is reported with its number and its place, the first one
//! is kept, and a fresh or restarted device works.

use std::ffi::c_void;
use std::path::PathBuf;
use std::ptr::{without_provenance, without_provenance_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hcomm_aicpu::abi::{HcommLocalCopyOnThread, HcommThreadResAcquireTimeOut};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::{ListedCopy, MisbehaveParams, Misbehaviour};
use hcomm_testkit::{CPUS, Folder, Rig, at, pattern, wait_until};
use host_stub::{Cpu, DeviceError, DeviceOptions, Error, Fault, FaultPlan, FaultRule, Kernel, KernelFault};
use object::{Object, ObjectSection, ObjectSymbol};

fn rig(cpu: Cpu, spec: &str) -> Rig {
    with(cpu, &[spec], |_| {})
}

fn with(cpu: Cpu, specs: &[&str], change: impl FnOnce(&mut DeviceOptions)) -> Rig {
    let rules: Vec<FaultRule> = specs.iter().map(|spec| spec.parse().unwrap()).collect();
    let mut options = DeviceOptions { cpu, faults: FaultPlan::from(rules), ..DeviceOptions::default() };
    change(&mut options);
    Rig::with_options(options)
}

/// `count` copies of 16 bytes on one thread, each in a call of its own: the error, and how many arrived.
fn copy_some(rig: &Rig, count: usize) -> (Result<(), Error>, usize) {
    let thread = rig.thread(64);
    let bytes = pattern(16 * count, 3);
    let (src, dst) = (rig.buffer(&bytes), rig.buffer(&vec![0; 16 * count]));
    let list: Vec<_> = (0..count)
        .map(|i| ListedCopy { thread: thread.0, dst: at(&dst, 16 * i), src: at(&src, 16 * i), len: 16 })
        .collect();
    let result = rig.copy_list(&list, false).map(|_| ());
    let copied = rig.read(&dst);
    let arrived = (0..count).take_while(|i| copied[16 * i..][..16] == bytes[16 * i..][..16]).count();
    assert!(copied[16 * arrived..].iter().all(|byte| *byte == 0), "a task ran after the one that failed");
    (result, arrived)
}

#[track_caller]
fn device_error(result: Result<(), Error>) -> DeviceError {
    match result {
        Err(Error::Device(error)) => error,
        other => panic!("{other:?} is no error of the device"),
    }
}

#[test]
fn engine_error_and_translation_fault_stop_the_queue_at_their_task() {
    for cpu in CPUS {
        for (spec, text) in [
            ("sdma-error:n=3", "sdma error (fault plan): src 0x1"),
            ("translation:n=3", "translation fault (fault plan): src 0x1"),
        ] {
            let (result, arrived) = copy_some(&rig(cpu, spec), 5);
            let error = device_error(result);
            assert_eq!((error.runtime_code(), arrived), (507_001, 2));
            let message = error.to_string();
            assert!(message.contains("sq 0, task 0x2 in slot 2: ") && message.contains(text), "{message}");
        }
    }
}

#[test]
fn fault_of_another_stream_queue_or_task_does_not_happen() {
    for spec in ["sdma-error:stream=999", "translation:sq=5", "sdma-error:task=77", "dead-queue:sq=3", "panic:n=2"] {
        assert_eq!(copy_some(&rig(Cpu::Native, spec), 3).1, 3, "{spec}");
    }
}

#[test]
fn slow_queue_is_slow_and_correct() {
    for cpu in CPUS {
        let started = Instant::now();
        let (result, arrived) = copy_some(&rig(cpu, "slow-queue:time=20ms"), 5);
        result.unwrap();
        assert_eq!(arrived, 5);
        assert!(started.elapsed() >= Duration::from_millis(100), "{:?}", started.elapsed());
    }
}

#[test]
fn dead_queue_ends_with_an_error_that_names_it() {
    for cpu in CPUS {
        let limit = Duration::from_millis(200);
        let rig = with(cpu, &["dead-queue:after=2"], |options| options.task_timeout = limit);
        let (result, arrived) = copy_some(&rig, 5);
        let error = device_error(result);
        assert_eq!((error.runtime_code(), arrived), (507_001, 2));
        let text =
            "sq 0, task 0x2 in slot 2: not done within 200ms (head 2, tail 5); queued at kernel/src/copy_list.rs:";
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// Case 22.
#[test]
fn dead_queue_fills_and_the_call_ends_within_its_limit() {
    // Its own limit is that of the whole device: the queue of 4 has room for 3.
    for cpu in CPUS {
        let rig = with(cpu, &["dead-queue"], |options| options.task_timeout = Duration::from_millis(300));
        let thread = rig.thread(4);
        let buffer = rig.buffer(&[7; 64]);
        let list = [ListedCopy { thread: thread.0, dst: at(&buffer, 32), src: at(&buffer, 0), len: 8 }; 4];
        let error = device_error(rig.copy_list(&list, false).map(|_| ()));
        assert!(error.to_string().contains("in slot 0: not done within 300ms (head 0, tail 3)"), "{error}");
        assert_eq!(rig.read(&buffer), [7; 64]);
    }
}

/// Case 34.
#[test]
fn refused_doorbell_answers_16_and_the_next_call_works() {
    // A call sees the refusal itself: the third doorbell, and nothing else.
    let rig_native = rig(Cpu::Native, "doorbell:n=3");
    let thread = rig_native.thread(8);
    let (src, dst) = (rig_native.buffer(&[1, 2, 3, 4]), rig_native.buffer(&[0; 4]));
    let copy = |i| ListedCopy { thread: thread.0, dst: at(&dst, i), src: at(&src, i), len: 1 };
    let error = device_error(rig_native.copy_list(&[copy(0), copy(1), copy(2), copy(3)], false).map(|_| ()));
    assert!(error.to_string().contains("kernel copy_list returned 16 (HCCL_E_DRV)"), "{error}");
    assert_eq!((error.runtime_code(), rig_native.read(&dst)), (507_018, vec![1, 2, 0, 0]));
    rig_native.copy_list(&[copy(2), copy(3)], false).unwrap();
    assert_eq!(rig_native.read(&dst), [1, 2, 3, 4]);

    // A store is not refused: the queue's status word says so before the slot is written, until the queue is reset.
    let rig = rig(Cpu::Qemu, "doorbell");
    let (result, arrived) = copy_some(&rig, 2);
    let error = device_error(result);
    assert!(error.to_string().contains("kernel copy_list returned 16 (HCCL_E_DRV)"), "{error}");
    assert_eq!(arrived, 0);
}

#[test]
fn later_doorbell_is_refused_by_the_status_word_too() {
    let rig = rig(Cpu::Qemu, "doorbell:n=2");
    let thread = rig.thread(8);
    let (src, dst) = (rig.buffer(&[1, 2]), rig.buffer(&[0; 2]));
    let copy = |i| ListedCopy { thread: thread.0, dst: at(&dst, i), src: at(&src, i), len: 1 };
    rig.copy_list(&[copy(0)], false).unwrap();
    let error = device_error(rig.copy_list(&[copy(1)], false).map(|_| ()));
    assert!(error.to_string().contains("returned 16 (HCCL_E_DRV)"), "{error}");
    assert_eq!(rig.read(&dst), [1, 0]);
}

/// Case 11.
#[test]
fn partial_overlap_is_reported_and_equal_ranges_are_not() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.thread(8);
        let buffer = rig.buffer(&pattern(64, 1));
        let copy = |dst, src, len| ListedCopy { thread: thread.0, dst: at(&buffer, dst), src: at(&buffer, src), len };
        rig.copy_list(&[copy(0, 0, 16), copy(16, 0, 16), copy(0, 16, 16)], false).unwrap();
        let error = device_error(rig.copy_list(&[copy(16, 0, 32)], false).map(|_| ()));
        let (src, dst) = (at(&buffer, 0).0, at(&buffer, 16).0);
        assert!(
            error
                .to_string()
                .contains(&format!("src {src:#x} and dst {dst:#x} of 32 bytes overlap in part; queued at ")),
            "{error}"
        );
        assert_eq!(error.runtime_code(), 507_001);
    }
}

/// Case 11.
#[test]
fn overlap_as_a_warning_is_counted() {
    for cpu in CPUS {
        let rig = with(cpu, &[], |options| options.overlap_is_warning = true);
        let thread = rig.thread(8);
        let buffer = rig.buffer(&pattern(64, 1));
        let copy = |dst, src, len| ListedCopy { thread: thread.0, dst: at(&buffer, dst), src: at(&buffer, src), len };
        rig.copy_list(&[copy(16, 0, 32), copy(0, 8, 9), copy(0, 0, 16), copy(32, 0, 32)], false).unwrap();
        assert_eq!(rig.device.statistics().overlaps, 2);
    }
}

/// Case 12, 240.
#[test]
fn copy_past_the_mapped_pages_fails_at_synchronize() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.thread(8);
        let (src, dst) = (rig.buffer(&[5; 9 * 4096]), rig.buffer(&[0; 40960]));
        let copy = |len| ListedCopy { thread: thread.0, dst: at(&dst, 0), src: at(&src, 0), len };
        // The second one is queued behind it and must not run.
        let error = device_error(rig.copy_list(&[copy(40960), copy(16)], false).map(|_| ()));
        let message = error.to_string();
        let info = rig.comm.thread_info(thread).unwrap();
        let place = format!("stream {}, sq {}, task 0x0 in slot 0: ", info.stream_id, info.sq_id);
        assert!(message.contains(&place) && message.contains(": translation fault: src of 40960 bytes: "), "{message}");
        assert!(message.contains(&format!("leaves its allocation {:#x}..", at(&src, 0).0)), "{message}");
        let (_, origin) = message.split_once("; queued at ").unwrap_or_else(|| panic!("{cpu:?}: {message}"));
        let (call, thread) = origin.split_once(" in launch 1 on thread 0 of the 1 acquired at ").expect(origin);
        assert!(call.starts_with("kernel/src/"), "{cpu:?}: {message}");
        assert!(thread.contains("testkit/src/rig.rs:") || thread.contains("tests/"), "{cpu:?}: {message}");
        assert_eq!((error.runtime_code(), rig.read(&dst)), (507_001, vec![0; 40960]));
    }
}

/// Case 13.
#[test]
fn host_memory_is_not_in_the_device() {
    let host = [9u8; 64];
    let host_addr = hcomm_aicpu::spec::DeviceAddr((&raw const host).addr() as u64);
    for cpu in CPUS {
        for to_host in [false, true] {
            let rig = Rig::new(cpu);
            let thread = rig.thread(8);
            let buffer = rig.buffer(&[3; 64]);
            let (dst, src) = if to_host { (host_addr, at(&buffer, 0)) } else { (at(&buffer, 0), host_addr) };
            let copy = ListedCopy { thread: thread.0, dst, src, len: 64 };
            let error = device_error(rig.copy_list(&[copy], false).map(|_| ()));
            let side = if to_host { "dst" } else { "src" };
            let text = format!("translation fault: {side} of 64 bytes: {:#x} is not in hbm", host_addr.0);
            assert!(error.to_string().contains(&text), "{error}");
            assert_eq!((rig.read(&buffer), host), (vec![3; 64], [9; 64]));
        }
    }
}

#[test]
fn unallocated_ranges_name_why() {
    for cpu in CPUS {
        for (case, text) in [
            (0, "is in the page at the start of hbm that is never mapped"),
            (1, "which was freed"),
            (2, "was never allocated"),
            (3, "is in the ring of a queue, which only the device may touch"),
            (4, "is past the end of the address space"),
        ] {
            let rig = Rig::new(cpu);
            let thread = rig.thread(8);
            let buffer = rig.buffer(&[3; 64]);
            // List of copies and parameters go to the first gap: what is behind it stays.
            let gap = rig.buffer(&[4; 16384]);
            let freed = rig.buffer(&[4; 64]).addr();
            drop(gap);
            let base = 0x12c0_0000_0000 + rig.device.slot() as u64 * (1 << 40);
            let ring = rig.comm.thread_info(thread).unwrap();
            let src = match case {
                0 => base + 8,
                1 => freed.0,
                2 => base + (8 << 30),
                3 => {
                    // The thread table comes first, the ring is what the thread has allocated after it.
                    assert_eq!(ring.sq_id, 0);
                    at(&buffer, 0).0 - 0x2000
                }
                _ => u64::MAX - 100,
            };
            let copy =
                ListedCopy { thread: thread.0, dst: at(&buffer, 0), src: hcomm_aicpu::spec::DeviceAddr(src), len: 64 };
            let copy = if case == 4 { ListedCopy { len: 200, ..copy } } else { copy };
            let result = rig.copy_list(&[copy], false).map(|_| ());
            if case == 4 {
                // Refused by the call itself.
                assert!(result.unwrap_err().to_string().contains("returned 1 (HCCL_E_PARA)"));
                continue;
            }
            let error = device_error(result);
            assert!(error.to_string().contains("src of 64 bytes: ") && error.to_string().contains(text), "{error}");
        }
    }
}

/// Case 62.
#[test]
fn first_error_is_kept_and_a_fresh_device_works() {
    for (cpu, spec) in [(Cpu::Native, "panic"), (Cpu::Qemu, "data-abort"), (Cpu::Native, "sdma-error")] {
        let rig = rig(cpu, spec);
        let thread = rig.thread(8);
        let buffer = rig.buffer(&[3; 64]);
        let copy = ListedCopy { thread: thread.0, dst: at(&buffer, 32), src: at(&buffer, 0), len: 16 };
        let first = device_error(rig.copy_list(&[copy], false).map(|_| ()));
        let later = [
            rig.device.malloc(64).map(|_| ()),
            rig.device.copy_in(at(&buffer, 0), &[1]),
            rig.stream.synchronize(),
            rig.comm.acquire_threads(hcomm_aicpu::spec::thread::Engine::AICPU_TS, 1, 0).map(|_| ()),
        ];
        for result in later {
            assert_eq!(result.unwrap_err().to_string(), format!("device already failed: {first}"));
        }
        copy_some(&Rig::new(cpu), 3).0.unwrap();
    }
}

/// Launches `local_copy`-sized work with a kernel fault in its place.
fn kernel_error(rig: &Rig) -> DeviceError {
    device_error(copy_some(rig, 1).0)
}

#[test]
fn kernel_faults_on_qemu_name_kernel_function_line_and_address_and_the_device_restarts() {
    for (fault, parts) in [
        ("data-abort", &["data abort: read at 0xdead0000, translation fault", "misbehave::exception::data_abort"][..]),
        ("undefined", &["undefined instruction", "misbehave::exception::undefined"]),
        ("stack-overflow", &["stack overflow: write at 0x40", "stack_overflow (kernel/src/misbehave.rs:"]),
        (
            "panic",
            &[
                "panic: a kernel that was asked to panic, at kernel/src/misbehave.rs:",
                "in misbehave (kernel/src/misbehave.rs:",
            ],
        ),
    ] {
        let rig = rig(Cpu::Qemu, fault);
        let error = kernel_error(&rig);
        assert_eq!(error.runtime_code(), 507_018, "{error}");
        let message = error.to_string();
        assert!(message.contains("kernel misbehave in place of copy_list faulted: "), "{message}");
        assert!(message.contains("(kernel/src/misbehave.rs:"), "{message}");
        for part in parts {
            assert!(message.contains(part), "{part} is not in {message}");
        }
        rig.device.restart().unwrap();
        let (result, arrived) = copy_some(&rig, 20);
        result.unwrap();
        assert_eq!(arrived, 20);
    }
}

#[test]
fn endless_kernel_on_qemu_ends_with_its_place_and_the_device_restarts() {
    let limit = Duration::from_millis(300);
    let rig = with(Cpu::Qemu, &["hang"], |options| options.launch_timeout = Some(limit));
    let error = kernel_error(&rig);
    assert_eq!(error.runtime_code(), 507_017);
    let message = error.to_string();
    assert!(message.contains("kernel misbehave in place of copy_list has not returned within 300ms: in "), "{message}");
    assert!(message.contains("hang (kernel/src/misbehave.rs:"), "{message}");
    rig.device.restart().unwrap();
    copy_some(&rig, 20).0.unwrap();
}

/// The stock image with other values of the two symbols that say where the stack lies.
fn image_with_stack(bottom: u64, top: u64) -> Vec<u8> {
    let mut data = std::fs::read(host_stub::loader::find().unwrap()).unwrap();
    let values: Vec<_> = {
        let file = object::read::elf::ElfFile64::<object::LittleEndian>::parse(&*data).unwrap();
        let table = file.section_by_name(".symtab").unwrap().file_range().unwrap().0;
        let place = |name: &str| {
            let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
            // An entry has 24 bytes, its value is the second word of eight.
            table as usize + symbol.index().0 * 24 + 8
        };
        [(place("__stack_bottom"), bottom), (place("__stack_top"), top)].into()
    };
    for (place, value) in values {
        data[place..place + 8].copy_from_slice(&value.to_le_bytes());
    }
    data
}

/// Case 104.
#[test]
fn endless_kernel_with_a_wild_frame_pointer_in_a_hostile_image_ends_at_its_limit() {
    let folder = Folder::new("hostile_image");
    for (index, (bottom, top)) in
        [(0, u64::MAX), (u64::MAX - 8, u64::MAX), (u64::MAX, 0), (0, 0)].into_iter().enumerate()
    {
        let image = PathBuf::from(folder.path(&format!("{index}.elf")));
        std::fs::write(&image, image_with_stack(bottom, top)).unwrap();
        let rig = with(Cpu::Qemu, &[], |options| {
            options.image = Some(image);
            options.launch_timeout = Some(Duration::from_millis(300));
        });
        let kernel = rig.device.load_kernel("misbehave").unwrap();
        let params = MisbehaveParams { header: MisbehaveParams::HEADER, kind: Misbehaviour::WILD_FRAME };
        rig.stream.launch_and_drain(&kernel, &params).unwrap();
        let error = device_error(rig.stream.synchronize());
        assert_eq!(error.runtime_code(), 507_017, "{error}");
        assert!(error.to_string().contains("wild_frame (kernel/src/misbehave.rs:"), "{error}");
        // The scheduler has not panicked: the device works again.
        rig.device.restart().unwrap();
        copy_some(&rig, 20).0.unwrap();
    }
}

#[test]
fn device_outlives_the_thread_that_opened_it() {
    // QEMU is killed when the thread that has started it ends: that must not be the one that asked.
    let open = || std::thread::spawn(|| Rig::new(Cpu::Qemu)).join().unwrap();
    let rigs = [open(), open()];
    std::thread::sleep(Duration::from_millis(100));
    for rig in &rigs {
        copy_some(rig, 3).0.unwrap();
    }
}

#[test]
fn threads_of_before_a_restart_work_after_it() {
    let rig = rig(Cpu::Qemu, "undefined:n=2");
    let thread = rig.thread(4);
    let (src, dst) = (rig.buffer(&pattern(64, 9)), rig.buffer(&[0; 64]));
    let copy = |i| ListedCopy { thread: thread.0, dst: at(&dst, i), src: at(&src, i), len: 1 };
    let copies = |range: std::ops::Range<usize>| rig.copy_list(&range.map(copy).collect::<Vec<_>>(), false).map(|_| ());
    copies(0..6).unwrap();
    device_error(copies(6..7));
    rig.device.restart().unwrap();
    copies(6..64).unwrap();
    assert_eq!(rig.read(&dst), pattern(64, 9));
}

#[test]
fn native_panic_and_endless_kernel_fail_the_device_for_good() {
    for (fault, code, text) in [
        ("panic", 507_018, "faulted: panic: a kernel that was asked to panic"),
        ("hang", 507_017, "has not returned within 300ms"),
    ] {
        let limit = Duration::from_millis(300);
        let rig = with(Cpu::Native, &[fault], |options| options.launch_timeout = Some(limit));
        let error = kernel_error(&rig);
        assert_eq!(error.runtime_code(), code);
        assert!(error.to_string().ends_with(text), "{error}");
        let restart = rig.device.restart().unwrap_err().to_string();
        assert!(restart.starts_with("the device can't be restarted: "), "{restart}");
        let later = rig.device.malloc(1).map(|_| ()).unwrap_err().to_string();
        assert_eq!(later, format!("device already failed: {error}"));
    }
}

#[test]
fn faults_that_would_end_the_process_are_not_supported_natively() {
    for fault in [KernelFault::DataAbort, KernelFault::Undefined, KernelFault::StackOverflow] {
        let rule = FaultRule::new(Fault::Kernel(fault));
        let options = DeviceOptions { faults: FaultPlan::one(rule), ..DeviceOptions::native() };
        let error = host_stub::Device::open(options).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::UnsupportedFault(_)), "{error}");
    }
}

#[test]
fn restart_of_a_device_that_works_ends_what_runs() {
    let rig = with(Cpu::Qemu, &["hang"], |_| {});
    let thread = rig.thread(8);
    let buffer = rig.buffer(&[3; 64]);
    let copy = ListedCopy { thread: thread.0, dst: at(&buffer, 32), src: at(&buffer, 0), len: 16 };
    std::thread::scope(|scope| {
        let launch = scope.spawn(|| rig.copy_list(&[copy], false).map(|_| ()));
        std::thread::sleep(Duration::from_millis(100));
        rig.device.restart().unwrap();
        assert_eq!(device_error(launch.join().unwrap()), DeviceError::Restarted);
    });
    copy_some(&rig, 3).0.unwrap();
}

#[test]
fn faults_and_suspension_go_with_deterministic_mode() {
    for seed in 0..5 {
        let deterministic = |options: &mut DeviceOptions| options.deterministic = Some(seed);
        // The limit of 60 s is one of virtual time.
        let rig = with(Cpu::Native, &["dead-queue:after=1"], deterministic);
        let (result, arrived) = copy_some(&rig, 3);
        let error = device_error(result);
        assert!(arrived == 1 && error.to_string().contains("not done within 60s"), "{error}");
        assert!(matches!(rig.device.restart(), Err(Error::Restart(_))));

        let rig = with(Cpu::Native, &["slow-queue:time=2s", "doorbell:n=2"], deterministic);
        let error = device_error(copy_some(&rig, 3).0);
        assert!(error.to_string().contains("returned 16 (HCCL_E_DRV)"), "{error}");
        rig.comm.suspend().unwrap();
        rig.comm.resume().unwrap();
        let (result, arrived) = copy_some(&rig, 1);
        result.unwrap();
        assert_eq!(arrived, 1);
    }
}

/// Handle, destination and source of [`fills_the_ring`], and its codes.
static FILL: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
static CODES: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Makes four copies of one byte, with one second of patience.
extern "C-unwind" fn fills_the_ring(_args: *const c_void) -> u32 {
    let [thread, dst, src] = [0, 1, 2].map(|index: usize| FILL[index].load(Ordering::Relaxed));
    assert_eq!(HcommThreadResAcquireTimeOut(1.0), 0);
    let copy =
        |_| HcommLocalCopyOnThread(thread, without_provenance_mut(dst as usize), without_provenance(src as usize), 1);
    let codes: Vec<i32> = (0..4).map(copy).collect();
    let last = codes[3];
    *CODES.lock().unwrap() = codes;
    last as u32
}

/// Case 22.
#[test]
fn call_on_the_full_ring_of_a_dead_queue_answers_9_within_the_callers_limit() {
    let rig = rig(Cpu::Native, "dead-queue");
    let thread = rig.thread(4);
    let (src, dst) = (rig.buffer(&[1]), rig.buffer(&[0]));
    for (word, value) in FILL.iter().zip([thread.0, at(&dst, 0).0, at(&src, 0).0]) {
        word.store(value, Ordering::Relaxed);
    }
    let started = Instant::now();
    rig.stream.launch_bytes(&Kernel::native("fills_the_ring", fills_the_ring), &[]).unwrap();
    assert!(wait_until(|| !CODES.lock().unwrap().is_empty()), "the call does not end");
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(*CODES.lock().unwrap(), [0, 0, 0, 9]);
    // Gives up the three that are queued.
    rig.comm.suspend().unwrap();
    let error = device_error(rig.stream.synchronize());
    assert!(error.to_string().contains("kernel fills_the_ring returned 9 (HCCL_E_TIMEOUT)"), "{error}");
    assert_eq!(rig.read(&dst), [0]);
}
