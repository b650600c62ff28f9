//! How libraries of native kernels are found and loaded, and what is said when they are not.

mod c_kit;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use c_kit::{LONG, built, compiler, folder, has, limited, operator, program, run, source};

/// Code of a library that can't be loaded.
const OP_LOAD_FAILED: &str = "100025 ";

/// Writes a source file, and gives its path.
fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Writes a description of operator `K`, function `copy` of `libk.so`.
fn describe(folder: &Path) -> PathBuf {
    write(folder, "k.json", &format!("{{{}}}", operator("K", "libk.so", "copy")))
}

/// Source of the kernel `copy`, which calls `scale` for the length that it copies; `more` comes before it.
fn scaling_kernel(more: &str) -> String {
    format!(
        "#include \"copy_params.h\"\n#include \"hcomm/hcomm_kernel.h\"\n#include \"in_step.h\"\n{more}\n\
         HCOMM_KERNEL(copy) {{\n\
         const CopyParams *param = (const CopyParams *)args;\n\
         int32_t code = begin_in_step(param->thread);\n\
         if (code == 0) {{\n\
         code = HcommLocalCopyOnThread(param->thread, param->cclBuf, param->userIn, (uint64_t)scale((int)param->len));\n\
         }}\n\
         return (uint32_t)end_in_step(param->thread, param->cpuThread, code);\n}}\n"
    )
}

const OWN_SCALE: &str = "int scale(int x);\nint scale(int x) { return x; }\n";
const SCALE_OF_PROGRAM: &str = "int scale(int x);\nint scale(int x) { return x * 1000; }\n";

/// Makes `libk.so` of a source, with more options.
fn library(folder: &Path, name: &str, text: &str, options: &[&str]) {
    let dialect = if name.ends_with(".cpp") { "c++17" } else { "c11" };
    let path = write(folder, name, text);
    let mut command = compiler(dialect);
    command.args(["-fPIC", "-shared"]).arg(path).arg("-o").arg(folder.join("libk.so"));
    run(command.args(["-x", "none"]).args(options));
}

/// Makes a program of `load_and_copy.c` and `more` with the static library.
fn static_program(folder: &Path, more: &str, options: &[&str]) -> PathBuf {
    let (out, is_cxx) = (folder.join("program"), more.contains("iostream"));
    let more = write(folder, if is_cxx { "more.cpp" } else { "more.c" }, more);
    let mut command = compiler(if is_cxx { "c++17" } else { "c11" });
    command.arg(source("load_and_copy.c")).arg(more).arg("-o").arg(&out).args(["-x", "none"]);
    run(command.arg(built("libhcomm_sim.a")).args(["-lgcc_s", "-lpthread", "-lm", "-ldl"]).args(options));
    out
}

/// What `load_and_copy.c` prints about operator `K`.
fn load_and_copy(program: &Path, description: &Path) -> String {
    run(limited(program, LONG).arg(description).arg("K"))
}

/// Case 118.
#[test]
fn kernel_calls_its_own_function_and_not_the_programs() {
    let folder = folder("own_function");
    let description = describe(&folder);
    library(&folder, "k.c", &scaling_kernel(OWN_SCALE), &[]);
    let program = static_program(&folder, SCALE_OF_PROGRAM, &["-rdynamic"]);
    assert_eq!(load_and_copy(&program, &description), "copied\n");
    // The program exports what kernels need, and nothing else.
    let program = static_program(&folder, SCALE_OF_PROGRAM, &["-Wl,--export-dynamic-symbol=Hcomm*"]);
    assert_eq!(load_and_copy(&program, &description), "copied\n");
    // Functions of the C library: `index` gives a pointer.
    let text = scaling_kernel("int index(int x);\nint index(int x) { return x; }\n#define scale index\n");
    library(&folder, "k.c", &text, &["-fno-builtin"]);
    assert_eq!(
        load_and_copy(&static_program(&folder, "extern int unused;\n", &["-rdynamic"]), &description),
        "copied\n"
    );
}

