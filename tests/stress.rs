//! Two cores queue copies through one thread handle at the same time: descriptors are intact, none is lost, each runs once, and
//! those of one core in its order. `HCOMM_STRESS_SEEDS` sets how many seeds run.

use std::collections::HashSet;

use hcomm_aicpu::spec::params::KernelParams;
use hcomm_kernel::{CopyListParams, ListedCopy};
use hcomm_testkit::{Rig, at, pattern};
use host_stub::sim::event::What;
use host_stub::{Check, Checks, Cpu, DeviceOptions, Stream};
use zerocopy::IntoBytes;

/// Two kernels of one device, `count` copies each, on a ring of `depth` entries; those of kernel *n* in a batch if `batch[n]`.
fn two_cores(options: DeviceOptions, depth: u32, count: usize, batch: [bool; 2]) {
    let rig = Rig::with_options(options);
    let shared = rig.thread(depth);
    let bytes = pattern(2 * count + 8, depth.into());
    let (src, dst) = (rig.buffer(&bytes), rig.buffer(&vec![0; 2 * count + 8]));
    let kernel = rig.device.load_kernel("copy_list").unwrap();
    // Lengths differ, and each copy ends where the next one of its kernel begins: a torn descriptor shows.
    let list = |which: usize| -> Vec<ListedCopy> {
        let copy = |index: usize| {
            let (offset, len) = (which * count + index, 1 + (index % 8) as u64);
            ListedCopy { thread: shared.0, dst: at(&dst, offset), src: at(&src, offset), len }
        };
        (0..count).map(copy).collect()
    };
    let lists = [list(0), list(1)];
    let streams = [Stream::new(&rig.device), Stream::new(&rig.device)];
    let entries = [rig.buffer(lists[0].as_bytes()), rig.buffer(lists[1].as_bytes())];
    for which in 0..2 {
        let (header, list) = (CopyListParams::HEADER, entries[which].addr());
        let params = CopyListParams { header, list, count: count as u64, batch: batch[which].into() };
        streams[which].launch_and_drain(&kernel, &params).unwrap();
    }
    streams.iter().for_each(|stream| stream.synchronize().unwrap());

    let (mut ids, mut moved) = (HashSet::new(), [Vec::new(), Vec::new()]);
    let trace = rig.device.trace();
    assert_eq!(trace.lost, 0);
    for event in &trace.events {
        let What::TaskBegan { task, reads: [src_range, _], writes, .. } = &event.what else { continue };
        assert!(ids.insert(task.task_id), "task id used twice: {event}");
        let offset = writes.addr - dst.addr().0;
        assert_eq!(offset, src_range.addr - src.addr().0, "{event}");
        moved[(offset >= count as u64) as usize].push((writes.addr, writes.len as u32));
    }
    for (moved, list) in moved.iter().zip(&lists) {
        assert_eq!(moved.len(), list.len());
        let differs = moved.iter().zip(list).position(|(moved, copy)| *moved != (copy.dst.0, copy.len as u32));
        assert_eq!(differs, None, "first copy out of order");
    }
    // The last copy is the one that reaches farthest.
    let end = 2 * count - 1 + lists[1][count - 1].len as usize;
    assert!(rig.read(&dst) == [&bytes[..end], &vec![0; bytes.len() - end]].concat(), "memory differs");
    assert_eq!(rig.comm.thread_statistics(shared).unwrap().tasks, 2 * count as u64);
}

#[test]
fn two_cores_share_a_handle_on_real_threads() {
    for depth in [2, 5, 128, 2048] {
        for batch in [[false, false], [false, true], [true, true]] {
            // A kernel that returns long before its tasks have run: the race check still knows that its launch waits for them.
            let checks = Some(Checks::DEFAULT.with(Check::Race));
            let options = DeviceOptions { cpu: Cpu::Native, record: true, checks, ..DeviceOptions::default() };
            two_cores(options, depth, 5000, batch);
        }
    }
}

#[test]
fn two_cores_share_a_handle_under_many_seeds() {
    let seeds = std::env::var("HCOMM_STRESS_SEEDS").map_or(300, |seeds| seeds.parse().expect("a number of seeds"));
    for seed in 0..seeds {
        let batch = [[false, false], [false, true], [true, true]][seed as usize % 3];
        let depth = [2, 3, 5, 8, 64][seed as usize % 5];
        two_cores(DeviceOptions::deterministic(seed), depth, 40, batch);
    }
}
