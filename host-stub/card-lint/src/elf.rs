//! The parts of a shared library that a loader reads, and the symbols that only tools read.
//!
//! A loader goes by program headers and the dynamic table; so does this, except for mapping symbols and the borders of
//! code, which only the section headers tell.

use crate::bytes::{slice, text_at, u16_at, u32_at, u64_at};

/// `e_machine` of AArch64.
pub const EM_AARCH64: u16 = 183;
/// `e_type` of a shared library.
pub const ET_DYN: u16 = 3;

/// `p_type` of the program headers that the checks read.
pub mod pt {
    pub const LOAD: u32 = 1;
    pub const DYNAMIC: u32 = 2;
    pub const TLS: u32 = 7;
    pub const GNU_STACK: u32 = 0x6474_e551;
    pub const GNU_RELRO: u32 = 0x6474_e552;
}

/// `p_flags`.
pub const PF_X: u32 = 1;
/// `p_flags`.
pub const PF_W: u32 = 2;

/// Tags of the dynamic table.
pub mod dt {
    pub const NEEDED: u64 = 1;
    pub const PLTRELSZ: u64 = 2;
    pub const HASH: u64 = 4;
    pub const STRTAB: u64 = 5;
    pub const SYMTAB: u64 = 6;
    pub const RELA: u64 = 7;
    pub const RELASZ: u64 = 8;
    pub const STRSZ: u64 = 10;
    pub const INIT: u64 = 12;
    pub const SONAME: u64 = 14;
    pub const TEXTREL: u64 = 22;
    pub const JMPREL: u64 = 23;
    pub const BIND_NOW: u64 = 24;
    pub const INIT_ARRAYSZ: u64 = 27;
    pub const FLAGS: u64 = 30;
    pub const PREINIT_ARRAYSZ: u64 = 33;
    pub const GNU_HASH: u64 = 0x6fff_fef5;
    pub const FLAGS_1: u64 = 0x6fff_fffb;
    pub const VERNEED: u64 = 0x6fff_fffe;
    pub const VERNEEDNUM: u64 = 0x6fff_ffff;
}

/// Why a file is no library that could be checked further.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("class {0} in byte 4, not 2 (64 bit)")]
    Class(u8),
    #[error("byte order {0} in byte 5, not 1 (little-endian)")]
    ByteOrder(u8),
    #[error("machine {}, not 183 (AArch64)", machine_name(*.0))]
    Machine(u16),
    #[error("type {}, not 3 (shared library)", type_name(*.0))]
    Type(u16),
    #[error("damaged: {0}")]
    Damaged(&'static str),
}

/// The message: what `unwrap` and a failed assertion print.
impl std::fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

fn machine_name(machine: u16) -> String {
    let name = match machine {
        3 => " (x86)",
        40 => " (Arm, 32 bit)",
        62 => " (x86-64)",
        243 => " (RISC-V)",
        _ => "",
    };
    format!("{machine}{name}")
}

fn type_name(kind: u16) -> String {
    let name = match kind {
        1 => " (object file)",
        2 => " (program at a fixed address)",
        4 => " (core dump)",
        _ => "",
    };
    format!("{kind}{name}")
}

/// A program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub addr: u64,
    pub file_size: u64,
    pub mem_size: u64,
    pub align: u64,
}

/// A symbol of the dynamic table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    /// Defined here, not looked for in other libraries.
    pub defined: bool,
    pub weak: bool,
    pub ifunc: bool,
}

/// A symbol of the table that `strip` removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalSymbol {
    pub name: String,
    pub addr: u64,
    /// Whether it names a function.
    pub function: bool,
}

/// A run of bytes that the processor can execute.
#[derive(Clone, Copy, Debug)]
pub struct Code<'data> {
    pub addr: u64,
    pub bytes: &'data [u8],
}

/// A version that a library is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub library: String,
    pub name: String,
}

/// A shared library for AArch64.
#[derive(Debug)]
pub struct Library<'data> {
    pub segments: Vec<Segment>,
    pub dynamic: Vec<(u64, u64)>,
    pub soname: Option<String>,
    pub needed: Vec<String>,
    pub symbols: Vec<Symbol>,
    pub versions: Vec<Version>,
    /// Types of all relocations with an addend.
    pub relocations: Vec<u32>,
    /// Symbols beside the dynamic ones; empty in a stripped file.
    pub locals: Vec<LocalSymbol>,
    pub code: Vec<Code<'data>>,
}

