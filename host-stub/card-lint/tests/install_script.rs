//! scripts/card/install.sh against a second parser of the whitelist, which is written here from the description of the
//! runtime's parser (docs/card.md, "The whitelist"), and against thousands of files, right and wrong ones.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fastrand::Rng;

use common::folder;

const PACKAGE: &str = "aicpu_mine.tar.gz";
const BLOCK: &str = "name:aicpu_mine.tar.gz\ninstall_path:2\noptional:true\npackage_path:opp/vendors/mine/aicpu/kernel\n\
                     load_as_per_soc:false\n";
const WHITELIST: &str = "conf/ascend_package_load.ini";

/// Most blocks that the runtime reads.
const MAX_PACKAGES: usize = 100;

/// A block: the name of its package and the text of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    name: String,
    lines: Vec<String>,
}

/// The blocks of a whitelist, or the line at which it must be refused, counted from 1.
fn parse(text: &[u8]) -> Result<Vec<Block>, usize> {
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let mut lines = (1..).zip(lines);
    let mut blocks = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.contains(&0) {
            return Err(number);
        }
        let Some(at) = line.windows(5).position(|window| window == b"name:") else { continue };
        let name = spaces_off(&line[at + 5..]);
        if name.is_empty() || !is_printable(name) || blocks.len() == MAX_PACKAGES {
            return Err(number);
        }
        let mut values = BTreeMap::new();
        let mut block = vec![line];
        for _ in 0..4 {
            let Some((number, line)) = lines.next() else { return Err(number + block.len() - 1) };
            let colon = line.iter().position(|&byte| byte == b':').ok_or(number)?;
            let (key, value) = (spaces_off(&line[..colon]), spaces_off(&line[colon + 1..]));
            let is_right = match key {
                b"install_path" => matches!(value, b"0" | b"1" | b"2" | b"3"),
                b"optional" | b"load_as_per_soc" => matches!(value, b"true" | b"false"),
                b"package_path" => !value.is_empty(),
                _ => false,
            };
            if !is_right || !is_printable(line) || values.insert(key, value).is_some() {
                return Err(number);
            }
            block.push(line);
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        blocks.push(Block { name: text(name), lines: block.into_iter().map(text).collect() });
    }
    Ok(blocks)
}

fn spaces_off(mut text: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] | [rest @ .., b' '] = text {
        text = rest;
    }
    text
}

/// Free of control characters: how the runtime trims them is not known.
fn is_printable(text: &[u8]) -> bool {
    text.iter().all(|&byte| byte >= b' ' && byte != 0x7f)
}

/// A whitelist with a few blocks, and in most cases something that is unusual or wrong.
fn random_whitelist(random: &mut Rng) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let blocks = if random.u8(..40) == 0 { random.usize(98..103) } else { random.usize(..5) };
    for block in 0..blocks {
        if random.u8(..4) == 0 {
            let between: [&[u8]; 6] =
                [b"", b"# a comment", b"install_path:9", b"\tx\r", b"\xc3\xa4:", b"optional:true"];
            lines.push(random.choice(between).unwrap().to_vec());
        }
        let name = match random.u8(..12) {
            0 => PACKAGE.to_owned(),
            1 => format!(" {PACKAGE} "),
            2 => "twice.tar.gz".to_owned(),
            _ => format!("package-{block}.tar.gz"),
        };
        let prefix = if random.u8(..20) == 0 { "# old " } else { "" };
        let mut values = vec![
            format!("install_path:{}", random.choice(["2", "2", "0", " 3 ", "1"]).unwrap()),
            format!("optional:{}", random.choice(["true", "false", " true"]).unwrap()),
            format!("package_path:{}", random.choice(["opp/vendors/x/aicpu/kernel", "compat", "a name:b"]).unwrap()),
            format!(" load_as_per_soc :{}", random.choice(["true", "false"]).unwrap()),
        ];
        random.shuffle(&mut values);
        lines.push(format!("{prefix}name:{name}").into_bytes());
        lines.extend(values.into_iter().map(String::into_bytes));
    }
    for _ in 0..random.u8(..3) {
        mutate(random, &mut lines);
    }
    let mut text = lines.join(&b'\n');
    if random.u8(..5) != 0 && !text.is_empty() {
        text.push(b'\n');
    }
    text
}

