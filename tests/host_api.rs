//! Answers of the host API to wrong calls, and to kernels that end badly, on the native CPU.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::{Engine, ThreadHandle};
use hcomm_kernel::{Control, LocalCopyParams};
use hcomm_testkit::wait_until;
use host_stub::{Comm, CommOptions, Cpu, Device, DeviceOptions, Kernel, Stream, ThreadConfig};

fn device() -> Device {
    device_with(16 << 20)
}

fn device_with(hbm_size: u64) -> Device {
    Device::open(DeviceOptions { hbm_size, ..DeviceOptions::native() }).unwrap()
}

fn comm(device: &Device) -> Comm {
    Comm::with_options(device, CommOptions { ccl_buffer: Some(4096) }).unwrap()
}

/// What a copy of one byte on `thread` ends with.
fn copy_byte(device: &Device, thread: ThreadHandle) -> Result<(), host_stub::Error> {
    let buffer = device.malloc(2)?;
    let params = LocalCopyParams {
        header: LocalCopyParams::HEADER,
        thread: thread.0,
        user_in: buffer.addr(),
        ccl_buf: buffer.at(1),
        ccl_buf_size: 1,
        len: 1,
        control: Control::NONE,
    };
    let stream = Stream::new(device);
    stream.launch_and_drain(&device.load_kernel("local_copy")?, &params)?;
    stream.synchronize()
}

extern "C-unwind" fn panics(_args: *const c_void) -> u32 {
    panic!("value {} is wrong", 7);
}

/// Which launches of [`returns_when_told`] may return: one bit each.
static MAY_RETURN: AtomicU32 = AtomicU32::new(0);

extern "C-unwind" fn returns_when_told(args: *const c_void) -> u32 {
    // SAFETY: each launch of it has one word of parameters.
    let which = unsafe { args.cast::<u32>().read_unaligned() };
    (!wait_until(|| MAY_RETURN.load(Ordering::Relaxed) & which != 0)).into()
}

extern "C-unwind" fn counts_args(args: *const c_void) -> u32 {
    u32::from(!args.is_null())
}

/// Case 52.
#[test]
fn acquire_is_all_or_nothing() {
    let device = device();
    let comm = comm(&device);
    comm.acquire_threads_with(&ThreadConfig::new(2).depth(65_536).notifies(1)).unwrap();
    // The rings of two such threads take 8 MiB; three more do not fit, although the first one does.
    let error = comm.acquire_threads_with(&ThreadConfig::new(3).depth(65_536)).unwrap_err().to_string();
    assert!(error.starts_with("no room for 4194304 bytes"), "{error}");
    let thread = comm.acquire_threads_with(&ThreadConfig::new(1).depth(65_536)).unwrap()[0];
    copy_byte(&device, thread).unwrap();
}

/// Case 52.
#[test]
fn notifies_of_a_refused_acquire_come_back() {
    let device = device();
    let comm = comm(&device);
    for _ in 0..3 {
        // The first ring fits, the others do not.
        comm.acquire_threads_with(&ThreadConfig::new(8).depth(65_536).notifies(5000)).unwrap_err();
    }
    let other = Comm::new(&device).unwrap();
    for (comm, notifies) in [(&comm, 65_535), (&comm, 1), (&other, 65_535), (&other, 1)] {
        comm.acquire_threads_with(&ThreadConfig::new(1).depth(2).notifies(notifies)).unwrap();
    }
}

/// Case 52.
#[test]
fn wrong_thread_configs_are_refused() {
    // Two pages for each ring.
    let device = device_with(32 << 20);
    let comm = comm(&device);
    let message = |config: ThreadConfig| comm.acquire_threads_with(&config).unwrap_err().to_string();
    assert_eq!(message(ThreadConfig::new(0)), "0 threads: must be from 1 to 2048");
    assert_eq!(message(ThreadConfig::new(2049)), "2049 threads: must be from 1 to 2048");
    assert_eq!(message(ThreadConfig::new(1).notifies(65_536)), "65536 notifies a thread: must be at most 65535");
    for notifies in [0, 1] {
        assert_eq!(comm.acquire_threads_with(&ThreadConfig::new(1).notifies(notifies).depth(2)).unwrap().len(), 1);
    }
    assert_eq!(message(ThreadConfig::new(1).depth(1)), "a ring of 1 entries: must be from 2 to 65536");
    let host = ThreadConfig { engine: Engine::CPU_TS, ..ThreadConfig::new(1) };
    assert_eq!(comm.acquire_threads_with(&host).unwrap().len(), 1);
    let rest = comm.acquire_threads_with(&ThreadConfig::new(1997).depth(2)).unwrap();
    assert_eq!(rest.len(), 1997);
    assert_eq!(message(ThreadConfig::new(49).depth(2)), "49 threads: only 48 of 2048 are free");
}

