//! Where the library of a description is looked for in mode 0: as files, and in packages as they are installed for a card.

mod c_kit;

use std::path::{Path, PathBuf};
use std::process::Command;

use c_kit::{LONG, folder, kernel, limited, linux_library, on_linux, operator, program, run, source};
use hcomm_testkit::root;

const NO_LIBRARY: &str = "507902 ";
const OP_LOAD_FAILED: &str = "100025 ";

/// A folder laid out as packages are installed: `config/k.json` names function `copy_len` of `libk.so`, `kernel` is empty.
fn installed(test: &str) -> (PathBuf, PathBuf) {
    let folder = folder(test);
    std::fs::create_dir_all(folder.join("config")).unwrap();
    std::fs::create_dir_all(folder.join("kernel")).unwrap();
    let description = folder.join("config/k.json");
    std::fs::write(&description, format!("{{{}}}", operator("K", "libk.so", "copy_len"))).unwrap();
    (folder, description)
}

/// Packs `library` as `libk.so`, and gives the package.
fn packed(folder: &Path, library: &Path) -> PathBuf {
    let out = folder.join("packed");
    std::fs::create_dir_all(&out).unwrap();
    std::fs::copy(library, out.join("libk.so")).unwrap();
    let script = root().join("scripts/card/package.sh");
    run(Command::new(script).arg(out.join("libk.so")).arg(&out).arg("K=copy_len"));
    out.join("aicpu_k.tar.gz")
}

fn for_linux(folder: &Path) -> PathBuf {
    let library = folder.join("linux.so");
    linux_library(&source("copy_kernel.c"), &library, &[]);
    library
}

fn for_this_machine(folder: &Path) -> PathBuf {
    kernel(folder, "copy_kernel.c", "c11", "native.so");
    folder.join("native.so")
}

/// What `load_and_copy.c` prints on the CPU `linux`.
fn on_linux_prints(program: &Path, description: &Path) -> String {
    run(on_linux(limited(program, LONG).arg(description).arg("K")))
}

/// Case 285.
#[test]
fn library_inside_a_package_of_the_kernel_folder_is_loaded() {
    let (folder, description) = installed("package_found");
    let program = program(&folder, "load_and_copy.c", "c11");
    let package = std::fs::read(packed(&folder, &for_linux(&folder))).unwrap();
    let place = folder.join("kernel/aicpu_k.tar.gz");
    // With a signature before it, and without.
    for signature in [8448, 0] {
        std::fs::write(&place, [vec![0x30; signature], package.clone()].concat()).unwrap();
        assert_eq!(on_linux_prints(&program, &description), "copied\n");
    }
    // What is not for this processor is refused by the place in the package.
    let text = run(limited(&program, LONG).arg(&description).arg("K"));
    let told = ["kernel/aicpu_k.tar.gz/aicpu_kernels_device/libk.so: made for AArch64: use --cpu linux"];
    let is_other = cfg!(target_arch = "x86_64");
    assert_eq!(is_other, text.starts_with(OP_LOAD_FAILED) && told.iter().all(|part| text.contains(part)), "{text}");
    // One for this processor beside the description is not the same one twice.
    std::fs::copy(for_this_machine(&folder), folder.join("config/libk.so")).unwrap();
    assert_eq!(run(limited(&program, LONG).arg(&description).arg("K")), "copied\n");
    assert_eq!(on_linux_prints(&program, &description), "copied\n");
}

/// Case 286.
#[test]
fn two_libraries_of_one_name_are_refused_with_both_places() {
    let (folder, description) = installed("package_twice");
    let program = program(&folder, "load_and_copy.c", "c11");
    let package = packed(&folder, &for_this_machine(&folder));
    let (first, second) = (folder.join("kernel/aicpu_a.tar.gz"), folder.join("kernel/aicpu_b.tar.gz"));
    let prints = || run(limited(&program, LONG).arg(&description).arg("K"));
    std::fs::copy(&package, &first).unwrap();
    assert_eq!(prints(), "copied\n");
    std::fs::copy(&package, &second).unwrap();
    let text = prints();
    let both = [&first, &second].map(|path| path.join("aicpu_kernels_device/libk.so").display().to_string());
    assert!(text.starts_with(NO_LIBRARY) && both.iter().all(|place| text.contains(place)), "{text}");
    std::fs::remove_file(&second).unwrap();
    std::fs::copy(folder.join("native.so"), folder.join("config/libk.so")).unwrap();
    let (text, beside) = (prints(), folder.join("config/libk.so").display().to_string());
    assert!(text.starts_with(NO_LIBRARY) && [&beside, &both[0]].iter().all(|place| text.contains(*place)), "{text}");
}

/// Case 287.
#[test]
fn package_that_is_not_what_it_lists_is_refused() {
    let (folder, description) = installed("package_hash");
    let program = program(&folder, "load_and_copy.c", "c11");
    let library = for_this_machine(&folder);
    let prints = || run(limited(&program, LONG).arg(&description).arg("K"));
    // None at all: every place that was looked in is named.
    std::fs::copy(packed(&folder, &library), folder.join("kernel/aicpu_k.tar.gz")).unwrap();
    std::fs::write(&description, format!("{{{}}}", operator("K", "libother.so", "copy_len"))).unwrap();
    let text = prints();
    let looked = ["config/libother.so", "kernel/libother.so", "kernel/aicpu_k.tar.gz"];
    assert!(text.starts_with(NO_LIBRARY) && looked.iter().all(|place| text.contains(place)), "{text}");
    std::fs::write(&description, format!("{{{}}}", operator("K", "libk.so", "copy_len"))).unwrap();
    // Another library, with the hash of the one that was packed.
    let inside = folder.join("aicpu_kernels_device");
    run(Command::new("tar").arg("-xzf").arg(folder.join("kernel/aicpu_k.tar.gz")).arg("-C").arg(&folder));
    let mut bytes = std::fs::read(inside.join("libk.so")).unwrap();
    bytes.push(0);
    std::fs::write(inside.join("libk.so"), bytes).unwrap();
    let pack = || {
        let out = folder.join("kernel/aicpu_k.tar.gz");
        run(Command::new("tar").arg("-czf").arg(out).arg("-C").arg(&folder).arg("aicpu_kernels_device"));
    };
    pack();
    let text = prints();
    assert!(
        text.starts_with(OP_LOAD_FAILED) && text.contains("kernel/aicpu_k.tar.gz: has a libk.so with SHA-256 "),
        "{text}"
    );
    std::fs::remove_file(inside.join("bin_hash.cfg")).unwrap();
    pack();
    let text = prints();
    assert!(text.contains("kernel/aicpu_k.tar.gz: has no aicpu_kernels_device/bin_hash.cfg"), "{text}");
    std::fs::write(folder.join("kernel/aicpu_k.tar.gz"), "no package").unwrap();
    let text = prints();
    assert!(text.contains("kernel/aicpu_k.tar.gz: is no package: there is no gzip stream"), "{text}");
}
