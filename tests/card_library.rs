//! The device library as part of a library for a card: built for AArch64 Linux without a C library, clean to `card-lint`, loaded as
//! the scheduler of a card loads it. Not yet run on hardware: qemu-aarch64 stands in for the AI CPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hcomm_card_lint::{Options, Profile, lint};
use hcomm_testkit::{root, target_dir};

/// Seconds after which a program is killed.
const LIMIT: &str = "120";

/// A copy of 4096 bytes from 0x12c180000000 to 0x12c0c0000000 on an Ascend950, with task id 0.
const ENTRY: &str = "0b 00 00 00 00 00 00 00 00 00 00 00 00 00 fe 00 00 0f 00 00 00 00 00 00 00 00 00 00 00 00 00 00 \
                     00 00 00 80 c1 12 00 00 00 00 00 c0 c0 12 00 00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00";

fn folder(test: &str) -> PathBuf {
    let folder = target_dir().join("tmp/card_library").join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a command that must succeed, and gives what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn gcc() -> Command {
    let mut command = Command::new("aarch64-linux-gnu-gcc");
    command.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-march=armv8-a", "-mno-outline-atomics"]);
    command.arg("-I").arg(root().join("include"));
    command
}

fn source(name: &str) -> PathBuf {
    root().join("tests/c").join(name)
}

/// Links the kernel with the device library into `folder`.
fn link(folder: &Path, options: &[&str]) -> PathBuf {
    let path = folder.join("libcard.so");
    let library = target_dir().join("capi/device/aarch64-unknown-linux-gnu/libhcomm_aicpu.a");
    assert!(library.exists(), "{} is not there: build it with `make capi`", library.display());
    let mut command = gcc();
    command.args(["-shared", "-fPIC", "-nostdlib", "-ffreestanding"]).args(options);
    run(command.arg("-o").args([&path, &source("card_kernel.c"), &library]));
    path
}

/// Options of docs/card.md, "Link", but those that keep names local.
const LINK: &str = "-Wl,-soname,libcard.so,-z,now,-z,relro,-z,noexecstack,-z,text,-z,max-page-size=65536,--gc-sections";

/// Loads a library behind one that has the vendor's names, and runs its kernel on an emulated core.
fn load(folder: &Path, library: &Path, cpu: &str) -> String {
    let (decoy, loader) = (folder.join("libccl_kernel.so"), folder.join("loader"));
    let text = "int HcommLocalCopyOnThread(void) { return 99; }\nint hcomm_device_init(void) { return 98; }\n";
    fs::write(folder.join("decoy.c"), text).unwrap();
    run(gcc().args(["-shared", "-fPIC", "-o"]).args([&decoy, &folder.join("decoy.c")]));
    run(gcc().arg("-D_DEFAULT_SOURCE").arg("-o").args([&loader, &source("card_loader.c")]).arg("-ldl"));
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", LIMIT, "qemu-aarch64", "-cpu", cpu, "-L", "/usr/aarch64-linux-gnu"]);
    run(command.arg(&loader).args([&decoy, library]).arg("card_copy"))
}

#[test]
fn library_with_the_device_library_has_no_relocations_in_its_code() {
    let folder = folder("textrel");
    // Without -z text the linker accepts them.
    let library = link(&folder, &["-Wl,-z,notext"]);
    let dynamic = run(Command::new("aarch64-linux-gnu-readelf").arg("-d").arg(library));
    assert!(dynamic.contains("(SYMTAB)") && !dynamic.contains("TEXTREL"), "{dynamic}");
}

#[test]
fn the_device_library_is_clean_and_runs_as_a_card_loads_it() {
    let folder = folder("clean");
    let names = folder.join("names.map");
    fs::write(&names, "{ global: card_copy; local: *; };").unwrap();
    let script = format!("-Wl,-Bsymbolic,--version-script={}", names.display());
    let library = link(&folder, &[LINK, &script]);
    let json =
        r#"{"Copy":{"opInfo":{"opKernelLib":"AICPUKernel","kernelSo":"libcard.so","functionName":"card_copy"}}}"#;
    fs::write(folder.join("libcard.json"), json).unwrap();
    let report = lint(&library, &Options { profile: Profile::Own, ..Options::default() }).unwrap();
    assert!(report.findings.is_empty() && report.notes.is_empty(), "{report:#?}");
    for cpu in ["cortex-a53", "max"] {
        assert_eq!(load(&folder, &library, cpu), format!("answer 0, code 0, tail 1, entry {ENTRY}\n"), "{cpu}");
    }
}

/// Case 432.
#[test]
fn the_stock_library_and_its_package_are_clean() {
    let library = target_dir().join("card/libhcomm_card.so");
    assert!(library.exists(), "{} is not there: build it with `make card`", library.display());
    let folder = folder("stock");
    run(Command::new(root().join("scripts/card/package.sh")).args([&library, &folder]));
    let report =
        lint(&folder.join("aicpu_hcomm_card.tar.gz"), &Options { profile: Profile::Own, ..Options::default() });
    let report = report.unwrap();
    assert!(report.findings.is_empty() && report.notes.is_empty(), "{report:#?}");
    let description = fs::read_to_string(folder.join("libhcomm_card.json")).unwrap();
    for kernel in ["local_copy", "hcomm_card_init", "probe_a_start", "probe_e_copy"] {
        assert!(description.contains(&format!("\"functionName\": \"{kernel}\"")), "{kernel}: {description}");
    }
    // It would end a process that others use.
    assert!(!description.contains("misbehave"), "{description}");
}

#[test]
fn names_that_stay_visible_are_captured_and_the_lint_says_so() {
    let folder = folder("visible");
    let library = link(&folder, &[LINK]);
    let report = lint(&library, &Options { profile: Profile::Own, ..Options::default() }).unwrap();
    let is_about = |words: &str| report.findings.iter().any(|finding| finding.message.contains(words));
    assert!(is_about("exports names of the vendor's library: Hcomm"), "{report:#?}");
    // Both calls go to the library that was loaded first.
    assert!(load(&folder, &library, "max").starts_with("answer 1, code 98, tail 0,"));
}
