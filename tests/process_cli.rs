//! Odd environments of `host-stub`: programs in place of QEMU, files that are none, limits of the process.
//!
//! Needs QEMU and the image (`make image`).

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hcomm_testkit::cli::{json, program};
use hcomm_testkit::{Folder, marked, wait_until};

/// What hangs is ended after this many seconds, and its exit code then is no expected one.
const LIMIT: &str = "300";

fn limited() -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", LIMIT]);
    command
}

/// `host-stub`, with a limit of its time.
fn command() -> Command {
    let mut command = limited();
    command.arg(program()).env("RUST_BACKTRACE", "0");
    command
}

/// `host-stub` under a limit of the shell, like `-n 20`.
fn under_limit(limit: &str, args: &[&str]) -> Output {
    let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    let mut command = limited();
    command.args(["sh", "-c", &script]).arg(program()).args(args).output().unwrap()
}

/// `PATH` with a script in place of QEMU, which calls the real one as `$QEMU`.
fn path_with_script(folder: &Folder, body: &str) -> String {
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("qemu-system-aarch64"))
        .find(|path| path.is_file())
        .expect("QEMU is installed");
    let script = PathBuf::from(folder.path("qemu-system-aarch64"));
    std::fs::write(&script, format!("#!/bin/sh\nQEMU={}\n{body}\n", real.display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", script.parent().unwrap().display(), std::env::var("PATH").unwrap())
}

/// Code and message of a failure in JSON.
fn failure(output: &Output) -> (i32, String) {
    let code = output.status.code().unwrap_or_else(|| panic!("ended by {:?}: {output:?}", output.status.signal()));
    let object = json(output);
    assert_eq!(object["code"], code, "{object}");
    (code, object["error"].as_str().unwrap_or_default().to_owned())
}

/// Case 142.
#[test]
fn script_that_runs_qemu_as_its_child_leaves_nothing_behind() {
    let folder = Folder::new("wrapper");
    let path = path_with_script(&folder, "\"$QEMU\" \"$@\"");
    let mark = format!("HCOMM_TEST_MARK={}-wrapper", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let output = command().args(["run", "--json"]).env("PATH", &path).env(name, value).output().unwrap();
    assert_eq!(json(&output)["verified"], true, "{output:?}");
    assert!(wait_until(|| marked(&mark).is_empty()), "left: {:?}", marked(&mark));

    // The death signal of the host's child does not reach QEMU, which is a child of the script.
    let mut host = Command::new(program());
    host.args(["run", "--fault", "hang", "--timeout", "100"]).env("PATH", &path).env(name, value);
    let mut host = host.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let runs_qemu = || marked(&mark).iter().any(|stat| stat.contains("(qemu-system-aar) R"));
    assert!(wait_until(|| marked(&mark).iter().any(|stat| stat.contains("(qemu-system"))));
    let _ = wait_until(runs_qemu);
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(wait_until(|| marked(&mark).is_empty()), "left: {:?}", marked(&mark));
}

/// Case 142.
#[test]
fn script_that_ends_and_leaves_qemu_running_is_an_error_and_qemu_ends() {
    let folder = Folder::new("background");
    // The script's standard error stays open in QEMU.
    let path = path_with_script(&folder, "\"$QEMU\" \"$@\" <&0 &\nexit 7");
    let mark = format!("HCOMM_TEST_MARK={}-background", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let output = command().args(["run", "--json"]).env("PATH", &path).env(name, value).output().unwrap();
    let (code, error) = failure(&output);
    assert!(code == 1 && error.contains("qemu-system-aarch64 has ended (exit status: 7)"), "{code} {error}");
    assert!(wait_until(|| marked(&mark).is_empty()), "left: {:?}", marked(&mark));
}

/// Case 151.
#[test]
fn qemu_is_sandboxed_where_it_can_be_and_runs_where_not() {
    let folder = Folder::new("sandbox");
    let file = folder.path("arguments");
    let path = path_with_script(&folder, &format!("echo \"$*\" >> {file}\nexec \"$QEMU\" \"$@\""));
    let output = command().args(["run", "--json"]).env("PATH", &path).output().unwrap();
    assert_eq!(json(&output)["verified"], true, "{output:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.lines().count() == 1 && text.contains("-sandbox on,"), "{text}");

    let refuse = "case \"$*\" in *-sandbox*) echo 'sandbox support is not enabled in this QEMU' >&2; exit 1;; esac";
    let path = path_with_script(&folder, &format!("{refuse}\nexec \"$QEMU\" \"$@\""));
    let output = command().args(["run", "--json"]).env("PATH", &path).output().unwrap();
    assert_eq!(json(&output)["verified"], true, "{output:?}");
}

#[test]
fn program_that_is_not_there_or_cannot_run_is_named() {
    let folder = Folder::new("no-qemu");
    let run = |path: &str| failure(&host_stub_in(path).args(["run", "--json"]).output().unwrap());
    let (code, error) = run(&folder.path(""));
    assert!(code == 1 && error.contains("qemu-system-aarch64 is not installed: `apt-get install"), "{error}");
    let script = folder.path("qemu-system-aarch64");
    std::fs::write(&script, "#!/nowhere/interpreter\n").unwrap();
    let (code, error) = run(&folder.path(""));
    assert!(code == 1 && error.contains("can't be executed: Permission denied"), "{error}");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, error) = run(&folder.path(""));
    assert!(code == 1 && error.contains(&format!("{script}: No such file or directory")), "{error}");
}

/// `host-stub` with a `PATH` of its own.
fn host_stub_in(path: &str) -> Command {
    let mut command = Command::new("/usr/bin/timeout");
    command.args(["--signal=KILL", LIMIT]).arg(program()).env("PATH", path);
    command
}

/// Case 144.
#[test]
fn what_is_no_regular_file_is_a_usage_error_at_once() {
    let folder = Folder::new("no-files");
    let (fifo, out) = (folder.path("fifo"), folder.path("out"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for file in [&*fifo, "/dev/zero", "/proc/kmsg", "/proc/self/status", "/"] {
        // Some exist for root alone.
        if std::fs::File::options().read(true).write(file == fifo).open(file).is_err() && !Path::new(file).is_dir() {
            eprintln!("NOT TESTED: {file} can't be opened");
            continue;
        }
        for args in [&["run", "--image", file][..], &["copy", file, &out], &["copy", "--cpu", "native", file, &out]] {
            let (code, error) = failure(&command().args(args).arg("--json").output().unwrap());
            assert!(code == 2 && error.contains(file) && error.ends_with("not a regular file"), "{args:?}: {error}");
        }
    }
    assert!(!std::fs::exists(&out).unwrap());
    // Larger than any image, and takes no room.
    let sparse = folder.path("sparse");
    std::fs::File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
    let (code, error) = failure(&command().args(["run", "--json", "--image", &sparse]).output().unwrap());
    assert!(code == 2 && error.contains("it has 1099511627776 bytes, and at most 268435456 are read"), "{error}");
}

/// Case 149.
#[test]
fn limit_of_file_sizes_is_named_and_is_no_signal() {
    // Blocks of 512 bytes in some shells, of 1024 in others.
    for cpu in ["native", "qemu"] {
        let (code, error) = failure(&under_limit("-f 2000", &["run", "--json", "--cpu", cpu]));
        assert!(code == 1 && error.contains("RLIMIT_FSIZE") && error.contains("ulimit -f"), "{error}");
    }
    // Standard output is a file at its limit.
    let folder = Folder::new("output-limit");
    let script = format!("ulimit -f 0 && exec \"$0\" products > {}", folder.path("out"));
    let output = limited().args(["sh", "-c", &script]).arg(program()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text.contains("standard output can't be written: File too large"), "{text}");
}

/// Case 150.
#[test]
fn address_space_that_does_not_suffice_is_an_error_at_every_size() {
    // From what does not hold device memory to what holds everything but the buffers of the host.
    for kib in [8_000_000, 17_000_000, 17_100_000, 22_000_000] {
        let output = under_limit(&format!("-v {kib}"), &["run", "--json", "--cpu", "native", "--len", "400000000"]);
        if output.status.code() == Some(0) {
            assert_eq!(json(&output)["verified"], true, "{kib} KiB: {output:?}");
            continue;
        }
        let (code, error) = failure(&output);
        let has_reason = error.contains("Cannot allocate memory") || error.contains("Resource temporarily unavailable");
        assert!(code == 1 && has_reason, "{kib} KiB: {code} {error}");
    }
    let (_, error) = failure(&under_limit("-v 8000000", &["run", "--json", "--cpu", "native"]));
    assert!(error.contains("of device memory failed: Cannot allocate memory"), "{error}");
    // The buffers of the host do not grow with the length.
    let output = under_limit("-v 22000000", &["run", "--json", "--cpu", "native", "--len", "400000000"]);
    assert_eq!(json(&output)["verified"], true, "{output:?}");
}

/// Case 150.
#[test]
fn limit_of_open_files_and_of_processes_have_their_reason() {
    for files in 4..16 {
        for cpu in ["native", "qemu"] {
            let output = under_limit(&format!("-n {files}"), &["run", "--json", "--cpu", cpu]);
            if output.status.code() != Some(0) {
                let (code, error) = failure(&output);
                assert!([1, 2].contains(&code) && error.contains("Too many open files"), "{files} {cpu}: {error}");
            }
        }
    }
    let output = under_limit("-n 4", &["run", "--json", "--cpu", "qemu"]);
    assert_ne!(output.status.code(), Some(0), "{output:?}");

    // Root has no limit of processes.
    let mut command = limited();
    if rustix::process::geteuid().is_root() {
        command.args(["setpriv", "--reuid=45678", "--regid=45678", "--clear-groups"]);
    }
    let program = program();
    let script = "test -x \"$0\" || exit 77; exec prlimit --nproc=1 \"$0\" run --cpu native --json";
    command.args(["sh", "-c", script]).arg(&program);
    let output = command.output().unwrap();
    if output.status.code() == Some(77) || output.status.code() == Some(126) {
        return eprintln!("NOT TESTED: {} is not there for another user", program.display());
    }
    let (code, error) = failure(&output);
    assert!(code == 1 && error.contains("Resource temporarily unavailable"), "{error}");
}

/// Case 155.
#[test]
fn without_proc_native_runs_and_qemu_says_what_it_needs() {
    // A namespace of its own, in which /proc is an empty folder.
    let script = "mount -t tmpfs none /proc && exec \"$0\" \"$@\"";
    let run = |cpu: &str| {
        let mut command = limited();
        command.args(["unshare", "--mount", "--map-root-user", "sh", "-c", script]).arg(program());
        command.args(["run", "--json", "--cpu", cpu]).env("HCOMM_IMAGE", host_stub::loader::find().unwrap()).output()
    };
    let native = run("native").unwrap();
    if native.stdout.is_empty() {
        return eprintln!("NOT TESTED: no namespace of its own: {}", String::from_utf8_lossy(&native.stderr));
    }
    assert_eq!(json(&native)["verified"], true, "{native:?}");
    let (code, error) = failure(&run("qemu").unwrap());
    assert!(code == 1 && error.contains("/proc/self/fd, which is not there: mount /proc"), "{error}");
}

/// Case 152.
#[test]
fn size_or_limit_that_does_not_fit_is_a_usage_error_that_names_its_option() {
    let folder = Folder::new("codes");
    let (input, out) = (folder.path("in"), folder.path("out"));
    std::fs::File::create(&input).unwrap().set_len(8 << 20).unwrap();
    // A buffer of 32 GiB, a buffer that leaves no room for the rounds of the copy, and lengths above the buffer.
    let copy = ["copy", "--cpu", "native", &input, &out];
    for (args, variable, named) in [
        (&[&copy[..], &["--ccl-buffer", "0x800000000"]].concat()[..], None, "--ccl-buffer 34359738368"),
        (&[&copy[..], &["--ccl-buffer", "17175674880"]].concat(), None, "--ccl-buffer 17175674880"),
        (&copy, Some("16384"), "HCCL_BUFFSIZE=16384"),
        (&["run", "--cpu", "native"], Some("16384"), "HCCL_BUFFSIZE=16384"),
        (&["run", "--cpu", "native"], Some("65537"), "HCCL_BUFFSIZE is \"65537\""),
        (&["run", "--cpu", "native", "--len", "419430401"], None, "--len 419430401"),
        (&["run", "--cpu", "native", "--len", "9000000000"], Some("5000"), "--len 9000000000"),
        (&["run", "--cpu", "native", "--timeout", "0"], None, "a limit is at least 1 s"),
    ] {
        let mut command = command();
        let command = command.args(args).arg("--json").env_remove("HCCL_BUFFSIZE");
        let output = command.envs(variable.map(|value| ("HCCL_BUFFSIZE", value))).output().unwrap();
        let (code, error) = failure(&output);
        assert!(code == 2 && error.contains(named), "{args:?} {variable:?}: {code} {error}");
        assert!(!std::fs::exists(&out).unwrap(), "{args:?}");
    }
}
