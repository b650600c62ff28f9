//! Reads the image: loadable segments, and the kernels that it names in section `.kernels`.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use hcomm_aicpu::spec::map::{IMAGE_PHYS, IMAGE_SIZE};
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection};

use crate::{file, installed};

/// Environment variable that names the image.
pub const IMAGE_VAR: &str = "HCOMM_IMAGE";
/// Bytes of one entry of section `.kernels`: pointer to the name, pointer to the function.
const KERNEL_ENTRY: usize = 16;
/// Largest file of an image, in bytes: its area has 2 MiB, the rest is for debugging.
const FILE_MAX: u64 = 256 << 20;
/// Longest name of a kernel.
const NAME_MAX: usize = 255;

/// Why an image can't be used.
#[derive(thiserror::Error)]
pub enum LoadError {
    /// No image in the places that are searched.
    #[error("no device image: build it with `make image` (looked for {})", list(.0))]
    NotBuilt(Vec<PathBuf>),
    /// The file can't be read.
    #[error("device image {}: {source}", path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// An empty file.
    #[error("device image {} is empty", .0.display())]
    Empty(PathBuf),
    /// Not an ELF file.
    #[error("device image {} is not an elf file", .0.display())]
    NotElf(PathBuf),
    /// An ELF file of 32-bit words.
    #[error("device image {} is a 32-bit elf file, not a 64-bit one", .0.display())]
    Not64Bit(PathBuf),
    /// A big-endian ELF file.
    #[error("device image {} is a big-endian elf file, not a little-endian one", .0.display())]
    BigEndian(PathBuf),
    /// For another processor.
    #[error("device image {} is for machine {} ({found}), not for aarch64 ({})", path.display(), machine(*found), elf::EM_AARCH64.0)]
    WrongMachine {
        /// File.
        path: PathBuf,
        /// `e_machine` of the file.
        found: u16,
    },
    /// With flags of an ABI that this device does not have.
    #[error("device image {} has elf flags {found:#x}, not 0", path.display())]
    WrongFlags {
        /// File.
        path: PathBuf,
        /// `e_flags` of the file.
        found: u32,
    },
    /// Not linked to run at its place.
    #[error("device image {} has elf type {found}, not {} (executable){}", path.display(), elf::ET_EXEC.0, if *found == elf::ET_DYN.0 { ": a library made for AArch64 Linux: use --cpu linux" } else { "" })]
    NotExecutable {
        /// File.
        path: PathBuf,
        /// `e_type` of the file.
        found: u16,
    },
    /// The file ends early or contradicts itself.
    #[error("device image {} is truncated or damaged: {reason}", path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A segment that does not lie in the image's area.
    #[error("device image {}: segment of {len} bytes at {addr:#x} is not in {IMAGE_PHYS:#x} + {IMAGE_SIZE} bytes", path.display())]
    BadSegment {
        /// File.
        path: PathBuf,
        /// Physical address.
        addr: u64,
        /// Bytes in memory.
        len: u64,
    },
    /// A library can't be used.
    #[error("library {}: {reason}", path.display())]
    Library {
        /// File.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// No kernel has this name.
    #[error("no kernel {name}: there are {}", kernels.join(", "))]
    NoSuchKernel {
        /// The name.
        name: String,
        /// The kernels of the image.
        kernels: Vec<String>,
    },
}

/// As the message: what `unwrap` and `main` print.
impl std::fmt::Debug for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Name of an ELF machine.
pub fn machine(number: u16) -> &'static str {
    match elf::Machine(number) {
        elf::EM_386 => "x86",
        elf::EM_X86_64 => "x86-64",
        elf::EM_ARM => "arm",
        elf::EM_AARCH64 => "aarch64",
        elf::EM_RISCV => "risc-v",
        elf::EM_PPC64 => "powerpc64",
        elf::EM_S390 => "s390",
        elf::EM_LOONGARCH => "loongarch",
        _ => "unknown",
    }
}

/// One loadable segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Physical address.
    pub addr: u64,
    /// Its bytes in the file.
    pub bytes: Vec<u8>,
    /// Bytes in memory; those that the file does not have are zero.
    pub len: u64,
}