/// One edit, as hands and scripts make them.
fn mutate(random: &mut Rng, lines: &mut Vec<Vec<u8>>) {
    if lines.is_empty() {
        return;
    }
    let at = random.usize(..lines.len());
    match random.u8(..12) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, Vec::new()),
        2 => lines.insert(at, b"# inside?".to_vec()),
        3 => lines.insert(at, lines[at].clone()),
        4 => lines[at].push(b'\r'),
        5 => lines[at].insert(0, b'\t'),
        6 => lines[at].retain(|&byte| byte != b':'),
        7 => lines[at] = b"name:".to_vec(),
        8 => lines[at] = b"install_path:4".to_vec(),
        9 => lines[at] = b"optional:True".to_vec(),
        10 => lines.truncate(at),
        _ => {
            let other = random.usize(..lines.len());
            lines.swap(at, other);
        }
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/card/install.sh")
}

#[track_caller]
fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What a file is answered: the number of its packages, or the line at which it is refused.
fn answers(output: &Output) -> Vec<Result<usize, usize>> {
    let number = |text: &str| text.split(|char: char| !char.is_ascii_digit()).next().unwrap().parse().unwrap();
    let answer = |line: &str| match line.split_once(": ok, ") {
        Some((_, rest)) => Ok(number(rest)),
        None => Err(number(line.split_once(": line ").unwrap_or_else(|| panic!("{line}")).1)),
    };
    String::from_utf8_lossy(&output.stdout).lines().map(answer).collect()
}

#[test]
fn ten_thousand_random_whitelists_are_judged_as_by_the_second_parser() {
    let folder = folder("whitelists");
    let random = &mut Rng::with_seed(16);
    let files: Vec<_> = (0..10_000).map(|_| random_whitelist(random)).collect();
    let names: Vec<_> = (0..files.len()).map(|index| index.to_string()).collect();
    for (name, file) in names.iter().zip(&files) {
        fs::write(folder.join(name), file).unwrap();
    }
    let output = output(Command::new(script()).arg("--validate").args(&names).current_dir(&folder));
    let answers = answers(&output);
    assert_eq!(answers.len(), files.len(), "{}", String::from_utf8_lossy(&output.stderr));
    for (index, (file, answer)) in files.iter().zip(&answers).enumerate() {
        let expected = parse(file).map(|blocks| blocks.len());
        assert_eq!(*answer, expected, "file {index} of seed 16:\n{}", String::from_utf8_lossy(file));
    }
    // Not all alike.
    let accepted = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!((2000..8000).contains(&accepted), "{accepted} of 10,000 are accepted");
    assert_eq!(output.status.code(), Some(1));
    fs::remove_dir_all(folder).unwrap();
}

/// A folder with a package as `make card-package` leaves it, and one that looks like a toolkit.
struct Site {
    package: PathBuf,
    toolkit: PathBuf,
}

impl Site {
    fn new(name: &str) -> Self {
        let folder = folder(name);
        let (package, toolkit) = (folder.join("package"), folder.join("toolkit"));
        fs::create_dir_all(&package).unwrap();
        fs::create_dir_all(toolkit.join("opp/vendors/other")).unwrap();
        fs::create_dir_all(toolkit.join("conf")).unwrap();
        fs::copy(script(), package.join("install.sh")).unwrap();
        let archive = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()).finish().unwrap();
        fs::write(package.join(PACKAGE), archive).unwrap();
        fs::write(package.join("libmine.json"), "{}").unwrap();
        fs::write(package.join("libmine.ini"), "").unwrap();
        fs::write(package.join("whitelist.txt"), BLOCK).unwrap();
        Self { package, toolkit }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("bash");
        command.arg(self.package.join("install.sh")).arg("--cann").arg(&self.toolkit);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        output(self.command().args(args))
    }

    fn whitelist(&self) -> PathBuf {
        self.toolkit.join(WHITELIST)
    }

    fn write_whitelist(&self, text: &[u8]) {
        fs::write(self.whitelist(), text).unwrap();
    }

    fn read_whitelist(&self) -> Vec<u8> {
        fs::read(self.whitelist()).unwrap()
    }

    /// Every file below the toolkit, but the backup.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.toolkit.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(&self.toolkit).unwrap().to_string_lossy().into_owned();
                    files.push(name);
                }
            }
        }
        files.retain(|file| !file.ends_with(".hcomm-backup"));
        files.sort();
        files
    }
}

const INSTALLED: [&str; 4] = [
    WHITELIST,
    "opp/vendors/mine/aicpu/config/libmine.ini",
    "opp/vendors/mine/aicpu/config/libmine.json",
    "opp/vendors/mine/aicpu/kernel/aicpu_mine.tar.gz",
];

