//! Build and installation where paths have spaces and cargo has another target folder; the ways to link the library.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Installs the libraries of `make capi` below `folder`, beside a program that uses them; returns the prefix.
fn install(folder: &Path) -> PathBuf {
    let libraries = target_dir().join("capi");
    assert!(libraries.join("libhcomm_sim.so").exists(), "build it with `make capi`");
    let prefix = folder.join("prefix");
    run(Command::new(root().join("scripts/install.sh")).arg(libraries).arg(&prefix));
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
    // The folder works where it is moved to.
    std::fs::rename(&home, folder.join("moved")).unwrap();
    let mut moved = Command::new("bash");
    moved.current_dir(&folder).args(["-euc", ". moved/set_env.sh\n./program kernels.json"]);
    assert_eq!(run(&mut moved), "stream calls\n");
}
