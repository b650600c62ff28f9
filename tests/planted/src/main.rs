//! Plants the bugs of [`table`] in a copy of the repository, one at a time, and runs the tests that must find each.
//!
//! The table has what cargo-mutants can't make: removed statements, another order, swapped names, weaker atomics, other
//! constants. A row names a function and what changes in it, so it does not depend on the form of the text; a row whose place
//! is not there exactly once is an error.
//!
//! `cargo run -p hcomm-planted` runs all rows, `-- WORD...` those that have one of the words in their name.
#![forbid(unsafe_code)]

mod table;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io};

use hcomm_planted::change;
use table::{Bug, TABLE, Tests};

/// Longest run of the tests of one bug: seconds on an idle machine. A bug that makes a test wait without limit is found by it.
const LIMIT: Duration = Duration::from_secs(300);

/// A copy of the files of the repository, with a target folder of its own.
struct Tree {
    folder: PathBuf,
}

impl Tree {
    fn new(root: &Path, folder: PathBuf) -> io::Result<Self> {
        let files = Command::new("git").current_dir(root).args(["ls-files", "-z"]).output()?;
        if !files.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&files.stderr).into_owned()));
        }
        let names = String::from_utf8_lossy(&files.stdout).into_owned();
        let names: BTreeSet<PathBuf> = names.split_terminator('\0').map(PathBuf::from).collect();
        // A file that has gone from the repository would still be compiled.
        remove_others(&folder, Path::new(""), &names)?;
        for name in &names {
            let (from, to) = (root.join(name), folder.join(name));
            let Ok(bytes) = fs::read(&from) else { continue };
            // What has not changed keeps its time, so that it is not compiled again.
            if fs::read(&to).is_ok_and(|old| old == bytes) {
                continue;
            }
            fs::create_dir_all(to.parent().unwrap_or(&folder))?;
            fs::write(to, bytes)?;
        }
        Ok(Self { folder })
    }

    /// What the tests of a bug say.
    fn verdict(&self, tests: Tests) -> io::Result<Verdict> {
        for args in tests.commands() {
            let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.current_dir(&self.folder).env("CARGO_TARGET_DIR", self.folder.join("target"));
            // Not optimised: building takes longer than running.
            cargo.env_remove("RUSTFLAGS").env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
            let build = cargo.args(["test", "--offline", "--quiet"]).args(*args).arg("--no-run").output()?;
            if !build.status.success() {
                return Ok(Verdict::Broken(String::from_utf8_lossy(&build.stderr).into_owned()));
            }
            cargo.stdout(Stdio::null()).stderr(Stdio::null());
            let mut run = Command::new(cargo.get_program());
            run.current_dir(&self.folder).args(cargo.get_args().filter(|arg| *arg != "--no-run"));
            run.envs(cargo.get_envs().filter_map(|(name, value)| Some((name, value?)))).env_remove("RUSTFLAGS");
            if !passes(&mut run)? {
                return Ok(Verdict::Found);
            }
        }
        Ok(Verdict::Missed)
    }
}

/// Removes the files below `folder/below` that are not in `names`, except in the target folder.
fn remove_others(folder: &Path, below: &Path, names: &BTreeSet<PathBuf>) -> io::Result<()> {
    let path = folder.join(below);
    if !path.is_dir() || below == Path::new("target") {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(folder, &name, names)?;
        } else if !names.contains(&name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

enum Verdict {
    Found,
    Missed,
    /// Does not compile.
    Broken(String),
}

/// Runs tests; those that do not end fail.
fn passes(tests: &mut Command) -> io::Result<bool> {
    // Cargo and the test program are a group, so that both can be killed.
    let mut tests = tests.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        if let Some(status) = tests.try_wait()? {
            return Ok(status.success());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Command::new("kill").args(["-KILL", "--", &format!("-{}", tests.id())]).status()?;
    tests.wait()?;
    Ok(false)
}

/// Plants one bug, and says what is wrong with it or its tests.
fn plant(tree: &Tree, bug: &Bug) -> io::Result<Result<(), String>> {
    let path = tree.folder.join(bug.file);
    let text = fs::read_to_string(&path).map_err(|error| io::Error::other(format!("{}: {error}", bug.file)))?;
    let edits = match change::edits(&text, bug.function, bug.change) {
        Ok(edits) => edits,
        Err(error) => return Ok(Err(format!("{}, {}: {error}", bug.file, bug.function))),
    };
    fs::write(&path, change::apply(&text, edits))?;
    let verdict = tree.verdict(bug.tests);
    fs::write(&path, text)?;
    Ok(match verdict? {
        Verdict::Found => Ok(()),
        Verdict::Missed => Err("no test fails".to_owned()),
        Verdict::Broken(error) => Err(format!("does not compile:\n{error}")),
    })
}

fn main() -> io::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let program = env::current_exe()?;
    let target = program.ancestors().nth(2).map_or_else(|| root.join("target"), Path::to_owned);
    let tree = Tree::new(&root, target.join("planted"))?;
    let words: Vec<String> = env::args().skip(1).collect();
    let is_asked = |bug: &&Bug| words.is_empty() || words.iter().any(|word| bug.name.contains(word.as_str()));
    let bugs: Vec<_> = TABLE.iter().filter(is_asked).collect();
    for tests in Tests::ALL.into_iter().filter(|tests| bugs.iter().any(|bug| bug.tests == *tests)) {
        match tree.verdict(tests)? {
            Verdict::Missed => {}
            Verdict::Found => return Err(io::Error::other(format!("without a bug, the tests {tests:?} fail"))),
            Verdict::Broken(error) => return Err(io::Error::other(error)),
        }
    }
    let mut wrong = 0;
    for bug in &bugs {
        let started = Instant::now();
        match plant(&tree, bug)? {
            Ok(()) => println!("found in {:3} s: {}", started.elapsed().as_secs(), bug.name),
            Err(error) => {
                println!("NOT FOUND: {}: {error}", bug.name);
                wrong += 1;
            }
        }
    }
    println!("{} of {} bugs found", bugs.len() - wrong, bugs.len());
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
