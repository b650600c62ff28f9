//! Images with kernels in C and C++, as `make image KERNEL=..` makes them: what runs, and what is refused with a sentence.

mod c_kit;

use std::path::{Path, PathBuf};
use std::process::Command;

use c_kit::{folder, output, run, source};
use hcomm_testkit::{Rig, root};
use host_stub::{Cpu, DeviceOptions};

fn kernel_image(out: &Path, sources: &[PathBuf]) -> Command {
    let mut command = Command::new(root().join("scripts/kernel_image.sh"));
    command.arg(out).args(sources).env_remove("CPPFLAGS").env_remove("ENTRIES");
    command
}

/// What is said of an image that can't be made.
fn refused(command: &mut Command) -> String {
    let output = output(command);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    text
}

/// What is said of a source with kernel `k` that can't be in an image.
fn refused_source(folder: &Path, name: &str, before: &str, body: &str) -> String {
    let path = folder.join(name);
    let text =
        format!("#include \"hcomm/hcomm_kernel.h\"\n{before}\nHCOMM_KERNEL(k) {{ (void)args; {body} return 0; }}\n");
    std::fs::write(&path, text).unwrap();
    refused(&mut kernel_image(&folder.join("k.elf"), &[path]))
}

/// Launches a kernel of `image` without parameters: its error, if it has one.
fn launch(image: &Path, kernel: &str) -> Option<String> {
    let options = DeviceOptions { cpu: Cpu::Qemu, image: Some(image.to_owned()), ..DeviceOptions::default() };
    let rig = Rig::with_options(options);
    rig.stream.launch_bytes(&rig.device.load_kernel(kernel).unwrap(), &[]).unwrap();
    rig.stream.synchronize().err().map(|error| error.to_string())
}

/// Case 400, 401, 402, 403.
#[test]
fn constructors_run_functions_on_strings_are_there_and_a_frame_above_the_stack_is_caught() {
    let image = folder("image").join("k.elf");
    let mut command = kernel_image(&image, &[source("image_cxx.cpp"), source("image_strings.c")]);
    command.env("CPPFLAGS", r#"-D_GNU_SOURCE -DPIECE="abcabc\xff""#).env("ENTRIES", "strings_agree,own_function_wins");
    run(&mut command);
    for kernel in ["constructed", "strings_agree", "own_function_wins"] {
        assert_eq!(launch(&image, kernel), None, "{kernel}");
    }
    let error = launch(&image, "large_frame").unwrap();
    assert!(error.contains("kernel large_frame faulted: stack overflow: write at 0x"), "{error}");
    assert!(error.contains(" B below the stack of 65536 B, in ") && error.contains("image_cxx.cpp:"), "{error}");
}

/// Case 404.
#[test]
fn what_the_image_lacks_is_named_in_one_sentence() {
    const INSTEAD: &str = ": build a shared library of it and run it with --cpu linux\n";
    let folder = folder("image_lacks");
    let text = refused_source(
        &folder,
        "k.cpp",
        "#include <iostream>\n#include <vector>",
        "std::vector<int> v; v.push_back(1); std::cout << v[0];",
    );
    assert!(text.starts_with("kernel_image: the image has no "), "{text}");
    assert!(text.ends_with(INSTEAD) && text.lines().count() == 1, "{text}");
    for name in ["no operator new(unsigned long)", "no std::cout", "no operator delete(void*, unsigned long)"] {
        assert!(text.contains(name), "{name} is not in {text}");
    }
    let text = refused_source(&folder, "k.c", "int atexit(void (*f)(void));\nstatic void f(void) {}", "atexit(f);");
    assert_eq!(text, format!("kernel_image: the image has no atexit{INSTEAD}"));
    let text = refused_source(&folder, "k.cpp", "", "throw 1;");
    let path = folder.join("k.cpp");
    let exceptions =
        format!("kernel_image: {} uses C++ exceptions, which the image does not have{INSTEAD}", path.display());
    assert!(text.ends_with(&exceptions), "{text}");
    let rtti = "#include <typeinfo>\nstruct S { virtual int f() { return 0; } } s;";
    let text = refused_source(&folder, "k.cpp", rtti, "if (typeid(s).name() == nullptr) return 1;");
    assert!(text.contains("uses C++ type information (dynamic_cast, typeid), which the image does not have"), "{text}");
}

/// Case 405.
#[test]
fn what_would_be_dropped_in_silence_is_refused() {
    let folder = folder("image_drops");
    let object = "struct S { volatile int x; ~S() { x = 0; } };\nS s;";
    assert_eq!(
        refused_source(&folder, "k.cpp", object, "s.x = 1;"),
        "kernel_image: the image never ends, so destructors of static objects never run: use --cpu linux\n"
    );
    assert_eq!(
        refused_source(&folder, "k.c", "_Thread_local int x = 3;", "x++;"),
        "kernel_image: the image has no thread_local variables: use --cpu linux\n"
    );
}

/// Case 406.
#[test]
fn sources_without_a_kernel_and_wrong_entries_are_refused() {
    let folder = folder("image_entries");
    let helper = folder.join("helper.c");
    std::fs::write(&helper, "int helper(void);\nint helper(void) { return 1; }\n").unwrap();
    let command = || kernel_image(&folder.join("k.elf"), std::slice::from_ref(&helper));
    assert_eq!(
        refused(&mut command()),
        format!(
            "kernel_image: there is no kernel in {}: declare one with HCOMM_KERNEL(name), or name functions with \
             ENTRIES=name,..\n",
            helper.display()
        )
    );
    assert_eq!(
        refused(command().env("ENTRIES", "no_such")),
        "kernel_image: ENTRIES: no file defines no_such, which in C++ must be extern \"C\"\n"
    );
    assert_eq!(
        refused(command().env("ENTRIES", "a-b")),
        "kernel_image: ENTRIES: a-b is not the name of a C function\n"
    );
    let mut twice = kernel_image(&folder.join("k.elf"), &[source("copy_kernel.c")]);
    assert_eq!(
        refused(twice.env("ENTRIES", "copy_256")),
        "kernel_image: ENTRIES: copy_256 is a kernel already, by HCOMM_KERNEL\n"
    );
}
