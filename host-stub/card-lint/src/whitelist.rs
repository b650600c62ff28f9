//! The block of a package in the list of packages that the runtime sends to a device.

use crate::report::{Check, Sink};

const WHY_BLOCK: &str = "after name: the runtime takes exactly the next four lines; one that it does not know makes it \
                         drop the packages of the whole list, the vendor's too";

/// The four lines after `name:`, in any order.
const KEYS: [&str; 4] = ["install_path", "optional", "package_path", "load_as_per_soc"];

/// Checks that `text` is the block of `package` and nothing else.
pub fn check(file: &str, text: &str, package: &str, sink: &mut Sink) {
    let mut error = |message: String, why| sink.error(Check::Whitelist, file, message, why);
    let lines: Vec<_> = text.lines().collect();
    if lines.len() != 5 {
        error(format!("has {} lines, not five", lines.len()), WHY_BLOCK);
    }
    let mut seen = Vec::new();
    for (index, line) in lines.into_iter().enumerate() {
        let number = index + 1;
        let Some((key, value)) = line.split_once(':') else {
            error(format!("line {number} is no key:value: {line:?}"), WHY_BLOCK);
            continue;
        };
        if index == 0 {
            if key != "name" {
                error(format!("line 1 begins with {key}:, not with name:"), WHY_BLOCK);
            } else if value != package {
                let why = "the runtime sends the file of that name, and no other";
                error(format!("names package {value}, not {package}"), why);
            }
            continue;
        }
        if seen.contains(&key) {
            error(format!("line {number} has {key}: again"), WHY_BLOCK);
        }
        seen.push(key);
        let expected = match key {
            "install_path" => (value == "2").then_some(()).ok_or("2, the folder of AICPU kernels"),
            "optional" => (value == "true").then_some(()).ok_or("true: else a missing package fails every program"),
            "load_as_per_soc" => (value == "false").then_some(()).ok_or("false: the package is not one for each SoC"),
            "package_path" => (value.starts_with("opp/") && value.trim() == value)
                .then_some(())
                .ok_or("a folder below opp/ of the toolkit"),
            _ => {
                error(format!("line {number} has the key {key}, which is not one of {}", KEYS.join(", ")), WHY_BLOCK);
                continue;
            }
        };
        if let Err(expected) = expected {
            let why = "the package does not get to the device, or not to the folder that the loader looks in";
            error(format!("line {number}: {key} is {value:?}, not {expected}"), why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Profile;

    const GOOD: &str = "name:aicpu_x.tar.gz\ninstall_path:2\noptional:true\npackage_path:opp/vendors/x/aicpu/kernel\n\
                        load_as_per_soc:false\n";

    fn messages(text: &str) -> Vec<String> {
        let mut sink = Sink::new(Profile::Any);
        check("whitelist.txt", text, "aicpu_x.tar.gz", &mut sink);
        sink.report(String::new()).findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_block_of_five_lines_in_any_order_has_no_finding() {
        assert_eq!(messages(GOOD), Vec::<String>::new());
        let other = "name:aicpu_x.tar.gz\nload_as_per_soc:false\npackage_path:opp/x\noptional:true\ninstall_path:2";
        assert_eq!(messages(other), Vec::<String>::new());
    }

    #[test]
    fn each_mistake_is_named() {
        for (old, new, expected) in [
            ("optional:true\n", "", "has 4 lines, not five"),
            ("optional:true\n", "optional:true\n\n", "line 4 is no key:value: \"\""),
            ("name:", "title:", "line 1 begins with title:, not with name:"),
            ("aicpu_x", "aicpu_y", "names package aicpu_y.tar.gz, not aicpu_x.tar.gz"),
            ("optional:true", "install_path:2", "line 3 has install_path: again"),
            ("optional:true", "priority:1", "line 3 has the key priority"),
            ("install_path:2", "install_path:3", "line 2: install_path is \"3\", not 2"),
            ("optional:true", "optional:false", "line 3: optional is \"false\", not true"),
            ("load_as_per_soc:false", "load_as_per_soc:true", "line 5: load_as_per_soc is \"true\", not false"),
            ("opp/vendors", "/opp/vendors", "not a folder below opp/"),
            ("optional:true", " optional:true", "line 3 has the key  optional"),
        ] {
            assert!(GOOD.contains(old));
            let found = messages(&GOOD.replace(old, new));
            assert!(found.iter().any(|message| message.contains(expected)), "{expected}: {found:?}");
        }
    }
}
