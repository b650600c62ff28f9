//! Kernels of AArch64 Linux libraries in C++, launched by C programs on the CPU `linux`: what arrives, and what is said when a kernel
//! ends out of turn.

mod c_kit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use c_kit::{LONG, folder, limited, linux_library, on_linux, operator, output, program, run, runner, source};
use hcomm_kernel::ListedCopy;
use hcomm_testkit::{Rig, pattern, root};
use host_stub::library::Library;
use host_stub::{Cpu, DeviceOptions};

/// A folder with `liblinux_kernel.so` and a description of its kernels.
fn kernels(test: &str) -> (PathBuf, PathBuf) {
    let folder = folder(test);
    linux_library(&source("linux_kernel.cpp"), &folder.join("liblinux_kernel.so"), &[]);
    let functions = [
        ("Copy", "copy_all"),
        ("WritesNull", "writes_null"),
        ("WritesUnmapped", "writes_unmapped"),
        ("Aborts", "aborts"),
        ("Throws", "throws"),
        ("Exits", "exits"),
        ("ExitsAtOnce", "exits_at_once"),
        ("Overflows", "overflows"),
        ("Loops", "loops"),
        ("CopiesInAThread", "copies_in_a_thread"),
        ("Meets", "meets"),
        ("Races", "races"),
    ];
    let operators = functions.map(|(name, function)| operator(name, "liblinux_kernel.so", function));
    let description = folder.join("k.json");
    std::fs::write(&description, format!("{{{}}}", operators.join(",\n"))).unwrap();
    (folder, description)
}

/// What `linux_launch.c` prints about kernels that are launched together, and its error output.
fn launch(program: &Path, description: &Path, operators: &[&str]) -> (String, String) {
    let Output { status, stdout, stderr } = output(on_linux(limited(program, LONG).arg(description).args(operators)));
    let (text, errors) = (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned());
    assert!(status.success(), "{status}\n{text}{errors}");
    assert!(text.ends_with("copied\n"), "the device opens again: {text}{errors}");
    (text, errors)
}

/// Line of `linux_kernel.cpp` that contains `text`.
fn line_of(text: &str) -> usize {
    let source = std::fs::read_to_string(source("linux_kernel.cpp")).unwrap();
    source.lines().position(|line| line.contains(text)).unwrap() + 1
}

/// Case 340.
#[test]
fn kernel_with_the_standard_library_of_cxx_copies() {
    let (folder, description) = kernels("linux_copies");
    let program = program(&folder, "load_and_copy.c", "c11");
    let Output { status, stdout, stderr } = output(on_linux(limited(&program, LONG).arg(&description).arg("Copy")));
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success() && stdout == b"copied\n", "{status} {}{errors}", String::from_utf8_lossy(&stdout));
    assert!(errors.contains("[device 0] copies 5000 bytes in 5 pieces, launch 1\n"), "{errors}");
}

/// Case 288.
#[test]
fn libraries_of_other_builds_copy_too() {
    let (folder, description) = kernels("linux_builds");
    let (program, library) = (program(&folder, "load_and_copy.c", "c11"), folder.join("liblinux_kernel.so"));
    let build = |options: &[&str]| linux_library(&source("linux_kernel.cpp"), &library, options);
    for options in [
        &["-s", "-Wl,-z,now"][..],
        &["-moutline-atomics", "-march=armv8-a"],
        &["-D_GLIBCXX_USE_CXX11_ABI=0", "-O0", "-fstack-protector-all"],
    ] {
        build(options);
        let Output { status, stdout, stderr } = output(on_linux(limited(&program, LONG).arg(&description).arg("Copy")));
        let errors = String::from_utf8_lossy(&stderr);
        assert!(status.success() && stdout == b"copied\n", "{options:?}: {status} {errors}");
    }
    // The second one calls the helpers that choose atomics when the library is loaded.
    build(&["-moutline-atomics", "-march=armv8-a"]);
    let symbols = run(Command::new("aarch64-linux-gnu-nm").arg(&library));
    assert!(symbols.contains(" t __aarch64_ldadd4_acq_rel"), "{symbols}");
}

/// Case 289.
#[test]
fn race_of_two_kernels_is_told_with_their_lines() {
    let (folder, description) = kernels("linux_races");
    let program = program(&folder, "linux_launch.c", "c11");
    let mut command = limited(&program, LONG);
    command.env("HCOMM_SIM_CHECK", "race").arg(&description).args(["Races", "Races"]);
    let text = run(on_linux(&mut command));
    let line = format!("queued at c/linux_kernel.cpp:{} (races)", line_of("the planted race"));
    let told = ["Races 507001 ", "race on 5000 bytes at ", &line];
    assert!(told.iter().all(|part| text.contains(part)), "{text}");
}