/// `blocks` without ours.
fn others(blocks: &[Block]) -> Vec<Block> {
    blocks.iter().filter(|block| block.name != PACKAGE).cloned().collect()
}

#[test]
fn the_script_changes_right_whitelists_and_no_others() {
    // 10,000 in `make soak`.
    let cases = std::env::var("HCOMM_WHITELIST_CASES").map_or(100, |text| text.parse().expect("a number"));
    let site = Site::new("random_installs");
    let random = &mut Rng::with_seed(17);
    let mut installed = 0;
    for case in 0..cases {
        let mut before = random_whitelist(random);
        if random.u8(..10) == 0 && !before.is_empty() {
            let at = random.usize(..before.len());
            before[at] = 0;
        }
        site.write_whitelist(&before);
        let run = site.run(&[]);
        let context = || format!("case {case} of seed 17:\n{}\n{}", String::from_utf8_lossy(&before), text(&run));
        let full = |blocks: &Vec<Block>| others(blocks).len() == MAX_PACKAGES;
        // The second parser stops at a zero byte in front of a block, the script at any.
        let Some(blocks) = parse(&before).ok().filter(|blocks| !full(blocks) && !before.contains(&0)) else {
            assert!(!run.status.success(), "{}", context());
            assert_eq!(site.read_whitelist(), before, "{}", context());
            assert_eq!(site.files(), [WHITELIST], "{}", context());
            continue;
        };
        installed += 1;
        assert!(run.status.success(), "{}", context());
        let after = parse(&site.read_whitelist()).unwrap_or_else(|line| panic!("line {line}: {}", context()));
        assert_eq!(others(&after), others(&blocks), "{}", context());
        let ours: Vec<_> = after.iter().filter(|block| block.name == PACKAGE).collect();
        assert_eq!(ours.len(), 1, "{}", context());
        assert_eq!(ours[0].lines.join("\n") + "\n", BLOCK, "{}", context());
        assert_eq!(site.files(), INSTALLED, "{}", context());
        let backup = fs::read(site.whitelist().with_extension("ini.hcomm-backup"));
        if site.read_whitelist() != before {
            assert_eq!(backup.unwrap(), before, "{}", context());
        }

        let removal = site.run(&["--uninstall"]);
        assert!(removal.status.success(), "{}\n{}", context(), text(&removal));
        assert_eq!(parse(&site.read_whitelist()), Ok(others(&blocks)), "{}", context());
        assert_eq!(site.files(), [WHITELIST], "{}", context());
    }
    assert!(installed * 5 > cases, "{installed} of {cases} were installed");
}

#[test]
fn a_dry_run_says_what_would_happen_and_changes_nothing() {
    let site = Site::new("dry_run");
    let before = b"name:stock.tar.gz\ninstall_path:2\noptional:true\npackage_path:opp/a\nload_as_per_soc:false\n";
    site.write_whitelist(before);
    let run = site.run(&["--dry-run"]);
    assert!(run.status.success(), "{}", text(&run));
    let text = text(&run);
    assert!(text.contains("would copy aicpu_mine.tar.gz") && text.contains("+name:aicpu_mine.tar.gz"), "{text}");
    assert_eq!(site.read_whitelist(), before);
    assert_eq!(site.files(), [WHITELIST]);

    assert!(site.run(&[]).status.success());
    let run = site.run(&["--dry-run", "--uninstall"]);
    assert!(String::from_utf8_lossy(&run.stdout).contains("-name:aicpu_mine.tar.gz"));
    assert_eq!(site.files(), INSTALLED);
}

#[test]
fn a_toolkit_without_a_whitelist_gets_one() {
    let site = Site::new("no_whitelist");
    fs::remove_dir(site.toolkit.join("conf")).unwrap();
    let run = site.run(&["--uninstall"]);
    assert!(!run.status.success() && text(&run).contains("nothing is installed"), "{}", text(&run));
    assert!(site.run(&["--dry-run"]).status.success());
    assert!(site.files().is_empty());
    assert!(site.run(&[]).status.success());
    assert_eq!(site.read_whitelist(), BLOCK.as_bytes());
    assert_eq!(site.files(), INSTALLED);
    // Again: nothing to change.
    let run = site.run(&[]);
    assert!(run.status.success() && text(&run).contains("is not changed"), "{}", text(&run));
    assert_eq!(site.read_whitelist(), BLOCK.as_bytes());
}

