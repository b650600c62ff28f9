//! Descriptions of kernels: the JSON that the host's runtime reads, and its twin in INI form.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::checks::{self, MAX_KERNEL_NAME};
use crate::report::{Check, Sink};

/// Name of each kernel, and its `opInfo`.
pub type Kernels = BTreeMap<String, BTreeMap<String, String>>;

const WHY_FILE: &str = "aclrtBinaryLoadFromFile refuses the whole file, and none of its kernels can be launched";
const WHY_KERNEL: &str = "the runtime does not find the kernel: a launch fails";
const WHY_PROCESS: &str = "the kernel runs in the process for users' own operators, which looks in another folder, may \
                           not make every system call and must restore the queue";

/// Libraries of the runtime's table of kernel kinds, beside the one for AICPU kernels.
const OTHER_KINDS: [&str; 4] = ["CUSTAICPUKernel", "KFCKernel", "CUSTKFCKernel", "TFKernel"];

/// Reads a description in JSON, and says what the runtime refuses in it. What can be used is returned all the same.
pub fn read_json(file: &str, text: &str, sink: &mut Sink) -> Kernels {
    let mut kernels = Kernels::new();
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            sink.error(Check::Description, file, format!("is no JSON: {error}"), WHY_FILE);
            return kernels;
        }
    };
    let Value::Object(entries) = value else {
        sink.error(Check::Description, file, "is no JSON object with a member for each kernel".to_owned(), WHY_FILE);
        return kernels;
    };
    for (name, entry) in entries {
        let Some(Value::Object(info)) = entry.get("opInfo") else {
            let message = format!("kernel {name} has no object opInfo");
            sink.error(Check::Description, file, message, "the runtime skips the entry with a warning in its log");
            continue;
        };
        let mut texts = BTreeMap::new();
        for (key, value) in info {
            match value {
                Value::String(text) => drop(texts.insert(key.clone(), text.clone())),
                _ => {
                    let message = format!("kernel {name}: opInfo.{key} is {value}, not a string");
                    sink.error(Check::Description, file, message, WHY_FILE);
                }
            }
        }
        kernels.insert(name, texts);
    }
    kernels
}

/// Reads the INI form: a section for each kernel, lines `opInfo.key=value`.
pub fn read_ini(file: &str, text: &str, sink: &mut Sink) -> Kernels {
    let why = "tools that make the JSON from this file stop here";
    let mut kernels = Kernels::new();
    let mut section: Option<&mut BTreeMap<String, String>> = None;
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let mut wrong = |what: &str| {
            sink.error_or_warning(Check::Description, file, format!("line {}: {what}: {line}", index + 1), why);
        };
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = Some(kernels.entry(name.to_owned()).or_default());
        } else if let Some((key, value)) = line.split_once('=') {
            match (&mut section, key.trim().strip_prefix("opInfo.")) {
                (Some(section), Some(key)) => drop(section.insert(key.to_owned(), value.trim().to_owned())),
                (None, _) => wrong("a value before the first [kernel]"),
                (_, None) => wrong("a key that does not begin with opInfo."),
            }
        } else {
            wrong("neither [kernel] nor opInfo.key=value");
        }
    }
    kernels
}

/// Checks what a description says of each kernel.
pub fn check(file: &str, kernels: &Kernels, sink: &mut Sink) {
    for (name, info) in kernels {
        for key in ["opKernelLib", "kernelSo", "functionName"] {
            if info.get(key).is_none_or(String::is_empty) {
                let message = format!("kernel {name} has no opInfo.{key}");
                sink.error(Check::Description, file, message, WHY_KERNEL);
            }
        }
        match info.get("opKernelLib").map(String::as_str) {
            None | Some("" | "AICPUKernel") => {}
            Some(kind) if OTHER_KINDS.contains(&kind) => {
                let message = format!("kernel {name}: opInfo.opKernelLib is {kind}, not AICPUKernel");
                sink.error_or_warning(Check::Description, file, message, WHY_PROCESS);
            }
            Some(kind) => {
                let message = format!("kernel {name}: opInfo.opKernelLib is {kind}, which the runtime does not know");
                sink.error(Check::Description, file, message, WHY_KERNEL);
            }
        }
        if let Some(value) = info.get("userDefined") {
            let message = format!("kernel {name}: opInfo.userDefined is {value}; leave it out");
            if value.eq_ignore_ascii_case("true") {
                sink.error_or_warning(Check::Description, file, message, WHY_PROCESS);
            } else {
                sink.own(Check::Description, file, message, WHY_PROCESS);
            }
        }
        for (what, text) in [("name", Some(name)), ("opInfo.functionName", info.get("functionName"))] {
            if let Some(text) = text.filter(|text| text.len() > MAX_KERNEL_NAME) {
                let message =
                    format!("kernel {name}: {what} has {} characters, {MAX_KERNEL_NAME} are allowed", text.len());
                sink.error(Check::Description, file, message, "the loader refuses a longer name with 11001");
            }
        }
    }
    let libraries: BTreeSet<_> = kernels.values().filter_map(|info| info.get("kernelSo")).collect();
    for library in libraries {
        checks::file_name(library, sink);
    }
}

