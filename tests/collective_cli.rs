//! Command line of `collective`.

use hcomm_testkit::cli::{host_stub, json, stdout};

/// Case 355. One row a size, with the counts of all ranks and no wrong element.
#[test]
fn sweep_has_a_row_for_each_size() {
    let output = host_stub([
        "collective",
        "all_reduce",
        "--ranks",
        "2",
        "--sizes",
        "8:512:8",
        "--seed",
        "7",
        "--ccl-buffer",
        "4K",
    ]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    let rows: Vec<Vec<&str>> =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["8", "64", "512"], "{text}");
    assert!(rows.iter().all(|row| row.len() == 9 && row[8] == "0"), "{text}");
    assert!(text.contains("# all_reduce over 2 ranks, fp32, sum, cpu native") && text.contains("seed 0x7"), "{text}");
    assert!(text.contains("host time (us)") && text.contains("sim algbw") && text.contains("sim busbw"), "{text}");
}

#[test]
fn counts_repeat_and_are_those_of_the_algorithm() {
    let run = || {
        let args =
            ["collective", "broadcast", "--ranks", "3", "--sizes", "64", "--dtype", "int8", "--root", "1", "--json"];
        let output = host_stub(args);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let object = json(&output);
        let row = object["rows"][0].clone();
        assert_eq!((&object["collective"], &object["op"]), (&"broadcast".into(), &serde_json::Value::Null));
        (row["tasks"].clone(), row["entries"].clone(), row["wrong"].clone())
    };
    let (tasks, entries, wrong) = run();
    // Two records at each end of three channels, and a write to each of two peers.
    assert_eq!((entries, wrong), (14.into(), 0.into()));
    assert_eq!(run().0, tasks);
}

#[test]
fn every_collective_runs_in_place_with_checks() {
    for name in ["all_gather", "reduce_scatter", "all_reduce", "all_reduce_ring", "all_to_all", "broadcast"] {
        let checks = "race,init,free,calls,sync";
        let output =
            host_stub(["collective", name, "--ranks", "3", "--sizes", "3000", "--in-place", "--check", checks]);
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
    }
}

/// Case 356.
#[test]
fn wrong_arguments_name_what_they_must_be() {
    let cases: [(&[&str], &str); 7] = [
        (&["reduce"], "must be one of all_gather"),
        (&["all_reduce", "--ranks", "1"], "at least 2"),
        (&["all_reduce", "--ranks", "17"], "1 to 16"),
        (&["all_reduce", "--sizes", "8:4"], "from 8 to 4"),
        (&["all_reduce", "--dtype", "fp8"], "element type"),
        (&["all_reduce", "--op", "prod"], "sum, max or min"),
        (&["broadcast", "--root", "2"], "the ranks are 0 to 1"),
    ];
    for (args, text) in cases {
        let output = host_stub(["collective"].iter().chain(args));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(text), "{args:?}: {output:?}");
    }
}
