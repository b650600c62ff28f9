//! Rows of the case log that concern length, ring, doorbell and concurrency, through the host API on both CPUs. The number in
//! a name is the row's.

use std::time::{Duration, Instant};

use hcomm_aicpu::abi::{HcommBatchModeStart, HcommLocalCopyOnThread};
use hcomm_aicpu::copy::MAX_CHUNK;
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_kernel::{CopyListParams, ListedCopy, kernel};
use hcomm_testkit::{CPUS, LIMIT, Rig, at, pattern};
use host_stub::sim::event::{Event, What};
use host_stub::{Comm, Cpu, DeviceOptions, Stream, ThreadConfig};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const GUARD: usize = 64;

/// Case 1.
#[test]
fn copy_above_4_gib_moves_every_byte() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let len = (1 << 32) + 1;
        let (src, dst) = (rig.device.malloc(len).unwrap(), rig.device.malloc(len).unwrap());
        // The low half of the length is 1: a truncated copy would move the first of these and not the others.
        let places = [0, MAX_CHUNK as usize - 1, MAX_CHUNK as usize, 1 << 32];
        for (value, place) in (1..).zip(places) {
            rig.device.copy_in(at(&src, place), &[value]).unwrap();
        }
        let copy = ListedCopy { thread: rig.thread(8).0, dst: dst.addr(), src: src.addr(), len };
        assert_eq!(rig.copy_list(&[copy], false).unwrap().tasks(), 2);
        for (value, place) in (1..).zip(places) {
            let mut byte = [0];
            rig.device.copy_out(at(&dst, place), &mut byte).unwrap();
            assert_eq!(byte, [value], "{cpu:?}, byte {place}");
        }
    }
}

/// Case 4.
#[test]
fn chunks_are_counted_up() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let longest = 2 * MAX_CHUNK + 1;
        let (src, dst) = (rig.device.malloc(longest).unwrap(), rig.device.malloc(longest).unwrap());
        let thread = rig.thread(8).0;
        let lens = [(1, 1), (MAX_CHUNK - 1, 1), (MAX_CHUNK, 1), (MAX_CHUNK + 1, 2), (2 * MAX_CHUNK, 2), (longest, 3)];
        for (len, tasks) in lens {
            let copy = ListedCopy { thread, dst: dst.addr(), src: src.addr(), len };
            let stats = rig.copy_list(&[copy], false).unwrap();
            assert_eq!((stats.tasks(), stats.doorbells()), (tasks, 1), "{cpu:?}, {len} bytes");
        }
    }
}

/// Case 5.
#[test]
fn short_tails_leave_the_bytes_around_them() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.thread(8).0;
        for len in [1, 2, 3, 7, 31, 63, 65] {
            let bytes = pattern(len + 2 * GUARD, len as u64);
            let (src, dst) = (rig.buffer(&bytes), rig.buffer(&vec![0xee; len + 2 * GUARD]));
            let copy = ListedCopy { thread, dst: at(&dst, GUARD), src: at(&src, GUARD), len: len as u64 };
            rig.copy_list(&[copy], false).unwrap();
            let guard = [0xee; GUARD];
            assert_eq!(rig.read(&dst), [&guard, &bytes[GUARD..GUARD + len], &guard].concat(), "{cpu:?}, {len} bytes");
            assert_eq!(rig.read(&src), bytes);
        }
    }
}

/// Case 6.
#[test]
fn empty_copy_publishes_nothing_and_the_next_one_works() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let bytes = pattern(16, 6);
        let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 16]));
        let thread = rig.thread(2);
        let copy = |len| ListedCopy { thread: thread.0, dst: dst.addr(), src: src.addr(), len };
        let stats = rig.copy_list(&[copy(0), copy(0), copy(0)], false).unwrap();
        assert_eq!((stats.tasks(), stats.doorbells()), (0, 0), "{cpu:?}");
        let stats = rig.copy_list(&[copy(0), copy(16)], false).unwrap();
        assert_eq!((stats.tasks(), stats.doorbells()), (1, 1), "{cpu:?}");
        assert_eq!(rig.read(&dst), bytes);
    }
}

/// Case 9.
#[test]
fn unaligned_addresses_are_legal() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let bytes = pattern(16, 9);
        let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 16]));
        let copy = ListedCopy { thread: rig.thread(8).0, dst: at(&dst, 1), src: at(&src, 3), len: 5 };
        rig.copy_list(&[copy], false).unwrap();
        assert_eq!(rig.read(&dst), [&[0], &bytes[3..8], &[0; 10]].concat(), "{cpu:?}");
    }
}

/// Case 14.
#[test]
fn bytes_go_from_src_to_dst() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let (src, dst) = (rig.buffer(&[0xaa; 8]), rig.buffer(&[0x55; 8]));
        let copy = ListedCopy { thread: rig.thread(8).0, dst: dst.addr(), src: src.addr(), len: 8 };
        rig.copy_list(&[copy], false).unwrap();
        assert_eq!((rig.read(&dst), rig.read(&src)), (vec![0xaa; 8], vec![0xaa; 8]), "{cpu:?}");
    }
}

