//! Planted bugs in an all-gather of four threads, in C: each is found on its first run, on every CPU, and nothing
//! else is. A finding is compared as a whole: kind, the lines of both calls, threads, bytes.

mod c_kit;

use std::path::{Path, PathBuf};
use std::process::Command;

use c_kit::{LONG, compiler, folder, limited, on_linux, on_qemu, operator, output, program, run, source};

/// Number of the bug in `gather.h`, and what is found. Lines stand for their comments.
///
/// An entry that begins with a code holds parts of a text.
const BUGS: &[(u32, &str, &[&str])] = &[
    (
        1,
        "no barrier",
        &[
            "race on 1000 at 0: read on thread 1 [out 0], write on thread 0 [in 0]",
            "race on 1000 at 1000: read on thread 2 [out 1], write on thread 1 [in 1]",
            "race on 1000 at 2000: read on thread 3 [out 2], write on thread 2 [in 2]",
            "race on 1000 at 3000: read on thread 0 [out 3], write on thread 3 [in 3]",
        ],
    ),
    (2, "a worker does not wait", &["race on 1000 at 2000: read on thread 3 [out 2], write on thread 2 [in 2]"]),
    (
        3,
        "barrier refused",
        &[
            "507018: returned 0 although calls of it were refused|notify index 99, the thread has 7|[record refused]|[wait refused]",
            "race on 1000 at 3000: read on thread 0 [out 3], write on thread 3 [in 3]",
        ],
    ),
    (4, "source never written", &["uninitialised 1000 at 3000: [read of the result]"]),
    (5, "accumulator never set", &["uninitialised 1000 at 0: [sum]"]),
    (6, "freed", &["507001: which was freed at [free of the result] before the first launch was queued"]),
    (
        7,
        "freed before the synchronise",
        &[
            "race on 1000 at 0: free [free before the synchronise], write on thread 1 [out 0]",
            "race on 1000 at 1000: free [free before the synchronise], write on thread 2 [out 1]",
            "race on 1000 at 2000: free [free before the synchronise], write on thread 3 [out 2]",
            "race on 1000 at 3000: free [free before the synchronise], write on thread 0 [out 3]",
        ],
    ),
    (
        8,
        "read before the synchronise",
        &[
            "race on 1000 at 0: read [read before the synchronise], write on thread 1 [out 0]",
            "race on 1000 at 1000: read [read before the synchronise], write on thread 2 [out 1]",
            "race on 1000 at 2000: read [read before the synchronise], write on thread 3 [out 2]",
            "race on 1000 at 3000: read [read before the synchronise], write on thread 0 [out 3]",
        ],
    ),
    (
        9,
        "refused",
        &["507018: returned 0 although calls of it were refused|HcommLocalCopyOnThread|dst is null|[copy refused]"],
    ),
    (10, "not started", &["early: write on thread 3 [in 3], wait on thread 0"]),
    (11, "no record", &["507048: deadlock"]),
    (12, "no wait", &["507001: was recorded once more than it was waited for"]),
    (13, "not joined", &["507001: that no notify orders before the end of the stream"]),
    (14, "a record too many", &["507001: was recorded once more than it was waited for"]),
];

/// Comment at the end of a line of a source in `tests/c`.
fn comment(file: &str, line: usize) -> String {
    let text = std::fs::read_to_string(source(file)).unwrap();
    let line = text.lines().nth(line - 1).unwrap_or_default();
    line.split_once("/* ").map_or(line.trim(), |(_, comment)| comment.trim_end_matches(" */")).to_owned()
}

/// The text with `[comment]` for each `file:line (function)` of the two sources.
fn with_comments(text: &str) -> String {
    let (mut rest, mut out) = (text, String::new());
    while let Some((before, found)) = rest.split_once(".c:") {
        let digits: String = found.chars().take_while(char::is_ascii_digit).collect();
        let (path_start, path) = before.rsplit_once(' ').map_or((0, before), |(head, path)| (head.len() + 1, path));
        let name = path.rsplit('/').next().unwrap_or_default();
        out += &before[..path_start];
        out += &format!("[{}]", comment(&format!("{name}.c"), digits.parse().unwrap()));
        let behind = &found[digits.len()..];
        rest = behind.strip_prefix(" (").and_then(|text| text.split_once(')')).map_or(behind, |(_, rest)| rest);
    }
    out + rest
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let (_, behind) = text.split_once(from).unwrap_or_else(|| panic!("no {from:?} in {text}"));
    behind.split_once(to).unwrap_or_else(|| panic!("no {to:?} behind {from:?} in {text}")).0
}

/// `write on thread 3 [in 3]` of `the write of task 2 (sdma copy) on thread 3 of the 4 acquired at [threads], queued at [in 3] ..`.
fn access(text: &str) -> String {
    let verb = text.trim_start_matches("the ").split(' ').next().unwrap();
    if text.contains(" host thread ") {
        return format!("{verb} [{}]", between(text, " at [", "]"));
    }
    let thread = between(text, " on thread ", " of the 4 acquired at [threads]");
    format!("{verb} on thread {thread} [{}]", between(text, ", queued at [", "]"))
}

