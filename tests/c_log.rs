//! `hcomm_log` and `assert` of kernels in C and C++, on every CPU.

mod c_kit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use c_kit::{LONG, folder, kernel, limited, linux_library, on_linux, on_qemu, operator, output, program, source};

/// Lines of `logs_lines` and their levels. The first 252 bytes of a line of 299, and a mark.
fn lines() -> Vec<(&'static str, String)> {
    let long: String = (0..252).map(|at| char::from(b'0' + at % 10)).collect();
    vec![
        ("error", "-7|   42|42   |-0042|+42| 42|007|   1".to_owned()),
        ("warn", "7|ff|0XFF|010|0000beef|1099511627776|18446744073709551615|300".to_owned()),
        ("info", "1|-2|-3|-9223372036854775808|5|7".to_owned()),
        ("info", "text|  text|text  |te|c|(nil)|%".to_owned()),
        ("debug", "1.500000|-2.35|    10.0|>=1e18|0.000000".to_owned()),
        ("info", long + "..."),
    ]
}

/// Program, and a description of the kernels of `log_kernel.c` in a library in this dialect; for Linux on AArch64, if it is to be.
fn built(test: &str, dialect: &str, linux: bool) -> (PathBuf, PathBuf) {
    let folder = folder(test);
    match linux {
        true => linux_library(&source("log_kernel.c"), &folder.join("libk.so"), &[]),
        false => kernel(&folder, "log_kernel.c", dialect, "libk.so"),
    }
    let description = folder.join("k.json");
    let operators = [operator("LogsLines", "libk.so", "logs_lines"), operator("Asserts", "libk.so", "asserts")];
    std::fs::write(&description, format!("{{{}}}", operators.join(","))).unwrap();
    (program(&folder, "log_host.c", "c11"), description)
}

fn command(program: &Path, description: &Path, operator: &str) -> Command {
    let mut command = limited(program, LONG);
    command.arg(description).arg(operator).env("HCOMM_SIM_LOG", "trace");
    command
}

/// The lines of the log that come from a kernel, without their time; each must have one.
fn logged(output: &Output) -> Vec<(String, String)> {
    let errors = String::from_utf8_lossy(&output.stderr);
    let of_kernel = |line: &str| {
        let (level, rest) = line.strip_prefix("hcomm-sim ")?.split_once(": [logs_lines, launch 1, core 0, ")?;
        let (time, text) = rest.split_once(" s] ")?;
        assert!(time.parse::<f64>().is_ok(), "{line}");
        // The image says so itself.
        let is_start = text.starts_with("launch 1: entry 0x");
        (!is_start).then(|| (level.to_owned(), text.to_owned()))
    };
    errors.lines().filter_map(of_kernel).collect()
}

fn assert_logged(output: &Output) {
    let expected: Vec<_> = lines().into_iter().map(|(level, text)| (level.to_owned(), text)).collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "LogsLines 0 \n", "{errors}");
    assert_eq!(logged(output), expected, "{errors}");
}

/// Line of `log_kernel.c` that contains `text`.
fn line_of(text: &str) -> usize {
    let source = std::fs::read_to_string(source("log_kernel.c")).unwrap();
    source.lines().position(|line| line.contains(text)).unwrap() + 1
}

/// Case 450.
#[test]
fn kernels_in_c_log_the_same_lines_on_every_cpu() {
    for dialect in ["c11", "c++17"] {
        let (program, description) = built(&format!("log_{dialect}"), dialect, false);
        assert_logged(&output(&mut command(&program, &description, "LogsLines")));
    }
    let (program, description) = built("log_linux", "c++17", true);
    assert_logged(&output(on_linux(&mut command(&program, &description, "LogsLines"))));
    assert_logged(&output(on_qemu(&mut command(&program, &description, "LogsLines"))));
}

/// Case 451.
#[test]
fn failed_assertion_of_a_kernel_is_told_with_text_file_and_line() {
    let line = line_of("the line of the assertion");
    let (program, description) = built("log_asserts", "c11", false);
    let native = output(&mut command(&program, &description, "Asserts"));
    let errors = String::from_utf8_lossy(&native.stderr);
    assert!(!native.status.success());
    assert!(errors.contains(&format!("log_kernel.c:{line}: ")), "{errors}");
    assert!(errors.contains("`param->len == 12345' failed"), "{errors}");

    let qemu = output(on_qemu(&mut command(&program, &description, "Asserts")));
    let text = String::from_utf8_lossy(&qemu.stdout);
    assert!(text.contains("kernel asserts faulted: panic: assertion failed: param->len == 12345, at "), "{text}");
    assert!(text.contains(&format!("log_kernel.c:{line}, in ")), "{text}");

    let (program, description) = built("log_asserts_linux", "c++17", true);
    let linux = output(on_linux(&mut command(&program, &description, "Asserts")));
    let (text, errors) = (String::from_utf8_lossy(&linux.stdout), String::from_utf8_lossy(&linux.stderr));
    assert!(text.contains("SIGABRT: abort() was called, in asserts (c/log_kernel.c:"), "{text}{errors}");
    assert!(errors.contains(&format!("log_kernel.c:{line}: ")), "{errors}");
    assert!(errors.contains("`param->len == 12345' failed"), "{errors}");
}
