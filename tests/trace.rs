//! Timelines of runs: what the files of each format hold, and what is told when one can't be written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use hcomm_aicpu::spec::DeviceAddr;
use hcomm_aicpu::spec::data_type::{DataType, ReduceOp};
use hcomm_aicpu::spec::params::KernelParams;
use hcomm_aicpu::spec::thread::Engine;
use hcomm_kernel::{CallListParams, STAGED_COPY_INPUT_NOTIFIES, STAGED_COPY_OUTPUT_NOTIFIES, StagedCopyParams};
use hcomm_testkit::calls::{copy, record, reduce};
use hcomm_testkit::cli::{command, host_stub};
use hcomm_testkit::{CPUS, Folder, Rig, root};
use host_stub::sim::timeline::model::{ArrowKind, SliceKind, Timeline, TrackKind, Value};
use host_stub::trace::TraceFormat;
use host_stub::{Check, Checks, ControlPair, Cpu, DeviceOptions};
use serde_json::Value as Json;
use zerocopy::IntoBytes;

/// Runs `staged_copy` of 192 bytes through a buffer of 64, and gives the timeline while the device is still open.
fn staged_copy(options: DeviceOptions) -> Timeline {
    let rig = Rig::with_options(options);
    let input = rig.comm.acquire_threads(Engine::AICPU_TS, 1, STAGED_COPY_INPUT_NOTIFIES + 1).unwrap()[0];
    let output = rig.comm.acquire_threads(Engine::AICPU_TS, 1, STAGED_COPY_OUTPUT_NOTIFIES).unwrap()[0];
    let [user_in, user_out, ccl_buf] = [192, 192, 128].map(|len| rig.buffer(&vec![3; len]));
    let pair = ControlPair::new(&rig.comm, &rig.stream, input, STAGED_COPY_INPUT_NOTIFIES).unwrap();
    let params = StagedCopyParams {
        header: StagedCopyParams::HEADER,
        input: input.0,
        output: output.0,
        user_in: user_in.addr(),
        user_out: user_out.addr(),
        ccl_buf: ccl_buf.addr(),
        ccl_buf_size: 128,
        len: 192,
        control: pair.control(),
    };
    let kernel = rig.device.load_kernel("staged_copy").unwrap();
    rig.stream.launch_with_control(&pair, &kernel, &params).unwrap();
    rig.stream.synchronize().unwrap();
    assert_eq!(rig.read(&user_out), [3; 192]);
    rig.device.timeline()
}

fn kinds<T: Ord>(of: impl Iterator<Item = T>) -> BTreeSet<T> {
    of.collect()
}

/// Every kind of track, slice and arrow is there, and they fit together.
fn check(timeline: &Timeline) {
    let tracks = kinds(timeline.tracks.iter().map(|track| track.kind));
    let expected = [TrackKind::Host, TrackKind::Stream, TrackKind::Core, TrackKind::Queue, TrackKind::Engine];
    assert_eq!(tracks, BTreeSet::from(expected));
    let slices = kinds(timeline.slices.iter().map(|slice| slice.kind.name()));
    assert_eq!(slices, BTreeSet::from(["call", "kernel", "launch", "task", "wait"]));
    let arrows = kinds(timeline.arrows.iter().map(|arrow| arrow.kind.name()));
    assert_eq!(arrows, BTreeSet::from(["doorbell", "launch", "notify", "synchronize"]));
    assert_eq!((timeline.lost, timeline.errors.len()), (0, 0));
    for arrow in &timeline.arrows {
        let [from, to] = [arrow.from, arrow.to].map(|id| &timeline.slices[id as usize]);
        assert!((from.start_ns..=from.end_ns).contains(&arrow.from_ns), "{arrow:?} from {from:?}");
        assert!((to.start_ns..=to.end_ns).contains(&arrow.to_ns), "{arrow:?} to {to:?}");
        assert!(arrow.from_ns <= arrow.to_ns, "{arrow:?}");
        let [from_track, to_track] = [from, to].map(|slice| timeline.tracks[slice.track as usize].kind);
        match arrow.kind {
            ArrowKind::Launch => assert_eq!((from_track, to.kind), (TrackKind::Host, SliceKind::Kernel)),
            ArrowKind::Doorbell => assert_eq!((&*from.name, to_track), ("doorbell", TrackKind::Queue)),
            ArrowKind::Notify => assert_eq!((&*from.name, to.kind), ("notify record", SliceKind::Wait)),
            ArrowKind::Synchronize => assert_eq!((from_track, &*to.name), (TrackKind::Stream, "synchronize")),
        }
    }
    // Slices of a track do not overlap, but those of calls of a kernel lie inside it.
    for track in 0..timeline.tracks.len() as u32 {
        let mut of_track: Vec<_> = timeline.slices.iter().filter(|slice| slice.track == track).collect();
        of_track.sort_by_key(|slice| (slice.start_ns, u64::MAX - slice.end_ns));
        let mut end = 0;
        for slice in of_track {
            assert!(slice.start_ns >= end || slice.end_ns <= end, "{slice:?} overlaps what ends at {end}");
            end = end.max(slice.end_ns);
        }
    }
}

