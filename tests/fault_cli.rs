//! `--fault` on the command line: each fault with its message and exit code, and nothing left behind by a program that dies.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hcomm_testkit::cli::{command, host_stub, json, program, stdout};
use hcomm_testkit::{marked, wait_until};

/// Exit code and standard error of a run with faults.
fn run(cpu: &str, faults: &[&str]) -> (i32, String) {
    // What never ends is given up after a second; everything else has time on a busy machine.
    let is_endless = faults.iter().any(|fault| ["hang", "dead-queue", "dead-queue:after=1"].contains(fault));
    let mut args = vec!["run", "--cpu", cpu, "--timeout", if is_endless { "1" } else { "60" }];
    for fault in faults {
        args.extend(["--fault", fault]);
    }
    let output = host_stub(args);
    let code = output.status.code().unwrap_or_else(|| panic!("{:?} ended by {:?}", faults, output.status.signal()));
    (code, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn each_fault_is_shown_with_its_message_and_exit_code_1() {
    for (fault, text) in [
        ("sdma-error", "device error 507001: stream 1, sq 0, task 0x1 in slot 1: sdma error (fault plan): src 0x12c"),
        (
            "translation",
            "device error 507001: stream 1, sq 0, task 0x1 in slot 1: translation fault (fault plan): src 0x12c",
        ),
        ("doorbell", "device error 507018: stream 2: kernel local_copy returned 16 (HCCL_E_DRV)"),
        ("dead-queue", "device error 507001: stream 1, sq 0, task 0x0 in slot 0: not done within 1s (head 0, tail 3)"),
        (
            "panic",
            "device error 507018: stream 2: kernel misbehave in place of local_copy faulted: panic: a kernel that",
        ),
        ("hang", "device error 507017: stream 2: kernel misbehave in place of local_copy has not returned within 1s"),
    ] {
        for cpu in ["native", "qemu"] {
            let (code, stderr) = run(cpu, &[fault]);
            // A device that fails before the launch is queued whole tells the next call, without the number.
            let (number, rest) = text.split_once(": ").unwrap();
            let is_told = ["device already failed", number].map(|of| stderr.contains(&format!("error: {of}: {rest}")));
            assert!(code == 1 && is_told != [false; 2], "{cpu} {fault}: {code} {stderr}");
            assert!(stderr.starts_with(&format!("fault: {fault}:")), "{stderr}");
        }
    }
}

#[test]
fn exceptions_are_shown_on_qemu_and_not_supported_natively() {
    for (fault, text) in [
        ("data-abort", "faulted: data abort: read at 0xdead0000"),
        ("undefined", "faulted: undefined instruction, in "),
        ("stack-overflow", "faulted: stack overflow: "),
    ] {
        let (code, stderr) = run("qemu", &[fault]);
        assert!(code == 1 && stderr.contains(text) && stderr.contains("(kernel/src/misbehave.rs:"), "{code} {stderr}");
        let (code, stderr) = run("native", &[fault]);
        assert!(code == 3 && stderr.contains("is not supported on the native cpu"), "{code} {stderr}");
    }
}

#[test]
fn slow_queue_only_takes_longer_and_a_fault_that_hits_nothing_does_nothing() {
    for cpu in ["native", "qemu"] {
        let started = Instant::now();
        let (code, stderr) = run(cpu, &["slow-queue:time=100ms"]);
        assert!(code == 0 && stderr.starts_with("fault: slow-queue:time=100"), "{cpu}: {code} {stderr}");
        // A copy between two notifies.
        assert!(started.elapsed() >= Duration::from_millis(300), "{cpu}: {:?}", started.elapsed());
        assert_eq!(run(cpu, &["sdma-error:n=9", "panic:stream=77"]).0, 0);
    }
}

#[test]
fn wrong_spec_is_a_usage_error_that_names_the_place() {
    for (spec, place) in
        [("sdma", r#"at "sdma" (byte 0)"#), ("hang:n=0", r#"at "0" (byte 7)"#), ("", r#"at "" (byte 0)"#)]
    {
        for command in [&["run"][..], &["copy", "in", "out"]] {
            let output = host_stub([command, &["--json", "--fault", spec]].concat());
            assert_eq!(output.status.code(), Some(2));
            let message = json(&output)["error"].as_str().unwrap().to_owned();
            assert!(message.contains("--fault") && message.contains(place), "{message}");
        }
    }
}

#[test]
fn json_has_the_runtime_code_and_the_seed_repeats_a_random_fault() {
    let dir = std::env::temp_dir().join(format!("hcomm-fault-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (input, out) = (dir.join("in"), dir.join("out"));
    std::fs::write(&input, vec![7; 64 << 10]).unwrap();
    let copy = |fault: &str| {
        let paths = [input.to_str().unwrap(), out.to_str().unwrap()];
        let output = host_stub(
            [&["copy"], &paths[..], &["--cpu", "native", "--json", "--ccl-buffer", "1024", "--fault", fault]].concat(),
        );
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let object = json(&output);
        assert_eq!((&object["code"], &object["runtime_code"]), (&1.into(), &507_001.into()), "{object}");
        // Whether the launch or the synchronise finds the error first depends on the machine; what failed does not.
        let (_, task) = object["error"].as_str().unwrap().split_once(": ").unwrap();
        (task.to_owned(), String::from_utf8(output.stderr).unwrap())
    };
    // 64 chunks, so 64 tasks.
    let (error, stderr) = copy("sdma-error:n=1-64");
    let seed = stderr.split_once("(seed ").unwrap().1.split_once(')').unwrap().0;
    let (again, _) = copy(&format!("sdma-error:n=1-64,seed={seed}"));
    assert_eq!(error, again);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn help_has_the_grammar() {
    for command in ["run", "copy"] {
        let output = host_stub([command, "--help"]);
        assert!(stdout(&output).contains("SPEC = KIND[:KEY=VALUE[,KEY=VALUE...]]"), "{}", stdout(&output));
    }
}

/// Runs a kernel that hangs on QEMU, in a process that is found by `mark`.
fn hanging(mark: &str) -> Child {
    // A shell that starts the tests in the background may have SIGINT ignored, which every child inherits.
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(program()).args(["run", "--cpu", "qemu"]);
    command.args(["--fault", "hang", "--timeout", "600"]);
    let (name, value) = mark.split_once('=').unwrap();
    let child = command.env(name, value).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Until `env` has reset SIGINT and started the program, the signal would be lost.
    let comm = format!("/proc/{}/comm", child.id());
    assert!(wait_until(|| std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() == "host-stub")));
    child
}

fn has_qemu(mark: &str) -> bool {
    marked(mark).iter().any(|stat| stat.contains("(qemu-system"))
}

/// Kills one process, not its group, and checks that nothing is left of it.
fn kill(mut child: Child, mark: &str, signal: &str, when: &str) {
    let kill = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let status = child.wait().unwrap();
    assert!(status.signal().is_some(), "ended by itself: {status}");
    assert!(wait_until(|| marked(mark).is_empty()), "{signal} {when} left {:?}", marked(mark));
}

/// Case 166.
#[test]
fn killed_host_leaves_no_process_behind() {
    let own = std::process::id();
    for signal in ["KILL", "INT", "TERM", "ABRT"] {
        // From before QEMU is started to after it boots, whichever of that the machine has come to.
        for delay_ms in [0, 3, 7, 11, 14, 17, 20, 24, 30, 45, 60, 80, 120] {
            let mark = format!("HCOMM_TEST_MARK={own}-{delay_ms}-{signal}");
            let child = hanging(&mark);
            std::thread::sleep(Duration::from_millis(delay_ms));
            kill(child, &mark, signal, &format!("after {delay_ms} ms"));
        }
        // Once QEMU is there, and once its kernel has had time to begin.
        for delay_ms in [0, 300] {
            let mark = format!("HCOMM_TEST_MARK={own}-qemu-{delay_ms}-{signal}");
            let child = hanging(&mark);
            assert!(wait_until(|| has_qemu(&mark)), "QEMU is not started");
            std::thread::sleep(Duration::from_millis(delay_ms));
            kill(child, &mark, signal, &format!("{delay_ms} ms after QEMU"));
        }
    }
}

#[test]
fn host_that_ends_by_itself_leaves_no_process_behind() {
    let mark = format!("HCOMM_TEST_MARK={}-end", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    for args in [&["run"][..], &["run", "--fault", "hang", "--timeout", "1"], &["run", "--fault", "data-abort"]] {
        command().args(args).env(name, value).output().unwrap();
        assert_eq!(marked(&mark), Vec::<String>::new(), "{args:?}");
    }
}

/// Case 106.
#[test]
fn fault_that_hits_nothing_is_told() {
    for cpu in ["native", "qemu"] {
        for fault in ["sdma-error:task=0x99", "dead-queue:stream=77", "slow-queue:sq=9", "hang:n=5", "doorbell:n=9"] {
            let (code, stderr) = run(cpu, &[fault]);
            let rule: host_stub::FaultRule = fault.parse().unwrap();
            let text = format!("warning: the fault {rule} did not happen: ");
            assert!(code == 0 && stderr.contains(&text), "{cpu} {fault}: {code} {stderr}");
        }
        for fault in ["sdma-error", "doorbell", "panic", "dead-queue:after=1", "slow-queue:time=1ms"] {
            let (_, stderr) = run(cpu, &[fault]);
            assert!(!stderr.contains("did not happen"), "{cpu} {fault}: {stderr}");
        }
    }
}

/// Case 106.
#[test]
fn run_of_no_bytes_says_that_nothing_was_copied() {
    let output = host_stub(["run", "--cpu", "native", "--len", "0"]);
    assert!(output.status.success() && stdout(&output).contains("verified   nothing: --len 0 copies no bytes"));
}
