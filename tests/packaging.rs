//! Build and installation where paths have spaces and cargo has another target folder; the ways to link the library.

use std::path::{Path, PathBuf};
use std::process::Command;

use hcomm_testkit::cli::program;
use hcomm_testkit::{root, target_dir};

/// Runs a command that must succeed, and returns what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text.into_owned()
}

/// A new folder, whose name has a space.
fn folder(test: &str) -> PathBuf {
    let path = target_dir().join("tmp/packaging").join(format!("{test} with space"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The install script, with the command line program as the tests compile it.
fn installer() -> Command {
    let mut script = Command::new(root().join("scripts/install.sh"));
    script.env("HOST_STUB", program());
    script
}

/// Installs the libraries of `make capi` below `folder`, beside a program that uses them; returns the prefix.
fn install(folder: &Path) -> PathBuf {
    let libraries = target_dir().join("capi");
    assert!(libraries.join("libhcomm_sim.so").exists(), "build it with `make capi`");
    let prefix = folder.join("prefix");
    run(installer().arg(libraries).arg(&prefix));
    let text = "#include \"acl/acl.h\"\nint main(void) { return aclrtSetDevice(99) == 0; }\n";
    std::fs::write(folder.join("program.c"), text).unwrap();
    prefix
}

/// Runs a line of the shell in `folder`, for which pkg-config finds the installed library.
fn shell(folder: &Path, prefix: &Path, line: &str) {
    run(Command::new("sh")
        .current_dir(folder)
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .args(["-ec", line]));
}

/// Case 169.
#[test]
fn make_uses_the_target_folder_of_cargos_configuration() {
    // Cargo reads this variable as it reads `build.target-dir` of a configuration file.
    let other = folder("target");
    let mut make = Command::new("make");
    make.current_dir(root()).env_remove("CARGO_TARGET_DIR").env("CARGO_BUILD_TARGET_DIR", &other);
    let database = run(make.args(["-s", "-n", "-p", "help"]));
    let folder = database.lines().rev().find_map(|line| line.strip_prefix("TARGET_DIR := ")).unwrap();
    assert_eq!(Path::new(folder), other);
}

/// Case 170.
#[test]
fn commands_of_make_quote_a_path_with_a_space() {
    let clone = folder("clone");
    run(Command::new("cp").arg("-r").arg(root().join("Makefile")).arg(root().join("scripts")).arg(&clone));
    for target in ["run", "test", "lib", "install", "toolkit", "capi", "image", "loom", "fuzz"] {
        let mut make = Command::new("make");
        let commands =
            run(make.current_dir(&clone).env_remove("CARGO_TARGET_DIR").env("OUT", "out").args(["-s", "-n", target]));
        for line in commands.lines() {
            let unquoted: Vec<_> = line.split('"').step_by(2).filter(|part| part.contains("clone with")).collect();
            assert!(unquoted.is_empty(), "make {target}: {line}");
        }
    }
}

/// Case 171.
#[test]
fn pkg_config_finds_a_prefix_with_a_space() {
    let folder = folder("pkg-config");
    let prefix = install(&folder);
    // The output has the quotes of a shell.
    shell(&folder, &prefix, "eval cc program.c -o program $(pkg-config --cflags --libs hcomm-sim)");
    run(&mut Command::new(folder.join("program")));
}

/// Case 172.
#[test]
fn pkg_config_static_links_a_static_program() {
    let folder = folder("static");
    let prefix = install(&folder);
    shell(&folder, &prefix, "eval cc -static program.c -o program $(pkg-config --static --cflags --libs hcomm-sim)");
    run(&mut Command::new(folder.join("program")));
}

/// Case 173.
#[test]
fn cmake_finds_the_version_by_each_form_of_request() {
    let folder = folder("cmake");
    let prefix = install(&folder);
    let version = env!("CARGO_PKG_VERSION");
    let [major, minor, _] = version.split('.').collect::<Vec<_>>()[..] else { panic!("{version}") };
    let next = format!("{major}.{}", minor.parse::<u32>().unwrap() + 1);
    let find = |request: &str| {
        let lists = format!(
            "cmake_minimum_required(VERSION 3.19)\nproject(outside C)\nfind_package(hcomm-sim {request} CONFIG)\n\
             message(STATUS \"found: ${{hcomm-sim_FOUND}}\")\n"
        );
        std::fs::write(folder.join("CMakeLists.txt"), lists).unwrap();
        let prefix = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
        run(Command::new("cmake").args(["--fresh", "-S", ".", "-B", "build", &prefix]).current_dir(&folder))
            .contains("found: 1")
    };
    for request in [
        "",
        version,
        &format!("{version} EXACT"),
        "0.0...0.5",
        &format!("0.0...{version}"),
        &format!("{major}.{minor}"),
    ] {
        assert!(find(request), "{request}");
    }
    for request in [&next, &format!("{next}...9.0"), &format!("0.0...<{version}"), "0.0...0.0.9", "9.0"] {
        assert!(!find(request), "{request}");
    }
}

/// Case 290.
#[test]
fn what_is_installed_runs_from_its_prefix_and_is_removed_again() {
    let (folder, libraries) = (folder("all"), target_dir().join("capi"));
    let (stage, prefix) = (folder.join("stage"), Path::new("/opt/hcomm"));
    let staged = |path: &str| stage.join("opt/hcomm").join(path);
    let script = |args: &[&std::ffi::OsStr]| {
        run(installer().env("DESTDIR", &stage).env("LIBDIR", prefix.join("lib/multi")).args(args))
    };
    script(&[libraries.as_os_str(), prefix.as_os_str()]);
    let soname = run(&mut Command::new(root().join("scripts/soname.sh")));
    for path in [
        &format!("lib/multi/{}", soname.trim()),
        "lib/multi/libhcomm_sim.a",
        "lib/multi/cmake/hcomm-sim/hcomm-add-kernel.cmake",
        "bin/host-stub",
        "libexec/hcomm/hcomm-runner",
        "share/man/man1/host-stub.1",
        "share/bash-completion/completions/host-stub",
        "share/doc/hcomm-sim/LICENSE-MIT",
        "share/doc/hcomm-sim/docs/c-api.md",
    ] {
        assert!(staged(path).is_file(), "{path}");
    }
    let dynamic = run(Command::new("readelf").arg("-d").arg(staged("lib/multi/libhcomm_sim.so")));
    assert!(dynamic.contains(&format!("Library soname: [{}]", soname.trim())), "{dynamic}");
    let config = std::fs::read_to_string(staged("lib/multi/pkgconfig/hcomm-sim.pc")).unwrap();
    assert!(config.contains("libdir=/opt/hcomm/lib/multi\n") && !config.contains("stage"), "{config}");
    let version = run(Command::new(staged("bin/host-stub")).arg("--version"));
    let told = [
        "host-stub 0.",
        "\ncommit: ",
        "\nimage interface: ",
        "\nqemu-system-aarch64 (--cpu qemu): ",
        "\nqemu-aarch64 (",
    ];
    assert!(told.iter().all(|part| version.contains(part)) && !version.contains("not found"), "{version}");
    // The image and the runner beside it, not those of the build.
    let host_stub = |cpu: &str| {
        let mut command = Command::new(staged("bin/host-stub"));
        command.env_remove("HCOMM_IMAGE").env_remove("HCOMM_RUNNER").args(["run", "--cpu", cpu]).output().unwrap()
    };
    for (cpu, part) in [("qemu", "libexec/hcomm/hcomm-image"), ("linux", "libexec/hcomm/hcomm-runner")] {
        let output = host_stub(cpu);
        assert!(output.status.success(), "{cpu}: {output:?}");
        std::fs::write(staged(part), "no program").unwrap();
        assert!(!host_stub(cpu).status.success(), "{cpu}");
    }
    script(&["--uninstall".as_ref(), prefix.as_os_str()]);
    let left = run(Command::new("find").arg(&stage).args(["-type", "f", "-o", "-type", "l"]));
    assert_eq!(left, "");
}

/// Case 291.
#[test]
fn template_in_cxx_builds_and_passes_from_a_copy() {
    let folder = folder("template");
    let prefix = install(&folder);
    let copy = folder.join("my kernels");
    run(Command::new("cp").arg("-r").arg(root().join("examples/cpp-kernel")).arg(&copy));
    let options = [("CMAKE_PREFIX_PATH", &prefix), ("HCOMM_SIM_SOURCE", &root())]
        .map(|(name, path)| format!("-D{name}={}", path.display()));
    let shell = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        // What is installed, not what `make` names.
        command.current_dir(&copy).env_remove("HCOMM_IMAGE").env_remove("HCOMM_RUNNER").args(args);
        run(&mut command)
    };
    shell("cmake", &["-S", ".", "-B", "build", &options[0], &options[1]]);
    shell("cmake", &["--build", "build"]);
    let text = shell("ctest", &["--test-dir", "build", "--output-on-failure"]);
    assert!(text.contains("100% tests passed") && text.contains("out of 3"), "{text}");
}

/// Case 253.
#[test]
fn programs_and_kernels_build_with_the_flags_of_the_vendors_examples() {
    let folder = folder("toolkit");
    let (libraries, home) = (target_dir().join("capi"), folder.join("home"));
    assert!(libraries.join("libhcomm_sim.so").exists(), "build it with `make capi`");
    run(Command::new(root().join("scripts/toolkit.sh")).arg(&libraries).arg(&home));
    let bash = |line: &str| {
        let mut bash = Command::new("bash");
        bash.current_dir(&folder).env("TESTS", root().join("tests/c")).env_remove("LD_LIBRARY_PATH");
        run(bash.args(["-euc", &format!(". home/set_env.sh\n{line}")]))
    };
    let include = "-I$ASCEND_HOME_PATH/include -I$ASCEND_HOME_PATH/pkg_inc";
    // A path with a space is one word.
    let include =
        include.replace("-I$ASCEND_HOME_PATH", "\"-I$ASCEND_HOME_PATH").replace("include ", "include\" ") + "\"";
    // A library of an operator's host half, a kernel for this machine and one for the AI CPU, and the program.
    bash(&format!(
        "printf '%s\\n' '#include \"hccl/hccl_comm.h\"' '#include \"hccl/hccl_res_expt.h\"' '#include \"hccl/hccl_rank_graph.h\"' '#include \"securec.h\"' \
           'extern \"C\" int half(HcclComm comm, char *name) {{ return HcclGetCommName(comm, name); }}' > half.cc
         g++ -std=c++14 -O0 -fstack-protector-all -D_GLIBCXX_USE_CXX11_ABI=0 -DHOST_COMPILE -Werror -fPIC -shared half.cc \
           -o libhalf.so {include} \"-L$ASCEND_HOME_PATH/lib64\" -Wl,--no-as-needed -lhcomm -lc_sec -lascendcl -lruntime"
    ));
    bash(&format!(
        "g++ -x c++ -std=c++14 -g -O0 -DAICPU_COMPILE -fPIC -shared \"$TESTS/copy_kernel.c\" -o libcopy_kernel.so {include} \
           \"-L$ASCEND_HOME_PATH/lib64\" -lccl_kernel
         aarch64-linux-gnu-g++ -x c++ -std=c++14 -g -O0 -DAICPU_COMPILE -fPIC -shared \"$TESTS/copy_kernel.c\" \
           -o libdevice_kernel.so {include} \"-L$ASCEND_HOME_PATH/devlib/device\" -lccl_kernel"
    ));
    let needed = bash("aarch64-linux-gnu-readelf -d libdevice_kernel.so");
    assert!(needed.contains("[libccl_kernel.so]"), "{needed}");
    let names = [
        "acl_rt",
        "ascendcl",
        "runtime",
        "hcomm",
        "c_sec",
        "unified_dlog",
        "ascendalog",
        "ascendc_runtime",
        "profapi",
        "error_manager",
        "ascend_dump",
    ];
    let all = names.map(|name| format!("-l{name}")).join(" ");
    bash(&format!(
        "g++ -x c++ -std=c++14 -O2 -fPIE -pie -s -Werror -Wl,-z,now \"$TESTS/stream_calls.c\" -o program {include} \
           \"-L$ASCEND_HOME_PATH/lib64\" {all}"
    ));
    let operator = r#"{"CopyLen": {"opInfo": {"opKernelLib": "AICPUKernel", "kernelSo": "libcopy_kernel.so", "functionName": "copy_len"}}}"#;
    std::fs::write(folder.join("kernels.json"), operator).unwrap();
    // The example programs read no option: the libraries are beside their descriptions.
    assert_eq!(bash("./program kernels.json"), "stream calls\n");
    // On the AI CPU linux, by what is beside the libraries; `make linux` has built it.
    std::fs::write(folder.join("device.json"), operator.replace("libcopy_kernel", "libdevice_kernel")).unwrap();
    let run_device = "HCOMM_SIM_CPU=linux ./program device.json";
    assert_eq!(bash(run_device), "stream calls\n");
    // The folder works where it is moved to.
    std::fs::rename(&home, folder.join("moved")).unwrap();
    let mut moved = Command::new("bash");
    moved.current_dir(&folder).args(["-euc", ". moved/set_env.sh\n./program kernels.json"]);
    assert_eq!(run(&mut moved), "stream calls\n");
    // The runner is the one of this folder, not the one of the build.
    std::fs::write(folder.join("moved/libexec/hcomm/hcomm-runner"), "no program").unwrap();
    let mut moved = Command::new("bash");
    moved.current_dir(&folder).args(["-euc", &format!(". moved/set_env.sh\n{run_device}")]);
    let output = moved.output().unwrap();
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
