//! The files that belong to one run: library or package, descriptions, whitelist block.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::archive::without_signature;
use crate::checks::{self, Context};
use crate::description::{self, Kernels};
use crate::package;
use crate::report::{Check, Profile, Report, Sink};
use crate::whitelist;

/// Largest file that is read: the runtime refuses libraries above it.
const MAX_FILE: u64 = 200 << 20;

/// File of the whitelist block beside a package.
const WHITELIST: &str = "whitelist.txt";

/// What to check, beside the file itself.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How much is asked.
    pub profile: Profile,
    /// Descriptions of the kernels, in JSON or (`.ini`) in INI form. Without any, those beside the file are taken: for a
    /// library the one with its name, for a package all that name one of its libraries, also in `../config`.
    pub descriptions: Vec<PathBuf>,
    /// The block of the package for the whitelist. Without one, `whitelist.txt` beside the package.
    pub whitelist: Option<PathBuf>,
}

/// Why a file could not be checked at all.
#[derive(thiserror::Error)]
pub enum LintError {
    /// The file can't be read.
    #[error("{} can't be read: {source}", path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Not a file whose end comes.
    #[error("{} is not a regular file", .0.display())]
    NotRegular(PathBuf),
    /// Above what a device takes.
    #[error("{} has {len} bytes; at most {MAX_FILE} can be loaded", path.display())]
    TooLarge {
        /// File.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
    },
    /// Neither of the two kinds.
    #[error("{} is neither a library (ELF) nor a package (tar.gz)", .0.display())]
    Kind(PathBuf),
    /// A description or whitelist block that is not text.
    #[error("{} is not UTF-8 text", .0.display())]
    NotText(PathBuf),
}

/// The message: what `unwrap` and a failed assertion print.
impl std::fmt::Debug for LintError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Checks a library or a package.
///
/// # Errors
/// [`LintError`], when there is nothing that could be checked. What is wrong with a library or a package is no error but a
/// finding of the report.
pub fn lint(path: &Path, options: &Options) -> Result<Report, LintError> {
    let data = read(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut sink = Sink::new(options.profile);
    if data.starts_with(b"\x7fELF") {
        let twin = path.with_extension("json");
        let descriptions = read_descriptions(options, vec![twin], |kernels| names(kernels, &name), &mut sink)?;
        let entries = entries(&descriptions, &name);
        for one in descriptions.iter().filter(|_| entries.is_none()) {
            let message = format!("names no kernel of {name}");
            sink.error(Check::Description, &one.file, message, "none of the library's functions can be launched");
        }
        checks::library(&data, &Context { name: &name, entries: entries.as_ref() }, &mut sink);
    } else if let Some((package, is_signed)) = without_signature(&data) {
        if is_signed {
            sink.note(format!("{name}: signed: the signature is not checked"));
        }
        check_package(path, &name, package, options, &mut sink)?;
    } else {
        return Err(LintError::Kind(path.to_owned()));
    }
    Ok(sink.report(path.display().to_string()))
}

fn check_package(path: &Path, name: &str, data: &[u8], options: &Options, sink: &mut Sink) -> Result<(), LintError> {
    let libraries = package::check(name, data, sink);
    let folder = folder_of(path);
    let beside = [files_in(&folder, &["json", "ini"]), files_in(&folder.join("../config"), &["json", "ini"])].concat();
    let is_ours = |kernels: &Kernels| libraries.keys().any(|library| names(kernels, library));
    let descriptions = read_descriptions(options, beside, is_ours, sink)?;
    let why = "the host finds kernels by the description, and by nothing else";
    for form in [Form::Json, Form::Ini] {
        if descriptions.iter().all(|one| one.form != form) {
            let message = format!("no description in {} form names a kernel of the package", form.name());
            sink.own(Check::Description, name, message, why);
        }
    }
    for one in &descriptions {
        for (kernel, info) in &one.kernels {
            let Some(library) = info.get("kernelSo").filter(|library| !libraries.contains_key(*library)) else {
                continue;
            };
            let message = format!("kernel {kernel}: {library} is not in {name}");
            sink.error_or_warning(Check::Description, &one.file, message, "a launch ends with 11002");
        }
    }
    check_twins(&descriptions, sink);
    for (library, data) in &libraries {
        let entries = entries(&descriptions, library);
        checks::library(data, &Context { name: library, entries: entries.as_ref() }, sink);
    }
    let block = options.whitelist.clone().or_else(|| Some(folder.join(WHITELIST)).filter(|path| path.exists()));
    match block {
        Some(block) => {
            let file = block.file_name().unwrap_or_default().to_string_lossy().into_owned();
            whitelist::check(&file, &read_text(&block)?, name, sink);
        }
        None => {
            let message = format!("there is no {WHITELIST} beside it, and none was named");
            let why = "packages that the whitelist does not name are not sent to a device: a launch ends with 11002";
            sink.own(Check::Whitelist, name, message, why);
        }
    }
    Ok(())
}

/// The INI form must say what the JSON says.
fn check_twins(descriptions: &[Description], sink: &mut Sink) {
    let all = |form| {
        let kernels = descriptions.iter().filter(move |one| one.form == form).flat_map(|one| &one.kernels);
        kernels.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (json, ini) = (all(Form::Json), all(Form::Ini));
    if json.is_empty() || ini.is_empty() || json == ini {
        return;
    }
    let differing = json.keys().chain(ini.keys()).find(|name| json.get(*name) != ini.get(*name));
    let file = descriptions.iter().find(|one| one.form == Form::Ini).map_or("", |one| &one.file);
    let message = format!("kernel {} differs from the JSON form", differing.map_or("", |name| name));
    sink.error_or_warning(
        Check::Description,
        file,
        message,
        "tools that read the one or the other do different things",
    );
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Ini,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Ini => "INI",
        }
    }
}

