//! Notifies of the host that a kernel names by their id, on both CPUs: A2 and A3 have them, Atlas 350 has not.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::stars910::MAX_NOTIFY_ID;
use hcomm_testkit::calls::{aclrt_record, aclrt_wait, copy};
use hcomm_testkit::{CPUS, Rig, pattern};
use host_stub::product::{PRODUCTS, Product};
use host_stub::{Cpu, DeviceOptions, Notify};

fn rig(cpu: Cpu, product: &'static Product) -> Rig {
    Rig::with_options(DeviceOptions { cpu, product, ..DeviceOptions::default() })
}

fn a2_and_a3() -> impl Iterator<Item = &'static Product> {
    PRODUCTS.iter().filter(|product| product.soc.is_some() && product.key != "atlas-350")
}

/// The older form of the control pair: two notifies of the host, whose ids the kernel is told.
#[test]
fn kernel_waits_for_a_notify_of_the_host_and_records_another() {
    for product in a2_and_a3() {
        for cpu in CPUS {
            let rig = rig(cpu, product);
            let thread = rig.threads(1, 0, 8)[0];
            let (start, end) = (Notify::new(&rig.device).unwrap(), Notify::new(&rig.device).unwrap());
            let (src, dst) = (rig.buffer(&pattern(64, 1)), rig.buffer(&[0; 64]));
            for _ in 0..5 {
                rig.device.copy_in(dst.addr(), &[0; 64]).unwrap();
                start.record(&rig.stream).unwrap();
                let launched = rig.launch_calls(&[
                    aclrt_wait(thread, start.id().into(), 60),
                    copy(thread, dst.addr(), src.addr(), 64),
                    aclrt_record(thread, end.id().into()),
                ]);
                end.wait_and_reset(&rig.stream, 60).unwrap();
                // Strict: work that the end notify did not order would be an error.
                rig.stream.synchronize().unwrap();
                assert_eq!(rig.codes(&launched), [0; 3], "{} {cpu:?}", product.name);
                assert_eq!(rig.read(&dst), pattern(64, 1), "{} {cpu:?}", product.name);
            }
        }
    }
}

#[test]
fn wait_holds_its_queue_until_the_host_records() {
    for cpu in CPUS {
        let rig = rig(cpu, Product::from_key("atlas-a3-training").unwrap());
        let thread = rig.threads(1, 0, 8)[0];
        let (start, end) = (Notify::new(&rig.device).unwrap(), Notify::new(&rig.device).unwrap());
        let (src, dst) = (rig.buffer(&[7; 8]), rig.buffer(&[0; 8]));
        let list = [
            aclrt_wait(thread, start.id().into(), 60),
            copy(thread, dst.addr(), src.addr(), 8),
            aclrt_record(thread, end.id().into()),
        ];
        let launched = rig.launch_calls(&list);
        while rig.comm.thread_statistics(thread).unwrap().doorbells < 3 {
            std::thread::yield_now();
        }
        assert_eq!(rig.read(&dst), [0; 8], "{cpu:?}");
        start.record(&rig.stream).unwrap();
        end.wait_and_reset(&rig.stream, 60).unwrap();
        rig.stream.synchronize().unwrap();
        assert_eq!((rig.codes(&launched), rig.read(&dst)), (vec![0; 3], vec![7; 8]), "{cpu:?}");
    }
}

#[test]
fn ids_beyond_the_field_and_wrong_threads_are_refused() {
    for cpu in CPUS {
        let rig = rig(cpu, Product::from_key("atlas-800t-a2").unwrap());
        let thread = rig.threads(1, 0, 8)[0];
        let wrong = [0, thread.0 + (1 << 48)].map(hcomm_aicpu::spec::thread::ThreadHandle);
        // Cut to 13 or 32 bits each would be id 0.
        let ids = [u64::from(MAX_NOTIFY_ID) + 1, 1 << 32, 1 << 63];
        let bad_ids = ids.into_iter().flat_map(|id| [aclrt_record(thread, id), aclrt_wait(thread, id, 1)]);
        let bad_threads = wrong.into_iter().flat_map(|thread| [aclrt_record(thread, 0), aclrt_wait(thread, 0, 1)]);
        let list: Vec<_> = bad_ids.chain(bad_threads).collect();
        assert_eq!(rig.calls(&list).unwrap(), [1, 1, 1, 1, 1, 1, 2, 2, 6, 6], "{cpu:?}");
        assert_eq!(rig.comm.thread_statistics(thread).unwrap().tasks, 0, "{cpu:?}");
    }
}

#[test]
fn unallocated_id_is_an_error_of_its_task() {
    for cpu in CPUS {
        let rig = rig(cpu, Product::from_key("atlas-800t-a2").unwrap());
        let thread = rig.threads(1, 0, 8)[0];
        let error = rig.good_calls(&[aclrt_record(thread, 8000)]).unwrap_err().to_string();
        assert!(error.contains("notify 8000 belongs to no thread and to no host"), "{cpu:?}: {error}");
    }
}

#[test]
fn atlas_350_refuses_every_id_and_goes_on() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 0, 8)[0];
        let notify = Notify::new(&rig.device).unwrap();
        let (src, dst) = (rig.buffer(&[7; 8]), rig.buffer(&[0; 8]));
        let id = notify.id().into();
        let null = copy(thread, DeviceAddr(0), src.addr(), 8);
        let good = copy(thread, dst.addr(), src.addr(), 8);
        let list = [aclrt_record(thread, id), aclrt_wait(thread, u64::MAX, 1), null, good];
        assert_eq!(rig.calls(&list).unwrap(), [5, 5, 2, 0], "{cpu:?}");
        assert_eq!(rig.comm.thread_statistics(thread).unwrap().tasks, 1, "{cpu:?}");
        assert_eq!(rig.read(&dst), [7; 8], "{cpu:?}");
    }
}
