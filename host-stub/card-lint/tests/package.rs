//! Packages: what scripts/card/package.sh makes has no finding, and each planted violation is found.

mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Library, compile, folder, run};
use flate2::Compression;
use flate2::write::GzEncoder;
use hcomm_card_lint::{Check, LintError, Options, Profile, Report, Severity, lint};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

const ROOT: &str = "aicpu_kernels_device/";

fn check(path: &Path, profile: Profile) -> Report {
    lint(path, &Options { profile, ..Options::default() }).unwrap()
}

fn package_script(library: &Path, out: &Path, kernels: &[&str]) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/card/package.sh"));
    command.arg(library).arg(out).args(kernels);
    command
}

#[test]
fn what_the_script_packs_is_clean_in_both_profiles_and_the_same_each_time() {
    let built = compile("packed", &Library::default());
    let out = folder("packed_out");
    for kernels in [&[][..], &["LocalCopy=local_copy", "Copy2=local_copy"]] {
        run(&mut package_script(&built.path, &out, kernels));
        let package = out.join("aicpu_kernel.tar.gz");
        for profile in [Profile::Any, Profile::Own] {
            let report = check(&package, profile);
            assert!(report.findings.is_empty() && report.notes.is_empty(), "{report:#?}");
        }
        let first = fs::read(&package).unwrap();
        run(&mut package_script(&built.path, &out, kernels));
        assert_eq!(fs::read(&package).unwrap(), first);
    }
}

#[test]
fn an_installed_package_is_found_with_its_description() {
    let built = compile("placed", &Library::default());
    let out = folder("placed_out");
    run(&mut package_script(&built.path, &out, &[]));
    let toolkit = folder("placed_toolkit");
    fs::create_dir(toolkit.join("opp")).unwrap();
    run(Command::new(out.join("install.sh")).arg("--cann").arg(&toolkit));
    let package = toolkit.join("opp/vendors/kernel/aicpu/kernel/aicpu_kernel.tar.gz");
    let options = Options { profile: Profile::Own, whitelist: Some(out.join("whitelist.txt")), ..Options::default() };
    let report = lint(&package, &options).unwrap();
    assert!(report.findings.is_empty() && report.notes.is_empty(), "{report:#?}");
}

#[test]
fn what_can_not_be_packed_is_refused() {
    let built = compile("unpackable", &Library::default());
    let out = folder("unpackable_out");
    let refused = |library: &Path, kernels: &[&str], words: &str| {
        let output = package_script(library, &out, kernels).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(words), "{text}");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    };
    refused(&built.renamed("kernel.so").path, &[], "is not called libNAME.so");
    refused(Path::new("/nonexistent/libx.so"), &[], "is no file");
    refused(&built.path, &["a b=c"], "is not KERNEL=FUNCTION");
    let empty = compile("unpackable_empty", &Library { exports: Vec::new(), ..Library::default() });
    refused(&empty.path, &[], "exports no function");
}

/// A package whose parts can be changed one by one.
#[derive(Clone)]
struct Package {
    /// Path, type, mode, bytes.
    entries: Vec<(String, EntryType, u32, Vec<u8>)>,
    json: String,
    ini: Option<String>,
    whitelist: Option<String>,
}

impl Package {
    fn new(name: &str) -> Self {
        let library = compile(name, &Library::default()).bytes();
        let opinfo = "opInfo.opKernelLib=AICPUKernel\nopInfo.kernelSo=libkernel.so\nopInfo.functionName=local_copy\n";
        let mut package = Self {
            entries: vec![
                (ROOT.to_owned(), EntryType::Directory, 0o750, Vec::new()),
                (format!("{ROOT}libkernel.so"), EntryType::Regular, 0o750, library),
                (format!("{ROOT}bin_hash.cfg"), EntryType::Regular, 0o640, Vec::new()),
            ],
            json: r#"{"LocalCopy":{"opInfo":{"opKernelLib":"AICPUKernel","kernelSo":"libkernel.so","functionName":"local_copy"}}}"#
                .to_owned(),
            ini: Some(format!("[LocalCopy]\n{opinfo}")),
            whitelist: Some(
                "name:aicpu_kernel.tar.gz\ninstall_path:2\noptional:true\npackage_path:opp/vendors/kernel/aicpu/kernel\n\
                 load_as_per_soc:false\n"
                    .to_owned(),
            ),
        };
        package.entries[2].3 = package.hashes().into_bytes();
        package
    }

