//! Functions and headers of the C API: securec.h, calls around a program, streams and events, resources.

mod c_kit;

use c_kit::{LONG, compiler, folder, kernels, limited, on_qemu, program, run, source};

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

/// Case 250, 251.
#[test]
fn copies_fills_and_events_of_streams_are_in_order() {
    for dialect in ["c11", "c++17"] {
        let (folder, description) = kernels(&format!("stream_calls_{dialect}"));
        let program = program(&folder, "stream_calls.c", dialect);
        let command = || {
            let mut command = limited(&program, LONG);
            command.arg(&description);
            command
        };
        assert_eq!(run(&mut command()), "stream calls\n", "{dialect}");
        assert_eq!(run(on_qemu(&mut command())), "stream calls\n", "{dialect}");
        assert_eq!(run(command().env("HCOMM_SIM_CHECK", "all")), "stream calls\n", "{dialect}");
    }
}

/// Case 252.
#[test]
fn resources_are_made_as_real_builds_ask_for_them() {
    for dialect in ["c11", "c++17"] {
        let (folder, description) = kernels(&format!("resources_{dialect}"));
        let program = program(&folder, "resources.c", dialect);
        let command = || {
            let mut command = limited(&program, LONG);
            command.arg(&description).arg(folder.join("libcopy_kernel.so"));
            command
        };
        assert_eq!(run(&mut command()), "resources\n", "{dialect}");
        assert_eq!(run(on_qemu(&mut command())), "resources\n", "{dialect}");
    }
}

/// Case 254.
#[test]
fn launch_without_a_control_pair_ends_as_the_environment_says() {
    let (folder, description) = kernels("end_of_launch");
    let program = program(&folder, "end_of_launch.c", "c11");
    for is_qemu in [false, true] {
        let ends = |end: Option<&str>| {
            let mut command = limited(&program, LONG);
            command.arg(&description).env_remove("HCOMM_SIM_END").envs(end.map(|end| ("HCOMM_SIM_END", end)));
            run(if is_qemu { on_qemu(&mut command) } else { &mut command })
        };
        for end in [None, Some("notify")] {
            assert_eq!(ends(end), "507001\n", "{end:?}");
        }
        assert_eq!(ends(Some("queues")), "0 9\n");
        let wrong = ends(Some("queue"));
        assert!(wrong.contains("end of launches \"queue\" (HCOMM_SIM_END): must be notify or queues"), "{wrong}");
    }
}
