//! Which file of a package imports which: the circles among them are those that docs/architecture.md lists, and the files on
//! the way of one copy from its entry point to the moved bytes import only later ones of its list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use hcomm_testkit::root;

/// Root files of the packages whose product code is checked.
const ROOTS: [&str; 6] = [
    "src/lib.rs",
    "kernel/src/lib.rs",
    "host-stub/sim/src/lib.rs",
    "host-stub/mapping/src/lib.rs",
    "host-stub/src/lib.rs",
    "host-stub/capi/src/lib.rs",
];
/// Most circles that may be listed.
const CIRCLES_MAX: usize = 3;

/// Most files on the way of a copy from its entry point to the doorbell.
const TO_DOORBELL_MAX: usize = 12;

type Module = Vec<String>;

/// What a file imports and hands on.
#[derive(Default)]
struct File {
    path: PathBuf,
    imports: Vec<Module>,
    /// `pub use`: name, and what it stands for.
    exports: BTreeMap<String, Module>,
}

/// One token: a word, a sign, or a string.
fn tokens(text: &str) -> Vec<String> {
    let (mut found, chars) = (Vec::new(), text.chars().collect::<Vec<_>>());
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let skip_until = |end: &[char]| rest.windows(end.len()).position(|part| part == end).unwrap_or(rest.len());
        match rest {
            ['/', '/', ..] => at += skip_until(&['\n']),
            ['/', '*', ..] => at += skip_until(&['*', '/']) + 2,
            ['r', '"', ..] => at += 2 + rest[2..].iter().position(|c| *c == '"').unwrap_or(0) + 1,
            ['r', '#', '"', ..] => at += skip_until(&['"', '#']) + 2,
            ['"', ..] => {
                let start = at;
                at += 1;
                while at < chars.len() && chars[at] != '"' {
                    at += if chars[at] == '\\' { 2 } else { 1 };
                }
                at += 1;
                found.push(chars[start..at.min(chars.len())].iter().collect());
            }
            ['\'', '\\', ..] => at += 2 + rest[2..].iter().skip(1).position(|c| *c == '\'').unwrap_or(0) + 2,
            ['\'', _, '\'', ..] => at += 3,
            [':', ':', ..] => {
                found.push("::".to_owned());
                at += 2;
            }
            [c, ..] if c.is_alphanumeric() || *c == '_' => {
                let len = rest.iter().position(|c| !c.is_alphanumeric() && *c != '_').unwrap_or(rest.len());
                found.push(rest[..len].iter().collect());
                at += len;
            }
            [c, ..] => {
                if !c.is_whitespace() {
                    found.push(c.to_string());
                }
                at += 1;
            }
            [] => {}
        }
    }
    found
}

/// Tokens of an attribute that starts here and says that an item is for tests alone: `#[cfg(test)]` or `#[cfg(all(test, ..))]`; or
/// for feature `extern-abi`, with which the modules that it calls are other files.
fn test_attribute(tokens: &[String]) -> Option<usize> {
    let starts =
        |with: &[&str]| tokens.len() >= with.len() && tokens.iter().zip(with).all(|(token, word)| token == word);
    let is_one = starts(&["#", "[", "cfg", "(", "test", ")"])
        || starts(&["#", "[", "cfg", "(", "all", "(", "test", ","])
        || starts(&["#", "[", "cfg", "(", "feature", "=", "\"extern-abi\"", ")"]);
    if is_one { tokens.iter().position(|token| token == "]").map(|end| end + 1) } else { None }
}

/// Without the items that are for tests alone. Gives the modules in files of their own that are among them, too.
fn without_tests(tokens: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut tests, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        let Some(len) = test_attribute(&tokens[at..]) else {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        };
        at += len;
        let mut depth = 0;
        while at < tokens.len() {
            match tokens[at].as_str() {
                "mod" if depth == 0 && tokens[at + 2] == ";" => tests.push(tokens[at + 1].clone()),
                "{" => depth += 1,
                // The end of the block of an expression that nothing ends.
                "}" if depth == 0 => break,
                "}" => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 && matches!(tokens[at - 1].as_str(), ";" | "}") {
                break;
            }
        }
    }
    (kept, tests)
}