#[test]
fn timeline_of_a_run_has_all_kinds_of_tracks_slices_and_arrows() {
    for cpu in CPUS {
        check(&staged_copy(DeviceOptions { cpu, record: true, ..DeviceOptions::default() }));
    }
    let timeline = staged_copy(DeviceOptions::deterministic(1));
    check(&timeline);
    let named = |kind, name: &str| timeline.tracks.iter().any(|track| track.kind == kind && track.name == name);
    assert!(named(TrackKind::Queue, "thread 1 of 1 (stream 2, sq 0)"), "{:?}", timeline.tracks);
    let of = |name: &'static str| timeline.slices.iter().filter(move |slice| &*slice.name == name);
    let copies: Vec<_> = of("sdma copy").filter(|slice| slice.track == of("sdma copy").next().unwrap().track).collect();
    let value = |name| copies[0].details.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    assert_eq!(value("bytes"), Some(&Value::Number(64)));
    assert!(matches!(value("source"), Some(Value::Memory { allocation: Some(_), offset: 0, len: 64 })), "{copies:?}");
    assert_eq!(value("kernel"), Some(&Value::Text("staged_copy".into())));
    let acquire = of("acquire threads").next().unwrap();
    let line = acquire.details.iter().find(|(name, _)| *name == "called at").map(|(_, line)| line.to_string());
    assert!(line.as_deref().is_some_and(|line| line.contains("trace.rs:")), "{acquire:?}");
    assert_eq!(of("staged_copy").map(|slice| slice.kind.name()).collect::<Vec<_>>(), ["launch", "kernel"]);
}

/// Chrome trace events as docs/trace.md has them: gives the tracks, slices and arrows by kind.
fn check_json(text: &str) -> [BTreeMap<String, usize>; 3] {
    let file: Json = serde_json::from_str(text).unwrap();
    assert_eq!((&file["schema"], &file["version"]), (&"hcomm-sim-trace".into(), &1.into()));
    let keys: BTreeSet<&str> = file.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(["schema", "version", "displayTimeUnit", "clocks", "lost", "traceEvents"]));
    let events = file["traceEvents"].as_array().unwrap();
    let [mut tracks, mut slices, mut arrows] = <[BTreeMap<String, usize>; 3]>::default();
    let count = |counts: &mut BTreeMap<String, usize>, name: &Json| {
        *counts.entry(name.as_str().unwrap().to_owned()).or_default() += 1;
    };
    let mut named = BTreeSet::new();
    let mut ends: BTreeMap<u64, Vec<&Json>> = BTreeMap::new();
    let place = |event: &Json| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
    for event in events {
        match event["ph"].as_str().unwrap() {
            "M" => {
                let args = &event["args"];
                match event["name"].as_str().unwrap() {
                    "thread_name" => {
                        assert!(named.insert(place(event)) && args["name"].is_string(), "{event}");
                        count(&mut tracks, &args["kind"]);
                    }
                    "thread_sort_index" => assert!(args["sort_index"].is_u64(), "{event}"),
                    name => assert_eq!((name, args["name"].is_string()), ("process_name", true), "{event}"),
                }
            }
            "X" => {
                assert!(named.contains(&place(event)), "{event} is on no track");
                assert!(event["ts"].as_f64().unwrap() >= 0.0 && event["dur"].as_f64().unwrap() > 0.0, "{event}");
                assert!(event["name"].is_string() && event["args"].is_object(), "{event}");
                assert_eq!(event["args"].get("finding").is_some(), event["cname"] == "terrible", "{event}");
                count(&mut slices, &event["cat"]);
            }
            "s" | "f" => {
                let inside = |slice: &&Json| {
                    if slice["ph"] != "X" || place(slice) != place(event) {
                        return false;
                    }
                    let [at, begin, length] =
                        [&event["ts"], &slice["ts"], &slice["dur"]].map(|ts| ts.as_f64().unwrap());
                    (begin..=begin + length).contains(&at)
                };
                assert!(events.iter().any(|slice| inside(&slice)), "{event} ends at no slice");
                ends.entry(event["id"].as_u64().unwrap()).or_default().push(event);
            }
            other => assert_eq!(other, "i", "{event}"),
        }
    }
    for ends in ends.values() {
        let [from, to] = ends[..] else { panic!("{ends:?}") };
        assert_eq!((&from["ph"], &to["ph"], &to["bp"]), (&"s".into(), &"f".into(), &"e".into()));
        assert_eq!(from["cat"], to["cat"]);
        count(&mut arrows, &from["cat"]);
    }
    [tracks, slices, arrows]
}