/// What a line of the program says, in short.
fn finding(line: &str) -> String {
    let text = with_comments(line);
    let bytes = || {
        let [len, offset] =
            [between(&text, " on ", " bytes at "), between(&text, "(offset ", " of the allocation of ")];
        format!("{len} at {offset}")
    };
    if text.contains(": race on ") || text.contains(" race on ") {
        let accesses = between(&text, "nothing orders ", "; ");
        let (second, first) = accesses.split_once(" behind the ").unwrap();
        let mut both = [access(first), access(second)];
        both.sort();
        return format!("race on {}: {}, {}", bytes(), both[0], both[1]);
    }
    if text.contains("uninitialised read: ") {
        let uses = between(&text, " uses ", " bytes at ");
        let offset = between(&text, "(offset ", " of the allocation of ");
        return format!("uninitialised {uses} at {offset}: [{}]", between(&text, ", called at [", "]"));
    }
    if let Some((task, wait)) = text.split_once(" behind the wait for the start notify ") {
        let task = task.split_once("nothing orders the ").unwrap().1;
        return format!("early: {}, wait on thread {}", access(task), between(wait, " on thread ", " of the 4"));
    }
    text
}

/// Whether a line of the program is the expected finding.
fn is(expected: &str, line: &str) -> bool {
    let found = finding(line);
    match expected.split_once(": ") {
        Some((code, parts)) if code.starts_with("50") => {
            found.starts_with(code) && parts.split('|').all(|part| found.contains(part))
        }
        _ => found == expected,
    }
}

/// The program, and a description of its kernel as it is compiled for `dialect`.
fn built(test: &str) -> (PathBuf, Vec<PathBuf>) {
    let folder = folder(test);
    let descriptions = ["c11", "c++17"].map(|dialect| {
        let library = format!("libgather_{}.so", dialect.replace("++", "xx"));
        c_kit::kernel(&folder, "gather_kernel.c", dialect, &library);
        let description = folder.join(format!("{dialect}.json"));
        std::fs::write(&description, format!("{{{}}}", operator("GatherFour", &library, "gather_four"))).unwrap();
        description
    });
    run(compiler("c++17").arg("-c").arg(source("gather.c")).arg("-o").arg(folder.join("gather.o")));
    (program(&folder, "gather.c", "c11"), descriptions.into())
}

fn command(program: &Path, description: &Path, bug: u32, rounds: u32) -> Command {
    let mut command = limited(program, LONG);
    command.arg(description).arg(bug.to_string()).arg(rounds.to_string()).env_remove("HCOMM_SIM_CHECK");
    command
}

/// Runs the program with a bug: what it finds must be the expected, and nothing else.
fn expect(command: &mut Command, name: &str, expected: &[&str]) {
    let output = output(command);
    let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success() && errors.is_empty(), "{name}: {command:?}: {}\n{text}{errors}", output.status);
    let mut lines: Vec<_> = text.lines().filter(|line| *line != "equal").collect();
    for expected in expected {
        let found = lines.iter().position(|line| is(expected, line));
        let shown = || text.lines().map(|line| format!("{line}\n  = {}\n", finding(line))).collect::<String>();
        lines.remove(found.unwrap_or_else(|| panic!("{name}: {command:?}: {expected:?} is not found in\n{}", shown())));
    }
    assert_eq!(lines, [""; 0], "{name}: {command:?}: more than was planted");
}

/// Case 232, 233, 234, 235, 236, 237, 239.
#[test]
fn planted_bugs_are_found_on_the_first_run_natively() {
    let (program, descriptions) = built("planted_native");
    for (bug, name, expected) in BUGS {
        for description in &descriptions {
            expect(&mut command(&program, description, *bug, 1), name, expected);
        }
    }
}

/// Case 232, 233, 234, 235, 236, 237, 239.
#[test]
fn planted_bugs_are_found_on_the_first_run_in_the_image() {
    let (program, descriptions) = built("planted_qemu");
    for (bug, name, expected) in BUGS {
        expect(on_qemu(&mut command(&program, &descriptions[0], *bug, 1)), name, expected);
    }
}

/// The program, and a description of its kernel as a library of AArch64 Linux.
fn built_for_linux(test: &str) -> (PathBuf, PathBuf) {
    let (program, _) = built(test);
    let folder = program.parent().unwrap().to_owned();
    c_kit::linux_library(&source("gather_kernel.c"), &folder.join("libgather_linux.so"), &[]);
    let description = folder.join("linux.json");
    std::fs::write(&description, format!("{{{}}}", operator("GatherFour", "libgather_linux.so", "gather_four")))
        .unwrap();
    (program, description)
}

/// Case 232, 233, 234, 235, 236, 237, 239.
#[test]
fn planted_bugs_are_found_on_the_first_run_in_a_library_of_linux() {
    let (program, description) = built_for_linux("planted_linux");
    for (bug, name, expected) in BUGS {
        expect(on_linux(&mut command(&program, &description, *bug, 1)), name, expected);
    }
}

/// Case 238. `HCOMM_GATHER_ROUNDS` says how often.
#[test]
fn kernel_without_a_bug_is_green_every_time() {
    let (program, descriptions) = built("planted_none");
    let rounds = |default| std::env::var("HCOMM_GATHER_ROUNDS").map_or(default, |rounds| rounds.parse().unwrap());
    let equal = |count: u32| "equal\n".repeat(count as usize);
    let native = rounds(100);
    for description in &descriptions {
        assert_eq!(run(&mut command(&program, description, 0, native)), equal(native));
    }
    let image = rounds(20);
    assert_eq!(run(on_qemu(&mut command(&program, &descriptions[0], 0, image))), equal(image));
    let (program, description) = built_for_linux("planted_none_linux");
    assert_eq!(run(on_linux(&mut command(&program, &description, 0, image))), equal(image));
}
