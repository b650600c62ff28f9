//! docs/cases.md and the tests agree: each row names its tests, and the doc comment of each of them says `Case N.`. Each test
//! file is a test of its package.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use hcomm_testkit::root;

/// Test functions of a case: file and name.
type Tests = BTreeSet<(String, String)>;

/// Rows of docs/cases.md: the number, and what the last cell names as `file::test`.
fn rows(text: &str) -> Vec<(u32, Tests)> {
    let cells = text.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let row = |cells: Vec<&str>| {
        let number = cells.first()?.parse().ok()?;
        let named = cells.last()?.split('`').skip(1).step_by(2).filter_map(|name| name.split_once("::"));
        Some((number, named.map(|(file, test)| (file.to_owned(), test.to_owned())).collect()))
    };
    cells.filter_map(row).collect()
}

/// Rust files of the repository.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (name, path) = (entry.file_name(), entry.path());
        let is_other = ["target", ".git", "third_party"].iter().any(|other| name == *other);
        if entry.file_type().unwrap().is_dir() && !is_other {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Cases of the test functions of a file: those that the doc comment above `#[test]` names.
fn cases_of(text: &str) -> Vec<(u32, String)> {
    let (mut found, mut cases) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("/// Case ") {
            let numbers = rest.split('.').next().unwrap_or_default();
            cases.extend(numbers.split(", ").map(|number| {
                number
                    .parse::<u32>()
                    .unwrap_or_else(|_| panic!("\"{line}\": the form is /// Case 5. or /// Case 5, 6."))
            }));
        } else if let Some(rest) = line.strip_prefix("fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            found.extend(cases.drain(..).map(|case| (case, name.to_owned())));
        } else if !line.starts_with("///") && !line.starts_with("#[") {
            assert!(cases.is_empty(), "case {cases:?} above \"{line}\" is of no function");
        }
    }
    found
}

#[test]
fn every_row_names_its_tests_and_they_name_their_case() {
    let root = root();
    let rows = rows(&fs::read_to_string(root.join("docs/cases.md")).unwrap());
    assert!(
        rows.len() > 50 && rows.is_sorted_by(|one, next| one.0 < next.0),
        "rows are in order, and each is there once"
    );
    let mut named = BTreeMap::<u32, Tests>::new();
    let mut files = Vec::new();
    sources(&root, &mut files);
    for file in files {
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        for (case, test) in cases_of(&fs::read_to_string(&file).unwrap()) {
            named.entry(case).or_default().insert((path.clone(), test));
        }
    }
    let mut wrong = Vec::new();
    for (case, tests) in &rows {
        let in_code = named.remove(case).unwrap_or_default();
        wrong.extend(tests.difference(&in_code).map(|(file, test)| {
            format!("row {case}: {file} has no test {test} whose doc comment says \"Case {case}.\"")
        }));
        wrong
            .extend(in_code.difference(tests).map(|(file, test)| format!("row {case} does not name `{file}::{test}`")));
        if tests.is_empty() {
            wrong.push(format!("row {case} names no test"));
        }
    }
    wrong.extend(named.iter().map(|(case, tests)| format!("there is no row {case}, which {tests:?} name")));
    assert!(wrong.is_empty(), "docs/cases.md:\n{}", wrong.join("\n"));
}

#[test]
fn every_test_file_is_a_test_of_its_package() {
    for folder in ["tests", "tests/device"] {
        let folder = root().join(folder);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            let is_listed = || manifest.contains(&format!("path = \"{name}\""));
            assert!(!name.ends_with(".rs") || is_listed(), "{name}: add a [[test]] to {}", folder.display());
        }
    }
}