/// The data of a page, counted as [`check_json`] does.
fn check_html(text: &str) -> [BTreeMap<String, usize>; 3] {
    for outside in ["http:", "https:", " src=", "@import", "url(", "fetch("] {
        assert!(!text.contains(outside), "the page loads {outside}");
    }
    let data = text.split_once("<script type=\"application/json\" id=\"data\">").unwrap().1;
    let data: Json = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!((&data["schema"], &data["version"]), (&"hcomm-sim-trace".into(), &1.into()));
    let [mut tracks, mut slices, mut arrows] = <[BTreeMap<String, usize>; 3]>::default();
    let count = |counts: &mut BTreeMap<String, usize>, name: &Json| {
        *counts.entry(name.as_str().unwrap().to_owned()).or_default() += 1;
    };
    for device in data["devices"].as_array().unwrap() {
        let list = |name: &str| device[name].as_array().unwrap();
        let name = |number: &Json| &data["names"][number.as_u64().unwrap() as usize];
        let mut order: Vec<_> = list("order").iter().map(|id| id.as_u64().unwrap()).collect();
        order.sort_unstable();
        assert!(order.iter().copied().eq(0..list("tracks").len() as u64));
        list("tracks").iter().for_each(|track| count(&mut tracks, &track[0]));
        for slice in list("slices") {
            assert!(slice[0].as_u64().unwrap() < order.len() as u64 && slice[2].is_u64(), "{slice}");
            assert_eq!(slice[5].as_array().unwrap().len() % 2, 0, "{slice}");
            count(&mut slices, name(&slice[3]));
        }
        for arrow in list("arrows") {
            let count_of_slices = list("slices").len() as u64;
            assert!([1, 3].iter().all(|end| arrow[*end].as_u64().unwrap() < count_of_slices), "{arrow}");
            count(&mut arrows, name(&arrow[0]));
        }
    }
    [tracks, slices, arrows]
}

/// The lines of a text, counted as [`check_json`] does.
fn check_text(text: &str) -> [BTreeMap<String, usize>; 3] {
    assert!(text.starts_with("hcomm-sim-trace version 1\n"), "{text}");
    let [mut tracks, mut slices, mut arrows] = <[BTreeMap<String, usize>; 3]>::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split([' ', ':']).collect();
        let (counts, kind) = match words[0] {
            "track" => (&mut tracks, words[2]),
            "slice" => (&mut slices, words[6]),
            "arrow" => (&mut arrows, words[1]),
            _ => continue,
        };
        *counts.entry(kind.to_owned()).or_default() += 1;
    }
    [tracks, slices, arrows]
}

fn counts(timeline: &Timeline) -> [BTreeMap<String, usize>; 3] {
    let count = |names: Vec<&str>| {
        names.into_iter().fold(BTreeMap::new(), |mut counts: BTreeMap<String, usize>, name| {
            *counts.entry(name.to_owned()).or_default() += 1;
            counts
        })
    };
    [
        count(timeline.tracks.iter().map(|track| track.kind.name()).collect()),
        count(timeline.slices.iter().map(|slice| slice.kind.name()).collect()),
        count(timeline.arrows.iter().map(|arrow| arrow.kind.name()).collect()),
    ]
}

