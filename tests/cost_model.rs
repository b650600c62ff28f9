//! Cost models: time of deterministic mode follows their numbers, and `host-stub compare` shows what that is for.

use std::time::Duration;

use hcomm_testkit::calls::{copy, record, wait};
use hcomm_testkit::cli::{command, host_stub, json, stdout};
use hcomm_testkit::{Folder, Rig};
use host_stub::sim::cost::CostModel;
use host_stub::sim::event::{Event, What};
use host_stub::{Cluster, CommOptions, DeviceOptions, Error, Model, explore};

/// Numbers of which each sum is told apart from the others.
fn costs() -> CostModel {
    CostModel {
        launch_ns: 100_000,
        call_ns: 1,
        look_ns: 1,
        doorbell_ns: 3_000,
        fetch_ns: 10_000,
        notify_ns: 500,
        sdma_start_ns: 70_000,
        sdma_bytes_per_us: 1000,
    }
}

fn rig(costs: CostModel, seed: u64) -> Rig {
    let model = Some(Model { name: "test".to_owned(), costs });
    Rig::with_options(DeviceOptions { model, ..DeviceOptions::deterministic(seed) })
}

/// Time of the first event that `is` names, in ns.
fn first(events: &[Event], is: impl Fn(&What) -> bool) -> u128 {
    events.iter().find(|event| is(&event.what)).unwrap().at.as_nanos()
}

/// Times in ns of the begin and the end of each task, in the order of begins.
fn tasks(events: &[Event]) -> Vec<(u128, u128)> {
    let begun = events.iter().filter_map(|event| match &event.what {
        What::TaskBegan { task, .. } => Some((event.at.as_nanos(), *task)),
        _ => None,
    });
    let end = |place| first(events, |what| matches!(what, What::TaskEnded { task } if *task == place));
    begun.map(|(at, task)| (at, end(task))).collect()
}

/// Case 453.
#[test]
fn copy_takes_what_the_model_says() {
    for seed in 0..10 {
        let rig = rig(costs(), seed);
        let thread = rig.thread(8);
        let (src, dst) = (rig.buffer(&[7; 4000]), rig.buffer(&[0; 4000]));
        let before = rig.device.now();
        rig.good_calls(&[copy(thread, dst.addr(), src.addr(), 4000)]).unwrap();
        let took = rig.device.now() - before;
        let events = rig.device.trace().events;
        let started = first(&events, |what| matches!(what, What::LaunchStarted { .. }));
        let rung = first(&events, |what| matches!(what, What::Doorbell { .. }));
        let (begun, ended) = tasks(&events)[0];
        // The kernel's calls and looks are some nanoseconds.
        assert!((103_000..103_100).contains(&(rung - started)), "seed {seed}: {started} {rung}");
        assert_eq!(begun - rung, 10_000, "seed {seed}");
        assert_eq!(ended - begun, 70_000 + 4000, "seed {seed}");
        assert!(took >= Duration::from_nanos(187_000) && took < Duration::from_nanos(187_200), "seed {seed}: {took:?}");
        assert_eq!(rig.read(&dst), [7; 4000]);
    }
}

/// Case 454.
#[test]
fn copies_at_the_same_time_share_the_rate_and_notifies_take_their_time() {
    let rig = rig(costs(), 3);
    let [one, two] = rig.threads(2, 1, 8)[..] else { unreachable!() };
    let src = rig.buffer(&[7; 1_000_000]);
    let (first, second) = (rig.buffer(&[0; 1_000_000]), rig.buffer(&[0; 1_000_000]));
    let copies = [copy(one, first.addr(), src.addr(), 1_000_000), copy(two, second.addr(), src.addr(), 1_000_000)];
    rig.good_calls(&copies).unwrap();
    let [(a, a_end), (b, b_end)] = tasks(&rig.device.trace().events)[..] else { panic!() };
    // The second one begins a doorbell later; both move all the time but for that. 1,000,000 bytes alone take 1 ms.
    assert!(b - a > 3_000 && b - a < 3_100, "{a} {b}");
    let alone = b - a;
    assert_eq!(a_end - a, 70_000 + alone + 2 * (1_000_000 - alone));
    assert_eq!(b_end - a, 70_000 + 2_000_000);

    let begun = rig.device.trace().events.len();
    rig.good_calls(&[record(one, two, 0), wait(two, 0, 0)]).unwrap();
    let events = rig.device.trace().events;
    let rung = events[begun..].iter().find(|event| matches!(event.what, What::Doorbell { .. })).unwrap().at;
    let [(record, record_end), (_, wait_end)] = tasks(&events[begun..])[..] else { panic!() };
    // A notify takes its time before its effect is seen.
    assert_eq!((record - rung.as_nanos(), record_end), (10_500, record));
    assert!(wait_end >= record_end);
}

