//! Copies and reduces that the host queues on a stream, on the products that let it.

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::thread::Engine;
use host_stub::product::Product;
use host_stub::{Comm, Device, DeviceBuffer, DeviceOptions, Stream};

fn device(product: &str) -> Device {
    let product = Product::from_key(product).unwrap();
    Device::open(DeviceOptions { product, ..DeviceOptions::native() }).unwrap()
}

#[test]
fn host_copies_run_in_the_order_of_their_stream() {
    let device = device("atlas-800t-a2");
    let stream = Stream::new(&device);
    let buffer = device.malloc(101).unwrap();
    let mut bytes = [0; 101];
    bytes[0] = 9;
    device.copy_in(buffer.addr(), &bytes).unwrap();
    for i in 0..100 {
        stream.copy(buffer.at(i + 1), buffer.at(i), 1).unwrap();
    }
    stream.synchronize().unwrap();
    device.copy_out(buffer.addr(), &mut bytes).unwrap();
    assert_eq!(bytes, [9; 101]);
    assert_eq!(device.statistics().tasks, 100);
}

#[test]
fn host_copy_out_of_range_fails_the_device_and_is_named() {
    let device = device("atlas-a3-training");
    let stream = Stream::new(&device);
    let buffer = device.malloc(64).unwrap();
    stream.copy(buffer.at(1), buffer.addr(), 64).unwrap();
    let error = stream.synchronize().unwrap_err().to_string();
    let (from, to) = (buffer.addr().0, buffer.at(1).0);
    let expected = format!("device error 507001: stream {}: copy of 64 bytes from {from:#x} to {to:#x}: ", stream.id());
    assert!(error.starts_with(&expected) && error.contains("leaves its allocation"), "{error}");
    let again = stream.copy(buffer.at(1), buffer.addr(), 1).unwrap_err().to_string();
    assert!(again.starts_with("device already failed: stream "), "{again}");
}

/// Case 50.
#[test]
fn host_copy_is_refused_on_atlas_350_and_on_unsupported_products() {
    for (product, message) in [
        ("atlas-350", "Atlas 350 copies only in kernels, on threads of engine AICPU_TS"),
        ("atlas-training", "Atlas training is not supported: none of its threads can be acquired"),
    ] {
        let device = device(product);
        let buffer = device.malloc(64).unwrap();
        let error = Stream::new(&device).copy(buffer.at(32), buffer.addr(), 1).unwrap_err();
        assert_eq!(error.to_string(), message);
        let (data_type, op) = (DataType::INT8, ReduceOp::SUM);
        let error = Stream::new(&device).reduce(buffer.at(32), buffer.addr(), 1, data_type, op).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(device.statistics().tasks, 0);
    }
}

fn words(device: &Device, buffer: &DeviceBuffer) -> [i32; 4] {
    let mut bytes = [0; 16];
    device.copy_out(buffer.addr(), &mut bytes).unwrap();
    std::array::from_fn(|i| i32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()))
}

fn buffer(device: &Device, words: [i32; 4]) -> DeviceBuffer {
    let buffer = device.malloc(16).unwrap();
    device.copy_in(buffer.addr(), words.map(i32::to_le_bytes).as_flattened()).unwrap();
    buffer
}

#[test]
fn host_reduces_run_in_the_order_of_their_stream() {
    let device = device("atlas-800t-a2");
    let stream = Stream::new(&device);
    let (dst, src) = (buffer(&device, [1, -2, i32::MAX, 9]), buffer(&device, [5, -5, 1, 4]));
    let reduce = |count, op| stream.reduce(dst.addr(), src.addr(), count, DataType::INT32, op).unwrap();
    reduce(3, ReduceOp::SUM);
    reduce(2, ReduceOp::MIN);
    reduce(4, ReduceOp::MAX);
    reduce(0, ReduceOp::SUM);
    stream.synchronize().unwrap();
    assert_eq!(words(&device, &dst), [5, -5, 1, 9]);
    assert_eq!(device.statistics().tasks, 3);
}

#[test]
fn long_host_reduce_reaches_the_last_element() {
    const COUNT: usize = 100_003;
    let device = device("atlas-a3-inference");
    let stream = Stream::new(&device);
    let (dst, src) = (device.malloc(2 * COUNT as u64).unwrap(), device.malloc(2 * COUNT as u64).unwrap());
    let bytes = |words: &dyn Fn(usize) -> i16| -> Vec<u8> { (0..COUNT).flat_map(|i| words(i).to_le_bytes()).collect() };
    device.copy_in(dst.addr(), &bytes(&|i| i as i16)).unwrap();
    device.copy_in(src.addr(), &bytes(&|i| (i * 7) as i16)).unwrap();
    stream.reduce(dst.addr(), src.addr(), COUNT as u64, DataType::INT16, ReduceOp::SUM).unwrap();
    stream.synchronize().unwrap();
    let mut found = vec![0; 2 * COUNT];
    device.copy_out(dst.addr(), &mut found).unwrap();
    assert!(found == bytes(&|i| (i * 8) as i16));
}