/// The paths of a `use` tree that starts at `at`, each with the name that it gets; and where the tree ends.
fn tree(tokens: &[String], mut at: usize, prefix: &[String], found: &mut Vec<(String, Module)>) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match tokens[at].as_str() {
            "::" => at += 1,
            "{" => {
                at += 1;
                while tokens[at] != "}" {
                    at = tree(tokens, at, &path, found);
                    if tokens[at] == "," {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "as" => {
                found.push((tokens[at + 1].clone(), path));
                return at + 2;
            }
            ";" | "," | "}" => {
                if path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                found.push((path.last().cloned().unwrap_or_default(), path));
                return at;
            }
            word => {
                path.push(word.to_owned());
                at += 1;
            }
        }
    }
}

/// `path` as `module` writes it, from the root of the package. `None`: it is not of this package.
fn absolute(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let first = path.first()?;
    let mut base = module.clone();
    let rest = match first.as_str() {
        "crate" => {
            base.clear();
            &path[1..]
        }
        "self" => &path[1..],
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            base.truncate(base.len().checked_sub(ups)?);
            &path[ups..]
        }
        // A child of this module.
        child if modules.contains(&[&module[..], &[child.to_owned()]].concat()) => path,
        _ => return None,
    };
    Some([&base[..], rest].concat())
}

/// Path of the file of each module of a package, without tests.
fn modules(root_file: &Path) -> BTreeMap<Module, PathBuf> {
    let (mut found, mut open) = (BTreeMap::new(), vec![(Module::new(), root_file.to_owned())]);
    while let Some((module, path)) = open.pop() {
        let (tokens, _) = without_tests(tokens(&fs::read_to_string(&path).unwrap()));
        let is_folder = module.is_empty() || path.ends_with("mod.rs");
        let folder = if is_folder { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        for child in tokens.windows(3).filter(|part| part[0] == "mod" && part[2] == ";").map(|part| &part[1]) {
            let files = [folder.join(format!("{child}.rs")), folder.join(child).join("mod.rs")];
            let file = files.into_iter().find(|file| file.exists());
            let file = file.unwrap_or_else(|| panic!("{}: no file of module {child}", path.display()));
            open.push(([&module[..], std::slice::from_ref(child)].concat(), file));
        }
        found.insert(module, path);
    }
    found
}

/// The files of a package and what they import.
fn read(root_file: &Path) -> BTreeMap<Module, File> {
    let paths = modules(root_file);
    let all: BTreeSet<Module> = paths.keys().cloned().collect();
    let mut files = BTreeMap::new();
    for (module, path) in paths {
        let mut file = File { path: path.clone(), ..File::default() };
        let (tokens, _) = without_tests(tokens(&fs::read_to_string(&path).unwrap()));
        let mut at = 0;
        while at < tokens.len() {
            let is_in = at > 0 && tokens[at - 1] == "in";
            match tokens[at].as_str() {
                "use" => {
                    let is_public = at > 0 && matches!(tokens[at - 1].as_str(), "pub" | ")");
                    let mut uses = Vec::new();
                    at = tree(&tokens, at + 1, &[], &mut uses);
                    for (name, path) in uses {
                        let Some(path) = absolute(&module, &path, &all) else { continue };
                        if is_public {
                            file.exports.insert(name, path);
                        } else {
                            file.imports.push(path);
                        }
                    }
                }
                "crate" | "super" | "self" if !is_in && tokens.get(at + 1).is_some_and(|next| next == "::") => {
                    let mut path = vec![tokens[at].clone()];
                    while tokens.get(at + 1).is_some_and(|next| next == "::") && tokens.len() > at + 2 {
                        path.push(tokens[at + 2].clone());
                        at += 2;
                    }
                    file.imports.extend(absolute(&module, &path, &all));
                    at += 1;
                }
                // A path that begins with a child of this module.
                _ if tokens.get(at + 1).is_some_and(|next| next == "::")
                    && (at == 0 || tokens[at - 1] != "::")
                    && all.contains(&[&module[..], &tokens[at..=at]].concat()) =>
                {
                    file.imports.push([&module[..], &[tokens[at].clone(), tokens[at + 2].clone()]].concat());
                    at += 2;
                }
                _ => at += 1,
            }
        }
        files.insert(module, file);
    }
    files
}

/// The file that defines what `path` names: what a file only hands on is another one's.
fn owner(files: &BTreeMap<Module, File>, path: &[String]) -> Option<Module> {
    let len = (0..=path.len()).rev().find(|len| files.contains_key(&path[..*len]))?;
    let name = path.get(len);
    match name.and_then(|name| files[&path[..len]].exports.get(name)) {
        Some(target) if target[..] != *path => owner(files, target),
        _ => Some(path[..len].to_vec()),
    }
}

/// For each file of a package those that it imports, both as paths from the root of the repository.
fn graph(root_file: &str) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let files = read(&root().join(root_file));
    let name = |path: &Path| path.strip_prefix(root()).unwrap().to_owned();
    let imports = |module: &Module, file: &File| {
        let owners = file.imports.iter().filter_map(|path| owner(&files, path));
        owners.filter(|other| other != module).map(|other| name(&files[&other].path)).collect()
    };
    files.iter().map(|(module, file)| (name(&file.path), imports(module, file))).collect()
}