/// Case 118.
#[test]
fn names_that_cannot_be_kept_apart_are_told() {
    let folder = folder("not_apart");
    let description = describe(&folder);
    let with_cout = "#include <iostream>\nint scale(int x);\n";
    let kernel = scaling_kernel(&format!("{with_cout}int scale(int x) {{ std::cout << std::flush; return x; }}\n"));
    let more = format!("{with_cout}int scale(int x) {{ std::cout << x; return x * 1000; }}\n");
    library(&folder, "k.cpp", &kernel, &[]);
    // Without position-independent code the program has std::cout in a copy of its own.
    let program = static_program(&folder, &more, &["-rdynamic", "-no-pie"]);
    let text = load_and_copy(&program, &description);
    let told = ["its _Z5scalei is also defined by", "both use the object _ZSt4cout", "-Wl,-Bsymbolic"];
    assert!(text.starts_with(OP_LOAD_FAILED) && told.iter().all(|part| text.contains(part)), "{text}");
    library(&folder, "k.cpp", &kernel, &["-Wl,-Bsymbolic"]);
    assert_eq!(load_and_copy(&program, &description), "copied\n");

    // The runtime of a sanitizer ends a process that loads a library so.
    library(&folder, "k.c", &scaling_kernel(OWN_SCALE), &[]);
    let program = static_program(&folder, SCALE_OF_PROGRAM, &["-rdynamic", "-fsanitize=address"]);
    let text = load_and_copy(&program, &description);
    assert!(text.starts_with(OP_LOAD_FAILED) && text.contains("its scale is also defined by"), "{text}");
    library(&folder, "k.c", &scaling_kernel(OWN_SCALE), &["-Wl,-Bsymbolic"]);
    assert_eq!(load_and_copy(&program, &description), "copied\n");
}

/// Case 119.
#[test]
fn library_that_is_loaded_for_itself_alone_lends_its_names_to_kernels() {
    let folder = folder("local_scope");
    let description = describe(&folder);
    library(&folder, "k.c", &scaling_kernel(OWN_SCALE), &[]);
    let out = folder.join("local_scope");
    run(compiler("gnu11").arg(source("local_scope.c")).arg("-o").arg(&out).arg("-ldl"));
    let text = run(limited(&out, LONG).arg(built("libhcomm_sim.so")).arg(&description).arg("K"));
    assert_eq!(text, "0 0 0 \n");
}

/// A folder with a description, its library beside it, and a program that loads both.
fn simple(test: &str, description_in: impl AsRef<OsStr>) -> (PathBuf, PathBuf, PathBuf) {
    let folder = folder(test);
    let inner = folder.join(Path::new(&description_in));
    std::fs::create_dir_all(&inner).unwrap();
    library(&inner, "k.c", &scaling_kernel(OWN_SCALE), &[]);
    let description = describe(&inner);
    let program = program(&folder, "load_and_copy.c", "c11");
    (folder, description, program)
}

/// Case 121.
#[test]
fn paths_are_bytes_of_any_encoding() {
    let gbk = OsStr::from_bytes(b"\xd6\xd0\xce\xc4");
    let (_, description, program) = simple("gbk", gbk);
    assert_eq!(load_and_copy(&program, &description), "copied\n");
}

