//! The C API: programs of `tests/c` are compiled as users would, and run on both CPUs.

mod c_kit;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use c_kit::{
    HEADERS, LONG, WARNINGS, built, compiler, folder, has, kernel, kernels, limited, on_qemu, operator, output,
    program, run, source,
};
use hcomm_testkit::root;
use host_stub::product::PRODUCTS;

#[test]
fn headers_are_clean_in_every_dialect_and_have_the_layouts() {
    for dialect in ["c11", "c++17", "c++20"] {
        run(compiler(dialect).args(["-fsyntax-only"]).arg(source("layout.c")));
    }
}

#[test]
fn each_header_stands_alone() {
    let folder = folder("headers");
    for header in [
        "securec.h",
        "acl/acl.h",
        "acl/acl_base.h",
        "acl/acl_rt.h",
        "hccl/hccl_types.h",
        "hccl/hccl_comm.h",
        "hccl/hccl_res.h",
        "hccl/hccl_res_expt.h",
        "hccl/hccl_channel.h",
        "hccl/hccl_channel_desc.h",
        "hccl/hccl_rank_graph.h",
        "hccl/hccl_link.h",
        "hccl/hccl_launch.h",
        "hccl/hcomm_primitives.h",
        "hcomm/hcomm_endpoint.h",
        "hcomm/hcomm_res.h",
        "hcomm/hcomm_res_defs.h",
        "hcomm/hcomm_primitives.h",
        "hcomm/hcomm_kernel.h",
        "hcomm/hcomm_log.h",
        "hcomm/hcomm_platform.h",
        "hcomm/hcomm_port.h",
    ] {
        let path = folder.join("include.c");
        std::fs::write(
            &path,
            format!("#include \"{header}\"\n#include \"{header}\"\nint main(void) {{ return 0; }}\n"),
        )
        .unwrap();
        for dialect in ["c11", "c++17"] {
            run(compiler(dialect).arg("-fsyntax-only").arg(&path));
        }
    }
}

#[test]
fn what_is_not_implemented_is_not_declared() {
    let path = folder("absent").join("absent.c");
    let text = "#include \"acl/acl.h\"\nint main(void) { return aclrtResetEvent(0, 0); }\n";
    std::fs::write(&path, text).unwrap();
    let output = output(compiler("c11").arg("-fsyntax-only").arg(&path));
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("aclrtResetEvent"));
}

#[test]
fn example_1_is_answered_as_the_document_says() {
    let folder = folder("example_1");
    let text = run(&mut limited(program(&folder, "example1.cpp", "c++20"), LONG));
    let expected =
        "Ascend950: 5\nHcommLocalCopyOnThread: Atlas 350 copies only in kernels, on threads of engine AICPU_TS\n";
    assert_eq!(text, expected);
}

#[test]
fn example_1_copies_on_a2_and_a3_and_is_refused_elsewhere() {
    let folder = folder("example_1_products");
    let program = program(&folder, "example1.cpp", "c++20");
    for product in &PRODUCTS[1..] {
        let text = run(limited(&program, LONG).env("HCOMM_SIM_PRODUCT", product.key));
        let expected = match product.soc {
            Some(_) => format!("{}: 0\n\n", product.soc_name),
            None => format!(
                "{}: 5\nHcclThreadAcquireWithStream: {text}\nHcommLocalCopyOnThread: {text}\n",
                product.soc_name,
                text = format_args!("{} is not supported: none of its threads can be acquired", product.name)
            ),
        };
        assert_eq!(text, expected, "{}", product.key);
    }
}

#[test]
fn example_2_runs_on_every_supported_product_and_is_refused_elsewhere() {
    let (folder, description) = kernels("example_2_products");
    let program = program(&folder, "example2.c", "c11");
    for product in &PRODUCTS {
        let example = || {
            let mut command = limited(&program, LONG);
            command.arg(&description).arg("CopyLen").env("HCOMM_SIM_PRODUCT", product.key);
            command
        };
        let (soc, name) = (product.soc_name, product.name);
        let expected = match product.soc {
            Some(_) => format!("{soc}: 0\n\n"),
            None => {
                format!("{soc}: 5\nHcclThreadAcquire: {name} is not supported: none of its threads can be acquired\n")
            }
        };
        assert_eq!(run(&mut example()), expected);
        assert_eq!(run(on_qemu(&mut example())), expected, "in qemu");
    }
}