/// A kernel of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageKernel {
    /// Its name.
    pub name: String,
    /// Address of its function.
    pub entry: u64,
}

/// An image that has been read and checked.
#[derive(Clone, Debug)]
pub struct Image {
    /// Where it came from.
    pub path: PathBuf,
    /// The file.
    pub elf: Vec<u8>,
    /// Where its first instruction is.
    pub entry: u64,
    /// Segments to load.
    pub segments: Vec<Segment>,
    /// Kernels, in the order of the section.
    pub kernels: Vec<ImageKernel>,
}

impl Image {
    /// Reads `path`, or without one the image that [`find`] finds.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn open(path: Option<&Path>) -> Result<Self, LoadError> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => find()?,
        };
        let elf = file::read(&path, FILE_MAX).map_err(|source| LoadError::Read { path: path.clone(), source })?;
        Self::parse(path, elf)
    }

    /// Reads the bytes of an ELF file. `path` is for messages.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn parse(path: PathBuf, data: Vec<u8>) -> Result<Self, LoadError> {
        check_ident(&path, &data)?;
        let damaged = |error: object::Error| LoadError::Damaged { path: path.clone(), reason: error.to_string() };
        let header = FileHeader64::<LittleEndian>::parse(&*data).map_err(damaged)?;
        let found = header.e_machine(LittleEndian).0;
        if found != elf::EM_AARCH64.0 {
            return Err(LoadError::WrongMachine { path, found });
        }
        let found = header.e_flags(LittleEndian).0;
        if found != 0 {
            return Err(LoadError::WrongFlags { path, found });
        }
        let found = header.e_type(LittleEndian).0;
        if found != elf::ET_EXEC.0 {
            return Err(LoadError::NotExecutable { path, found });
        }
        let mut segments = Vec::new();
        // Segments may name the same bytes of the file: together they can't be larger than what they are loaded into.
        let mut room = IMAGE_SIZE;
        for program in header.program_headers(LittleEndian, &*data).map_err(damaged)? {
            if program.p_type(LittleEndian) != elf::PT_LOAD || program.p_memsz(LittleEndian) == 0 {
                continue;
            }
            let (addr, len) = (program.p_paddr(LittleEndian), program.p_memsz(LittleEndian));
            let inside = addr >= IMAGE_PHYS && addr.checked_add(len).is_some_and(|end| end <= IMAGE_PHYS + IMAGE_SIZE);
            if !inside || program.p_filesz(LittleEndian) > len {
                return Err(LoadError::BadSegment { path, addr, len });
            }
            let Ok(bytes) = program.data(LittleEndian, &*data) else {
                let reason = format!("the file ends before segment {addr:#x} does");
                return Err(LoadError::Damaged { path, reason });
            };
            room = room.checked_sub(len).ok_or_else(|| LoadError::Damaged {
                path: path.clone(),
                reason: format!("its segments are larger than {IMAGE_SIZE} bytes together"),
            })?;
            segments.push(Segment { addr, bytes: bytes.to_vec(), len });
        }
        let entry = header.e_entry(LittleEndian);
        if !is_inside(&segments, entry) {
            return Err(LoadError::Damaged { path, reason: format!("its entry {entry:#x} is in no segment") });
        }
        let kernels =
            read_kernels(&data, &segments).map_err(|reason| LoadError::Damaged { path: path.clone(), reason })?;
        Ok(Self { path, elf: data, entry, segments, kernels })
    }

    /// The kernel with this name.
    ///
    /// # Errors
    /// [`LoadError::NoSuchKernel`].
    pub fn kernel(&self, name: &str) -> Result<&ImageKernel, LoadError> {
        self.kernels.iter().find(|kernel| kernel.name == name).ok_or_else(|| LoadError::NoSuchKernel {
            name: name.to_owned(),
            kernels: self.kernels.iter().map(|kernel| kernel.name.clone()).collect(),
        })
    }
}

