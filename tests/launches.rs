//! Launches: their parameters, their number, their proof that they ran, and devices with different images.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::{Control, CopyListParams, LocalCopyParams};
use hcomm_testkit::{CPUS, Rig, at, pattern};
use host_stub::loader::find;
use host_stub::{Cpu, Device, DeviceOptions, Fault, FaultPlan, FaultRule, Kernel};

/// Case 56.
#[test]
fn each_launch_owns_its_parameters() {
    for cpu in CPUS {
        let slow = FaultPlan::one(FaultRule::new(Fault::SlowQueue(Duration::from_millis(20))));
        let rig = Rig::with_options(DeviceOptions { cpu, faults: slow, ..DeviceOptions::default() });
        let thread = rig.thread(4);
        let (src, dst) = (rig.buffer(&pattern(100, 1)), rig.buffer(&[0; 100]));
        let kernel = rig.device.load_kernel("local_copy").unwrap();
        let mut params = LocalCopyParams {
            header: LocalCopyParams::HEADER,
            thread: thread.0,
            user_in: at(&src, 0),
            ccl_buf: at(&dst, 0),
            ccl_buf_size: 100,
            len: 0,
            control: Control::NONE,
        };
        // One struct for all, changed while the launches before wait: lengths 1, 2, 3, ..., one behind the other.
        let mut end = 0;
        for len in 1..=10 {
            (params.user_in, params.ccl_buf, params.len) = (at(&src, end), at(&dst, end), len);
            rig.stream.launch_and_drain(&kernel, &params).unwrap();
            end += len as usize;
        }
        rig.stream.synchronize().unwrap();
        let expected = [&pattern(100, 1)[..end], &vec![0; 100 - end]].concat();
        assert_eq!(rig.read(&dst), expected);
    }
}

static RUNS: AtomicU32 = AtomicU32::new(0);

extern "C-unwind" fn empty(_args: *const std::ffi::c_void) -> u32 {
    RUNS.fetch_add(1, Ordering::Relaxed);
    0
}

/// Case 59.
#[test]
fn empty_kernel_proves_that_it_ran_and_a_missing_one_is_no_kernel_that_failed() {
    let rig = Rig::new(Cpu::Native);
    rig.stream.launch_bytes(&Kernel::native("empty", empty), &[]).unwrap();
    rig.stream.synchronize().unwrap();
    assert_eq!(RUNS.load(Ordering::Relaxed), 1);

    let rig = Rig::new(Cpu::Qemu);
    // Nothing to copy: the processor has counted its instructions.
    let params = CopyListParams { header: CopyListParams::HEADER, list: at_zero(), count: 0, batch: 0 };
    let stats = rig.stream.launch_and_drain(&rig.device.load_kernel("copy_list").unwrap(), &params).unwrap();
    rig.stream.synchronize().unwrap();
    assert!(stats.instructions() > 0 && stats.tasks() == 0, "{stats:?}");

    let missing = rig.device.load_kernel("nothing").map(|_| ()).unwrap_err().to_string();
    assert!(missing.starts_with("no kernel nothing: there are "), "{missing}");
    let on_the_wrong_cpu = rig.stream.launch_bytes(&Kernel::native("empty", empty), &[]).unwrap_err().to_string();
    assert!(on_the_wrong_cpu.contains("kernel empty is not for the cpu of this device"), "{on_the_wrong_cpu}");
}

fn at_zero() -> hcomm_aicpu::spec::DeviceAddr {
    hcomm_aicpu::spec::DeviceAddr(0)
}

/// A device with the image at `path`.
fn device(path: &Path) -> Device {
    Device::open(DeviceOptions { cpu: Cpu::Qemu, image: Some(path.into()), ..DeviceOptions::default() }).unwrap()
}

/// Case 61.
#[test]
fn two_devices_run_different_builds_of_one_name() {
    let folder = std::env::temp_dir().join(format!("hcomm-builds-{}", std::process::id()));
    let mut image = std::fs::read(find().unwrap()).unwrap();
    let (first, second) = (folder.join("1/hcomm-image"), folder.join("2/hcomm-image"));
    for path in [&first, &second] {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    }
    std::fs::write(&first, &image).unwrap();
    // The other build has a kernel of another name.
    let (old, new) = (b"local_copy\0", b"loCal_copy\0");
    let places: Vec<_> = (0..image.len() - old.len()).filter(|at| image[*at..].starts_with(old)).collect();
    places.iter().for_each(|at| image[*at..at + new.len()].copy_from_slice(new));
    std::fs::write(&second, &image).unwrap();

    let (one, two) = (device(&first), device(&second));
    assert_ne!(one.slot(), two.slot());
    for (device, has, has_not) in [(&one, "local_copy", "loCal_copy"), (&two, "loCal_copy", "local_copy")] {
        assert!(device.load_kernel(has_not).is_err());
        let comm = host_stub::Comm::new(device).unwrap();
        let thread = comm.acquire_threads(hcomm_aicpu::spec::thread::Engine::AICPU_TS, 1, 0).unwrap()[0];
        let buffer = device.malloc(16).unwrap();
        device.copy_in(buffer.addr(), &[5; 8]).unwrap();
        let params = LocalCopyParams {
            header: LocalCopyParams::HEADER,
            thread: thread.0,
            user_in: buffer.addr(),
            ccl_buf: at(&buffer, 8),
            ccl_buf_size: 8,
            len: 8,
            control: Control::NONE,
        };
        let stream = host_stub::Stream::new(device);
        stream.launch_and_drain(&device.load_kernel(has).unwrap(), &params).unwrap();
        stream.synchronize().unwrap();
        let mut out = [0; 16];
        device.copy_out(buffer.addr(), &mut out).unwrap();
        assert_eq!(out, [5; 16]);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Case 61, 168.
#[test]
fn ten_thousand_launches_leave_memory_flat() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.thread(8);
        let buffer = rig.buffer(&pattern(32, 1));
        let kernel = rig.device.load_kernel("local_copy").unwrap();
        let params = LocalCopyParams {
            header: LocalCopyParams::HEADER,
            thread: thread.0,
            user_in: at(&buffer, 0),
            ccl_buf: at(&buffer, 16),
            ccl_buf_size: 16,
            len: 16,
            control: Control::NONE,
        };
        let run = |count| {
            for _ in 0..count {
                rig.stream.launch_and_drain(&kernel, &params).unwrap();
                rig.stream.synchronize().unwrap();
            }
        };
        run(100);
        let free = rig.device.free_memory();
        // A leak grows each time; what other tests of this process take, they take once.
        let grown = [(); 5].map(|()| {
            let before = resident();
            run(2000);
            resident().saturating_sub(before)
        });
        assert_eq!(rig.device.free_memory(), free, "device memory leaks");
        // A leak of a page in each launch would take 8 MB.
        assert!(grown.into_iter().any(|bytes| bytes < 4 << 20), "{grown:?} bytes more in 5 times 2000 launches");
        assert_eq!(rig.device.statistics().tasks, 10_100);
    }
}
