//! The event stream: every kind of event, on both CPUs, with what it says.

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_testkit::{CPUS, Rig, calls, wait_until};
use host_stub::sim::event::{AcquiredThread, Caller, Event, NotifyUser, Queuer, Range, What};
use host_stub::{Cpu, DeviceBuffer, DeviceOptions, Fault, FaultPlan, FaultRule};

fn rig(cpu: Cpu) -> Rig {
    Rig::with_options(DeviceOptions { cpu, record: true, ..DeviceOptions::default() })
}

fn range(buffer: &DeviceBuffer) -> Range {
    Range { addr: buffer.addr().0, len: buffer.len() }
}

/// Place of the first event that `is_it` says.
fn find(events: &[Event], what: &str, is_it: impl Fn(&What) -> bool) -> usize {
    events.iter().position(|event| is_it(&event.what)).unwrap_or_else(|| {
        let text: Vec<_> = events.iter().map(Event::to_string).collect();
        panic!("no {what} in\n{}", text.join("\n"))
    })
}

/// The tasks that began: kind, who queued it, what it reads and writes.
fn tasks(events: &[Event]) -> Vec<(&'static str, Option<Queuer>, [Range; 2], Range)> {
    let task = |event: &Event| match event.what {
        What::TaskBegan { kind, by, reads, writes, .. } => Some((kind, by, reads, writes)),
        _ => None,
    };
    events.iter().filter_map(task).collect()
}

#[test]
fn host_calls_tasks_and_notifies_are_told_with_their_ranges() {
    for cpu in CPUS {
        let rig = rig(cpu);
        let line = line!() + 1;
        let threads = rig.comm.acquire_threads(hcomm_aicpu::spec::thread::Engine::AICPU_TS, 2, 1).unwrap();
        let (src, dst) = (rig.buffer(&[1; 64]), rig.buffer(&[2; 64]));
        let list = [
            calls::copy(threads[0], dst.addr(), src.addr(), 64),
            calls::reduce(threads[0], dst.addr(), src.addr(), 16, DataType::INT32, ReduceOp::SUM),
            calls::record(threads[0], threads[1], 0),
            calls::wait(threads[1], 0, 60),
            calls::copy(threads[0], DeviceAddr(0), src.addr(), 8),
        ];
        assert_eq!(rig.calls(&list).unwrap(), [0, 0, 0, 0, 2]);
        rig.read(&dst);
        let (src, freed) = (range(&src), dst);
        let dst = range(&freed);
        drop(freed);
        let trace = rig.device.trace();
        let events = &trace.events;
        let none = Range::default();

        let acquired = |what: &What| match what {
            What::ThreadsAcquired { threads: found, caller: Caller::Source(caller), .. } => {
                let handles: Vec<u64> = found.iter().map(|thread: &AcquiredThread| thread.handle).collect();
                handles == threads.iter().map(|thread| thread.0).collect::<Vec<_>>()
                    && (caller.file().ends_with("events.rs"), caller.line()) == (true, line)
            }
            _ => false,
        };
        let facts = [
            find(events, "acquired threads", acquired),
            find(events, "alloc of src", |what| matches!(what, What::Alloc { range, .. } if *range == src)),
            find(
                events,
                "copy in",
                |what| matches!(what, What::HostCopy { writes, reads, .. } if (*reads, *writes) == (none, dst)),
            ),
            find(events, "queued launch", |what| matches!(what, What::LaunchQueued { .. })),
            find(events, "started launch", |what| matches!(what, What::LaunchStarted { .. })),
            find(events, "doorbell", |what| matches!(what, What::Doorbell { by: Some(by), .. } if by.launch == 1)),
            find(
                events,
                "copy",
                |what| matches!(what, What::TaskBegan { reads, writes, .. } if (*reads, *writes) == ([src, none], dst)),
            ),
            find(
                events,
                "reduce",
                |what| matches!(what, What::TaskBegan { reads, writes, .. } if (*reads, *writes) == ([src, dst], dst)),
            ),
            find(events, "set notify", |what| matches!(what, What::NotifySet { by: NotifyUser::Task(_), .. })),
            find(events, "taken notify", |what| matches!(what, What::NotifyTaken { by: NotifyUser::Task(_), .. })),
            find(events, "ended launch", |what| matches!(what, What::LaunchEnded { launch: 1, .. })),
            find(events, "synchronized", |what| matches!(what, What::Synchronized { .. })),
            find(
                events,
                "copy out",
                |what| matches!(what, What::HostCopy { writes, reads, .. } if (*reads, *writes) == (dst, none)),
            ),
            find(
                events,
                "free of dst",
                |what| matches!(what, What::Free { host: Some(_), range, .. } if *range == dst),
            ),
        ];
        assert!(facts.is_sorted(), "{cpu:?}: {facts:?}\n{trace}");
        find(events, "refused call", |what| {
            matches!(what, What::CallRefused { origin: Some(origin), code: 2, text, .. }
                if origin.launch == 1 && text.contains("HcommLocalCopyOnThread"))
        });
        let tasks = tasks(events);
        assert_eq!(tasks.len(), 4, "{trace}");
        assert!(tasks.iter().all(|(_, by, ..)| by.is_some_and(|by| by.origin.launch == 1)), "{trace}");
    }
}

#[test]
fn dropped_tasks_and_resets_are_told() {
    for cpu in CPUS {
        let faults = FaultPlan::one(FaultRule::new(Fault::DeadQueue).n(1));
        let rig = Rig::with_options(DeviceOptions { cpu, faults, record: true, ..DeviceOptions::default() });
        let thread = rig.thread(8);
        let (src, dst) = (rig.buffer(&[1; 4]), rig.buffer(&[0; 4]));
        let list = [0, 1, 2].map(|index| calls::copy(thread, dst.at(index), src.at(index), 1));
        let _launched = rig.launch_calls(&list);
        let is_rung = || rig.comm.thread_statistics(thread).unwrap().doorbells == 3;
        assert!(wait_until(is_rung), "{:?}", rig.comm.thread_statistics(thread));
        rig.comm.suspend().unwrap();
        rig.stream.synchronize().unwrap_err();
        rig.comm.resume().unwrap();
        let trace = rig.device.trace();
        let dropped = find(&trace.events, "dropped tasks", |what| {
            matches!(what, What::TasksDropped { first: 1, count: 2, reason: "suspended", .. })
        });
        let reset = find(&trace.events, "reset", |what| matches!(what, What::QueueReset { .. }));
        assert!(dropped < reset, "{trace}");
        rig.comm.release_threads(&[thread]);
        let trace = rig.device.trace();
        find(
            &trace.events,
            "released thread",
            |what| matches!(what, What::ThreadsReleased { threads, .. } if threads[..] == [thread.0]),
        );
    }
}
