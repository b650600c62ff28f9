//! The device of a program, by option and by environment: the stand-in of a card, and what is said of a card that is not there.

use std::process::Command;

use hcomm_testkit::cli::{command, host_stub, stdout};
use hcomm_testkit::{Folder, target_dir};

/// Runs the program where the loader finds the libraries in `folder` alone.
fn with_libraries(folder: &Folder, args: &[&str]) -> (Option<i32>, String) {
    let mut command = command();
    command.args(args).env("LD_LIBRARY_PATH", folder.path("")).env_remove("HCOMM_CARD_KERNELS");
    let output = command.env("ASCEND_HOME_PATH", folder.path("")).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A library with these functions, which give 0.
fn library(folder: &Folder, name: &str, functions: &[&str]) {
    let source: String = functions.iter().map(|name| format!("int {name}(void) {{ return 0; }}\n")).collect();
    let path = folder.path(&format!("{name}.c"));
    std::fs::write(&path, source).unwrap();
    let built = folder.path(&format!("lib{name}.so"));
    let status = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(built).arg(path).status().unwrap();
    assert!(status.success());
}

/// Case 435.
#[test]
fn a_library_or_function_of_the_runtime_that_is_missing_is_named() {
    let folder = Folder::new("card-runtime");
    let run = ["run", "--device", "card:0"];
    let missing = |what: &str| {
        let (code, text) = with_libraries(&folder, &run);
        assert_eq!(code, Some(3), "{text}");
        assert!(text.starts_with(&format!("error: library {what}")), "{what}: {text}");
    };
    missing("libascendcl.so can't be loaded: libascendcl.so: cannot open shared object file");
    library(&folder, "ascendcl", &["aclInit"]);
    missing("libruntime.so can't be loaded: libruntime.so: cannot open shared object file");
    library(&folder, "runtime", &["rtStreamGetSqid"]);
    missing("libascendcl.so has no function aclrtSetDevice");
    let functions = [
        "aclInit",
        "aclrtSetDevice",
        "aclrtResetDevice",
        "aclrtGetSocName",
        "aclrtGetPhyDevIdByLogicDevId",
        "aclrtMalloc",
        "aclrtFree",
        "aclrtMemcpy",
        "aclrtMemset",
        "aclrtCreateStreamWithConfig",
        "aclrtDestroyStream",
        "aclrtStreamStop",
        "aclrtStreamAbort",
        "aclrtStreamGetId",
        "aclrtSynchronizeStreamWithTimeout",
        "aclrtCreateNotify",
        "aclrtDestroyNotify",
        "aclrtGetNotifyId",
        "aclrtRecordNotify",
        "aclrtWaitAndResetNotify",
        "aclrtBinaryLoadFromFile",
        "aclrtBinaryGetFunction",
        "aclrtKernelArgsInit",
        "aclrtKernelArgsAppend",
        "aclrtKernelArgsFinalize",
        "aclrtLaunchKernelWithConfig",
    ];
    library(&folder, "ascendcl", &functions);
    missing("libruntime.so has no function rtStreamGetCqid");
    // With all of them: the chip has no name.
    library(&folder, "runtime", &["rtStreamGetSqid", "rtStreamGetCqid"]);
    let (code, text) = with_libraries(&folder, &run);
    assert_eq!(
        (code, text.as_str()),
        (Some(1), "error: chip \"\" is not supported: must be Ascend950, Ascend910_93 or Ascend910B\n")
    );
}

/// Case 436.
#[test]
fn option_and_variable_choose_the_device() {
    for device in ["", "card", "card:x", "npu"] {
        let output = host_stub(["run", "--device", device]);
        assert_eq!(output.status.code(), Some(2), "{device}");
        let by_variable = command().args(["run"]).env("HCOMM_DEVICE", "npu").output().unwrap();
        assert_eq!(by_variable.status.code(), Some(2));
    }
    let output =
        command().args(["run", "--cpu", "native", "--json"]).env("HCOMM_DEVICE", "fake-card").output().unwrap();
    let text = stdout(&output);
    assert!(output.status.success(), "{text}");
    let object: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!((&object["device"], &object["cpu"]), (&"fake-card".into(), &"native".into()));
    assert!(object.get("tasks").is_none(), "a card does not count");
    // The option comes first.
    let output =
        command().args(["run", "--cpu", "native", "--json", "--device", "sim"]).env("HCOMM_DEVICE", "card:0").output();
    let object: serde_json::Value = serde_json::from_str(stdout(&output.unwrap())).unwrap();
    assert!(object.get("device").is_none());
    for refused in [
        &["--cpu", "qemu"][..],
        &["--cpu", "native", "--fault", "sdma-error"],
        &["--cpu", "native", "--trace", "t.txt"],
    ] {
        let output = host_stub(["run", "--device", "fake-card"].iter().chain(refused));
        assert_eq!(output.status.code(), Some(3), "{refused:?}");
    }
}

/// Case 437.
#[test]
fn a_library_that_the_loader_does_not_find_fails_the_launch_and_a_bad_description_the_load() {
    let folder = Folder::new("card-description");
    let stock = std::fs::read_to_string(target_dir().join("card/libhcomm_card.json")).unwrap();
    let run = |text: &str| {
        let path = folder.path("kernels.json");
        std::fs::write(&path, text).unwrap();
        let mut command = command();
        command.args(["run", "--device", "fake-card", "--cpu", "native"]).env("HCOMM_CARD_KERNELS", path);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let launched = "error: aclrtSynchronizeStreamWithTimeout has returned 507018\n".to_owned();
    assert_eq!(run(&stock.replace("libhcomm_card.so", "libnone.so")), (Some(1), launched.clone()));
    assert_eq!(run(&stock.replace("\"hcomm_card_init\" } }", "\"none\" } }")), (Some(1), launched));
    let loaded = "error: aclrtBinaryLoadFromFile has returned 100006\n".to_owned();
    for other in [stock.replace("AICPUKernel", "Other"), stock.replace("\"libhcomm_card.so\"", "7")] {
        assert_eq!(run(&other), (Some(1), loaded.clone()));
    }
    let (code, text) = run("{}");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("error: no kernel hcomm_card_init in "), "{text}");
}