/// One batch of `count` copies of a byte on a ring of depth 8 whose head and tail are at `start`.
fn batch_over_the_end(cpu: Cpu, start: usize, count: usize) {
    let rig = Rig::new(cpu);
    let thread = rig.thread(8);
    let bytes = pattern(count, 15);
    let (src, dst) = (rig.buffer(&bytes), rig.buffer(&vec![0; count]));
    let copy = |index| ListedCopy { thread: thread.0, dst: at(&dst, index), src: at(&src, index), len: 1 };
    let nothing = ListedCopy { dst: src.addr(), ..copy(0) };
    rig.copy_list(&vec![nothing; start], false).unwrap();
    let stats = rig.copy_list(&(0..count).map(copy).collect::<Vec<_>>(), true).unwrap();
    assert_eq!((stats.tasks(), stats.doorbells()), (count as u64, 1), "{cpu:?}, from slot {start}");
    assert_eq!(rig.read(&dst), bytes, "{cpu:?}, from slot {start}");
}

/// Case 15.
#[test]
fn batch_crosses_the_end_of_the_ring_with_one_doorbell() {
    for cpu in CPUS {
        batch_over_the_end(cpu, 7, 3);
        batch_over_the_end(cpu, 5, 7);
    }
}

/// Case 18.
#[test]
fn each_thread_wraps_at_its_own_depth() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let threads = [(5, rig.thread(5)), (100, rig.thread(100))];
        let bytes = pattern(201, 18);
        let (src, dst) = (rig.buffer(&bytes), [rig.buffer(&[0; 201]), rig.buffer(&[0; 201])]);
        let mut list = Vec::new();
        for index in 0..201 {
            for ((depth, thread), dst) in threads.iter().zip(&dst) {
                if index <= 2 * depth {
                    list.push(ListedCopy { thread: thread.0, dst: at(dst, index), src: at(&src, index), len: 1 });
                }
            }
        }
        rig.copy_list(&list, false).unwrap();
        for ((depth, thread), dst) in threads.into_iter().zip(&dst) {
            let laps = 2 * depth + 1;
            assert_eq!(rig.comm.thread_statistics(thread).unwrap().tasks, laps as u64, "{cpu:?}, depth {depth}");
            assert_eq!(rig.read(dst), [&bytes[..laps], &vec![0; 201 - laps]].concat(), "{cpu:?}, depth {depth}");
        }
    }
}

/// Case 29.
#[test]
fn published_slots_are_not_written_until_the_head_passes_them() {
    // The device takes each descriptor a little after its doorbell, the more so by some seeds: one that is edited late would
    // show as a task that is not the one queued, or twice the same.
    for seed in 0..30 {
        let rig = Rig::with_options(DeviceOptions::deterministic(seed));
        let thread = rig.thread(3);
        let bytes = pattern(50, 29);
        let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 50]));
        let copy = |index| ListedCopy { thread: thread.0, dst: at(&dst, index), src: at(&src, index), len: 1 };
        rig.copy_list(&(0..50).map(copy).collect::<Vec<_>>(), false).unwrap();
        assert_eq!(rig.read(&dst), bytes, "seed {seed}");
        let started = |event: &Event| match event.what {
            What::TaskBegan { writes, .. } => Some(writes.addr - dst.addr().0),
            _ => None,
        };
        let order: Vec<u64> = rig.device.trace().events.iter().filter_map(started).collect();
        assert_eq!(order, (0..50).collect::<Vec<_>>(), "seed {seed}");
    }
}

/// Case 31.
#[test]
fn device_never_sees_a_doorbell_before_its_descriptor() {
    // A ring that is always full: each slot is reused while the device waits for exactly it. A stale or half descriptor would
    // move wrong bytes or be refused.
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        let thread = rig.thread(2);
        let bytes = pattern(4096, 31);
        let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 4096]));
        let copy = |index| ListedCopy { thread: thread.0, dst: at(&dst, index), src: at(&src, index), len: 1 };
        let list: Vec<_> = (0..4096).rev().map(copy).collect();
        for _ in 0..if cpu == Cpu::Native { 10 } else { 2 } {
            rig.device.copy_in(dst.addr(), &[0; 4096]).unwrap();
            assert_eq!(rig.copy_list(&list, false).unwrap().tasks(), 4096);
            assert!(rig.read(&dst) == bytes, "{cpu:?}");
        }
    }
}

/// Case 32.
#[test]
fn a_copy_that_waits_sees_the_head_move() {
    for cpu in CPUS {
        let rig = Rig::new(cpu);
        // Depth 2: every second copy waits until another thread has moved the head.
        let len = 8 << 20;
        let (src, dst) = (rig.device.malloc(len).unwrap(), rig.device.malloc(len).unwrap());
        let copy = ListedCopy { thread: rig.thread(2).0, dst: dst.addr(), src: src.addr(), len };
        let started = Instant::now();
        assert_eq!(rig.copy_list(&[copy; 8], false).unwrap().tasks(), 8, "{cpu:?}");
        assert!(started.elapsed() < LIMIT, "{cpu:?}: {:?}", started.elapsed());
    }
}