/// Longest table that is followed: far above that of any library, and a bound for a damaged one.
const MAX_ENTRIES: u64 = 1 << 20;

impl<'data> Library<'data> {
    /// Reads what the checks need.
    ///
    /// # Errors
    /// [`Unreadable`], for a file that a loader for AArch64 would not map.
    pub fn parse(data: &'data [u8]) -> Result<Self, Unreadable> {
        check_header(data)?;
        let segments = read_segments(data).ok_or(Unreadable::Damaged("the program headers end after the file"))?;
        for segment in segments.iter().filter(|segment| segment.kind == pt::LOAD) {
            slice(data, segment.offset, segment.file_size)
                .ok_or(Unreadable::Damaged("a segment ends after the file: is it cut off?"))?;
        }
        let file = File { data, segments: &segments };
        let dynamic = file.dynamic()?;
        let value = |tag| dynamic.iter().find(|entry| entry.0 == tag).map(|entry| entry.1);
        let strings = value(dt::STRTAB)
            .and_then(|addr| file.at(addr, value(dt::STRSZ)?))
            .ok_or(Unreadable::Damaged("the dynamic table has no string table"))?;
        let text = |offset| text_at(strings, offset).ok_or(Unreadable::Damaged("a name is outside the string table"));

        let needed = dynamic.iter().filter(|entry| entry.0 == dt::NEEDED).map(|entry| text(entry.1));
        let needed = needed.collect::<Result<_, _>>()?;
        let soname = value(dt::SONAME).map(text).transpose()?;
        let symbols = match value(dt::SYMTAB) {
            Some(addr) => {
                let count = file.symbol_count(value(dt::HASH), value(dt::GNU_HASH), addr);
                let count = count.ok_or(Unreadable::Damaged("the size of the dynamic symbol table is not told"))?;
                file.symbols(addr, count, strings)
                    .ok_or(Unreadable::Damaged("the dynamic symbol table ends after the file"))?
            }
            None => Vec::new(),
        };
        let versions = match value(dt::VERNEED) {
            Some(addr) => file
                .versions(addr, value(dt::VERNEEDNUM).unwrap_or(0), strings)
                .ok_or(Unreadable::Damaged("the table of needed versions ends after the file"))?,
            None => Vec::new(),
        };
        let mut relocations = Vec::new();
        for (table, size) in [(dt::RELA, dt::RELASZ), (dt::JMPREL, dt::PLTRELSZ)] {
            let Some(addr) = value(table) else { continue };
            let table = file.at(addr, value(size).unwrap_or(0));
            let table = table.ok_or(Unreadable::Damaged("a table of relocations ends after the file"))?;
            // Type: low half of the second word of an entry of 24 bytes.
            relocations.extend((0..table.len() as u64 / 24).filter_map(|entry| u32_at(table, entry * 24 + 8)));
        }
        let sections = read_sections(data).unwrap_or_default();
        let locals = sections.iter().find_map(|section| read_locals(data, &sections, section)).unwrap_or_default();
        let code = read_code(data, &sections, &segments);
        Ok(Self { segments, dynamic, soname, needed, symbols, versions, relocations, locals, code })
    }

    /// Value of the first entry `tag` of the dynamic table.
    pub fn value(&self, tag: u64) -> Option<u64> {
        self.dynamic.iter().find(|entry| entry.0 == tag).map(|entry| entry.1)
    }

    /// Segments of one type.
    pub fn segments(&self, kind: u32) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(move |segment| segment.kind == kind)
    }
}

fn check_header(data: &[u8]) -> Result<(), Unreadable> {
    let header = data.get(..64).ok_or(Unreadable::Damaged("shorter than a header of 64 bytes"))?;
    match (header[4], header[5]) {
        (2, 1) => {}
        (2, order) => return Err(Unreadable::ByteOrder(order)),
        (class, _) => return Err(Unreadable::Class(class)),
    }
    let word = |at| u16::from_le_bytes([header[at], header[at + 1]]);
    match (word(18), word(16)) {
        (EM_AARCH64, ET_DYN) => Ok(()),
        (EM_AARCH64, kind) => Err(Unreadable::Type(kind)),
        (machine, _) => Err(Unreadable::Machine(machine)),
    }
}