/// Case 341.
#[test]
fn kernel_that_ends_out_of_turn_is_told_with_function_and_line() {
    let (folder, description) = kernels("linux_faults");
    let program = program(&folder, "linux_launch.c", "c11");
    let write = format!("in write_to (c/linux_kernel.cpp:{})", line_of("the line of a fault"));
    let fault = |kernel: &str, text: &str| format!("kernel {kernel} faulted: {text}");
    for (operator, told) in [
        (
            "WritesNull",
            vec![fault("writes_null", "SIGSEGV: access to 0x0, "), write.clone(), "called by writes_null".into()],
        ),
        ("WritesUnmapped", vec![write, "was never allocated; it is ".into(), "bytes after launch parameters".into()]),
        ("Aborts", vec![fault("aborts", "SIGABRT: abort() was called, in aborts (c/linux_kernel.cpp:")]),
        ("Throws", vec![fault("throws", "exception of type std::runtime_error left the kernel, in "), "fail".into()]),
        ("Exits", vec![fault("exits", "it has called exit(3), in exits (c/linux_kernel.cpp:")]),
        ("ExitsAtOnce", vec![fault("exits_at_once", "the runner has ended (exit status: 4)")]),
        ("Overflows", vec![fault("overflows", "stack overflow (SIGSEGV at 0x"), "deeper".into()]),
    ] {
        let (text, errors) = launch(&program, &description, &[operator]);
        let start = format!("{operator} 507018 ");
        assert!(text.starts_with(&start) && told.iter().all(|part| text.contains(part)), "{told:?}: {text}{errors}");
    }
}

/// Case 342.
#[test]
fn two_kernels_run_at_the_same_time() {
    let (folder, description) = kernels("linux_two");
    let program = program(&folder, "linux_launch.c", "c11");
    // Each waits for the other.
    let (text, errors) = launch(&program, &description, &["Meets", "Meets"]);
    assert_eq!(text, "Meets 0 \nMeets 0 \ncopied\n", "{errors}");
}

/// Case 343.
#[test]
fn kernel_beside_one_that_fails_ends_with_the_runner() {
    let (folder, description) = kernels("linux_beside");
    let program = program(&folder, "linux_launch.c", "c11");
    for operators in [["WritesNull", "Loops"], ["Loops", "WritesNull"]] {
        let (text, errors) = launch(&program, &description, &operators);
        let beside = "Loops 507018 aclrtSynchronizeStream: device error 507018: stream ";
        let told = [beside, "kernel loops ended with the runner, by stream ", "kernel writes_null faulted: SIGSEGV"];
        assert!(told.iter().all(|part| text.contains(part)), "{text}{errors}");
    }
}

/// Case 345.
#[test]
fn thread_that_a_kernel_makes_has_no_core() {
    let (folder, description) = kernels("linux_thread");
    let program = program(&folder, "linux_launch.c", "c11");
    let (text, errors) = launch(&program, &description, &["CopiesInAThread"]);
    assert!(errors.contains("[device 0] a thread gets 5\n"), "{text}{errors}");
}

/// Case 346.
#[test]
fn kernel_that_never_returns_is_told_with_its_line_and_the_device_starts_again() {
    let (folder, _) = kernels("linux_loops");
    let launch_timeout = Some(Duration::from_secs(2));
    let rig = Rig::with_options(DeviceOptions { cpu: Cpu::Linux, launch_timeout, ..DeviceOptions::default() });
    let library = Library::read(&folder.join("liblinux_kernel.so")).unwrap();
    let kernel = rig.device.library_kernel(&library, "loops").unwrap();
    rig.stream.launch_bytes(&kernel, &[]).unwrap();
    let error = rig.stream.synchronize().unwrap_err().to_string();
    let told = "device error 507017: stream 1: kernel loops has not returned within 2s: in loops (c/linux_kernel.cpp:";
    assert!(error.starts_with(told), "{error}");

    rig.device.restart().unwrap();
    let (src, dst, thread) = (rig.buffer(&pattern(1000, 1)), rig.buffer(&[0; 1000]), rig.thread(64));
    let copy = ListedCopy { thread: thread.0, dst: dst.addr(), src: src.addr(), len: 1000 };
    rig.copy_list(&[copy], false).unwrap();
    assert!(rig.read(&dst) == pattern(1000, 1));
}

