//! What functions in C answer to wrong arguments and to a wrong environment, and in which words.

mod c_kit;

use std::fmt::Write as _;

use c_kit::{HEADERS, LONG, compiler, folder, limited, on_qemu, program, run};
use hcomm_testkit::root;

/// Parameters that may be null: optional ones, and the stream where null means the default one.
const OPTIONAL: [&str; 8] =
    ["options", "cfg", "reserve", "placeHolderArray", "hostArgs", "ctxTag", "batchTag", "commId"];

/// Types that are handles, besides pointers.
const HANDLES: [&str; 8] = [
    "aclrtStream",
    "aclrtNotify",
    "aclrtEvent",
    "aclrtBinHandle",
    "aclrtFuncHandle",
    "aclrtArgsHandle",
    "HcclComm",
    "ThreadHandle",
];

/// A function of a header: its name, and type and name of each parameter.
struct Function {
    name: String,
    parameters: Vec<(String, String)>,
}

/// The functions that the library exports, as the headers declare them.
fn functions() -> Vec<Function> {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let headers = HEADERS.map(|header| read(&format!("include/{header}"))).concat();
    let names = read("docs/abi-host.txt");
    let declared = names.lines().filter(|line| !line.starts_with('#')).map(|name| {
        let found = [' ', '*'].iter().find_map(|before| headers.split_once(&format!("{before}{name}(")));
        let (_, rest) = found.unwrap_or_else(|| panic!("{name} is in no header"));
        let list = rest.split_once(");").unwrap().0;
        let parameters =
            list.split(',').map(str::trim).filter(|parameter| *parameter != "void" && !parameter.is_empty());
        let split = |parameter: &str| {
            let at = parameter.rfind([' ', '*']).unwrap() + 1;
            (parameter[..at].trim().to_owned(), parameter[at..].to_owned())
        };
        Function { name: name.to_owned(), parameters: parameters.map(split).collect() }
    });
    declared.collect()
}

impl Function {
    /// The first parameter that must not be null.
    fn first_pointer(&self) -> Option<&str> {
        let has_default_stream =
            ["aclrtSynchronize", "aclrtLaunch", "aclrtStreamWait"].iter().any(|start| self.name.starts_with(start));
        let must = |(kind, name): &&(String, String)| {
            let is_default = kind == "aclrtStream" && has_default_stream;
            (kind.ends_with('*') || HANDLES.contains(&kind.as_str()))
                && !OPTIONAL.contains(&name.as_str())
                && !is_default
        };
        self.parameters.iter().find(must).map(|(_, name)| name.as_str())
    }
}

/// Case 127.
#[test]
fn first_null_argument_is_named_as_the_header_names_it() {
    let folder = folder("first_null");
    let mut source = "#include <stdio.h>\n#include \"acl/acl.h\"\n".to_owned();
    for header in HEADERS {
        let _ = writeln!(source, "#include \"{header}\"");
    }
    source.push_str("int main(void) {\n    if (aclrtSetDevice(0)) return 2;\n");
    let functions = functions();
    for function in &functions {
        let Some(_) = function.first_pointer() else { continue };
        let zeros: Vec<_> = function.parameters.iter().map(|(kind, _)| format!("({kind})0")).collect();
        let _ = writeln!(source, "    {}({});", function.name, zeros.join(", "));
        source.push_str("    { const char *text = aclrtGetRecentErrMsg(); puts(text ? text : \"-\"); }\n");
    }
    source.push_str("    return 0;\n}\n");
    let path = folder.join("first_null.c");
    std::fs::write(&path, source).unwrap();
    let out = folder.join("first_null");
    let library = c_kit::built("libhcomm_sim.so").parent().unwrap().to_owned();
    let rpath = format!("-Wl,-rpath,{}", library.display());
    run(compiler("c11").arg(&path).arg("-o").arg(&out).arg("-L").arg(&library).args(["-lhcomm_sim", &rpath]));
    let printed = run(&mut limited(&out, LONG));

    // Joining and channels are for kernels alone, whatever the thread is.
    let is_for_kernels = |name: &str| {
        let begins = |start: &&str| name.starts_with(start);
        ["HcommThreadSynchronize", "HcommThreadJoin", "HcommBatchTransfer", "HcommChannel", "HcommRead", "HcommWrite"]
            .iter()
            .any(begins)
    };
    let expected = functions.iter().filter_map(|function| {
        let first = function.first_pointer()?;
        let name = &function.name;
        match name.as_str() {
            // Null means no configuration, and the default stream.
            "aclInit" => return Some("-".to_owned()),
            "aclrtStreamGetId" => return Some("aclrtStreamGetId: streamId is null".to_owned()),
            _ => {}
        }
        Some(match is_for_kernels(name) {
            true => format!("{name}: called by the host: only kernels can call it"),
            false => format!("{name}: {first} is null"),
        })
    });
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// Case 128.
#[test]
fn wrong_values_of_the_environment_are_wrong_parameters() {
    let program = program(&folder("environment"), "environment.c", "c11");
    let answer = |variable: &str, value: &str| run(limited(&program, LONG).env(variable, value));
    assert_eq!(answer("HCCL_BUFFSIZE", "200"), "0 0 0 \n");
    for value in ["0", "-1", "1.5", "x", "", "65537", "99999999999999999999"] {
        let text = format!("HCCL_BUFFSIZE is {value:?}: must be a whole number of MiB from 1 to 65536");
        assert_eq!(answer("HCCL_BUFFSIZE", value), format!("0 1 -1 HcclCommInitAll: {text}\n"));
    }
    // A size that can be, of which the device has not enough, is no wrong parameter but a lack of memory.
    assert!(answer("HCCL_BUFFSIZE", "65536").starts_with("0 0 3 HcclGetHcclBuffer: "));
    let text = "must be a whole number from 1 to 64";
    for value in ["0", "65", "x"] {
        assert_eq!(
            answer("HCOMM_SIM_DEVICES", value),
            format!("100000 -1 -1 aclrtSetDevice: HCOMM_SIM_DEVICES is {value:?}: {text}\n")
        );
    }
    for variable in ["HCOMM_SIM_CPU", "HCOMM_SIM_PRODUCT"] {
        let told = answer(variable, "x");
        assert!(told.starts_with(&format!("100000 -1 -1 aclrtSetDevice: {variable} is \"x\": must be ")), "{told}");
    }
}

/// Case 123.
#[test]
fn memory_of_the_host_between_devices_is_not_device_memory() {
    let program = program(&folder("old_layout"), "old_layout.c", "gnu11");
    assert_eq!(run(&mut limited(&program, LONG)), "host memory is the host's\n");
    assert_eq!(run(on_qemu(&mut limited(&program, LONG))), "host memory is the host's\n");
}
