//! Files that README.md, CHANGELOG.md and docs/*.md name exist: paths in backticks, and the targets of links with their headings.

use std::fs;
use std::path::{Path, PathBuf};

use hcomm_testkit::root;

/// Files that the reader makes while following a page, and a folder that a tool makes.
const MADE_LATER: [&str; 3] = ["kernel/src/swap_halves.rs", "host-stub/tests/swap_halves.rs", "fuzz/artifacts"];

/// The documents.
fn documents() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    ["README.md", "CHANGELOG.md"].into_iter().map(|name| root().join(name)).chain(pages).collect()
}

/// The text without its code blocks.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let is_prose = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence && !line.starts_with("    ")
    };
    text.lines().filter(is_prose).collect::<Vec<_>>().join("\n")
}

/// Texts in backticks that are paths of the repository: they start with one of its folders.
fn named_paths(text: &str) -> impl Iterator<Item = &str> {
    let is_path = |text: &&str| {
        let folder = text.split_once('/').map(|(folder, _)| folder);
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        plain && folder.is_some_and(|folder| ![".", "..", "target"].contains(&folder) && root().join(folder).is_dir())
    };
    text.split('`').skip(1).step_by(2).map(|text| text.split("::").next().unwrap_or_default()).filter(is_path)
}

/// Targets of links to files: `file`, `file#heading`, `#heading`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://"))
}

/// The headings of a page as links name them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    headings.map(anchor).collect()
}

/// What is wrong with a link of `page`.
fn broken(page: &Path, target: &str) -> Option<String> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { page.to_owned() } else { page.parent()?.join(file) };
    if !path.exists() {
        return Some(format!("{} links to {target}: no such file", page.display()));
    }
    let is_there =
        heading.is_empty() || anchors(&fs::read_to_string(&path).unwrap()).iter().any(|text| text == heading);
    (!is_there).then(|| format!("{} links to {target}: no such heading", page.display()))
}

#[test]
fn paths_and_links_of_the_documents_exist() {
    let (mut wrong, mut paths, mut targets) = (Vec::new(), 0, 0);
    for page in documents() {
        let text = prose(&fs::read_to_string(&page).unwrap());
        for path in named_paths(&text) {
            paths += 1;
            if !MADE_LATER.contains(&path) && !root().join(path).exists() {
                wrong.push(format!("{} names `{path}`: no such file", page.display()));
            }
        }
        for target in links(&text) {
            targets += 1;
            wrong.extend(broken(&page, target));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(paths > 100 && targets > 20, "only {paths} paths and {targets} links were found: the search is broken");
}

#[test]
fn wrong_paths_and_links_are_found() {
    assert_eq!(
        named_paths("`docs/no.md` `tests/x.rs::case` `docs or` `other/x` `target/x` `../x`").collect::<Vec<_>>(),
        ["docs/no.md", "tests/x.rs"]
    );
    let page = root().join("docs/spec.md");
    assert!(broken(&page, "no.md").is_some_and(|text| text.ends_with("links to no.md: no such file")));
    assert!(broken(&page, "#no-heading").is_some_and(|text| text.ends_with("links to #no-heading: no such heading")));
    assert_eq!(broken(&page, "spec.md#ub-work-entries"), None);
}

/// Comments and messages of the sources name only pages that exist.
#[test]
fn pages_that_sources_name_exist() {
    let mut wrong = Vec::new();
    let mut folders: Vec<PathBuf> = ["src", "host-stub", "kernel", "tests", "benches", "fuzz", "scripts", "include"]
        .map(|name| root().join(name))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                folders.extend((entry.file_name() != "target").then_some(path));
                continue;
            }
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for rest in text.split("docs/").skip(1) {
                let name =
                    rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.').next().unwrap_or_default();
                let is_page = name.ends_with(".md") && path != root().join("tests/doc_paths.rs");
                if is_page && !root().join("docs").join(name).exists() {
                    wrong.push(format!("{} names docs/{name}: no such file", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