/// Makes `libk.so` of a source, with kernel `k`.
fn small_library(folder: &Path, text: &str, options: &[&str]) -> Library {
    let (from, to) = (folder.join("k.cpp"), folder.join("libk.so"));
    std::fs::write(&from, format!("#include \"hcomm/hcomm_kernel.h\"\n{text}\n")).unwrap();
    linux_library(&from, &to, options);
    Library::read(&to).unwrap()
}

/// Case 347.
#[test]
fn library_that_cannot_be_bound_is_refused_with_the_name() {
    let folder = folder("linux_unbound");
    let rig = Rig::new(Cpu::Linux);
    let check = |text, options: &[&str]| rig.device.check_library(&small_library(&folder, text, options));
    let data = "extern int nowhere;\nHCOMM_KERNEL(k) { return args == nullptr ? static_cast<uint32_t>(nowhere) : 0; }";
    let call = "int nowhere();\nHCOMM_KERNEL(k) { return args == nullptr ? static_cast<uint32_t>(nowhere()) : 0; }";
    let text = check(data, &[]).unwrap_err().to_string();
    assert!(text.ends_with("libk.so: nothing defines nowhere: data must be there when it is loaded"), "{text}");
    let text = check(call, &["-Wl,-z,now"]).unwrap_err().to_string();
    assert!(text.contains("libk.so: nothing defines _Z7nowherev: it was linked with -z now"), "{text}");
    // Everything of the C and C++ libraries, and every `Hcomm*`, is there.
    let good = "#include <iostream>\nHCOMM_KERNEL(k) { std::cout << args; return static_cast<uint32_t>(HcommBatchModeEnd(nullptr)); }";
    check(good, &["-Wl,-z,now"]).unwrap();
}

/// Case 348.
#[test]
fn call_of_a_function_that_is_not_there_ends_the_launch_with_its_name() {
    let folder = folder("linux_missing");
    let rig = Rig::new(Cpu::Linux);
    let call = "int nowhere();\nHCOMM_KERNEL(k) { return args == nullptr ? static_cast<uint32_t>(nowhere()) : 0; }";
    let library = small_library(&folder, call, &[]);
    rig.device.check_library(&library).unwrap();
    rig.stream.launch_bytes(&rig.device.library_kernel(&library, "k").unwrap(), &[]).unwrap();
    let text = rig.stream.synchronize().unwrap_err().to_string();
    let told = ["device error 507018: stream 1: kernel k faulted: ", "undefined symbol: _Z7nowherev"];
    assert!(told.iter().all(|part| text.contains(part)), "{text}");
}

/// Case 349.
#[test]
fn library_that_has_changed_is_loaded_by_a_new_runner_only() {
    let folder = folder("linux_changed");
    let rig = Rig::new(Cpu::Linux);
    let returns = |code| format!("HCOMM_KERNEL(k) {{ return args == nullptr ? {code} : 0; }}");
    let launch = |library: &Library| {
        rig.stream.launch_bytes(&rig.device.library_kernel(library, "k").unwrap(), &[]).unwrap();
        rig.stream.synchronize().unwrap_err().to_string()
    };
    let old = small_library(&folder, &returns(11), &[]);
    assert!(launch(&old).contains("kernel k returned 11 "));
    let new = small_library(&folder, &returns(12), &[]);
    for error in [rig.device.check_library(&new).unwrap_err(), rig.device.library_kernel(&new, "k").unwrap_err()] {
        assert!(
            error.to_string().contains("it has changed since the device has loaded it: reset the device"),
            "{error}"
        );
    }
    rig.device.restart().unwrap();
    assert!(launch(&new).contains("kernel k returned 12 "));
}

/// Case 350.
#[test]
fn stock_library_exports_every_kernel_and_leaves_the_entry_points_to_the_runners() {
    let library = Library::read(&runner().with_file_name("libhcomm_kernels.so")).unwrap();
    let mut kernels: Vec<&str> = host_stub::backend::native::kernels().map(|(name, _)| name).collect();
    kernels.sort_unstable();
    assert_eq!(library.functions().collect::<Vec<_>>(), kernels);
    let device = Library::read(&runner().with_file_name("libccl_kernel.so")).unwrap();
    let abi = std::fs::read_to_string(root().join("docs/abi.txt")).unwrap();
    let mut names: Vec<&str> = abi.lines().filter(|line| line.starts_with("Hcomm")).collect();
    // What the runner's program, the stock kernels and hcomm_log.h need besides.
    names.extend(["hcomm_log_line", "hcomm_port_refused", "hcomm_runner_main"]);
    names.sort_unstable();
    assert_eq!(device.functions().collect::<Vec<_>>(), names);
}
