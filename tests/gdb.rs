//! A debugger at the AI CPU: the commands of docs/debugging.md.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use hcomm_testkit::cli::{command, host_stub};
use hcomm_testkit::root;
use host_stub::{Cpu, Device, DeviceOptions};

const GDB: &str = "gdb-multiarch";

/// A port that nothing listens at.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Stops in the stock kernel, shows the stack and the line, and lets the run end.
#[test]
fn debugger_stops_at_a_line_of_a_kernel_in_qemu() {
    if Command::new(GDB).arg("--version").output().is_err() {
        eprintln!("WARNING: NOT TESTED: {GDB} is not installed; type: scripts/setup.sh gdb");
        return;
    }
    let port = free_port().to_string();
    let mut run = command();
    run.args(["run", "--gdb", &port]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    let mut stderr = BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    // What is printed is what has to be typed.
    let typed = line.trim().strip_prefix("qemu waits for a debugger; type: ").unwrap_or_else(|| panic!("{line}"));
    assert!(typed.starts_with(GDB) && typed.contains(&format!("target remote 127.0.0.1:{port}")), "{typed}");
    let source = std::fs::read_to_string(root().join("kernel/src/local_copy.rs")).unwrap();
    let at = 1 + source.lines().position(|line| line.contains("= queued::thread(")).unwrap();
    let stop = format!("break local_copy.rs:{at}");
    let commands = ["set confirm off", &stop, "continue", "backtrace", "detach"];
    let batch: String = commands.iter().map(|command| format!(" -ex '{command}'")).collect();
    let debugger = Command::new("sh").arg("-c").arg(format!("{typed} -batch{batch}")).output().unwrap();
    let text = String::from_utf8_lossy(&debugger.stdout);
    assert!(
        text.contains(&format!("kernel/src/local_copy.rs:{at}")),
        "{text}{}",
        String::from_utf8_lossy(&debugger.stderr)
    );
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(run.wait().unwrap().success(), "{rest}");
}

/// A debugger is for QEMU alone, and a port is a number from 1.
#[test]
fn debugger_elsewhere_is_refused() {
    let native = Device::open(DeviceOptions { cpu: Cpu::Native, gdb: Some(1234), ..DeviceOptions::default() });
    let message = native.map(|_| ()).unwrap_err().to_string();
    assert!(message.starts_with("only the cpu qemu waits for a debugger"), "{message}");
    for port in ["0", "65536", "x"] {
        let output = host_stub(["run", "--gdb", port]);
        assert_eq!(output.status.code(), Some(2), "{port}");
    }
    let mut run = command();
    run.args(["run"]).env("HCOMM_SIM_GDB", "none");
    let output = run.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && text.contains("port \"none\" for a debugger (HCOMM_SIM_GDB): must be"),
        "{text}"
    );
}