/// Case 122.
#[test]
fn library_lies_where_the_link_to_its_description_leads() {
    let (folder, description, program) = simple("link", "package");
    let link = folder.join("elsewhere/link.json");
    std::fs::create_dir(folder.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(&description, &link).unwrap();
    assert_eq!(load_and_copy(&program, &link), "copied\n");
    // What is not there is told with the folder that was looked in.
    std::fs::remove_file(folder.join("package/libk.so")).unwrap();
    let text = load_and_copy(&program, &link);
    assert!(text.starts_with("507902 ") && text.contains(folder.join("package/libk.so").to_str().unwrap()), "{text}");
}

/// Case 124.
#[test]
fn library_for_another_machine_is_told_with_both_machines() {
    let (folder, description, program) = simple("machine", "");
    if has("aarch64-linux-gnu-gcc") {
        let mut command = Command::new("aarch64-linux-gnu-gcc");
        command.args(["-shared", "-fPIC", "-nostdlib"]).arg(write(
            &folder,
            "other.c",
            "int copy(void *a) { return !a; }\n",
        ));
        run(command.arg("-o").arg(folder.join("libk.so")));
        let text = load_and_copy(&program, &description);
        let told = ["made for AArch64: use --cpu linux", "make image"];
        let is_other = cfg!(target_arch = "x86_64");
        assert_eq!(is_other, text.starts_with(OP_LOAD_FAILED) && told.iter().all(|part| text.contains(part)), "{text}");
    }
    // Files that are no shared libraries at all.
    run(compiler("c11")
        .args(["-no-pie"])
        .arg(write(&folder, "main.c", "int main(void) { return 0; }\n"))
        .arg("-o")
        .arg(folder.join("libk.so")));
    let text = load_and_copy(&program, &description);
    assert!(text.starts_with(OP_LOAD_FAILED) && text.contains("not a shared library: link it with -shared"), "{text}");
    std::fs::write(folder.join("libk.so"), "\x7fELF").unwrap();
    let text = load_and_copy(&program, &description);
    assert!(text.starts_with(OP_LOAD_FAILED) && text.contains("it is not an ELF file"), "{text}");
}

/// Case 125.
#[test]
fn missing_symbol_is_named_with_the_reason() {
    let (folder, description, program) = simple("missing", "");
    let load = |name: &str, options: &[&str]| {
        let more = format!("int {name}(int x);\n#define scale {name}\n");
        library(&folder, "k.c", &scaling_kernel(&more), options);
        load_and_copy(&program, &description)
    };
    let text = load("not_there", &[]);
    let told = "nothing that is loaded defines not_there: link the kernel's library with what does";
    assert!(text.starts_with(OP_LOAD_FAILED) && text.contains(told), "{text}");
    let text = load("HcommFlyOnThread", &[]);
    let told = "kernels have no function HcommFlyOnThread here: docs/c-api.md lists those that they have";
    assert!(text.starts_with(OP_LOAD_FAILED) && text.contains(told), "{text}");
    assert!(!text.contains("-rdynamic"), "{text}");
    // A program that hides what it has: the one case in which -rdynamic helps.
    library(&folder, "k.c", &scaling_kernel(OWN_SCALE), &[]);
    let text = load_and_copy(&static_program(&folder, "extern int unused;\n", &[]), &description);
    let told = "the program does not export it: one that links libhcomm_sim.a needs -rdynamic";
    assert!(text.starts_with(OP_LOAD_FAILED) && text.contains(told), "{text}");
}

/// Case 126.
#[test]
fn second_copy_of_the_library_is_told() {
    let folder = folder("two_copies");
    let description = describe(&folder);
    let shared = built("libhcomm_sim.so");
    let shared = shared.parent().unwrap().to_str().unwrap();
    let link =
        [&format!("-L{shared}"), "-lhcomm_sim", &format!("-Wl,-rpath,{shared}")].map(|option: &str| option.to_owned());
    let link: Vec<_> = link.iter().map(String::as_str).collect();
    library(&folder, "k.c", &scaling_kernel(OWN_SCALE), &link);
    let text = load_and_copy(&static_program(&folder, "extern int unused;\n", &[]), &description);
    let told = ["two copies of the library are loaded", "link the kernel without libhcomm_sim"];
    assert!(text.starts_with(OP_LOAD_FAILED) && told.iter().all(|part| text.contains(part)), "{text}");
    // The program's functions are found first, and with the shared library there is one copy only.
    let program_of_static = static_program(&folder, "extern int unused;\n", &["-rdynamic"]);
    assert_eq!(load_and_copy(&program_of_static, &description), "copied\n");
    assert_eq!(load_and_copy(&program(&folder, "load_and_copy.c", "c11"), &description), "copied\n");
    // A kernel with the device's library in it.
    let device = built("device/host/libhcomm_aicpu.a");
    library(&folder, "k.c", &scaling_kernel(OWN_SCALE), &[device.to_str().unwrap(), "-Wl,-Bsymbolic"]);
    let text = load_and_copy(&program_of_static, &description);
    assert!(text.starts_with(OP_LOAD_FAILED) && text.contains("link it without libhcomm_aicpu.a"), "{text}");
}