#[test]
fn partial_overlap_of_the_hosts_ranges_is_reported_and_equal_ranges_are_not() {
    let device = device("atlas-800t-a2");
    let stream = Stream::new(&device);
    let both = buffer(&device, [1, 2, 3, 4]);
    stream.reduce(both.addr(), both.addr(), 4, DataType::INT32, ReduceOp::SUM).unwrap();
    stream.copy(both.addr(), both.addr(), 16).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(words(&device, &both), [2, 4, 6, 8]);
    stream.copy(both.at(4), both.addr(), 12).unwrap();
    let error = stream.synchronize().unwrap_err().to_string();
    assert!(error.ends_with("src and dst overlap in part"), "{error}");
    assert_eq!(words(&device, &both), [2, 4, 6, 8]);
}

/// Case 211.
#[test]
fn arguments_are_checked_as_in_a_kernel() {
    let device = device("atlas-800t-a2");
    let (stream, buffer) = (Stream::new(&device), device.malloc(64).unwrap());
    let (null, some) = (hcomm_aicpu::spec::DeviceAddr(0), buffer.addr());
    for (dst, src, len) in [(null, some, 0), (some, null, 0), (some, null, u64::MAX), (some, some, u64::MAX)] {
        let expected = hcomm_aicpu::copy::validate(dst, src, len).unwrap_err().to_string();
        assert_eq!(stream.copy(dst, src, len).unwrap_err().to_string(), expected);
        let (data_type, op) = (DataType::INT16, ReduceOp::SUM);
        let expected = hcomm_aicpu::reduce::validate(dst, src, len, data_type, op).unwrap_err().to_string();
        assert_eq!(stream.reduce(dst, src, len, data_type, op).unwrap_err().to_string(), expected);
    }
    assert_eq!(device.statistics().tasks, 0);
}

#[test]
fn range_of_the_host_may_end_with_the_address_space_and_not_go_past_it() {
    let device = device("atlas-800t-a2");
    let (stream, src) = (Stream::new(&device), device.malloc(64).unwrap());
    let last = hcomm_aicpu::spec::DeviceAddr(u64::MAX);
    let error = stream.copy(last, src.addr(), 2).unwrap_err().to_string();
    assert_eq!(error, format!("{last} + 2 bytes is past the end of the address space"));
    stream.copy(last, src.addr(), 1).unwrap();
    assert!(stream.synchronize().is_err());
}

#[test]
fn thread_without_a_stream_of_the_program_has_one_that_its_communicator_waits_for() {
    two_threads_in_step(&device("atlas-a3-training"));
}

#[test]
fn threads_without_a_stream_of_the_program_are_in_step_under_any_seed() {
    let product = Product::from_key("atlas-800t-a2").unwrap();
    for seed in 0..50 {
        two_threads_in_step(&Device::open(DeviceOptions { product, ..DeviceOptions::deterministic(seed) }).unwrap());
    }
}

fn two_threads_in_step(device: &Device) {
    let comm = Comm::new(device).unwrap();
    let threads = comm.acquire_threads(Engine::CPU_TS, 2, 1).unwrap();
    let [first, second] = [threads[0], threads[1]].map(|thread| comm.thread_stream(thread).unwrap());
    assert_eq!(comm.thread_info(threads[0]).unwrap().stream_id, first.id());
    assert_ne!(first.id(), second.id());
    let (one, two, dst) = (buffer(device, [1; 4]), buffer(device, [2; 4]), buffer(device, [0; 4]));
    // The second thread copies what the first has copied: only the notify says that it comes later.
    comm.notify_wait(&second, threads[1], 0, 60).unwrap();
    second.copy(dst.addr(), two.addr(), 16).unwrap();
    first.copy(two.addr(), one.addr(), 16).unwrap();
    comm.notify_record(&first, threads[0], threads[1], 0).unwrap();
    comm.synchronize().unwrap();
    assert_eq!(words(device, &dst), [1; 4]);

    let aicpu = comm.acquire_threads(Engine::AICPU_TS, 1, 1).unwrap()[0];
    for wrong in [aicpu, hcomm_aicpu::spec::thread::ThreadHandle(0)] {
        assert!(comm.thread_stream(wrong).is_err());
    }
}

#[test]
fn error_on_a_threads_own_stream_is_told_when_its_communicator_is_synchronised() {
    let device = device("atlas-a3-training");
    let comm = Comm::new(&device).unwrap();
    let thread = comm.acquire_threads(Engine::CPU_TS, 1, 1).unwrap()[0];
    let stream = comm.thread_stream(thread).unwrap();
    comm.notify_wait(&stream, thread, 0, 1).unwrap();
    let error = comm.synchronize().unwrap_err().to_string();
    let text = format!("507048: stream {}: notify ", stream.id());
    assert!(error.contains(&text) && error.ends_with("was not recorded within 1 s"), "{error}");
}