/// Case 33.
#[test]
fn no_wake_up_is_lost_between_a_sleeping_device_and_its_host() {
    // `make soak` asks for more.
    let asked =
        std::env::var("HCOMM_WAKE_ROUNDS").ok().map(|rounds| rounds.parse::<u64>().expect("a number of rounds"));
    for (cpu, rounds) in [(Cpu::Native, 3000), (Cpu::Qemu, 500)].map(|(cpu, few)| (cpu, asked.unwrap_or(few))) {
        let rig = Rig::new(cpu);
        let kernel = rig.device.load_kernel("copy_list").unwrap();
        let bytes = pattern(8, 33);
        let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 8]));
        let copy = ListedCopy { thread: rig.thread(2).0, dst: dst.addr(), src: src.addr(), len: 8 };
        let list = rig.buffer(copy.as_bytes());
        let params = CopyListParams { header: CopyListParams::HEADER, list: list.addr(), count: 1, batch: 0 };
        for round in 0..rounds {
            rig.stream.launch_and_drain(&kernel, &params).unwrap();
            rig.stream.synchronize_for(LIMIT).unwrap_or_else(|error| panic!("{cpu:?}: {error}"));
            if round % 8 == 0 {
                // Long enough for scheduler and image to fall asleep.
                std::thread::sleep(Duration::from_micros(300));
            }
        }
        assert_eq!(rig.device.statistics().tasks, rounds);
    }
}

/// Parameters of [`leaves_its_batch_open`].
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct OpenBatchParams {
    header: ParamsHeader,
    copy: ListedCopy,
}

impl KernelParams for OpenBatchParams {
    const MAGIC: u32 = u32::from_le_bytes(*b"OPEN");
    const VERSION: u32 = 1;
}

kernel! {
    /// Starts a batch, queues one copy and returns.
    fn leaves_its_batch_open(params: &OpenBatchParams) -> Result<i32, hcomm_aicpu::Error> {
        let ListedCopy { thread, dst, src, len } = params.copy;
        HcommBatchModeStart(c"x".as_ptr());
        let (dst, src) = (std::ptr::without_provenance_mut(dst.0 as usize), std::ptr::without_provenance(src.0 as usize));
        Ok(HcommLocalCopyOnThread(thread, dst, src, len))
    }
}

/// Case 36.
#[test]
fn batch_that_is_never_ended_publishes_nothing_and_fails_the_launch() {
    let rig = Rig::new(Cpu::Native);
    let (src, dst) = (rig.buffer(&[1; 8]), rig.buffer(&[0; 8]));
    let copy = ListedCopy { thread: rig.thread(8).0, dst: dst.addr(), src: src.addr(), len: 8 };
    let kernel = rig.device.load_kernel("leaves_its_batch_open").unwrap();
    let stats =
        rig.stream.launch_and_drain(&kernel, &OpenBatchParams { header: OpenBatchParams::HEADER, copy }).unwrap();
    let error = rig.stream.synchronize().unwrap_err().to_string();
    assert!(
        error
            .contains("kernel leaves_its_batch_open has left its batch open, so that the tasks of the batch never ran"),
        "{error}"
    );
    assert_eq!((stats.tasks(), stats.doorbells()), (0, 0));
    // The dropped copy does not run with the next doorbell, and outside a batch each copy rings at once.
    let next = [ListedCopy { dst: at(&dst, 4), len: 1, ..copy }, ListedCopy { dst: at(&dst, 6), len: 1, ..copy }];
    let stats = rig.copy_list(&next, false).unwrap();
    assert_eq!((stats.tasks(), stats.doorbells()), (2, 2));
    assert_eq!(rig.read(&dst), [0, 0, 0, 0, 1, 0, 1, 0]);
}

/// Case 53.
#[test]
fn two_communicators_at_once_keep_their_counts() {
    let rig = Rig::new(Cpu::Native);
    std::thread::scope(|scope| {
        for which in 0..2 {
            let rig = &rig;
            scope.spawn(move || {
                let comm = Comm::new(&rig.device).unwrap();
                let thread = comm.acquire_threads_with(&ThreadConfig::new(1).depth(8)).unwrap()[0];
                let stream = Stream::new(&rig.device);
                let bytes = pattern(1000, which);
                let (src, dst) = (rig.buffer(&bytes), rig.buffer(&[0; 1000]));
                let copy = |index| ListedCopy { thread: thread.0, dst: at(&dst, index), src: at(&src, index), len: 1 };
                for part in 0..10 {
                    let list: Vec<_> = (part * 100..part * 100 + 100).map(copy).collect();
                    rig.copy_list_on(&stream, &list, false).unwrap();
                }
                assert!(rig.read(&dst) == bytes);
                let queue = comm.thread_statistics(thread).unwrap();
                assert_eq!((queue.tasks, queue.doorbells), (1000, 1000));
            });
        }
    });
    assert_eq!(rig.device.statistics().tasks, 2000);
}