/// Case 455.
#[test]
fn model_is_refused_where_time_is_not_the_models() {
    let model = Some(Model::stock());
    let options = |base: DeviceOptions| DeviceOptions { model: model.clone(), ..base };
    let error = host_stub::Device::open(options(DeviceOptions::default())).err().unwrap();
    assert!(matches!(error, Error::ModelNeedsNative), "{error}");
    let native = || options(DeviceOptions::native());
    let ranks = Cluster::with_options(2, &native(), CommOptions::default()).err().unwrap();
    assert!(matches!(ranks, Error::ModelOfOneDevice), "{ranks}");
    let mut collective = command();
    let output = collective.args(["collective", "all_gather", "--ranks", "2"]).env("HCOMM_SIM_MODEL", "stock").output();
    assert_eq!(output.unwrap().status.code(), Some(3));
    let limits = explore::Limits::default();
    let open = || -> Result<(), Error> { host_stub::Device::open(native()).map(drop) };
    let failure = explore::try_explore(explore::Strategy::Exhaustive, limits, open).unwrap_err();
    assert!(failure.to_string().contains("schedules are not explored with a cost model"), "{failure}");
}

/// Case 456.
#[test]
fn wrong_models_are_usage_errors_with_name_value_and_limit() {
    let folder = Folder::new("cost_model");
    let path = folder.path("m.toml");
    std::fs::write(&path, "[sdma]\nbytes_per_us = 0\n").unwrap();
    let told = format!("cost model {path}: sdma.bytes_per_us is 0: must be from 1 to 1000000000");
    for args in [vec!["run", "--cpu", "native", "--model", &path], vec!["compare", "--model", &path]] {
        let output = host_stub(args);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(&told), "{output:?}");
    }
    let output = command().args(["run", "--cpu", "native"]).env("HCOMM_SIM_MODEL", &path).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&told), "{output:?}");
    assert_eq!(host_stub(["run", "--cpu", "qemu", "--model", "stock"]).status.code(), Some(3));
}

/// Case 457.
#[test]
fn time_of_a_run_is_called_that_of_the_model() {
    let text = |len: &str| {
        let output = host_stub(["run", "--cpu", "native", "--model", "stock", "--len", len, "--seed", "1"]);
        stdout(&output).lines().find(|line| line.starts_with("model time ")).unwrap().to_owned()
    };
    assert!(text("256").ends_with(" us (model stock: computed, not the time of a card)"), "{}", text("256"));
    assert_eq!(text("256"), text("256"));
    let (folder, args) = (Folder::new("model_time"), ["--json", "run", "--cpu", "native", "--model", "stock"]);
    let trace = folder.path("t.json");
    let output = command().args(args).args(["--len", "5000256", "--seed", "1", "--trace", &trace]).output().unwrap();
    assert!(std::fs::read_to_string(&trace).unwrap().contains("\"clocks\":[\"model\"]"));
    let (long, short) = (json(&output)["model_ns"].as_u64().unwrap(), text("256"));
    // 5,000,000 bytes more are 100 us at 50,000 bytes a microsecond.
    let short: f64 = short.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!((long as f64 / 1000.0 - short - 100.0).abs() < 0.5, "{long} {short}");
}

/// Case 458.
#[test]
fn algorithms_are_compared_with_model_time_bytes_tasks_and_doorbells() {
    let answer = json(&host_stub(["--json", "compare", "--len", "4096", "--slices", "32", "--threads", "4"]));
    assert_eq!(answer["model"], "stock");
    assert!(answer["note"].as_str().unwrap().contains("model"));
    let of =
        |job: usize, algorithm: usize, key: &str| answer["jobs"][job]["algorithms"][algorithm][key].as_u64().unwrap();
    // 32 slices into one: 32 writes of a slice in the chain; in the tree 32 to partial results, and 3 to join them.
    assert_eq!((of(0, 0, "bytes_moved"), of(0, 1, "bytes_moved")), (32 * 4096, 35 * 4096));
    assert_eq!((of(0, 0, "tasks"), of(0, 0, "doorbells")), (32 + 2, 1));
    // Small slices: what the tree saves is the start of transfers one after the other.
    assert!(of(0, 1, "model_ns") < of(0, 0, "model_ns"), "{answer}");
    assert_eq!((of(1, 0, "bytes_moved"), of(1, 1, "bytes_moved")), (2 * 4096, 2 * 4096));
    // Large slices move at the rate that all share: the tree moves more, and loses.
    let answer = json(&host_stub(["--json", "compare", "--len", "4194304", "--slices", "8", "--threads", "4"]));
    let time = |algorithm: usize| answer["jobs"][0]["algorithms"][algorithm]["model_ns"].as_u64().unwrap();
    assert!(time(1) > time(0), "{answer}");
    let output = host_stub(["compare", "--len", "4096"]);
    let text = stdout(&output);
    assert!(text.starts_with("model stock; model time: computed from assumptions, not the time of a card\n"), "{text}");
    assert!(
        text.contains("model time  bytes moved  tasks  doorbells") && text.contains("  chain, 1 thread "),
        "{text}"
    );
}
