//! Copies from the host API through kernel, entry point, descriptor, ring, doorbell and simulated device, on both CPUs.

use std::time::Duration;

use hcomm_aicpu::copy::MAX_CHUNK;
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::thread::ThreadHandle;
use hcomm_kernel::ListedCopy;
use hcomm_testkit::{CPUS, Rig, at, calls, pattern, wait_until};
use host_stub::sim::event::What;
use host_stub::{Cpu, DeviceOptions, Fault, FaultPlan, FaultRule, Stream};

const GUARD: usize = 64;
const LENS: [usize; 14] = [0, 1, 2, 3, 7, 31, 63, 64, 65, 255, 256, 4095, 4097, (1 << 20) + 1];

/// Copies each length from every offset of `offsets` in the source to the one in the destination, all in one launch, into
/// one buffer of guard bytes.
fn copy_all(rig: &Rig, lens: &[usize], offsets: &[(usize, usize)]) {
    let thread = rig.thread(128);
    let longest = lens.iter().max().unwrap();
    let src_bytes = pattern(longest + 16 + 2 * GUARD, 1);
    let src = rig.buffer(&src_bytes);
    let (mut list, mut expected) = (Vec::new(), Vec::new());
    for &len in lens {
        for &(src_offset, dst_offset) in offsets {
            let start = expected.len() + GUARD + dst_offset;
            expected.resize(start, 0xee);
            expected.extend(&src_bytes[GUARD + src_offset..][..len]);
            expected.extend([0xee; GUARD]);
            // The next destination starts 16-byte aligned, so that its offset is what it says.
            expected.resize(expected.len().next_multiple_of(16), 0xee);
            list.push((start, GUARD + src_offset, len));
        }
    }
    let dst = rig.buffer(&vec![0xee; expected.len()]);
    let list: Vec<ListedCopy> = list
        .into_iter()
        .map(|(to, from, len)| ListedCopy { thread: thread.0, dst: at(&dst, to), src: at(&src, from), len: len as u64 })
        .collect();
    let stats = rig.copy_list(&list, false).unwrap();

    let moving = list.iter().filter(|copy| copy.len != 0).count() as u64;
    assert_eq!((stats.tasks(), stats.doorbells()), (moving, moving));
    assert!(rig.read(&dst) == expected, "a destination or a byte around it differs");
    assert!(rig.read(&src) == src_bytes, "the source changed");
}

#[test]
fn every_length_moves_exactly_its_bytes() {
    for cpu in CPUS {
        copy_all(&Rig::new(cpu), &LENS, &[(0, 0), (1, 3), (15, 1)]);
    }
}

#[test]
fn every_offset_of_source_and_destination() {
    let offsets: Vec<_> = (0..16).flat_map(|src| (0..16).map(move |dst| (src, dst))).collect();
    for cpu in CPUS {
        copy_all(&Rig::new(cpu), &[1, 7, 64, 257], &offsets);
    }
}

#[test]
fn ring_wraps_over_several_laps_at_every_depth() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        for depth in [2, 5, 8, 100, 2048] {
            for batch in [false, true] {
                let thread = rig.thread(depth);
                let count = 3 * depth as usize + 1;
                let bytes = pattern(count, depth.into());
                let (src, dst) = (rig.buffer(&bytes), rig.buffer(&vec![0; count]));
                // Backwards, so that no run of copies is one in disguise.
                let copy = |index| ListedCopy { thread: thread.0, dst: at(&dst, index), src: at(&src, index), len: 1 };
                let stats = rig.copy_list(&(0..count).rev().map(copy).collect::<Vec<_>>(), batch).unwrap();
                assert_eq!(stats.tasks(), count as u64, "{cpu:?}, depth {depth}");
                let doorbells = stats.doorbells();
                assert!(if batch { doorbells < count as u64 || depth == 2 } else { doorbells == count as u64 });
                assert!(rig.read(&dst) == bytes, "{cpu:?}, depth {depth}, batch {batch}");
            }
        }
    }
}

#[test]
fn copy_above_one_chunk_on_a_sparse_device() {
    for cpu in CPUS {
        let rig = Rig::with_options(DeviceOptions { cpu, hbm_size: 16 << 30, ..DeviceOptions::default() });
        let len = MAX_CHUNK + (1 << 32) + 5;
        let (src, dst) = (rig.device.malloc(len).unwrap(), rig.device.malloc(len).unwrap());
        // Bytes at both ends and on both sides of each cut; nothing else is ever touched.
        let cuts = [0, MAX_CHUNK as usize - 100, 2 * MAX_CHUNK as usize - 100, len as usize - 200];
        for (&cut, seed) in cuts.iter().zip(1..) {
            rig.device.copy_in(at(&src, cut), &pattern(200, seed)).unwrap();
            rig.device.copy_in(at(&dst, cut), &pattern(200, seed + 10)).unwrap();
        }
        let copy = ListedCopy { thread: rig.thread(8).0, dst: dst.addr(), src: src.addr(), len };
        let stats = rig.copy_list(&[copy], false).unwrap();
        assert_eq!((stats.tasks(), stats.doorbells()), (3, 1), "one publication of three chunks");
        for (&cut, seed) in cuts.iter().zip(1..) {
            let mut bytes = [0; 200];
            rig.device.copy_out(at(&dst, cut), &mut bytes).unwrap();
            assert_eq!(bytes[..], pattern(200, seed), "{cpu:?}, at {cut}");
        }
    }
}