fn check_ident(path: &Path, data: &[u8]) -> Result<(), LoadError> {
    if data.is_empty() {
        return Err(LoadError::Empty(path.to_owned()));
    }
    if !data.starts_with(&elf::ELFMAG) {
        return Err(LoadError::NotElf(path.to_owned()));
    }
    match data.get(4).copied().map(elf::FileClass) {
        Some(elf::ELFCLASS64) => {}
        Some(elf::ELFCLASS32) => return Err(LoadError::Not64Bit(path.to_owned())),
        _ => return Err(LoadError::Damaged { path: path.to_owned(), reason: "no valid class in byte 4".to_owned() }),
    }
    match data.get(5).copied().map(elf::DataEncoding) {
        Some(elf::ELFDATA2LSB) => Ok(()),
        Some(elf::ELFDATA2MSB) => Err(LoadError::BigEndian(path.to_owned())),
        _ => Err(LoadError::Damaged { path: path.to_owned(), reason: "no valid byte order in byte 5".to_owned() }),
    }
}

/// Whether one of the segments has the address.
fn is_inside(segments: &[Segment], addr: u64) -> bool {
    segments.iter().any(|segment| segment.addr <= addr && addr - segment.addr < segment.len)
}

/// Entries of section `.kernels`.
fn read_kernels(data: &[u8], segments: &[Segment]) -> Result<Vec<ImageKernel>, String> {
    let file = object::read::elf::ElfFile64::<LittleEndian>::parse(data).map_err(|error| error.to_string())?;
    let section = file.section_by_name(".kernels").ok_or("it has no section .kernels")?;
    let bytes = section.data().map_err(|error| format!("section .kernels: {error}"))?;
    if bytes.len() % KERNEL_ENTRY != 0 {
        return Err(format!("section .kernels has {} bytes, not a multiple of {KERNEL_ENTRY}", bytes.len()));
    }
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let mut kernels = Vec::new();
    for kernel in bytes.chunks_exact(KERNEL_ENTRY) {
        let (name, entry) = (word(&kernel[..8]), word(&kernel[8..]));
        let name = read_name(segments, name).ok_or_else(|| format!("section .kernels: no name at {name:#x}"))?;
        if !is_inside(segments, entry) {
            return Err(format!("section .kernels: kernel {name} at {entry:#x} is not in the image"));
        }
        kernels.push(ImageKernel { name, entry });
    }
    Ok(kernels)
}

/// The zero-terminated text at `addr`.
fn read_name(segments: &[Segment], addr: u64) -> Option<String> {
    let find = |segment: &&Segment| segment.addr <= addr && addr - segment.addr < segment.bytes.len() as u64;
    let segment = segments.iter().find(find)?;
    let bytes = &segment.bytes[(addr - segment.addr) as usize..];
    let len = bytes.iter().take(NAME_MAX + 1).position(|&byte| byte == 0)?;
    String::from_utf8(bytes[..len].to_vec()).ok()
}

/// Looks for the image: `HCOMM_IMAGE`, then where it is installed, then the target folders that can have it, the image profile first.
///
/// # Errors
/// [`LoadError::NotBuilt`], with the places.
pub fn find() -> Result<PathBuf, LoadError> {
    if let Some(path) = std::env::var_os(IMAGE_VAR) {
        return Ok(path.into());
    }
    let mut installed = installed::folders().into_iter().map(|folder| folder.join("hcomm-image"));
    if let Some(path) = installed.find(|path| path.is_file()) {
        return Ok(path);
    }
    let mut looked = Vec::new();
    for folder in target_folders() {
        for profile in ["image", "release", "debug"] {
            let path = folder.join("aarch64-unknown-none").join(profile).join("hcomm-image");
            if path.is_file() {
                return Ok(path);
            }
            looked.push(path);
        }
    }
    looked.retain(|path| path.to_string_lossy().contains("/image/"));
    looked.dedup();
    Err(LoadError::NotBuilt(looked))
}

