//! Copies that the host queues on a stream, on the products that let it.

use host_stub::product::Product;
use host_stub::{Device, DeviceOptions, Stream};

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

#[test]
fn case_50_host_copy_is_refused_on_atlas_350_and_on_unsupported_products() {
    for (product, message) in [
        ("atlas-350", "Atlas 350 copies only in kernels, on threads of engine AICPU_TS"),
        ("atlas-training", "Atlas training is not supported: none of its threads can be acquired"),
    ] {
        let device = device(product);
        let buffer = device.malloc(64).unwrap();
        let error = Stream::new(&device).copy(buffer.at(32), buffer.addr(), 1).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(device.statistics().tasks, 0);
    }
}
