//! The library of a card's kernels over the stand-in of the driver's library, as code of this machine and as AArch64 code. Not yet
//! run on hardware. `make card-test` runs this with the oldest and the newest core of qemu-aarch64 (QEMU_CPU).

mod card_kit;

use card_kit::{CPUS, Card, Known, head, with_head};
use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::card::{
    CARD_VERSION, CardEnd, CardLaunch, CardProbe, CardProbeTask, CardState, CardTask, PROBE_MAGIC, PROBE_WORDS,
};
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::{KernelParams, ParamsHeader};
use hcomm_aicpu::spec::thread::Engine;
use hcomm_kernel::{
    Call, CallListParams, Control, CopyListParams, EmptyParams, LOCAL_REDUCE_NOTIFIES, LOCAL_REDUCE_THREADS,
    ListedCopy, LocalCopyParams, LocalReduceParams,
};
use hcomm_testkit::pattern;
use host_stub::{Cpu, DeviceBuffer, Stream};
use zerocopy::{FromBytes, IntoBytes};

/// Calls as parameters of kernel `call_list`, which stops at the first error; they stay in the buffer.
fn calls(card: &Card, list: &[Call]) -> (DeviceBuffer, CallListParams) {
    let buffer = card.rig.buffer(list.as_bytes());
    let (header, count) = (CallListParams::HEADER, list.len() as u64);
    let params = CallListParams { header, list: buffer.addr(), count, codes: DeviceAddr(0) };
    (buffer, params)
}

fn copy(thread: &Known, dst: &DeviceBuffer, src: &DeviceBuffer) -> Call {
    Call { function: Call::LOCAL_COPY, args: [thread.card, dst.addr().0, src.addr().0, src.len(), 0, 0] }
}

/// Case 390.
#[test]
fn a_copy_goes_through_the_driver() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let thread = card.thread(2048, 0);
        let bytes = pattern(5000, 1);
        let (src, dst) = (card.rig.buffer(&bytes), card.rig.buffer(&vec![0; bytes.len()]));
        let before = card.calls();
        let params = LocalCopyParams {
            header: LocalCopyParams::HEADER,
            thread: thread.card,
            user_in: src.addr(),
            ccl_buf: dst.addr(),
            ccl_buf_size: dst.len(),
            len: src.len(),
            control: Control::NONE,
        };
        let (status, ended) = card.launch("local_copy", &head(&[&thread]), &params);
        ended.unwrap_or_else(|error| panic!("{cpu:?}: {error}: {}", status.reason()));
        assert_eq!((status.state, status.code, status.version), (CardState::DONE, 0, CARD_VERSION), "{cpu:?}");
        assert_eq!(card.rig.read(&dst), bytes, "{cpu:?}");
        // Base, depth, head, tail at the start, the head once more by the library, and one doorbell; no report, and no second restore.
        let after = card.calls();
        let calls: Vec<_> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        assert_eq!(calls, [5, 1, 0, 0], "{cpu:?}");
        assert_eq!(card.rig.comm.thread_statistics(thread.sim).unwrap().doorbells, 1, "{cpu:?}");
    }
}

/// Case 391.
#[test]
fn slices_are_reduced_on_several_queues_with_notifies_between_them() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let threads: Vec<_> = (0..4).map(|_| card.thread(256, LOCAL_REDUCE_NOTIFIES + 1)).collect();
        let (count, slices) = (1000_u64, 7_u64);
        let values: Vec<f32> = (0..count * slices).map(|index| (index % 13) as f32).collect();
        let src = card.rig.buffer(values.as_bytes());
        let dst = card.rig.buffer(&vec![0; 4 * count as usize]);
        let scratch = card.rig.buffer(&vec![0; 4 * 3 * count as usize]);
        let mut handles = [0; LOCAL_REDUCE_THREADS];
        handles.iter_mut().zip(&threads).for_each(|(to, thread)| *to = thread.card);
        let params = LocalReduceParams {
            header: LocalReduceParams::HEADER,
            threads: handles,
            thread_count: 4,
            src: src.addr(),
            slice_count: slices,
            dst: dst.addr(),
            scratch: scratch.addr(),
            count,
            data_type: DataType::FP32.0,
            op: ReduceOp::SUM.0,
            control: Control::NONE,
        };
        let (status, ended) = card.launch("local_reduce", &head(&threads.iter().collect::<Vec<_>>()), &params);
        ended.unwrap_or_else(|error| panic!("{cpu:?}: {error}: {}", status.reason()));
        let expected: Vec<f32> =
            (0..count as usize).map(|index| values.iter().skip(index).step_by(count as usize).sum()).collect();
        assert_eq!(card.rig.read(&dst), expected.as_bytes(), "{cpu:?}");
    }
}

