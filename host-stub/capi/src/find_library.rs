//! Where the library of a description is: files, and packages as the vendor's install them.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use host_stub::{Cpu, file};

use super::binary_error::BinaryError;
use super::library::OWN_MACHINE;
use super::memory_file;

/// Largest package, in bytes.
const PACKAGE_MAX: u64 = 200 << 20;
/// Bytes of an ELF file up to its machine.
const HEAD: usize = 20;

/// Where the library of a kernel is (`cpuKernelMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// 0: on the device since it was opened. With the image in QEMU that is the image itself.
    OnDevice,
    /// 1: beside the description.
    Beside,
    /// 2: in the bytes that are loaded.
    InData,
}

/// A library that a description may mean.
struct Candidate {
    /// The file, or the package and the path inside it.
    shown: PathBuf,
    /// Bytes of a library in a package; `None`: `shown` is a file.
    packed: Option<Vec<u8>>,
}

/// A library that was found.
pub struct Found {
    /// What opens it.
    pub path: PathBuf,
    /// Where it is, for messages.
    pub shown: PathBuf,
}

/// The library `name` of the description at `path`. [`Mode::Beside`]: in the folder of the description. [`Mode::OnDevice`]: there, in
/// `../kernel`, and in every package of `../kernel`. For a description that is a symbolic link, the folder of its target counts. Of
/// several, those for the machine of `cpu` count.
///
/// # Errors
/// There is none or more than one, or a package with it is damaged.
pub fn find(path: &Path, mode: Mode, cpu: Cpu, name: &str) -> Result<Found, BinaryError> {
    let read = |source| BinaryError::Read { path: path.to_owned(), source };
    let real = path.canonicalize().map_err(read)?;
    let folder = real.parent().unwrap_or(Path::new("/"));
    let (mut looked, mut found) = (Vec::new(), Vec::<Candidate>::new());
    let mut look_for_file = |path: PathBuf| {
        looked.push(path.display().to_string());
        // Absolute, so that the dynamic linker does not use its search path.
        if let Ok(shown) = path.canonicalize()
            && found.iter().all(|other| other.shown != shown)
        {
            found.push(Candidate { shown, packed: None });
        }
    };
    look_for_file(folder.join(name));
    if mode == Mode::OnDevice {
        let packages = folder.join("../kernel");
        look_for_file(packages.join(name));
        for package in packages_in(&packages) {
            match library_of(&package, name) {
                Ok(None) => looked.push(package.display().to_string()),
                Ok(Some(bytes)) => {
                    let shown = package.join("aicpu_kernels_device").join(name);
                    found.push(Candidate { shown, packed: Some(bytes) });
                }
                Err(reason) => return Err(BinaryError::Load { path: package, reason }),
            }
        }
    }
    let machine = match cpu {
        Cpu::Linux => Some(object::elf::EM_AARCH64.0),
        Cpu::Native => Some(OWN_MACHINE),
        Cpu::Qemu => None,
    };
    if found.len() > 1 && found.iter().any(|one| one.machine() == machine) {
        found.retain(|one| one.machine() == machine);
    }
    if found.len() > 1 {
        let places = found.into_iter().map(|one| one.shown).collect();
        return Err(BinaryError::TwoLibraries { name: name.to_owned(), places });
    }
    let Some(Candidate { shown, packed }) = found.pop() else {
        return Err(BinaryError::NoLibrary { name: name.to_owned(), looked });
    };
    let path = match packed {
        None => shown.clone(),
        Some(bytes) => memory_file::path_of(&bytes, name)
            .map_err(|error| BinaryError::Load { path: shown.clone(), reason: error.to_string() })?,
    };
    Ok(Found { path, shown })
}

impl Candidate {
    /// Machine that it is for.
    fn machine(&self) -> Option<u16> {
        let mut head = [0; HEAD];
        match &self.packed {
            Some(bytes) => head.copy_from_slice(bytes.get(..HEAD)?),
            None => file::open_regular(&self.shown).and_then(|mut file: File| file.read_exact(&mut head)).ok()?,
        }
        head.starts_with(b"\x7fELF").then(|| u16::from_le_bytes([head[18], head[19]]))
    }
}

/// Packages of a folder, by name; none where there is no such folder.
fn packages_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(folder) = folder.canonicalize() else { return Vec::new() };
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(".tar.gz"));
    paths.sort();
    paths
}

/// The library `name` of a package; `None`: the package has none of that name.
fn library_of(package: &Path, name: &str) -> Result<Option<Vec<u8>>, String> {
    let data = file::read(package, PACKAGE_MAX).map_err(|error| error.to_string())?;
    hcomm_card_lint::library_of_package(&data, name)
}
