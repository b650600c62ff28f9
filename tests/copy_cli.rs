//! Command line of `run` and `copy`, on both CPUs. Needs QEMU and the image (`make image`).

use hcomm_testkit::cli::{command, host_stub, json, stdout};
use hcomm_testkit::{Folder, pattern};

const CPUS: [&str; 2] = ["native", "qemu"];

#[test]
fn run_copies_256_bytes_and_says_how() {
    for cpu in CPUS {
        let output = host_stub(["run", "--cpu", cpu]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = stdout(&output);
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim();
        assert!(value("cpu").starts_with(cpu), "{text}");
        assert!(value("thread").starts_with("0x"), "{text}");
        assert!(value("queue").contains("stream") && value("queue").contains("sq"), "{text}");
        assert_eq!((value("tasks"), value("doorbells")), ("1", "1"), "{text}");
        assert!(value("verified").starts_with("256 of 256 bytes equal"), "{text}");
    }
}

#[test]
fn run_of_any_length_is_one_json_object() {
    for cpu in CPUS {
        for (len, tasks) in [("0", 0), ("1", 1), ("0x1001", 1), ("3000000", 1)] {
            let output = host_stub(["run", "--cpu", cpu, "--len", len, "--seed", "7", "--json"]);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let object = json(&output);
            assert_eq!((&object["cpu"], &object["seed"]), (&cpu.into(), &"0x7".into()));
            assert_eq!((&object["tasks"], &object["doorbells"]), (&tasks.into(), &1.into()), "{object}");
            assert_eq!((&object["control_tasks"], &object["verified"]), (&2.into(), &true.into()));
            assert!(object["ccl_buf"].as_str().unwrap().starts_with("0x12c"), "{object}");
        }
    }
}

#[test]
fn run_above_the_buffer_names_both_sizes() {
    let output = host_stub(["run", "--cpu", "native", "--len", "419430401", "--json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let object = json(&output);
    let error = object["error"].as_str().unwrap();
    assert!(error.contains("419430401") && error.contains("419430400"), "{error}");
}

#[test]
fn missing_image_is_named() {
    let output = host_stub(["run", "--image", "/nowhere/image"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/image"), "{output:?}");
}

#[test]
fn each_wrong_image_is_a_usage_error_with_its_reason() {
    let folder = Folder::new("images");
    let image = std::fs::read(host_stub::loader::find().unwrap()).unwrap();
    let class_32 = [&image[..4], &[1], &image[5..]].concat();
    let x86 = [&image[..18], &[62, 0], &image[20..]].concat();
    for (name, bytes, reason) in [
        ("empty", &[][..], "is empty"),
        ("text", b"#!/bin/sh", "is not an elf file"),
        ("half", &image[..image.len() / 2], "is truncated or damaged: "),
        ("class_32", &class_32, "is a 32-bit elf file, not a 64-bit one"),
        ("x86", &x86, "is for machine x86-64 (62), not for aarch64 (183)"),
    ] {
        let path = folder.path(name);
        std::fs::write(&path, bytes).unwrap();
        for command in [&["run"][..], &["copy", "in", "out"]] {
            let input = folder.path("in");
            std::fs::write(&input, "abc").unwrap();
            let args: Vec<_> = command.iter().map(|arg| if *arg == "in" { &*input } else { arg }).collect();
            let output = host_stub([&args[..], &["--image", &path]].concat());
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{name}: {text}");
            assert!(text.contains(&format!("device image {path} {reason}")), "{name}: {text}");
        }
    }
}

#[test]
fn copy_in_chunks_gives_the_same_file() {
    let folder = Folder::new("chunks");
    let (input, copy) = (folder.path("in"), folder.path("out"));
    // Empty, below the buffer, all of it, one byte more, several.
    for (cpu, len) in CPUS.iter().flat_map(|cpu| [0, 1, 65536, 65537, 300_000].map(|len| (cpu, len))) {
        let bytes = pattern(len, 1);
        std::fs::write(&input, &bytes).unwrap();
        let output = host_stub(["copy", &input, &copy, "--cpu", cpu, "--ccl-buffer", "65536", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let object = json(&output);
        // Halves of the buffer: two copies and two notifies each way, "free" but for the last two, and the end of it all.
        let pieces = len.div_ceil(32768);
        let tasks = 2 + 4 * pieces + 2 * pieces.saturating_sub(2) + if len > 0 { 2 } else { 0 };
        assert_eq!((&object["bytes"], &object["ccl_buf_size"]), (&len.into(), &65536.into()), "{object}");
        let doorbells = if len > 0 { 2 } else { 1 };
        assert_eq!((&object["tasks"], &object["doorbells"]), (&tasks.into(), &doorbells.into()), "{object}");
        assert_eq!(object["sha256_in"], object["sha256_out"]);
        assert_eq!(object["verified"], true);
        assert!(std::fs::read(&copy).unwrap() == bytes, "{cpu}, {len} bytes");
    }
}

#[test]
fn copy_prints_the_known_digest() {
    let folder = Folder::new("digest");
    let (input, copy) = (folder.path("in"), folder.path("out"));
    std::fs::write(&input, "abc").unwrap();
    let output = host_stub(["copy", &input, &copy, "--cpu", "native"]);
    let text = stdout(&output);
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(text.matches(digest).count(), 2, "{text}");
    assert!(output.stderr.is_empty(), "no progress bar without a terminal: {output:?}");
}

#[test]
fn copy_replaces_a_longer_file() {
    let folder = Folder::new("replace");
    let (input, copy) = (folder.path("in"), folder.path("out"));
    std::fs::write(&input, "short").unwrap();
    std::fs::write(&copy, pattern(10_000, 1)).unwrap();
    assert_eq!(host_stub(["copy", &input, &copy, "--cpu", "native"]).status.code(), Some(0));
    assert_eq!(std::fs::read(&copy).unwrap(), b"short");
}

#[test]
fn copy_refuses_files_that_it_would_spoil_or_cannot_read() {
    let folder = Folder::new("refuse");
    let (input, link, copy) = (folder.path("in"), folder.path("link"), folder.path("out"));
    std::fs::write(&input, "precious").unwrap();
    std::os::unix::fs::symlink(&input, &link).unwrap();
    for (args, named) in [
        ([&*folder.path("none"), &*copy], "none"),
        ([&*folder.path(""), &*copy], "not a regular file"),
        ([&*input, &*input], "same file"),
        ([&*input, &*link], "same file"),
        ([&*input, "/dev/null"], "not a regular file"),
        ([&*input, "/nowhere/out"], "/nowhere/out"),
    ] {
        let output = host_stub(["copy", "--cpu", "native"].iter().chain(&args));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(named), "{args:?}: {text}");
    }
    let output = host_stub(["copy", &input, &copy, "--ccl-buffer", "0"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!std::fs::exists(&copy).unwrap());
    assert_eq!(std::fs::read(&input).unwrap(), b"precious");
}

/// What is in a folder, sorted.
fn names(folder: &str) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Case 145.
#[test]
fn copy_that_fails_leaves_the_old_output_and_nothing_else() {
    let folder = Folder::new("keep");
    let (input, copy) = (folder.path("in"), folder.path("out"));
    std::fs::write(&input, pattern(300_000, 1)).unwrap();
    std::fs::write(&copy, "old").unwrap();
    for fault in ["sdma-error:n=9", "doorbell", "panic"] {
        let args = ["copy", &input, &copy, "--cpu", "native", "--ccl-buffer", "65536", "--fault", fault];
        assert_eq!(host_stub(args).status.code(), Some(1), "{fault}");
        assert_eq!(std::fs::read(&copy).unwrap(), b"old", "{fault}");
        assert_eq!(names(&folder.path("")), ["in", "out"], "{fault}");
    }
}

/// Case 145.
#[test]
fn output_keeps_its_permissions_and_links_stay_links() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("links");
    let (input, target, link) = (folder.path("in"), folder.path("target"), folder.path("link"));
    std::fs::write(&input, "new").unwrap();
    std::fs::write(&target, "old").unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("target", &link).unwrap();
    assert_eq!(host_stub(["copy", &input, &link, "--cpu", "native"]).status.code(), Some(0));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read(&target).unwrap(), b"new");
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    // A link to a file that is not there makes it.
    std::fs::remove_file(&target).unwrap();
    assert_eq!(host_stub(["copy", &input, &link, "--cpu", "native"]).status.code(), Some(0));
    assert_eq!(std::fs::read(&target).unwrap(), b"new");
    assert_eq!(names(&folder.path("")), ["in", "link", "target"]);
}

/// Case 146.
#[test]
fn input_that_changes_while_it_is_copied_is_an_error() {
    for (name, change) in [("shrinks", 0_u64), ("grows", 400_000)] {
        let folder = Folder::new(name);
        let (input, copy) = (folder.path("in"), folder.path("out"));
        std::fs::write(&input, pattern(300_000, 1)).unwrap();
        let mut child = command()
            .args(["copy", &input, &copy, "--cpu", "native", "--json", "--fault", "slow-queue:time=2s"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // It has opened the input when its new file is there; its tasks take seconds from then on.
        while names(&folder.path("")).len() == 1 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::fs::File::options().write(true).open(&input).unwrap().set_len(change).unwrap();
        let output = child.wait_with_output().unwrap();
        let object = json(&output);
        let error = object["error"].as_str().unwrap_or_else(|| panic!("{name}: {object}"));
        assert_eq!(output.status.code(), Some(1), "{object}");
        assert!(error.contains("has changed while it was copied: 300000 bytes"), "{error}");
        assert!(error.ends_with(&format!("{change} bytes now")), "{error}");
        assert_eq!(names(&folder.path("")), ["in"]);
    }
}

/// Case 147.
#[test]
fn output_that_is_also_where_the_answer_goes_is_refused() {
    let folder = Folder::new("streams");
    let (input, file) = (folder.path("in"), folder.path("stream"));
    std::fs::write(&input, "precious").unwrap();
    let open = || std::fs::File::options().append(true).create(true).open(&file).unwrap();
    let run = |from: &str, to: &str, is_error: bool| {
        let mut command = command();
        command.args(["copy", from, to, "--cpu", "native"]);
        if is_error {
            command.stderr(open())
        } else {
            command.stdout(open())
        };
        command.output().unwrap().status.code()
    };
    assert_eq!(run(&input, "/dev/stdout", false), Some(2));
    assert_eq!(run(&input, &file, false), Some(2));
    assert_eq!(run(&input, &file, true), Some(2));
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("is the standard error output, to which this command prints its result")
    );
    // Its own answer would be copied.
    assert_eq!(run(&file, &folder.path("out"), false), Some(2));
    assert_eq!(run(&input, &folder.path("out"), false), Some(0));
}

/// Case 68.
/// The linker has kept the log strings of the image, and its frames are decoded.
#[test]
fn log_of_the_image_is_shown() {
    let output = host_stub(["run", "--cpu", "qemu", "--verbose"]);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("device: INFO  image ready, hbm 0x12c000000000, 0x400000000 bytes\n"), "{log}");
    assert!(log.contains("device: DEBUG [local_copy, launch 1, core 0, "), "{log}");
    assert!(log.contains(" s] launch 1: entry 0x"), "{log}");
}

/// Case 452.
#[test]
fn verbose_run_shows_kernel_launch_core_and_time_of_lines_and_tasks_and_doorbells() {
    let output = host_stub(["run", "--cpu", "native", "--verbose"]);
    let log = String::from_utf8_lossy(&output.stderr);
    let has = |parts: &[&str]| log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(has(&["device: TRACE ", " core 0: doorbell: sq 0 tail 3"]), "{log}");
    assert!(has(&["device: TRACE ", " sdma: task began: stream 1 sq 0 slot 1 ", " sdma copy dst 0x"]), "{log}");
    assert!(has(&["device: TRACE ", ": task ended: stream 1 sq 0 slot 2 "]), "{log}");
}

/// Why a call was refused is told in the same words on both CPUs, by the entry point or by the kernel that passes it on.
#[test]
fn refusals_are_shown() {
    for cpu in ["native", "qemu"] {
        let output = host_stub(["run", "--cpu", cpu, "--fault", "doorbell"]);
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains("device: WARN  [local_copy, launch 1, core 0"), "{cpu}: {log}");
        assert!(log.contains("] kernel local_copy: sq 0 refuses the doorbell\n"), "{cpu}: {log}");
    }
}
