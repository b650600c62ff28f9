//! The `host-stub` binary as a user runs it.

use std::ffi::OsStr;
use std::process::{Command, Output};

/// Runs the binary to its end.
pub fn host_stub<I, A>(args: I) -> Output
where
    I: IntoIterator<Item = A>,
    A: AsRef<OsStr>,
{
    // The backtrace of a kernel's panic takes seconds to print in a debug build: more than a launch may take in some tests.
    Command::new(env!("CARGO_BIN_EXE_host-stub"))
        .args(args)
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("host-stub starts")
}

/// Standard output as text.
pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("standard output is UTF-8")
}

/// The one JSON object that is all of standard output.
pub fn json(output: &Output) -> serde_json::Value {
    let value: serde_json::Value = serde_json::from_str(stdout(output)).expect("standard output is one JSON value");
    assert!(value.is_object(), "{value}");
    value
}