#[test]
fn every_format_has_every_track_slice_and_arrow() {
    let folder = Folder::new("trace_formats");
    for (name, check) in
        [("t.json", check_json as fn(&str) -> _), ("t.html", check_html as fn(&str) -> _), ("t.txt", check_text)]
    {
        let path = folder.path(name);
        let options = DeviceOptions { trace: Some(path.clone().into()), ..DeviceOptions::deterministic(3) };
        let timeline = staged_copy(options);
        let [tracks, mut slices, arrows] = check(&std::fs::read_to_string(path).unwrap());
        let [known_tracks, mut known_slices, known_arrows] = counts(&timeline);
        assert_eq!((tracks, arrows), (known_tracks, known_arrows), "{name}");
        // The file has also what was freed and released when the device closed.
        let [more, calls] = [&mut slices, &mut known_slices].map(|slices| slices.remove("call").unwrap());
        assert_eq!(slices, known_slices, "{name}");
        assert!(more > calls, "{name}: {more} calls");
    }
}

/// Two devices that write one file: neither loses what the other has done.
#[test]
fn devices_of_a_process_share_a_file() {
    let folder = Folder::new("trace_devices");
    let path = folder.path("t.json");
    let options = || DeviceOptions { trace: Some(path.clone().into()), ..DeviceOptions::native() };
    let (first, second) = (Rig::with_options(options()), Rig::with_options(options()));
    let buffers = [&first, &second].map(|rig| rig.buffer(&[1; 64]));
    drop(buffers);
    drop(first);
    drop(second);
    let file: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    for pid in [1, 2] {
        let copies = events.iter().filter(|event| event["pid"] == pid && event["name"] == "copy to the device");
        assert_eq!(copies.count(), 1, "process {pid}");
    }
}

/// A browser that opens pages without a window, and prints what they have become.
const BROWSER: &str = "chromium-headless-shell";

