//! Ranks of the C API: threads of one program in C++, each with a device of its own, as the vendor's examples have them.

mod c_kit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use c_kit::{LONG, WARNINGS, folder, kernel, limited, operator, output, program, run, source};
use hcomm_testkit::{root, target_dir};

const DIALECT: &str = "c++14";
/// Products with each kind of channel.
const PRODUCTS: [&str; 3] = ["atlas-350", "atlas-a3-training", "atlas-800t-a2"];
/// All that finds mistakes, and ends the program by a code.
const ALL_CHECKS: &str = "all";

fn description(folder: &Path) -> PathBuf {
    let functions = [
        ("AllGather", "all_gather_mesh"),
        ("Send", "send_to_rank"),
        ("Receive", "receive_from_rank"),
        ("Write", "write_to_rank"),
    ];
    let operators = functions.map(|(name, function)| operator(name, "libcollective_kernel.so", function));
    let description = folder.join("collective.json");
    std::fs::write(&description, format!("{{{}}}", operators.join(",\n"))).unwrap();
    description
}

/// A folder with the kernels and the program `collective`, and a command that runs it.
fn collective(test: &str) -> (PathBuf, PathBuf, impl Fn(&[&str]) -> Command + use<>) {
    let folder = folder(test);
    kernel(&folder, "collective_kernel.cpp", DIALECT, "libcollective_kernel.so");
    let (program, description) = (program(&folder, "collective.cpp", DIALECT), description(&folder));
    let to_run = description.clone();
    let command = move |arguments: &[&str]| {
        let mut command = limited(&program, LONG);
        // Small buffers, so that larger data goes in slices.
        command.arg(&to_run).args(arguments).env("HCCL_BUFFSIZE", "1");
        command
    };
    (folder, description, command)
}

fn rule(program: &Path, arguments: &[&str]) -> Command {
    let mut command = limited(program, LONG);
    command.args(arguments).env("HCCL_BUFFSIZE", "1");
    command
}

/// Runs a program that must print no warning either.
fn run_clean(command: &mut Command) {
    let Output { status, stderr, .. } = output(command);
    let errors = String::from_utf8_lossy(&stderr);
    // The first use of an operator looks for a context that is not there.
    let left: Vec<_> = errors.lines().filter(|line| !line.contains("HcclEngineCtxGet: there is no context")).collect();
    assert!(status.success() && left.is_empty(), "{command:?}: {status}\n{errors}");
}

/// Case 331.
#[test]
fn all_gather_of_2_4_and_8_ranks_is_clean_under_all_checks() {
    let (_, _, command) = collective("ranks_all_gather");
    for (ranks, bytes) in [("2", "5000"), ("4", "700001"), ("8", "1024")] {
        run_clean(command(&["all-gather", ranks, "2", bytes]).env("HCOMM_SIM_CHECK", ALL_CHECKS));
        run_clean(&mut command(&["all-gather", ranks, "2", bytes]));
    }
}

#[test]
fn send_and_receive_work_on_every_product_with_channels() {
    let (_, _, command) = collective("ranks_send_receive");
    for product in PRODUCTS {
        for what in ["send-receive", "all-gather"] {
            let mut command = command(&[what, "4", "2", "5000"]);
            run_clean(command.env("HCOMM_SIM_CHECK", ALL_CHECKS).env("HCOMM_SIM_PRODUCT", product));
        }
    }
}

/// Case 332.
#[test]
fn rank_may_close_its_device_as_soon_as_it_is_done() {
    let (_, _, command) = collective("ranks_again");
    let rounds = std::env::var("HCOMM_RANK_ROUNDS").unwrap_or_else(|_| "300".to_owned());
    // Without checks, which would slow it down.
    run_clean(command(&["again", "2", &rounds, "4096"]).env("HCOMM_SIM_CHECK", "none"));
    run_clean(command(&["again", "2", "30", "4096"]).env("HCOMM_SIM_PRODUCT", "atlas-800t-a2"));
}

/// Case 333.
#[test]
fn channels_are_made_with_both_ends_and_found_again() {
    let folder = folder("rank_rules");
    let program = program(&folder, "rank_rules.cpp", DIALECT);
    for product in PRODUCTS {
        for name in ["channels", "descriptions", "graph", "notifies"] {
            run(rule(&program, &[name]).env("HCOMM_SIM_PRODUCT", product));
        }
    }
}

/// Case 334.
#[test]
fn wait_for_a_rank_that_will_not_come_ends_at_once_and_says_why() {
    let folder = folder("rank_waits");
    let program = program(&folder, "rank_rules.cpp", DIALECT);
    for name in ["destroyed", "ended", "reset", "alone"] {
        run(&mut rule(&program, &[name]));
    }
    run(rule(&program, &["late"]).env("HCCL_CONNECT_TIMEOUT", "1"));
}

/// Case 335.
#[test]
fn peers_see_that_a_rank_has_failed() {
    let folder = folder("rank_failures");
    kernel(&folder, "collective_kernel.cpp", DIALECT, "libcollective_kernel.so");
    let (program, description) = (program(&folder, "rank_rules.cpp", DIALECT), description(&folder));
    for what in ["kernel", "memory", "reset", "write"] {
        run(&mut rule(&program, &["failure", description.to_str().unwrap(), what]));
    }
}

/// Case 336.
#[test]
fn linux_libraries_reach_their_peers() {
    let (folder, _, command) = collective("ranks_linux");
    let runner = target_dir().join("aarch64-unknown-linux-gnu/linux/hcomm-runner");
    assert!(runner.exists(), "{} is not there: build it with `make linux`", runner.display());
    let mut compiler = Command::new("aarch64-linux-gnu-g++");
    compiler.args(["-std=c++14", "-g", "-O1", "-fPIC", "-shared"]).args(WARNINGS);
    compiler.arg("-I").arg(root().join("include")).arg("-I").arg(root().join("tests/c"));
    run(compiler.arg(source("collective_kernel.cpp")).arg("-o").arg(folder.join("libcollective_kernel.so")));
    for (what, ranks) in [("all-gather", "2"), ("all-gather", "4"), ("send-receive", "2")] {
        let mut command = command(&[what, ranks, "2", "5000"]);
        run_clean(command.env("HCOMM_SIM_CPU", "linux").env("HCOMM_RUNNER", &runner));
    }
}