#[test]
fn copies_on_different_threads_each_have_their_queue() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let threads: Vec<_> = [5, 8, 2048].map(|depth| rig.thread(depth)).into();
        let bytes = pattern(3000, 5);
        let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 3000]));
        let copy = |index: usize| {
            let thread = threads[index % threads.len()].0;
            ListedCopy { thread, dst: at(&dst, index * 10), src: at(&src, index * 10), len: 10 }
        };
        rig.copy_list(&(0..300).map(copy).collect::<Vec<_>>(), false).unwrap();
        assert!(rig.read(&dst) == bytes);
        for thread in threads {
            let queue = rig.comm.thread_statistics(thread).unwrap();
            assert_eq!((queue.tasks, queue.doorbells), (100, 100));
        }
    }
}

#[test]
fn source_and_destination_may_be_the_same() {
    let rig = Rig::new(Cpu::Native);
    let bytes = pattern(100, 9);
    let buffer = rig.buffer(&bytes);
    let copy = ListedCopy { thread: rig.thread(8).0, dst: buffer.addr(), src: buffer.addr(), len: 100 };
    assert_eq!(rig.copy_list(&[copy], false).unwrap().tasks(), 1);
    assert!(rig.read(&buffer) == bytes);
}

/// Case 46.
#[test]
fn null_arguments_answer_2_also_for_no_bytes_and_queue_nothing() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.thread(8);
        let (src, dst) = (rig.buffer(&[9; 8]), rig.buffer(&[0; 8]));
        let null = DeviceAddr(0);
        let wrong: Vec<_> = [1, 0]
            .into_iter()
            .flat_map(|len| {
                [
                    calls::copy(ThreadHandle(0), dst.addr(), src.addr(), len),
                    calls::copy(thread, null, src.addr(), len),
                    calls::copy(thread, dst.addr(), null, len),
                    calls::copy(ThreadHandle(0), null, null, len),
                ]
            })
            .collect();
        // Before anything else has used the queue, and after.
        let good = calls::copy(thread, at(&dst, 4), at(&src, 4), 1);
        let list = [&wrong[..], &[good], &wrong].concat();
        assert_eq!(rig.calls(&list).unwrap(), [[2; 8].as_slice(), &[0], &[2; 8]].concat(), "{cpu:?}");
        let queue = rig.comm.thread_statistics(thread).unwrap();
        assert_eq!((queue.tasks, queue.doorbells), (1, 1), "{cpu:?}");
        assert_eq!(rig.read(&dst), [0, 0, 0, 0, 9, 0, 0, 0], "{cpu:?}");
    }
}

/// Case 43.
#[test]
fn call_that_has_returned_has_not_copied_yet() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let (src, dst) = (rig.buffer(&pattern(64, 43)), rig.buffer(&[0; 64]));
        // The copy stands behind a wait, which a second launch ends.
        let list = [calls::wait(first, 0, 60), calls::copy(first, dst.addr(), src.addr(), 64)];
        let launched = rig.launch_calls_and_drain(&rig.stream, &list);
        assert!(wait_until(|| rig.codes(&launched) == [0, 0]), "{cpu:?}: {:?}", rig.codes(&launched));
        assert_eq!(rig.read(&dst), [0; 64], "{cpu:?}: every call has answered, and nothing has been copied");
        let other = Stream::new(&rig.device);
        let _released = rig.launch_calls_and_drain(&other, &[calls::record(second, first, 0)]);
        other.synchronize().unwrap();
        rig.stream.synchronize().unwrap();
        assert_eq!(rig.read(&dst), pattern(64, 43), "{cpu:?}");
    }
}

/// Case 43.
#[test]
fn delay_of_the_device_lies_between_return_and_copy() {
    let delay = Duration::from_millis(10);
    for seed in 0..5 {
        let faults = FaultPlan::one(FaultRule::new(Fault::SlowQueue(delay)));
        let rig = Rig::with_options(DeviceOptions { faults, ..DeviceOptions::deterministic(seed) });
        let thread = rig.thread(8);
        let (src, dst) = (rig.buffer(&pattern(64, 43)), rig.buffer(&[0; 64]));
        assert_eq!(rig.calls(&[calls::copy(thread, dst.addr(), src.addr(), 64)]).unwrap(), [0]);
        let trace = rig.device.trace();
        let when = |is_it: fn(&What) -> bool| trace.events.iter().find(|event| is_it(&event.what)).unwrap().at;
        let returned = when(|what| matches!(what, What::LaunchReturned { code: 0, .. }));
        let started = when(|what| matches!(what, What::TaskBegan { .. }));
        assert!(started > returned + delay / 2, "returned at {returned:?}, started at {started:?}");
        assert_eq!(rig.read(&dst), pattern(64, 43));
    }
}