/// The script of the page runs to its end: the browser has a name for each track, and says how many slices and arrows there
/// are.
#[test]
fn page_opens_in_a_browser_and_shows_every_track() {
    let folder = Folder::new("trace_browser");
    let path = folder.path("t.html");
    let timeline = staged_copy(DeviceOptions::deterministic(4));
    let mut page = Vec::new();
    TraceFormat::Html.write(std::slice::from_ref(&timeline), &mut page).unwrap();
    std::fs::write(&path, page).unwrap();
    let mut command = Command::new("timeout");
    command.args(["120", BROWSER, "--no-sandbox", "--disable-gpu", "--dump-dom"]).arg(format!("file://{path}"));
    let output = command.output().unwrap();
    if output.status.code() == Some(127) {
        eprintln!("NOT RUN: no {BROWSER}, so no test has opened the page (Debian: apt-get install {BROWSER})");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let dom = String::from_utf8(output.stdout).unwrap();
    assert!(dom.contains("data-ready=\"yes\""), "the script has failed: {dom}");
    let Timeline { tracks, slices, arrows, .. } = &timeline;
    let summary = format!("{} tracks, {} slices, {} arrows, 0 findings", tracks.len(), slices.len(), arrows.len());
    assert!(dom.contains(&summary), "{dom}");
    let names = dom.split_once("id=\"names\"").unwrap().1.split_once("<div id=\"view\"").unwrap().0;
    assert_eq!(names.matches("class=\"track\"").count(), tracks.len(), "{names}");
    for track in tracks {
        assert!(names.contains(&format!("title=\"{}\"", track.name)), "{} in {names}", track.name);
    }
}

/// Case 283.
#[test]
fn finding_of_a_check_is_marked_on_the_two_slices_that_it_is_about() {
    for cpu in CPUS {
        let checks = Some(Checks::DEFAULT.with(Check::Race));
        let rig = Rig::with_options(DeviceOptions { cpu, checks, record: true, ..DeviceOptions::default() });
        let [first, second] = rig.threads(2, 1, 8)[..] else { unreachable!() };
        let (one, two, dst) = (rig.buffer(&[1; 64]), rig.buffer(&[2; 64]), rig.buffer(&[0; 64]));
        let calls = [copy(first, dst.addr(), one.addr(), 64), copy(second, dst.addr(), two.addr(), 64)];
        let error = rig.good_calls(&calls).unwrap_err().to_string();
        let timeline = rig.device.timeline();
        let on_queues = |slice: &&_| {
            let slice: &host_stub::sim::timeline::model::Slice = slice;
            slice.finding.is_some() && timeline.tracks[slice.track as usize].kind == TrackKind::Queue
        };
        let found: Vec<_> = timeline.slices.iter().filter(on_queues).collect();
        assert_eq!(found.len(), 2, "{cpu:?}: {found:?} {error} {:?}", timeline.errors);
        assert_ne!(found[0].track, found[1].track);
        for slice in found {
            assert_eq!(&*slice.name, "sdma copy");
            assert!(error.ends_with(&**slice.finding.as_ref().unwrap()), "{error}");
        }
        let mut json = Vec::new();
        TraceFormat::Json.write(&[timeline], &mut json).unwrap();
        assert!(String::from_utf8(json).unwrap().matches("\"terrible\"").count() >= 2);
    }
}

/// Track kind and name of each slice with a finding, and the texts.
fn marked(rig: &Rig) -> (BTreeSet<(&'static str, String)>, String) {
    let timeline = rig.device.timeline();
    let found = timeline.slices.iter().filter(|slice| slice.finding.is_some());
    let on = |slice: &host_stub::sim::timeline::model::Slice| timeline.tracks[slice.track as usize].kind.name();
    let marked = found.map(|slice| (on(slice), slice.name.to_string())).collect();
    (marked, timeline.errors.iter().map(|(_, text)| text.to_string()).collect::<Vec<_>>().join("\n"))
}

/// Case 459.
#[test]
fn findings_of_the_other_checks_are_marked_on_their_slices_too() {
    let rig = || Rig::with_options(DeviceOptions { record: true, ..DeviceOptions::native() });
    let expected = |names: &[(&'static str, &str)]| -> BTreeSet<(&'static str, String)> {
        names.iter().map(|(track, name)| (*track, (*name).to_owned())).collect()
    };

    // calls: the launch, its kernel and the call.
    let ignores = rig();
    let (thread, src) = (ignores.threads(1, 0, 8)[0], ignores.buffer(&[1]));
    let list = [copy(thread, DeviceAddr(0), src.addr(), 1)];
    let (entries, codes) = (ignores.buffer(list.as_bytes()), ignores.buffer(&[0xee; 4]));
    let (header, count) = (CallListParams::HEADER, 1);
    let params = CallListParams { header, list: entries.addr(), count, codes: codes.addr() };
    let kernel = ignores.device.load_kernel("call_list").unwrap();
    ignores.stream.launch(&kernel, &params).unwrap();
    ignores.stream.synchronize().unwrap_err();
    let (slices, texts) = marked(&ignores);
    assert_eq!(
        slices,
        expected(&[("core", "call_list"), ("core", "refused call"), ("stream", "call_list")]),
        "{texts}"
    );
    assert!(texts.contains("returned 0 although calls of it were refused"), "{texts}");

    // sync: the launch, its kernel, the last task of the queue, and the record that nothing waits for.
    let leaves = rig();
    let [first, second] = leaves.threads(2, 1, 8)[..] else { unreachable!() };
    let (src, dst) = (leaves.buffer(&[1; 64]), leaves.buffer(&[0; 64]));
    let launched = leaves.launch_calls(&[copy(second, dst.addr(), src.addr(), 64), record(second, first, 0)]);
    leaves.stream.synchronize().unwrap_err();
    let (slices, texts) = marked(&leaves);
    let unordered = [("core", "call_list"), ("queue", "notify record"), ("stream", "call_list")];
    assert_eq!(slices, expected(&unordered), "{texts}");
    assert!(texts.contains("that no notify orders before the end of the stream"), "{texts}");
    drop(launched);

    // init: the reduce, on its queue and its engine; then a copy to the host.
    let reads = rig();
    let thread = reads.threads(1, 0, 8)[0];
    let (sum, data) = (reads.device.malloc(64).unwrap(), reads.buffer(&[1; 64]));
    let to_sum = reduce(thread, sum.addr(), data.addr(), 16, DataType::INT32, ReduceOp::SUM);
    reads.good_calls(&[copy(thread, data.addr(), data.addr(), 64), to_sum]).unwrap_err();
    let (slices, texts) = marked(&reads);
    assert_eq!(slices, expected(&[("engine", "sdma reduce"), ("queue", "sdma reduce")]), "{texts}");
    let (source, result) = (reads.device.malloc(64).unwrap(), reads.device.malloc(64).unwrap());
    reads.good_calls(&[copy(thread, result.addr(), source.addr(), 64)]).unwrap();
    reads.device.copy_out(result.addr(), &mut [0; 64]).unwrap_err();
    let (slices, texts) = marked(&reads);
    assert!(slices.contains(&("host", "copy from the device".to_owned())), "{slices:?} {texts}");
}

/// Case 282.
#[test]
fn command_line_and_environment_name_the_file() {
    let folder = Folder::new("trace_cli");
    for cpu in ["native", "qemu"] {
        let path = folder.path(&format!("{cpu}.json"));
        let output = host_stub(["run", "--cpu", cpu, "--trace", &path]);
        assert_eq!((output.status.code(), output.stderr.is_empty()), (Some(0), true), "{output:?}");
        let [tracks, slices, arrows] = check_json(&std::fs::read_to_string(path).unwrap());
        assert!(
            ["host", "stream", "core", "queue", "engine"].iter().all(|kind| tracks.contains_key(*kind)),
            "{tracks:?}"
        );
        assert!(slices["kernel"] == 1 && slices["task"] >= 2, "{slices:?}");
        assert_eq!(arrows.len(), 4, "{arrows:?}");
    }
    let path = folder.path("env.html");
    let output = command().args(["run", "--cpu", "native"]).env("HCOMM_SIM_TRACE", &path).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    check_html(&std::fs::read_to_string(path).unwrap());
    let svg = folder.path("t.svg");
    let output = host_stub(["run", "--cpu", "native", "--trace", &svg]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("must end in .json"), "{output:?}");
    let output = command().args(["run", "--cpu", "native"]).env("HCOMM_SIM_TRACE", &svg).output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("HCOMM_SIM_TRACE: the trace file"), "{output:?}");
    assert!(!Path::new(&svg).exists());
}

/// Case 281.
#[test]
fn file_that_can_not_be_written_is_told_and_the_run_goes_on() {
    for path in ["/nowhere/t.json", "/proc/t.txt"] {
        let output = host_stub(["run", "--cpu", "native", "--trace", path]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told = format!("hcomm-sim: warning: the timeline was not written to {path}: ");
        assert!(String::from_utf8_lossy(&output.stderr).contains(&told), "{output:?}");
    }
}

/// The picture of the documents is what the code makes of the run. `HCOMM_WRITE_PICTURE=1` writes it again.
#[test]
fn picture_of_the_documents_is_that_of_the_stock_kernel() {
    let file = root().join("docs/timeline.svg");
    let mut timeline = staged_copy(DeviceOptions::deterministic(1));
    // Its number depends on what other tests do in the process.
    for track in timeline.tracks.iter_mut().filter(|track| track.kind == TrackKind::Host) {
        track.name = "host thread 1".to_owned();
    }
    let svg = host_stub::trace::picture(&timeline);
    if std::env::var_os("HCOMM_WRITE_PICTURE").is_some() {
        std::fs::write(&file, &svg).unwrap();
    }
    assert!(std::fs::read_to_string(file).unwrap() == svg, "run this test with HCOMM_WRITE_PICTURE=1");
    assert!(svg.contains("@media (prefers-color-scheme: dark)") && !svg.contains("http:") | svg.contains("w3.org"));
    for class in ["call", "launch", "kernel", "task", "wait", "arrow"] {
        assert!(svg.contains(&format!("class=\"{class}\"")), "{class}");
    }
}

/// One device with [`Cpu::Native`] writes the same events whether or not it writes a file.
#[test]
fn trace_file_does_not_change_the_run() {
    let folder = Folder::new("trace_same");
    let trace = |trace| {
        let rig = Rig::with_options(DeviceOptions { trace, ..DeviceOptions::deterministic(9) });
        let thread = rig.thread(8);
        let buffers = [rig.buffer(&[1; 64]), rig.buffer(&[2; 64])];
        rig.good_calls(&[copy(thread, buffers[0].addr(), buffers[1].addr(), 64)]).unwrap();
        assert_eq!(rig.device.options().cpu, Cpu::Native);
        rig.device.trace().to_string()
    };
    assert_eq!(trace(None), trace(Some(folder.path("t.txt").into())));
}