struct Description {
    file: String,
    form: Form,
    kernels: Kernels,
}

/// Functions of the kernels of `library`; `None` where no description has one.
fn entries(descriptions: &[Description], library: &str) -> Option<BTreeSet<String>> {
    let entries = description::functions(descriptions.iter().map(|one| &one.kernels), library);
    Some(entries).filter(|entries| !entries.is_empty())
}

/// Whether a description has a kernel of `library`.
fn names(kernels: &Kernels, library: &str) -> bool {
    kernels.values().any(|info| info.get("kernelSo").is_some_and(|name| name == library))
}

/// The descriptions that were named; without any, those of `beside` that are ours.
fn read_descriptions(
    options: &Options,
    beside: Vec<PathBuf>,
    is_ours: impl Fn(&Kernels) -> bool,
    sink: &mut Sink,
) -> Result<Vec<Description>, LintError> {
    let are_named = !options.descriptions.is_empty();
    let paths = if are_named { options.descriptions.clone() } else { beside };
    let mut descriptions = Vec::new();
    for path in paths.into_iter().filter(|path| are_named || path.is_file()) {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = read_text(&path)?;
        let form = if path.extension().is_some_and(|extension| extension == "ini") { Form::Ini } else { Form::Json };
        let mut found = Sink::new(sink.profile);
        let kernels = match form {
            Form::Json => description::read_json(&file, &text, &mut found),
            Form::Ini => description::read_ini(&file, &text, &mut found),
        };
        // A folder may have descriptions of other packages, and files that are none.
        if !are_named && !is_ours(&kernels) {
            sink.note(format!("{file}: not used: it has no kernel of this file"));
            continue;
        }
        sink.absorb(found);
        if form == Form::Json {
            description::check(&file, &kernels, sink);
        }
        descriptions.push(Description { file, form, kernels });
    }
    Ok(descriptions)
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Files of a folder with one of the extensions, by name; none where there is no such folder.
fn files_in(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|found| extensions.iter().any(|extension| found == *extension)));
    paths.sort();
    paths
}

fn read(path: &Path) -> Result<Vec<u8>, LintError> {
    let failed = |source| LintError::Read { path: path.to_owned(), source };
    // Asked before it is opened: opening a FIFO waits for a writer.
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(LintError::NotRegular(path.to_owned()));
    }
    if metadata.len() > MAX_FILE {
        return Err(LintError::TooLarge { path: path.to_owned(), len: metadata.len() });
    }
    let mut data = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_FILE).read_to_end(&mut data).map_err(failed)?;
    Ok(data)
}

fn read_text(path: &Path) -> Result<String, LintError> {
    String::from_utf8(read(path)?).map_err(|_| LintError::NotText(path.to_owned()))
}
