//! Programs whose address space a sanitizer has divided, and the base of HBM that their users choose.

mod c_kit;

use std::path::{Path, PathBuf};
use std::process::Command;

use c_kit::{LONG, built, compiler, folder, limited, on_qemu, operator, output, run, source};

/// Environment variable with the base.
const BASE_VAR: &str = "HCOMM_SIM_HBM_BASE";

/// `load_and_copy.c` and the kernel of `copy_kernel.c`, both compiled with `options`.
struct Copy {
    program: PathBuf,
    description: PathBuf,
}

impl Copy {
    fn new(test: &str, options: &[&str]) -> Self {
        let folder = folder(test);
        let compile = |name: &str, out: &Path, more: &[&str]| {
            run(compiler("c11").args(options).arg(source(name)).arg("-o").arg(out).args(more));
        };
        compile("copy_kernel.c", &folder.join("libk.so"), &["-fPIC", "-shared"]);
        let (program, library) = (folder.join("program"), built("libhcomm_sim.so"));
        let library = library.parent().unwrap().display();
        let link = [&format!("-L{library}"), "-lhcomm_sim", "-lpthread", &format!("-Wl,-rpath,{library}")];
        compile("load_and_copy.c", &program, &link);
        let description = folder.join("k.json");
        std::fs::write(&description, format!("{{{}}}", operator("K", "libk.so", "copy_len"))).unwrap();
        Self { program, description }
    }

    fn command(&self) -> Command {
        let mut command = limited(&self.program, LONG);
        command.arg(&self.description).arg("K");
        command
    }
}

/// Case 440.
#[test]
fn program_with_the_thread_sanitizer_runs_and_reports_its_own_races_alone() {
    let copy = Copy::new("thread_sanitizer", &["-fsanitize=thread"]);
    // The library is not compiled with it: what its code does is no finding.
    assert_eq!(run(copy.command().env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1")), "copied\n");
}

/// Case 440.
#[test]
fn hbm_lies_where_the_user_wants_it() {
    let copy = Copy::new("hbm_base", &[]);
    for base in ["0x1000000000", "0x200000000000"] {
        assert_eq!(run(copy.command().env(BASE_VAR, base)), "copied\n", "{base}");
    }
    let failed = |command: &mut Command| {
        let output = output(command);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
    };
    let text = failed(copy.command().env(BASE_VAR, "12"));
    assert!(text.contains("HCOMM_SIM_HBM_BASE is \"12\": must be a multiple of 0x1000000000"), "{text}");
    let text = failed(on_qemu(&mut copy.command()).env(BASE_VAR, "0x1000000000"));
    assert!(text.contains("hbm at 0x1000000000 is below 0x8000000000, where the image of the cpu qemu lies"), "{text}");
}
