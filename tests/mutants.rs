//! Bugs planted in a copy of the crate, one at a time: its unit tests, the calls on plain memory or the recorded descriptors
//! must find each.
//!
//! An old text that is not in its file exactly once is an error, so that the table follows the code.

#[path = "mutants/table.rs"]
mod table;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use table::MUTANTS;

/// One replacement in one file.
pub struct Mutant {
    name: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

impl Mutant {
    const fn new(name: &'static str, file: &'static str, old: &'static str, new: &'static str) -> Self {
        Self { name, file, old, new }
    }
}

/// The tests of the copy, not optimised, take seconds; on a busy machine more.
const LIMIT: Duration = Duration::from_secs(180);
/// What the tests of the copy need: everything else of the workspace is not there.
const DEV_DEPENDENCIES: [&str; 2] = ["embedded-hal-mock", "zerocopy"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The root crate alone, in a folder of its own.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
        let copy = Self { folder };
        for part in ["src", "tests"] {
            let old = copy.folder.join(part);
            if old.exists() {
                fs::remove_dir_all(old).unwrap();
            }
        }
        copy.take_folder(Path::new("src"));
        copy.take("tests/golden_950.rs");
        copy.take("tests/entry_points.rs");
        copy.take_folder(Path::new("tests/plain"));
        copy.take("Cargo.lock");
        fs::write(copy.folder.join("Cargo.toml"), manifest(&fs::read_to_string(root().join("Cargo.toml")).unwrap()))
            .unwrap();
        copy
    }

    fn take(&self, file: &str) {
        let to = self.folder.join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(root().join(file), to).unwrap();
    }

    fn take_folder(&self, folder: &Path) {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                self.take_folder(&path);
            } else {
                self.take(path.to_str().unwrap());
            }
        }
    }

    /// Compiles, and returns the test programs: unit tests first.
    fn build(&self) -> Result<Vec<PathBuf>, String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(&self.folder).env("CARGO_TARGET_DIR", self.folder.join("target"));
        cargo.env_remove("RUSTFLAGS").env("CARGO_PROFILE_DEV_DEBUG", "0");
        cargo.args(["test", "--offline", "--lib", "--test", "golden_950", "--test", "entry_points"]);
        cargo.args(["--no-run", "--message-format", "json"]);
        let output = cargo.output().unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let mut programs = Vec::new();
        for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{")) {
            let message: serde_json::Value = serde_json::from_slice(line).unwrap();
            if let Some(program) = message["executable"].as_str() {
                programs.push((message["target"]["kind"][0] == "test", PathBuf::from(program)));
            }
        }
        programs.sort();
        assert_eq!(programs.len(), 3, "{programs:?}");
        Ok(programs.into_iter().map(|(_, program)| program).collect())
    }
}

/// The root's manifest without the other members, and without what only their tests and the benchmarks need.
fn manifest(text: &str) -> String {
    let mut section = "";
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let name = line.split(['.', ' ']).next().unwrap();
        let is_dropped = match section {
            "[workspace]" => name == "members",
            "[dev-dependencies]" => name != section && !name.is_empty() && !DEV_DEPENDENCIES.contains(&name),
            "[[bench]]" => true,
            // Not optimised: building takes longer than running.
            _ if section.starts_with("[profile.") => true,
            _ => false,
        };
        if !is_dropped {
            kept.extend([line, "\n"]);
        }
    }
    kept
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Passed,
    /// A test failed; its name, as far as it is known.
    Failed(String),
    /// Does not end.
    Hangs,
}

/// Runs one test program.
fn run(program: &Path) -> Verdict {
    let mut tests = Command::new(program);
    let mut tests = tests.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = tests.stdout.take().unwrap();
    // Read beside it, lest a full pipe stops the tests.
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        stdout.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let since = Instant::now();
    let status = loop {
        match tests.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if since.elapsed() > LIMIT => break None,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    if status.is_none() {
        tests.kill().unwrap();
        tests.wait().unwrap();
    }
    let text = reader.join().unwrap().unwrap();
    match status {
        None => Verdict::Hangs,
        Some(status) if status.success() => Verdict::Passed,
        Some(status) => {
            let failed = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
            let failed: Vec<_> = failed.collect();
            Verdict::Failed(failed.first().map_or(status.to_string(), |first| format!("{first}, of {}", failed.len())))
        }
    }
}

/// Runs the test programs up to the first that does not pass.
fn run_all(programs: &[PathBuf]) -> Verdict {
    programs.iter().map(|program| run(program)).find(|verdict| *verdict != Verdict::Passed).unwrap_or(Verdict::Passed)
}

#[test]
#[ignore = "takes minutes: `make mutants`"]
fn every_planted_bug_is_found() {
    let copy = Copy::new();
    let programs = copy.build().unwrap_or_else(|error| panic!("the copy does not compile:\n{error}"));
    assert_eq!(run_all(&programs), Verdict::Passed, "the copy without a bug");

    let mut wrong = Vec::new();
    for Mutant { name, file, old, new } in MUTANTS {
        let path = copy.folder.join(file);
        let text = fs::read_to_string(&path).unwrap();
        let found = text.matches(old).count();
        if found != 1 {
            wrong.push(format!("{name}: {found} places in {file} instead of 1"));
            continue;
        }
        fs::write(&path, text.replacen(old, new, 1)).unwrap();
        match copy.build().map(|programs| run_all(&programs)) {
            Ok(Verdict::Failed(test)) => println!("{name}: {test}"),
            Ok(verdict) => wrong.push(format!("{name}: {verdict:?}")),
            Err(error) => wrong.push(format!("{name}: does not compile:\n{error}")),
        }
        fs::write(&path, text).unwrap();
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), MUTANTS.len(), wrong.join("\n"));
}
