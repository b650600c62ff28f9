//! Function, file and line of an address in an ELF file: the image, this program, a library.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use addr2line::Context;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

type Reader<'d> = EndianSlice<'d, LittleEndian>;

/// Where an address is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Function, as the source names it; empty if it is not known.
    pub function: String,
    /// Path of the source file and line.
    pub line: Option<(String, u32)>,
    /// First address of the symbol that the code belongs to, 0 if it is in none. One for a function and all that was
    /// inlined into it.
    pub symbol: u64,
    /// Crate of Rust that the source file belongs to, if it is one that this program was built with.
    pub crate_name: Option<String>,
}

impl Place {
    /// Whether the code is of Rust's library or of another crate.
    pub fn is_library(&self) -> bool {
        self.line.as_ref().is_some_and(|(file, _)| is_library(file))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let function = if self.function.is_empty() { "unknown code" } else { &self.function };
        match &self.line {
            Some((file, line)) => write!(f, "{function} ({file}:{line})"),
            None => f.write_str(function),
        }
    }
}

/// What knows where an address is.
pub trait Locate {
    /// Where `addr` is: the function that the code was written in first, then those that it was inlined into. At least one.
    fn places(&self, addr: u64) -> Vec<Place>;

    /// First address of the symbol that `addr` belongs to, 0 if it is in none.
    fn symbol(&self, addr: u64) -> u64 {
        self.places(addr)[0].symbol
    }
}

/// A function of the symbol table.
struct Symbol {
    start: u64,
    end: u64,
    name: String,
}

/// Symbols and line table of an image. An image without them has numbers only.
#[derive(Default)]
pub struct Symbols<'d> {
    /// `None`: no line table that can be read.
    lines: Option<Context<Reader<'d>>>,
    build: Build,
    /// Functions, by address.
    functions: Vec<Symbol>,
    /// Address of the first byte of the file, as the file has it.
    start: u64,
    /// Empty if the image does not say. Nothing is mapped below it.
    stack: Range<u64>,
}

/// Bytes below the stack pointer that a store may reach before it has moved the pointer: 512, the limit of a pre-indexed
/// store of a pair, and what code of the kernel may still address from a frame pointer.
const BELOW_SP: u64 = 4096;

impl<'d> Symbols<'d> {
    /// Symbols of the image in `elf`.
    pub fn new(elf: &'d [u8]) -> Self {
        let Ok(file) = ElfFile64::<object::LittleEndian>::parse(elf) else { return Self::default() };
        let named = |name: &str| file.symbols().find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address());
        let stack = named("__stack_bottom").unwrap_or(0)..named("__stack_top").unwrap_or(0);
        let functions = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() != 0);
        let mut functions: Vec<_> = functions
            .map(|symbol| Symbol {
                start: symbol.address(),
                end: symbol.address().saturating_add(symbol.size()),
                name: demangled(symbol.name().unwrap_or_default()),
            })
            .collect();
        functions.sort_by_key(|symbol| symbol.start);
        let section = |id: SectionId| -> Result<Reader<'d>, addr2line::gimli::Error> {
            let data = file.section_by_name(id.name()).and_then(|section| section.data().ok()).unwrap_or_default();
            Ok(Reader::new(data, LittleEndian))
        };
        let dwarf = Dwarf::load(section).ok();
        let build = dwarf.as_ref().map(Build::of).unwrap_or_default();
        let lines = dwarf.and_then(|dwarf| Context::from_dwarf(dwarf).ok());
        let loaded = file.segments().map(|segment| segment.address().saturating_sub(segment.file_range().0));
        let start = loaded.min().unwrap_or(0);
        Self { lines, build, functions, start, stack }
    }

    /// The crate of a source file: the one with the innermost folder that it is in.
    fn crate_of(&self, file: &str) -> Option<String> {
        let is_inside = |(folder, _): &&(PathBuf, String)| Path::new(file).starts_with(folder);
        let crates = self.build.crates.iter().filter(is_inside);
        crates.max_by_key(|(folder, _)| folder.as_os_str().len()).map(|(_, name)| name.clone())
    }

    /// Path of a source file: inside a folder that the image was built in relative to it.
    fn short(&self, file: &str) -> String {
        let inside = self.build.folders.iter().find_map(|folder| Path::new(file).strip_prefix(folder).ok());
        inside.unwrap_or(Path::new(file)).display().to_string()
    }

    /// Address of the first byte of the file, as the file has it.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The stack of kernels.
    pub fn stack(&self) -> Range<u64> {
        self.stack.clone()
    }

    /// Whether an access to `addr` is that of a stack that has overflowed: below the stack, and not below what code with the
    /// stack pointer `sp` uses.
    pub fn is_stack_overflow(&self, addr: u64, sp: u64) -> bool {
        addr < self.stack.start && sp <= self.stack.end && addr >= sp.saturating_sub(BELOW_SP)
    }
}