fn read_segments(data: &[u8]) -> Option<Vec<Segment>> {
    let table = u64_at(data, 32)?;
    let (size, count) = (u16_at(data, 54)?, u16_at(data, 56)?);
    let read = |index: u16| {
        let entry = slice(data, table.checked_add(u64::from(size) * u64::from(index))?, 56)?;
        Some(Segment {
            kind: u32_at(entry, 0)?,
            flags: u32_at(entry, 4)?,
            offset: u64_at(entry, 8)?,
            addr: u64_at(entry, 16)?,
            file_size: u64_at(entry, 32)?,
            mem_size: u64_at(entry, 40)?,
            align: u64_at(entry, 48)?,
        })
    };
    (0..count).map(read).collect()
}

/// A file as it lies in memory once it is loaded.
struct File<'a, 'data> {
    data: &'data [u8],
    segments: &'a [Segment],
}

impl<'data> File<'_, 'data> {
    /// `len` bytes at an address, if a segment has them all.
    fn at(&self, addr: u64, len: u64) -> Option<&'data [u8]> {
        slice(self.from(addr)?, 0, len)
    }

    /// All bytes from an address to the end of its segment.
    fn from(&self, addr: u64) -> Option<&'data [u8]> {
        let is_here = |segment: &&Segment| {
            segment.kind == pt::LOAD && addr.checked_sub(segment.addr).is_some_and(|offset| offset < segment.file_size)
        };
        let segment = self.segments.iter().find(is_here)?;
        let offset = addr - segment.addr;
        slice(self.data, segment.offset.checked_add(offset)?, segment.file_size - offset)
    }

    fn dynamic(&self) -> Result<Vec<(u64, u64)>, Unreadable> {
        let segment = self.segments.iter().find(|segment| segment.kind == pt::DYNAMIC);
        let segment = segment.ok_or(Unreadable::Damaged("no dynamic table"))?;
        let table = slice(self.data, segment.offset, segment.file_size);
        let table = table.ok_or(Unreadable::Damaged("the dynamic table ends after the file"))?;
        let entry = |index: u64| Some((u64_at(table, index * 16)?, u64_at(table, index * 16 + 8)?));
        Ok((0..table.len() as u64 / 16).map_while(entry).take_while(|entry| entry.0 != 0).collect())
    }

    /// Number of dynamic symbols, which only the hash tables tell.
    fn symbol_count(&self, hash: Option<u64>, gnu_hash: Option<u64>, symtab: u64) -> Option<u64> {
        if let Some(addr) = hash {
            return u32_at(self.at(addr, 8)?, 4).map(u64::from);
        }
        let table = self.from(gnu_hash?)?;
        let (buckets, base, bloom) = (u32_at(table, 0)?, u32_at(table, 4)?, u32_at(table, 8)?);
        let buckets_at = 16 + 8 * u64::from(bloom);
        let chains_at = buckets_at + 4 * u64::from(buckets);
        if u64::from(buckets) > MAX_ENTRIES {
            return None;
        }
        let last = (0..u64::from(buckets)).filter_map(|bucket| u32_at(table, buckets_at + 4 * bucket)).max()?;
        if last < base {
            // No symbol is hashed. Undefined ones come before: up to what follows the table in memory, the strings.
            return Some(u64::from(base)).filter(|&count| self.at(symtab, count * 24).is_some());
        }
        let mut index = u64::from(last);
        while u32_at(table, chains_at + 4 * (index - u64::from(base)))? & 1 == 0 {
            index += 1;
        }
        Some(index + 1)
    }

    fn symbols(&self, addr: u64, count: u64, strings: &[u8]) -> Option<Vec<Symbol>> {
        let table = self.at(addr, count.checked_mul(24).filter(|_| count <= MAX_ENTRIES)?)?;
        // The first one has no name.
        let read = |index: u64| {
            let entry = slice(table, index * 24, 24)?;
            let (bind, kind) = (entry[4] >> 4, entry[4] & 15);
            let name = text_at(strings, u64::from(u32_at(entry, 0)?))?;
            // Local ones are of no use to a loader; a section's has no name.
            let symbol = Symbol { name, defined: u16_at(entry, 6)? != 0, weak: bind == 2, ifunc: kind == 10 };
            Some((bind, symbol))
        };
        let symbols: Option<Vec<_>> = (1..count).map(read).collect();
        Some(symbols?.into_iter().filter(|(bind, _)| *bind != 0).map(|(_, symbol)| symbol).collect())
    }

    fn versions(&self, addr: u64, count: u64, strings: &[u8]) -> Option<Vec<Version>> {
        let table = self.from(addr)?;
        let mut versions = Vec::new();
        let mut need = 0;
        for _ in 0..count {
            let library = text_at(strings, u64::from(u32_at(table, need + 4)?))?;
            let mut version = need + u64::from(u32_at(table, need + 8)?);
            for _ in 0..u16_at(table, need + 2)? {
                let name = text_at(strings, u64::from(u32_at(table, version + 8)?))?;
                versions.push(Version { library: library.clone(), name });
                // Entries are chained forwards, so that the end of the table ends a damaged chain; 0 is the last one.
                match u32_at(table, version + 12)? {
                    0 => break,
                    next => version += u64::from(next),
                }
            }
            match u32_at(table, need + 12)? {
                0 => break,
                next => need += u64::from(next),
            }
            if versions.len() as u64 > MAX_ENTRIES {
                return None;
            }
        }
        Some(versions)
    }
}

