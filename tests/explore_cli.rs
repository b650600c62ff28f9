//! `host-stub explore`: a program under many schedules, the token of one that fails, exit codes.

use std::process::Output;

use hcomm_testkit::cli::{host_stub, program, stdout};

/// `host-stub explore ARGS -- host-stub run PROGRAM`.
fn explore(args: &[&str], run: &[&str]) -> Output {
    let program = program().to_string_lossy().into_owned();
    host_stub([&["explore"], args, &["--", &program, "run"], run].concat())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Case 368.
#[test]
fn program_is_run_under_several_schedules_and_they_are_counted() {
    for strategy in ["random", "pct:2"] {
        let output = explore(&["--schedules", "4", "--jobs", "2", "--strategy", strategy], &["--cpu", "native"]);
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
        let text = stdout(&output);
        assert!(text.starts_with("4 schedules, ") && text.trim_end().ends_with(" distinct"), "{text}");
        assert!(!text.contains("0 distinct"), "{text}");
    }
}

/// Case 369.
#[test]
fn failing_schedule_is_told_with_its_output_and_repeated_by_its_token() {
    let faulty = ["--cpu", "native", "--seed", "1", "--fault", "sdma-error"];
    let output = explore(&["--first", "7"], &faulty);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output).to_owned();
    let token = text.lines().find_map(|line| line.strip_prefix("token: ")).expect("a token");
    assert!(token.starts_with("s1.r.7."), "{token}");
    assert!(text.contains(&format!("replay: host-stub explore --replay {token} -- ")), "{text}");
    assert!(text.contains("507"), "output of the program: {text}");
    let again = explore(&["--replay", token], &faulty);
    assert_eq!((again.status.code(), stdout(&again)), (Some(1), text.as_str()));
    // The devices of another command line have other options.
    let other = explore(&["--replay", token], &["--cpu", "native", "--seed", "1"]);
    assert_eq!(other.status.code(), Some(3));
    assert!(stderr(&other).contains("other options of the devices"), "{}", stderr(&other));
}

#[test]
fn what_can_not_be_explored_is_told_with_its_exit_code() {
    let code = |output: &Output| output.status.code();
    let exhaustive = explore(&["--strategy", "exhaustive"], &["--cpu", "native"]);
    assert_eq!(code(&exhaustive), Some(3));
    let no_device = host_stub(["explore", "--", "/bin/true"]);
    assert!(code(&no_device) == Some(3) && stderr(&no_device).contains("opened no device"), "{}", stderr(&no_device));
    let no_program = host_stub(["explore", "--", "/no/such/program"]);
    assert_eq!(code(&no_program), Some(2));
    let newer = explore(&["--replay", "s2.r.7.ff"], &["--cpu", "native"]);
    assert!(code(&newer) == Some(2) && stderr(&newer).contains("version 2 of the choice points"), "{}", stderr(&newer));
}