#[test]
fn handle_of_a_dropped_comm_is_refused_also_when_its_slot_lives_again() {
    let device = device();
    let first = comm(&device);
    let old = first.acquire_threads(Engine::AICPU_TS, 1, 0).unwrap()[0];
    copy_byte(&device, old).unwrap();
    drop(first);
    let gone = copy_byte(&device, old).unwrap_err().to_string();
    assert!(gone.contains("returned 6 (HCCL_E_NOT_FOUND)"), "{gone}");
    let second = comm(&device);
    let new = second.acquire_threads(Engine::AICPU_TS, 1, 0).unwrap()[0];
    assert_eq!((new.addr(), new.generation()), (old.addr(), old.generation() + 1));
    let stale = copy_byte(&device, old).unwrap_err().to_string();
    assert!(stale.contains("returned 6 (HCCL_E_NOT_FOUND)"), "{stale}");
    copy_byte(&device, new).unwrap();
    assert_eq!(second.thread_statistics(old), None);
    assert_eq!(second.thread_statistics(new).unwrap().tasks, 1);
}

#[test]
fn copies_of_the_host_are_checked_to_the_byte() {
    let device = device();
    let buffer = device.malloc(10).unwrap();
    device.copy_in(buffer.addr(), &[1; 10]).unwrap();
    let error = device.copy_in(buffer.at(1), &[2; 10]).unwrap_err().to_string();
    assert!(error.contains("+ 10 bytes leaves its allocation"), "{error}");
    let mut out = [0; 10];
    device.copy_out(buffer.addr(), &mut out).unwrap();
    assert_eq!(out, [1; 10]);
    let addr = buffer.addr();
    drop(buffer);
    assert!(device.copy_out(addr, &mut out).unwrap_err().to_string().contains("which was freed"));
    assert!(device.free(addr).unwrap_err().to_string().contains("has been freed already"));
    let host = [0u8; 1];
    let outside = device.copy_in(DeviceAddr::from(host.as_ptr()), &[1]).unwrap_err().to_string();
    assert!(outside.contains("is not in hbm"), "{outside}");
}

/// Case 58.
#[test]
fn kernels_get_null_without_parameters_and_refuse_those_of_others() {
    let device = device();
    let stream = Stream::new(&device);
    let counts = Kernel::native("counts_args", counts_args);
    stream.launch_bytes(&counts, &[]).unwrap();
    stream.synchronize().unwrap();
    stream.launch_bytes(&counts, &[1]).unwrap();
    assert!(stream.synchronize().unwrap_err().to_string().contains("counts_args returned 1"));
    stream.launch_bytes(&device.load_kernel("local_copy").unwrap(), &[0; 56]).unwrap();
    let error = stream.synchronize().unwrap_err().to_string();
    assert!(error.contains("local_copy returned 1 (HCCL_E_PARA)"), "{error}");
}

#[test]
fn missing_kernel_and_image_are_named() {
    let error = device().load_kernel("global_copy").unwrap_err().to_string();
    assert!(error.starts_with("no kernel global_copy: there are ") && error.contains("local_copy"), "{error}");
    let options = DeviceOptions { cpu: Cpu::Qemu, image: Some("/nowhere/image".into()), ..DeviceOptions::default() };
    let error = Device::open(options).err().unwrap().to_string();
    assert!(error.starts_with("device image /nowhere/image: "), "{error}");
}

#[test]
fn panic_of_a_kernel_fails_the_device_with_its_text() {
    let device = device();
    let stream = Stream::new(&device);
    stream.launch_bytes(&Kernel::native("panics", panics), &[]).unwrap();
    let error = stream.synchronize().unwrap_err().to_string();
    assert!(error.starts_with("device error 507018: ") && error.ends_with("panic: value 7 is wrong"), "{error}");
    let later = stream.synchronize().unwrap_err().to_string();
    assert!(later.starts_with("device already failed: ") && later.ends_with("panic: value 7 is wrong"), "{later}");
}

#[test]
fn kernel_that_overruns_is_abandoned_and_the_device_closes_at_once() {
    let options = DeviceOptions { launch_timeout: Some(Duration::from_millis(50)), ..DeviceOptions::native() };
    let device = Device::open(options).unwrap();
    let stream = Stream::new(&device);
    stream.launch_bytes(&Kernel::native("returns_late", returns_when_told), &1_u32.to_le_bytes()).unwrap();
    let error = stream.synchronize().unwrap_err().to_string();
    assert!(error.starts_with("device error 507017: ") && error.ends_with("has not returned within 50ms"), "{error}");
    drop(stream);
    drop(device);
    // The device has closed while its kernel still ran.
    MAY_RETURN.fetch_or(1, Ordering::Relaxed);
}

#[test]
fn wait_with_a_limit_leaves_the_work_running() {
    let device = device();
    let stream = Stream::new(&device);
    stream.launch_bytes(&Kernel::native("returns_late", returns_when_told), &2_u32.to_le_bytes()).unwrap();
    let error = stream.synchronize_for(Duration::from_millis(20)).unwrap_err().to_string();
    assert!(error.ends_with("1 operations have not completed within 20ms"), "{error}");
    MAY_RETURN.fetch_or(2, Ordering::Relaxed);
    stream.synchronize().unwrap();
}

/// Case 120.
#[test]
fn no_bytes_are_copied_anywhere() {
    let device = device();
    let buffer = device.malloc(100).unwrap();
    for addr in [buffer.at(0), buffer.at(100), buffer.at(101), DeviceAddr(0), DeviceAddr(u64::MAX)] {
        device.copy_in(addr, &[]).unwrap();
        device.copy_out(addr, &mut []).unwrap();
    }
}
