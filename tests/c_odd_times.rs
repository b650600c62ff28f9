//! Calls at times when programs make them seldom: at exit, at the end of a thread, in a forked child, after a device has failed.

mod c_kit;

use std::collections::BTreeMap;

use c_kit::{LONG, kernels, limited, on_qemu, program, run};
use hcomm_testkit::root;

/// Times of `odd_times.cpp` in the order of the columns of docs/c-api.md.
const TIMES: [&str; 6] = ["normal", "atexit", "destructor", "thread-exit", "fork", "failed"];

/// Runs a program with a description of kernels and one more argument, natively and on QEMU, and gives what it printed.
fn on_both(name: &str, dialect: &str, arguments: &[&str]) -> Vec<[String; 2]> {
    let (folder, description) = kernels(&format!("odd_times_{name}"));
    let program = program(&folder, name, dialect);
    let command = |argument: &str| {
        let mut command = limited(&program, LONG);
        command.arg(&description).arg(argument);
        command
    };
    arguments.iter().map(|argument| [run(&mut command(argument)), run(on_qemu(&mut command(argument)))]).collect()
}

/// Rows of the table of odd times in docs/c-api.md: calls, and the cell of each time.
fn documented() -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(root().join("docs/c-api.md")).unwrap();
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| call | normal |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut found = BTreeMap::new();
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (calls, codes) = cells.split_first().unwrap();
        let codes: Vec<_> = codes.iter().map(|code| (*code).to_owned()).collect();
        for call in calls.split('`').skip(1).step_by(2) {
            assert_eq!(found.insert(call.to_owned(), codes.clone()), None, "{call} is there twice");
        }
    }
    found
}

/// Case 115.
#[test]
fn every_call_at_an_odd_time_is_answered_as_the_table_says() {
    let printed = on_both("odd_times.cpp", "c++17", &TIMES);
    let mut cells = BTreeMap::<String, Vec<String>>::new();
    for (time, [native, qemu]) in TIMES.iter().zip(&printed) {
        assert_eq!(native, qemu, "{time}");
        for line in native.lines() {
            let (call, code) = line.rsplit_once(' ').unwrap();
            cells.entry(call.to_owned()).or_default().push(code.to_owned());
        }
    }
    assert_eq!(cells, documented());
    // All functions are in it.
    let listed = std::fs::read_to_string(root().join("docs/abi-host.txt")).unwrap();
    let names = listed.lines().filter(|line| !line.starts_with('#'));
    for name in names {
        assert!(cells.keys().any(|call| call.split(' ').next() == Some(name)), "{name} is not in the table");
    }
}

fn each_prints_its_name(program: &str, names: &[&str]) {
    for (name, printed) in names.iter().zip(on_both(program, "gnu11", names)) {
        assert_eq!(printed, [format!("{name}\n"), format!("{name}\n")]);
    }
}

/// Case 116.
#[test]
fn forked_children_are_answered_at_once_and_the_parent_is_as_it_was() {
    each_prints_its_name("forks.c", &["before", "closed", "exits", "busy"]);
}

/// Case 117.
#[test]
fn ended_threads_do_not_keep_a_device_from_being_reset() {
    each_prints_its_name("ended_threads.c", &["failed", "late", "live", "alone"]);
}
