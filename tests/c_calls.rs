//! Functions and headers of the C API that need no kernel: securec.h, and the calls around a program.

mod c_kit;

use c_kit::{LONG, compiler, folder, limited, program, run, source};

/// The header alone, as the strictest builds compile it.
#[test]
fn checked_memory_and_text_work_in_every_dialect() {
    let folder = folder("checked_text");
    let strict = ["-O2", "-D_FORTIFY_SOURCE=2", "-fstack-protector-all", "-fsanitize=undefined"];
    for (dialect, flags) in [("c11", &[][..]), ("c++17", &[]), ("gnu11", &strict), ("c++14", &strict)] {
        let out = folder.join(format!("checked_text-{dialect}"));
        run(compiler(dialect).args(flags).arg(source("checked_text.c")).arg("-o").arg(&out));
        assert_eq!(run(&mut limited(&out, LONG)), "checked text\n", "{dialect}");
    }
}

#[test]
fn calls_of_the_runtime_around_a_program_answer_as_documented() {
    for dialect in ["c11", "c++17"] {
        let folder = folder(&format!("runtime_calls_{dialect}"));
        let program = program(&folder, "runtime_calls.c", dialect);
        assert_eq!(run(limited(&program, LONG).arg(&folder)), "runtime calls\n", "{dialect}");
    }
}