#[derive(Clone, Copy)]
struct Section {
    kind: u32,
    flags: u64,
    addr: u64,
    offset: u64,
    size: u64,
    link: u32,
}

/// Section headers; `None` where the file has none, or not all.
fn read_sections(data: &[u8]) -> Option<Vec<Section>> {
    let table = u64_at(data, 40)?;
    let (size, count) = (u16_at(data, 58)?, u16_at(data, 60)?);
    let read = |index: u16| {
        let entry = slice(data, table.checked_add(u64::from(size) * u64::from(index))?, 64)?;
        Some(Section {
            kind: u32_at(entry, 4)?,
            flags: u64_at(entry, 8)?,
            addr: u64_at(entry, 16)?,
            offset: u64_at(entry, 24)?,
            size: u64_at(entry, 32)?,
            link: u32_at(entry, 40)?,
        })
    };
    (0..count).map(read).collect()
}

/// Symbols of `section`, if that is the table that is not loaded.
fn read_locals(data: &[u8], sections: &[Section], section: &Section) -> Option<Vec<LocalSymbol>> {
    const SHT_SYMTAB: u32 = 2;
    if section.kind != SHT_SYMTAB {
        return None;
    }
    let strings = sections.get(section.link as usize)?;
    let strings = slice(data, strings.offset, strings.size)?;
    let table = slice(data, section.offset, section.size)?;
    let read = |index: u64| {
        let entry = slice(table, index * 24, 24)?;
        // Of undefined symbols the address is 0.
        let defined = u16_at(entry, 6)? != 0;
        let name = text_at(strings, u64::from(u32_at(entry, 0)?))?;
        defined.then_some(LocalSymbol { name, addr: u64_at(entry, 8)?, function: entry[4] & 15 == 2 })
    };
    Some((1..table.len() as u64 / 24).filter_map(read).collect())
}

/// Executable sections; without section headers, executable segments, which may have constants in them.
fn read_code<'data>(data: &'data [u8], sections: &[Section], segments: &[Segment]) -> Vec<Code<'data>> {
    const SHT_PROGBITS: u32 = 1;
    const SHF_EXECINSTR: u64 = 4;
    let is_code = |section: &&Section| section.kind == SHT_PROGBITS && section.flags & SHF_EXECINSTR != 0;
    let from_section =
        |section: &Section| slice(data, section.offset, section.size).map(|bytes| Code { addr: section.addr, bytes });
    let code: Vec<_> = sections.iter().filter(is_code).filter_map(from_section).collect();
    if !code.is_empty() {
        return code;
    }
    let is_code = |segment: &&Segment| segment.kind == pt::LOAD && segment.flags & PF_X != 0;
    let from_segment = |segment: &Segment| {
        slice(data, segment.offset, segment.file_size).map(|bytes| Code { addr: segment.addr, bytes })
    };
    segments.iter().filter(is_code).filter_map(from_segment).collect()
}