/// Case 392.
#[test]
fn the_stream_waits_for_the_end_notify_of_a_kernel() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let (thread, stream) = (card.thread(256, 1), Stream::new(&card.rig.device));
        let host = card.host_thread(&stream, 1);
        let bytes = pattern(70_000, 2);
        let (src, dst) = (card.rig.buffer(&bytes), card.rig.buffer(&vec![0; bytes.len()]));
        let params = LocalCopyParams {
            header: LocalCopyParams::HEADER,
            thread: thread.card,
            user_in: src.addr(),
            ccl_buf: dst.addr(),
            ccl_buf_size: dst.len(),
            len: src.len(),
            control: Control { cpu_thread: host.card, start_notify: 0, end_notify: 0 },
        };
        let status = card.status_buffer();
        for _ in 0..3 {
            card.rig.device.copy_in(dst.addr(), &vec![0; bytes.len()]).unwrap();
            card.rig.comm.notify_record(&stream, host.sim, thread.sim, 0).unwrap();
            card.submit(&stream, "local_copy", &with_head(&head(&[&thread, &host]), status.addr(), &params));
            card.rig.comm.notify_wait(&stream, host.sim, 0, 30).unwrap();
            stream.synchronize().unwrap_or_else(|error| panic!("{cpu:?}: {error}"));
            assert_eq!(card.rig.read(&dst), bytes, "{cpu:?}");
        }
    }
}

/// Case 393.
#[test]
fn a_batch_rings_once() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let thread = card.thread(256, 0);
        let bytes = pattern(64 * 100, 3);
        let (src, dst) = (card.rig.buffer(&bytes), card.rig.buffer(&vec![0; bytes.len()]));
        let list: Vec<_> = (0..100)
            .map(|index| ListedCopy {
                thread: thread.card,
                dst: DeviceAddr(dst.addr().0 + index * 64),
                src: DeviceAddr(src.addr().0 + index * 64),
                len: 64,
            })
            .collect();
        let entries = card.rig.buffer(list.as_bytes());
        for (batch, rung) in [(0, 100), (1, 1)] {
            let before = card.calls()[1];
            let header = CopyListParams::HEADER;
            let params = CopyListParams { header, list: entries.addr(), count: 100, batch };
            let (status, ended) = card.launch("copy_list", &head(&[&thread]), &params);
            ended.unwrap_or_else(|error| panic!("{cpu:?}: {error}: {}", status.reason()));
            assert_eq!(card.calls()[1] - before, rung, "{cpu:?}");
        }
        assert_eq!(card.rig.read(&dst), bytes, "{cpu:?}");
    }
}

/// Case 394.
#[test]
fn a_paused_queue_refuses_and_no_end_notify_comes() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let (thread, stream) = (card.thread(256, 0), Stream::new(&card.rig.device));
        let host = card.host_thread(&stream, 1);
        let (src, dst) = (card.rig.buffer(&[7; 64]), card.rig.buffer(&[0; 64]));
        let (_list, params) = calls(&card, &[copy(&thread, &dst, &src)]);
        let head = CardLaunch { end_thread: thread.card, end_peer: host.card, ..head(&[&thread, &host]) };
        card.hal("fake_hal_pause", &[thread.sq.into(), 1]);
        let (status, ended) = card.launch("call_list", &head, &params);
        assert!(ended.is_err(), "{cpu:?}: the kernel returns 1");
        assert_eq!((status.state, status.code, status.end), (CardState::FAILED, 16, CardEnd::NONE), "{cpu:?}");
        assert_eq!(
            status.reason(),
            format!("HcommLocalCopyOnThread: sq {} refuses the doorbell", thread.sq),
            "{cpu:?}"
        );
        // It goes on where it was.
        card.hal("fake_hal_pause", &[thread.sq.into(), 0]);
        let (status, ended) = card.launch("call_list", &head, &params);
        ended.unwrap_or_else(|error| panic!("{cpu:?}: {error}: {}", status.reason()));
        assert_eq!(card.rig.read(&dst), [7; 64], "{cpu:?}");
    }
}

