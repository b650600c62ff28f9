//! Each row of docs/card.md finds what it is for: libraries with one planted violation each, made by the cross compiler or by
//! editing bytes, in both profiles.

mod common;

use common::{Built, Library, compile, offset_of_segment, put};
use hcomm_card_lint::{Check, Options, Profile, Report, Severity, lint};

/// What a profile must answer about a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Not a word.
    Nothing,
    /// A warning.
    Warns,
    /// An error.
    Fails,
}
use Answer::{Fails, Nothing, Warns};

fn report(built: &Built, profile: Profile) -> Report {
    lint(&built.path, &Options { profile, descriptions: vec![built.description.clone()], ..Options::default() })
        .unwrap()
}

/// Asserts what both profiles say of `check`, that the message has `words`, and that it says why it matters.
#[track_caller]
fn expect(built: &Built, check: Check, words: &str, any: Answer, own: Answer) {
    for (profile, answer) in [(Profile::Any, any), (Profile::Own, own)] {
        let report = report(built, profile);
        let found: Vec<_> =
            report.findings.iter().filter(|one| one.check == check && one.message.contains(words)).collect();
        match (answer, &found[..]) {
            (Nothing, []) => {}
            (Warns, [one]) if one.severity == Severity::Warning => assert!(one.why.len() > 20, "{one}"),
            (Fails, [one]) if one.severity == Severity::Error => assert!(one.why.len() > 20, "{one}"),
            _ => panic!("{profile:?}: expected {answer:?} for {words:?}, got {report:#?}"),
        }
    }
}

#[test]
fn a_library_without_violations_has_no_finding() {
    let built = compile("clean", &Library::default());
    for profile in [Profile::Any, Profile::Own] {
        let report = report(&built, profile);
        assert!(report.findings.is_empty() && report.notes.is_empty(), "{report:#?}");
    }
}

#[test]
fn files_that_no_loader_for_aarch64_maps() {
    let built = compile("elf", &Library::default());
    let tampered = |name, edit: &dyn Fn(&mut Vec<u8>)| built.tampered(name, edit);
    for (built, words) in [
        (tampered("machine", &|data| put(data, 18, &62u16.to_le_bytes())), "machine 62 (x86-64), not 183"),
        (tampered("class", &|data| data[4] = 1), "class 1 in byte 4"),
        (tampered("order", &|data| data[5] = 2), "byte order 2 in byte 5"),
        (tampered("type", &|data| put(data, 16, &2u16.to_le_bytes())), "type 2 (program at a fixed address)"),
        (tampered("short", &|data| data.truncate(60)), "shorter than a header"),
        (tampered("cut", &|data| data.truncate(0xfff0)), "a segment ends after the file"),
        (tampered("headers", &|data| put(data, 32, &u64::MAX.to_le_bytes())), "the program headers end after the file"),
        (
            tampered("no_dynamic", &|data| {
                let header = offset_of_segment(data, 2);
                put(data, header, &0u32.to_le_bytes());
            }),
            "no dynamic table",
        ),
    ] {
        expect(&built, Check::Elf, words, Fails, Fails);
    }
}

#[test]
fn no_prefix_of_a_library_and_no_changed_byte_of_its_headers_is_read_outside() {
    let built = compile("fuzz", &Library::default());
    let whole = built.bytes();
    let len = whole.len();
    for cut in (0..0x500).chain((0x500..len).step_by(997)).chain(len - 0x500..len) {
        let cut = built.tampered("cut", &|data| data.truncate(cut.max(4)));
        report(&cut, Profile::Own);
    }
    let random = &mut fastrand::Rng::with_seed(7);
    for _ in 0..1500 {
        // The headers, and the tables that the dynamic one names.
        let at = random.usize(4..0x400);
        let dynamic = random.usize(0xfe80..0xffd0);
        let changed = built.tampered("changed", &|data| {
            data[at] ^= 1 << (at % 8);
            data[dynamic] = dynamic as u8;
        });
        report(&changed, Profile::Own);
    }
}