/// Functions that the kernels of a library have.
pub fn functions<'a>(all: impl IntoIterator<Item = &'a Kernels>, library: &str) -> BTreeSet<String> {
    let kernels = all.into_iter().flat_map(BTreeMap::values);
    kernels
        .filter(|info| info.get("kernelSo").is_some_and(|name| name == library))
        .filter_map(|info| info.get("functionName").cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Profile;

    const GOOD: &str =
        r#"{"LocalCopy":{"opInfo":{"opKernelLib":"AICPUKernel","kernelSo":"libx.so","functionName":"local_copy"}}}"#;

    fn messages(json: &str, profile: Profile) -> Vec<String> {
        let mut sink = Sink::new(profile);
        let kernels = read_json("x.json", json, &mut sink);
        check("x.json", &kernels, &mut sink);
        let report = sink.report(String::new());
        report.findings.into_iter().map(|finding| format!("{:?}: {}", finding.severity, finding.message)).collect()
    }

    #[test]
    fn a_description_as_the_runtime_wants_it_has_no_finding() {
        assert_eq!(messages(GOOD, Profile::Own), Vec::<String>::new());
    }

    #[test]
    fn each_mistake_is_named() {
        let with = |old: &str, new: &str| {
            assert!(GOOD.contains(old));
            GOOD.replace(old, new)
        };
        let long = "x".repeat(201);
        let mistakes = [
            ("{".to_owned(), "is no JSON"),
            ("[]".to_owned(), "is no JSON object"),
            (r#"{"A":{}}"#.to_owned(), "kernel A has no object opInfo"),
            (r#"{"A":7}"#.to_owned(), "kernel A has no object opInfo"),
            (with(r#""libx.so""#, "7"), "opInfo.kernelSo is 7, not a string"),
            (with(r#""kernelSo":"libx.so","#, ""), "has no opInfo.kernelSo"),
            (with(r#""local_copy""#, r#""""#), "has no opInfo.functionName"),
            (with("\"AICPUKernel\"", "\"CustKernel\""), "is CustKernel, which the runtime does not know"),
            (with("local_copy", &long), "opInfo.functionName has 201 characters, 200 are allowed"),
            (with("libx.so", "lib x.so"), "the name has the character ' '"),
        ];
        for (json, expected) in mistakes {
            let found = messages(&json, Profile::Any);
            assert!(found.iter().any(|text| text.starts_with("Error") && text.contains(expected)), "{json}: {found:?}");
        }
    }

    #[test]
    fn what_moves_a_kernel_to_the_other_process_is_a_warning_for_others() {
        for json in [
            GOOD.replace("\"AICPUKernel\"", "\"CUSTAICPUKernel\""),
            GOOD.replace(r#""kernelSo""#, r#""userDefined":"True","kernelSo""#),
        ] {
            let [found] = &messages(&json, Profile::Any)[..] else { panic!("one finding") };
            assert!(found.starts_with("Warning"), "{found}");
            let [found] = &messages(&json, Profile::Own)[..] else { panic!("one finding") };
            assert!(found.starts_with("Error"), "{found}");
        }
    }

    #[test]
    fn the_ini_form_says_the_same() {
        let mut sink = Sink::new(Profile::Own);
        let ini = "# twin\n[LocalCopy]\nopInfo.opKernelLib=AICPUKernel\nopInfo.kernelSo = libx.so\n\
                   opInfo.functionName=local_copy\n";
        assert_eq!(read_ini("x.ini", ini, &mut sink), read_json("x.json", GOOD, &mut sink));
        assert!(sink.report(String::new()).findings.is_empty());

        for (ini, expected) in [
            ("opInfo.a=b", "line 1: a value before the first [kernel]: opInfo.a=b"),
            ("[A]\na=b", "line 2: a key that does not begin with opInfo.: a=b"),
            ("[A]\n\nopInfo", "line 3: neither [kernel] nor opInfo.key=value: opInfo"),
        ] {
            let mut sink = Sink::new(Profile::Own);
            read_ini("x.ini", ini, &mut sink);
            assert_eq!(sink.report(String::new()).findings[0].message, expected);
        }
    }
}
