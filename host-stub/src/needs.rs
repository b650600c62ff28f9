//! Names that a kernel library needs of others, looked for before the runner loads it.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf::{
    DF_1_NOW, DF_BIND_NOW, DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1, DT_NEEDED, DT_RPATH, DT_RUNPATH, R_AARCH64_JUMP_SLOT,
    STB_WEAK,
};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSymbol, RelocationFlags, RelocationTarget};

use crate::file;

/// Largest library that is read, in bytes.
const FILE_MAX: u64 = 200 << 20;
/// Folders of libraries, below the folder of AArch64 libraries.
const FOLDERS: [&str; 4] = ["lib", "usr/lib", "lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"];
/// The C library, which the runner has loaded before any kernel.
const C_LIBRARY: &str = "libc.so.6";

/// What nothing that is loaded with a library defines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Must be there when the library is loaded: data, and with `-z now` functions.
    pub at_load: Vec<String>,
    /// Functions: the call of one ends the kernel.
    pub functions: Vec<String>,
    /// Libraries that are in none of the folders.
    pub libraries: Vec<String>,
    /// It was linked with `-z now`.
    pub binds_now: bool,
}

/// A library as far as it is looked at here.
#[derive(Default)]
struct Names {
    defined: BTreeSet<String>,
    /// Undefined and not weak, each with whether it is only called.
    undefined: Vec<(String, bool)>,
    needed: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    binds_now: bool,
}

impl Names {
    fn read(path: &Path, data: &[u8]) -> Result<Self, object::Error> {
        let elf = ElfFile64::<LittleEndian>::parse(data)?;
        let mut names = Self::default();
        let mut at_load = BTreeSet::new();
        for (_, relocation) in elf.dynamic_relocations().into_iter().flatten() {
            let is_call =
                matches!(relocation.flags(), RelocationFlags::Elf { r_type } if r_type == R_AARCH64_JUMP_SLOT);
            if let RelocationTarget::Symbol(index) = relocation.target()
                && !is_call
            {
                at_load.insert(index.0);
            }
        }
        for symbol in elf.dynamic_symbols() {
            let name = symbol.name()?.to_owned();
            // Also functions that are chosen when they are bound (IFUNC), such as memcpy.
            if !symbol.is_undefined() {
                names.defined.insert(name);
            } else if symbol.elf_symbol().st_bind() != STB_WEAK && !name.is_empty() {
                names.undefined.push((name, !at_load.contains(&symbol.index().0)));
            }
        }
        let origin = path.parent().unwrap_or(Path::new("/"));
        let table = elf.elf_dynamic_table()?;
        for entry in table.iter() {
            match entry.tag {
                DT_NEEDED => names.needed.push(OsStr::from_bytes(table.string(entry)?).into()),
                DT_RPATH | DT_RUNPATH => {
                    let text = String::from_utf8_lossy(table.string(entry)?).into_owned();
                    let origin = origin.to_string_lossy();
                    let folder = |part: &str| part.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
                    names.folders.extend(text.split(':').map(|part| PathBuf::from(folder(part))));
                }
                DT_BIND_NOW => names.binds_now = true,
                DT_FLAGS => names.binds_now |= entry.val & DF_BIND_NOW.0 != 0,
                DT_FLAGS_1 => names.binds_now |= entry.val & DF_1_NOW.0 != 0,
                _ => {}
            }
        }
        Ok(names)
    }
}

/// What the library in `data`, which is at `path`, needs and does not find: in the libraries that it is linked with, looked for as the
/// loader does, and in `given`, which is loaded before. `root`: folder that AArch64 libraries are below.
///
/// # Errors
/// The library is damaged; as a message.
pub fn missing(path: &Path, data: &[u8], given: &[PathBuf], root: &Path) -> Result<Missing, String> {
    let own = Names::read(path, data).map_err(|error| format!("it is a damaged ELF file: {error}"))?;
    let mut missing = Missing { binds_now: own.binds_now, ..Missing::default() };
    let preset = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let common: Vec<PathBuf> =
        std::env::split_paths(&preset).chain(FOLDERS.iter().map(|folder| root.join(folder))).collect();
    let mut defined = own.defined;
    let mut seen = BTreeSet::new();
    let mut next: Vec<(PathBuf, Vec<PathBuf>)> =
        own.needed.into_iter().map(|name| (name, own.folders.clone())).collect();
    next.push((C_LIBRARY.into(), Vec::new()));
    next.extend(given.iter().map(|path| (path.clone(), Vec::new())));
    while let Some((name, folders)) = next.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let is_given = |path: &&PathBuf| path.file_name() == name.file_name();
        let given = given.iter().find(is_given).cloned();
        // A name of the processor's other kind, in a folder that both use, is passed over as the loader does.
        let read = |path: PathBuf| {
            let data = file::read(&path, FILE_MAX).ok().filter(|data| is_aarch64(data))?;
            Names::read(&path, &data).ok()
        };
        let found =
            given.into_iter().chain(folders.iter().chain(&common).map(|folder| folder.join(&name))).find_map(read);
        match found {
            None => missing.libraries.push(name.display().to_string()),
            Some(names) => {
                defined.extend(names.defined);
                next.extend(names.needed.into_iter().map(|name| (name, names.folders.clone())));
            }
        }
    }
    for (name, is_call) in own.undefined {
        if !defined.contains(&name) {
            if is_call && !own.binds_now { &mut missing.functions } else { &mut missing.at_load }.push(name);
        }
    }
    Ok(missing)
}

/// Whether a file is for AArch64.
fn is_aarch64(data: &[u8]) -> bool {
    data.get(18..20) == Some(&object::elf::EM_AARCH64.0.to_le_bytes())
}