#[test]
fn example_2_copies_on_both_cpus_with_kernels_in_c_and_cxx() {
    let (folder, description) = kernels("example_2");
    for dialect in ["c11", "c++17"] {
        let program = program(&folder, "example2.c", dialect);
        for kernel in ["Copy256", "Copy256AsCxx", "CopyLen", "CopyCxx", "CopyStd"] {
            let text = run(limited(&program, LONG).arg(&description).arg(kernel));
            assert_eq!(text, "Ascend950: 0\n\n", "{dialect}, {kernel}");
        }
        // The standard library of C++ is not in the image.
        for kernel in ["Copy256", "CopyLen", "CopyCxx"] {
            let text = run(on_qemu(limited(&program, LONG).arg(&description).arg(kernel)));
            assert_eq!(text, "Ascend950: 0\n\n", "{dialect}, {kernel} in qemu");
        }
    }
}

#[test]
fn kernel_of_the_image_that_the_device_runs_may_be_named_as_a_file() {
    let (folder, _) = kernels("image_as_file");
    let program = program(&folder, "load_beside.c", "c11");
    std::fs::copy(built("kernels.elf"), folder.join("kernels.elf")).unwrap();
    let description = folder.join("image.json");
    std::fs::write(&description, format!("{{{}}}", operator("CopyLen", "kernels.elf", "copy_len"))).unwrap();
    run(on_qemu(limited(&program, LONG).arg(&description).args(["CopyLen", "0"])));
    // Another file than the one that runs; ACL_ERROR_OP_LOAD_FAILED.
    let mut other = std::fs::read(built("kernels.elf")).unwrap();
    other.push(0);
    std::fs::write(folder.join("kernels.elf"), other).unwrap();
    run(on_qemu(limited(&program, LONG).arg(&description).args(["CopyLen", "100025"])));
}