/// Files that each import, directly or by others, all others of their set.
fn circles(graph: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> BTreeSet<BTreeSet<PathBuf>> {
    let reached = |from: &PathBuf| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(file) = open.pop() {
            for next in &graph[file] {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&PathBuf, BTreeSet<PathBuf>> = graph.keys().map(|file| (file, reached(file))).collect();
    let circle = |file: &PathBuf| -> BTreeSet<PathBuf> {
        reached[file].iter().filter(|other| reached[*other].contains(file)).cloned().collect()
    };
    graph.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// The lines of docs/architecture.md below a heading, up to the next one.
fn section(heading: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let lines = text.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// What stands between back quotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn import_circles_are_those_that_the_architecture_lists_with_a_reason() {
    let listed: BTreeSet<BTreeSet<PathBuf>> = section("## Import circles")
        .iter()
        .filter(|line| line.starts_with("- "))
        .map(|line| {
            assert!(line.split_once(": ").is_some_and(|(_, reason)| reason.len() > 20), "no reason: {line}");
            quoted(line).filter(|name| name.ends_with(".rs")).map(PathBuf::from).collect()
        })
        .collect();
    let found: BTreeSet<_> = ROOTS.iter().flat_map(|root_file| circles(&graph(root_file))).collect();
    assert_eq!(found, listed, "import circles that exist, and those that docs/architecture.md lists");
    assert!(found.len() <= CIRCLES_MAX && found.iter().all(|circle| circle.len() == 2), "{found:?}");
}

#[test]
fn scanner_finds_imports_circles_and_names_that_are_handed_on() {
    let folder = tempfile();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("lib.rs", "mod a; mod b; mod c; #[cfg(test)] mod t; pub use c::Thing;");
    write("a.rs", "use super::b::{self, X}; // use crate::c;\nconst S: &str = \"crate::c\";");
    write(
        "b.rs",
        "fn f() -> crate::a::Y {} #[cfg(test)] mod tests { use crate::c::Z; }\
         #[cfg(all(test, not(loom)))] mod more { use super::*; use crate::c::Z; }",
    );
    write("c.rs", "use crate::Thing; pub(in crate::a) fn g() {}");
    write("t.rs", "use crate::a;");
    let files = read(&folder.join("lib.rs"));
    let names = |module: &str| -> BTreeSet<String> {
        let found = files[&vec![module.to_owned()]].imports.iter().filter_map(|path| owner(&files, path));
        found.map(|module| module.join("::")).collect()
    };
    assert_eq!(files.len(), 4, "the file of the tests is none of the product");
    assert_eq!(names("a"), BTreeSet::from(["b".to_owned()]));
    assert_eq!(names("b"), BTreeSet::from(["a".to_owned()]));
    assert_eq!(names("c"), BTreeSet::from(["c".to_owned()]));
    let path = |name: &str| PathBuf::from(name);
    let graph = BTreeMap::from([
        (path("a"), BTreeSet::from([path("b")])),
        (path("b"), BTreeSet::from([path("a"), path("c")])),
        (path("c"), BTreeSet::new()),
    ]);
    assert_eq!(circles(&graph), BTreeSet::from([BTreeSet::from([path("a"), path("b")])]));
    fs::remove_dir_all(folder).unwrap();
}

/// A new folder.
fn tempfile() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("hcomm-imports-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn files_on_the_way_of_a_copy_exist_and_import_only_later_ones() {
    let lines = section("## The files on the way of one copy");
    let way: Vec<&str> =
        lines.iter().filter(|line| line.starts_with("| ")).filter_map(|line| quoted(line).next()).collect();
    let text = fs::read_to_string(root().join(way[0])).unwrap();
    assert!(text.contains("HcommLocalCopyOnThread("), "{} is not where a copy begins", way[0]);
    // The device crate ends where it rings.
    let to_doorbell = way.iter().take_while(|file| file.starts_with("src/")).count();
    assert!((1..=TO_DOORBELL_MAX).contains(&to_doorbell), "{to_doorbell} files down to the doorbell");
    assert!(way.len() > to_doorbell, "no file behind the doorbell");
    let mut graphs: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    for root_file in ROOTS {
        graphs.extend(graph(root_file));
    }
    for (at, file) in way.iter().enumerate() {
        let imports = graphs.get(Path::new(file)).unwrap_or_else(|| panic!("{file} is no file of the product"));
        let earlier: Vec<_> = way[..at].iter().filter(|earlier| imports.contains(Path::new(earlier))).collect();
        assert!(earlier.is_empty(), "{file} imports {earlier:?}, which come before it");
    }
}
