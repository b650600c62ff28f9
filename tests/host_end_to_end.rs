//! A copy from the host API through kernel, ring, doorbell and scheduler, on both CPUs. Needs the image (`make image`).

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::{Control, LocalCopyParams};
use host_stub::{Comm, CommOptions, Cpu, Device, DeviceOptions, Stream, ThreadConfig};

const GUARD: usize = 64;

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(31).wrapping_add(i >> 8).wrapping_add(seed)) as u8).collect()
}

struct Setup {
    device: Device,
    comm: Comm,
    thread: ThreadHandle,
    stream: Stream,
}

fn setup(cpu: Cpu, depth: u32) -> Setup {
    let device = Device::open(DeviceOptions { cpu, ..DeviceOptions::default() }).unwrap();
    let comm = Comm::with_options(&device, CommOptions { ccl_buffer: Some(4 << 20) }).unwrap();
    let thread = comm.acquire_threads_with(&ThreadConfig::new(1).depth(depth)).unwrap()[0];
    let stream = Stream::new(&device);
    Setup { device, comm, thread, stream }
}

fn params(thread: ThreadHandle, dst: DeviceAddr, src: DeviceAddr, len: u64) -> LocalCopyParams {
    let header = LocalCopyParams::HEADER;
    LocalCopyParams {
        header,
        thread: thread.0,
        user_in: src,
        ccl_buf: dst,
        ccl_buf_size: len,
        len,
        control: Control::NONE,
    }
}

/// `rounds` copies of `len` bytes through a ring of `depth` entries, with untouched bytes around each destination.
fn copies_arrive(cpu: Cpu, depth: u32, rounds: usize, len: usize) {
    let Setup { device, comm, thread, stream } = setup(cpu, depth);
    let kernel = device.load_kernel("local_copy").unwrap();
    let user_in = device.malloc(len as u64).unwrap();
    let (ccl_buf, _) = comm.hccl_buffer().unwrap();
    let dst = DeviceAddr(ccl_buf.0 + GUARD as u64);
    for round in 0..rounds {
        let input = bytes(len, round);
        device.copy_in(user_in.addr(), &input).unwrap();
        device.copy_in(ccl_buf, &vec![0xee; len + 2 * GUARD]).unwrap();

        let stats = stream.launch_and_drain(&kernel, &params(thread, dst, user_in.addr(), len as u64)).unwrap();
        stream.synchronize().unwrap();

        let mut out = vec![0; len + 2 * GUARD];
        device.copy_out(ccl_buf, &mut out).unwrap();
        let expected = [&[0xee; GUARD][..], &input, &[0xee; GUARD]].concat();
        assert!(out == expected, "round {round}");
        assert_eq!((stats.tasks(), stats.doorbells()), (1, 1), "round {round}");
    }
    let total = comm.thread_statistics(thread).unwrap();
    assert_eq!((total.tasks, total.doorbells), (rounds as u64, rounds as u64));
}

#[test]
fn copies_arrive_over_laps_of_the_ring_native() {
    copies_arrive(Cpu::Native, 5, 23, 256);
}

#[test]
fn copies_arrive_over_laps_of_the_ring_qemu() {
    copies_arrive(Cpu::Qemu, 5, 23, 256);
}

#[test]
fn copy_that_an_engine_makes_arrives_native() {
    copies_arrive(Cpu::Native, 2, 3, (1 << 20) + 1);
}

#[test]
fn copy_that_an_engine_makes_arrives_qemu() {
    copies_arrive(Cpu::Qemu, 2, 3, (1 << 20) + 1);
}

#[test]
fn launches_queue_up_on_a_stream() {
    for cpu in [Cpu::Native, Cpu::Qemu] {
        let Setup { device, comm: _comm, thread, stream } = setup(cpu, 8);
        let kernel = device.load_kernel("local_copy").unwrap();
        let buffer = device.malloc(101).unwrap();
        device.copy_in(buffer.addr(), &[9]).unwrap();
        for i in 0..100 {
            stream.launch_and_drain(&kernel, &params(thread, buffer.at(i + 1), buffer.at(i), 1)).unwrap();
        }
        stream.synchronize().unwrap();
        let mut out = [0; 101];
        device.copy_out(buffer.addr(), &mut out).unwrap();
        assert_eq!(out, [9; 101]);
    }
}

#[test]
fn kernel_code_is_reported_and_the_device_goes_on() {
    for cpu in [Cpu::Native, Cpu::Qemu] {
        let Setup { device, comm: _comm, thread, stream } = setup(cpu, 8);
        let kernel = device.load_kernel("local_copy").unwrap();
        let buffer = device.malloc(64).unwrap();
        let null = params(thread, DeviceAddr(0), buffer.addr(), 1);
        stream.launch_and_drain(&kernel, &null).unwrap();
        let error = stream.synchronize().unwrap_err().to_string();
        assert!(error.contains("507018") && error.contains("kernel local_copy returned 2 (HCCL_E_PTR)"), "{error}");
        stream.launch_and_drain(&kernel, &params(thread, buffer.at(1), buffer.addr(), 1)).unwrap();
        stream.synchronize().unwrap();
    }
}

#[test]
fn translation_fault_names_the_task_and_is_kept() {
    for cpu in [Cpu::Native, Cpu::Qemu] {
        let Setup { device, comm: _comm, thread, stream } = setup(cpu, 8);
        let kernel = device.load_kernel("local_copy").unwrap();
        let buffer = device.malloc(64).unwrap();
        stream.launch_and_drain(&kernel, &params(thread, buffer.at(1), buffer.addr(), 64)).unwrap();
        let error = stream.synchronize().unwrap_err().to_string();
        let range = format!("dst of 64 bytes: {:#x} + 64 bytes leaves its allocation", buffer.at(1).0);
        assert!(error.starts_with("device error 507001: stream ") && error.contains(&range), "{error}");
        let again = stream.launch_and_drain(&kernel, &params(thread, buffer.at(1), buffer.addr(), 1)).unwrap_err();
        assert!(again.to_string().starts_with("device already failed: stream "), "{again}");
    }
}

#[test]
fn devices_work_side_by_side() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| copies_arrive(Cpu::Native, 3, 50, 300));
        }
    });
}

#[test]
fn copy_above_one_chunk_moves_what_was_touched() {
    for cpu in [Cpu::Native, Cpu::Qemu] {
        let Setup { device, comm: _comm, thread, stream } = setup(cpu, 8);
        let kernel = device.load_kernel("local_copy").unwrap();
        let len = (5 << 30) + 3;
        let (src, dst) = (device.malloc(len).unwrap(), device.malloc(len).unwrap());
        // On both sides of the end of the first chunk, at 4 GiB - 2 MiB, and at both ends.
        let places = [0, (4 << 30) - (2 << 20) - 50, len - 100];
        for (seed, place) in places.into_iter().enumerate() {
            device.copy_in(src.at(place), &bytes(100, seed)).unwrap();
        }
        device.copy_in(dst.at(1 << 30), &[0xee; 100]).unwrap();

        let stats = stream.launch_and_drain(&kernel, &params(thread, dst.addr(), src.addr(), len)).unwrap();
        stream.synchronize().unwrap();

        let read = |place| {
            let mut out = [1; 100];
            device.copy_out(dst.at(place), &mut out).unwrap();
            out.to_vec()
        };
        for (seed, place) in places.into_iter().enumerate() {
            assert_eq!(read(place), bytes(100, seed));
        }
        assert_eq!(read(1 << 30), [0; 100]);
        assert_eq!((stats.tasks(), stats.doorbells()), (2, 1));
    }
}