/// Case 395.
#[test]
fn a_kernel_that_fails_records_the_end_notify_unless_a_task_has_failed() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let (thread, stream) = (card.thread(256, 0), Stream::new(&card.rig.device));
        let host = card.host_thread(&stream, 1);
        let bad = Call { function: Call::LOCAL_COPY, args: [thread.card, 0, 0, 64, 0, 0] };
        let (_list, params) = calls(&card, &[bad]);
        let head = CardLaunch { end_thread: thread.card, end_peer: host.card, ..head(&[&thread, &host]) };
        let (status, _) = card.launch("call_list", &head, &params);
        assert_eq!((status.state, status.code, status.end), (CardState::FAILED, 2, CardEnd::RECORDED), "{cpu:?}");
        assert!(status.reason().starts_with("HcommLocalCopyOnThread: "), "{cpu:?}: {}", status.reason());
        assert_eq!(status.task, CardTask::default(), "{cpu:?}");
        // The stream that waits for it goes on.
        card.rig.comm.notify_wait(&stream, host.sim, 0, 30).unwrap();
        stream.synchronize().unwrap_or_else(|error| panic!("{cpu:?}: {error}"));

        card.hal("fake_hal_fail", &[thread.sq.into(), 0x1_2345, 4, 0x77, 11]);
        let (status, _) = card.launch("call_list", &head, &params);
        assert_eq!((status.state, status.code, status.end), (CardState::FAILED, 2, CardEnd::NONE), "{cpu:?}");
        let failed = CardTask { thread: thread.card, task: 0x2345, kind: 4, code: 0x77, sqe_type: 11 };
        assert_eq!(status.task, failed, "{cpu:?}");
        // Reported once; a warning is no failure.
        card.hal("fake_hal_fail", &[thread.sq.into(), 1, 0x40, 0, 11]);
        card.hal("fake_hal_fail", &[thread.sq.into(), 2, 0x41, 5, 11]);
        let (status, ended) = card.ask("hcomm_card_report", thread.card);
        ended.unwrap();
        assert_eq!(status.task, CardTask { task: 2, kind: 1, code: 5, ..failed }, "{cpu:?}");
        let (status, _) = card.ask("hcomm_card_report", thread.card);
        assert_eq!(status.task, CardTask::default(), "{cpu:?}");
    }
}

/// Case 396.
#[test]
fn a_full_queue_is_waited_for_as_long_as_the_launch_says() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let thread = card.thread(129, 1);
        let (src, dst) = (card.rig.buffer(&[7; 64]), card.rig.buffer(&[0; 64]));
        // The queue stands at a wait for a notify that nothing has recorded.
        let mut list = vec![Call { function: Call::NOTIFY_WAIT, args: [thread.card, 0, 0, 0, 0, 0] }];
        list.extend((0..128).map(|_| copy(&thread, &dst, &src)));
        let (_list, params) = calls(&card, &list);
        let status = card.status_buffer();
        card.submit(&card.rig.stream, "call_list", &with_head(&head(&[&thread]), status.addr(), &params));
        let begin = std::time::Instant::now();
        while card.read_status(&status).state == CardState::PENDING && begin.elapsed().as_secs() < 120 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let found = card.read_status(&status);
        assert_eq!((found.state, found.code), (CardState::FAILED, 9), "{cpu:?}: {}", found.reason());
        assert!(found.reason().contains(" full for 1000000 us: "), "{cpu:?}: {}", found.reason());
        // The host records it: everything before the call that was refused runs.
        let stream = Stream::new(&card.rig.device);
        let host = card.rig.comm.acquire_thread_with_stream(&stream, 1).unwrap();
        card.rig.comm.notify_record(&stream, host, thread.sim, 0).unwrap();
        stream.synchronize().unwrap();
        assert!(card.rig.stream.synchronize().is_err(), "{cpu:?}: the kernel has returned 1");
        assert_eq!(card.rig.comm.thread_statistics(thread.sim).unwrap().tasks, 128, "{cpu:?}");
    }
}

/// Case 397.
#[test]
fn after_a_reset_of_the_host_the_library_goes_on_at_the_head() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let thread = card.thread(256, 0);
        let (src, dst) = (card.rig.buffer(&[7; 64]), card.rig.buffer(&[0; 64]));
        let (_list, params) = calls(&card, &[copy(&thread, &dst, &src), copy(&thread, &dst, &src)]);
        for round in 0..3 {
            let (status, ended) = card.launch("call_list", &head(&[&thread]), &params);
            ended.unwrap_or_else(|error| panic!("{cpu:?} {round}: {error}: {}", status.reason()));
            card.rig.comm.suspend().unwrap();
            card.rig.comm.resume().unwrap();
            card.hal("fake_hal_reset", &[thread.sq.into()]);
        }
        assert_eq!(card.rig.comm.thread_statistics(thread.sim).unwrap().tasks, 6, "{cpu:?}");
    }
}

