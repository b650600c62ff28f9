//! The `host-stub` program as a user runs it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::run::{root, target_dir};

/// Variable that names a `host-stub` program to test instead of building one.
pub const PROGRAM_VAR: &str = "HCOMM_HOST_STUB";

/// Path of the program. It is built first, so that a test never runs an old one.
///
/// # Panics
/// If it can't be built.
pub fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| std::env::var_os(PROGRAM_VAR).map_or_else(build, PathBuf::from)).clone()
}

fn build() -> PathBuf {
    let target = target_dir();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // Of the whole workspace, as the tests: with other features cargo would compile the dependencies twice.
    command.current_dir(root()).args(["build", "--quiet", "--locked", "--workspace", "--bin", "host-stub"]);
    let output =
        command.arg("--target-dir").arg(&target).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/host-stub")
}

/// A command that runs the program.
pub fn command() -> Command {
    let mut command = Command::new(program());
    // The backtrace of a kernel's panic takes seconds to print in a debug build: more than a launch may take in some tests.
    command.env("RUST_BACKTRACE", "0");
    command
}

/// Runs the program to its end.
///
/// # Panics
/// If it does not start.
pub fn host_stub<I, A>(args: I) -> Output
where
    I: IntoIterator<Item = A>,
    A: AsRef<OsStr>,
{
    command().args(args).output().expect("host-stub starts")
}

/// Standard output as text.
///
/// # Panics
/// If it is not UTF-8.
pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("standard output is UTF-8")
}

/// The one JSON object that is all of standard output.
///
/// # Panics
/// If it is anything else.
pub fn json(output: &Output) -> serde_json::Value {
    let value: serde_json::Value = serde_json::from_str(stdout(output)).expect("standard output is one JSON value");
    assert!(value.is_object(), "{value}");
    value
}
