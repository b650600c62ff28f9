//! Reduce through the host API on both CPUs, by itself and as kernel `local_reduce`.

use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::{LOCAL_REDUCE_NOTIFIES, LOCAL_REDUCE_THREADS, LocalReduceParams};
use hcomm_testkit::calls::{copy, reduce};
use hcomm_testkit::{CPUS, Rig, pattern};
use host_stub::ControlPair;

fn bytes_of(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Values that wrap when many of them are added.
fn values(count: usize, seed: u64) -> Vec<i32> {
    pattern(count * 4, seed).chunks_exact(4).map(|word| i32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn every_element_is_reduced_from_the_first_to_the_last() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 0, 16)[0];
        // One element, parts of a block, whole blocks, and enough for an engine.
        for count in [1, 2, 7, 1023, 1024, 1025, 100_000] {
            for (op, apply) in [
                (ReduceOp::SUM, i32::wrapping_add as fn(i32, i32) -> i32),
                (ReduceOp::MAX, i32::max),
                (ReduceOp::MIN, i32::min),
            ] {
                let (left, right) = (values(count, 1), values(count, 2));
                let guard = [0x5a5a_5a5a];
                let dst = rig.buffer(&bytes_of(&[&guard[..], &left, &guard].concat()));
                let src = rig.buffer(&bytes_of(&right));
                let list = [reduce(thread, dst.at(4), src.addr(), count as u64, DataType::INT32, op)];
                rig.good_calls(&list).unwrap();
                let reduced: Vec<i32> = left.iter().zip(&right).map(|(a, b)| apply(*a, *b)).collect();
                assert!(
                    rig.read(&dst) == bytes_of(&[&guard[..], &reduced, &guard].concat()),
                    "{cpu:?}, {count}, {op:?}"
                );
                assert!(rig.read(&src) == bytes_of(&right));
            }
        }
    }
}

#[test]
fn every_type_is_computed() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 0, 16)[0];
        // 1.5 and 2, and their sum, in each type; integers are 3 and 4.
        let rows = [
            (DataType::INT8, [vec![3], vec![4], vec![7]]),
            (DataType::INT16, [vec![3, 0], vec![4, 0], vec![7, 0]]),
            (DataType::INT32, [vec![3, 0, 0, 0], vec![4, 0, 0, 0], vec![7, 0, 0, 0]]),
            (DataType::FP16, [vec![0x00, 0x3e], vec![0x00, 0x40], vec![0x00, 0x43]]),
            (DataType::FP32, [vec![0, 0, 0xc0, 0x3f], vec![0, 0, 0, 0x40], vec![0, 0, 0x60, 0x40]]),
            (DataType::BF16, [vec![0xc0, 0x3f], vec![0x00, 0x40], vec![0x60, 0x40]]),
        ];
        for (data_type, [left, right, sum]) in rows {
            for (op, expected) in [(ReduceOp::SUM, &sum), (ReduceOp::MAX, &right), (ReduceOp::MIN, &left)] {
                let (dst, src) = (rig.buffer(&left.repeat(3)), rig.buffer(&right.repeat(3)));
                rig.good_calls(&[reduce(thread, dst.addr(), src.addr(), 3, data_type, op)]).unwrap();
                assert_eq!(rig.read(&dst), expected.repeat(3), "{cpu:?}, {data_type:?}, {op:?}");
            }
        }
    }
}

/// Case 10.
#[test]
fn misaligned_elements_are_refused_and_a_copy_is_not() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 0, 16)[0];
        let buffer = rig.buffer(&[0; 1000]);
        let part = 333;
        let sum = |dst, src| reduce(thread, dst, src, 83, DataType::FP32, ReduceOp::SUM);
        let list = [
            sum(buffer.at(part), buffer.addr()),
            sum(buffer.addr(), buffer.at(part)),
            copy(thread, buffer.at(part), buffer.addr(), part),
            // Rounded down to the element size.
            sum(buffer.at(part / 4 * 4), buffer.addr()),
        ];
        assert_eq!(rig.calls(&list).unwrap(), [1, 1, 0, 0], "{cpu:?}");
        assert_eq!(rig.comm.thread_statistics(thread).unwrap().tasks, 2, "{cpu:?}");
    }
}

#[test]
fn what_the_engine_does_not_compute_answers_5() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.threads(1, 0, 16)[0];
        let buffer = rig.buffer(&[0; 64]);
        let row = |data_type, op| reduce(thread, buffer.at(32), buffer.addr(), 1, DataType(data_type), ReduceOp(op));
        let types = [-1, 5, 6, 7, 8, 9, 10, 12, 13, 14, 17, 18, 255].map(|data_type| row(data_type, 0));
        let ops = [-1, 1, 4, 255].map(|op| row(4, op));
        let list = [&types[..], &ops].concat();
        assert_eq!(rig.calls(&list).unwrap(), vec![5; list.len()], "{cpu:?}");
        assert_eq!(rig.comm.thread_statistics(thread).unwrap().tasks, 0, "{cpu:?}");
    }
}

/// Kernel `local_reduce` of `slices` slices of `count` elements on `threads` threads.
fn local_reduce(rig: &Rig, threads: u32, slices: usize, count: usize, op: ReduceOp) -> Vec<u8> {
    let handles = rig.threads(threads, LOCAL_REDUCE_NOTIFIES + 1, 32);
    let src = rig.buffer(&bytes_of(&(0..slices).flat_map(|slice| values(count, slice as u64)).collect::<Vec<_>>()));
    let dst = rig.buffer(&vec![0xee; count * 4]);
    let scratch = rig.buffer(&vec![0; count * 4 * (threads as usize).max(2)]);
    let pair = ControlPair::new(&rig.comm, &rig.stream, handles[0], LOCAL_REDUCE_NOTIFIES).unwrap();
    let mut listed = [0; LOCAL_REDUCE_THREADS];
    listed.iter_mut().zip(&handles).for_each(|(listed, handle)| *listed = handle.0);
    let params = LocalReduceParams {
        header: LocalReduceParams::HEADER,
        threads: listed,
        thread_count: threads.into(),
        src: src.addr(),
        slice_count: slices as u64,
        dst: dst.addr(),
        scratch: scratch.addr(),
        count: count as u64,
        data_type: DataType::INT32.0,
        op: op.0,
        control: pair.control(),
    };
    rig.stream.launch_with_control(&pair, &rig.device.load_kernel("local_reduce").unwrap(), &params).unwrap();
    rig.stream.synchronize().unwrap();
    rig.read(&dst)
}

#[test]
fn local_reduce_equals_a_plain_loop_on_any_number_of_threads() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        for threads in 1..=8 {
            for slices in [1, 2, 3, 7, 8, 13] {
                let count = 37;
                let mut expected = values(count, 0);
                for slice in 1..slices {
                    expected.iter_mut().zip(values(count, slice as u64)).for_each(|(a, b)| *a = a.wrapping_add(b));
                }
                let reduced = local_reduce(&rig, threads, slices, count, ReduceOp::SUM);
                assert!(reduced == bytes_of(&expected), "{cpu:?}: {slices} slices, {threads} threads");
            }
        }
    }
}

#[test]
fn local_reduce_of_large_slices_runs_on_the_engines() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let (slices, count) = (5, 200_000);
        let all: Vec<Vec<i32>> = (0..slices as u64).map(|slice| values(count, slice)).collect();
        let expected: Vec<i32> = (0..count).map(|index| all.iter().map(|slice| slice[index]).max().unwrap()).collect();
        assert!(local_reduce(&rig, 4, slices, count, ReduceOp::MAX) == bytes_of(&expected), "{cpu:?}");
    }
}