    fn hashes(&self) -> String {
        let hash = Sha256::digest(&self.entries[1].3);
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("libkernel.so={digits}\n")
    }

    fn archive(&self) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, kind, mode, data) in &self.entries {
            let mut header = Header::new_ustar();
            // Written raw: a planted path may be one that no packer writes.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(*mode);
            header.set_size(data.len() as u64);
            if kind.is_symlink() {
                header.set_link_name("/etc/passwd").unwrap();
            }
            header.set_cksum();
            builder.append(&header, &data[..]).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn write(&self, name: &str) -> PathBuf {
        let folder = folder(&format!("package_{name}"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&self.archive()).unwrap();
        let path = folder.join("aicpu_kernel.tar.gz");
        fs::write(&path, encoder.finish().unwrap()).unwrap();
        fs::write(folder.join("libkernel.json"), &self.json).unwrap();
        if let Some(ini) = &self.ini {
            fs::write(folder.join("libkernel.ini"), ini).unwrap();
        }
        if let Some(block) = &self.whitelist {
            fs::write(folder.join("whitelist.txt"), block).unwrap();
        }
        path
    }
}

/// Severities of the findings of `check` whose message has `words`, in the two profiles.
fn severities(path: &Path, check_of: Check, words: &str) -> [Option<Severity>; 2] {
    [Profile::Any, Profile::Own].map(|profile| {
        let report = check(path, profile);
        let found = report.findings.iter().find(|one| one.check == check_of && one.message.contains(words));
        if let Some(finding) = found {
            assert!(finding.why.len() > 20, "{finding}");
        }
        found.map(|finding| finding.severity)
    })
}

const FAILS: [Option<Severity>; 2] = [Some(Severity::Error); 2];
const WARNS: [Option<Severity>; 2] = [Some(Severity::Warning), Some(Severity::Error)];
const OWN: [Option<Severity>; 2] = [None, Some(Severity::Error)];

#[test]
fn each_planted_violation_of_a_package_is_found() {
    let clean = Package::new("plain_library");
    let path = clean.write("clean");
    for profile in [Profile::Any, Profile::Own] {
        let report = check(&path, profile);
        assert!(report.findings.is_empty() && report.notes.is_empty(), "{report:#?}");
    }
    // Name, edit, check, words of its message, severities in the two profiles.
    type Planted = (&'static str, fn(&mut Package), Check, &'static str, [Option<Severity>; 2]);
    let planted: [Planted; 27] = [
        (
            "root",
            |p| p.entries[1].0 = "kernels/libkernel.so".into(),
            Check::Layout,
            "lies outside aicpu_kernels_device/",
            FAILS,
        ),
        ("top", |p| p.entries[1].0 = "libkernel.so".into(), Check::Layout, "has no library in", FAILS),
        (
            "deep",
            |p| p.entries[1].0 = format!("{ROOT}lib/libkernel.so"),
            Check::Layout,
            "lies in a folder below",
            FAILS,
        ),
        (
            "dots",
            |p| p.entries[1].0 = format!("{ROOT}../libkernel.so"),
            Check::Layout,
            "leads out of the folder",
            FAILS,
        ),
        (
            "absolute",
            |p| p.entries[1].0 = "/usr/lib64/libkernel.so".into(),
            Check::Layout,
            "leads out of the folder",
            FAILS,
        ),
        (
            "link",
            |p| p.entries.push((format!("{ROOT}link"), EntryType::Symlink, 0o777, Vec::new())),
            Check::Layout,
            "is neither file nor folder",
            WARNS,
        ),
        ("twice", |p| p.entries.push(p.entries[1].clone()), Check::Layout, "is there twice", WARNS),
        ("mode", |p| p.entries[1].2 = 0o755, Check::Modes, "has mode 755, not 750", OWN),
        ("writable", |p| p.entries[1].2 = 0o777, Check::Modes, "has mode 777, not 750", OWN),
        ("folder_mode", |p| p.entries[0].2 = 0o755, Check::Modes, "has mode 755, not 750", OWN),
        ("unreadable", |p| p.entries[1].2 = 0o010, Check::Modes, "has mode 10: the owner can't read it", FAILS),
        ("no_hashes", |p| drop(p.entries.pop()), Check::Hashes, "has no aicpu_kernels_device/bin_hash.cfg", WARNS),
        (
            "hash",
            |p| p.entries[2].3 = format!("libkernel.so={}\n", "0".repeat(64)).into_bytes(),
            Check::Hashes,
            "SHA-256 of libkernel.so is",
            FAILS,
        ),
        (
            "hash_line",
            |p| p.entries[2].3.truncate(40),
            Check::Hashes,
            "line 1 is not file=<64 hexadecimal digits>",
            FAILS,
        ),
        (
            "hash_other",
            |p| p.entries[2].3.extend(format!("other.so={}\n", "0".repeat(64)).bytes()),
            Check::Hashes,
            "line 2 names other.so, which is not in the package",
            WARNS,
        ),
        ("unhashed", |p| p.entries[2].3.clear(), Check::Hashes, "has no line for libkernel.so", WARNS),
        (
            "json",
            |p| p.json = p.json.replace("AICPUKernel", "OtherKernel"),
            Check::Description,
            "is OtherKernel",
            FAILS,
        ),
        (
            "entry",
            |p| p.json = p.json.replace("\"local_copy", "\"other"),
            Check::Exports,
            "function other, which",
            FAILS,
        ),
        ("no_json", |p| p.json = "{}".into(), Check::Description, "no description in JSON form names a kernel", OWN),
        ("no_ini", |p| p.ini = None, Check::Description, "no description in INI form names a kernel", OWN),
        (
            "ini",
            |p| p.ini = p.ini.take().map(|ini| ini.replace("local_copy", "other")),
            Check::Description,
            "kernel LocalCopy differs from the JSON form",
            WARNS,
        ),
        (
            "two_libraries",
            |p| {
                p.json.insert_str(
                    1,
                    r#""B":{"opInfo":{"opKernelLib":"AICPUKernel","kernelSo":"libb.so","functionName":"b"}},"#,
                )
            },
            Check::Description,
            "kernel B: libb.so is not in aicpu_kernel.tar.gz",
            WARNS,
        ),
        ("no_block", |p| p.whitelist = None, Check::Whitelist, "there is no whitelist.txt beside it", OWN),
        (
            "block",
            |p| p.whitelist = p.whitelist.take().map(|text| text.replace("optional", "\noptional")),
            Check::Whitelist,
            "has 6 lines, not five",
            FAILS,
        ),
        (
            "block_name",
            |p| p.whitelist = p.whitelist.take().map(|text| text.replace("aicpu_kernel", "other")),
            Check::Whitelist,
            "names package other.tar.gz, not aicpu_kernel.tar.gz",
            FAILS,
        ),
        ("library", |p| p.entries[1].3[18] = 62, Check::Elf, "machine 62 (x86-64)", FAILS),
        ("cut_library", |p| p.entries[1].3.truncate(0x8000), Check::Elf, "a segment ends after the file", FAILS),
    ];
    for (name, edit, check, words, expected) in planted {
        let mut package = clean.clone();
        edit(&mut package);
        assert_eq!(severities(&package.write(name), check, words), expected, "{name}: {words}");
    }
}

#[test]
fn paths_may_begin_with_the_folder_that_was_packed() {
    let mut package = Package::new("dotted_library");
    for entry in &mut package.entries {
        entry.0.insert_str(0, "./");
    }
    package.entries.insert(0, ("./".to_owned(), EntryType::Directory, 0o755, Vec::new()));
    let report = check(&package.write("dotted"), Profile::Own);
    assert!(report.findings.is_empty(), "{report:#?}");
    // They are the same paths as without it.
    let mut again = package.entries[2].clone();
    again.0 = again.0.replacen("./", "", 1);
    package.entries.push(again);
    assert_eq!(severities(&package.write("dotted_twice"), Check::Layout, "is there twice"), WARNS);
}

#[test]
fn damaged_archives_are_named_and_never_read_outside() {
    let clean = Package::new("damaged_library");
    let whole = fs::read(clean.write("whole")).unwrap();
    let folder = folder("damaged_packages");
    let path = folder.join("aicpu_kernel.tar.gz");
    for len in (2..whole.len() - 1).step_by(whole.len() / 50) {
        fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(severities(&path, Check::Layout, "is no whole gzip stream"), FAILS, "{len}");
    }
    let mut archive = clean.archive();
    for (edit, words) in [(vec![0xff; 12], "is no whole tar archive"), (vec![b'7'; 11], "is no whole tar archive")] {
        // The size of the library, in the second header.
        archive[512 + 124..512 + 124 + edit.len()].copy_from_slice(&edit);
        let sum: u32 = archive[512..1024]
            .iter()
            .enumerate()
            .map(|(at, &byte)| if (148..156).contains(&at) { 32 } else { u32::from(byte) })
            .sum();
        archive[512 + 148..512 + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&archive).unwrap();
        fs::write(&path, encoder.finish().unwrap()).unwrap();
        assert_eq!(severities(&path, Check::Layout, words), FAILS);
    }
    // A signature lies in front of the stream; it is not checked, and the report says so.
    fs::write(&path, [vec![b's'; 8448], whole].concat()).unwrap();
    let report = check(&path, Profile::Any);
    assert!(report.findings.is_empty(), "{report:#?}");
    assert!(report.notes.iter().any(|note| note.contains("the signature is not checked")), "{report:#?}");
}

#[test]
fn a_package_that_unpacks_without_end_is_refused() {
    let folder = folder("bomb");
    let path = folder.join("aicpu_bomb.tar.gz");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![0; 1 << 20];
    for _ in 0..513 {
        encoder.write_all(&zeros).unwrap();
    }
    fs::write(&path, encoder.finish().unwrap()).unwrap();
    assert_eq!(severities(&path, Check::Layout, "unpacks to more than 536870912 bytes"), FAILS);
}

#[test]
fn what_is_neither_library_nor_package_is_an_error_of_the_call() {
    let folder = folder("kinds");
    let fails = |path: &Path| lint(path, &Options::default()).unwrap_err();
    assert!(matches!(fails(&folder.join("none.so")), LintError::Read { .. }));
    assert!(matches!(fails(&folder), LintError::NotRegular(_)));
    assert!(matches!(fails(Path::new("/dev/zero")), LintError::NotRegular(_)));
    let fifo = folder.join("fifo");
    run(Command::new("mkfifo").arg(&fifo));
    assert!(matches!(fails(&fifo), LintError::NotRegular(_)));
    let text = folder.join("text.so");
    fs::write(&text, "not a library").unwrap();
    assert!(matches!(fails(&text), LintError::Kind(_)));
    let large = folder.join("large.so");
    fs::File::create(&large).unwrap().set_len((200 << 20) + 1).unwrap();
    assert!(matches!(fails(&large), LintError::TooLarge { len, .. } if len == (200 << 20) + 1));

    let built = compile("kinds_library", &Library::default());
    let options = Options { descriptions: vec![folder.join("none.json")], ..Options::default() };
    assert!(matches!(lint(&built.path, &options).unwrap_err(), LintError::Read { .. }));
    let binary = folder.join("binary.json");
    fs::write(&binary, [0xff, 0xfe]).unwrap();
    let options = Options { descriptions: vec![binary], ..Options::default() };
    assert!(matches!(lint(&built.path, &options).unwrap_err(), LintError::NotText(_)));
}

#[test]
fn descriptions_of_others_in_the_folder_are_left_alone() {
    let path = Package::new("others_library").write("others");
    let folder = path.parent().unwrap();
    fs::write(folder.join("settings.json"), r#"{"a":[1]}"#).unwrap();
    fs::write(folder.join("broken.json"), "{").unwrap();
    let report = check(&path, Profile::Own);
    assert!(report.findings.is_empty(), "{report:#?}");
    assert_eq!(report.notes.len(), 2, "{report:#?}");
    // One that is named is held to account.
    let descriptions = vec![folder.join("libkernel.json"), folder.join("broken.json")];
    let report = lint(&path, &Options { descriptions, ..Options::default() }).unwrap();
    assert!(
        report.findings.iter().any(|one| one.file == "broken.json" && one.severity == Severity::Error),
        "{report:#?}"
    );
}