/// Case 398.
#[test]
fn two_kernels_run_at_a_time_on_queues_of_their_own_and_on_one() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let threads = [card.thread(256, 0), card.thread(256, 0), card.thread(256, 0)];
        let bytes = pattern(64 * 500, 4);
        let src = card.rig.buffer(&bytes);
        let streams = [Stream::new(&card.rig.device), Stream::new(&card.rig.device)];
        let mut kept = Vec::new();
        for (own, stream) in streams.iter().enumerate() {
            let dst = card.rig.buffer(&vec![0; bytes.len()]);
            // Every second copy goes to the queue that both fill.
            let list: Vec<_> = (0..500)
                .map(|index| ListedCopy {
                    thread: if index % 2 == 0 { threads[own].card } else { threads[2].card },
                    dst: DeviceAddr(dst.addr().0 + index * 64),
                    src: DeviceAddr(src.addr().0 + index * 64),
                    len: 64,
                })
                .collect();
            let (entries, status) = (card.rig.buffer(list.as_bytes()), card.status_buffer());
            let header = CopyListParams::HEADER;
            let params = CopyListParams { header, list: entries.addr(), count: 500, batch: 0 };
            let head = CardLaunch { timeout_ms: 60_000, ..head(&[&threads[own], &threads[2]]) };
            card.submit(stream, "copy_list", &with_head(&head, status.addr(), &params));
            kept.push((dst, entries, status));
        }
        for (stream, (dst, _, status)) in streams.iter().zip(&kept) {
            stream.synchronize().unwrap_or_else(|error| panic!("{cpu:?}: {error}"));
            assert_eq!(card.read_status(status).state, CardState::DONE, "{cpu:?}");
            assert_eq!(card.rig.read(dst), bytes, "{cpu:?}");
        }
    }
}

/// Case 399.
#[test]
fn a_library_of_another_version_says_so_and_does_nothing() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let newer = ParamsHeader { version: CARD_VERSION + 1, ..CardLaunch::HEADER };
        let head = CardLaunch { header: newer, ..head(&[]) };
        let (status, ended) = card.launch("empty", &head, &EmptyParams { header: EmptyParams::HEADER });
        assert!(ended.is_err(), "{cpu:?}: the kernel returns 1");
        assert_eq!((status.state, status.version), (CardState::VERSION, CARD_VERSION), "{cpu:?}");
        assert_eq!(status.reason(), "kernel empty: kernel parameters have version 2, not 1", "{cpu:?}");
        // Parameters of a plain launch, without the head of a card.
        let (status, ended) = card.run("empty", |_| EmptyParams { header: EmptyParams::HEADER }.as_bytes().to_vec());
        assert!(ended.is_err() && status.state == CardState::PENDING, "{cpu:?}");
    }
}

/// Case 430.
#[test]
fn threads_that_can_t_be_are_refused_with_the_reason() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let thread = card.thread(256, 0);
        let good = card.init(1, 999, Engine::AICPU_TS);
        let code = |change: &dyn Fn(&mut hcomm_aicpu::spec::card::CardInit)| {
            let mut init = good;
            change(&mut init);
            let (status, ended) = card.try_add(&init);
            assert!(ended.is_err() && status.state == CardState::FAILED && status.thread == 0, "{cpu:?}");
            (status.code, status.reason().to_owned())
        };
        let own = |code, text: &str| (code, format!("hcomm_card_init: {text}"));
        assert_eq!(code(&|_| {}), own(16, "halSqCqQuery returned 3 for property 6 of sq 999"));
        assert_eq!(code(&|init| init.soc = 7), own(1, "unknown SoC device type 7"));
        let other = "the thread is of Ascend910B, and the library has threads of Ascend950";
        assert_eq!(code(&|init| init.soc = 2), own(1, other));
        assert_eq!(code(&|init| init.engine = 2), own(5, "engine 2 is not AICPU_TS (3) or CPU_TS (1)"));
        assert_eq!(code(&|init| init.notify_count = 65), own(1, "65 notifies, at most 64"));
        let device = "drvGetLocalDevIDByHostDevID returned 2";
        assert_eq!(code(&|init| init.host_device = card_kit::LOCAL_DEVICE), own(16, device));
        // A launch names a slot without a thread; a thread that is gone.
        let (status, ended) = card.ask("hcomm_card_release", thread.card);
        ended.unwrap_or_else(|error| panic!("{error}: {}", status.reason()));
        let empty = EmptyParams { header: EmptyParams::HEADER };
        let (status, _) = card.launch("empty", &head(&[&thread]), &empty);
        let text = format!("kernel empty: slot {} of the launch's threads has no thread", thread.slot);
        assert_eq!((status.code, status.reason()), (6, &*text), "{cpu:?}");
        let (status, _) = card.ask("hcomm_card_release", thread.card);
        assert_eq!(status.code, 6, "{cpu:?}: {}", status.reason());
    }
}

