//! The table of `make bench-compare`, from files as `make bench` writes them.

use std::fs;
use std::process::Command;

use hcomm_testkit::{Folder, root};

/// A file with rows of id, unit, value and limit.
fn write(path: &str, rows: &[(&str, &str, f64, Option<f64>)]) {
    let null = |limit: Option<f64>| limit.map_or("null".to_owned(), |limit| limit.to_string());
    let row = |(id, unit, value, limit): &(&str, &str, f64, Option<f64>)| {
        format!(
            "  {{\n    \"id\": \"{id}\",\n    \"unit\": \"{unit}\",\n    \"value\": {value},\n    \"limit\": {}\n  }}",
            null(*limit)
        )
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    fs::write(path, format!("[\n{}\n]\n", rows.join(",\n"))).unwrap();
}

/// Exit code and table for a count, a time (less is better) and a rate (more is better), three runs each.
fn compare(name: &str, base: [[f64; 3]; 3], head: [[f64; 3]; 3]) -> (Option<i32>, String) {
    let folders = [Folder::new(&format!("bench-{name}-base")), Folder::new(&format!("bench-{name}-head"))];
    for (folder, [counts, times, rates]) in folders.iter().zip([base, head]) {
        for run in 0..3 {
            let rows = [
                ("copy_eager", "instructions", counts[run], Some(75.0)),
                ("launch_native", "us", times[run], None),
                ("small_native_eager", "SQE/s", rates[run], None),
            ];
            write(&folder.path(&format!("{run}.json")), &rows);
        }
    }
    let script = root().join("scripts/bench_compare.sh");
    let output =
        Command::new(script).arg("--table").args(folders.iter().map(|folder| folder.path(""))).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// Case 265.
#[test]
fn larger_count_and_worse_median_fail_and_nothing_else() {
    let (counts, times, rates) = ([72.6; 3], [8.0, 30.0, 10.0], [1e6, 3e6, 2e6]);
    let base = [counts, times, rates];
    let (code, table) = compare("same", base, base);
    assert_eq!(code, Some(0), "{table}");
    assert_eq!(table.lines().count(), 4, "{table}");
    // One slow run does not matter, nor 10 % of the median, nor what got better.
    let (code, table) = compare("good", base, [[70.0; 3], [10.9, 500.0, 1.0], [1.81e6, 9e6, 0.0]]);
    assert_eq!(code, Some(0), "{table}");
    for (name, head, worse) in [
        ("count", [[72.61; 3], times, rates], "copy_eager"),
        ("time", [counts, [11.2; 3], rates], "launch_native"),
        ("rate", [counts, times, [1.79e6; 3]], "small_native_eager"),
    ] {
        let (code, table) = compare(name, base, head);
        assert_eq!(code, Some(1), "{table}");
        let bad: Vec<_> = table.lines().filter(|line| line.ends_with("WORSE")).collect();
        assert!(matches!(bad[..], [line] if line.starts_with(worse)), "{table}");
    }
}