/// Writes the operator descriptions that `misuse.c` loads.
fn write_wrong_descriptions(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("empty.json", "");
    write("not_json.json", "[Copy]\nopInfo.kernelSo=libcopy_kernel.so\n");
    write("no_operator.json", "{}");
    write("no_op_info.json", r#"{"Copy": {}}"#);
    write("no_library.json", r#"{"Copy": {"opInfo": {"opKernelLib": "AICPUKernel", "functionName": "f"}}}"#);
    write(
        "no_function.json",
        r#"{"Copy": {"opInfo": {"opKernelLib": "AICPUKernel", "kernelSo": "libcopy_kernel.so"}}}"#,
    );
    write("number.json", r#"{"Copy": {"opInfo": {"opKernelLib": "AICPUKernel", "kernelSo": 5, "functionName": "f"}}}"#);
    let kind = operator("Copy", "libcopy_kernel.so", "copy_len").replace("AICPUKernel", "AICoreKernel");
    write("wrong_kind.json", &format!("{{{kind}}}"));
    write("path_as_library.json", &format!("{{{}}}", operator("Copy", "../x/libcopy_kernel.so", "copy_len")));
    write("library_not_there.json", &format!("{{{}}}", operator("Copy", "libnot_there.so", "copy_len")));
    write("library_no_elf.json", &format!("{{{}}}", operator("Copy", "libno_elf.so", "copy_len")));
    write("libno_elf.so", "#!/bin/sh\n");
    write("image.json", &format!("{{{}}}", operator("Copy", "kernels.elf", "copy_len")));
    std::fs::copy(built("kernels.elf"), folder.join("kernels.elf")).unwrap();
}

/// Case 46, 52, 120, 129.
#[test]
fn every_misuse_is_answered() {
    let (folder, _) = kernels("misuse");
    write_wrong_descriptions(&folder);
    for dialect in ["c11", "c++17"] {
        let program = program(&folder, "misuse.c", dialect);
        assert_eq!(run(limited(&program, LONG).arg(&folder)), "every misuse was answered\n");
    }
}

/// Runs one part of `control.c` on both CPUs of an Atlas 350.
fn control(which: &str) {
    control_on("atlas-350", which);
}

fn control_on(product: &str, which: &str) {
    static PROGRAM: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let (program, description) = PROGRAM.get_or_init(|| {
        let (folder, description) = kernels("control");
        (program(&folder, "control.c", "gnu11"), description)
    });
    let part = || {
        let mut command = limited(program, LONG);
        command.arg(description).arg(which).env("HCOMM_SIM_PRODUCT", product);
        command
    };
    let expected = format!("{which}\n");
    assert_eq!(run(&mut part()), expected, "{product}");
    assert_eq!(run(on_qemu(&mut part())), expected, "{product} in qemu");
}

/// Case 42.
#[test]
fn control_pair_and_notifies_of_threads_give_the_right_bytes_in_c() {
    control("in_step");
}

#[test]
fn control_pair_works_on_every_supported_product() {
    for product in PRODUCTS.iter().filter(|product| product.soc.is_some()) {
        control_on(product.key, "in_step");
        control_on(product.key, "by_notifies");
    }
}

/// Case 37.
#[test]
fn end_that_no_kernel_records_is_a_deadlock_in_c() {
    control("end_that_never_comes");
}

#[test]
fn kernel_in_c_that_records_no_end_is_not_green() {
    control("forgotten_end");
}

/// Case 43.
#[test]
fn calls_have_returned_and_the_work_is_not_done() {
    control("returned_is_not_done");
}

/// Case 38.
#[test]
fn start_that_is_recorded_twice_does_not_start_the_next_operation() {
    control("start_recorded_twice");
}

/// Case 36.
#[test]
fn open_batch_of_a_kernel_in_c_is_reported() {
    control("open_batch");
}

#[test]
fn failed_kernel_is_507018_and_leaves_its_stream_free() {
    control("failed_kernel");
}

#[test]
fn overrun_kernel_is_507017_and_leaves_its_stream_free() {
    control("overrun_kernel");
}

/// Case 49.
#[test]
fn kept_thread_of_a_stream_that_is_gone_is_refused() {
    control("stale_thread");
}

/// Case 53.
#[test]
fn two_communicators_alternate_in_c() {
    control("two_communicators");
}

/// Case 54.
#[test]
fn communicator_with_work_outstanding_can_be_destroyed() {
    control("destroyed_with_work");
}

/// Case 39.
#[test]
fn limit_of_a_wait_by_a_stream_is_in_seconds() {
    control("limit_of_a_wait");
}

#[test]
fn every_function_of_kernels_works_from_c() {
    for product in PRODUCTS.iter().filter(|product| product.soc.is_some()) {
        control_on(product.key, "every_call");
    }
    let kernel = std::fs::read_to_string(source("control_kernel.c")).unwrap();
    for name in listed("abi.txt").into_iter().filter(|name| name.starts_with("Hcomm")) {
        assert!(kernel.contains(&format!("{name}(")), "no kernel in C calls {name}");
    }
}

/// Case 321.
#[test]
fn kernel_in_c_that_ignores_a_refused_call_fails_its_launch() {
    control("ignored_refusals");
}

/// Case 325.
#[test]
fn result_of_a_kernel_in_c_that_was_never_written_is_reported() {
    control("unwritten_source");
}

/// Case 329.
#[test]
fn kernel_in_c_that_never_returns_ends_at_the_limit_of_the_environment() {
    control("limit_of_the_environment");
}

#[test]
fn limit_of_a_fraction_of_a_second_rounds_up_in_c() {
    control("waits_briefly");
}

/// A folder with kernel `staged_copy_c`, a description that names the one in Rust too, and the program that launches them.
fn staged_copy(test: &str) -> (PathBuf, PathBuf, PathBuf) {
    let folder = folder(test);
    kernel(&folder, "staged_copy.c", "c11", "libstaged_copy.so");
    let description = folder.join("staged_copy.json");
    // What is in the image is found by the function's name alone.
    let in_rust = operator("InRust", "libstaged_copy.so", "staged_copy");
    let in_c = operator("StagedCopy", "libstaged_copy.so", "staged_copy_c");
    std::fs::write(&description, format!("{{{in_c}, {in_rust}}}")).unwrap();
    let program = program(&folder, "staged_copy_host.c", "c11");
    (folder, description, program)
}

/// The image that clang has built, if `make capi` has found one.
fn image_of_clang() -> Option<PathBuf> {
    let image = built("kernels.elf").with_file_name("kernels-clang.elf");
    let is_there = image.exists();
    if !is_there {
        eprintln!("NOT TESTED: an image of clang, which `make capi` builds if there is a clang");
    }
    is_there.then_some(image)
}

#[test]
fn staged_copy_in_c_does_what_the_one_in_rust_does() {
    let (_, description, program) = staged_copy("staged_copy");
    let images: Vec<_> = [built("kernels.elf")].into_iter().chain(image_of_clang()).collect();
    for (len, buffer) in [(0, 64), (1, 1), (7, 1), (64, 128), (1000, 63), (4097, 1000), (1_000_003, 4096), (10, 65536)]
    {
        let run_with = |command: &mut Command, kernel: &str| {
            run(command.arg(&description).args([kernel, &len.to_string(), &buffer.to_string()]))
        };
        let native = run_with(&mut limited(&program, LONG), "StagedCopy");
        assert!(native.starts_with(&format!("{len} bytes through {buffer}: equal, ")), "{native}");
        for image in &images {
            for kernel in ["StagedCopy", "InRust"] {
                let found = run_with(on_qemu(&mut limited(&program, LONG)).env("HCOMM_IMAGE", image), kernel);
                assert_eq!(found, native, "{kernel} of {}", image.display());
            }
        }
    }
}

#[test]
fn staged_copy_in_c_refuses_a_buffer_of_no_bytes() {
    let (_, description, program) = staged_copy("staged_copy_refused");
    let launch = || {
        let mut command = limited(&program, LONG);
        command.arg(&description).args(["StagedCopy", "1", "0"]);
        command
    };
    for output in [output(&mut launch()), output(on_qemu(&mut launch()))] {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        let (call, message) = text.split_once('\n').unwrap();
        assert_eq!(call, "aclrtSynchronizeStream(stream): 507018");
        assert!(message.contains("kernel staged_copy_c returned 1"), "{text}");
    }
}

/// docs/writing-a-kernel.md shows parts of these files.
#[test]
fn code_in_c_of_the_worked_example_is_that_of_its_files() {
    let text = std::fs::read_to_string(root().join("docs/writing-a-kernel.md")).unwrap();
    let files = ["staged_copy.h", "staged_copy.c", "staged_copy_host.c"];
    let files = files.map(|name| std::fs::read_to_string(source(name)).unwrap());
    let shown: Vec<_> = text.split("```c\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    assert!(shown.len() >= 3, "{} pieces of C", shown.len());
    for piece in shown {
        assert!(files.iter().any(|file| file.contains(piece)), "not in the files:\n{piece}");
    }
}

#[test]
fn compilers_that_make_no_code_for_the_device_are_named() {
    let with = |variable: &str, compiler: &str, kernel: &str| {
        let mut command = Command::new(root().join("scripts/kernel_image.sh"));
        command.env(variable, compiler).arg("/nowhere/x.elf").arg(source(kernel));
        let output = output(&mut command);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let missing = with("DEVICE_CC", "no-such-compiler", "copy_kernel.c");
    assert_eq!(
        missing,
        "kernel_image: there is no compiler no-such-compiler; DEVICE_CC names another, such as clang\n"
    );
    if cfg!(target_arch = "x86_64") {
        let wrong = with("DEVICE_CXX", "c++", "cxx_kernel.cpp");
        assert!(wrong.starts_with("kernel_image: c++ makes code for x86_64"), "{wrong}");
        assert!(wrong.ends_with(", not for AArch64; DEVICE_CXX names another compiler\n"), "{wrong}");
    }
}

#[test]
fn image_of_clang_runs_kernels_in_c_and_cxx() {
    let Some(image) = image_of_clang() else { return };
    let (folder, description) = kernels("clang");
    let program = program(&folder, "example2.c", "c11");
    for kernel in ["Copy256", "CopyLen", "CopyCxx"] {
        let mut command = limited(&program, LONG);
        let text = run(on_qemu(command.arg(&description).arg(kernel)).env("HCOMM_IMAGE", &image));
        assert_eq!(text, "Ascend950: 0\n\n", "{kernel}");
    }
}

#[test]
fn threads_of_the_host_copy_reduce_and_notify_on_a2_and_a3() {
    let folder = folder("host_threads");
    for dialect in ["c11", "c++17"] {
        let program = program(&folder, "host_threads.c", dialect);
        for product in PRODUCTS[1..].iter().filter(|product| product.soc.is_some()) {
            let text = run(limited(&program, LONG).env("HCOMM_SIM_PRODUCT", product.key));
            assert_eq!(text, "threads of the host work\n", "{} {dialect}", product.key);
        }
    }
}

/// What program `thread_counts` checks of `counts`, on one product of each SoC that it holds for.
fn count_threads(counts: &str, products: &[&str]) {
    let folder = folder(&format!("thread_counts_{counts}"));
    for dialect in ["c11", "c++17"] {
        let program = program(&folder, "thread_counts.c", dialect);
        for product in products {
            let text = run(limited(&program, LONG).arg(counts).env("HCOMM_SIM_PRODUCT", product));
            assert_eq!(text, format!("{counts} counted\n"), "{product} {dialect}");
        }
    }
}

/// Case 52.
#[test]
fn threads_0_1_1000_and_1001() {
    count_threads("threads", &["atlas-350", "atlas-a3-training", "atlas-800t-a2"]);
}

/// Case 52.
#[test]
fn notifies_0_64_65535_and_65536() {
    count_threads("notifies", &["atlas-350"]);
}

/// Case 52.
#[test]
fn notifies_0_64_65535_and_65536_with_a_stream() {
    count_threads("with-stream", &["atlas-350"]);
}

/// Case 52.
#[test]
fn notifies_of_a2_and_a3_end_at_their_descriptors_field() {
    count_threads("13-bits", &["atlas-a3-inference", "atlas-200t-a2-box16"]);
}

#[test]
fn first_error_of_a_device_is_kept() {
    let (folder, description) = kernels("first_error");
    let program = program(&folder, "first_error.c", "c11");
    assert_eq!(run(limited(&program, LONG).arg(&description)), "the first error was kept\n");
    assert_eq!(run(on_qemu(limited(&program, LONG).arg(&description))), "the first error was kept\n");
}

/// Case 140.
#[test]
fn program_without_standard_files_works_and_keeps_their_numbers() {
    let (folder, description) = kernels("closed_files");
    let program = program(&folder, "standard_files.c", "gnu11");
    for mask in 0..8 {
        let run_on = |qemu: bool| {
            let mut command = limited(&program, LONG);
            command.arg(&description).args(["closed", &mask.to_string()]);
            let output = output(if qemu { on_qemu(&mut command) } else { &mut command });
            assert!(output.status.success(), "mask {mask}, QEMU {qemu}: {output:?}");
        };
        run_on(false);
        run_on(true);
    }
}

/// Case 141.
#[test]
fn interrupt_of_the_process_group_does_not_end_the_device() {
    let (folder, description) = kernels("interrupt");
    let program = program(&folder, "standard_files.c", "gnu11");
    let command = || {
        let mut command = limited(&program, LONG);
        command.arg(&description).arg("interrupted");
        command
    };
    assert_eq!(run(&mut command()), "interrupts 1: copied\n");
    assert_eq!(run(on_qemu(&mut command())), "interrupts 1: copied\n");
}

/// Case 148.
#[test]
fn log_line_that_cannot_be_written_is_lost_and_nothing_else() {
    let (folder, description) = kernels("lost_log");
    let program = program(&folder, "standard_files.c", "gnu11");
    for to in ["/dev/full", "pipe", "closed", "limit"] {
        let mut command = limited(&program, LONG);
        command.arg(&description).args(["log", to]).env("HCOMM_SIM_LOG", "trace");
        assert_eq!(run(&mut command), "went on\n", "{to}");
    }
}

/// Case 149, 150.
#[test]
fn limits_of_a_c_program_have_a_code_and_the_systems_reason() {
    let (folder, _) = kernels("limits");
    let program = program(&folder, "limits.c", "gnu11");
    for (limit, reason) in [
        ("ulimit -f 1000", "RLIMIT_FSIZE"),
        ("ulimit -v 8000000", "Cannot allocate memory"),
        ("export HCOMM_SIM_DEVICES=64; ulimit -n 8", "Too many open files"),
    ] {
        let script = format!("{limit}; exec \"$0\"");
        let text = run(Command::new("timeout").args(["--signal=KILL", "60", "sh", "-c", &script]).arg(&program));
        assert!(text.starts_with("500003 ") && text.contains(reason), "{limit}: {text}");
    }
}

/// Case 144.
#[test]
fn description_and_library_that_are_no_files_are_refused_at_once() {
    let (folder, _) = kernels("no_files");
    let program = program(&folder, "no_files.c", "gnu11");
    let fifo = folder.join("libfifo.so");
    run(Command::new("mkfifo").arg(&fifo));
    let description = folder.join("fifo.json");
    std::fs::write(&description, format!("{{{}}}", operator("K", "libfifo.so", "k"))).unwrap();
    for (path, code) in [(fifo.as_path(), 100_003), (Path::new("/dev/zero"), 100_003), (&description, 100_025)] {
        let text = run(limited(&program, LONG).arg(path));
        assert!(text.starts_with(&code.to_string()) && text.contains("not a regular file"), "{path:?}: {text}");
    }
}

/// Case 168.
#[test]
fn two_threads_have_a_device_each_and_memory_stays_flat() {
    let (folder, description) = kernels("many");
    let program = program(&folder, "many.c", "gnu11");
    let text = run(limited(&program, 2 * LONG).arg(&description).arg("10000"));
    assert_eq!(text, "10000 launches on each of 2 devices\n");
    // Enough for the rings to have been round once by the time that the program looks at its memory first.
    let text = run(on_qemu(limited(&program, 2 * LONG).arg(&description).arg("8000")));
    assert_eq!(text, "8000 launches on each of 2 devices\n");
}

#[test]
fn valgrind_finds_nothing() {
    if !has("valgrind") {
        return;
    }
    let (folder, description) = kernels("valgrind");
    write_wrong_descriptions(&folder);
    let suppressions = format!("--suppressions={}", source("valgrind.supp").display());
    let valgrind = || {
        let mut command = limited("valgrind", 4 * LONG);
        command.args(["-q", "--error-exitcode=9", "--leak-check=full"]);
        command.args(["--errors-for-leak-kinds=definite,possible", &suppressions]);
        command
    };
    run(valgrind().arg(program(&folder, "example1.cpp", "c++20")));
    run(valgrind().arg(program(&folder, "example2.c", "c11")).arg(&description).arg("CopyStd"));
    run(valgrind().arg(program(&folder, "misuse.c", "c11")).arg(&folder));
    run(valgrind().arg(program(&folder, "first_error.c", "c11")).arg(&description));
    let control = program(&folder, "control.c", "gnu11");
    for which in ["in_step", "returned_is_not_done", "stale_thread", "destroyed_with_work"] {
        run(valgrind().arg(&control).arg(&description).arg(which));
    }
    run(valgrind().arg(program(&folder, "host_threads.c", "c11")).env("HCOMM_SIM_PRODUCT", "atlas-800t-a2"));
    run(valgrind().arg(program(&folder, "thread_counts.c", "c11")).arg("with-stream"));
    let (_, description, program) = staged_copy("valgrind_staged_copy");
    run(valgrind().arg(program).arg(description).args(["StagedCopy", "1000", "100"]));
}

/// Names of a list in `docs/`.
fn listed(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs").join(name)).unwrap();
    let lines = text.lines().map(|line| line.split('#').next().unwrap().trim().to_owned());
    let mut names: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    names.sort();
    names
}

/// Names of an object or library that `nm` lists with `options`, once for each time.
fn symbols(options: &[&str], path: &Path) -> Vec<String> {
    let text = run(Command::new("nm").args(options).arg("-P").arg(path));
    let names = text.lines().filter(|line| !line.ends_with(':'));
    let mut names: Vec<_> = names.filter_map(|line| Some(line.split([' ', '@']).next()?.to_owned())).collect();
    names.retain(|name| !name.is_empty());
    names.sort();
    names
}

#[test]
fn host_libraries_define_exactly_the_listed_names() {
    let names = listed("abi-host.txt");
    assert_eq!(symbols(&["-D", "--defined-only"], &built("libhcomm_sim.so")), names);
    assert_eq!(symbols(&["-g", "--defined-only"], &built("libhcomm_sim.a")), names);
}

/// Case 66.
#[test]
fn device_libraries_define_exactly_the_listed_names_and_need_the_platform() {
    let (names, port) = (listed("abi.txt"), listed("abi-port.txt"));
    let host = built("device/host/libhcomm_aicpu.a");
    assert_eq!(symbols(&["-g", "--defined-only"], &host), names);
    let mut needed = symbols(&["-u"], &host);
    needed
        .retain(|name| !["bcmp", "memcmp", "memcpy", "memmove", "memset", "_GLOBAL_OFFSET_TABLE_"].contains(&&**name));
    assert_eq!(needed, port);

    let device = built("device/aarch64-unknown-none/libhcomm_aicpu.a");
    let mut with_memory: Vec<String> = names.clone();
    with_memory.extend(["memcmp", "memcpy", "memmove", "memset"].map(str::to_owned));
    with_memory.sort();
    assert_eq!(symbols(&["-g", "--defined-only"], &device), with_memory);
    assert_eq!(symbols(&["-u"], &device), port);
}

/// A program in C that is the whole platform: queue, thread table, device and core, with no Rust but the library.
#[test]
fn platform_in_c_drives_the_static_library() {
    let folder = folder("plain_platform");
    for dialect in ["c11", "c++17"] {
        let out = folder.join(dialect);
        let mut command = compiler(dialect);
        command.arg(source("plain_platform.c")).args(["-x", "none"]).arg(built("device/host/libhcomm_aicpu.a"));
        run(command.arg("-o").arg(&out));
        assert_eq!(run(&mut limited(&out, LONG)), "platform in C works\n", "{dialect}");
    }
    if has("valgrind") {
        let mut command = limited("valgrind", LONG);
        command.args(["-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=all"]);
        run(command.arg(folder.join("c11")));
    }
    if has("aarch64-linux-gnu-gcc") && has("qemu-aarch64") {
        let out = folder.join("aarch64");
        let mut command = Command::new("aarch64-linux-gnu-gcc");
        command.args(["-std=c11", "-O1", "-static"]).args(WARNINGS).arg("-I").arg(root().join("include"));
        command.arg(source("plain_platform.c")).arg(built("device/aarch64-unknown-none/libhcomm_aicpu.a"));
        run(command.arg("-o").arg(&out));
        let text = run(limited("qemu-aarch64", LONG).arg(&out));
        assert_eq!(text, "platform in C works\n", "aarch64");
    }
}

#[test]
fn names_of_kernels_and_platforms_are_declared() {
    let text = |name: &str| std::fs::read_to_string(root().join("include/hcomm").join(name)).unwrap();
    let (kernels, platform) = (text("hcomm_primitives.h"), [text("hcomm_platform.h"), text("hcomm_port.h")].concat());
    for name in listed("abi.txt").into_iter().chain(listed("abi-port.txt")) {
        let header = if name.starts_with("Hcomm") { &kernels } else { &platform };
        assert!(header.contains(&format!("{name}(")), "{name} is in no header");
    }
}

#[test]
fn every_entry_point_of_kernels_is_there_on_the_host_too() {
    let host = listed("abi-host.txt");
    // What makes a platform is of the static library alone: a process of the host has its platform.
    let (of_kernels, of_platforms): (Vec<_>, Vec<_>) =
        listed("abi.txt").into_iter().partition(|name| name.starts_with("Hcomm"));
    let missing: Vec<_> = of_kernels.into_iter().filter(|name| !host.contains(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
    assert!(!of_platforms.is_empty() && !of_platforms.iter().any(|name| host.contains(name)));
}

#[test]
fn every_exported_name_is_declared_and_misused() {
    let text = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let headers = HEADERS.map(|name| text(root().join("include").join(name))).concat();
    let misuse = ["misuse_comm.h", "misuse_device.h", "misuse_kernels.h"].map(|name| text(source(name))).concat();
    for name in listed("abi-host.txt") {
        assert!(headers.contains(&format!("{name}(")), "{name} is in no header");
        assert!(misuse.contains(&format!("{name}(")), "{name} is in no part of misuse.c");
    }
}

#[test]
fn every_function_is_in_the_tables_of_the_documents() {
    for (document, table) in [("README.md", "| `"), ("docs/c-api.md", "")] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let shown =
            |name: &str| text.lines().any(|line| line.starts_with(table) && line.contains(&format!("`{name}`")));
        let missing: Vec<_> = listed("abi-host.txt").into_iter().filter(|name| !shown(name)).collect();
        assert_eq!(missing, Vec::<String>::new(), "{document}");
    }
}

#[test]
fn statically_linked_program_runs_native_kernels() {
    let (folder, description) = kernels("static");
    let out = folder.join("example2-static");
    let mut command = compiler("c11");
    command.arg(source("example2.c")).arg("-o").arg(&out).arg("-rdynamic").arg(built("libhcomm_sim.a"));
    run(command.args(["-lgcc_s", "-lpthread", "-lm", "-ldl"]));
    assert_eq!(run(limited(&out, LONG).arg(&description).arg("CopyLen")), "Ascend950: 0\n\n");
}

#[test]
fn static_program_that_hides_its_symbols_is_told_so() {
    let (folder, description) = kernels("hidden");
    let out = folder.join("example2-hidden");
    let mut command = compiler("c11");
    command.arg(source("example2.c")).arg("-o").arg(&out).arg(built("libhcomm_sim.a"));
    run(command.args(["-lgcc_s", "-lpthread", "-lm", "-ldl"]));
    let output = output(limited(&out, LONG).arg(&description).arg("CopyLen"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("undefined symbol: Hcomm") && errors.contains("needs -rdynamic"), "{errors}");
}

#[test]
fn installed_library_is_found_by_pkg_config_and_cmake() {
    let (folder, description) = kernels("install");
    let prefix = folder.join("a prefix");
    let libraries = built("libhcomm_sim.so").parent().unwrap().to_owned();
    let mut script = Command::new(root().join("scripts/install.sh"));
    run(script.env("HOST_STUB", hcomm_testkit::cli::program()).arg(libraries).arg(&prefix));
    // A program that knows nothing of the repository.
    let outside = folder.join("outside");
    std::fs::create_dir(&outside).unwrap();
    for name in ["example2.c", "copy_params.h", "check.h"] {
        std::fs::copy(source(name), outside.join(name)).unwrap();
    }
    if has("pkg-config") {
        let build = "eval cc -std=c11 -Wall -Wextra -Werror example2.c -o with_pkg_config $(pkg-config --cflags --libs hcomm-sim)";
        let mut shell = Command::new("sh");
        shell.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).current_dir(&outside);
        run(shell.args(["-ec", build]));
        let text = run(limited(outside.join("with_pkg_config"), LONG).arg(&description).arg("CopyLen"));
        assert_eq!(text, "Ascend950: 0\n\n");
    }
    if has("cmake") {
        let lists = "cmake_minimum_required(VERSION 3.16)\nproject(outside C)\nfind_package(hcomm-sim 0.1 REQUIRED CONFIG)\n\
            add_executable(with_cmake example2.c)\ntarget_link_libraries(with_cmake PRIVATE hcomm_sim::hcomm_sim)\n\
            add_executable(with_cmake_static example2.c)\n\
            target_link_libraries(with_cmake_static PRIVATE hcomm_sim::hcomm_sim_static)\n";
        std::fs::write(outside.join("CMakeLists.txt"), lists).unwrap();
        let prefix = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
        run(Command::new("cmake").args(["-S", ".", "-B", "build", &prefix]).current_dir(&outside));
        run(Command::new("cmake").args(["--build", "build"]).current_dir(&outside));
        for name in ["with_cmake", "with_cmake_static"] {
            let text = run(limited(outside.join("build").join(name), LONG).arg(&description).arg("CopyLen"));
            assert_eq!(text, "Ascend950: 0\n\n", "{name}");
        }
    }
}

/// Case 284.
#[test]
fn timeline_of_a_program_is_written_although_it_leaves_its_device_open() {
    let folder = folder("left_open");
    let program = program(&folder, "left_open.c", "c11");
    for name in ["t.json", "t.html", "t.txt"] {
        let file = folder.join(name);
        run(limited(&program, LONG).env("HCOMM_SIM_TRACE", &file));
        let text = std::fs::read_to_string(&file).unwrap();
        for part in ["hcomm-sim-trace", "allocate", "copy to the device", "left_open.c:"] {
            assert!(text.contains(part), "{name} lacks {part}: {text}");
        }
    }
    let refused = output(limited(&program, LONG).env("HCOMM_SIM_TRACE", "t.pdf"));
    assert!(!refused.status.success(), "{refused:?}");
}