#[test]
fn names() {
    let other = compile("soname", &Library { soname: Some("libother.so"), ..Library::default() });
    expect(&other, Check::Name, "SONAME is libother.so", Nothing, Fails);
    let none = compile("no_soname", &Library { soname: None, ..Library::default() });
    expect(&none, Check::Name, "no SONAME", Nothing, Fails);

    let clean = compile("named", &Library::default());
    let spaced = clean.renamed("lib kernel.so");
    expect(&spaced, Check::Name, "the name has the character ' '", Fails, Fails);
    let long = clean.renamed(&format!("lib{}.so", "x".repeat(95)));
    expect(&long, Check::Name, "the name has 101 characters, 100 are allowed", Fails, Fails);
    let longest = clean.renamed(&format!("lib{}.so", "x".repeat(94)));
    expect(&longest, Check::Name, "the name has", Nothing, Nothing);
}

#[test]
fn exports() {
    let exports = |name, exported: &[&str], source| {
        compile(name, &Library { exports: exported.to_vec(), source, ..Library::default() })
    };
    let extra = exports("extra", &["local_copy", "helper"], "unsigned helper(void *p) { return !p; }");
    expect(&extra, Check::Exports, "exports names that no description has: helper", Warns, Fails);
    let vendor = exports("vendor", &["local_copy", "Hcomm*"], "int HcommBatchModeEnd(const char *p) { return !p; }");
    expect(&vendor, Check::Exports, "exports names of the vendor's library: HcommBatchModeEnd", Warns, Fails);
    let memory = exports(
        "memory",
        &["local_copy", "memset"],
        "void *memset(void *to, int c, unsigned long n) { for (volatile char *p = to; n--; p++) *p = c; return to; }",
    );
    expect(&memory, Check::Exports, "exports names of a run-time library: memset", Warns, Fails);
    let rust = exports("rust", &["local_copy", "rust_*"], "void rust_eh_personality(void) {}");
    expect(&rust, Check::Exports, "exports names of a run-time library: rust_eh_personality", Warns, Fails);
    let missing = exports("missing", &[], "");
    expect(&missing, Check::Exports, "function local_copy, which the library does not export", Fails, Fails);
}

#[test]
fn undefined_names() {
    let calls = |name, declaration: &'static str, call: &'static str| {
        compile(name, &Library { source: declaration, body: call, ..Library::default() })
    };
    let strong = calls("strong", "int halSqCqConfig(unsigned, void *);", "return halSqCqConfig(0, args);");
    expect(&strong, Check::Undefined, "halSqCqConfig is undefined and not weak", Nothing, Fails);
    let log = calls("log", "int CheckLogLevel(int, int);", "return CheckLogLevel(3, 3);");
    expect(&log, Check::Undefined, "CheckLogLevel is undefined and not weak", Nothing, Fails);
    let weak = calls(
        "weak",
        "int DlogRecord(int, int, const char *, ...) __attribute__((weak));\n\
         void *memcpy(void *, const void *, unsigned long);",
        "if (DlogRecord) DlogRecord(3, 3, \"%s\", \"\"); memcpy(args, args, (unsigned long)args); return 0;",
    );
    expect(&weak, Check::Undefined, "", Nothing, Nothing);
    let of_libc = calls("of_libc", "int getauxval(unsigned long);", "return getauxval(16);");
    expect(&of_libc, Check::Undefined, "getauxval is undefined and not weak", Nothing, Fails);
    let unknown = calls("unknown", "int getpid(void);", "return getpid();");
    expect(&unknown, Check::Undefined, "getpid is undefined, and is no name that a device", Nothing, Fails);
    let declaration = "int HcommBatchModeStart(const char *) __attribute__((weak));";
    let call = "return HcommBatchModeStart ? HcommBatchModeStart(args) : 1;";
    let vendor = calls("vendor_calls", declaration, call);
    expect(&vendor, Check::Undefined, "HcommBatchModeStart is undefined, and libccl_kernel.so", Nothing, Fails);
    let library =
        Library { source: declaration, body: call, needs: vec![("libccl_kernel.so", "")], ..Library::default() };
    let way_a = compile("way_a", &library);
    expect(&way_a, Check::Undefined, "", Nothing, Nothing);
    expect(&way_a, Check::Needed, "", Nothing, Nothing);
}