/// Target folders that may hold what was built for this program.
pub(crate) fn target_folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(folder) = std::env::var_os("CARGO_TARGET_DIR") {
        folders.push(PathBuf::from(folder));
    }
    // The target folder that this program was built in: the one that holds target/debug/host-stub or .../deps/test.
    if let Ok(program) = std::env::current_exe() {
        folders.extend(program.ancestors().skip(2).take(3).map(Path::to_owned));
    }
    folders.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"));
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Head of a 64-bit little-endian executable for `machine`, and nothing else.
    fn header(machine: elf::Machine) -> Vec<u8> {
        let mut data = vec![0; 64];
        data[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', elf::ELFCLASS64.0, elf::ELFDATA2LSB.0, 1]);
        data[16..18].copy_from_slice(&elf::ET_EXEC.0.to_le_bytes());
        data[18..20].copy_from_slice(&machine.0.to_le_bytes());
        data[20] = 1;
        data[52] = 64;
        data
    }

    fn message(data: Vec<u8>) -> String {
        Image::parse("x.elf".into(), data).unwrap_err().to_string()
    }

    #[test]
    fn each_wrong_file_has_its_own_error() {
        assert_eq!(message(Vec::new()), "device image x.elf is empty");
        assert_eq!(message(b"#!/bin/sh".to_vec()), "device image x.elf is not an elf file");
        assert_eq!(
            message(header(elf::EM_X86_64)),
            "device image x.elf is for machine x86-64 (62), not for aarch64 (183)"
        );
        let mut small = header(elf::EM_ARM);
        small[4] = elf::ELFCLASS32.0;
        assert_eq!(message(small), "device image x.elf is a 32-bit elf file, not a 64-bit one");
        let cut = header(elf::EM_AARCH64)[..40].to_vec();
        assert!(message(cut).starts_with("device image x.elf is truncated or damaged"));
        let mut shared = header(elf::EM_AARCH64);
        shared[16] = 3;
        assert_eq!(
            message(shared),
            "device image x.elf has elf type 3, not 2 (executable): a library made for AArch64 Linux: use --cpu linux"
        );
        assert!(message(header(elf::EM_AARCH64)).ends_with("its entry 0x0 is in no segment"));
    }

    /// A file with `count` headers of the same segment: 1 MiB at the start of the image's area, of which the file has nothing.
    fn with_segments(count: u16, entry: u64) -> Vec<u8> {
        let mut data = header(elf::EM_AARCH64);
        data[24..32].copy_from_slice(&entry.to_le_bytes());
        data[32..40].copy_from_slice(&64_u64.to_le_bytes());
        data[54..56].copy_from_slice(&56_u16.to_le_bytes());
        data[56..58].copy_from_slice(&count.to_le_bytes());
        for _ in 0..count {
            let at = data.len();
            data.resize(at + 56, 0);
            data[at..at + 4].copy_from_slice(&elf::PT_LOAD.0.to_le_bytes());
            data[at + 24..at + 32].copy_from_slice(&IMAGE_PHYS.to_le_bytes());
            data[at + 40..at + 48].copy_from_slice(&(1_u64 << 20).to_le_bytes());
        }
        data
    }

    #[test]
    fn segments_are_together_no_larger_than_the_images_area() {
        let damaged = "device image x.elf is truncated or damaged: ";
        assert_eq!(message(with_segments(2, IMAGE_PHYS)), format!("{damaged}it has no section .kernels"));
        let text = format!("{damaged}its segments are larger than 2097152 bytes together");
        for count in [3, 1000] {
            assert_eq!(message(with_segments(count, IMAGE_PHYS)), text);
        }
    }

    #[test]
    fn first_instruction_is_in_a_segment() {
        for entry in [0, IMAGE_PHYS - 4, IMAGE_PHYS + (1 << 20), u64::MAX] {
            let text = format!("device image x.elf is truncated or damaged: its entry {entry:#x} is in no segment");
            assert_eq!(message(with_segments(1, entry)), text);
        }
    }

    #[test]
    fn missing_file_is_named() {
        let error = Image::open(Some(Path::new("/nowhere/image"))).unwrap_err();
        assert!(error.to_string().starts_with("device image /nowhere/image: "), "{error}");
    }
}
