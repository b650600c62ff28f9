//! The script that builds and runs the vendor's examples, on a stand-in of ours: `tests/standin`.

mod c_kit;

use std::process::Command;

use c_kit::{folder, output, run};
use hcomm_testkit::{root, target_dir};

/// Case 337.
#[test]
fn examples_with_the_vendors_folders_and_flags_run_untouched() {
    let runner = target_dir().join("aarch64-unknown-linux-gnu/linux/hcomm-runner");
    assert!(runner.exists(), "{} is not there: build it with `make linux`", runner.display());
    let toolkit = folder("examples").join("toolkit");
    run(Command::new(root().join("scripts/toolkit.sh")).arg(target_dir().join("capi")).arg(&toolkit));
    let mut script = Command::new(root().join("scripts/vendor-examples.sh"));
    script.arg(root().join("tests/standin")).env("TOOLKIT", &toolkit).env("HCOMM_RUNNER", &runner);
    let text = run(script.env_remove("HCOMM_SIM_CHECK"));
    for (what, count) in [
        ("04_standin_p2p: 8 devices, native, atlas-800t-a2", 1),
        ("04_standin_p2p: 4 devices, linux, atlas-350", 1),
        ("05_standin_allgather/aicpu: 1 devices, native", 1),
        ("05_standin_allgather/aicpu: 8 devices, linux", 1),
        ("rank 7 of 8 has all elements", 2),
        ("rank 7 has received from rank 6", 6),
        ("vendor-examples: 2 examples work", 1),
    ] {
        assert!(text.matches(what).count() >= count, "{what}\n{text}");
    }
}

/// Case 338.
#[test]
fn script_without_examples_says_what_to_fetch() {
    for folder in [None, Some(root().join("docs")), Some(root().join("nothing"))] {
        let output =
            output(Command::new(root().join("scripts/vendor-examples.sh")).args(folder).env("TOOLKIT", root()));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(text.contains("fetch"), "{text}");
    }
}