#[test]
fn needed_libraries_and_versions() {
    let library = |needs| Library {
        source: "void *memcpy(void *, const void *, unsigned long);",
        body: "memcpy(args, args, (unsigned long)args); return 0;",
        needs,
        ..Library::default()
    };
    let cxx = compile("cxx", &library(vec![("libstdc++.so.6", "")]));
    expect(&cxx, Check::Needed, "libstdc++.so.6 is needed", Nothing, Fails);
    let old = compile("old_libc", &library(vec![("libc.so.6", "GLIBC_2.17")]));
    expect(&old, Check::Needed, "", Nothing, Nothing);
    expect(&old, Check::Versions, "", Nothing, Nothing);
    let new = compile("new_libc", &library(vec![("libc.so.6", "GLIBC_2.34")]));
    expect(&new, Check::Versions, "GLIBC_2.34 of libc.so.6 is needed, newer than GLIBC_2.17", Warns, Fails);
    let private = compile("private_libc", &library(vec![("libc.so.6", "GLIBC_PRIVATE")]));
    expect(&private, Check::Versions, "GLIBC_PRIVATE of libc.so.6 is needed, which is not a public", Warns, Fails);
}

#[test]
fn hardening() {
    let linked = |name, flags: &[&'static str]| compile(name, &Library { flags: flags.to_vec(), ..Library::default() });
    expect(&linked("lazy", &["-Wl,-z,lazy"]), Check::Hardening, "names are bound at the first call", Nothing, Fails);
    expect(&linked("norelro", &["-Wl,-z,norelro"]), Check::Hardening, "no GNU_RELRO", Nothing, Fails);
    expect(&linked("stack", &["-Wl,-z,execstack"]), Check::Hardening, "asks for an executable stack", Nothing, Fails);
    let clean = compile("hardened", &Library::default());
    let no_stack = clean.tampered("no_stack", &|data| {
        let header = offset_of_segment(data, 0x6474_e551);
        put(data, header, &0u32.to_le_bytes());
    });
    expect(&no_stack, Check::Hardening, "does not say that its stack", Nothing, Fails);
    let writable = clean.tampered("rwx", &|data| {
        let header = offset_of_segment(data, 1);
        put(data, header + 4, &7u32.to_le_bytes());
    });
    expect(&writable, Check::Hardening, "can be written and executed", Nothing, Fails);
    let source = "__asm__(\".text\\n.quad local_copy\\n\");";
    let flags = vec!["-Wl,-z,notext"];
    let text = compile("textrel", &Library { source, flags, ..Library::default() });
    expect(&text, Check::Hardening, "TEXTREL", Nothing, Fails);
    let source = "static volatile int n; __attribute__((constructor)) static void begin(void) { n = 1; }";
    let constructor = compile("constructor", &Library { source, ..Library::default() });
    expect(&constructor, Check::Hardening, "code that runs when it is opened (INIT_ARRAY)", Nothing, Fails);
    let source = "void begin(void) {}";
    let init = compile("init", &Library { source, flags: vec!["-Wl,-init,begin"], ..Library::default() });
    expect(&init, Check::Hardening, "code that runs when it is opened (INIT)", Nothing, Fails);
    let source = "static int one(void) { return 1; } static void *choose(void) { return one; }\n\
                  static int either(void) __attribute__((ifunc(\"choose\")));";
    let ifunc = compile("ifunc", &Library { source, body: "return either();", ..Library::default() });
    expect(&ifunc, Check::Hardening, "(IFUNC)", Nothing, Fails);
}

/// Program header of the segment that can be written.
fn second_load(data: &[u8]) -> usize {
    let first = offset_of_segment(data, 1);
    assert_eq!(data[first + 56..first + 60], 1u32.to_le_bytes());
    first + 56
}

#[test]
fn alignment() {
    let small = compile("small_pages", &Library { flags: vec!["-Wl,-z,max-page-size=4096"], ..Library::default() });
    for (profile, severity) in [(Profile::Any, Severity::Warning), (Profile::Own, Severity::Error)] {
        let report = report(&small, profile);
        let found: Vec<_> = report.findings.iter().filter(|one| one.check == Check::Alignment).collect();
        assert!(found.len() >= 2 && found.iter().all(|one| one.severity == severity), "{report:#?}");
        assert!(found.iter().all(|one| one.message.contains("is aligned to 0x1000, not to 0x10000")), "{report:#?}");
    }
    let clean = compile("aligned", &Library::default());
    let shifted = clean.tampered("incongruent", &|data| {
        let header = second_load(data);
        put(data, header + 16, &0x2_1e80u64.to_le_bytes());
    });
    expect(&shifted, Check::Alignment, "differ below its alignment of 0x10000", Fails, Fails);
    let odd = clean.tampered("odd", &|data| {
        let header = second_load(data);
        put(data, header + 48, &0x18000u64.to_le_bytes());
    });
    expect(&odd, Check::Alignment, "differ below its alignment of 0x18000", Fails, Fails);
}

#[test]
fn thread_local_memory() {
    let source = "__thread char few[1023];";
    let few = compile("tls_few", &Library { source, body: "few[1] = 1; return 0;", ..Library::default() });
    expect(&few, Check::Tls, "", Nothing, Nothing);
    let source = "__thread char many[1024];";
    let many = compile("tls_many", &Library { source, body: "many[1] = 1; return 0;", ..Library::default() });
    expect(&many, Check::Tls, "1024 thread-local bytes, fewer than 1024 are allowed", Nothing, Fails);
    let flags = vec!["-ftls-model=initial-exec"];
    let source = "__thread char few[8];";
    let body = "few[1] = 1; return 0;";
    let initial = compile("tls_initial", &Library { source, body, flags, ..Library::default() });
    expect(&initial, Check::Tls, "8 thread-local bytes are addressed from the thread pointer", Warns, Fails);
}

#[test]
fn instructions_that_not_every_core_has() {
    let with = |name, text: &'static str| compile(name, &Library { body: text, ..Library::default() });
    let lse = with("lse", "__asm__ volatile(\".arch_extension lse\\nldadd w0, w1, [%0]\" :: \"r\"(args)); return 0;");
    expect(&lse, Check::Code, "1 instructions of LSE atomics (cas, swp, ldadd, ..): at 0x", Warns, Fails);
    expect(&lse, Check::Code, "in local_copy", Warns, Fails);
    let rcpc = with("rcpc", "__asm__ volatile(\".inst 0xb8bfc000\" :: \"r\"(args)); return 0;");
    expect(&rcpc, Check::Code, "RCPC loads", Warns, Fails);
    let sve = with("sve", "__asm__ volatile(\".arch_extension sve\\nptrue p0.b\"); return 0;");
    expect(&sve, Check::Code, "instructions of SVE", Fails, Fails);
    let sme = with("sme", "__asm__ volatile(\".inst 0x80800000\"); return 0;");
    expect(&sme, Check::Code, "instructions of SME", Fails, Fails);
    let ls64 = with("ls64", "__asm__ volatile(\".inst 0xf83f9000\"); return 0;");
    expect(&ls64, Check::Code, "64-byte stores", Fails, Fails);
    let compiled = Library {
        body: "return __atomic_fetch_add((unsigned *)args, 1, __ATOMIC_SEQ_CST) != 0;",
        flags: vec!["-march=armv8.1-a"],
        ..Library::default()
    };
    expect(&compile("armv8_1", &compiled), Check::Code, "LSE atomics", Warns, Fails);
}

#[test]
fn constants_between_code_are_told_from_code_unless_the_file_is_stripped() {
    let source = "__asm__(\".text\\n.word 0xb8200041, 0x2518e3e0\\n.inst 0xd65f03c0\");";
    let mixed = compile("mixed", &Library { source, ..Library::default() });
    expect(&mixed, Check::Code, "", Nothing, Nothing);
    let stripped = compile("mixed_stripped", &Library { source, flags: vec!["-s"], ..Library::default() });
    expect(&stripped, Check::Code, "LSE atomics", Warns, Fails);
    // It may be no code, so that it is no reason to refuse another's library.
    expect(&stripped, Check::Code, "instructions of SVE", Warns, Fails);
    for profile in [Profile::Any, Profile::Own] {
        let report = report(&stripped, profile);
        assert!(report.notes.iter().any(|note| note.contains("linear sweep")), "{report:#?}");
        assert!(report.findings.iter().all(|one| one.message.contains("may be constants")), "{report:#?}");
    }
    // A file without section headers has its code in segments.
    let bare = stripped.tampered("bare", &|data| {
        put(data, 40, &[0; 8]);
        put(data, 58, &[0; 6]);
    });
    expect(&bare, Check::Code, "LSE atomics", Warns, Fails);
}

#[test]
fn helpers_of_the_compiler() {
    let outlined = Library {
        body: "return __atomic_fetch_add((unsigned *)args, 1, __ATOMIC_SEQ_CST) != 0;",
        flags: vec!["-moutline-atomics"],
        libraries: vec!["-lgcc"],
        ..Library::default()
    };
    let outlined = compile("outlined", &outlined);
    expect(&outlined, Check::OutlineAtomics, "has outline atomics (__aarch64_", Warns, Fails);
    // The helpers have the instruction, and ask for it when the library is opened.
    expect(&outlined, Check::Code, "LSE atomics", Warns, Fails);
    expect(&outlined, Check::Undefined, "getauxval is undefined", Nothing, Fails);
}

#[test]
fn a_library_as_the_vendors_own_examples_are_built_gets_warnings_at_most() {
    let folder = common::folder("cxx_operator");
    let (source, path) = (folder.join("operator.cc"), folder.join("libkernel.so"));
    let text = "#include <string>\n#include <vector>\nextern \"C\" unsigned local_copy(void *args) {\n\
                static std::vector<std::string> seen; seen.push_back(std::to_string((unsigned long)args));\n\
                return seen.size() > 1000; }\n";
    std::fs::write(&source, text).unwrap();
    let mut command = std::process::Command::new("aarch64-linux-gnu-g++");
    common::run(command.args(["-shared", "-fPIC", "-O0", "-g", "-o"]).args([&path, &source]));
    let description = compile("cxx_description", &Library::default()).description;
    let built = Built { path, description };
    let any = report(&built, Profile::Any);
    assert!(any.errors == 0 && any.warnings > 0, "{any:#?}");
    let own = report(&built, Profile::Own);
    let words = ["libstdc++.so.6 is needed", "code that runs when it is opened (INIT_ARRAY)", "exports names that no"];
    assert!(words.iter().all(|words| own.findings.iter().any(|one| one.message.contains(words))), "{own:#?}");
}

#[test]
fn the_guide_has_a_row_for_each_check_and_says_first_that_nothing_ran_on_hardware() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/card.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.lines().next().unwrap().contains("not yet run on hardware"));
    for check in Check::ALL {
        assert!(text.contains(&format!("| `{}` | ", check.name())), "docs/card.md has no row {}", check.name());
    }
}