impl Locate for Symbols<'_> {
    fn places(&self, addr: u64) -> Vec<Place> {
        let index = self.functions.partition_point(|symbol| symbol.start <= addr);
        let symbol = index.checked_sub(1).map(|index| &self.functions[index]).filter(|symbol| addr < symbol.end);
        let base = symbol.map_or(Place::default(), |symbol| Place {
            function: symbol.name.clone(),
            line: None,
            symbol: symbol.start,
            crate_name: None,
        });
        let mut places = Vec::new();
        if let Some(mut frames) = self.lines.as_ref().and_then(|lines| lines.find_frames(addr).skip_all_loads().ok()) {
            // Frames after one that can't be read are left out.
            while let Ok(Some(frame)) = frames.next() {
                let mut place = base.clone();
                if let Some(Ok(name)) = frame.function.as_ref().map(|name| name.demangle()) {
                    place.function = plain(&name).to_owned();
                }
                let location = frame.location.and_then(|location| Some((location.file?, location.line?)));
                place.crate_name = location.and_then(|(file, _)| self.crate_of(file));
                place.line = location.map(|(file, line)| (self.short(file), line));
                places.push(place);
            }
        }
        if places.is_empty() {
            places.push(base);
        }
        places
    }
}

fn demangled(name: &str) -> String {
    let name = addr2line::demangle_auto(name.into(), None);
    plain(&name).to_owned()
}

/// Whether a path is that of Rust's library or of another crate.
fn is_library(path: &str) -> bool {
    ["/rustc/", "/registry/src/"].iter().any(|part| path.contains(part))
}

/// Where a program was built; that may be another place than that of this one.
#[derive(Default)]
struct Build {
    /// Folders that the compilers ran in, but for those of libraries.
    folders: BTreeSet<String>,
    /// Source folders and names of the crates.
    crates: BTreeSet<(PathBuf, String)>,
}

impl Build {
    fn of(dwarf: &Dwarf<Reader<'_>>) -> Self {
        let mut build = Self::default();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = dwarf.unit(header) else { continue };
            let folder = unit.comp_dir.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
            let name = unit.name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            // A unit of Rust is called `src/lib.rs/@/name.hash-cgu.0`; after an incremental build without the name, but then
            // functions have full paths.
            if let Some((root, unit)) = name.split_once("/@/")
                && let (Some(source), Some((name, _))) = (Path::new(root).parent(), unit.split_once('.'))
            {
                build.crates.insert((Path::new(&folder).join(source), name.to_owned()));
            }
            if !folder.is_empty() && !is_library(&folder) {
                build.folders.insert(folder);
            }
        }
        build
    }
}

/// A path of Rust without type parameters and hash.
fn plain(name: &str) -> &str {
    let name = without_hash(name);
    // A name that starts with `<` is that of an implementation.
    match name.find('<') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// A path of Rust without the hash that ends it.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => path,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_symbols_an_address_is_unknown_code() {
        for elf in [&b""[..], b"no elf"] {
            let symbols = Symbols::new(elf);
            assert_eq!(symbols.places(0x4020_0000), [Place::default()]);
            assert_eq!(Place::default().to_string(), "unknown code");
            assert!(!symbols.is_stack_overflow(0, 0));
        }
    }

    /// Case 401.
    #[test]
    fn overflow_is_an_access_between_stack_pointer_and_stack() {
        let symbols = Symbols { stack: 0x10_0000..0x11_0000, ..Symbols::default() };
        let is_overflow = |addr, sp| symbols.is_stack_overflow(addr, sp);
        // The frame is larger than the stack, whatever part of it is used first.
        assert!(is_overflow(0x8_0000, 0x8_0000) && is_overflow(0xf_fff8, 0x8_0000));
        // A store that moves the stack pointer.
        assert!(is_overflow(0xf_fff0, 0x10_0000));
        // A wild address below the stack, the stack itself, and a stack pointer that is no longer one.
        assert!(!is_overflow(0x10, 0x10_8000) && !is_overflow(0x10_0000, 0x8_0000) && !is_overflow(0x10, 0x12_0000));
    }

    #[test]
    fn hash_is_cut_off() {
        assert_eq!(without_hash("a::b::h0123456789abcdef"), "a::b");
        assert_eq!(without_hash("a::hello"), "a::hello");
        assert_eq!(plain("a::b<c::D>"), "a::b");
        assert_eq!(plain("<a::B as c::D>::e"), "<a::B as c::D>::e");
    }

    /// Case 165.
    #[test]
    fn function_of_this_program_is_found_with_its_line() {
        let elf = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let symbols = Symbols::new(&elf);
        let symbol = symbols.functions.iter().find(|symbol| symbol.name.ends_with("symbols::demangled")).unwrap();
        let place = symbols.places(symbol.start).pop().unwrap();
        assert!(place.function.ends_with("symbols::demangled"), "{place}");
        assert!(place.line.as_ref().is_some_and(|(file, _)| file == "host-stub/src/backend/symbols.rs"), "{place}");
        assert_eq!(place.symbol, symbol.start);
    }
}
