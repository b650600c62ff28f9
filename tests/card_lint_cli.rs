//! Command line of `card-lint`: exit codes, text and JSON. What each check finds is tested in host-stub/card-lint.

use std::path::Path;
use std::process::Command;

use hcomm_testkit::cli::{host_stub, json, stdout};

/// A library in a folder of its own, with a constructor if `extra` has one.
fn library(name: &str, extra: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let (source, path) = (folder.join("kernel.c"), folder.join("libkernel.so"));
    std::fs::write(&source, format!("unsigned local_copy(void *args) {{ return !args; }}\n{extra}")).unwrap();
    let status = Command::new("aarch64-linux-gnu-gcc")
        .args(["-shared", "-nostdlib", "-fPIC", "-O1", "-march=armv8-a", "-o"])
        .args([&path, &source])
        .args(["-Wl,-soname,libkernel.so,-z,now,-z,noexecstack,-z,max-page-size=65536"])
        .status()
        .expect("scripts/setup.sh cross installs the compiler");
    assert!(status.success());
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_clean_library_is_0_and_one_with_errors_is_1_in_both_forms() {
    let clean = library("lint_clean", "");
    let output = host_stub(["card-lint", "--profile", "own", &clean]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stdout(&output).ends_with("libkernel.so: 0 errors, 0 warnings\n"), "{output:?}");

    let wrong =
        library("lint_wrong", "static volatile int n; __attribute__((constructor)) static void f(void) { n = 1; }");
    assert_eq!(host_stub(["card-lint", &wrong]).status.code(), Some(0), "no error for the libraries of others");
    let output = host_stub(["card-lint", "--profile", "own", &wrong]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stderr.is_empty(), "the report says it: {output:?}");
    let text = stdout(&output);
    assert!(
        text.starts_with("error[hardening]: libkernel.so: has code that runs when it is opened (INIT_ARRAY)"),
        "{text}"
    );
    assert!(text.contains("\n    why it matters: it runs inside dlopen"), "{text}");

    let output = host_stub(["--json", "card-lint", "--profile", "own", &wrong]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let value = json(&output);
    assert_eq!((&value["profile"], &value["errors"]), (&"own".into(), &1.into()), "{value}");
    let finding = &value["findings"][0];
    assert_eq!((&finding["check"], &finding["severity"]), (&"hardening".into(), &"error".into()), "{value}");
}

#[test]
fn what_can_t_be_checked_is_a_usage_error() {
    for file in ["/nonexistent/libx.so", "/dev/zero", "/etc/passwd"] {
        let output = host_stub(["--json", "card-lint", file]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(json(&output)["error"].as_str().unwrap().contains(file));
    }
}
