//! Programs and kernels in C and C++ for the tests of the C API: compiled as users would, against `include/` and the libraries
//! that `make capi` has built.
#![allow(dead_code, reason = "each test file uses a part")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use hcomm_testkit::{root, target_dir};

/// Flags that every source passes without a warning.
pub const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];

/// Headers with functions of the host, below `include/`.
pub const HEADERS: [&str; 10] = [
    "acl/acl_rt.h",
    "hccl/hccl_comm.h",
    "hccl/hccl_res.h",
    "hccl/hccl_res_expt.h",
    "hccl/hccl_channel.h",
    "hccl/hccl_rank_graph.h",
    "hccl/hccl_launch.h",
    "hcomm/hcomm_res.h",
    "hcomm/hcomm_primitives.h",
    "hcomm/hcomm_log.h",
];

/// What `make capi` has built.
pub fn built(name: &str) -> PathBuf {
    let path = target_dir().join("capi").join(name);
    assert!(path.exists(), "{} is not there: build it with `make capi`", path.display());
    path
}

/// A new folder for one test.
pub fn folder(test: &str) -> PathBuf {
    let path = target_dir().join("tmp/c_api").join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command that must succeed, and gives what it printed.
pub fn run(command: &mut Command) -> String {
    let output = output(command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text
}

/// A command that is killed if it hangs.
pub fn limited(program: impl AsRef<OsStr>, limit: Duration) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", &limit.as_secs().to_string()]).arg(program);
    command
}

/// Compiler and its flags for one dialect.
pub fn compiler(dialect: &str) -> Command {
    let is_c = matches!(dialect, "c11" | "gnu11");
    let mut command = Command::new(if is_c { "cc" } else { "c++" });
    if !is_c {
        command.args(["-x", "c++"]);
    }
    command.arg(format!("-std={dialect}")).args(["-g", "-O1"]).args(WARNINGS);
    command.arg("-I").arg(root().join("include")).arg("-I").arg(root().join("tests/c"));
    command
}

pub fn source(name: &str) -> PathBuf {
    root().join("tests/c").join(name)
}

/// Compiles a program against the shared library.
pub fn program(folder: &Path, name: &str, dialect: &str) -> PathBuf {
    let out = folder.join(format!("{name}-{dialect}"));
    let library = built("libhcomm_sim.so").parent().unwrap().to_owned();
    let rpath = format!("-Wl,-rpath,{}", library.display());
    let link = ["-x", "none", "-lhcomm_sim", "-lpthread"];
    run(compiler(dialect).arg(source(name)).arg("-o").arg(&out).arg("-L").arg(&library).args(link).arg(rpath));
    out
}

/// Compiles a kernel into a shared library, all `Hcomm*` undefined.
pub fn kernel(folder: &Path, name: &str, dialect: &str, library: &str) {
    run(compiler(dialect).args(["-fPIC", "-shared"]).arg(source(name)).arg("-o").arg(folder.join(library)));
}

pub fn operator(name: &str, library: &str, function: &str) -> String {
    format!(
        r#""{name}": {{"opInfo": {{"opKernelLib": "AICPUKernel", "kernelSo": "{library}", "functionName": "{function}"}}}}"#
    )
}

/// A folder with the kernels of `tests/c`, and a description of them.
pub fn kernels(test: &str) -> (PathBuf, PathBuf) {
    let folder = folder(test);
    kernel(&folder, "copy_kernel.c", "c11", "libcopy_kernel.so");
    kernel(&folder, "copy_kernel.c", "c++17", "libcopy_kernel_as_cxx.so");
    kernel(&folder, "control_kernel.c", "c11", "libcontrol_kernel.so");
    kernel(&folder, "cxx_kernel.cpp", "c++17", "libcxx_kernel.so");
    kernel(&folder, "std_kernel.cpp", "c++17", "libstd_kernel.so");
    let description = folder.join("good.json");
    let operators = [
        operator("Copy256", "libcopy_kernel.so", "copy_256"),
        operator("Copy256AsCxx", "libcopy_kernel_as_cxx.so", "copy_256"),
        operator("CopyLen", "libcopy_kernel.so", "copy_len"),
        operator("CopyCxx", "libcxx_kernel.so", "copy_cxx"),
        operator("CopyStd", "libstd_kernel.so", "copy_std"),
        operator("WriteTwice", "libcontrol_kernel.so", "write_twice"),
        operator("ByNotifies", "libcontrol_kernel.so", "by_notifies"),
        operator("NoEnd", "libcontrol_kernel.so", "no_end"),
        operator("FailsLate", "libcontrol_kernel.so", "fails_late"),
        operator("OpenBatch", "libcontrol_kernel.so", "open_batch"),
        operator("NeverReturns", "libcontrol_kernel.so", "never_returns"),
        operator("EveryCall", "libcontrol_kernel.so", "every_call"),
        operator("WaitsBriefly", "libcontrol_kernel.so", "waits_briefly"),
        operator("Fail", "libcopy_kernel.so", "fail"),
        operator("NoSuchFunction", "libcopy_kernel.so", "no_such_function"),
    ];
    std::fs::write(&description, format!("{{{}}}", operators.join(",\n"))).unwrap();
    (folder, description)
}

pub fn on_qemu(command: &mut Command) -> &mut Command {
    command.env("HCOMM_SIM_CPU", "qemu").env("HCOMM_IMAGE", built("kernels.elf"))
}

/// What `make linux` has built.
pub fn runner() -> PathBuf {
    let path = target_dir().join("aarch64-unknown-linux-gnu/linux/hcomm-runner");
    assert!(path.exists(), "{} is not there: build it with `make linux`", path.display());
    path
}

pub fn on_linux(command: &mut Command) -> &mut Command {
    command.env("HCOMM_SIM_CPU", "linux").env("HCOMM_RUNNER", runner())
}

/// Compiles a source in C++ into a library for AArch64 Linux, all `Hcomm*` undefined.
pub fn linux_library(source: &Path, out: &Path, options: &[&str]) {
    let mut command = Command::new("aarch64-linux-gnu-g++");
    command.args(["-std=c++17", "-g", "-O1", "-fPIC", "-shared"]).args(WARNINGS);
    command.arg("-I").arg(root().join("include")).arg("-I").arg(root().join("tests/c"));
    run(command.arg(source).args(options).arg("-o").arg(out));
}

/// Whether a tool is there. Its absence fails a test under CI, and is said loudly elsewhere.
pub fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "{tool} is not installed");
    if !found {
        eprintln!("NOT TESTED: {tool} is not installed");
    }
    found
}

/// Longest time of a program that takes a second on an idle machine.
pub const LONG: Duration = Duration::from_secs(300);
