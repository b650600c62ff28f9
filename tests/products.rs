//! Products: those that the document supports copy in kernels, with the descriptors of their SoC, on both CPUs.

use hcomm_aicpu::spec::thread::Engine;
use hcomm_kernel::ListedCopy;
use hcomm_testkit::{CPUS, Rig, at, pattern};
use host_stub::product::{Acquire, PRODUCTS, Product, Side};
use host_stub::{Comm, Device, DeviceOptions};

fn supported() -> impl Iterator<Item = &'static Product> {
    PRODUCTS.iter().filter(|product| product.soc.is_some())
}

#[test]
fn every_supported_product_copies() {
    for product in supported() {
        for cpu in CPUS {
            let rig = Rig::with_options(DeviceOptions { cpu, product, ..DeviceOptions::default() });
            let thread = rig.thread(8);
            let bytes = pattern(3000, 1);
            let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 3000]));
            let copy =
                |n: usize| ListedCopy { thread: thread.0, dst: at(&dst, n * 100), src: at(&src, n * 100), len: 100 };
            let stats = rig.copy_list(&(0..30).map(copy).collect::<Vec<_>>(), false).unwrap();
            assert_eq!(stats.tasks(), 30, "{} {cpu:?}", product.name);
            assert!(rig.read(&dst) == bytes, "{} {cpu:?}", product.name);
        }
    }
}

/// Task ids of an A2 or A3 stream have 16 bits: a place holder goes before the first task of each new round.
#[test]
fn place_holders_go_through_when_task_ids_start_anew() {
    for product in supported().filter(|product| product.key != "atlas-350").take(4) {
        for cpu in CPUS {
            let rig = Rig::with_options(DeviceOptions { cpu, product, ..DeviceOptions::default() });
            let thread = rig.thread(2048);
            let (src, dst) = (rig.buffer(&[7]), rig.buffer(&[0]));
            let copy = ListedCopy { thread: thread.0, dst: dst.addr(), src: src.addr(), len: 1 };
            rig.copy_list(&vec![copy; 66_000], true).unwrap();
            let queue = rig.comm.thread_statistics(thread).unwrap();
            assert_eq!(queue.tasks, 66_001, "{} {cpu:?}", product.name);
            assert_eq!(rig.read(&dst), [7]);
        }
    }
}

#[test]
fn unsupported_products_refuse_every_thread_before_anything_is_allocated() {
    for product in PRODUCTS.iter().filter(|product| product.soc.is_none()) {
        let device = Device::open(DeviceOptions { product, ..DeviceOptions::native() }).unwrap();
        let comm = Comm::new(&device).unwrap();
        for engine in [Engine::AICPU_TS, Engine::CPU_TS, Engine(4), Engine(-1)] {
            // Also of numbers that no product has room for.
            for (count, notifies) in [(1, 1), (2, 65_535), (0, 65_536)] {
                let error = comm.acquire_threads(engine, count, notifies).unwrap_err().to_string();
                assert_eq!(error, format!("{} is not supported: none of its threads can be acquired", product.name));
            }
        }
    }
}

#[test]
fn table_of_the_readme_is_what_the_code_answers() {
    let text = std::fs::read_to_string(hcomm_testkit::root().join("README.md")).unwrap();
    let shown: Vec<&str> = text.lines().filter(|line| line.starts_with("| Atlas ")).collect();
    let yes = |answer: bool| if answer { "yes" } else { "no" };
    let row = |product: &Product| {
        let [of_host, of_kernels] = [Engine::CPU_TS, Engine::AICPU_TS];
        let threads = [of_host, of_kernels].map(|engine| yes(product.engine_for(Acquire::Threads, engine).is_ok()));
        let copies = [(Side::Host, of_host), (Side::Device, of_kernels)]
            .map(|(side, on)| yes(product.may_copy(side, on).is_ok()));
        let (threads, copies) = (threads.join(", "), copies.join(", "));
        format!("| {} | `{}` | {} | {threads} | {copies} |", product.name, product.key, product.soc_name)
    };
    assert_eq!(shown, PRODUCTS.iter().map(row).collect::<Vec<_>>());
}
