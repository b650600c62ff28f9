//! Libraries for the AI CPU, made by the cross compiler that `scripts/setup.sh cross` installs.
#![allow(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to compile. The default is a library without a finding.
#[derive(Clone, Debug)]
pub struct Library<'a> {
    /// `-soname`; `None` leaves it out.
    pub soname: Option<&'a str>,
    /// Names that stay visible.
    pub exports: Vec<&'a str>,
    /// Declarations before the kernel.
    pub source: &'a str,
    /// Body of the kernel `local_copy(void *args)`.
    pub body: &'a str,
    /// More options, after all others.
    pub flags: Vec<&'a str>,
    /// Libraries that it needs, each with the version of `memcpy` in it, if that has one.
    pub needs: Vec<(&'a str, &'a str)>,
    /// Libraries to link with.
    pub libraries: Vec<&'a str>,
}

impl Default for Library<'_> {
    fn default() -> Self {
        Self {
            soname: Some("libkernel.so"),
            exports: vec!["local_copy"],
            source: "extern int halSqCqQuery(unsigned, void *) __attribute__((weak));",
            body: "return (unsigned long)args == 7;",
            flags: Vec::new(),
            needs: Vec::new(),
            libraries: Vec::new(),
        }
    }
}

/// A library and its description.
#[derive(Clone, Debug)]
pub struct Built {
    pub path: PathBuf,
    pub description: PathBuf,
}

/// Empty folder of a test. `name` is its own.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a command to its end; its output is told if it fails.
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; scripts/setup.sh cross installs it"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

fn gcc() -> Command {
    let mut command = Command::new("aarch64-linux-gnu-gcc");
    command.args(["-shared", "-nostdlib", "-fPIC", "-ffreestanding", "-fno-builtin"]);
    command
}

fn description_of(library: &str) -> String {
    format!(
        r#"{{"LocalCopy":{{"opInfo":{{"opKernelLib":"AICPUKernel","kernelSo":"{library}","functionName":"local_copy"}}}}}}"#
    )
}

/// Compiles a library into a folder of its own.
pub fn compile(name: &str, library: &Library) -> Built {
    let folder = folder(name);
    let source = folder.join("kernel.c");
    let text = format!("{}\nunsigned local_copy(void *args) {{ {} }}\n", library.source, library.body);
    fs::write(&source, text).unwrap();
    let names = folder.join("names.map");
    let globals =
        if library.exports.is_empty() { String::new() } else { format!("global: {}; ", library.exports.join("; ")) };
    fs::write(&names, format!("{{ {globals}local: *; }};")).unwrap();
    let path = folder.join("libkernel.so");
    let mut command = gcc();
    command
        .args(["-O1", "-march=armv8-a", "-mno-outline-atomics"])
        .args(["-Wl,-z,now,-z,relro,-z,noexecstack,-z,text,-z,max-page-size=65536"])
        .arg(format!("-Wl,--version-script={}", names.display()))
        .args(library.soname.map(|soname| format!("-Wl,-soname,{soname}")))
        .arg("-o")
        .args([&path, &source])
        .args(&library.flags);
    for (needed, version) in &library.needs {
        command.arg("-Wl,--no-as-needed").arg(stub(&folder, needed, version));
    }
    run(command.args(&library.libraries));
    let description = folder.join("libkernel.json");
    fs::write(&description, description_of("libkernel.so")).unwrap();
    Built { path, description }
}

/// A library called `name` that defines `memcpy`, at `version` if that is not empty.
fn stub(folder: &Path, name: &str, version: &str) -> PathBuf {
    let stubs = folder.join("stubs");
    fs::create_dir_all(&stubs).unwrap();
    let (source, path) = (stubs.join("stub.c"), stubs.join(name));
    fs::write(&source, "void *memcpy(void *to, const void *from, unsigned long n) { return n ? to : (void *)from; }")
        .unwrap();
    let mut command = gcc();
    command.arg(format!("-Wl,-soname,{name}")).arg("-o").args([&path, &source]);
    if !version.is_empty() {
        let versions = stubs.join("versions.map");
        fs::write(&versions, format!("{version} {{ memcpy; }};")).unwrap();
        command.arg(format!("-Wl,--version-script={}", versions.display()));
    }
    run(&mut command);
    path
}

impl Built {
    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    /// A copy with other bytes, in a folder beside it.
    pub fn tampered(&self, name: &str, edit: &dyn Fn(&mut Vec<u8>)) -> Self {
        let folder = self.path.parent().unwrap().join(name);
        fs::create_dir_all(&folder).unwrap();
        let mut data = self.bytes();
        edit(&mut data);
        let path = folder.join("libkernel.so");
        fs::write(&path, data).unwrap();
        Self { path, description: self.description.clone() }
    }

    /// A copy with another name, and a description that knows it.
    pub fn renamed(&self, name: &str) -> Self {
        let path = self.path.with_file_name(name);
        fs::copy(&self.path, &path).unwrap();
        let description = self.path.with_file_name("renamed.json");
        fs::write(&description, description_of(name)).unwrap();
        Self { path, description }
    }
}

/// Overwrites bytes.
pub fn put(data: &mut [u8], at: usize, bytes: &[u8]) {
    data[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Where the first program header of a type lies.
pub fn offset_of_segment(data: &[u8], kind: u32) -> usize {
    let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap()) as usize;
    let (table, count) = (word(32), usize::from(u16::from_le_bytes([data[56], data[57]])));
    let headers = (0..count).map(|index| table + index * 56);
    let has_kind = |at: &usize| data[*at..*at + 4] == kind.to_le_bytes();
    headers.into_iter().find(has_kind).expect("a program header of the type")
}