#[test]
fn a_whitelist_that_is_a_link_stays_one_and_keeps_its_mode() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let site = Site::new("link");
    let real = site.toolkit.join("real.ini");
    fs::write(&real, "# theirs\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    symlink(&real, site.whitelist()).unwrap();
    let run = site.run(&[]);
    assert!(run.status.success(), "{}", text(&run));
    assert!(fs::symlink_metadata(site.whitelist()).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), format!("# theirs\n{BLOCK}"));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o440);
}

#[test]
fn a_package_that_can_t_be_installed_is_refused_before_anything_changes() {
    let refuses = |name: &str, break_it: &dyn Fn(&Site), words: &str| {
        let site = Site::new(&format!("refused_{name}"));
        site.write_whitelist(b"# theirs\n");
        break_it(&site);
        let before = site.files();
        let run = site.run(&[]);
        assert!(!run.status.success() && text(&run).contains(words), "{name}: {}", text(&run));
        assert_eq!(site.files(), before, "{name}");
        assert_eq!(site.read_whitelist(), b"# theirs\n", "{name}");
    };
    let replace_block = |old: &'static str, new: &'static str| {
        move |site: &Site| fs::write(site.package.join("whitelist.txt"), BLOCK.replace(old, new)).unwrap()
    };
    refuses("no_package", &|site| fs::remove_file(site.package.join(PACKAGE)).unwrap(), "is missing");
    refuses("damaged", &|site| fs::write(site.package.join(PACKAGE), "no gzip").unwrap(), "is damaged");
    refuses(
        "no_json",
        &|site| {
            fs::remove_file(site.package.join("libmine.json")).unwrap();
            fs::remove_file(site.package.join("libmine.ini")).unwrap();
        },
        "has no description",
    );
    refuses("no_block", &|site| fs::remove_file(site.package.join("whitelist.txt")).unwrap(), "is missing");
    refuses("bad_block", &replace_block("optional:true", "optional:maybe"), "neither true nor false");
    refuses("path", &replace_block("opp/vendors/mine", "opp/vendors/../.."), "not opp/vendors/NAME/aicpu/kernel");
    refuses("name", &replace_block("aicpu_mine", "../aicpu_mine"), "is not a package name");
    refuses("six_lines", &replace_block("name:", "# six\nname:"), "not one block of five lines");
    refuses("opp", &|site| fs::remove_dir_all(site.toolkit.join("opp")).unwrap(), "it has no folder opp");
    let site = Site::new("refused_nowhere");
    let run = output(Command::new("bash").arg(site.package.join("install.sh")).env_remove("ASCEND_HOME_PATH"));
    assert!(!run.status.success() && text(&run).contains("give --cann DIR"), "{}", text(&run));
}

#[test]
fn a_script_that_is_killed_leaves_the_old_whitelist_or_the_new_one() {
    let site = Site::new("killed");
    let before = "# theirs\n".repeat(2000);
    let after = format!("{before}{BLOCK}");
    let random = &mut Rng::with_seed(18);
    let mut unchanged = 0;
    for _ in 0..20 {
        site.write_whitelist(before.as_bytes());
        let mut command = site.command();
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(random.u64(..150)));
        // SIGKILL: no trap of the script runs.
        child.kill().unwrap();
        child.wait().unwrap();
        let found = site.read_whitelist();
        assert!(found == before.as_bytes() || found == after.as_bytes(), "{}", String::from_utf8_lossy(&found));
        unchanged += usize::from(found == before.as_bytes());
    }
    assert!(unchanged > 0, "no run was killed before its end");
}

#[test]
fn two_installations_at_a_time_take_turns() {
    let site = Site::new("two");
    let second = Site::new("two_second");
    let block = BLOCK.replace("mine", "yours");
    fs::write(second.package.join("whitelist.txt"), &block).unwrap();
    fs::rename(second.package.join(PACKAGE), second.package.join("aicpu_yours.tar.gz")).unwrap();
    site.write_whitelist(b"");
    for _ in 0..5 {
        let mut first = site.command().stdout(std::process::Stdio::null()).spawn().unwrap();
        let mut other = Command::new("bash")
            .arg(second.package.join("install.sh"))
            .arg("--cann")
            .arg(&site.toolkit)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        assert!(first.wait().unwrap().success());
        assert!(other.wait().unwrap().success());
        let names: Vec<_> = parse(&site.read_whitelist()).unwrap().into_iter().map(|block| block.name).collect();
        assert!(names.len() == 2 && names.contains(&PACKAGE.to_owned()), "{names:?}");
        assert!(site.run(&["--uninstall"]).status.success());
    }
}