/// Case 431.
#[test]
fn a_library_without_the_driver_names_the_function_that_is_missing() {
    let card = Card::without_driver(Cpu::Linux);
    let (status, ended) = card.try_add(&card.init(1, 9, Engine::AICPU_TS));
    assert!(ended.is_err());
    let text = "hcomm_card_init: no library of this process has drvGetLocalDevIDByHostDevID: \
                is the kernel outside the AI CPU's scheduler?";
    assert_eq!((status.code, status.reason()), (16, text));
    // What needs no driver works.
    let (status, ended) = card.launch("empty", &head(&[]), &EmptyParams { header: EmptyParams::HEADER });
    ended.unwrap();
    assert_eq!(status.state, CardState::DONE);
}

/// Case 433.
#[test]
fn the_probes_tell_what_the_driver_says() {
    for cpu in CPUS {
        let card = Card::new(cpu);
        let (thread, stream) = (card.thread(256, 0), Stream::new(&card.rig.device));
        let host = card.host_thread(&stream, 1);
        let info = card.rig.comm.thread_info(thread.sim).unwrap();
        let probe = |name: &str| {
            let words = card.rig.buffer(&[0; 8 * PROBE_WORDS]);
            let (status, ended) = card.run(name, |status| {
                let (header, words, host_device) = (CardProbe::HEADER, words.addr(), card_kit::HOST_DEVICE);
                let (stream, sq, logic_cq) = (info.stream_id, info.sq_id, info.sq_id + 100);
                CardProbe { header, status, words, host_device, stream, sq, logic_cq }.as_bytes().to_vec()
            });
            ended.unwrap_or_else(|error| panic!("{cpu:?} {name}: {error}: {}", status.reason()));
            let words = <[u64; PROBE_WORDS]>::read_from_bytes(&card.rig.read(&words)).unwrap();
            assert_eq!((status.state, words[0]), (CardState::DONE, PROBE_MAGIC), "{cpu:?} {name}");
            words
        };
        let (first, second) = (probe("probe_a_start"), probe("probe_a_start"));
        assert_eq!((first[1], second[2]), (CARD_VERSION.into(), first[2] + 1), "{cpu:?}: statics stay");

        let process = probe("probe_b_process");
        // The stand-in has the functions that the library uses, and neither of the resources' nor a way to send tasks.
        assert_eq!(process[3], 0b1_1001_1100_1111, "{cpu:?}: {:#b}", process[3]);
        assert_eq!(process[4], 4096, "{cpu:?}");
        assert!(process[8].to_le_bytes().starts_with(b"2."), "{cpu:?}: {:?}", process[8].to_le_bytes());
        let kind_and_device = [0, 0, 0, card_kit::LOCAL_DEVICE.into()];
        assert_eq!(process[10..14], kind_and_device, "{cpu:?}");
        assert_eq!((process[14], process[16], process[17]), (3, 0, 6), "{cpu:?}: an Ascend950 does not tell its cores");
        if cpu == Cpu::Linux {
            assert!(process[2] > 0 && process[7] != 0, "frequency and type of the core: {process:x?}");
        }

        let queue = probe("probe_c_queue");
        let base = card.announce(thread.sim).sq_base.0;
        assert_eq!(queue[1..5], [0, card_kit::LOCAL_DEVICE.into(), 0, 0], "{cpu:?}");
        assert_eq!(queue[5..17], [0, base, 0, 256, 0, 0, 0, 0, 0, 64, 0, 1], "{cpu:?}");

        let (src, dst) = (card.rig.buffer(&[9; 64]), card.rig.buffer(&[0; 64]));
        let task = CardProbeTask {
            header: CardProbeTask::HEADER,
            thread: thread.card,
            peer: host.card,
            dst: dst.addr(),
            src: src.addr(),
            notify: 0,
            reserved: 0,
        };
        for (name, copied) in [("probe_d_notify", 0), ("probe_e_copy", 9)] {
            let (status, ended) = card.launch(name, &head(&[&thread, &host]), &task);
            ended.unwrap_or_else(|error| panic!("{cpu:?} {name}: {error}: {}", status.reason()));
            card.rig.comm.notify_wait(&stream, host.sim, 0, 30).unwrap();
            stream.synchronize().unwrap_or_else(|error| panic!("{cpu:?} {name}: {error}"));
            assert_eq!(card.rig.read(&dst), [copied; 64], "{cpu:?} {name}");
        }
    }
}
